//! The messages of a Comch connection: one segment with a ring of bytes for each direction.
//!
//! The ring is the receiver's queue: what lies in it has been delivered. Each has one writer and one reader, so a
//! message costs one copy and two stores; a writer that dies half-way has written nothing.
//!
//! ```text
//! header: sizes, what each end says of itself     ring to the client     ring to the server
//! record: length, kind, bytes, up to the next multiple of 16; never over the end of the ring
//! ```

use super::shm::{Segment, Shared};
use crate::code::{Code, Res};
use crate::fault;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// On the host.
    Client = 0,
    /// On the DPU.
    Server = 1,
}

impl End {
    /// The other one.
    pub fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

/// What one end is ready to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Largest message, bytes.
    pub message: u32,
    /// Messages.
    pub depth: u32,
}

/// What an end says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Not there yet.
    Absent = 0,
    /// Sends and receives.
    Up = 1,
    /// Has left.
    Closed = 2,
}

#[repr(C, align(64))]
struct Ring {
    /// Bytes written, by the writer.
    tail: AtomicU64,
    _writer: [AtomicU64; 7],
    /// Bytes read, by the reader.
    head: AtomicU64,
    /// Messages read, by the reader.
    taken: AtomicU64,
    /// 1 while the writer waits for room.
    blocked: AtomicU32,
    _pad: AtomicU32,
    _reader: [AtomicU64; 5],
}

#[repr(C, align(64))]
struct Header {
    magic: AtomicU64,
    message: [AtomicU32; 2],
    depth: [AtomicU32; 2],
    life: [AtomicU32; 2],
    _pad: [AtomicU64; 4],
    /// By the end that reads it.
    rings: [Ring; 2],
}
// SAFETY: atomic integers only; the padding of the alignment is never read.
unsafe impl Shared for Header {}

/// Ahead of each record.
#[repr(C)]
struct Record {
    len: AtomicU32,
    kind: AtomicU32,
    _pad: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for Record {}

const MAGIC: u64 = u64::from_le_bytes(*b"docamsg\x01");
const HEADER: usize = size_of::<Header>().next_multiple_of(4096);
const RECORD: u64 = size_of::<Record>() as u64;
/// Room for what the ends tell each other besides messages.
const NOTES: u64 = 4096;
/// Largest ring that makes sense.
const MAX_RING: u64 = 1 << 32;
/// The kind of a record that only fills the end of the ring.
const FILLER: u32 = u32::MAX;

fn stride(len: u32) -> u64 {
    RECORD + u64::from(len).next_multiple_of(16)
}

/// Bytes of the ring of an end: its messages at their largest, notes, and what is lost at the end of the ring.
fn ring_len(capacity: Capacity) -> Option<u64> {
    let most = stride(capacity.message);
    let len = most.checked_mul(u64::from(capacity.depth) + 1)? + NOTES;
    (len <= MAX_RING && capacity.depth > 0).then(|| len.next_multiple_of(4096))
}

/// A connection's segment as one end sees it.
#[derive(Debug)]
pub struct Channel {
    segment: Segment,
    end: End,
    incoming: Part,
    outgoing: Part,
}

/// A ring as one end sees it.
#[derive(Debug)]
struct Part {
    reader: End,
    capacity: Capacity,
    at: usize,
    len: u64,
    /// The position of this end.
    here: Cell<u64>,
    /// What the other end's position was when last looked at.
    there: Cell<u64>,
    /// Messages written or read here.
    messages: Cell<u64>,
    taken: Cell<u64>,
}

impl Part {
    fn new(reader: End, capacity: Capacity, at: u64, len: u64) -> Part {
        let zero = Cell::default;
        Part {
            reader,
            capacity,
            at: at as usize,
            len,
            here: zero(),
            there: zero(),
            messages: zero(),
            taken: zero(),
        }
    }

    fn offset(&self, position: u64) -> u64 {
        position % self.len
    }
}

/// What is at the front of the incoming ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// As [`Channel::push`] was told.
    pub kind: u32,
    /// Where the bytes are, until [`Channel::pop`].
    pub addr: usize,
    /// Bytes.
    pub len: u32,
}

const CHECKED: &str = "the segment was checked to hold its layout";

impl Channel {
    /// A new connection between ends that can receive so much.
    pub fn create(end: End, client: Capacity, server: Capacity) -> Res<Channel> {
        let too_large = Code::NO_MEMORY;
        let lens = [ring_len(client).ok_or(too_large)?, ring_len(server).ok_or(too_large)?];
        let segment = Segment::create(c"doca-sim-channel", HEADER + (lens[0] + lens[1]) as usize)?;
        let header: &Header = segment.at(0).ok_or(Code::UNEXPECTED)?;
        for (index, capacity) in [client, server].into_iter().enumerate() {
            header.message[index].store(capacity.message, SeqCst);
            header.depth[index].store(capacity.depth, SeqCst);
        }
        header.magic.store(MAGIC, SeqCst);
        Self::of(segment, end)
    }

