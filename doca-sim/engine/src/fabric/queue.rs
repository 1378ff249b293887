//! The NIC: executes the operation at the head of a send queue.
//!
//! Whoever comes by does it: the sender when it submits or progresses, its peer when it posts a receive or connects.
//! So a one-sided operation needs nothing of its target, and a sender that is blocked elsewhere is still served.
//! Operations of one connection are executed strictly in order, each under a claim that names its executor.

use super::context::{self, ContextView, FarEnd, Link, LinkId, SendEntry, SharedPiece};
use super::mailbox::{self, Control, Kind, Message};
use super::operation::{Operation, Outcome, Post, Wait};
use super::process;
use super::receives::{self, Received, Taker, opcode};
use super::region::{self, Piece, Refusal, RegionId};
use super::route::Route;
use super::stream::{Fault, Stream, transfer};
use super::word::{Phase, Word};
use super::{ProcId, bits, clock};
use crate::access::{LOCAL_READ_WRITE, RDMA_ATOMIC, RDMA_READ, RDMA_WRITE};
use crate::fault;
// Fields of an entry are Relaxed: its state word, which is SeqCst, publishes them.
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// `DOCA_RDMA_TRANSPORT_TYPE_DC`
const DC: u32 = 1;

enum Step {
    Done(Outcome),
    Wait(Wait),
}

/// Posts an operation at the owner's next position, which it knows to be free. Does not execute it.
pub fn post_send(
    own: &ContextView,
    link: u32,
    position: u64,
    post: &Post,
    pieces: impl Iterator<Item = Piece>,
) {
    let (entry, room, lap) = own.send_entry(link, position);
    entry.operation.store(post.operation as u32, Relaxed);
    entry.immediate.store(post.immediate, Relaxed);
    entry.length.store(post.length, Relaxed);
    entry.remote_addr.store(post.remote.addr, Relaxed);
    entry.remote_region.store(post.remote.region.bits(), Relaxed);
    entry.first.store(post.first, Relaxed);
    entry.second.store(post.second, Relaxed);
    entry.since.store(0, Relaxed);
    entry.wait.store(0, SeqCst);
    entry.pieces.store(write_pieces(room, pieces), Relaxed);
    fault::point();
    entry.state.set(Word::new(Phase::Posted, lap));
    fault::point();
    if let Some(link) = own.link(link) {
        link.tail.store(position + 1, SeqCst);
    }
}

pub(super) fn write_pieces(room: &[SharedPiece], pieces: impl Iterator<Item = Piece>) -> u32 {
    let mut count = 0;
    for (slot, piece) in room.iter().zip(pieces) {
        slot.set(piece);
        count += 1;
    }
    count
}

/// Executes what can be executed at the head of a link's send queue. `receiver` is the context of its far end, if it
/// can be reached at all.
pub fn pump(sender: &ContextView, index: u32, receiver: Option<&ContextView>) {
    pump_for(sender, index, receiver, &Taker::Passer);
}

/// The same, as far as receives are there for the taker.
pub(super) fn pump_for(sender: &ContextView, index: u32, receiver: Option<&ContextView>, taker: &Taker) {
    let Some(link) = sender.link(index) else { return };
    let Ok(me) = process::local().map(|process| process.id()) else { return };
    if sender.frozen_until().is_some() {
        return;
    }
    loop {
        let head = link.head.load(SeqCst);
        if head >= link.tail.load(SeqCst) {
            return;
        }
        let (entry, pieces, lap) = sender.send_entry(index, head);
        let found = entry.state.get();
        // Or done, reported and posted again before whoever executed it could move the head: it may have died there.
        if found == Word::new(Phase::Done, lap) || found.lap_of() != lap {
            let _ = link.head.compare_exchange(head, head + 1, SeqCst, SeqCst);
            continue;
        }
        if !context::is_posted(found, lap) {
            return;
        }
        if !entry.state.swap(found, Word::claimed(me, lap)) {
            continue;
        }
        fault::point();
        let step = match link.state() {
            context::LinkState::Error | context::LinkState::Free => Step::Done(Outcome::Flushed),
            context::LinkState::Init => Step::Wait(Wait::Peer),
            context::LinkState::Ready => {
                execute(&Ends { sender, index, link, entry, pieces, me, taker }, receiver)
            }
        };
        match step {
            Step::Done(outcome) => {
                fault::point();
                finish(sender, index, entry, lap, outcome);
                fault::point();
                let _ = link.head.compare_exchange(head, head + 1, SeqCst, SeqCst);
                if outcome != Outcome::Success {
                    link.fail();
                }
                sender.notify();
            }
            Step::Wait(reason) => {
                if entry.wait.swap(reason as u64, SeqCst) != reason as u64 {
                    entry.since.store(clock::now(), Relaxed);
                }
                entry.state.set(Word::new(Phase::Posted, lap));
                // What it waits for may have come while it was claimed, when its bringer had to leave it alone.
                if !can_go_on(sender, index, link, reason, receiver, taker) {
                    return;
                }
            }
        }
    }
}

