//! What the functions of librdmacm do with an identifier.

use super::{Id, State};
use crate::fabric::clock;
use crate::fabric::listener;
use crate::fabric::mailbox::{self, Offer, REJECT_BY_PROGRAM, REJECT_NO_LISTENER};
use crate::fabric::network::Address;
use crate::log;
use crate::rdma::Far;
use crate::rdmacm::event::{self, Event, Kind, Pending, REJECT_DATA, REPLY_DATA, REQUEST_DATA};
use crate::rdmacm::layout::{CmId, ConnParam, EventChannel, IbvContext};
use crate::rdmacm::{ACKED, Cm, Errno, INVALID, Outcome, address, cm, devices};
use crate::topology;
use std::ffi::c_void;
use std::sync::PoisonError;

const PS_TCP: u32 = 0x0106;
const PS_IB: u32 = 0x013F;
const PS_DATAGRAM: [u32; 2] = [0x0002, 0x0111];
/// What is asked for by programs that give no parameters. (Proposed.)
const USUAL: Offer = Offer {
    responder_resources: 16,
    initiator_depth: 16,
    flow_control: 0,
    retry_count: 7,
    rnr_retry_count: 7,
    srq: 0,
    port: 0,
    qp_num: 0,
};

/// `rdma_create_id`. Without a channel, functions on the identifier wait for their events.
pub fn create(channel: *mut EventChannel, context: *mut c_void, ps: u32) -> Outcome<*mut CmId> {
    if PS_DATAGRAM.contains(&ps) {
        log::error!("rdma_create_id: datagram port spaces are not supported by this simulator");
        return Err(Errno(libc::ENOSYS));
    }
    if ![PS_TCP, PS_IB].contains(&ps) {
        return Err(INVALID);
    }
    let mut cm = cm();
    let sync = channel.is_null();
    let channel = if sync { cm.new_channel()? } else { channel };
    let mailbox = cm.channels.get(&channel.addr()).ok_or(INVALID)?.mailbox().clone();
    let mut id = Id::new(channel, mailbox, context, ps)?;
    id.sync = sync;
    let (pointer, key) = (id.pointer(), id.key());
    cm.names.insert(id.name(), key);
    cm.ids.insert(key, id);
    Ok(pointer)
}

/// `rdma_destroy_id`: waits until the program has acknowledged every event of the identifier.
pub fn destroy(id: *mut CmId) -> Outcome {
    let mut cm = cm();
    cm.mine(id)?;
    let key = id.addr();
    cm.give_back_own(key);
    let mut told = false;
    while cm.mine(id)?.unacked > 0 {
        if !std::mem::replace(&mut told, true) {
            let count = cm.mine(id)?.unacked;
            log::warning!("rdma_destroy_id waits until {count} events of the identifier are acknowledged");
        }
        cm = ACKED.wait(cm).unwrap_or_else(PoisonError::into_inner);
    }
    cm.farewell(key);
    if let Some(id) = cm.ids.remove(&key)
        && id.sync
    {
        cm.end_channel(id.channel);
    }
    Ok(())
}

/// `rdma_bind_addr`
///
/// # Safety
///
/// `addr` is NULL or a whole socket address.
pub unsafe fn bind(id: *mut CmId, addr: *const libc::sockaddr) -> Outcome {
    // SAFETY: by the contract of this function.
    let addr = unsafe { address::read(addr) }?;
    let mut cm = cm();
    let id = cm.mine(id)?;
    let claims = !id.shares_port;
    id.bind(addr, claims)
}

/// `rdma_listen`. There is no backlog: clients wait in the channel's mailbox.
pub fn listen(id: *mut CmId) -> Outcome {
    let mut cm = cm();
    let id = cm.in_state(id, &[State::Bound])?;
    if id.ports.is_empty() {
        id.claim()?;
    }
    id.state = State::Listening;
    let device = id.device.and_then(|device| topology::get().ok()?.devices.get(device));
    id.show_with(device);
    Ok(())
}

/// `rdma_resolve_addr`: at once, whatever the timeout.
///
/// # Safety
///
/// Both addresses are NULL or whole socket addresses.
pub unsafe fn resolve_addr(id: *mut CmId, from: *const libc::sockaddr, to: *const libc::sockaddr) -> Outcome {
    // SAFETY: by the contract of this function.
    let to = unsafe { address::read(to) }?;
    // SAFETY: as above.
    let from = if from.is_null() { None } else { Some(unsafe { address::read(from) }?) };
    {
        let mut cm = cm();
        let id = cm.in_state(id, &[State::Idle, State::Bound])?;
        if let Some(from) = from.filter(|_| id.state == State::Idle) {
            id.bind(from, false)?;
        }
        if id.source.is_some_and(|source| source.is_ipv4() != to.is_ipv4()) {
            return Err(INVALID);
        }
        let (key, channel) = (id.key(), id.channel);
        let pending = match address::anywhere(to.ip())? {
            Some(destination) => {
                id.resolve(to, destination)?;
                Pending::plain(key, Kind::AddrResolved, 0)
            }
            None => Pending::plain(key, Kind::AddrError, -libc::ETIMEDOUT),
        };
        cm.report(channel, pending);
    }
    complete(id)
}