    /// One that the other end has created.
    pub fn attach(segment: Segment, end: End) -> Res<Channel> {
        let header: &Header = segment.at(0).ok_or(Code::NOT_FOUND)?;
        if header.magic.load(SeqCst) != MAGIC {
            return Err(Code::NOT_FOUND);
        }
        Self::of(segment, end)
    }

    fn of(segment: Segment, end: End) -> Res<Channel> {
        let header: &Header = segment.at(0).ok_or(Code::NOT_FOUND)?;
        let capacity = |reader: usize| Capacity {
            message: header.message[reader].load(SeqCst),
            depth: header.depth[reader].load(SeqCst),
        };
        let (client, server) = (capacity(0), capacity(1));
        let (to_client, to_server) = (ring_len(client), ring_len(server));
        let (Some(to_client), Some(to_server)) = (to_client, to_server) else { return Err(Code::NOT_FOUND) };
        if (HEADER as u64 + to_client + to_server) > segment.size() as u64 {
            return Err(Code::NOT_FOUND);
        }
        let mut parts = [
            Part::new(End::Client, client, HEADER as u64, to_client),
            Part::new(End::Server, server, HEADER as u64 + to_client, to_server),
        ];
        if end == End::Server {
            parts.swap(0, 1);
        }
        let [incoming, outgoing] = parts;
        Ok(Channel { segment, end, incoming, outgoing })
    }

    fn header(&self) -> &Header {
        self.segment.at(0).expect(CHECKED)
    }

    fn ring(&self, part: &Part) -> &Ring {
        &self.header().rings[part.reader as usize]
    }

    fn record(&self, part: &Part, offset: u64) -> &Record {
        self.segment.at(part.at + offset as usize).expect(CHECKED)
    }

    /// The segment's descriptor.
    pub fn fd(&self) -> i32 {
        self.segment.fd()
    }

    /// Both ends have the segment now.
    pub fn hide(&self) {
        self.segment.hide();
    }

    /// What the peer can receive.
    pub fn peer_capacity(&self) -> Capacity {
        self.outgoing.capacity
    }

    /// Says what this end is.
    pub fn set_life(&self, life: Life) {
        self.header().life[self.end as usize].store(life as u32, SeqCst);
    }

    /// What the other end says of itself.
    pub fn peer_life(&self) -> Life {
        match self.header().life[self.end.other() as usize].load(SeqCst) {
            0 => Life::Absent,
            1 => Life::Up,
            _ => Life::Closed,
        }
    }

    /// Delivers bytes if there is room for them; `message` for those that count as one. What it gives is whether it did.
    /// The peer is to be told afterwards.
    pub fn push(&self, kind: u32, bytes: *const u8, len: u32, message: bool) -> bool {
        let fits = self.fits(len, message) || {
            // The reader looks at `blocked` after it has made room.
            self.ring(&self.outgoing).blocked.store(1, SeqCst);
            self.fits(len, message)
        };
        if fits {
            self.write(kind, bytes, len, message);
        }
        fits
    }

    /// Bytes that a record costs at the writer's position: itself, and what is left of the ring if it has to go round.
    fn cost(&self, len: u32) -> (u64, u64) {
        let part = &self.outgoing;
        let left = part.len - part.offset(part.here.get());
        let size = stride(len);
        if left < size { (left, left + size) } else { (0, size) }
    }

    fn fits(&self, len: u32, message: bool) -> bool {
        let part = &self.outgoing;
        let ring = self.ring(part);
        let (_, cost) = self.cost(len);
        let depth = u64::from(part.capacity.depth);
        let roomy = |part: &Part| {
            part.here.get().saturating_sub(part.there.get()) + cost <= part.len
                && (!message || part.messages.get().saturating_sub(part.taken.get()) < depth)
        };
        if roomy(part) {
            return true;
        }
        part.there.set(ring.head.load(SeqCst));
        part.taken.set(ring.taken.load(SeqCst));
        roomy(part)
    }

    fn write(&self, kind: u32, bytes: *const u8, len: u32, message: bool) {
        let part = &self.outgoing;
        let (filler, cost) = self.cost(len);
        let from = part.here.get();
        if filler > 0 {
            let record = self.record(part, part.offset(from));
            record.len.store((filler - RECORD) as u32, SeqCst);
            record.kind.store(FILLER, SeqCst);
        }
        let offset = part.offset(from + filler);
        let record = self.record(part, offset);
        record.len.store(len, SeqCst);
        record.kind.store(kind, SeqCst);
        let to = self.segment.address(part.at + (offset + RECORD) as usize, len as usize).expect(CHECKED);
        fault::point();
        if len > 0 {
            // SAFETY: the caller lends `len` bytes; the target is inside our segment, and the reader does not look at it
            // before the tail says so.
            unsafe { libc::memcpy(to as *mut libc::c_void, bytes.cast(), len as usize) };
        }
        fault::point();
        part.here.set(from + cost);
        if message {
            part.messages.set(part.messages.get() + 1);
        }
        self.ring(part).tail.store(from + cost, SeqCst);
        fault::point();
    }

