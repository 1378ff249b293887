//! Identifiers: from `rdma_create_id` to `rdma_destroy_id`.
//!
//! ```text
//! client   Idle -> Resolved -> Routed -> Connecting -> Answered -> Established -> Left, Over
//! server   Idle -> Bound -> Listening
//!          Requested -> Accepted -> Established -> Left, Over
//! ```

use super::channel::Mailbox;
use super::event::{self, Event, Kind, Pending, REJECT_DATA, REPLY_DATA, REQUEST_DATA};
use super::layout::{CmId, ConnParam, EventChannel, IbvContext};
use super::{ACKED, Cm, Errno, INVALID, Outcome, Public, address, cm, devices};
use crate::code::{Code, Res};
use crate::fabric::context::{ContextView, FarEnd, LinkId, LinkState};
use crate::fabric::listener::{self, Listener};
use crate::fabric::mailbox::{self, Control, Message, Offer, REJECT_BY_PROGRAM, REJECT_NO_LISTENER};
use crate::fabric::{clock, process};
use crate::log;
use crate::rdma::Far;
use crate::topology::{self, Device};
use std::ffi::c_void;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

const PS_TCP: u32 = 0x0106;
const PS_IB: u32 = 0x013F;
const PS_DATAGRAM: [u32; 2] = [0x0002, 0x0111];
const QPT_RC: u32 = 2;
/// The default partition, the same in both byte orders.
const PKEY: u16 = 0xffff;
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
/// A server may think about a request for this many timeouts of the topology, as one of libdoca_rdma may.
const PATIENCE: u64 = 10;
/// Ports that programs get which ask for any.
const EPHEMERAL: std::ops::Range<u16> = 32768..61000;

/// Where an identifier is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// New.
    Idle,
    /// Has an address of its own.
    Bound,
    /// Waits for clients.
    Listening,
    /// Knows the destination.
    Resolved,
    /// Knows the way.
    Routed,
    /// Client: has asked.
    Connecting,
    /// Client: the server has accepted.
    Answered,
    /// Server: a client asks.
    Requested,
    /// Server: accepted; the client has not confirmed yet.
    Accepted,
    /// Up.
    Established,
    /// The other side has ended it, this side has not said so yet.
    Left,
    /// Over.
    Over,
}

/// An identifier.
#[derive(Debug)]
pub(super) struct Id {
    public: Public<CmId>,
    /// Where its events go.
    pub(super) channel: usize,
    /// Where its letters come.
    pub(super) mailbox: Arc<Mailbox>,
    link: LinkId,
    /// Where it is in its life.
    pub(super) state: State,
    /// Whether the program has handed it to DOCA.
    pub(super) owned: bool,
    /// Whether it has a channel of its own, so that functions wait for their events.
    sync: bool,
    /// The device: a position in the topology.
    pub(super) device: Option<usize>,
    /// This side's address.
    pub(super) source: Option<SocketAddr>,
    /// The other side's address.
    pub(super) destination: Option<SocketAddr>,
    ports: Vec<Listener>,
    shares_port: bool,
    /// The other side.
    pub(super) far: Option<Far>,
    peer: Option<Arc<ContextView>>,
    until: Option<u64>,
    /// Events that the program has not given back.
    pub(super) unacked: usize,
    /// Whether it goes when the last event is given back.
    pub(super) doomed: bool,
}

impl std::fmt::Debug for CmId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rdma_cm_id of port space {:#x}", self.ps)
    }
}

impl std::fmt::Debug for EventChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rdma_event_channel with descriptor {}", self.fd)
    }
}

impl Id {
    fn new(channel: *mut EventChannel, mailbox: Arc<Mailbox>, context: *mut c_void, ps: u32) -> Res<Id> {
        // SAFETY: pointers, integers and socket addresses, for all of which zero is a value.
        let mut public: CmId = unsafe { std::mem::zeroed() };
        (public.channel, public.context, public.ps, public.qp_type) = (channel, context, ps, QPT_RC);
        Ok(Id {
            public: Public::new(public),
            channel: channel.addr(),
            link: mailbox.name()?,
            mailbox,
            state: State::Idle,
            owned: false,
            sync: false,
            device: None,
            source: None,
            destination: None,
            ports: Vec::new(),
            shares_port: false,
            far: None,
            peer: None,
            until: None,
            unacked: 0,
            doomed: false,
        })
    }

    /// Another one of the same channel, port space and context word: for a client of a listener.
    pub(super) fn sibling(&self) -> Res<Id> {
        let (mut channel, mut context, mut ps) = (std::ptr::null(), std::ptr::null_mut(), 0);
        self.public.update(|id| (channel, context, ps) = (id.channel, id.context, id.ps));
        Id::new(channel.cast_mut(), self.mailbox.clone(), context, ps)
    }