/// `rdma_resolve_route`: at once.
pub fn resolve_route(id: *mut CmId) -> Outcome {
    {
        let mut cm = cm();
        let id = cm.in_state(id, &[State::Resolved])?;
        id.state = State::Routed;
        let (key, channel) = (id.key(), id.channel);
        cm.report(channel, Pending::plain(key, Kind::RouteResolved, 0));
    }
    complete(id)
}

/// What a program gives with a request or a reply. EINVAL for more private data than fits.
///
/// # Safety
///
/// The private data are there.
unsafe fn parameters<'a>(param: Option<&ConnParam>, most: usize) -> Outcome<(Offer, &'a [u8])> {
    let Some(param) = param else { return Ok((USUAL, &[])) };
    let offer = Offer {
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control,
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        srq: param.srq,
        port: 0,
        qp_num: param.qp_num,
    };
    // SAFETY: by the contract of this function.
    let data = unsafe { private_data(param.private_data, param.private_data_len, most) }?;
    Ok((offer, data))
}

/// # Safety
///
/// `data` is NULL or has `len` readable bytes.
unsafe fn private_data<'a>(data: *const u8, len: u8, most: usize) -> Outcome<&'a [u8]> {
    match usize::from(len) {
        0 => Ok(&[]),
        len if data.is_null() || len > most => Err(INVALID),
        // SAFETY: not NULL, and by the contract of this function.
        len => Ok(unsafe { std::slice::from_raw_parts(data, len) }),
    }
}

/// `rdma_connect`
///
/// # Safety
///
/// The private data that `param` names are there.
pub unsafe fn connect(id: *mut CmId, param: Option<&ConnParam>) -> Outcome {
    // SAFETY: by the contract of this function.
    let (offer, data) = unsafe { parameters(param, REQUEST_DATA) }?;
    {
        let mut cm = cm();
        let id = cm.in_state(id, &[State::Routed])?;
        let (key, channel) = (id.key(), id.channel);
        let destination = id.destination.ok_or(INVALID)?;
        let device = address::anywhere(destination.ip())?.ok_or(INVALID)?;
        let found = listener::find(&Address::Port(device.index as u32, destination.port()));
        let there = found.map(|found| id.meet(Far::plain(found.process, found.context, found.link)));
        let letter = id.letter(mailbox::Kind::Request, destination.port(), offer, data);
        let patience = clock::millis(topology::get()?.timeouts.cm_timeout_ms.into()) * listener::THINKING;
        id.until = Some(clock::now() + patience);
        id.state = if there == Some(true) { State::Connecting } else { State::Over };
        match (there, id.peer.clone()) {
            (Some(true), Some(peer)) => cm.send(&peer, letter?),
            (Some(_), _) => cm.report(channel, Pending::plain(key, Kind::Unreachable, -libc::ETIMEDOUT)),
            (None, _) => cm.report(channel, Pending::plain(key, Kind::Rejected, REJECT_NO_LISTENER.into())),
        }
        cm.watch(channel);
    }
    complete(id)
}

/// `rdma_accept`; on the client's side the same as `rdma_establish`.
///
/// # Safety
///
/// The private data that `param` names are there.
pub unsafe fn accept(id: *mut CmId, param: Option<&ConnParam>) -> Outcome {
    // SAFETY: by the contract of this function.
    let (offer, data) = unsafe { parameters(param, REPLY_DATA) }?;
    {
        let mut cm = cm();
        let accepted = cm.in_state(id, &[State::Requested, State::Answered])?;
        if accepted.state == State::Answered {
            drop(cm);
            return establish(id);
        }
        let (key, channel, peer) = (accepted.key(), accepted.channel, accepted.peer.clone());
        let waits = accepted.client_waits();
        let letter = accepted.letter(mailbox::Kind::Reply, 0, offer, data)?;
        accepted.state = if waits { State::Accepted } else { State::Over };
        if let (true, Some(far), Some(peer)) = (waits, accepted.far, peer) {
            accepted.join(far);
            cm.send(&peer, letter);
        } else {
            cm.report(channel, Pending::plain(key, Kind::Unreachable, -libc::ETIMEDOUT));
        }
    }
    complete(id)
}

/// `rdma_reject`
///
/// # Safety
///
/// `data` is NULL or has `len` readable bytes.
pub unsafe fn reject(id: *mut CmId, data: *const u8, len: u8) -> Outcome {
    // SAFETY: by the contract of this function.
    let data = unsafe { private_data(data, len, REJECT_DATA) }?;
    let mut cm = cm();
    let id = cm.in_state(id, &[State::Requested])?;
    let letter = id.letter(mailbox::Kind::Reject, REJECT_BY_PROGRAM, Offer::default(), data)?;
    id.state = State::Over;
    if let Some(peer) = id.peer.clone() {
        cm.send(&peer, letter);
    }
    Ok(())
}

