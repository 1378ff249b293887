//! How a client comes to a server: letters between their mailboxes.
//!
//! ```text
//! client   Request: what it can receive            looks the name up once, at start
//! server   Reply: place of the channel, or Reject
//! client   enters the channel, and is RUNNING      the server sees it there
//! ```

use super::endpoint::Endpoint;
use super::half::Half;
use super::running::{Event, Running};
use crate::code::{Code, Res};
use crate::ctx::{Context, CtxState};
use crate::fabric::channel::{Capacity, Channel, End, Life};
use crate::fabric::clock;
use crate::fabric::context::{ContextId, LinkId};
use crate::fabric::listener;
use crate::fabric::mailbox::{Control, Kind, Message, Offer, REJECT_NO_RESOURCES};
use crate::fabric::network::{self, Address};
use crate::fabric::process::{self, ContextPlace};
use crate::log;
use crate::topology;
use std::sync::Arc;

/// A client's end, as letters name it before it has a place.
const CLIENT: LinkId = LinkId { index: 0, generation: 1 };

fn letter(endpoint: &Endpoint, running: &Running, kind: Kind, from: LinkId, to: LinkId) -> Res<Message> {
    let context = running.view().id();
    Ok(Message {
        kind,
        process: process::local()?.reference(),
        context,
        from,
        control: Control { context, link: from },
        to,
        device: endpoint.dev().index() as u32,
        port: 0,
        offer: Offer::default(),
        data: Vec::new(),
    })
}

fn numbers(data: &[u8]) -> [u64; 2] {
    let number =
        |at: usize| data.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    [number(0).unwrap_or(0), number(8).unwrap_or(0)]
}

/// A client starts: asks the server of that name. Without one, it will give up.
pub fn ask(endpoint: &Endpoint, running: &Running, at: &Address) -> Res {
    let patience = topology::get().map_or(0, |topology| topology.timeouts.comch_connect_ms);
    let patience = clock::now() + clock::millis(patience.into());
    running.attempt.patience.set(patience);
    let server = listener::find(at).ok_or(Code::NOT_FOUND);
    match server.and_then(|found| Ok((found, process::attach(found.process)?.context(found.context)?))) {
        Ok((found, server)) => {
            let mut request = letter(endpoint, running, Kind::Request, CLIENT, found.link)?;
            let Capacity { message, depth } = endpoint.capacity();
            request.data.extend(u64::from(message).to_le_bytes());
            request.data.extend(u64::from(depth).to_le_bytes());
            running.post(&server, request);
            *running.attempt.server.borrow_mut() = Some(server);
        }
        Err(code) => {
            let (name, network) = (String::from_utf8_lossy(&endpoint.name), network::directory());
            let (ibdev, network) = (&endpoint.device().ibdev, network.display());
            log::error!("doca_comch_client: there is no server {name} for {ibdev} in the network {network}");
            log::debug!("doca_comch_client: {code:?}");
            running.attempt.give_up_at.set(patience);
        }
    }
    Ok(())
}

/// A client that has not been taken yet.
pub fn look_after(endpoint: &Endpoint, running: &Running, now: u64) {
    let attempt = &running.attempt;
    let gone = attempt.server.borrow().as_ref().is_some_and(|server| {
        !server.process().is_alive() || !server.is_open() && attempt.give_up_at.get() == 0
    });
    if gone && running.only().is_none() {
        log::error!("doca_comch_client: the server has gone");
        attempt.give_up_at.set(1);
    }
    let at = attempt.give_up_at.get();
    if running.only().is_none() && at != 0 && now >= at {
        attempt.give_up_at.set(0);
        endpoint.ctx().fall(endpoint);
    }
}

/// A letter has come. What does not fit the state of things is dropped: letters may come late.
pub fn receive(endpoint: &Endpoint, running: &Running, message: Message) {
    let state = endpoint.ctx().state();
    match (endpoint.end, message.kind, state) {
        (End::Server, Kind::Request, CtxState::Running) => {
            if let Err(code) = admit(endpoint, running, &message) {
                log::debug!("doca_comch_server: a client could not be admitted: {code:?}");
            }
        }
        (End::Client, Kind::Reply, CtxState::Starting) if message.to == CLIENT => {
            if let Err(code) = enter(endpoint, running, &message) {
                log::error!("doca_comch_client: the connection could not be made: {code:?}");
                running.attempt.give_up_at.set(1);
            }
        }
        (End::Client, Kind::Reject, CtxState::Starting) if message.to == CLIENT => {
            log::error!("doca_comch_client: the server has as many clients as it can take");
            running.attempt.give_up_at.set(running.attempt.patience.get().max(1));
        }
        _ => {}
    }
}

/// A server takes a client, or tells it that there is no room.
fn admit(endpoint: &Endpoint, running: &Running, request: &Message) -> Res {
    let far = process::attach(request.process)?.context(request.context)?;
    let id = match running.reserve() {
        Ok(id) => id,
        Err(code) => {
            let mut reject =
                letter(endpoint, running, Kind::Reject, LinkId { index: 0, generation: 0 }, request.from)?;
            reject.port = REJECT_NO_RESOURCES;
            running.post(&far, reject);
            let nowhere = LinkId { index: u32::MAX, generation: 0 };
            running.tell(Event::Connected(running.stillborn(nowhere), false));
            return Err(code);
        }
    };
    let [message, depth] = numbers(&request.data).map(|number| u32::try_from(number).unwrap_or(0));
    let channel = Channel::create(End::Server, Capacity { message, depth }, endpoint.capacity())?;
    let place = ContextPlace::reserve()?;
    place.show(channel.fd())?;
    channel.set_life(Life::Up);
    let mut reply = letter(endpoint, running, Kind::Reply, id, request.from)?;
    reply.data.extend(place.id().bits().to_le_bytes());
    let half = Half::new(
        endpoint.dev().clone(),
        [running.view().clone(), far.clone()],
        [id.index, 0],
        endpoint.children.clone(),
    );
    let connection = running.install(id, half, channel);
    *connection.place.borrow_mut() = Some(place);
    running.post(&far, reply);
    Ok(())
}

/// A client has been taken.
fn enter(endpoint: &Endpoint, running: &Running, reply: &Message) -> Res {
    let server = running.attempt.server.borrow().clone().ok_or(Code::UNEXPECTED)?;
    let place = ContextId::from_bits(numbers(&reply.data)[0]);
    let channel = Channel::attach(server.process().published(place)?, End::Client)?;
    channel.set_life(Life::Up);
    let half = Half::new(
        endpoint.dev().clone(),
        [running.view().clone(), server],
        [0, reply.from.index],
        Arc::clone(&endpoint.children),
    );
    let connection = running.install(running.reserve()?, half.clone(), channel);
    connection.set_up();
    connection.announced.set(true);
    half.call();
    Ok(())
}
