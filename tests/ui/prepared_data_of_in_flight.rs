use doca::Buffer;
use doca::rdma::{InFlight, ReceiveTask};

fn read_too_early(flying: InFlight<ReceiveTask, Buffer>) -> u8 {
    flying.data()[0]
}

fn main() {}