    /// The structure that the program has.
    pub(super) fn pointer(&self) -> *mut CmId {
        self.public.pointer()
    }

    /// Its place in the table.
    pub(super) fn key(&self) -> usize {
        self.public.key()
    }

    /// What letters are addressed to.
    pub(super) fn name(&self) -> (u64, u64) {
        (self.mailbox.view().id().bits(), self.link.bits())
    }

    /// Nothing can be addressed to it any more.
    pub(super) fn forget_name(&self) {
        self.mailbox.forget(self.link);
    }

    /// Where letters about its connection come.
    pub(super) fn control(&self) -> Control {
        Control { context: self.mailbox.view().id(), link: self.link }
    }

    /// Whether requests for a port of a device are for it.
    pub(super) fn listens_on(&self, device: u32, port: u16) -> bool {
        self.source.is_some_and(|source| source.port() == port)
            && self.ports.iter().any(|listener| listener.device() == device)
    }

    /// A peer whose end matters, and until when its answer is awaited.
    pub(super) fn waits_for(&self) -> Option<(&Arc<ContextView>, Option<u64>)> {
        let until = match self.state {
            State::Connecting => self.until,
            State::Answered | State::Requested | State::Accepted | State::Established => None,
            _ => return None,
        };
        Some((self.peer.as_ref()?, until))
    }

    /// Learns who is at the far end; tells whether it is there.
    pub(super) fn meet(&mut self, far: Far) -> bool {
        self.far = Some(far);
        self.peer =
            process::attach(far.process).and_then(|process| process.context(far.control.context)).ok();
        self.peer.is_some()
    }

    /// The far end has named itself: this end of the connection is up, though nothing can be received on it.
    pub(super) fn join(&mut self, far: Far) {
        self.meet(far);
        if let Some(link) = self.mailbox.view().named_link(self.link) {
            link.connect(FarEnd { process: far.process.id().bits(), context: far.context, link: far.link });
        }
    }

    /// Whether the client of a request still waits for the answer.
    pub(super) fn client_waits(&self) -> bool {
        let (Some(peer), Some(far)) = (&self.peer, self.far) else { return false };
        peer.process().is_alive()
            && peer.named_link(far.link).is_some_and(|link| link.state() == LinkState::Init)
    }

    /// Lets the program see device and addresses.
    pub(super) fn show(&self, verbs: *const IbvContext) {
        self.public.update(|id| {
            (id.verbs, id.port_num) = (verbs, u8::from(!verbs.is_null()));
            if let Some(source) = self.source {
                (id.route.src, id.route.ib.sgid) = (address::write(source), address::gid(source.ip()));
            }
            if let Some(destination) = self.destination {
                id.route.dst = address::write(destination);
                id.route.ib.dgid = address::gid(destination.ip());
            }
            id.route.ib.pkey = PKEY;
        });
    }

    fn show_with(&self, device: Option<&Device>) {
        self.show(device.map_or(std::ptr::null(), devices::context));
    }

    /// A letter to the far end.
    fn letter(&self, kind: mailbox::Kind, port: u16, offer: Offer, data: &[u8]) -> Res<Message> {
        let here = self.control();
        Ok(Message {
            kind,
            process: process::local()?.reference(),
            context: here.context,
            from: self.link,
            control: here,
            to: self.far.ok_or(Code::BAD_STATE)?.control.link,
            device: self.device.unwrap_or(0) as u32,
            port,
            offer: Offer { port: self.source.map_or(0, |source| source.port()), ..offer },
            data: data.to_vec(),
        })
    }

    /// Takes the source's port, on its device or on all; another one if it is zero.
    fn claim(&mut self) -> Outcome {
        let Some(source) = &mut self.source else { return Err(INVALID) };
        let on: Vec<u32> = match self.device {
            Some(device) => vec![device as u32],
            None => address::devices()?.map(|device| device.index as u32).collect(),
        };
        if on.is_empty() {
            return Err(Errno(libc::ENODEV));
        }
        let context = self.mailbox.view().id();
        let take = |port| -> Res<Vec<Listener>> {
            on.iter().map(|device| Listener::claim(*device, port, context)).collect()
        };
        if source.port() != 0 {
            self.ports = take(source.port())?;
            return Ok(());
        }
        for _ in EPHEMERAL {
            let port = any_port();
            if let Ok(ports) = take(port) {
                source.set_port(port);
                self.ports = ports;
                return Ok(());
            }
        }
        Err(Errno(libc::EADDRINUSE))
    }

    /// Takes an address of this side.
    fn bind(&mut self, to: SocketAddr, claims: bool) -> Outcome {
        if self.state != State::Idle {
            return Err(INVALID);
        }
        let device = address::local(to.ip())?;
        self.device = device.map(|device| device.index);
        self.source = Some(to);
        if claims {
            self.claim().inspect_err(|_| self.device = None)?;
        }
        self.state = State::Bound;
        self.show_with(device);
        Ok(())
    }

