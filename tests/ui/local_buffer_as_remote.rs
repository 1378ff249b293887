use doca::Buffer;
use doca::rdma::{Connection, Queue, ReadTask};

fn read_from_here(reads: &Queue<ReadTask>, connection: &Connection, from: Buffer, to: Buffer) {
    let _ = reads.submit(connection, &from, to);
}

fn main() {}
