//! What a relay says about itself.

use super::link::State;
use super::{Counters, Relay};
use crate::mux::{Mux, Role};
use crate::transport::{FastStates, Transport};
use serde::Serialize;
use std::time::Instant;

/// The answer to `status`.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// This process.
    pub pid: u32,
    /// Which end.
    pub role: Role,
    /// Versions of this side.
    pub version: String,
    /// Device and service.
    pub link: String,
    /// The local socket.
    pub socket: String,
    /// `idle`, `pausing`, `connecting`, `greeting`, `up`.
    pub session: &'static str,
    /// Host without a session: what is known of the other side, `silent`, `another service`, `not taken`,
    /// `another host`, `ended` or `unknown`.
    pub other_side: &'static str,
    /// DPU: whether this relay is the one that tells hosts which services there are.
    pub beacon: bool,
    /// How long it has been up, in milliseconds.
    pub session_ms: Option<u128>,
    /// Versions of the other side.
    pub peer: Option<String>,
    /// This start, in hexadecimal.
    pub instance: String,
    /// The other side's start.
    pub peer_instance: Option<String>,
    /// Bytes of the longest frame.
    pub max_frame: Option<u32>,
    /// Bytes of a window.
    pub window: Option<u32>,
    /// Streams at a time.
    pub max_streams: Option<u32>,
    /// Both directions of the fast path: `off`, `starting`, `on`. What is off or not on yet goes over the control path.
    pub fast_path: FastStates,
    /// Host: whether clients can connect.
    pub listening: bool,
    /// Host: whether more than one client is let in.
    pub admitted: bool,
    /// Streams that are not through.
    pub streams: usize,
    /// Whether a drain was asked for.
    pub draining: bool,
    /// Host: whether the application could be reached when it was tried last.
    pub application: &'static str,
    /// The last failure, with its class.
    pub last_error: Option<String>,
    /// Milliseconds since the start.
    pub uptime_ms: u128,
}

/// The answer to `metrics`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Metrics<'a> {
    #[serde(flatten)]
    counters: &'a Counters,
    active: usize,
    ring_bytes: usize,
    ring_memory: usize,
}

impl<T: Transport> Relay<T> {
    pub(super) fn status(&self, now: Instant) -> Status {
        let agreed = self.mux.as_ref().and_then(Mux::agreed);
        let (session, since) = match self.link.state {
            State::Idle => ("idle", None),
            State::Pausing(_) => ("pausing", None),
            State::Connecting => ("connecting", None),
            State::Greeting => ("greeting", None),
            State::Up(since) => ("up", Some(now.saturating_duration_since(since).as_millis())),
        };
        let limits = agreed.map(|agreed| agreed.limits);
        Status {
            pid: std::process::id(),
            role: self.role,
            version: self.versions(),
            link: self.transport.describe(),
            socket: self.settings.socket.display().to_string(),
            session,
            other_side: self.link.absence.text(),
            beacon: self.transport.is_beacon(),
            session_ms: since,
            peer: agreed.map(|agreed| agreed.text.clone()),
            instance: hex(&self.instance),
            peer_instance: self.link.peer_instance.as_ref().map(|bytes| hex(bytes)),
            max_frame: limits.map(|limits| limits.max_frame),
            window: limits.map(|limits| limits.window),
            max_streams: limits.map(|limits| limits.max_streams),
            fast_path: self.transport.fast(),
            listening: self.front.is_listening(),
            admitted: self.front.admitted,
            streams: self.mux.as_ref().map_or(0, Mux::len),
            draining: self.ending.is_some(),
            application: if self.link.application_fails { "fails" } else { "not seen to fail" },
            last_error: self
                .link
                .last_error
                .clone()
                .or_else(|| self.front.bind_error.as_ref().map(ToString::to_string)),
            uptime_ms: now.saturating_duration_since(self.began).as_millis(),
        }
    }

    pub(super) fn metrics(&self) -> Metrics<'_> {
        let (ring_bytes, ring_memory) = self.mux.as_ref().map_or((0, 0), Mux::ring_bytes);
        Metrics { counters: &self.counters, active: self.connections.len(), ring_bytes, ring_memory }
    }

    /// Status, metrics and streams for the log.
    pub(super) fn report_text(&self, now: Instant) -> String {
        let streams = self.mux.as_ref().map_or_else(Vec::new, |mux| mux.streams(now));
        let mut text = format!("status {}\nmetrics {}", json(&self.status(now)), json(&self.metrics()));
        for stream in streams {
            text += "\nstream ";
            text += &json(&stream);
        }
        text
    }
}

/// One line of JSON.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
