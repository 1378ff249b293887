//! Receives a message over each of several connections, as NVIDIA's sample of this name does. The command lines are in
//! `rdma_multi_conn_send.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{Connection, ReceiveTask, caps};
use doca::{Access, Memory, ProgressEngine};
use support::{MESSAGE, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(receive)
}

fn receive(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(&[caps::RECEIVE], Access::LOCAL_READ_WRITE)?;
    let receives = config.enable::<ReceiveTask>(options.connections.into())?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let (rdma, connections) = support::to_senders(options, config.start(&engine)?)?;
    let receives = rdma.queue(receives)?;
    println!("All {} connections are made", connections.len());

    // The oldest receive takes the next message, whoever it comes from.
    let mut tasks = Vec::new();
    for _ in &connections {
        tasks.push(receives.submit(memory.take(MESSAGE)?)?);
    }
    println!("All RDMA receive tasks are posted");
    for mut task in tasks {
        let received = task.wait()?;
        let from = connections.iter().position(|connection| connection.id() == received.connection());
        let from = from.ok_or("a message of nobody")?;
        println!("Got from sender: \"{}\", over connection {from}", support::text(&received.buffer)?);
    }

    connections.iter().try_for_each(Connection::disconnect)?;
    rdma.stop().wait()?;
    Ok(())
}
