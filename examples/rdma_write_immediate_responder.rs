//! Lets a peer write its memory and is told by a number, as NVIDIA's sample of this name does. The command lines are
//! in `rdma_write_immediate_requester.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{Opcode, ReceiveTask, caps};
use doca::{Access, Memory, ProgressEngine};
use support::{IMMEDIATE, MESSAGE, Meeting, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(respond)
}

fn respond(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::RECEIVE], Access::RDMA_WRITE)?;
    let receives = config.enable::<ReceiveTask>(1)?;
    let meeting = Meeting::prepare(options, &mut config)?;
    let memory = Memory::zeroed(4096)?.shared(&device, Access::RDMA_WRITE)?;
    let engine = ProgressEngine::new()?;
    let (rdma, peer) =
        support::to_requester(options, &device, config.start(&engine)?, meeting, &memory.export()?)?;
    let receives = rdma.queue(receives)?;

    // The data go where the requester writes them, so the receive needs no buffer.
    let mut receive = receives.submit(())?;
    println!("The receive is posted");
    let received = receive.wait()?;
    if (received.opcode(), received.immediate()) != (Opcode::WRITE_WITH_IMM, Some(IMMEDIATE)) {
        return Err(format!("a write with {IMMEDIATE} was expected, not {received:?}").into());
    }
    let mut written = [0; MESSAGE];
    memory.read(0, &mut written)?;
    let text = support::text(&written)?;
    println!("Requester has written: \"{text}\" with immediate data: {IMMEDIATE}");

    peer.leave()?;
    rdma.stop().wait()?;
    Ok(())
}
