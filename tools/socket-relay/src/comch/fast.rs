//! The fast path of a session: a producer towards the peer's consumer, and a consumer for the peer's producer.
//!
//! Buffers have one size. The receiving side has all of its own posted, says so when it is ready, and then tells how many
//! it has posted since, so that the sender never has to try; a buffer is copied out and posted again at once. The two
//! directions are independent: where one cannot be set up, its bytes take the control path.

use crate::frame::{FastNote, HEADER};
use crate::transport::{Bulk, FastState, FastStates, LinkEvent, Refused, Space};
use doca_comch::{Connection, Consumer, Context, Left, Pending, Producer, RemoteConsumer, caps};
use doca_common::caps::{Capability, Value};
use doca_common::{Access, Device, DeviceInfo, Error, Memory, ProgressEngine, SharedBuffer, SharedMemory};
use nix::errno::Errno;
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of streams in one message.
const PAYLOAD: usize = 64 << 10;
/// Bytes of a buffer. Devices like those that begin at multiples of 64.
const BUFFER: usize = PAYLOAD + HEADER.next_multiple_of(64);
/// Buffers of each direction, if the device allows as many.
const BUFFERS: u32 = 64;
/// How long a consumer may take to start.
const SETUP: Duration = Duration::from_secs(2);

/// What a device can do, if it has a fast path at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Bytes of the buffers that come in and go out.
    sizes: [usize; 2],
    /// How many there are.
    counts: [u32; 2],
}

impl Offer {
    pub(super) fn of(info: &DeviceInfo) -> Result<Option<Offer>, Error> {
        if !caps::CONSUMER.holds(info) || !caps::PRODUCER.holds(info) {
            return Ok(None);
        }
        let most = |limit: Capability, most: u64| -> Result<u64, Error> {
            Ok(match limit.ask(info)? {
                Value::Number(number) => number.min(most),
                _ => most,
            })
        };
        let size = |limit| most(limit, BUFFER as u64).map(|size| usize::try_from(size).unwrap_or(BUFFER));
        let count =
            |limit| most(limit, u64::from(BUFFERS)).map(|count| u32::try_from(count).unwrap_or(BUFFERS));
        let offer = Offer {
            sizes: [size(caps::CONSUMER_MAX_BUF_SIZE)?, size(caps::PRODUCER_MAX_BUF_SIZE)?],
            counts: [count(caps::CONSUMER_MAX_NUM_TASKS)?, count(caps::PRODUCER_MAX_NUM_TASKS)?],
        };
        let usable =
            offer.sizes.iter().all(|size| *size > HEADER) && offer.counts.iter().all(|count| *count > 0);
        Ok(usable.then_some(offer))
    }
}

/// See the module. Dropping it ends producer and consumer, by progress of their engine.
#[derive(Debug)]
pub(super) struct Fast {
    incoming: Option<Incoming>,
    outgoing: Option<Outgoing>,
    /// What the peer is to be told once: that this side is ready, or never will be.
    introduction: Option<FastNote>,
    broken: Option<String>,
}

#[derive(Debug)]
struct Incoming {
    consumer: Left<Consumer>,
    memory: SharedMemory,
    size: usize,
    count: u32,
    since: Instant,
    posted: VecDeque<Pending<Consumer, SharedBuffer>>,
    /// Messages that were taken out, their buffers posted again.
    taken: u64,
    /// Those of them that the peer's producer can have seen: the control path was progressed after.
    shown: u64,
    /// Those that the peer was told of.
    told: u64,
}

#[derive(Debug)]
struct Outgoing {
    producer: Left<Producer>,
    free: Vec<SharedBuffer>,
    sending: VecDeque<Pending<Producer, SharedBuffer>>,
    /// A message that the producer did not take yet: no other is made before it is on its way.
    held: Option<SharedBuffer>,
    size: usize,
    peer: Peer,
}