/// `rdma_establish`: the client confirms.
pub fn establish(id: *mut CmId) -> Outcome {
    let mut cm = cm();
    let id = cm.in_state(id, &[State::Answered])?;
    let letter = id.letter(mailbox::Kind::Ready, 0, Offer::default(), &[])?;
    id.state = State::Established;
    if let Some(peer) = id.peer.clone() {
        cm.send(&peer, letter);
    }
    Ok(())
}

/// `rdma_disconnect`
pub fn disconnect(id: *mut CmId) -> Outcome {
    cm().hang_up(id)?;
    complete(id)
}

/// `rdma_migrate_id`. Without a channel, the identifier gets one of its own.
pub fn migrate(id: *mut CmId, channel: *mut EventChannel) -> Outcome {
    let mut cm = cm();
    cm.mine(id)?;
    let sync = channel.is_null();
    let channel = if sync { cm.new_channel()? } else { channel };
    let to = channel.addr();
    cm.channels.get(&to).ok_or(INVALID)?;
    cm.give_back_own(id.addr());
    let moved = cm.mine(id)?;
    let key = moved.key();
    let from = std::mem::replace(&mut moved.channel, to);
    let was_sync = std::mem::replace(&mut moved.sync, sync);
    moved.public.update(|id| id.channel = channel);
    for pending in cm.take_events(from, |pending| pending.id == key || pending.listener == Some(key)) {
        if let Some(id) = cm.ids.get_mut(&pending.id) {
            id.channel = to;
            id.public.update(|id| id.channel = channel);
        }
        cm.report(to, pending);
    }
    if was_sync {
        cm.end_channel(from);
    }
    cm.look(to);
    Ok(())
}

/// `rdma_get_request`: for listeners without a channel.
pub fn get_request(listener: *mut CmId) -> Outcome<*mut CmId> {
    let channel = {
        let mut cm = cm();
        let listener = cm.in_state(listener, &[State::Listening])?;
        if !listener.sync {
            return Err(INVALID);
        }
        let (key, channel) = (listener.key(), listener.channel);
        cm.give_back_own(key);
        cm.channels.get(&channel).ok_or(INVALID)?.pointer()
    };
    let Event { pointer, kind, id, .. } = event::next(channel)?;
    if kind != Kind::ConnectRequest as u32 {
        event::acknowledge(pointer)?;
        return Err(INVALID);
    }
    migrate(id, std::ptr::null_mut())?;
    cm().mine(id)?.public.update(|id| id.event = pointer);
    Ok(id)
}

/// On identifiers without a channel: waits for the event of what was begun, and gives its status.
fn complete(id: *mut CmId) -> Outcome {
    let channel = {
        let mut cm = cm();
        let waiting = cm.mine(id)?;
        if !waiting.sync {
            return Ok(());
        }
        let (key, channel) = (waiting.key(), waiting.channel);
        cm.give_back_own(key);
        cm.channels.get(&channel).ok_or(INVALID)?.pointer()
    };
    let Event { pointer, kind, status, .. } = event::next(channel)?;
    cm().mine(id)?.public.update(|id| id.event = pointer);
    match status {
        0 => Ok(()),
        _ if kind == Kind::Rejected as u32 => Err(Errno(libc::ECONNREFUSED)),
        status => Err(Errno(status.abs())),
    }
}

impl Cm {
    /// Acknowledges the last event of an identifier without a channel.
    fn give_back_own(&mut self, key: usize) {
        let mut event = std::ptr::null_mut();
        if let Some(id) = self.ids.get(&key) {
            id.public.update(|id| event = std::mem::replace(&mut id.event, std::ptr::null_mut()));
        }
        if !event.is_null() {
            // The program may have acknowledged it by itself.
            let _ = self.give_back(event);
        }
    }
}

/// `rdma_get_src_port`, in host order.
pub fn source_port(id: *mut CmId) -> u16 {
    cm().ids.get(&id.addr()).and_then(|id| id.source).map_or(0, |source| source.port())
}

/// `rdma_get_dst_port`, in host order.
pub fn destination_port(id: *mut CmId) -> u16 {
    cm().ids.get(&id.addr()).and_then(|id| id.destination).map_or(0, |destination| destination.port())
}

/// `rdma_set_option`: options of `RDMA_OPTION_ID`, of which sharing of ports is the only one that matters here.
pub fn set_option(id: *mut CmId, level: i32, name: i32, value: &[u8]) -> Outcome {
    const ID: i32 = 0;
    const TOS: i32 = 0;
    const REUSEADDR: i32 = 1;
    const AFONLY: i32 = 2;
    const ACK_TIMEOUT: i32 = 3;
    let mut cm = cm();
    let id = cm.mine(id)?;
    match (level, name, value.len()) {
        (ID, TOS | ACK_TIMEOUT, 1) | (ID, AFONLY, 4) => Ok(()),
        (ID, REUSEADDR, 4) => {
            id.shares_port = value.iter().any(|byte| *byte != 0);
            Ok(())
        }
        (ID, _, _) => Err(INVALID),
        _ => Err(Errno(libc::ENOSYS)),
    }
}

/// The devices of this side, as `rdma_get_devices` gives them.
pub fn all_devices() -> Outcome<Vec<*const IbvContext>> {
    Ok(address::devices()?.map(devices::context).collect())
}
