//! Many streams over one link: who may send how much, what ended, what is due. No I/O and no clock of its own.
//!
//! The owner hands in every message that came ([`Mux::handle`]), takes control frames to send
//! ([`Mux::next_control`]), asks how much a stream may send ([`Mux::room`]) and drains what came for it
//! ([`Mux::incoming`], [`Mux::delivered`]). What happened meanwhile comes as [`Event`]s. Memory is bounded by
//! streams times window; control frames are flags of a stream, never a queue that grows.

mod session;
mod stream;
#[cfg(test)]
mod tests;

pub use session::{Agreed, Role, Settings, Timing};
pub use stream::{Receiving, Sending};

use crate::frame::{Bytes, Frame, Identity, Malformed, ProbeKind, Reason, data_header};
use session::Session;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};
use stream::{Due, Gone, Stream};

/// Answers to probes that wait to be sent.
const MAX_ANSWERS: usize = 16;

/// What the owner has to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Both sides agree; streams can be opened.
    Up,
    /// DPU: a client has connected; answer with [`Mux::accept`] or [`Mux::reset`].
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
    /// Answer with [`Mux::answer_probe`].
    Probe(u64, ProbeKind),
    /// The answer to [`Mux::probe`].
    ProbeResult {
        /// Of the probe.
        nonce: u64,
        /// Zero, or why the application could not be reached.
        errno: u32,
        /// What the peer has moved so far.
        bytes: Bytes,
    },
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
    /// Nothing came for this long.
    Silent(Duration),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Malformed(what) => write!(f, "malformed frame: {what}"),
            Broken::Protocol(what) => write!(f, "protocol error: {what}"),
            Broken::Partner(what) => f.write_str(what),
            Broken::Silent(time) => {
                write!(f, "nothing came from the other relay for {} ms", time.as_millis())
            }
        }
    }
}

impl std::error::Error for Broken {}

/// A stream, as [`Mux::streams`] shows it.
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
    /// Bytes that may be sent now.
    pub credit: u64,
    /// Bytes that the peer may send now.
    pub peer_credit: u64,
    /// Bytes that wait for the local socket.
    pub ring: usize,
    /// How long it has been without credit, in milliseconds.
    pub stalled_ms: Option<u128>,
}

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
}

