//! A connection that the program accepts by librdmacm and DOCA takes over. The client is DOCA's, in the same process.

use crate::scenes::{LIMIT, expect, until};
use doca::rdma::{Address, CmId, Config, Rdma, ReceiveTask, SendTask};
use doca::sta::cm::{CmEvent, Listener, Request};
use doca::{Device, Error, Memory, ProgressEngine, Refusal, Result};
use std::net::SocketAddr;

/// The network is this process's own, so nobody else has the port.
const PORT: u16 = 4420;

/// Everything of the bridge.
pub fn run(_: crate::scenes::Told<'_>) -> Result<()> {
    let device = Device::open("mlx5_0")?;
    let engine = ProgressEngine::new()?;
    let memory = Memory::zeroed(4096)?.private(&device)?;
    let (mut server, mut client) = (configure(&device)?, configure(&device)?);
    let (receives, sends) = (server.enable::<ReceiveTask>(2)?, client.enable::<SendTask>(2)?);
    let (server, client) = (server.start(&engine)?, client.start(&engine)?);
    let listener = listen(&device)?;
    let turned_away = client.connect_addr(Address::from(listener.address()))?;
    drop(request(&listener, &engine)?);
    expect(turned_away.wait_for(LIMIT).is_err())?;
    let connecting = client.connect_addr(Address::from(listener.address()))?;
    // Its channel is kept beside it.
    let (id, _channel) = request(&listener, &engine)?.into_raw().ok_or_else(lost)?;
    // SAFETY: an identifier with an unanswered request, given away by its owner; its channel outlives the connection.
    let id = unsafe { CmId::from_raw(id) }.ok_or_else(lost)?;
    let accepted = server.bridge(id)?.accept(b"welcome")?;
    let there = connecting.wait_for(LIMIT)?;
    until(&engine, || Ok(matches!(listener.next()?, Some(CmEvent::Established(_))).then_some(())))?;
    let here = accepted.established()?;
    let (server, client) = (server.running_within(LIMIT)?, client.running_within(LIMIT)?);
    let mut received = server.queue(receives)?.submit(memory.take(8)?)?;
    client.queue(sends)?.submit(&there, memory.take(8)?)?.wait_for(LIMIT)?;
    expect(received.wait_for(LIMIT)?.connection() == here.id())
}

fn configure(device: &Device) -> Result<Config> {
    let mut config = Rdma::configure(device)?;
    config.set_gid_roce_v2()?;
    Ok(config)
}

/// Listens by librdmacm at the address of a device.
pub fn listen(device: &Device) -> Result<Listener> {
    let ip = device.info().ipv4_address()?.ok_or_else(|| Error::refused("scenario", Refusal::Gid))?;
    Listener::bind(SocketAddr::from((ip, PORT)))
}

/// The next client.
pub fn request(listener: &Listener, engine: &ProgressEngine) -> Result<Request> {
    until(engine, || match listener.next()? {
        Some(CmEvent::Request(request)) => Ok(Some(request)),
        _ => Ok(None),
    })
}

fn lost() -> Error {
    Error::refused("scenario", Refusal::Malformed)
}