/// How many messages may be sent, as the peer tells.
#[derive(Debug)]
struct Allowance {
    /// Buffers that the peer has.
    messages: u32,
    /// Messages that may be sent, counted from the first.
    allowed: u64,
    sent: u64,
}

impl Allowance {
    fn new(messages: u32) -> Allowance {
        Allowance { messages, allowed: u64::from(messages), sent: 0 }
    }

    fn left(&self) -> u64 {
        self.allowed - self.sent
    }

    /// The peer allows so many, counted from the first: never fewer than before, and no more than all its buffers are
    /// free.
    fn grant(&mut self, upto: u64) -> Result<(), String> {
        if upto < self.allowed || upto > self.sent + u64::from(self.messages) {
            return Err(format!("{upto} messages may be sent, after {} were", self.sent));
        }
        self.allowed = upto;
        Ok(())
    }
}

/// The peer's consumer.
#[derive(Debug)]
enum Peer {
    /// Nothing is known of it.
    Unknown,
    /// There is none.
    None,
    Ready {
        consumer: RemoteConsumer,
        /// Bytes of the longest message for it.
        room: usize,
        allowance: Allowance,
    },
}

impl Fast {
    /// Creates both ends on a connection. What cannot be made is left out: its bytes take the control path.
    pub(super) fn open(
        offer: Offer,
        engine: &ProgressEngine,
        device: &Device,
        connection: &Connection,
    ) -> Fast {
        let incoming = Incoming::open(offer, engine, device, connection);
        let outgoing = Outgoing::open(offer, engine, device, connection);
        let mut fast = Fast { incoming: None, outgoing: None, introduction: None, broken: None };
        match incoming {
            Ok(incoming) => fast.incoming = Some(incoming),
            Err(error) => fast.no_way_in(&error.to_string()),
        }
        match outgoing {
            Ok(outgoing) => fast.outgoing = Some(outgoing),
            Err(error) => log::warn!(target: crate::LOG, "no fast path to the other relay: {error}"),
        }
        fast
    }

    fn no_way_in(&mut self, why: &str) {
        log::warn!(target: crate::LOG, "no fast path from the other relay: {why}");
        self.incoming = None;
        self.introduction = Some(FastNote::None);
    }

    pub(super) fn states(&self) -> FastStates {
        let incoming = self.incoming.as_ref().map_or(FastState::Off, |incoming| match incoming.consumer {
            Left::Running(_) => FastState::On,
            _ => FastState::Starting,
        });
        let outgoing = self.outgoing.as_ref().map_or(FastState::Off, |outgoing| match outgoing.peer {
            Peer::Unknown => FastState::Starting,
            Peer::None => FastState::Off,
            Peer::Ready { .. } => FastState::On,
        });
        FastStates { outgoing, incoming }
    }

    /// After progress: follows the contexts, and takes back what was sent. Whether anything changed.
    pub(super) fn follow(&mut self) -> bool {
        let mut any = false;
        if let Some(incoming) = &mut self.incoming {
            match incoming.follow() {
                Ok(None) => {}
                Ok(Some(note)) => {
                    self.introduction = Some(note);
                    any = true;
                }
                Err(why) if incoming.told_ready() => self.broken = Some(why),
                Err(why) => {
                    self.no_way_in(&why);
                    any = true;
                }
            }
        }
        if let Some(outgoing) = &mut self.outgoing {
            match outgoing.follow() {
                Ok(back) => any |= back,
                Err(why) => self.broken = Some(why),
            }
        }
        any
    }

    /// Whether something can be done without progress.
    pub(super) fn has_work(&self) -> bool {
        self.introduction.is_some()
            || self.incoming.as_ref().is_some_and(|incoming| {
                incoming.posted.front().is_some_and(Pending::is_done) || incoming.credit_is_due()
            })
    }

    /// Whether notifications are not to be relied on: some releases lose the start of a consumer whose engine is armed.
    pub(super) fn is_starting(&self) -> bool {
        self.incoming.as_ref().is_some_and(|incoming| matches!(incoming.consumer, Left::Starting(_)))
    }

