//! One stream: how far each direction is, and which control frames are due.

use crate::frame::{Frame, Identity, Reason};
use std::collections::VecDeque;
use std::time::Instant;

/// Windows that a reader must have taken before its stream can have a larger one.
const PROVEN: u64 = 8;

/// The direction from the local socket to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sending {
    /// Waits for the other relay to reach the application.
    Opening,
    /// Bytes may be sent.
    Open,
    /// The local end has closed its direction; the peer is not told yet.
    FinDue,
    /// The peer is told.
    FinSent,
    /// The peer has delivered everything, the end included.
    Delivered,
    /// The peer takes no more.
    Void,
}

/// The direction from the peer to the local socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Receiving {
    /// Bytes may come.
    Open,
    /// The peer has sent all, up to this offset.
    Ending(u64),
    /// The end was delivered to the local socket.
    Ended,
}

/// Which way the bytes of one direction of a stream take, from its first byte to its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// As messages of the control path, like all other frames.
    Control,
    /// As messages of the fast path, which know no order towards the frames of the control path.
    Fast,
}

/// Which end is gone for good, both ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gone {
    /// Nobody.
    No,
    /// The local end; the peer's is told after the FIN.
    LocalUntold,
    /// The local end, and the peer is told.
    Local,
    /// The peer's: what came before is still to be delivered.
    Peer,
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) identity: Identity,
    pub(super) opened: Instant,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    pub(super) gone: Gone,
    /// Whether incoming bytes have nowhere to go.
    pub(super) discarding: bool,
    /// The ways of both directions, once they have carried something.
    pub(super) path_out: Option<Path>,
    pub(super) path_in: Option<Path>,
    /// Bytes that were made frames.
    pub(super) sent: u64,
    /// Offset up to which the peer lets us send.
    pub(super) credit: u64,
    /// Bytes that came.
    pub(super) received: u64,
    /// Bytes of these that left the ring.
    pub(super) delivered: u64,
    /// Offset up to which the peer may send.
    pub(super) granted: u64,
    /// Bytes that it may be ahead of the local reader.
    pub(super) window: u64,
    /// What is between the last two. Memory is taken when the first byte comes.
    pub(super) ring: VecDeque<u8>,
    /// Since when there is no credit although there may be something to send.
    pub(super) stalled: Option<Instant>,
    pub(super) open_due: bool,
    pub(super) credit_due: bool,
    /// The final credit, which says that the end was delivered.
    pub(super) delivery_due: bool,
    pub(super) reset_due: Option<(Reason, String)>,
    /// Whether it waits in the list of those that have control frames due.
    pub(super) listed: bool,
}

impl Stream {
    pub(super) fn new(identity: Identity, window: u32, now: Instant) -> Self {
        Stream {
            identity,
            opened: now,
            sending: Sending::Opening,
            receiving: Receiving::Open,
            gone: Gone::No,
            discarding: false,
            path_out: None,
            path_in: None,
            sent: 0,
            credit: 0,
            received: 0,
            delivered: 0,
            granted: u64::from(window),
            window: u64::from(window),
            ring: VecDeque::new(),
            stalled: None,
            open_due: false,
            credit_due: false,
            delivery_due: false,
            reset_due: None,
            listed: false,
        }
    }

    /// What the admin socket tells.
    pub(super) fn status(&self, id: u32, now: Instant) -> StreamStatus {
        let millis = |since: Instant| now.saturating_duration_since(since).as_millis();
        StreamStatus {
            id,
            pid: self.identity.pid,
            uid: self.identity.uid,
            age_ms: millis(self.opened),
            sending: self.sending,
            receiving: self.receiving,
            bytes_sent: self.sent,
            bytes_received: self.received,
            path_out: self.path_out,
            path_in: self.path_in,
            credit: self.room(),
            peer_credit: self.granted - self.received,
            ring: self.ring.len(),
            stalled_ms: self.stalled.map(millis),
        }
    }

