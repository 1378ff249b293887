//! Sends a message over each of several connections, as NVIDIA's sample of this name does.
//!
//! ```text
//! rdma_multi_conn_receive -d mlx5_0 -nc 3 -ld a -re b      rdma_multi_conn_receive -d mlx5_0 -nc 3 -cm
//! rdma_multi_conn_send    -d mlx5_1 -nc 3 -ld b -re a      rdma_send -d mlx5_1 -cm -sa ADDRESS      (three of these)
//! ```

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{Connection, SendTask, caps};
use doca::{Access, Memory, ProgressEngine};
use support::{MESSAGE, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(send)
}

fn send(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::SEND], Access::LOCAL_READ_WRITE)?;
    let sends = config.enable::<SendTask>(options.connections.into())?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, connections) = support::to_receivers(options, config.start(&engine)?)?;
    let sends = rdma.queue(sends)?;
    println!("All {} connections are made", connections.len());
    support::prompt("Wait until the receiver has posted all its receives")?;

    // One message for all: frozen buffers can be in several tasks at once.
    let mut message = memory.take(MESSAGE)?;
    message[..options.text.len()].copy_from_slice(options.text.as_bytes());
    let message = message.freeze()?;
    let tasks = connections.iter().map(|connection| sends.submit(connection, message.clone()));
    for mut task in tasks.collect::<Result<Vec<_>, _>>()? {
        task.wait()?;
    }
    println!("Sent \"{}\" over {} connections", options.text, connections.len());

    connections.iter().try_for_each(Connection::disconnect)?;
    rdma.stop().wait()?;
    Ok(())
}
