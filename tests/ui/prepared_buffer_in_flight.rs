use doca::Buffer;
use doca::rdma::{Prepared, SendTask};

fn write_in_flight(mut send: Prepared<SendTask, Buffer>) -> doca::Result<()> {
    let flying = send.submit()?;
    send.data_mut()[0] = 1;
    flying.wait()?;
    Ok(())
}

fn main() {}
