//! What carries the frames between two relays.

use crate::beacon::Services;
use crate::fault::Fault;
use crate::frame::{FastNote, Features};
use crate::mux::Role;
use nix::errno::Errno;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Which messages must not wait for which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Few and small; some room is kept for them.
    Control,
    /// Bytes of streams.
    Data,
    /// Bytes of streams over the fast path: no order is kept towards the messages of the other two.
    Fast,
}

/// How far one direction of the fast path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FastState {
    /// There is none, or it was given up.
    #[default]
    Off,
    /// It is being set up.
    Starting,
    /// It carries bytes.
    On,
}

impl FastState {
    /// A word for people.
    pub const fn text(self) -> &'static str {
        match self {
            FastState::Off => "off",
            FastState::Starting => "not in time",
            FastState::On => "on",
        }
    }
}

/// Both directions of the fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct FastStates {
    /// To the peer.
    pub outgoing: FastState,
    /// From the peer.
    pub incoming: FastState,
}

/// What is known of why the other side was not reached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Absence {
    /// Nothing: it was not asked for, or the answer was lost.
    #[default]
    Unknown,
    /// No relay answers there.
    Nobody,
    /// A relay answers there; it knows of these services, and not of the wanted one.
    NotServed(Services),
    /// A relay answers there and knows of the service, which did not take the connection.
    NotTaken,
    /// A Comch server took the connection and ended it before it greeted; nothing more is known.
    Ended,
    /// As [`Absence::NotTaken`], but the service took the connection and ended it as well: it has another host relay.
    Taken,
}

impl Absence {
    /// The word for [`Absence::Nobody`].
    pub const NOBODY: &'static str = "silent";
    /// The word for [`Absence::NotServed`].
    pub const NOT_SERVED: &'static str = "another service";

    /// The word for [`Absence::Taken`].
    pub const TAKEN: &'static str = "another host";

    /// A word for programs.
    pub const fn text(&self) -> &'static str {
        match self {
            Absence::Unknown => "unknown",
            Absence::Nobody => Absence::NOBODY,
            Absence::NotServed(_) => Absence::NOT_SERVED,
            Absence::NotTaken => "not taken",
            Absence::Ended => "ended",
            Absence::Taken => Absence::TAKEN,
        }
    }
}

/// Why a link is not there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Down {
    /// What happened.
    pub why: String,
    /// For one that never was: what is known of the other side.
    pub absence: Absence,
}

impl From<&str> for Down {
    fn from(why: &str) -> Down {
        Down { why: why.to_owned(), absence: Absence::Unknown }
    }
}

/// A message in memory that the peer can reach.
pub trait Bulk {
    /// Its bytes.
    fn len(&self) -> usize;

    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes out, from an offset on; how many.
    fn read(&self, offset: usize, to: &mut [u8]) -> usize;

    /// Hands bytes from an offset on to a local socket, without a copy between; how many it took.
    ///
    /// # Errors
    /// Those of `send`.
    fn send_to(&self, socket: &UnixStream, offset: usize) -> Result<usize, Errno>;
}

/// Room for a message in memory that the peer can reach.
pub trait Space {
    /// Takes at most so many bytes from a local socket, without a copy between; how many came.
    ///
    /// # Errors
    /// Those of `read`.
    fn read_from(&mut self, socket: &UnixStream, most: usize) -> Result<usize, Errno>;
}

/// What happened to the link.
pub enum LinkEvent<'a> {
    /// The peer is there; messages can be sent.
    Up,
    /// A message came. It is gone when the closure returns.
    Message(&'a [u8]),
    /// One came over the fast path. It is gone when the closure returns, too.
    Bulk(&'a dyn Bulk),
    /// The peer is gone, or could not be reached, and why.
    Down(Down),
    /// DPU: another client has connected while there is a session. Answer with [`Transport::settle`].
    Newcomer,
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No room: the same message again after some progress.
    Busy,
    /// The link is down, or about to be; the event says why.
    Down,
}

/// Numbers of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkLimits {
    /// Bytes of the longest message.
    pub max_message: u32,
    /// Messages that are kept until this side looks at them.
    pub recv_queue: u32,
    /// What else it can.
    pub features: Features,
}

