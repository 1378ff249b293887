//! Identifiers: from `rdma_create_id` to `rdma_destroy_id`. `calls` holds the functions, this file what they work on.
//!
//! ```text
//! client   Idle -> Resolved -> Routed -> Connecting -> Answered -> Established -> Left, Over
//! server   Idle -> Bound -> Listening
//!          Requested -> Accepted -> Established -> Left, Over
//! ```

mod calls;

pub use calls::*;

use super::channel::Mailbox;
use super::event::{Kind, Pending};
use super::layout::{CmId, EventChannel, IbvContext};
use super::{Cm, Errno, INVALID, Outcome, Public, address, devices};
use crate::code::{Code, Res};
use crate::fabric::context::{ContextView, FarEnd, LinkId, LinkState};
use crate::fabric::listener::Listener;
use crate::fabric::mailbox::{self, Control, Message, Offer, REJECT_BY_PROGRAM};
use crate::fabric::network::Address;
use crate::fabric::process;
use crate::log;
use crate::rdma::Far;
use crate::topology::{self, Device};
use std::ffi::c_void;
use std::net::SocketAddr;
use std::sync::Arc;

const QPT_RC: u32 = 2;
/// The default partition, the same in both byte orders.
const PKEY: u16 = 0xffff;
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
            on.iter().map(|device| Listener::claim(Address::Port(*device, port), context)).collect()
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
        let key = self.in_state(id, &up)?.key();
        self.end(key);
        Ok(())
    }

    /// Ends a side of a connection, whoever's it is.
    pub(super) fn end(&mut self, key: usize) {
        let Some(id) = self.ids.get_mut(&key) else { return };
        let known = std::mem::replace(&mut id.state, State::Over);
        if !matches!(known, State::Answered | State::Accepted | State::Established) {
            return;
        }
        let (channel, peer) = (id.channel, id.peer.clone());
        let letter = id.letter(mailbox::Kind::Disconnect, 0, Offer::default(), &[]);
        if let (Some(peer), Ok(letter)) = (peer, letter) {
            self.send(&peer, letter);
        }
        self.report(channel, Pending::plain(key, Kind::Disconnected, 0));
    }
}
