use doca::rdma::{Connection, FetchAddTask, Queue};
use doca::{Buffer, RemoteBuffer};

fn add(adds: &Queue<FetchAddTask>, connection: &Connection, range: &RemoteBuffer, result: Buffer) {
    let _ = adds.submit(connection, range, result, 1);
}

fn main() {}
