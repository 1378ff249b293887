use doca::Buffer;
use doca::rdma::{Connection, Queue, SendTask};

fn write_in_flight(sends: &Queue<SendTask>, connection: &Connection, mut buffer: Buffer) -> doca::Result<()> {
    let mut sent = sends.submit(connection, buffer)?;
    buffer[0] = 1;
    sent.wait()?;
    Ok(())
}

fn main() {}
