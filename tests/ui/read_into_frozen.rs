use doca::rdma::{Connection, Queue, ReadTask};
use doca::{Frozen, RemoteBuffer};

fn read(reads: &Queue<ReadTask>, connection: &Connection, from: &RemoteBuffer, to: Frozen) {
    let _ = reads.submit(connection, from, to);
}

fn main() {}
