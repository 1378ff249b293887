//! Sends one message with a number, as NVIDIA's sample of this name does. The command lines are in `rdma_send.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{SendImmTask, caps};
use doca::{Access, Memory, ProgressEngine};
use support::{IMMEDIATE, MESSAGE, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(send)
}

fn send(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::SEND_IMM], Access::LOCAL_READ_WRITE)?;
    let sends = config.enable::<SendImmTask>(1)?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, connection) = support::to_receiver(options, config.start(&engine)?)?;
    let sends = rdma.queue(sends)?;

    // Always the whole 256 bytes: the text, padded with zeros.
    let mut message = memory.take(MESSAGE)?;
    message[..options.text.len()].copy_from_slice(options.text.as_bytes());
    println!("Sending \"{}\" with immediate: {IMMEDIATE}", options.text);
    sends.submit(&connection, message, IMMEDIATE)?.wait()?;
    println!("Sent");

    connection.disconnect()?;
    rdma.stop().wait()?;
    Ok(())
}
