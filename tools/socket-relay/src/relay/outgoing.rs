//! Frames on their way out: control first, then the bytes of each client in turn.

use super::connection::{CHUNK, Taken};
use super::{Relay, SHARE};
use crate::frame::{Features, HEADER};
use crate::local;
use crate::mux::{Path, Role};
use crate::transport::{FastState, Lane, Refused, Space, Transport};
use std::time::Instant;

/// Frames that the link did not take yet.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// A control frame.
    control: Vec<u8>,
    /// Whether it waits.
    pub(super) held: bool,
    /// Bytes of one client for the control path, and how far they are sent.
    chunk: Box<[u8]>,
    stream: u32,
    from: usize,
    to: usize,
    /// Bytes that fit into a frame of it.
    payload: usize,
    /// The header of the next frame of these, if it is made.
    header: Option<[u8; HEADER]>,
    /// Bytes of a message of the fast path that has not left yet.
    fast: usize,
}

impl Outgoing {
    pub(super) fn new() -> Self {
        Outgoing {
            control: Vec::new(),
            held: false,
            chunk: vec![0; CHUNK].into_boxed_slice(),
            stream: 0,
            from: 0,
            to: 0,
            payload: 0,
            header: None,
            fast: 0,
        }
    }

    /// Forgets all: there is no session any more.
    pub(super) fn clear(&mut self) {
        self.held = false;
        self.from = self.to;
        self.header = None;
        self.fast = 0;
    }
}

fn lane(path: Path) -> Lane {
    match path {
        Path::Control => Lane::Data,
        Path::Fast => Lane::Fast,
    }
}

impl<T: Transport> Relay<T> {
    /// Makes frames: control first, then each client in turn.
    pub(super) fn turn_frames(&mut self, now: Instant) -> bool {
        let mut sent = self.turn_control();
        self.count_fast();
        for _ in 0..SHARE {
            if self.outgoing.from < self.outgoing.to {
                if !self.send_chunk(now) {
                    return sent;
                }
                sent = true;
                continue;
            }
            match self.read_next(now) {
                Some(true) => sent = true,
                Some(false) => {}
                None => break,
            }
        }
        // What the last clients were found to have ended.
        sent |= self.turn_control();
        sent |= self.turn_events(now);
        sent || self.can_read()
    }

    pub(super) fn turn_control(&mut self) -> bool {
        let Some(mux) = &mut self.mux else { return false };
        let mut sent = false;
        while let Some(note) = self.transport.next_fast_note() {
            mux.tell(note);
        }
        while self.outgoing.held || mux.next_control(&mut self.outgoing.control) {
            match self.transport.send(Lane::Control, &self.outgoing.control, &[]) {
                Ok(()) => {
                    self.outgoing.held = false;
                    self.counters.frames_out += 1;
                    sent = true;
                }
                Err(refused) => {
                    self.outgoing.held = refused == Refused::Busy;
                    self.counters.control_busy += 1;
                    break;
                }
            }
        }
        sent
    }

    /// Whether the next client in turn could be read from now.
    fn can_read(&self) -> bool {
        let (Some(mux), Some(id)) = (&self.mux, self.connections.first_sender()) else { return false };
        self.transport.room(lane(mux.path(id, self.preferred_path()))) > 0
    }

    /// Streams begin with the fast path where there is one, and stay with the path on which they began.
    fn preferred_path(&self) -> Path {
        match self.transport.fast().outgoing {
            FastState::On => Path::Fast,
            FastState::Off | FastState::Starting => Path::Control,
        }
    }

