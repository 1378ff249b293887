//! Lets a peer write its memory, as NVIDIA's sample of this name does. The command lines are in
//! `rdma_write_requester.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::{Access, Memory, ProgressEngine};
use support::{MESSAGE, Meeting, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(respond)
}

fn respond(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[], Access::RDMA_WRITE)?;
    let meeting = Meeting::prepare(options, &mut config)?;
    let memory = Memory::zeroed(4096)?.shared(&device, Access::RDMA_WRITE)?;
    let engine = ProgressEngine::new()?;
    let (rdma, peer) =
        support::to_requester(options, &device, config.start(&engine)?, meeting, &memory.export()?)?;

    support::prompt("Wait till the requester has finished writing")?;
    let mut written = [0; MESSAGE];
    memory.read(0, &mut written)?;
    println!("Requester has written: \"{}\"", support::text(&written)?);

    peer.leave()?;
    rdma.stop().wait()?;
    Ok(())
}
