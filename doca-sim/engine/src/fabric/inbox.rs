//! The buffers that a Comch consumer has posted: a segment of the consumer's process, which producers of the peer fill.
//!
//! ```text
//! head <= usable <= advertised <= posted
//!   |        |           |           the consumer has posted so many
//!   |        |           the consumer's control path has told the peer of so many
//!   |        the peer's control path has heard of so many
//!   so many have been taken by producers
//! ```
//!
//! A producer claims the buffer at the head, moves the head on, copies, and marks the entry done. The consumer reports
//! entries in their order.

use super::bell::Bell;
use super::context::SharedPiece;
use super::process::{self, Process};
use super::region::Piece;
use super::shm::{Segment, Shared};
use super::word::{Phase, State, Word};
use crate::code::{Code, Res};
use crate::fault;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// What a consumer was configured for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Buffers that can be posted, a power of two.
    pub entries: u32,
    /// Buffers in a chain.
    pub pieces: u32,
    /// Bytes of immediate data.
    pub immediate: u32,
}

#[repr(C)]
struct Header {
    magic: AtomicU64,
    entries: AtomicU32,
    pieces: AtomicU32,
    immediate: AtomicU32,
    /// 1 while producers may come.
    open: AtomicU32,
    /// 1 once the peer knows of the consumer.
    known: AtomicU32,
    /// 1 once a producer has found no buffer since the last that it was told of.
    starved: AtomicU32,
    bell: Bell,
    posted: AtomicU64,
    advertised: AtomicU64,
    usable: AtomicU64,
    head: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for Header {}

/// A posted buffer.
#[repr(C)]
struct Entry {
    /// Phase and claimant.
    state: State,
    outcome: AtomicU32,
    pieces: AtomicU32,
    length: AtomicU64,
    producer: AtomicU32,
    immediate: AtomicU32,
}
// SAFETY: atomic integers only (`State` is one).
unsafe impl Shared for Entry {}

const MAGIC: u64 = u64::from_le_bytes(*b"docabox\x01");
const CHECKED: &str = "the segment was checked to hold its layout";

/// How a posted buffer came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Filled.
    Filled = 1,
    /// Empty: the consumer stops.
    Flushed = 2,
    /// Its memory could not be reached, or whoever was filling it died.
    Broken = 3,
}

/// What a finished entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// How it ended.
    pub fate: Fate,
    /// Bytes.
    pub length: u64,
    /// Who filled it.
    pub producer: u32,
    /// Bytes of immediate data.
    pub immediate: u32,
}

/// A consumer's segment as its process or the peer's sees it.
#[derive(Debug)]
pub struct Inbox {
    process: Arc<Process>,
    shape: Shape,
    stride: usize,
    segment: Segment,
}

/// An entry that this process is filling.
pub struct Claim<'a> {
    inbox: &'a Inbox,
    entry: &'a Entry,
    position: u64,
    lap: u64,
}

/// Which buffers a producer knows of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Credit {
    /// All that are posted.
    Posted,
    /// Those that the consumer's control path has told of.
    Advertised,
    /// Those that the producer's control path has heard of, besides.
    Heard,
}

/// Why nothing can be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unclaimed {
    /// The consumer is gone.
    Closed,
    /// No buffer is posted, as far as this side knows.
    Empty,
    /// The buffer at the head has room for fewer bytes.
    Small,
}

fn stride(shape: Shape) -> usize {
    let pieces = shape.pieces as usize * size_of::<SharedPiece>();
    (size_of::<Entry>() + pieces + shape.immediate as usize).next_multiple_of(64)
}

const FIRST: usize = size_of::<Header>().next_multiple_of(64);

fn len(shape: Shape) -> Option<usize> {
    let sane = shape.entries.is_power_of_two()
        && shape.entries <= 1 << 20
        && (1..=1 << 12).contains(&shape.pieces)
        && shape.immediate <= 1 << 16;
    sane.then(|| FIRST + shape.entries as usize * stride(shape))
}

impl Inbox {
    /// An empty one of this process, open.
    pub fn create(shape: Shape) -> Res<Inbox> {
        let len = len(shape).ok_or(Code::NO_MEMORY)?;
        let segment = Segment::create(c"doca-sim-inbox", len)?;
        let inbox = Inbox { process: process::local()?.clone(), shape, stride: stride(shape), segment };
        let header = inbox.header();
        header.entries.store(shape.entries, SeqCst);
        header.pieces.store(shape.pieces, SeqCst);
        header.immediate.store(shape.immediate, SeqCst);
        header.open.store(1, SeqCst);
        header.magic.store(MAGIC, SeqCst);
        Ok(inbox)
    }

