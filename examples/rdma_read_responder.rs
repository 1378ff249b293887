//! Lets a peer read its memory, as NVIDIA's sample of this name does. The command lines are in
//! `rdma_read_requester.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::{Access, Memory, ProgressEngine};
use support::{Meeting, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(respond)
}

fn respond(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[], Access::RDMA_READ)?;
    let meeting = Meeting::prepare(options, &mut config)?;
    let memory = Memory::zeroed(4096)?.shared(&device, Access::RDMA_READ)?;
    memory.write(0, options.text.as_bytes())?;
    let engine = ProgressEngine::new()?;
    let (rdma, peer) =
        support::to_requester(options, &device, config.start(&engine)?, meeting, &memory.export()?)?;

    // The requester needs nothing more of us.
    support::prompt("Wait till the requester has finished reading")?;

    peer.leave()?;
    rdma.stop().wait()?;
    Ok(())
}
