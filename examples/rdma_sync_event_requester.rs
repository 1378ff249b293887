//! Signals a peer by a sync event and waits for its answer, as NVIDIA's sample of this name does.
//!
//! ```text
//! rdma_sync_event_responder -d mlx5_0 -ld a -re b -m c      rdma_sync_event_responder -d mlx5_0 -cm
//! rdma_sync_event_requester -d mlx5_1 -ld b -re a -m c      rdma_sync_event_requester -d mlx5_1 -cm -sa ADDRESS
//! ```

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{EventGetTask, EventSetTask, caps};
use doca::{Access, Memory, ProgressEngine, RemoteEvent};
use support::{Meeting, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(request)
}

/// What we say first; the responder answers with more.
const SIGNAL: u64 = 0xD0CA;

fn request(options: &Options) -> Outcome<()> {
    let able = [caps::SYNC_EVENT_NOTIFY_SET, caps::SYNC_EVENT_GET];
    let (device, mut config) = options.configure(&able, Access::LOCAL_READ_WRITE)?;
    let (sets, gets) = (config.enable::<EventSetTask>(1)?, config.enable::<EventGetTask>(1)?);
    let meeting = Meeting::prepare(options, &mut config)?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, connection, descriptor) =
        support::to_responder(options, &device, config.start(&engine)?, meeting)?;
    let (sets, gets) = (rdma.queue(sets)?, rdma.queue(gets)?);
    let event = RemoteEvent::import(&device, descriptor)?;

    println!("Signaling remote sync event");
    let mut number = memory.take(8)?;
    number.copy_from_slice(&SIGNAL.to_ne_bytes());
    let mut number = sets.submit(&connection, &event, number)?.wait()?;
    let value = loop {
        let word = gets.submit(&connection, &event, number)?.wait()?;
        number = word.buffer;
        if word.value > SIGNAL {
            break word.value;
        }
    };
    println!("Received sync event value {value:#x}");

    number.copy_from_slice(&u64::MAX.to_ne_bytes());
    sets.submit(&connection, &event, number)?.wait()?;
    println!("Remote sync event has been notified for completion successfully");

    connection.disconnect()?;
    rdma.stop().wait()?;
    Ok(())
}
