//! What a session tells its owner.

use crate::frame::{Bytes, FastNote, Identity, Malformed, ProbeKind, Reason};
use std::fmt;
use std::time::Duration;

/// What the owner has to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Both sides agree; streams can be opened.
    Up,
    /// DPU: a client has connected; answer with [`accept`](super::Mux::accept) or [`reset`](super::Mux::reset).
    Opened(u32, Identity),
    /// Host: the application has accepted.
    Accepted(u32),
    /// Bytes, or the end of them, are there to be delivered.
    Incoming(u32),
    /// The stream may send more.
    Credit(u32),
    /// The peer takes no more bytes of this stream; what it sent before is still to be delivered.
    PeerGone(u32),
    /// The stream is no more. `None`: all bytes were delivered both ways.
    Closed(u32, Option<(Reason, String)>),
    /// The peer serves no new streams.
    GoAway,
    /// Answer with [`answer_probe`](super::Mux::answer_probe).
    Probe(u64, ProbeKind),
    /// The answer to [`probe`](super::Mux::probe).
    ProbeResult {
        /// Of the probe.
        nonce: u64,
        /// Zero, or why the application could not be reached.
        errno: u32,
        /// What the peer has moved so far.
        bytes: Bytes,
    },
    /// What the peer tells of its fast path.
    Fast(FastNote),
    /// A heartbeat came back after this time.
    RoundTrip(Duration),
}

/// Why the session cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Broken {
    /// A message is not a frame.
    Malformed(Malformed),
    /// A frame says what it may not say here.
    Protocol(String),
    /// The peer is of another kind or version.
    Partner(String),
    /// The fast path is needed and does not work.
    Fast(String),
    /// Nothing came for this long.
    Silent(Duration),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Malformed(what) => write!(f, "malformed frame: {what}"),
            Broken::Protocol(what) => write!(f, "protocol error: {what}"),
            Broken::Partner(what) => f.write_str(what),
            Broken::Fast(what) => write!(f, "the fast path: {what}"),
            Broken::Silent(time) => {
                write!(f, "nothing came from the other relay for {} ms", time.as_millis())
            }
        }
    }
}

impl std::error::Error for Broken {}