    /// Reads from the next client. `None`: nobody's turn, or no room on the link.
    fn read_next(&mut self, now: Instant) -> Option<bool> {
        let preferred = self.preferred_path();
        let mux = self.mux.as_mut()?;
        let max_frame = mux.agreed()?.limits.max_frame as usize;
        let id = self.connections.first_sender()?;
        let path = mux.path(id, preferred);
        let frames = self.transport.room(lane(path));
        if frames == 0 {
            self.counters.link_busy += 1;
            return None;
        }
        let id = self.connections.next_sender()?;
        let room = mux.room(id);
        if room == 0 {
            // More credit brings it back.
            return Some(false);
        }
        let taken = match path {
            Path::Control => {
                let out = &mut self.outgoing;
                out.payload = max_frame - HEADER;
                let want = room.min(frames.saturating_mul(out.payload)).min(CHUNK);
                let taken = self.connections.read(id, |socket| local::read(socket, &mut out.chunk[..want]));
                if let Taken::Bytes(bytes) = taken {
                    (out.stream, out.from, out.to, out.header) = (id, 0, bytes, None);
                }
                taken
            }
            Path::Fast => self.send_fast(id, room, now),
        };
        if let Taken::Bytes(bytes) = taken {
            self.counters.bytes.local_in += bytes as u64;
        }
        match taken {
            Taken::Bytes(_) => Some(true),
            Taken::Nothing => Some(false),
            Taken::End | Taken::Gone => {
                self.local_end(id, taken == Taken::Gone);
                Some(true)
            }
        }
    }

    /// Moves bytes of a client straight into a message of the fast path.
    fn send_fast(&mut self, id: u32, room: usize, now: Instant) -> Taken {
        let Some(mux) = &mut self.mux else { return Taken::Nothing };
        let Some(header) = mux.header(id) else { return Taken::Nothing };
        let most = room.min(self.transport.longest_fast() - HEADER);
        let mut taken = Taken::Nothing;
        let connections = &mut self.connections;
        let mut fill = |space: &mut dyn Space| {
            taken = connections.read(id, |socket| space.read_from(socket, most));
            if let Taken::Bytes(bytes) = taken { bytes } else { 0 }
        };
        if self.transport.send_fast(&header, &mut fill).is_err() {
            self.counters.link_busy += 1;
            self.connections.wants_to_send(id);
        } else if let Taken::Bytes(bytes) = taken {
            mux.sent(id, bytes, Path::Fast, now);
            self.counters.credit_stalls += u64::from(mux.room(id) == 0);
            self.outgoing.fast = bytes;
            self.count_fast();
        }
        taken
    }

    /// Counts the last message of the fast path when it has left.
    fn count_fast(&mut self) {
        if self.outgoing.fast > 0 && !self.transport.holds_fast() {
            let bytes = std::mem::take(&mut self.outgoing.fast) as u64;
            self.counters.frames_out += 1;
            self.counters.bytes.link_out += bytes;
            self.counters.fast_frames_out += 1;
            self.counters.fast_bytes_out += bytes;
        }
    }

    /// A local end has closed its direction, or both.
    fn local_end(&mut self, id: u32, gone: bool) {
        let Some(mux) = &mut self.mux else { return };
        let half = mux.agreed().is_some_and(|a| a.limits.features.has(Features::HALF_CLOSE));
        match (half, self.role) {
            (true, _) if gone => mux.local_gone(id),
            (true, _) => mux.finish(id),
            // As NVIDIA's relay: the host's end closes both directions, the DPU's closes none.
            (false, Role::Host) => {
                mux.local_gone(id);
                self.connections.remove(id);
            }
            (false, Role::Dpu) => mux.discard(id),
        }
    }

    /// Sends the frames of the bytes that were read. `false`: the link took none.
    fn send_chunk(&mut self, now: Instant) -> bool {
        let Some(mux) = &mut self.mux else { return false };
        let out = &mut self.outgoing;
        let mut sent = false;
        while out.from < out.to {
            let part = (out.to - out.from).min(out.payload);
            let made = out.header.take().or_else(|| mux.sent(out.stream, part, Path::Control, now));
            let Some(header) = made else {
                // The stream is no more.
                out.from = out.to;
                return true;
            };
            match self.transport.send(Lane::Data, &header, &out.chunk[out.from..out.from + part]) {
                Ok(()) => {
                    out.from += part;
                    self.counters.frames_out += 1;
                    self.counters.bytes.link_out += part as u64;
                    sent = true;
                }
                Err(refused) => {
                    if refused == Refused::Busy {
                        out.header = Some(header);
                    } else {
                        out.from = out.to;
                    }
                    self.counters.link_busy += 1;
                    return sent;
                }
            }
        }
        if mux.room(out.stream) == 0 {
            self.counters.credit_stalls += 1;
        }
        sent
    }
}