/// A pipe of messages to the other relay: boundaries and order are kept, and a full pipe says so.
///
/// A host connects, a DPU listens from the start and takes one host at a time. All of it runs on one thread, inside
/// [`Transport::progress`].
pub trait Transport {
    /// Which end this is.
    fn role(&self) -> Role;

    /// What messages may be like.
    fn limits(&self) -> LinkLimits;

    /// Host: begins to connect; [`LinkEvent::Up`] or [`LinkEvent::Down`] follows. DPU: begins to listen.
    ///
    /// # Errors
    /// What will not go away by itself.
    fn connect(&mut self) -> Result<(), Fault>;

    /// Lets things happen; tells at most about `most` messages, and after [`LinkEvent::Up`] or [`LinkEvent::Down`]
    /// nothing more until the next call. Whether anything happened.
    fn progress(&mut self, most: usize, sink: &mut dyn FnMut(LinkEvent<'_>)) -> bool;

    /// Sends one message of another lane than the fast one, made of two parts, no longer together than [`LinkLimits`] say.
    ///
    /// # Errors
    /// It was not taken.
    fn send(&mut self, lane: Lane, header: &[u8], payload: &[u8]) -> Result<(), Refused>;

    /// Sends one message of the fast lane: a header, and what the closure puts behind it, which says how many bytes those
    /// are. Without any nothing is sent.
    ///
    /// # Errors
    /// The closure was not called, or the link is down.
    fn send_fast(
        &mut self,
        _header: &[u8],
        _fill: &mut dyn FnMut(&mut dyn Space) -> usize,
    ) -> Result<usize, Refused> {
        Err(Refused::Busy)
    }

    /// Whether the last one of [`Transport::send_fast`] has not left this side yet; there is no room for another then.
    fn holds_fast(&self) -> bool {
        false
    }

    /// How many messages of a lane would be taken now.
    fn room(&self, lane: Lane) -> usize;

    /// Bytes of the longest message of the fast lane.
    fn longest_fast(&self) -> usize {
        0
    }

    /// Begins to set up the fast path, if [`LinkLimits::features`] offers it and both sides have agreed.
    fn open_fast(&mut self) {}

    /// How far it is.
    fn fast(&self) -> FastStates {
        FastStates::default()
    }

    /// What the other side is to be told of it next, in a message of the control lane.
    fn next_fast_note(&mut self) -> Option<FastNote> {
        None
    }

    /// What the other side has told of it.
    ///
    /// # Errors
    /// What cannot be so.
    fn fast_note(&mut self, note: FastNote) -> Result<(), String> {
        Err(format!("{} without a fast path", note.text()))
    }

    /// How many messages the peer keeps: no more than three quarters of these may be on their way.
    fn set_peer_queue(&mut self, messages: u32);

    /// DPU: the newcomer takes the place of the old peer, or is sent away.
    fn settle(&mut self, replace: bool);

    /// Whether the layer below still believes in the peer.
    fn alive(&mut self) -> bool;

    /// Begins to end the link; [`LinkEvent::Down`] follows where it was up. A DPU still listens.
    fn disconnect(&mut self);

    /// Ends it for good, after what was sent is through, in bounded time.
    ///
    /// # Errors
    /// It did not end.
    fn close(&mut self) -> Result<(), Fault>;

    /// Readable when [`Transport::progress`] has something to do, after [`Transport::arm`].
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Prepares for sleep: how long at most, zero where there is something to do already.
    fn arm(&mut self) -> Duration;

    /// Device and service, for status and logs.
    fn describe(&self) -> String;

    /// Whether this side tells hosts which services there are.
    fn is_beacon(&self) -> bool {
        false
    }
}