    /// Messages that are on their way to the peer.
    pub(super) fn in_flight(&self) -> usize {
        self.outgoing.as_ref().map_or(0, |out| out.sending.len() + usize::from(out.held.is_some()))
    }

    /// Why the session cannot go on.
    pub(super) fn take_broken(&mut self) -> Option<String> {
        self.broken.take()
    }

    pub(super) fn next_note(&mut self) -> Option<FastNote> {
        self.introduction.take().or_else(|| {
            let incoming = self.incoming.as_mut().filter(|incoming| incoming.credit_is_due())?;
            incoming.told = incoming.shown;
            Some(FastNote::Credit(u64::from(incoming.count) + incoming.shown))
        })
    }

    /// What the peer tells of its consumer.
    pub(super) fn noted(&mut self, note: FastNote, connection: &Connection) -> Result<(), String> {
        let Some(outgoing) = &mut self.outgoing else { return Ok(()) };
        match (note, &mut outgoing.peer) {
            (FastNote::Ready { consumer, room, messages }, Peer::Unknown) => {
                let consumer = connection.consumer(consumer).map_err(|error| error.to_string())?;
                let room = outgoing.size.min(room as usize);
                outgoing.peer = Peer::Ready { consumer, room, allowance: Allowance::new(messages) };
            }
            (FastNote::None, Peer::Unknown) => outgoing.peer = Peer::None,
            (FastNote::Credit(upto), Peer::Ready { allowance, .. }) => allowance.grant(upto)?,
            _ => return Err(format!("{} is not expected", note.text())),
        }
        Ok(())
    }