    /// Bytes that may be sent now.
    pub(super) fn room(&self) -> u64 {
        if self.sending == Sending::Open { self.credit - self.sent } else { 0 }
    }

    /// Counts bytes that left the ring, and grants new ones when half the window is free.
    pub(super) fn account(&mut self, bytes: u64) {
        self.delivered += bytes;
        let open = self.receiving == Receiving::Open;
        if open && self.delivered + self.window - self.granted >= self.window.div_ceil(2) {
            self.credit_due = true;
        }
    }

    /// Whether it is the window that holds this stream up: its reader has taken all that the peer may send, and has done so
    /// for longer than the kernel's buffers can explain.
    pub(super) fn is_held_up(&self) -> bool {
        let took_all = self.received == self.granted && self.delivered == self.received;
        took_all && self.receiving == Receiving::Open && self.delivered >= PROVEN * self.window
    }

    /// Whether all that the peer has sent left the ring, and the local end has not been told so yet.
    pub(super) fn ends_here(&self) -> bool {
        self.receiving == Receiving::Ending(self.delivered)
    }

    /// Whether both directions are through and each side knows.
    pub(super) fn complete(&self) -> bool {
        self.sending == Sending::Delivered && self.receiving == Receiving::Ended && !self.delivery_due
    }

    /// Whether a control frame is due.
    pub(super) fn has_due(&self) -> bool {
        self.open_due
            || self.credit_due
            || self.delivery_due
            || self.sending == Sending::FinDue
            || self.reset_due.is_some()
            || self.gone == Gone::LocalUntold
    }

    /// The next control frame that is due, which from then on counts as sent.
    pub(super) fn take_due(&mut self, id: u32, host: bool) -> Option<Due> {
        if self.open_due {
            self.open_due = false;
            return Some(if host {
                Due::Frame(Frame::Open { stream: id, credit: self.granted, identity: self.identity })
            } else {
                Due::Frame(Frame::OpenAck { stream: id, credit: self.granted })
            });
        }
        if let Some((reason, text)) = self.reset_due.take() {
            return Some(Due::Over(reason, text));
        }
        if self.delivery_due {
            (self.delivery_due, self.credit_due) = (false, false);
            return Some(Due::Frame(Frame::Credit { stream: id, upto: self.granted, delivered: true }));
        }
        if self.credit_due {
            self.credit_due = false;
            self.granted = self.delivered + self.window;
            return Some(Due::Frame(Frame::Credit { stream: id, upto: self.granted, delivered: false }));
        }
        if self.sending == Sending::FinDue {
            self.sending = Sending::FinSent;
            return Some(Due::Frame(Frame::Fin { stream: id, offset: self.sent }));
        }
        if self.gone == Gone::LocalUntold {
            self.gone = Gone::Local;
            let reason = Reason::LocalClosed;
            return Some(Due::Frame(Frame::Reset { stream: id, reason, after_fin: true, text: "" }));
        }
        None
    }
}

/// A stream, as [`streams`](super::Mux::streams) shows it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct StreamStatus {
    /// Stream.
    pub id: u32,
    /// The local client; on the DPU, the client on the host.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// How long it has been open, in milliseconds.
    pub age_ms: u128,
    /// Towards the peer.
    pub sending: Sending,
    /// From the peer.
    pub receiving: Receiving,
    /// Bytes read from the local socket.
    pub bytes_sent: u64,
    /// Bytes received from the peer.
    pub bytes_received: u64,
    /// On which path the former went, if any did.
    pub path_out: Option<Path>,
    /// On which path the latter came.
    pub path_in: Option<Path>,
    /// Bytes that may be sent now.
    pub credit: u64,
    /// Bytes that the peer may send now.
    pub peer_credit: u64,
    /// Bytes that wait for the local socket.
    pub ring: usize,
    /// How long it has been without credit, in milliseconds.
    pub stalled_ms: Option<u128>,
}

/// A control frame of a stream.
#[derive(Debug)]
pub(super) enum Due {
    Frame(Frame<'static>),
    /// The last frame: a reset.
    Over(Reason, String),
}
