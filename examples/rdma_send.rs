//! Sends one message, as NVIDIA's sample of this name does: the peer may be that sample's receiver or ours.
//!
//! ```text
//! rdma_receive -d mlx5_0 -ld a -re b          rdma_receive -d mlx5_0 -cm
//! rdma_send    -d mlx5_1 -ld b -re a          rdma_send    -d mlx5_1 -cm -sa ADDRESS
//! ```

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{SendTask, caps};
use doca::{Access, Memory, ProgressEngine};
use support::{MESSAGE, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(send)
}

fn send(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::SEND], Access::LOCAL_READ_WRITE)?;
    let sends = config.enable::<SendTask>(1)?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, connection) = support::to_receiver(options, config.start(&engine)?)?;
    let sends = rdma.queue(sends)?;

    // Always the whole 256 bytes: the text, padded with zeros.
    let mut message = memory.take(MESSAGE)?;
    message[..options.text.len()].copy_from_slice(options.text.as_bytes());
    println!("Sending \"{}\"", options.text);
    sends.submit(&connection, message)?.wait()?;
    println!("Sent");

    connection.disconnect()?;
    rdma.stop().wait()?;
    Ok(())
}
