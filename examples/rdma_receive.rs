//! Receives one message, as NVIDIA's sample of this name does: the peer may be that sample's sender or ours. The
//! command lines are in `rdma_send.rs`.

#[allow(dead_code, reason = "each example uses a part")]
mod support;

use doca::rdma::{Connection, Exported, Rdma, ReceiveTask, TransportType, caps};
use doca::{Memory, ProgressEngine};
use support::{MESSAGE, Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(receive)
}

/// What must live until the message is there.
enum Peer {
    Connected(Connection),
    /// With DC, only the sender connects.
    Awaited(Exported),
}

fn receive(options: &Options) -> Outcome<()> {
    let (device, mut config) = options.configure(caps::RECEIVE)?;
    let receives = config.enable::<ReceiveTask>(1)?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let engine = ProgressEngine::new()?;
    let rdma = config.start(&engine)?.running()?;
    let receives = rdma.queue(receives)?;

    let peer = if options.use_cm {
        Peer::Connected(options.connect_by_cm(&rdma)?)
    } else {
        connect(options, &rdma)?
    };

    let mut receive = receives.submit(memory.take(MESSAGE)?)?;
    println!("The receive is posted");
    let received = receive.wait()?;
    let end = received.buffer.iter().position(|&byte| byte == 0);
    let end = end.ok_or(format!("the message has no end within {MESSAGE} bytes"))?;
    println!("Got from sender: \"{}\"", String::from_utf8_lossy(&received.buffer[..end]));

    match peer {
        Peer::Connected(connection) => connection.disconnect()?,
        Peer::Awaited(exported) => drop(exported),
    }
    rdma.stop().wait()?;
    Ok(())
}

/// Exports a descriptor for the sender, and connects with the sender's if there is one.
fn connect(options: &Options, rdma: &Rdma) -> Outcome<Peer> {
    let (exported, descriptor) = rdma.export()?;
    support::write(&options.local, &descriptor)?;
    println!("Copy {} to the sender", options.local);
    if options.transport == TransportType::DC {
        return Ok(Peer::Awaited(exported));
    }
    support::prompt(&format!("Copy {} from the sender", options.remote))?;
    Ok(Peer::Connected(exported.connect(support::read(&options.remote)?)?))
}