    /// Knows its own address and the other side's. ENODEV if no device of this side leads there.
    fn resolve(&mut self, to: SocketAddr, destination: &Device) -> Outcome {
        let device = match self.device {
            Some(index) => topology::get()?.devices.get(index).ok_or(INVALID)?,
            None => address::route(destination, to.ip())?,
        };
        let port = self.source.map(|source| source.port()).filter(|port| *port != 0).unwrap_or_else(any_port);
        let ip = self.source.map(|source| source.ip()).filter(|ip| !ip.is_unspecified());
        let ip = ip.or_else(|| address::ip_of(device, to.ip())).ok_or(Errno(libc::ENODEV))?;
        self.source = Some(SocketAddr::new(ip, port));
        self.destination = Some(to);
        self.device = Some(device.index);
        self.state = State::Resolved;
        self.show_with(Some(device));
        Ok(())
    }
}

/// A port that has probably not been used for long.
fn any_port() -> u16 {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Processes start at different places and walk in steps that visit every port.
    let start = std::process::id().wrapping_mul(7919);
    let step = COUNT.fetch_add(1, Relaxed).wrapping_mul(12_347);
    EPHEMERAL.start + (start.wrapping_add(step) % u32::from(EPHEMERAL.end - EPHEMERAL.start)) as u16
}

impl Cm {
    /// An identifier that the program may use.
    fn mine(&mut self, id: *mut CmId) -> Outcome<&mut Id> {
        match self.ids.get_mut(&id.addr()) {
            Some(id) if id.owned => {
                log::error!("this rdma_cm_id has been handed to DOCA, which alone may use it now");
                Err(INVALID)
            }
            Some(id) => Ok(id),
            None => {
                log::error!("{id:p} is no rdma_cm_id, or one that has been destroyed");
                Err(INVALID)
            }
        }
    }

    /// One in a certain state.
    fn in_state(&mut self, id: *mut CmId, wanted: &[State]) -> Outcome<&mut Id> {
        let id = self.mine(id)?;
        if wanted.contains(&id.state) {
            return Ok(id);
        }
        log::error!("an rdma_cm_id is {:?} where it must be one of {wanted:?}", id.state);
        Err(INVALID)
    }

    /// Tells the other side that the identifier ends, and makes it unreachable.
    pub(super) fn farewell(&mut self, key: usize) {
        if let Some(Id { state: State::Listening, channel, .. }) = self.ids.get(&key) {
            // Whoever has asked by now is answered.
            self.look(*channel);
        }
        let Some(id) = self.ids.get_mut(&key) else { return };
        let letter = match id.state {
            State::Requested => Some((mailbox::Kind::Reject, REJECT_BY_PROGRAM)),
            State::Answered | State::Accepted | State::Established => Some((mailbox::Kind::Disconnect, 0)),
            _ => None,
        };
        let letter = letter.and_then(|(kind, port)| id.letter(kind, port, Offer::default(), &[]).ok());
        let (channel, name, peer) = (id.channel, id.name(), id.peer.clone());
        id.state = State::Over;
        id.ports.clear();
        id.forget_name();
        self.names.remove(&name);
        if let (Some(peer), Some(letter)) = (peer, letter) {
            self.send(&peer, letter);
        }
        let about = |pending: &Pending| pending.id == key || pending.listener == Some(key);
        for pending in self.take_events(channel, about) {
            if pending.listener == Some(key) {
                self.farewell(pending.id);
                self.ids.remove(&pending.id);
            }
        }
    }

    /// Ends a side of a connection that is up or nearly so.
    fn hang_up(&mut self, id: *mut CmId) -> Outcome {
        let up = [State::Answered, State::Accepted, State::Established, State::Left];
        let id = self.in_state(id, &up)?;
        let (key, channel, peer, known) = (id.key(), id.channel, id.peer.clone(), id.state);
        id.state = State::Over;
        if known == State::Left {
            return Ok(());
        }
        let letter = id.letter(mailbox::Kind::Disconnect, 0, Offer::default(), &[])?;
        if let Some(peer) = peer {
            self.send(&peer, letter);
        }
        self.report(channel, Pending::plain(key, Kind::Disconnected, 0));
        Ok(())
    }
}

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
        let found = listener::find(device.index as u32, destination.port());
        let there = found.map(|found| id.meet(Far::plain(found.process, found.context, found.link)));
        let letter = id.letter(mailbox::Kind::Request, destination.port(), offer, data);
        let patience = clock::millis(topology::get()?.timeouts.cm_timeout_ms.into()) * PATIENCE;
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