fn finish(sender: &ContextView, index: u32, entry: &SendEntry, lap: u64, outcome: Outcome) {
    entry.outcome.store(outcome as u32, Relaxed);
    entry.state.set(Word::new(Phase::Done, lap));
    bits::set(sender.active(), index);
}

/// Ends the head of the owner's queue with an outcome if nobody is executing it: for timeouts, and for claimants that
/// have died.
pub fn fail_head(own: &ContextView, index: u32, outcome: Outcome) {
    let Some(link) = own.link(index) else { return };
    let Ok(me) = process::local().map(|process| process.id()) else { return };
    let head = link.head.load(SeqCst);
    if head >= link.tail.load(SeqCst) {
        return;
    }
    let (entry, _, lap) = own.send_entry(index, head);
    let found = entry.state.get();
    let free = context::is_posted(found, lap)
        || found.phase() == Phase::Claimed && found.claimant() != me && !process::lives(found.claimant());
    if free && entry.state.swap(found, Word::claimed(me, lap)) {
        link.fail();
        finish(own, index, entry, lap, outcome);
        let _ = link.head.compare_exchange(head, head + 1, SeqCst, SeqCst);
    }
}

/// What keeps the head of the owner's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Head {
    /// Nothing is queued.
    Idle,
    /// It can be executed, or is being executed by a living process.
    Moving,
    /// It waits, since a time in nanoseconds.
    Waiting(Wait, u64),
    /// Its claimant died.
    Orphaned,
}

/// Looks at the head of the owner's queue.
pub fn head(own: &ContextView, index: u32) -> Head {
    let Some(link) = own.link(index) else { return Head::Idle };
    let at = link.head.load(SeqCst);
    if at >= link.tail.load(SeqCst) {
        return Head::Idle;
    }
    let (entry, _, _) = own.send_entry(index, at);
    let found = entry.state.get();
    match found.phase() {
        Phase::Claimed if !process::lives(found.claimant()) => Head::Orphaned,
        Phase::Posted => match (entry.wait.load(SeqCst), entry.since.load(Relaxed)) {
            (1, since) => Head::Waiting(Wait::Peer, since),
            (2, since) => Head::Waiting(Wait::Receive, since),
            _ => Head::Moving,
        },
        _ => Head::Moving,
    }
}

/// A claimed entry and who it belongs to.
struct Ends<'a> {
    sender: &'a ContextView,
    index: u32,
    link: &'a Link,
    entry: &'a SendEntry,
    pieces: &'a [SharedPiece],
    me: ProcId,
    taker: &'a Taker,
}

impl Ends<'_> {
    /// The far end of a reliable connection breaks with it; a target of the DC transport goes on serving others.
    fn break_far(&self, far: &Link) {
        if self.sender.transport() != DC {
            far.fail();
        }
    }
}

fn far_link<'a>(
    link: &Link,
    receiver: Option<&'a ContextView>,
) -> Option<(&'a ContextView, &'a Link, LinkId)> {
    let receiver = receiver?;
    let FarEnd { context, link: id, .. } = link.far();
    let far = receiver.named_link(id)?;
    (receiver.id() == context && receiver.is_open()).then_some((receiver, far, id))
}

