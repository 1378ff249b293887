//! Many streams over one link: who may send how much, what ended, what is due. No I/O and no clock of its own.
//!
//! The owner hands in every message that came ([`Mux::handle`]), takes control frames to send
//! ([`Mux::next_control`]), asks how much a stream may send ([`Mux::room`]) and drains what came for it
//! ([`Mux::incoming`], [`Mux::delivered`]). What happened meanwhile comes as [`Event`]s. Memory is bounded by
//! streams times window, and what is to spare; control frames are flags of a stream, never a queue that grows.

mod event;
mod incoming;
mod session;
mod stream;
#[cfg(test)]
mod tests;

pub use event::{Broken, Event};
pub use session::{Agreed, Role, Settings, Timing};
pub use stream::{Path, Receiving, Sending, StreamStatus};

use crate::frame::{Bytes, FastNote, Frame, Identity, ProbeKind, Reason, data_header};
use session::Session;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;
use stream::{Due, Gone, Stream};

/// How many times its window a stream can have, if there is memory to spare and its reader takes all that comes.
const LARGEST: u64 = 4;
/// Answers to probes that wait to be sent.
const MAX_ANSWERS: usize = 16;

/// The state machine of one session, from the first hello to its end.
#[derive(Debug)]
pub struct Mux {
    role: Role,
    session: Session,
    streams: HashMap<u32, Stream>,
    /// Host: the last id given out. DPU: the highest seen.
    last_id: u32,
    /// Streams with control frames due; each at most once.
    due: VecDeque<u32>,
    events: VecDeque<Event>,
    /// Bytes of streams that came.
    data_in: u64,
    /// Bytes by which windows may be larger than agreed on, all together.
    spare: u64,
}

impl Mux {
    /// A session that begins now.
    pub fn new(role: Role, settings: Settings, now: Instant) -> Self {
        let spare = settings.spare;
        let session = Session::new(settings, now);
        Mux {
            role,
            session,
            streams: HashMap::new(),
            last_id: 0,
            due: VecDeque::new(),
            events: VecDeque::new(),
            data_in: 0,
            spare,
        }
    }

    /// What was agreed on, once the session is up.
    pub fn agreed(&self) -> Option<&Agreed> {
        self.session.agreed()
    }

