//! The segment of a running context: its connections, their send queues, the receive pool and the mailbox.
//!
//! The owner creates it with the sizes that its configuration asks for; peers map it. Positions count up for ever
//! and are reduced to an index when used; whatever a peer reads here it reads once and checks.

use super::bell::Bell;
use super::clock;
use super::mailbox::Letter;
use super::process::Process;
use super::region::{Piece, RegionId};
use super::route::Route;
use super::shm::{Segment, Shared};
use super::word::{Phase, State, Word};
use crate::code::{Code, Res};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// A running context of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ContextId {
    /// Slot in the process's table of contexts.
    pub index: u32,
    /// Odd; tells this context from others that had the slot.
    pub generation: u32,
}

impl ContextId {
    /// As one number for shared memory.
    pub fn bits(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.generation)
    }

    /// From shared memory.
    pub fn from_bits(bits: u64) -> Self {
        ContextId { index: (bits >> 32) as u32, generation: bits as u32 }
    }
}

/// What a context was configured for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Connections.
    pub conns: u32,
    /// Send queue entries for each connection, a power of two.
    pub sends: u32,
    /// Receive pool entries, a power of two.
    pub receives: u32,
    /// Buffers in a chain of a send-side task.
    pub send_pieces: u32,
    /// Buffers in a chain of a receive task.
    pub receive_pieces: u32,
}

/// Letters that fit in a mailbox.
pub const LETTERS: u32 = 256;

#[repr(C)]
struct Header {
    magic: AtomicU64,
    id: AtomicU64,
    conns: AtomicU32,
    sends: AtomicU32,
    receives: AtomicU32,
    send_pieces: AtomicU32,
    receive_pieces: AtomicU32,
    /// 1 while the context accepts work from peers.
    open: AtomicU32,
    /// `DOCA_ACCESS_FLAG_*` that peers have on memory reached through this context.
    permissions: AtomicU32,
    transport: AtomicU32,
    bell: Bell,
    /// Until when the context neither executes nor answers, in nanoseconds of the monotonic clock.
    frozen_until: AtomicU64,
    /// How its packets travel, where connections were made by descriptors.
    route: AtomicU64,
    /// The receive pool: next entry to claim, next entry to post.
    receive_head: AtomicU64,
    receive_tail: AtomicU64,
    /// 1 while the owner hands receives out to links that wait.
    hands_out: AtomicU32,
    /// The owner's: the link that comes first next time.
    turn: AtomicU32,
    /// The mailbox: next letter to read, next letter to write.
    letter_head: AtomicU64,
    letter_tail: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for Header {}

/// State of a connection as peers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// No connection.
    Free = 0,
    /// Exists, not connected: nothing is executed yet.
    Init = 1,
    /// This side is set up.
    Ready = 2,
    /// Broken; what is queued is flushed.
    Error = 3,
}

/// One end of a connection.
#[repr(C)]
pub struct Link {
    state: AtomicU32,
    /// Tells this connection from earlier ones in the slot.
    pub generation: AtomicU32,
    /// The peer, valid in state Ready.
    peer_process: AtomicU64,
    peer_context: AtomicU64,
    peer_link: AtomicU64,
    /// The send queue: next entry to execute, next entry to post.
    pub head: AtomicU64,
    /// See `head`.
    pub tail: AtomicU64,
    /// 1 where the contexts' GIDs decide whether the ends reach each other.
    pub by_gid: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for Link {}

/// One end of a connection, by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkId {
    /// Slot in the context.
    pub index: u32,
    /// Tells it from others that had the slot.
    pub generation: u32,
}

impl LinkId {
    /// As one number for shared memory.
    pub fn bits(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.generation)
    }

    /// From shared memory.
    pub fn from_bits(bits: u64) -> Self {
        LinkId { index: (bits >> 32) as u32, generation: bits as u32 }
    }
}

/// The far end of a connection: enough to find it and to recognise it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FarEnd {
    /// Its process, as a lock word.
    pub process: u64,
    /// Its context.
    pub context: ContextId,
    /// Its link.
    pub link: LinkId,
}

impl Link {
    /// The state.
    pub fn state(&self) -> LinkState {
        match self.state.load(SeqCst) {
            1 => LinkState::Init,
            2 => LinkState::Ready,
            3 => LinkState::Error,
            _ => LinkState::Free,
        }
    }

    /// Changes the state.
    pub fn set_state(&self, state: LinkState) {
        self.state.store(state as u32, SeqCst);
    }

    /// Breaks the connection if it is in use.
    pub fn fail(&self) {
        for state in [LinkState::Ready, LinkState::Init] {
            let _ = self.state.compare_exchange(state as u32, LinkState::Error as u32, SeqCst, SeqCst);
        }
    }