    /// One of another process, or of another end in this one.
    pub fn attach(process: Arc<Process>, segment: Segment) -> Res<Inbox> {
        let header: &Header = segment.at(0).ok_or(Code::NOT_FOUND)?;
        let shape = Shape {
            entries: header.entries.load(SeqCst),
            pieces: header.pieces.load(SeqCst),
            immediate: header.immediate.load(SeqCst),
        };
        let fits = len(shape).is_some_and(|len| len <= segment.size());
        if header.magic.load(SeqCst) != MAGIC || !fits {
            return Err(Code::NOT_FOUND);
        }
        Ok(Inbox { process, shape, stride: stride(shape), segment })
    }

    fn header(&self) -> &Header {
        self.segment.at(0).expect(CHECKED)
    }

    fn offset(&self, position: u64) -> usize {
        FIRST + (position as usize & (self.shape.entries as usize - 1)) * self.stride
    }

    fn entry(&self, position: u64) -> (&Entry, &[SharedPiece], u64) {
        let at = self.offset(position);
        let entry = self.segment.at(at).expect(CHECKED);
        let pieces = self.segment.array(at + size_of::<Entry>(), self.shape.pieces as usize);
        (entry, pieces.expect(CHECKED), Word::lap(position, self.shape.entries))
    }

    fn immediate_at(&self, position: u64) -> usize {
        let pieces = self.shape.pieces as usize * size_of::<SharedPiece>();
        let at = self.offset(position) + size_of::<Entry>() + pieces;
        self.segment.address(at, self.shape.immediate as usize).expect(CHECKED)
    }

    /// The consumer's process.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// What it was configured for.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The segment's descriptor.
    pub fn fd(&self) -> i32 {
        self.segment.fd()
    }

    /// Who sleeps.
    pub fn bell(&self) -> &Bell {
        &self.header().bell
    }

    /// Wakes the consumer if it sleeps.
    pub fn ring(&self) {
        self.bell().ring(&self.process);
    }

    /// The peer knows of the consumer.
    pub fn set_known(&self) {
        self.header().known.store(1, SeqCst);
    }

    /// Whether the peer knows of the consumer.
    pub fn is_known(&self) -> bool {
        self.header().known.load(SeqCst) == 1
    }

    /// Whether producers may come.
    pub fn is_open(&self) -> bool {
        self.header().open.load(SeqCst) == 1
    }

    /// Tells of everything that was posted; whether that is more than before.
    pub fn advertise(&self) -> bool {
        let header = self.header();
        let posted = header.posted.load(SeqCst);
        header.advertised.swap(posted, SeqCst) != posted
    }

    /// Whether a producer has found no buffer since this was asked last. To be asked after [`Inbox::advertise`].
    pub fn was_starved(&self) -> bool {
        self.header().starved.swap(0, SeqCst) == 1
    }

    /// Hears of everything that was told of.
    pub fn hear(&self) {
        let header = self.header();
        header.usable.store(header.advertised.load(SeqCst), SeqCst);
    }

    /// Posts a buffer at the owner's next position, which it knows to be free.
    pub fn post(&self, position: u64, pieces: impl Iterator<Item = Piece>) {
        let (entry, room, lap) = self.entry(position);
        let mut count = 0;
        for (slot, piece) in room.iter().zip(pieces) {
            slot.set(piece);
            count += 1;
        }
        entry.pieces.store(count, Relaxed);
        fault::point();
        entry.state.set(Word::new(Phase::Posted, lap));
        self.header().posted.store(position + 1, SeqCst);
        fault::point();
    }

