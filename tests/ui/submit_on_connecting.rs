use doca::Buffer;
use doca::rdma::{Connecting, Queue, SendTask};

fn send_early(sends: &Queue<SendTask>, connecting: &Connecting, buffer: Buffer) {
    let _ = sends.submit(connecting, buffer);
}

fn main() {}
