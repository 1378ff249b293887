//! What the peer says: each frame checked against what it may say now, then done.

use super::stream::{Gone, Stream};
use super::{Broken, Event, Mux, Path, Receiving, Role, Sending};
use crate::frame::{Frame, HEADER, Identity, Reason};
use crate::transport::Bulk;
use std::collections::VecDeque;
use std::time::Instant;

impl Mux {
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
            Frame::Data { stream, offset, bytes } => {
                self.on_data(stream, offset, bytes.len(), Path::Control, |ring| {
                    ring.extend(bytes);
                    0
                })
            }
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
            Frame::Fast(note) => {
                if !self.session.has_fast_path() {
                    return Err(Broken::Protocol("a fast path that was not agreed on".to_owned()));
                }
                self.events.push_back(Event::Fast(note));
                Ok(())
            }
            Frame::Hello(_) | Frame::HelloAck { .. } => Ok(()),
        }
    }

    /// Takes a message that came over the fast path, on which there are bytes of streams only. Where none wait already,
    /// `pass` may hand some to the local socket of that stream at once: those of the message from an offset on.
    ///
    /// # Errors
    /// The peer broke the protocol; the session is to be dropped.
    pub fn handle_fast(
        &mut self,
        message: &dyn Bulk,
        now: Instant,
        pass: &mut dyn FnMut(u32, usize) -> usize,
    ) -> Result<(), Broken> {
        self.session.heard(now);
        // It is looked at once, and no more of it than says what it is: the peer can change it.
        let mut start = [0; 2 * HEADER];
        let len = message.read(0, &mut start);
        let frame = Frame::decode(&start[..len]).map_err(Broken::Malformed)?;
        let Frame::Data { stream, offset, .. } = frame else {
            return Err(Broken::Protocol(
                "something else than bytes of a stream on the fast path".to_owned(),
            ));
        };
        self.on_data(stream, offset, message.len() - HEADER, Path::Fast, |ring| {
            let passed = if ring.is_empty() { pass(stream, HEADER) } else { 0 };
            let mut from = HEADER + passed;
            let mut part = [0; 4096];
            while from < message.len() {
                let len = message.read(from, &mut part);
                ring.extend(&part[..len]);
                from += len;
            }
            passed
        })
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

    /// `store` puts bytes into the ring; it gives how many it has delivered instead.
    fn on_data(
        &mut self,
        id: u32,
        offset: u64,
        len: usize,
        path: Path,
        store: impl FnOnce(&mut VecDeque<u8>) -> usize,
    ) -> Result<(), Broken> {
        let Some(stream) = self.stream(id)? else { return Ok(()) };
        if *stream.path_in.get_or_insert(path) != path {
            return Err(Broken::Protocol(format!("stream {id} has changed its path")));
        }
        let end = offset.checked_add(len as u64);
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
            stream.account(len as u64);
            let due = stream.has_due();
            self.data_in += len as u64;
            self.end_if_drained(id);
            if due {
                self.list(id);
            }
            return Ok(());
        }
        let passed = store(&mut stream.ring);
        let more = !stream.ring.is_empty();
        self.data_in += len as u64;
        if passed > 0 {
            self.has_left(id, passed);
        }
        if more || self.ends_here(id) {
            self.events.push_back(Event::Incoming(id));
        }
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
                self.forget(id);
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
}