    /// The next record, if one has come. An error is nonsense of the peer.
    pub fn front(&self) -> Res<Option<Incoming>> {
        let part = &self.incoming;
        loop {
            let here = part.here.get();
            if part.there.get() <= here {
                part.there.set(self.ring(part).tail.load(SeqCst));
                if part.there.get() <= here {
                    return Ok(None);
                }
            }
            let offset = part.offset(here);
            let record = self.record(part, offset);
            let (len, kind) = (record.len.load(SeqCst), record.kind.load(SeqCst));
            if stride(len) > part.len - offset || here + stride(len) > part.there.get() {
                return Err(Code::UNEXPECTED);
            }
            if kind != FILLER {
                let at = part.at + (offset + RECORD) as usize;
                let addr = self.segment.address(at, len as usize).ok_or(Code::UNEXPECTED)?;
                return Ok(Some(Incoming { kind, addr, len }));
            }
            part.here.set(here + stride(len));
        }
    }

    /// Whether something has come.
    pub fn has_incoming(&self) -> bool {
        self.ring(&self.incoming).tail.load(SeqCst) > self.incoming.here.get()
    }

    /// The record at the front has been seen to. Tells whether the peer waits for the room.
    pub fn pop(&self, message: bool) -> bool {
        let part = &self.incoming;
        let ring = self.ring(part);
        let len = self.record(part, part.offset(part.here.get())).len.load(SeqCst);
        // Checked by `front`; whatever the peer has made of it since, positions stay in order.
        let next = (part.here.get() + stride(len)).min(part.there.get());
        part.here.set(next);
        fault::point();
        if message {
            part.messages.set(part.messages.get() + 1);
            ring.taken.store(part.messages.get(), SeqCst);
        }
        ring.head.store(next, SeqCst);
        fault::point();
        ring.blocked.load(SeqCst) != 0 && ring.blocked.swap(0, SeqCst) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn pair(depth: u32, message: u32) -> (Channel, Channel) {
        let capacity = Capacity { message, depth };
        let server = Channel::create(End::Server, capacity, capacity).unwrap();
        let segment = Segment::open(format!("/proc/self/fd/{}", server.fd()).as_ref()).unwrap();
        (server, Channel::attach(segment, End::Client).unwrap())
    }

    fn push(channel: &Channel, bytes: &[u8]) -> bool {
        channel.push(1, bytes.as_ptr(), bytes.len() as u32, true)
    }

    fn pop(channel: &Channel) -> Option<Vec<u8>> {
        let found = channel.front().unwrap()?;
        // SAFETY: where the front is, until `pop`.
        let bytes =
            unsafe { std::slice::from_raw_parts(found.addr as *const u8, found.len as usize) }.to_vec();
        channel.pop(true);
        Some(bytes)
    }

    #[test]
    fn messages_come_whole_and_in_order_for_many_rounds() {
        let (server, client) = pair(3, 100);
        let mut expected = VecDeque::new();
        for round in 0..5000usize {
            let message: Vec<u8> = (0..round * 7 % 101).map(|i| (i + round) as u8).collect();
            if push(&client, &message) {
                expected.push_back(message);
            }
            if round % 5 != 0 {
                assert_eq!(pop(&server), expected.pop_front());
            }
            assert!(expected.len() <= 3);
        }
    }

    #[test]
    fn a_queue_takes_as_many_of_the_largest_as_it_is_deep_and_no_more_of_the_smallest() {
        for size in [0, 1, 4080] {
            let (server, client) = pair(5, 4080);
            for start in 0..300 {
                let message = vec![start as u8; size];
                for _ in 0..5 {
                    assert!(push(&client, &message));
                }
                assert!(!push(&client, &message));
                for _ in 0..5 {
                    assert_eq!(pop(&server).as_deref(), Some(&message[..]));
                }
                assert_eq!(pop(&server), None);
            }
        }
    }

    #[test]
    fn who_waits_for_room_is_named_once() {
        let (server, client) = pair(1, 10);
        assert!(push(&client, b"one") && !push(&client, b"two"));
        assert!(server.front().unwrap().is_some() && server.pop(true));
        assert!(push(&client, b"two"));
        assert!(server.front().unwrap().is_some() && !server.pop(true));
    }

    #[test]
    fn nonsense_of_the_peer_is_an_error() {
        let (server, client) = pair(2, 10);
        assert!(push(&client, b"fine"));
        let part = &client.outgoing;
        client.record(part, 0).len.store(1 << 30, SeqCst);
        assert_eq!(server.front(), Err(Code::UNEXPECTED));
        assert!(
            Channel::create(End::Client, Capacity { message: u32::MAX, depth: u32::MAX }, part.capacity)
                .is_err()
        );
    }
}