/// Whether the far end is set up for this connection, and for no other. A target of the DC transport serves whoever has
/// its descriptor: it never connects.
fn is_connected(sender: &ContextView, index: u32, link: &Link, receiver: &ContextView, far: &Link) -> bool {
    if !receiver.process().is_alive() || sender.transport() != receiver.transport() {
        return false;
    }
    if receiver.frozen_until().is_some() || unreachable(sender, link, receiver).is_some() {
        return false;
    }
    if sender.transport() == DC {
        return matches!(far.state(), context::LinkState::Init | context::LinkState::Ready);
    }
    let back = far.far();
    far.state() == context::LinkState::Ready
        && back.process == sender.process().id().bits()
        && back.context == sender.id()
        && back.link == LinkId { index, generation: link.generation.load(SeqCst) }
}

/// The routes of two ends that their GIDs keep apart.
pub fn unreachable(sender: &ContextView, link: &Link, receiver: &ContextView) -> Option<(Route, Route)> {
    if link.by_gid.load(Relaxed) == 0 {
        return None;
    }
    let (here, there) = (sender.route(), receiver.route());
    (!here.reaches(there)).then_some((here, there))
}

fn can_go_on(
    sender: &ContextView,
    index: u32,
    link: &Link,
    reason: Wait,
    receiver: Option<&ContextView>,
    taker: &Taker,
) -> bool {
    if link.state() != context::LinkState::Ready {
        return false;
    }
    let Some((receiver, far, id)) = far_link(link, receiver) else { return false };
    match reason {
        Wait::Peer => is_connected(sender, index, link, receiver, far),
        Wait::Receive => {
            // Its note may have been read meanwhile.
            bits::set(receiver.waiting(), id.index);
            taker.finds_one(receiver)
        }
    }
}

fn execute(ends: &Ends<'_>, receiver: Option<&ContextView>) -> Step {
    let found = far_link(ends.link, receiver);
    if ends.entry.operation.load(Relaxed) == Operation::Fault as u32 {
        if let Some((_, far, _)) = found {
            ends.break_far(far);
        }
        return Step::Done(Outcome::Injected);
    }
    let Some((receiver, far, far_id)) = found else { return Step::Wait(Wait::Peer) };
    if !is_connected(ends.sender, ends.index, ends.link, receiver, far) {
        return Step::Wait(Wait::Peer);
    }
    let Some(operation) = Operation::of(ends.entry.operation.load(Relaxed)) else {
        return Step::Done(Outcome::Abandoned);
    };
    let outcome = match operation {
        Operation::Send | Operation::SendImmediate => return message(ends, operation, receiver, far, far_id),
        Operation::WriteImmediate => return write_immediate(ends, receiver, far, far_id),
        Operation::Read => one_sided(ends, operation, receiver, |local, remote, length| {
            transfer(remote, local, length).map_err(|e| e.swapped())
        }),
        Operation::Write => one_sided(ends, operation, receiver, transfer),
        Operation::CompareSwap | Operation::FetchAdd => atomic(ends, operation, receiver),
        Operation::Fault => Outcome::Injected,
    };
    if outcome != Outcome::Success {
        ends.break_far(far);
    }
    Step::Done(outcome)
}

/// Send: the oldest posted receive of the peer's context takes the message.
fn message(ends: &Ends<'_>, op: Operation, receiver: &ContextView, far: &Link, far_id: LinkId) -> Step {
    let Some((slot, room, lap)) = receives::claim(receiver, ends.me, far_id.index, ends.taker) else {
        return Step::Wait(Wait::Receive);
    };
    fault::point();
    let length = ends.entry.length.load(Relaxed);
    let mut from = Stream::of(ends.sender.process(), ends.pieces, ends.entry.pieces.load(Relaxed), 0);
    let mut into = Stream::of(receiver.process(), room, slot.pieces.load(Relaxed), LOCAL_READ_WRITE);
    let opcode = if op == Operation::SendImmediate { opcode::SEND_IMMEDIATE } else { opcode::SEND };
    let (mine, theirs) = if length > into.total() {
        (Outcome::Length, Outcome::Length)
    } else {
        match transfer(&mut from, &mut into, length) {
            Ok(()) => (Outcome::Success, Outcome::Success),
            Err(Fault::Source(_)) => (Outcome::LocalAccess, Outcome::Abandoned),
            Err(Fault::Target(_)) => (Outcome::RemoteAddress, Outcome::LocalAccess),
        }
    };
    let immediate = ends.entry.immediate.load(Relaxed);
    receives::finish(slot, lap, Received { outcome: theirs, opcode, length, immediate, link: far_id });
    if mine != Outcome::Success {
        ends.break_far(far);
    }
    receiver.notify();
    Step::Done(mine)
}