    /// Takes the next buffer, which must have room for `len` bytes.
    pub fn claim(&self, len: u64, credit: Credit) -> Result<Claim<'_>, Unclaimed> {
        let header = self.header();
        let Ok(me) = process::local().map(|process| process.id()) else { return Err(Unclaimed::Closed) };
        loop {
            if !self.is_open() {
                return Err(Unclaimed::Closed);
            }
            let position = header.head.load(SeqCst);
            let end = match credit {
                Credit::Posted => header.posted.load(SeqCst),
                Credit::Advertised => header.advertised.load(SeqCst),
                Credit::Heard => header.usable.load(SeqCst),
            };
            if position >= end {
                // What was told of before this was known is seen in another look.
                if header.starved.swap(1, SeqCst) == 0 {
                    continue;
                }
                return Err(Unclaimed::Empty);
            }
            let (entry, pieces, lap) = self.entry(position);
            let found = entry.state.get();
            let claimed = Word::claimed(me, lap);
            if found != Word::new(Phase::Posted, lap) {
                // Taken by somebody who has not moved the head yet, or who died before that.
                let _ = header.head.compare_exchange(position, position + 1, SeqCst, SeqCst);
                continue;
            }
            let count = (entry.pieces.load(Relaxed) as usize).min(pieces.len());
            let room = pieces[..count].iter().map(|piece| piece.get().len).fold(0, u64::saturating_add);
            if room < len {
                return Err(Unclaimed::Small);
            }
            if entry.state.swap(found, claimed) {
                fault::point();
                let _ = header.head.compare_exchange(position, position + 1, SeqCst, SeqCst);
                return Ok(Claim { inbox: self, entry, position, lap });
            }
        }
    }

    /// No producer may come any more; what is posted and not being filled comes back empty.
    pub fn close(&self, reported: u64) {
        let header = self.header();
        header.open.store(0, SeqCst);
        let Ok(me) = process::local().map(|process| process.id()) else { return };
        for position in reported..header.posted.load(SeqCst) {
            let (entry, _, lap) = self.entry(position);
            let posted = Word::new(Phase::Posted, lap);
            if entry.state.swap(posted, Word::claimed(me, lap)) {
                finish(entry, lap, Fate::Flushed);
            }
        }
        self.ring();
    }

    /// Ends entries whose claimants died while filling them.
    pub fn reap(&self, reported: u64) {
        for position in reported..self.header().posted.load(SeqCst) {
            let (entry, _, lap) = self.entry(position);
            let found = entry.state.get();
            let orphan = found.phase() == Phase::Claimed && found.lap_of() == lap;
            if orphan && !process::lives(found.claimant()) {
                entry.outcome.store(Fate::Broken as u32, Relaxed);
                entry.state.swap(found, Word::new(Phase::Done, lap));
            }
        }
    }

    /// Whether an entry is being filled.
    pub fn is_being_filled(&self, position: u64) -> bool {
        let (entry, _, lap) = self.entry(position);
        let found = entry.state.get();
        found.phase() == Phase::Claimed && found.lap_of() == lap
    }

    /// What came, if the entry is done.
    pub fn arrival(&self, position: u64) -> Option<Arrival> {
        let (entry, _, lap) = self.entry(position);
        if entry.state.get() != Word::new(Phase::Done, lap) {
            return None;
        }
        let fate = match entry.outcome.load(Relaxed) {
            1 => Fate::Filled,
            2 => Fate::Flushed,
            _ => Fate::Broken,
        };
        Some(Arrival {
            fate,
            length: entry.length.load(Relaxed),
            producer: entry.producer.load(Relaxed),
            immediate: entry.immediate.load(Relaxed).min(self.shape.immediate),
        })
    }

    /// Copies the immediate data of a finished entry.
    pub fn read_immediate(&self, position: u64, into: &mut [u8]) {
        let len = into.len().min(self.shape.immediate as usize);
        // SAFETY: inside the segment; `into` is our own.
        unsafe {
            libc::memcpy(into.as_mut_ptr().cast(), self.immediate_at(position) as *const libc::c_void, len)
        };
    }
}

fn finish(entry: &Entry, lap: u64, fate: Fate) {
    entry.outcome.store(fate as u32, Relaxed);
    if fate != Fate::Filled {
        entry.length.store(0, Relaxed);
        entry.producer.store(0, Relaxed);
        entry.immediate.store(0, Relaxed);
    }
    entry.state.set(Word::new(Phase::Done, lap));
}

impl Claim<'_> {
    /// Where the bytes go.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let (entry, pieces, _) = self.inbox.entry(self.position);
        let count = (entry.pieces.load(Relaxed) as usize).min(pieces.len());
        pieces[..count].iter().map(SharedPiece::get)
    }

    /// The bytes are there.
    pub fn filled(self, length: u64, producer: u32, immediate: &[u8]) {
        let len = immediate.len().min(self.inbox.shape.immediate as usize);
        // SAFETY: the entry is claimed, so nobody else writes there; inside the segment.
        unsafe {
            libc::memcpy(
                self.inbox.immediate_at(self.position) as *mut libc::c_void,
                immediate.as_ptr().cast(),
                len,
            )
        };
        self.entry.length.store(length, Relaxed);
        self.entry.producer.store(producer, Relaxed);
        self.entry.immediate.store(len as u32, Relaxed);
        fault::point();
        finish(self.entry, self.lap, Fate::Filled);
        fault::point();
        self.inbox.ring();
    }

    /// The buffer's memory could not be reached.
    pub fn broken(self) {
        finish(self.entry, self.lap, Fate::Broken);
        self.inbox.ring();
    }
}