    /// Streams that are not through.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Bytes of streams that came in this session.
    pub fn data_in(&self) -> u64 {
        self.data_in
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether a stream is not through, and not about to be reset.
    pub fn is_open(&self, id: u32) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.reset_due.is_none())
    }

    /// Bytes that wait in rings, and the memory they have taken.
    pub fn ring_bytes(&self) -> (usize, usize) {
        self.streams.values().fold((0, 0), |(len, capacity), stream| {
            (len + stream.ring.len(), capacity + stream.ring.capacity())
        })
    }

    /// What happened since.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// All streams, in the order of their ids.
    pub fn streams(&self, now: Instant) -> Vec<StreamStatus> {
        let mut all: Vec<_> = self.streams.iter().map(|(id, stream)| stream.status(*id, now)).collect();
        all.sort_by_key(|stream| stream.id);
        all
    }

    // What the owner does.

    /// Host: a client has connected. `None` when there is no session, no stream left, or no id.
    pub fn open(&mut self, identity: Identity, now: Instant) -> Option<u32> {
        let agreed = self.session.agreed()?;
        if self.role != Role::Host || self.streams.len() >= agreed.limits.max_streams as usize {
            return None;
        }
        let id = self.last_id.checked_add(1)?;
        let mut stream = Stream::new(identity, agreed.limits.window, now);
        stream.open_due = true;
        self.last_id = id;
        self.streams.insert(id, stream);
        self.list(id);
        Some(id)
    }

    /// Whether the ids of this session are used up.
    pub fn out_of_ids(&self) -> bool {
        self.last_id == u32::MAX
    }

    /// DPU: the application has accepted.
    pub fn accept(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id).filter(|s| s.sending == Sending::Opening) {
            stream.sending = Sending::Open;
            stream.open_due = true;
            self.events.push_back(Event::Credit(id));
            self.list(id);
        }
    }

    /// Bytes that a stream may send now.
    pub fn room(&self, id: u32) -> usize {
        let room = self.streams.get(&id).map_or(0, Stream::room);
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Which way a stream's bytes go, `or` if it has sent none yet.
    pub fn path(&self, id: u32, or: Path) -> Path {
        self.streams.get(&id).and_then(|stream| stream.path_out).unwrap_or(or)
    }

    /// What to put before the next bytes of a stream.
    pub fn header(&self, id: u32) -> Option<[u8; crate::frame::HEADER]> {
        self.streams.get(&id).map(|stream| data_header(id, stream.sent))
    }

    /// Makes a frame of that many bytes, at most [`Mux::room`], for the way that [`Mux::path`] says: what to put before
    /// them.
    pub fn sent(
        &mut self,
        id: u32,
        bytes: usize,
        path: Path,
        now: Instant,
    ) -> Option<[u8; crate::frame::HEADER]> {
        let stream = self.streams.get_mut(&id)?;
        stream.path_out.get_or_insert(path);
        let header = data_header(id, stream.sent);
        stream.sent += (bytes as u64).min(stream.room());
        if stream.room() == 0 {
            stream.stalled = Some(now);
        }
        Some(header)
    }

    /// The local socket has no more bytes: the peer is told after those that were sent.
    pub fn finish(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id).filter(|s| s.sending == Sending::Open) {
            stream.sending = Sending::FinDue;
            stream.stalled = None;
            self.list(id);
        }
    }

    /// The local socket is closed both ways: what was sent before is delivered, what comes is dropped.
    pub fn local_gone(&mut self, id: u32) {
        self.finish(id);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        match (stream.gone, stream.sending) {
            (Gone::Peer, _) | (_, Sending::Opening) => {
                self.reset(id, Reason::LocalClosed, "");
                self.events.push_back(Event::Closed(id, Some((Reason::LocalClosed, String::new()))));
            }
            (Gone::No, _) if stream.receiving != Receiving::Ended => {
                stream.gone = Gone::LocalUntold;
                self.discard(id);
                self.list(id);
            }
            _ => {}
        }
    }

    /// The local socket takes no bytes any more, but may still give some: what comes is dropped.
    pub fn discard(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.discarding = true;
            let lost = std::mem::take(&mut stream.ring).len() as u64;
            stream.account(lost);
            if stream.has_due() {
                self.list(id);
            }
            self.end_if_drained(id);
        }
    }

    /// Ends a stream at once. The owner closes its socket itself.
    pub fn reset(&mut self, id: u32, reason: Reason, text: &str) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.ring = VecDeque::new();
            stream.gone = Gone::Local;
            stream.sending = Sending::Void;
            stream.open_due &= self.role == Role::Host;
            (stream.credit_due, stream.delivery_due) = (false, false);
            stream.reset_due = Some((reason, text.to_owned()));
            self.list(id);
        }
    }

    /// The bytes that wait for the local socket.
    pub fn incoming(&self, id: u32) -> (&[u8], &[u8]) {
        self.streams.get(&id).map_or((&[], &[]), |stream| stream.ring.as_slices())
    }

    /// The local socket took so many of them.
    pub fn delivered(&mut self, id: u32, bytes: usize) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.ring.drain(..bytes);
            self.has_left(id, bytes);
        }
    }

    /// Bytes that were received are the local socket's now.
    fn has_left(&mut self, id: u32, bytes: usize) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.account(bytes as u64);
            let base = u64::from(self.session.window());
            if stream.is_held_up() && stream.window < LARGEST * base && stream.window <= self.spare {
                self.spare -= stream.window;
                stream.window *= 2;
            }
            if stream.has_due() {
                self.list(id);
            }
        }
    }

    /// Whether all was delivered and the local socket can be told that nothing more comes.
    pub fn ends_here(&self, id: u32) -> bool {
        self.streams.get(&id).is_some_and(Stream::ends_here)
    }

    /// It was told.
    pub fn end_delivered(&mut self, id: u32) {
        self.end_if_drained(id);
    }

    /// Host: asks whether a layer answers.
    pub fn probe(&mut self, nonce: u64, kind: ProbeKind) {
        self.session.probes.push_back((nonce, kind));
    }

    /// Answers a probe. A peer that asks faster than it reads is not answered.
    pub fn answer_probe(&mut self, nonce: u64, errno: u32, bytes: Bytes) {
        if self.session.answers.len() < MAX_ANSWERS {
            self.session.answers.push_back((nonce, errno, bytes));
        }
    }

    /// Tells the peer of this side's fast path.
    pub fn tell(&mut self, note: FastNote) {
        match note {
            FastNote::Credit(_) => self.session.fast_credit = Some(note),
            FastNote::Ready { .. } | FastNote::None => self.session.fast_ready = Some(note),
        }
    }

    /// Asks the peer for a sign of life now.
    pub fn ping(&mut self, now: Instant) {
        self.session.ping(now);
    }

    /// When something last came.
    pub fn last_heard(&self) -> Instant {
        self.session.last_heard()
    }

    /// Tells the peer that no new streams are served.
    pub fn go_away(&mut self) {
        self.session.goaway_due = self.session.agreed().is_some();
    }

    /// Heartbeats and the deadline of the greeting. To be called at least once per heartbeat.
    ///
    /// # Errors
    /// The peer is silent.
    pub fn tick(&mut self, now: Instant) -> Result<(), Broken> {
        self.session.tick(now)
    }

    /// The session is lost: every stream is over.
    pub fn lose(&mut self, why: &str) {
        self.due.clear();
        self.events.clear();
        for (id, _) in self.streams.drain() {
            self.events.push_back(Event::Closed(id, Some((Reason::SessionLost, why.to_owned()))));
        }
    }

    /// Writes the next control frame to `out`; from then on it counts as sent. `false` when none is due.
    pub fn next_control(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(frame) = self.session.next_frame(self.last_id) {
            frame.encode(out);
            return true;
        }
        while let Some(id) = self.due.pop_front() {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            stream.listed = false;
            let due = stream.take_due(id, self.role == Role::Host);
            let over = stream.complete();
            if stream.has_due() {
                self.list(id);
            }
            match due {
                Some(Due::Frame(frame)) => {
                    frame.encode(out);
                    if over {
                        self.remove(id, None);
                    }
                    return true;
                }
                Some(Due::Over(reason, text)) => {
                    Frame::Reset { stream: id, reason, after_fin: false, text: &text }.encode(out);
                    self.forget(id);
                    return true;
                }
                None => {}
            }
        }
        false
    }

    // Steps that several of them share.

    fn list(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.listed) {
            stream.listed = true;
            self.due.push_back(id);
        }
    }

    /// Marks the incoming direction as through, where it is.
    fn end_if_drained(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.ends_here()) else { return };
        stream.receiving = Receiving::Ended;
        stream.delivery_due = true;
        stream.ring = VecDeque::new();
        if stream.gone == Gone::Peer {
            self.close_after_peer(id);
        } else {
            self.list(id);
        }
    }

    /// All that the peer sent before it went was delivered.
    fn close_after_peer(&mut self, id: u32) {
        self.reset(id, Reason::LocalClosed, "");
        self.events.push_back(Event::Closed(id, None));
    }

    fn remove(&mut self, id: u32, why: Option<(Reason, String)>) {
        self.forget(id);
        self.events.push_back(Event::Closed(id, why));
    }

    /// Nothing is left of a stream; what its window was larger than others is spare again.
    fn forget(&mut self, id: u32) {
        if let Some(stream) = self.streams.remove(&id) {
            self.spare += stream.window - u64::from(self.session.window());
        }
    }
}