/// Write with immediate: data as in a write, then a receive is consumed, which one that is refused leaves alone.
fn write_immediate(ends: &Ends<'_>, receiver: &ContextView, far: &Link, far_id: LinkId) -> Step {
    if let Err(outcome) = ask(ends, Operation::WriteImmediate, receiver) {
        ends.break_far(far);
        return Step::Done(outcome);
    }
    let Some((slot, _, lap)) = receives::claim(receiver, ends.me, far_id.index, ends.taker) else {
        return Step::Wait(Wait::Receive);
    };
    let outcome = one_sided(ends, Operation::WriteImmediate, receiver, |local, remote, length| {
        transfer(local, remote, length)
    });
    let theirs = if outcome == Outcome::Success { outcome } else { Outcome::Abandoned };
    let length = ends.entry.length.load(Relaxed);
    let immediate = ends.entry.immediate.load(Relaxed);
    let result =
        Received { outcome: theirs, opcode: opcode::WRITE_IMMEDIATE, length, immediate, link: far_id };
    receives::finish(slot, lap, result);
    if outcome != Outcome::Success {
        ends.break_far(far);
    }
    receiver.notify();
    Step::Done(outcome)
}

/// What the peer says to a transfer before a byte moves: the rights of its context, then those of its memory.
fn ask(ends: &Ends<'_>, operation: Operation, receiver: &ContextView) -> Result<(), Outcome> {
    let length = ends.entry.length.load(Relaxed);
    if length == 0 {
        return Ok(());
    }
    let needs = context_permits(ends, operation, receiver)?;
    let pinned = region::pin(receiver.process(), remote_piece(ends.entry, length), needs).map(drop);
    pinned.map_err(|refusal| remote_outcome(ends, receiver, operation, refusal))
}

/// The rights that an operation needs, if the peer's context has them.
fn context_permits(ends: &Ends<'_>, operation: Operation, receiver: &ContextView) -> Result<u32, Outcome> {
    let needs = operation.needs().unwrap_or(0);
    if needs & !receiver.permissions() == 0 {
        return Ok(needs);
    }
    refuse(ends, receiver, Holder::Context, operation, needs);
    Err(Outcome::Refused)
}

/// Read and write: the rights of the peer's context, then those of the memory, then the bytes.
fn one_sided(
    ends: &Ends<'_>,
    operation: Operation,
    receiver: &ContextView,
    go: impl FnOnce(&mut Stream<'_>, &mut Stream<'_>, u64) -> Result<(), Fault>,
) -> Outcome {
    let length = ends.entry.length.load(Relaxed);
    if length == 0 {
        return Outcome::Success;
    }
    let needs = match context_permits(ends, operation, receiver) {
        Ok(needs) => needs,
        Err(outcome) => return outcome,
    };
    let local_needs = if operation == Operation::Read { LOCAL_READ_WRITE } else { 0 };
    let mut local =
        Stream::of(ends.sender.process(), ends.pieces, ends.entry.pieces.load(Relaxed), local_needs);
    let mut remote = Stream::one(receiver.process(), remote_piece(ends.entry, length), needs);
    match go(&mut local, &mut remote, length) {
        Ok(()) => Outcome::Success,
        Err(Fault::Source(_)) => Outcome::LocalAccess,
        Err(Fault::Target(refusal)) => remote_outcome(ends, receiver, operation, refusal),
    }
}

