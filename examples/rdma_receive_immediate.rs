//! Receives one message with a number, as NVIDIA's sample of this name does. The command lines are in `rdma_send.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{ReceiveTask, caps};
use doca::{Access, Memory, ProgressEngine};
use support::{IMMEDIATE, MESSAGE, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(receive)
}

fn receive(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::RECEIVE], Access::LOCAL_READ_WRITE)?;
    let receives = config.enable::<ReceiveTask>(1)?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, peer) = support::to_sender(options, config.start(&engine)?)?;
    let receives = rdma.queue(receives)?;

    let mut receive = receives.submit(memory.take(MESSAGE)?)?;
    println!("The receive is posted");
    let received = receive.wait()?;
    let immediate = received.immediate().ok_or(format!("{:?} has no immediate", received.opcode()))?;
    println!("Got from sender: \"{}\" with immediate: {immediate}", support::text(&received.buffer)?);
    if immediate != IMMEDIATE {
        return Err(format!("{IMMEDIATE} was expected").into());
    }

    peer.leave()?;
    rdma.stop().wait()?;
    Ok(())
}
