//! Reads a peer's memory, as NVIDIA's sample of this name does: the peer may be that sample's responder or ours.
//!
//! ```text
//! rdma_read_responder -d mlx5_0 -ld a -re b -m c      rdma_read_responder -d mlx5_0 -cm
//! rdma_read_requester -d mlx5_1 -ld b -re a -m c      rdma_read_requester -d mlx5_1 -cm -sa ADDRESS
//! ```

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{ReadTask, caps};
use doca::{Access, Memory, ProgressEngine, RemoteMemory};
use support::{MESSAGE, Meeting, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(request)
}

fn request(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::READ], Access::LOCAL_READ_WRITE)?;
    let reads = config.enable::<ReadTask>(1)?;
    let meeting = Meeting::prepare(options, &mut config)?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, connection, descriptor) =
        support::to_responder(options, &device, config.start(&engine)?, meeting)?;
    let reads = rdma.queue(reads)?;

    let remote = RemoteMemory::import(&device, descriptor)?;
    let fetched = reads.submit(&connection, &remote.range(0, MESSAGE)?, memory.take(MESSAGE)?)?.wait()?;
    println!("Read {} bytes", fetched.bytes_read());
    println!("Read from responder: \"{}\"", support::text(&fetched.buffer)?);

    connection.disconnect()?;
    rdma.stop().wait()?;
    Ok(())
}