fn atomic(ends: &Ends<'_>, operation: Operation, receiver: &ContextView) -> Outcome {
    if let Err(outcome) = context_permits(ends, operation, receiver) {
        return outcome;
    }
    let target = remote_piece(ends.entry, 8);
    if !target.addr.is_multiple_of(8) {
        return Outcome::Misaligned;
    }
    let result = match ends.pieces.first().filter(|_| ends.entry.pieces.load(Relaxed) > 0) {
        Some(piece) => Piece { len: 8, ..piece.get() },
        None => return Outcome::LocalAccess,
    };
    let Ok(result) = region::pin(ends.sender.process(), result, LOCAL_READ_WRITE) else {
        return Outcome::LocalAccess;
    };
    let target = match region::pin(receiver.process(), target, RDMA_ATOMIC) {
        Ok(pin) => pin,
        Err(refusal) => return remote_outcome(ends, receiver, operation, refusal),
    };
    let (first, second) = (ends.entry.first.load(Relaxed), ends.entry.second.load(Relaxed));
    let before = target.update(|value| match operation {
        Operation::CompareSwap => (value == first).then_some(second),
        _ => Some(value.wrapping_add(first)),
    });
    match before {
        Ok(before) if result.put(before).is_ok() => Outcome::Success,
        Ok(_) => Outcome::LocalAccess,
        Err(refusal) => remote_outcome(ends, receiver, operation, refusal),
    }
}

fn remote_piece(entry: &SendEntry, len: u64) -> Piece {
    Piece {
        addr: entry.remote_addr.load(Relaxed),
        len,
        region: RegionId::from_bits(entry.remote_region.load(Relaxed)),
    }
}

fn remote_outcome(
    ends: &Ends<'_>,
    receiver: &ContextView,
    operation: Operation,
    refusal: Refusal,
) -> Outcome {
    match refusal {
        Refusal::Access(missing) => {
            refuse(ends, receiver, Holder::Mmap, operation, missing);
            Outcome::Refused
        }
        other => {
            crate::log::error!("{operation:?}: the target's memory cannot be reached: {other:?}");
            Outcome::RemoteAddress
        }
    }
}

/// What lacks a right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The target's `doca_rdma`.
    Context = 0,
    /// The target's mmap.
    Mmap = 1,
}

/// The sentence for the log, on either side.
pub fn describe_refusal(side: &str, holder: Holder, missing: u32) -> String {
    let flag = match missing {
        RDMA_READ => "DOCA_ACCESS_FLAG_RDMA_READ",
        RDMA_WRITE => "DOCA_ACCESS_FLAG_RDMA_WRITE",
        RDMA_ATOMIC => "DOCA_ACCESS_FLAG_RDMA_ATOMIC",
        _ => "an access flag",
    };
    let (holder, call) = match holder {
        Holder::Context => ("doca_rdma", "doca_rdma_set_permissions"),
        Holder::Mmap => ("mmap", "doca_mmap_set_permissions"),
    };
    format!("{side} {holder} lacks {flag} ({call} before start)")
}

/// Says on this side why an access is refused, and leaves a letter so that the other side says it too.
fn refuse(ends: &Ends<'_>, receiver: &ContextView, holder: Holder, operation: Operation, missing: u32) {
    crate::log::error!("{operation:?} refused: {}", describe_refusal("the peer's", holder, missing));
    let Ok(me) = process::local() else { return };
    let letter = Message {
        kind: Kind::Refused,
        process: me.reference(),
        context: ends.sender.id(),
        from: LinkId { index: ends.index, generation: ends.link.generation.load(SeqCst) },
        control: Control { context: ends.sender.id(), link: LinkId { index: ends.index, generation: 0 } },
        to: ends.link.far().link,
        device: holder as u32,
        port: missing as u16,
        offer: mailbox::Offer::default(),
        data: Vec::new(),
    };
    // A full mailbox loses a line of the log, nothing more.
    let _ = mailbox::post(receiver, &letter);
}

/// The result of a send queue entry that is done, or `None`.
pub fn sent(own: &ContextView, link: u32, position: u64) -> Option<Outcome> {
    let (entry, _, lap) = own.send_entry(link, position);
    (entry.state.get() == Word::new(Phase::Done, lap)).then(|| Outcome::of(entry.outcome.load(Relaxed)))
}
