use doca::RemoteBuffer;
use doca::rdma::{Connection, Queue, WriteTask};

fn write_from_the_peer(writes: &Queue<WriteTask>, connection: &Connection, from: RemoteBuffer, to: RemoteBuffer) {
    let _ = writes.submit(connection, from, &to);
}

fn main() {}
