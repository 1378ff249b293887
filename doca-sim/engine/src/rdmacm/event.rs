//! Events: queued, given to the program, given back.

use super::layout::{CmEvent, CmId, ConnParam, EventChannel};
use super::{ACKED, Cm, Errno, INVALID, Outcome, Public, cm};
use crate::fabric::mailbox::Offer;
use crate::log;
use std::ptr;

/// `enum rdma_cm_event_type`: those that happen here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    AddrResolved = 0,
    AddrError = 1,
    RouteResolved = 2,
    ConnectRequest = 4,
    ConnectResponse = 5,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
}

impl Kind {
    /// Bytes of private data that come with an event, zeros included, as in the messages of InfiniBand.
    fn private_data(self) -> usize {
        match self {
            Kind::ConnectRequest => REQUEST_DATA,
            Kind::ConnectResponse => REPLY_DATA,
            Kind::Rejected => REJECT_DATA,
            _ => 0,
        }
    }
}

/// Private data in a request of the TCP port space.
pub(super) const REQUEST_DATA: usize = 56;
/// Private data in a reply.
pub(super) const REPLY_DATA: usize = 196;
/// Private data in a rejection.
pub(super) const REJECT_DATA: usize = 148;

/// An event that the program has not been given yet.
#[derive(Debug)]
pub(super) struct Pending {
    /// Whose.
    pub(super) id: usize,
    /// Of requests: who listens.
    pub(super) listener: Option<usize>,
    /// What.
    pub(super) kind: Kind,
    /// Zero, a negative errno, or the reason of a rejection.
    pub(super) status: i32,
    /// What the other side asks for or grants.
    pub(super) offer: Offer,
    /// What it says besides.
    pub(super) data: Vec<u8>,
}

impl Pending {
    /// An event that says it all by its kind.
    pub(super) fn plain(id: usize, kind: Kind, status: i32) -> Pending {
        Pending { id, listener: None, kind, status, offer: Offer::default(), data: Vec::new() }
    }
}

/// An event in the program's hands.
#[derive(Debug)]
pub(super) struct Reported {
    _memory: Public<Whole>,
    /// Who cannot be destroyed before the event comes back: the listener of requests, else whose event it is.
    holds: usize,
}

/// The event and the private data that it points to.
#[repr(C)]
#[derive(Debug)]
struct Whole {
    event: CmEvent,
    data: [u8; REPLY_DATA],
}

impl std::fmt::Debug for CmEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {} of {:p}", self.event, self.id)
    }
}

/// What the program got.
pub struct Event {
    /// The structure.
    pub pointer: *mut CmEvent,
    /// `enum rdma_cm_event_type`
    pub kind: u32,
    /// Zero, a negative errno, or the reason of a rejection.
    pub status: i32,
    /// Whose.
    pub id: *mut CmId,
}

impl Cm {
    /// Makes a queued event one of the program's.
    fn hand_out(&mut self, pending: Pending) -> Event {
        let pointer = |key| self.ids.get(&key).map_or(ptr::null_mut(), |id| id.pointer());
        let offer = pending.offer;
        let len = pending.kind.private_data();
        let mut data = [0; REPLY_DATA];
        for (to, from) in data[..len].iter_mut().zip(&pending.data) {
            *to = *from;
        }
        let event = CmEvent {
            id: pointer(pending.id),
            listen_id: pending.listener.map_or(ptr::null_mut(), pointer),
            event: pending.kind as u32,
            status: pending.status,
            conn: ConnParam {
                private_data: ptr::null(),
                private_data_len: len as u8,
                // What the other side has outstanding is what this side must answer, and the other way round.
                responder_resources: offer.initiator_depth,
                initiator_depth: offer.responder_resources,
                flow_control: offer.flow_control,
                retry_count: offer.retry_count,
                rnr_retry_count: offer.rnr_retry_count,
                srq: offer.srq,
                qp_num: offer.qp_num,
            },
            ud: [0; 4],
        };
        let (kind, status, id) = (event.event, event.status, event.id);
        let memory = Public::new(Whole { event, data });
        memory.update(|whole| {
            if len > 0 {
                whole.event.conn.private_data = whole.data.as_ptr();
            }
        });
        let pointer = memory.pointer().cast::<CmEvent>();
        let holds = pending.listener.unwrap_or(pending.id);
        if let Some(id) = self.ids.get_mut(&holds) {
            id.unacked += 1;
        }
        self.reported.insert(pointer.addr(), Reported { _memory: memory, holds });
        Event { pointer, kind, status, id }
    }
}

/// `rdma_get_cm_event`: waits, unless the channel's descriptor is non-blocking (EAGAIN).
pub fn next(channel: *mut EventChannel) -> Outcome<Event> {
    loop {
        let fd = {
            let mut cm = cm();
            cm.look(channel.addr());
            if let Some(pending) = cm.pop(channel.addr()) {
                return Ok(cm.hand_out(pending));
            }
            cm.channels.get(&channel.addr()).ok_or(INVALID)?.fd()
        };
        // SAFETY: plain system call on the channel's descriptor.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if flags >= 0 && flags & libc::O_NONBLOCK != 0 {
            return Err(Errno(libc::EAGAIN));
        }
        let mut waited = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid `pollfd`.
        if unsafe { libc::poll(&mut waited, 1, -1) } < 0 {
            return Err(Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)));
        }
        if waited.revents & libc::POLLNVAL != 0 {
            return Err(Errno(libc::EBADF));
        }
    }
}

impl Cm {
    /// Takes an event back from the program.
    pub(super) fn give_back(&mut self, event: *mut CmEvent) -> Outcome {
        let Some(reported) = self.reported.remove(&event.addr()) else {
            log::error!("rdma_ack_cm_event: no such event, or one that was acknowledged before");
            return Err(INVALID);
        };
        if let Some(id) = self.ids.get_mut(&reported.holds) {
            id.unacked -= 1;
            if id.unacked == 0 && id.doomed {
                self.ids.remove(&reported.holds);
            }
        }
        ACKED.notify_all();
        Ok(())
    }
}

/// `rdma_ack_cm_event`
pub fn acknowledge(event: *mut CmEvent) -> Outcome {
    cm().give_back(event)
}