    /// Sets the far end and becomes Ready.
    pub fn connect(&self, far: FarEnd) {
        self.peer_process.store(far.process, SeqCst);
        self.peer_context.store(far.context.bits(), SeqCst);
        self.peer_link.store(far.link.bits(), SeqCst);
        self.set_state(LinkState::Ready);
    }

    /// The far end.
    pub fn far(&self) -> FarEnd {
        FarEnd {
            process: self.peer_process.load(SeqCst),
            context: ContextId::from_bits(self.peer_context.load(SeqCst)),
            link: LinkId::from_bits(self.peer_link.load(SeqCst)),
        }
    }
}

/// A stretch of memory in a queue entry.
#[repr(C)]
pub struct SharedPiece {
    addr: AtomicU64,
    len: AtomicU64,
    region: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for SharedPiece {}

impl SharedPiece {
    /// Writes it.
    pub fn set(&self, piece: Piece) {
        self.addr.store(piece.addr, Relaxed);
        self.len.store(piece.len, Relaxed);
        self.region.store(piece.region.bits(), Relaxed);
    }

    /// Reads it.
    pub fn get(&self) -> Piece {
        Piece {
            addr: self.addr.load(Relaxed),
            len: self.len.load(Relaxed),
            region: RegionId::from_bits(self.region.load(Relaxed)),
        }
    }
}

/// A posted send-side operation.
#[repr(C)]
pub struct SendEntry {
    /// Phase and claimant.
    pub state: State,
    /// An [`Operation`](super::operation::Operation) as a number.
    pub operation: AtomicU32,
    /// An [`Outcome`](super::operation::Outcome) as a number, valid in phase Done.
    pub outcome: AtomicU32,
    /// Immediate data, bits as the program gave them.
    pub immediate: AtomicU32,
    /// Local pieces that follow the entry.
    pub pieces: AtomicU32,
    /// Bytes to move.
    pub length: AtomicU64,
    /// Remote address and region of one-sided operations.
    pub remote_addr: AtomicU64,
    /// See `remote_addr`.
    pub remote_region: AtomicU64,
    /// First operand: compare or add.
    pub first: AtomicU64,
    /// Second operand: swap.
    pub second: AtomicU64,
    /// When the entry first could not be executed; zero if it never had to wait.
    pub since: AtomicU64,
    /// Why it waits: a [`Wait`](super::operation::Wait) as a number.
    pub wait: AtomicU64,
}
// SAFETY: atomic integers only (`State` is one).
unsafe impl Shared for SendEntry {}

/// A posted receive.
#[repr(C)]
pub struct ReceiveEntry {
    /// Phase and claimant.
    pub state: State,
    /// See [`SendEntry::outcome`].
    pub outcome: AtomicU32,
    /// `doca_rdma_opcode`
    pub opcode: AtomicU32,
    /// Immediate data.
    pub immediate: AtomicU32,
    /// Pieces that follow the entry.
    pub pieces: AtomicU32,
    /// Bytes received.
    pub length: AtomicU64,
    /// The link of this context on which the message came.
    pub link: AtomicU64,
}
// SAFETY: atomic integers only (`State` is one).
unsafe impl Shared for ReceiveEntry {}

const MAGIC: u64 = u64::from_le_bytes(*b"docactx\x01");

/// Byte offsets of the parts, computed from the sizes by both sides.
#[derive(Clone, Copy, Debug)]
struct Layout {
    links: usize,
    active: usize,
    waiting: usize,
    letters: usize,
    receives: usize,
    receive_stride: usize,
    sends: usize,
    send_stride: usize,
    len: usize,
}

impl Layout {
    /// `None` if the sizes are absurd.
    fn of(sizes: Sizes) -> Option<Layout> {
        let sane = sizes.sends.is_power_of_two()
            && sizes.receives.is_power_of_two()
            && sizes.conns > 0
            && [sizes.conns, sizes.sends, sizes.receives].iter().all(|n| *n <= 1 << 20)
            && [sizes.send_pieces, sizes.receive_pieces].iter().all(|n| (1..=1 << 12).contains(n));
        if !sane {
            return None;
        }
        let words = sizes.conns.div_ceil(64) as usize * 8;
        let stride = |head: usize, pieces: u32| {
            (head + pieces as usize * size_of::<SharedPiece>()).next_multiple_of(64)
        };
        let send_stride = stride(size_of::<SendEntry>(), sizes.send_pieces);
        let receive_stride = stride(size_of::<ReceiveEntry>(), sizes.receive_pieces);
        let mut at = size_of::<Header>().next_multiple_of(64);
        let mut take = |bytes: usize| {
            let here = at;
            at += bytes.next_multiple_of(64);
            here
        };
        let links = take(sizes.conns as usize * size_of::<Link>());
        let active = take(words);
        let waiting = take(words);
        let letters = take(LETTERS as usize * size_of::<Letter>());
        let receives = take(sizes.receives as usize * receive_stride);
        let sends = take((sizes.conns as usize * sizes.sends as usize).checked_mul(send_stride)?);
        Some(Layout {
            links,
            active,
            waiting,
            letters,
            receives,
            receive_stride,
            sends,
            send_stride,
            len: at,
        })
    }
}

/// A context's segment as one process sees it: its owner's or a peer's.
#[derive(Debug)]
pub struct ContextView {
    process: Arc<Process>,
    id: ContextId,
    sizes: Sizes,
    layout: Layout,
    segment: Segment,
}

const CHECKED: &str = "the segment was checked to hold its layout";

impl ContextView {
    /// The owner's: a new, closed context.
    pub fn create(process: Arc<Process>, id: ContextId, sizes: Sizes) -> Res<ContextView> {
        let layout = Layout::of(sizes).ok_or(Code::NO_MEMORY)?;
        let segment = Segment::create(c"doca-sim-context", layout.len)?;
        let view = ContextView { process, id, sizes, layout, segment };
        let header = view.header();
        header.id.store(id.bits(), SeqCst);
        header.conns.store(sizes.conns, SeqCst);
        header.sends.store(sizes.sends, SeqCst);
        header.receives.store(sizes.receives, SeqCst);
        header.send_pieces.store(sizes.send_pieces, SeqCst);
        header.receive_pieces.store(sizes.receive_pieces, SeqCst);
        header.magic.store(MAGIC, SeqCst);
        Ok(view)
    }

