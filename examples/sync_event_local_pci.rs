//! Exports a sync event across PCI, signals it, and waits for the answer, as NVIDIA's sample of this name does: the peer
//! may be that sample's or ours, in either mode.
//!
//! ```text
//! sync_event_remote_pci -d 03:00.0 -r 3b:00.0 --async --async-num-tasks 1          on the DPU
//! sync_event_local_pci -d 3b:00.0 --async --async-num-tasks 1 --atomic             on the host
//! ```

#[allow(dead_code, reason = "each example uses a part")]
#[path = "support/event.rs"]
mod support;

use doca::ProgressEngine;
use support::{Options, Outcome, PATIENCE};

fn main() -> std::process::ExitCode {
    support::run(signal_first)
}

fn signal_first(options: &Options) -> Outcome<()> {
    let device = options.device("event.export_to_remote_pci")?;
    let (event, descriptor) = options.export(&device)?;
    let engine = ProgressEngine::new()?;
    let link = options.meet(&device, &engine)?;
    // Who has the descriptor can reach the event; Comch is between host and DPU only.
    link.connection.send(descriptor.as_bytes())?;
    link.connection.wait_sent_for(PATIENCE)?;
    println!("Exported DOCA Sync Event has been sent to remote side successfully");
    options.signal(&event, 1)?;
    event.wait(2)?;
    println!("Done");
    Ok(())
}