impl Mux {
    /// A session that begins now.
    pub fn new(role: Role, settings: Settings, now: Instant) -> Self {
        let session = Session::new(settings, now);
        Mux {
            role,
            session,
            streams: HashMap::new(),
            last_id: 0,
            due: VecDeque::new(),
            events: VecDeque::new(),
            data_in: 0,
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
        let millis = |since: Instant| now.saturating_duration_since(since).as_millis();
        let status = |(&id, stream): (&u32, &Stream)| StreamStatus {
            id,
            pid: stream.identity.pid,
            uid: stream.identity.uid,
            age_ms: millis(stream.opened),
            sending: stream.sending,
            receiving: stream.receiving,
            bytes_sent: stream.sent,
            bytes_received: stream.received,
            credit: stream.room(),
            peer_credit: stream.granted - stream.received,
            ring: stream.ring.len(),
            stalled_ms: stream.stalled.map(millis),
        };
        let mut all: Vec<_> = self.streams.iter().map(status).collect();
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

    /// Makes a frame of that many bytes, at most [`Mux::room`]: what to put before them.
    pub fn sent(&mut self, id: u32, bytes: usize, now: Instant) -> Option<[u8; crate::frame::HEADER]> {
        let stream = self.streams.get_mut(&id)?;
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
            stream.account(lost, self.session.window());
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
            stream.account(bytes as u64, self.session.window());
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
            let due = stream.take_due(id, self.role == Role::Host, self.session.window());
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
                    self.streams.remove(&id);
                    return true;
                }
                None => {}
            }
        }
        false
    }

    // What the peer does.

    /// Takes a message of the peer.
    ///
    /// # Errors
    /// The peer broke the protocol; the session is to be dropped.
    pub fn handle(&mut self, message: &[u8], now: Instant) -> Result<(), Broken> {
        let frame = Frame::decode(message).map_err(|what| {
            if self.session.greeted() {
                Broken::Malformed(what)
            } else {
                Broken::Partner(format!("the other side is not a relay of this kind: {what}"))
            }
        })?;
        let was_up = self.session.agreed().is_some();
        match frame {
            Frame::Hello(_) | Frame::HelloAck { .. } => {
                self.session.greet(&frame, now)?;
                if !was_up && self.session.agreed().is_some() {
                    self.events.push_back(Event::Up);
                }
                return Ok(());
            }
            _ if !self.session.greeted() => {
                return Err(Broken::Partner("the other side did not say hello first".to_owned()));
            }
            // The peer may be up before us: its frames follow its hello, our ack is on the way.
            _ => self.session.heard(now),
        }
        match frame {
            Frame::Open { stream, credit, identity } => self.on_open(stream, credit, identity, now),
            Frame::OpenAck { stream, credit } => self.on_open_ack(stream, credit),
            Frame::Data { stream, offset, bytes } => self.on_data(stream, offset, bytes),
            Frame::Fin { stream, offset } => self.on_fin(stream, offset),
            Frame::Reset { stream, reason, after_fin, text } => {
                self.on_reset(stream, reason, after_fin, text)
            }
            Frame::Credit { stream, upto, delivered } => self.on_credit(stream, upto, delivered),
            Frame::Ping(nonce) => {
                self.session.pong_due = Some(nonce);
                Ok(())
            }
            Frame::Pong(nonce) => {
                if let Some(time) = self.session.pong(nonce, now) {
                    self.events.push_back(Event::RoundTrip(time));
                }
                Ok(())
            }
            Frame::GoAway { .. } => {
                self.events.push_back(Event::GoAway);
                Ok(())
            }
            Frame::Probe { nonce, kind } => {
                self.events.push_back(Event::Probe(nonce, kind));
                Ok(())
            }
            Frame::ProbeResult { nonce, errno, bytes } => {
                self.events.push_back(Event::ProbeResult { nonce, errno, bytes });
                Ok(())
            }
            Frame::Hello(_) | Frame::HelloAck { .. } => Ok(()),
        }
    }

    /// The stream of a frame. `None`: it is over already, and the frame was on its way.
    fn stream(&mut self, id: u32) -> Result<Option<&mut Stream>, Broken> {
        if id > self.last_id {
            return Err(Broken::Protocol(format!("stream {id} was never opened")));
        }
        Ok(self.streams.get_mut(&id).filter(|stream| stream.reset_due.is_none()))
    }

    fn on_open(&mut self, id: u32, credit: u64, identity: Identity, now: Instant) -> Result<(), Broken> {
        if self.role != Role::Dpu {
            return Err(Broken::Protocol("the DPU side opened a stream".to_owned()));
        }
        if id <= self.last_id {
            return Err(Broken::Protocol(format!("stream {id} was opened after {}", self.last_id)));
        }
        let max = self.session.max_streams();
        self.last_id = id;
        let mut stream = Stream::new(identity, self.session.window(), now);
        stream.credit = credit;
        self.streams.insert(id, stream);
        if self.streams.len() > max {
            self.reset(id, Reason::Limit, "too many streams");
        } else {
            self.events.push_back(Event::Opened(id, identity));
        }
        Ok(())
    }

    fn on_open_ack(&mut self, id: u32, credit: u64) -> Result<(), Broken> {
        if self.role != Role::Host {
            return Err(Broken::Protocol("the host side acknowledged a stream".to_owned()));
        }
        let Some(stream) = self.stream(id)? else { return Ok(()) };
        if stream.sending != Sending::Opening {
            return Err(Broken::Protocol(format!("stream {id} was acknowledged twice")));
        }
        stream.sending = Sending::Open;
        stream.credit = credit;
        self.events.push_back(Event::Accepted(id));
        Ok(())
    }

    fn on_data(&mut self, id: u32, offset: u64, bytes: &[u8]) -> Result<(), Broken> {
        let window = self.session.window();
        let Some(stream) = self.stream(id)? else { return Ok(()) };
        let end = offset.checked_add(bytes.len() as u64);
        let allowed = match stream.receiving {
            Receiving::Open => stream.granted,
            Receiving::Ending(at) => at,
            Receiving::Ended => stream.received,
        };
        if offset != stream.received {
            return Err(Broken::Protocol(format!(
                "stream {id}: bytes at {offset}, expected {}",
                stream.received
            )));
        }
        let Some(end) = end.filter(|end| *end <= allowed) else {
            return Err(Broken::Protocol(format!("stream {id}: bytes beyond {allowed}")));
        };
        stream.received = end;
        if stream.discarding {
            stream.account(bytes.len() as u64, window);
            let due = stream.has_due();
            self.end_if_drained(id);
            if due {
                self.list(id);
            }
        } else {
            stream.ring.extend(bytes);
            self.events.push_back(Event::Incoming(id));
        }
        self.data_in += bytes.len() as u64;
        Ok(())
    }

    fn on_fin(&mut self, id: u32, offset: u64) -> Result<(), Broken> {
        let Some(stream) = self.stream(id)? else { return Ok(()) };
        if stream.receiving != Receiving::Open {
            return Err(Broken::Protocol(format!("stream {id} ended twice")));
        }
        if offset < stream.received || offset > stream.granted {
            return Err(Broken::Protocol(format!("stream {id} ends at {offset}, which it cannot reach")));
        }
        stream.receiving = Receiving::Ending(offset);
        if stream.discarding {
            self.end_if_drained(id);
        } else {
            self.events.push_back(Event::Incoming(id));
        }
        Ok(())
    }

    fn on_reset(&mut self, id: u32, reason: Reason, after_fin: bool, text: &str) -> Result<(), Broken> {
        if id > self.last_id {
            return Err(Broken::Protocol(format!("stream {id} was never opened")));
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        if !after_fin {
            // Both ends gave up: nobody waits for our reset any more.
            let told = stream.reset_due.is_none();
            if told {
                self.remove(id, Some((reason, text.to_owned())));
            } else {
                self.streams.remove(&id);
            }
            return Ok(());
        }
        match stream.gone {
            _ if stream.reset_due.is_some() => {}
            Gone::No => {
                stream.gone = Gone::Peer;
                stream.sending = Sending::Void;
                stream.stalled = None;
                let through = stream.receiving == Receiving::Ended;
                self.events.push_back(Event::PeerGone(id));
                self.events.push_back(Event::Incoming(id));
                if through {
                    self.close_after_peer(id);
                }
            }
            // The peer has sent its own and waits for a reset, as we would.
            Gone::LocalUntold => {
                self.reset(id, Reason::LocalClosed, "");
                self.events.push_back(Event::Closed(id, Some((reason, text.to_owned()))));
            }
            Gone::Local => self.remove(id, Some((reason, text.to_owned()))),
            Gone::Peer => return Err(Broken::Protocol(format!("stream {id} was given up twice"))),
        }
        Ok(())
    }

    fn on_credit(&mut self, id: u32, upto: u64, delivered: bool) -> Result<(), Broken> {
        let Some(stream) = self.stream(id)? else { return Ok(()) };
        if stream.sending == Sending::Void {
            return Ok(());
        }
        if upto < stream.credit || stream.sending == Sending::Opening {
            return Err(Broken::Protocol(format!(
                "stream {id}: credit goes back from {} to {upto}",
                stream.credit
            )));
        }
        stream.credit = upto;
        if delivered {
            if stream.sending != Sending::FinSent {
                return Err(Broken::Protocol(format!("stream {id}: an end was delivered that was not sent")));
            }
            stream.sending = Sending::Delivered;
            if stream.complete() {
                self.remove(id, None);
            }
        } else if stream.room() > 0 {
            stream.stalled = None;
            self.events.push_back(Event::Credit(id));
        }
        Ok(())
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
        self.streams.remove(&id);
        self.events.push_back(Event::Closed(id, why));
    }
}