    /// A peer's.
    pub(super) fn attach(process: Arc<Process>, id: ContextId, segment: Segment) -> Res<ContextView> {
        let header = segment.at::<Header>(0).ok_or(Code::NOT_FOUND)?;
        if header.magic.load(SeqCst) != MAGIC || header.id.load(SeqCst) != id.bits() {
            return Err(Code::NOT_FOUND);
        }
        let sizes = Sizes {
            conns: header.conns.load(SeqCst),
            sends: header.sends.load(SeqCst),
            receives: header.receives.load(SeqCst),
            send_pieces: header.send_pieces.load(SeqCst),
            receive_pieces: header.receive_pieces.load(SeqCst),
        };
        let layout =
            Layout::of(sizes).filter(|layout| layout.len <= segment.size()).ok_or(Code::NOT_FOUND)?;
        Ok(ContextView { process, id, sizes, layout, segment })
    }

    fn header(&self) -> &Header {
        self.segment.at(0).expect(CHECKED)
    }

    /// Whose it is.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Its name.
    pub fn id(&self) -> ContextId {
        self.id
    }

    /// What it was configured for.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The segment's descriptor.
    pub fn fd(&self) -> i32 {
        self.segment.fd()
    }

    /// Opens or closes it for work from peers.
    pub fn set_open(&self, open: bool) {
        self.header().open.store(open.into(), SeqCst);
    }

    /// Whether it accepts work from peers.
    pub fn is_open(&self) -> bool {
        self.header().open.load(SeqCst) == 1
    }

    /// The rights that peers have through this context.
    pub fn permissions(&self) -> u32 {
        self.header().permissions.load(SeqCst)
    }

    /// Sets rights, transport and route, before the context opens.
    pub fn describe(&self, permissions: u32, transport: u32, route: Route) {
        self.header().route.store(route.bits(), SeqCst);
        self.header().permissions.store(permissions, SeqCst);
        self.header().transport.store(transport, SeqCst);
    }

    /// How its packets travel.
    pub fn route(&self) -> Route {
        Route::from_bits(self.header().route.load(SeqCst))
    }

    /// From now on until then, the context neither executes nor answers.
    pub fn freeze(&self, until: u64) {
        self.header().frozen_until.store(until, SeqCst);
    }

    /// Until when it is frozen, if it is.
    pub fn frozen_until(&self) -> Option<u64> {
        let until = self.header().frozen_until.load(Relaxed);
        (until != 0 && clock::now() < until).then_some(until)
    }

    /// `doca_rdma_transport_type`
    pub fn transport(&self) -> u32 {
        self.header().transport.load(SeqCst)
    }

