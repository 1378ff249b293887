use doca::Buffer;
use doca::rdma::{Prepared, SendTask};

fn submit_twice(send: Prepared<SendTask, Buffer>) -> doca::Result<()> {
    let first = send.submit()?;
    let second = send.submit()?;
    first.wait()?;
    second.wait()?;
    Ok(())
}

fn main() {}
