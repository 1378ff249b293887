//! What a relay counts.

use crate::frame::{Bytes, Reason};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Since the start of the relay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Clients that were accepted, or on the DPU the connections made to the application.
    pub clients: u64,
    /// Most of them at a time.
    pub peak: usize,
    /// Clients that were turned away.
    pub refused: u64,
    /// Bytes by where they came from or went.
    pub bytes: Bytes,
    /// Frames to the other relay.
    pub frames_out: u64,
    /// Frames from it.
    pub frames_in: u64,
    /// Bytes of streams to the other relay that went over the fast path.
    pub fast_bytes_out: u64,
    /// Bytes of streams from it that came over the fast path.
    pub fast_bytes_in: u64,
    /// Frames to it over the fast path.
    pub fast_frames_out: u64,
    /// Frames from it over the fast path.
    pub fast_frames_in: u64,
    /// Streams that ended before their time, by reason.
    pub resets: BTreeMap<&'static str, u64>,
    /// How often a stream had more to send than credit.
    pub credit_stalls: u64,
    /// How often the link took no data.
    pub link_busy: u64,
    /// How often the link took no control frame.
    pub control_busy: u64,
    /// Sessions that came up.
    pub sessions: u64,
    /// Sessions that were lost.
    pub sessions_lost: u64,
    /// Attempts to connect to the other relay.
    pub attempts: u64,
    /// Sessions that were dropped because the peer broke the protocol.
    pub protocol_errors: u64,
    /// Round trips of heartbeats.
    pub round_trip: RoundTrip,
    /// Turns of the loop.
    pub turns: u64,
    /// Times the loop slept.
    pub sleeps: u64,
}

/// Times of heartbeats, in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RoundTrip {
    /// How many.
    pub count: u64,
    /// Shortest.
    pub min_us: u64,
    /// All together.
    pub sum_us: u64,
    /// Longest.
    pub max_us: u64,
}

impl RoundTrip {
    pub(super) fn add(&mut self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.min_us = if self.count == 0 { us } else { self.min_us.min(us) };
        self.max_us = self.max_us.max(us);
        self.sum_us = self.sum_us.saturating_add(us);
        self.count += 1;
    }
}

impl Counters {
    pub(super) fn reset(&mut self, reason: Reason) {
        *self.resets.entry(reason.text()).or_default() += 1;
    }
}