    /// A link, if the context has so many.
    pub fn link(&self, index: u32) -> Option<&Link> {
        if index >= self.sizes.conns {
            return None;
        }
        self.segment.at(self.layout.links + index as usize * size_of::<Link>())
    }

    /// A link by name: `None` if another connection has the slot now.
    pub fn named_link(&self, id: LinkId) -> Option<&Link> {
        self.link(id.index).filter(|link| link.generation.load(SeqCst) == id.generation)
    }

    /// The entry at a position of a link's send queue, the pieces behind it, and the lap of the position.
    pub fn send_entry(&self, link: u32, position: u64) -> (&SendEntry, &[SharedPiece], u64) {
        let slot = link as usize % self.sizes.conns as usize * self.sizes.sends as usize
            + (position as usize & (self.sizes.sends as usize - 1));
        let at = self.layout.sends + slot * self.layout.send_stride;
        let entry = self.segment.at(at).expect(CHECKED);
        let pieces = self.segment.array(at + size_of::<SendEntry>(), self.sizes.send_pieces as usize);
        (entry, pieces.expect(CHECKED), Word::lap(position, self.sizes.sends))
    }

    /// The entry at a position of the receive pool, likewise.
    pub fn receive_entry(&self, position: u64) -> (&ReceiveEntry, &[SharedPiece], u64) {
        let slot = position as usize & (self.sizes.receives as usize - 1);
        let at = self.layout.receives + slot * self.layout.receive_stride;
        let entry = self.segment.at(at).expect(CHECKED);
        let pieces = self.segment.array(at + size_of::<ReceiveEntry>(), self.sizes.receive_pieces as usize);
        (entry, pieces.expect(CHECKED), Word::lap(position, self.sizes.receives))
    }

    /// Next receive to claim and next position to post.
    pub fn receive_cursors(&self) -> (&AtomicU64, &AtomicU64) {
        (&self.header().receive_head, &self.header().receive_tail)
    }

    /// The mailbox's letters, next to read, next to write.
    pub fn mailbox(&self) -> (&[Letter], &AtomicU64, &AtomicU64) {
        let letters = self.segment.array(self.layout.letters, LETTERS as usize).expect(CHECKED);
        (letters, &self.header().letter_head, &self.header().letter_tail)
    }

    fn bitmap(&self, at: usize) -> &[AtomicU64] {
        self.segment.array(at, self.sizes.conns.div_ceil(64) as usize).expect(CHECKED)
    }

    /// One bit for each link whose send queue may have something done.
    pub fn active(&self) -> &[AtomicU64] {
        self.bitmap(self.layout.active)
    }

    /// One bit for each link whose peer waits for a receive to be posted here.
    pub fn waiting(&self) -> &[AtomicU64] {
        self.bitmap(self.layout.waiting)
    }

    /// Whether the owner hands receives out to links that wait: nobody else takes one meanwhile.
    pub(super) fn hands_out(&self) -> bool {
        self.header().hands_out.load(SeqCst) == 1
    }

    /// Begins or ends that.
    pub(super) fn set_hands_out(&self, hands_out: bool) {
        self.header().hands_out.store(hands_out.into(), SeqCst);
    }

    /// The link whose turn it is to get receives.
    pub(super) fn turn(&self) -> u32 {
        self.header().turn.load(Relaxed)
    }

    /// The next one.
    pub(super) fn set_turn(&self, link: u32) {
        self.header().turn.store(if link < self.sizes.conns { link } else { 0 }, Relaxed);
    }

    /// The owner is about to sleep: `wake_fd` is where a byte wakes it.
    pub fn arm(&self, wake_fd: i32) {
        self.header().bell.arm(wake_fd);
    }

    /// The owner is awake.
    pub fn disarm(&self) {
        self.header().bell.disarm();
    }

    /// Wakes the owner if it sleeps. Called after whatever it should see has been written.
    pub fn notify(&self) {
        self.header().bell.ring(&self.process);
    }
}

/// Whether an entry waits to be claimed in its present lap.
pub fn is_posted(word: Word, lap: u64) -> bool {
    word == Word::new(Phase::Posted, lap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_have_no_layout() {
        let sizes = Sizes { conns: 1, sends: 128, receives: 16, send_pieces: 1, receive_pieces: 4 };
        assert!(Layout::of(sizes).is_some());
        assert!(Layout::of(Sizes { sends: 100, ..sizes }).is_none());
        assert!(Layout::of(Sizes { conns: 0, ..sizes }).is_none());
        assert!(Layout::of(Sizes { conns: u32::MAX, sends: 1 << 31, ..sizes }).is_none());
        assert!(Layout::of(Sizes { send_pieces: u32::MAX, ..sizes }).is_none());
    }
}
