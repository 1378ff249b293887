//! Writes a peer's memory and tells it with a number, as NVIDIA's sample of this name does.
//!
//! ```text
//! rdma_write_immediate_responder -d mlx5_0 -ld a -re b -m c      rdma_write_immediate_responder -d mlx5_0 -cm
//! rdma_write_immediate_requester -d mlx5_1 -ld b -re a -m c      rdma_write_immediate_requester -d mlx5_1 -cm -sa ADDRESS
//! ```

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{WriteImmTask, caps};
use doca::{Access, Memory, ProgressEngine, RemoteMemory};
use support::{IMMEDIATE, MESSAGE, Meeting, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(request)
}

fn request(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::WRITE], Access::LOCAL_READ_WRITE)?;
    let writes = config.enable::<WriteImmTask>(1)?;
    let meeting = Meeting::prepare(options, &mut config)?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, connection, descriptor) =
        support::to_responder(options, &device, config.start(&engine)?, meeting)?;
    let writes = rdma.queue(writes)?;

    // The text and the zero that ends it.
    let remote = RemoteMemory::import(&device, descriptor)?;
    let mut data = memory.take(options.text.len() + 1)?;
    data[..options.text.len()].copy_from_slice(options.text.as_bytes());
    writes.submit(&connection, data, &remote.range(0, MESSAGE)?, IMMEDIATE)?.wait()?;
    println!("Written to responder \"{}\" with immediate value {IMMEDIATE}", options.text);

    connection.disconnect()?;
    rdma.stop().wait()?;
    Ok(())
}
