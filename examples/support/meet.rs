//! How two examples find each other: descriptors in files that somebody carries to and fro, or RDMA CM.
//!
//! Requesters need a descriptor of the responder's memory or event too. It comes in a file, or as the first message
//! of a connection that RDMA CM made.
//!
//! Contexts are connected while they are starting, and waited for afterwards: DOCA 3 has them RUNNING at once, and DOCA 2
//! had them wait for their first connection.

use super::{Options, Outcome, prompt, read, write};
use doca::rdma::{Config, Connection, Exported, Key, Rdma, ReceiveTask, SendTask, Starting, TransportType};
use doca::{Descriptor, Device, Memory};

/// Longest descriptor in a message.
const LONGEST: usize = 4096;

/// Whom we met. It must live as long as the peer needs us.
pub enum Peer {
    Connected(Connection),
    /// With DC, only the side that asks connects.
    Awaited(#[expect(dead_code, reason = "kept for the peer")] Exported),
}

impl Peer {
    /// Ends the connection.
    pub fn leave(self) -> doca::Result<()> {
        match self {
            Peer::Connected(connection) => connection.disconnect(),
            Peer::Awaited(_) => Ok(()),
        }
    }
}

/// The side that sends meets a receiver.
pub fn to_receiver(options: &Options, starting: Starting) -> Outcome<(Rdma, Connection)> {
    let connection = if options.use_cm {
        let connection = options.connect_by_cm(&starting)?;
        prompt("Connected. Wait until the receiver has posted its receive")?;
        connection
    } else {
        ask(options, &starting, "receiver", &options.remote)?
    };
    Ok((starting.running()?, connection))
}

/// The side that receives meets a sender.
pub fn to_sender(options: &Options, starting: Starting) -> Outcome<(Rdma, Peer)> {
    let peer = match options.use_cm {
        true => Peer::Connected(options.connect_by_cm(&starting)?),
        false => answer(options, &starting, "sender")?,
    };
    Ok((starting.running()?, peer))
}

/// A side that sends over several connections meets receivers.
pub fn to_receivers(options: &Options, starting: Starting) -> Outcome<(Rdma, Vec<Connection>)> {
    all(options, starting, "receiver", |file| format!("Let the receiver go on first, copy {file} from it"))
}

/// A side that receives over several connections meets senders.
pub fn to_senders(options: &Options, starting: Starting) -> Outcome<(Rdma, Vec<Connection>)> {
    all(options, starting, "sender", |file| format!("Copy {file} from the sender"))
}

/// By files, one connection after the other, each with files of its own.
fn all(
    options: &Options,
    starting: Starting,
    peer: &str,
    wish: impl Fn(&str) -> String,
) -> Outcome<(Rdma, Vec<Connection>)> {
    let one = |index| {
        let local = options.numbered(&options.local, index);
        let remote = options.numbered(&options.remote, index);
        let (exported, descriptor) = starting.export()?;
        write(&local, &descriptor)?;
        println!("Copy {local} to the {peer}");
        prompt(&wish(&remote))?;
        Ok(exported.connect(read(&remote)?)?)
    };
    let connections = match options.use_cm {
        true => options.connect_all_by_cm(&starting)?,
        false => (0..options.connections).map(one).collect::<Outcome<_>>()?,
    };
    Ok((starting.running()?, connections))
}

/// The task by which a descriptor of memory travels, if RDMA CM connects.
pub enum Meeting<T> {
    Files,
    Message(Key<T>),
}

impl<T: doca::rdma::Task> Meeting<T> {
    /// Enables the task if it is needed.
    pub fn prepare(options: &Options, config: &mut Config) -> doca::Result<Self> {
        if options.use_cm { config.enable(1).map(Meeting::Message) } else { Ok(Meeting::Files) }
    }
}

/// The side that asks meets a responder, and gets the descriptor of what it shares.
pub fn to_responder(
    options: &Options,
    device: &Device,
    starting: Starting,
    meeting: Meeting<ReceiveTask>,
) -> Outcome<(Rdma, Connection, Descriptor)> {
    let Meeting::Message(key) = meeting else {
        let wanted = format!("{} and {}", options.remote, options.resource);
        let connection = ask(options, &starting, "responder", &wanted)?;
        return Ok((starting.running()?, connection, read(&options.resource)?));
    };
    let connection = options.connect_by_cm(&starting)?;
    let rdma = starting.running()?;
    let memory = Memory::zeroed(LONGEST)?.private(device)?;
    let mut receive = rdma.queue(key)?.submit(memory.take(LONGEST)?)?;
    println!("Negotiation receive task submission completed");
    let descriptor = Descriptor::from(&receive.wait()?.buffer[..]);
    Ok((rdma, connection, descriptor))
}

/// The side that shares something meets a requester, and gives it the descriptor.
pub fn to_requester(
    options: &Options,
    device: &Device,
    starting: Starting,
    meeting: Meeting<SendTask>,
    resource: &Descriptor,
) -> Outcome<(Rdma, Peer)> {
    let Meeting::Message(key) = meeting else {
        write(&options.resource, resource)?;
        println!("Copy {} to the requester", options.resource);
        let peer = answer(options, &starting, "requester")?;
        return Ok((starting.running()?, peer));
    };
    let connection = options.connect_by_cm(&starting)?;
    let rdma = starting.running()?;
    prompt("Wait till the requester has finished the submission of the receive task for negotiation")?;
    let mut message = Memory::zeroed(LONGEST)?.private(device)?.take(LONGEST)?;
    message.fill_with(resource.as_bytes())?;
    rdma.queue(key)?.submit(&connection, message)?.wait()?;
    Ok((rdma, Peer::Connected(connection)))
}

/// Connects with the peer's descriptor. With DC the peer does not need ours.
fn ask(options: &Options, starting: &Starting, peer: &str, files: &str) -> Outcome<Connection> {
    let (exported, descriptor) = starting.export()?;
    if options.transport == TransportType::RC {
        write(&options.local, &descriptor)?;
        println!("Copy {} to the {peer}", options.local);
    }
    prompt(&format!("Let the {peer} go on first, copy {files} from it"))?;
    Ok(exported.connect(read(&options.remote)?)?)
}

/// Exports a descriptor for the peer, and connects with the peer's if there is one.
fn answer(options: &Options, starting: &Starting, peer: &str) -> Outcome<Peer> {
    let (exported, descriptor) = starting.export()?;
    write(&options.local, &descriptor)?;
    println!("Copy {} to the {peer}", options.local);
    if options.transport == TransportType::DC {
        return Ok(Peer::Awaited(exported));
    }
    prompt(&format!("Copy {} from the {peer}", options.remote))?;
    Ok(Peer::Connected(exported.connect(read(&options.remote)?)?))
}
