use doca::Buffer;
use doca::rdma::{Exported, Queue, SendTask};

fn send_early(sends: &Queue<SendTask>, exported: &Exported, buffer: Buffer) {
    let _ = sends.submit(exported, buffer);
}

fn main() {}
