//! Imports a sync event from across PCI, waits for its signal, and answers it, as NVIDIA's sample of this name does; the
//! command lines are in `sync_event_local_pci.rs`.

#[allow(dead_code, reason = "each example uses a part")]
#[path = "support/event.rs"]
mod support;

use doca::ProgressEngine;
use support::{Options, Outcome, PATIENCE};

fn main() -> std::process::ExitCode {
    support::run(answer)
}

fn answer(options: &Options) -> Outcome<()> {
    let device = options.device("event.import_from_remote_pci")?;
    let engine = ProgressEngine::new()?;
    let link = options.meet(&device, &engine)?;
    let descriptor = link.connection.receive_for(PATIENCE)?;
    println!("Received blob from remote side");
    let event = options.import(&device, &descriptor)?;
    event.wait(1)?;
    options.signal(&event, 2)?;
    println!("Done");
    Ok(())
}
