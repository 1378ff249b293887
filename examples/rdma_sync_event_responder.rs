//! Is signalled by a sync event and answers, as NVIDIA's sample of this name does. The command lines are in
//! `rdma_sync_event_requester.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::event::{Condition, Publisher, Subscriber};
use doca::{Access, ProgressEngine, SyncEvent};
use std::time::Duration;
use support::{Meeting, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(respond)
}

/// How long the requester may take.
const PATIENCE: Duration = Duration::from_secs(600);

fn respond(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[], Access::RDMA_READ | Access::RDMA_WRITE)?;
    let meeting = Meeting::prepare(options, &mut config)?;
    let event = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(&device))?;
    let engine = ProgressEngine::new()?;
    let (rdma, peer) =
        support::to_requester(options, &device, config.start(&engine)?, meeting, &event.export_net()?)?;

    println!("Waiting for sync event to be signaled from remote");
    let value = event.wait_for(Condition::Greater(0xD0C9), PATIENCE)?;
    println!("Signaling sync event, which was {value:#x}");
    event.set(0xD0CB)?;
    println!("Waiting for sync event to be notified for completion");
    event.wait_for(Condition::Greater(u64::MAX - 1), PATIENCE)?;

    peer.leave()?;
    rdma.stop().wait()?;
    Ok(())
}