    /// Tells of at most so many messages.
    pub(super) fn receive(&mut self, most: usize, sink: &mut dyn FnMut(LinkEvent<'_>)) -> bool {
        let Some(incoming) = &mut self.incoming else { return false };
        let mut any = false;
        for _ in 0..most {
            match incoming.receive(sink) {
                Ok(true) => any = true,
                Ok(false) => break,
                Err(why) => {
                    self.broken.get_or_insert(why);
                    break;
                }
            }
        }
        any
    }

    /// Control path progressed: the peer's producer can have seen what was posted before.
    pub(super) fn progressed(&mut self) {
        if let Some(incoming) = &mut self.incoming {
            incoming.shown = incoming.taken;
        }
    }

    pub(super) fn longest(&self) -> usize {
        match self.outgoing.as_ref().map(|outgoing| &outgoing.peer) {
            Some(Peer::Ready { room, .. }) => *room,
            _ => 0,
        }
    }

    /// Whether a message waits for the producer.
    pub(super) fn holds(&self) -> bool {
        self.outgoing.as_ref().is_some_and(|outgoing| outgoing.held.is_some())
    }

    pub(super) fn room(&self) -> usize {
        let Some(outgoing) = &self.outgoing else { return 0 };
        let Peer::Ready { allowance, .. } = &outgoing.peer else { return 0 };
        let stuck = self.broken.is_some() || outgoing.held.is_some();
        if stuck || !matches!(outgoing.producer, Left::Running(_)) {
            return 0;
        }
        outgoing.free.len().min(usize::try_from(allowance.left()).unwrap_or(usize::MAX))
    }

    pub(super) fn send(
        &mut self,
        header: &[u8],
        fill: &mut dyn FnMut(&mut dyn Space) -> usize,
    ) -> Result<usize, Refused> {
        if self.room() == 0 {
            return Err(Refused::Busy);
        }
        let Some(outgoing) = &mut self.outgoing else { return Err(Refused::Busy) };
        let Some(mut buffer) = outgoing.free.pop() else { return Err(Refused::Busy) };
        buffer.write(header);
        let filled = fill(&mut buffer);
        if filled == 0 {
            outgoing.free.push(buffer);
            return Ok(0);
        }
        match outgoing.send(buffer) {
            Ok(()) => Ok(filled),
            Err(why) => {
                self.broken.get_or_insert(why);
                Err(Refused::Down)
            }
        }
    }
}

impl Bulk for SharedBuffer {
    fn len(&self) -> usize {
        SharedBuffer::len(self)
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> usize {
        self.read_at(offset, to)
    }

    fn send_to(&self, socket: &UnixStream, offset: usize) -> Result<usize, Errno> {
        SharedBuffer::send_to(self, socket, offset).map_err(|error| errno(&error))
    }
}

impl Space for SharedBuffer {
    fn read_from(&mut self, socket: &UnixStream, most: usize) -> Result<usize, Errno> {
        SharedBuffer::read_from(self, socket, most).map_err(|error| errno(&error))
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

fn shared(device: &Device, size: usize, count: u32, access: Access) -> Result<SharedMemory, Error> {
    let memory = Memory::zeroed(size * count as usize)?;
    memory.shared(device, access).map_err(|failed| failed.error)
}

impl Incoming {
    fn open(
        offer: Offer,
        engine: &ProgressEngine,
        device: &Device,
        connection: &Connection,
    ) -> Result<Incoming, Error> {
        let ([size, _], [count, _]) = (offer.sizes, offer.counts);
        let memory = shared(device, size, count, Access::PCI_READ_WRITE)?;
        let mut config = Consumer::configure(connection, &memory)?.here();
        config.set_num_tasks(count)?;
        let starting = config.start(engine).map_err(|failed| failed.error)?;
        Ok(Incoming {
            consumer: Left::Starting(starting),
            memory,
            size,
            count,
            since: Instant::now(),
            posted: VecDeque::with_capacity(count as usize),
            taken: 0,
            shown: 0,
            told: 0,
        })
    }

    /// Whether the peer was told that it can send.
    fn told_ready(&self) -> bool {
        !self.posted.is_empty()
    }

    fn follow(&mut self) -> Result<Option<FastNote>, String> {
        match now(&mut self.consumer) {
            Left::Running(consumer) if self.posted.is_empty() => {
                let id = consumer.id();
                for posted in 0..self.count {
                    let buffer = self.memory.take(self.size).map_err(|error| error.to_string())?;
                    match self.post(buffer) {
                        Ok(()) => {}
                        // Fewer will do.
                        Err(_) if posted > 0 => {
                            self.count = posted;
                            break;
                        }
                        Err(why) => return Err(why),
                    }
                }
                let room = u32::try_from(self.size).unwrap_or(u32::MAX);
                Ok(Some(FastNote::Ready { consumer: id, room, messages: self.count }))
            }
            Left::Running(_) => Ok(None),
            Left::Starting(_) if self.since.elapsed() < SETUP => Ok(None),
            Left::Starting(_) => Err("the consumer did not start in time".to_owned()),
            _ => Err("the consumer does not run any more".to_owned()),
        }
    }

    fn post(&mut self, buffer: SharedBuffer) -> Result<(), String> {
        let Left::Running(consumer) = &self.consumer else {
            return Err("the consumer has stopped".to_owned());
        };
        let pending = consumer.receive(buffer).map_err(|failed| failed.error.to_string())?;
        self.posted.push_back(pending);
        Ok(())
    }

    /// Tells of the next message, if one came, and posts its buffer again.
    fn receive(&mut self, sink: &mut dyn FnMut(LinkEvent<'_>)) -> Result<bool, String> {
        let Some(mut pending) = self.posted.pop_front_if(|pending| pending.is_done()) else {
            return Ok(false);
        };
        let message = pending.wait().map_err(|failed| failed.error.to_string())?;
        sink(LinkEvent::Bulk(&message.buffer));
        self.post(message.buffer)?;
        self.taken += 1;
        Ok(true)
    }

    /// Half of the buffers are worth a message.
    fn credit_is_due(&self) -> bool {
        self.shown - self.told >= u64::from(self.count.div_ceil(2))
    }
}

impl Outgoing {
    fn open(
        offer: Offer,
        engine: &ProgressEngine,
        device: &Device,
        connection: &Connection,
    ) -> Result<Outgoing, Error> {
        let ([_, size], [_, count]) = (offer.sizes, offer.counts);
        let memory = shared(device, size, count, Access::PCI_READ_ONLY)?;
        let mut config = Producer::configure(connection)?.here();
        config.set_num_tasks(count)?;
        let starting = config.start(engine).map_err(|failed| failed.error)?;
        let free = (0..count).map(|_| memory.take(size)).collect::<Result<_, _>>()?;
        let producer = Left::Starting(starting).now();
        Ok(Outgoing {
            producer,
            free,
            sending: VecDeque::with_capacity(count as usize),
            held: None,
            size,
            peer: Peer::Unknown,
        })
    }

    fn follow(&mut self) -> Result<bool, String> {
        let mut any = false;
        while let Some(mut pending) = self.sending.pop_front_if(|pending| pending.is_done()) {
            // The one that was used last is still in the cache.
            self.free.push(pending.wait().map_err(|failed| failed.error.to_string())?);
            any = true;
        }
        if let Some(buffer) = self.held.take() {
            self.send(buffer)?;
            any |= self.held.is_none();
        }
        let running = matches!(now(&mut self.producer), Left::Running(_) | Left::Starting(_));
        let peer_is_up = match &self.peer {
            Peer::Ready { consumer, .. } => consumer.is_up(),
            Peer::Unknown | Peer::None => true,
        };
        match (running, peer_is_up) {
            (true, true) => Ok(any),
            (false, _) => Err("the producer has stopped".to_owned()),
            (_, false) => Err("the other side's consumer has stopped".to_owned()),
        }
    }

    /// Sends a message now, or as soon as it can be.
    fn send(&mut self, buffer: SharedBuffer) -> Result<(), String> {
        let (Left::Running(producer), Peer::Ready { consumer, allowance, .. }) =
            (&self.producer, &mut self.peer)
        else {
            return Err("the producer has stopped".to_owned());
        };
        match producer.send(consumer, buffer, &[]) {
            Ok(pending) => {
                self.sending.push_back(pending);
                allowance.sent += 1;
                Ok(())
            }
            Err(failed) if failed.error.is_retryable() => {
                self.held = Some(failed.value);
                Ok(())
            }
            Err(failed) => Err(failed.error.to_string()),
        }
    }
}

/// A context in the state that it has by now.
fn now<C: Context>(left: &mut Left<C>) -> &Left<C> {
    *left = std::mem::replace(left, Left::Consumed).now();
    left
}

#[cfg(test)]
mod tests {
    use super::Allowance;

    #[test]
    fn whatever_the_peer_allows_no_more_is_sent_than_it_has_buffers() {
        let mut state = 0x5eed_u64;
        let mut dice = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..2000 {
            let messages = [1, 2, 64, u32::MAX][(dice() % 4) as usize];
            let mut allowance = Allowance::new(messages);
            for _ in 0..100 {
                // Near what is right, or anything.
                let near = (allowance.sent + u64::from(messages)).wrapping_add(dice() % 5).wrapping_sub(2);
                let upto = [near, dice(), allowance.allowed, u64::MAX][(dice() % 4) as usize];
                let before = allowance.allowed;
                match allowance.grant(upto) {
                    Ok(()) => taken += 1,
                    Err(_) => {
                        assert_eq!(allowance.allowed, before);
                        refused += 1;
                    }
                }
                assert!(allowance.allowed >= before && allowance.left() <= u64::from(messages));
                allowance.sent += dice() % (allowance.left() + 1);
            }
        }
        assert!(taken > 10_000 && refused > 10_000, "{taken} {refused}");
    }
}
