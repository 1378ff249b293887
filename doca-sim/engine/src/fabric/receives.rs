//! The receives of a context, which all peers share: whose message takes the next one.
//!
//! A message takes the oldest receive that is posted. Where there is none, its link gets a bit among those that wait. What the
//! owner posts while links wait is theirs: it hands them so many receives each, in turn, and whoever comes by meanwhile gets in
//! the row. So a link waits for a few messages of each other one, however much the others have to send.

use super::ProcId;
use super::bits;
use super::context::{self, ContextView, LinkId, ReceiveEntry, SharedPiece};
use super::operation::Outcome;
use super::process;
use super::queue;
use super::region::Piece;
use super::word::{Phase, Word};
use crate::fault;
use std::cell::Cell;
use std::sync::Arc;
// Fields of an entry are Relaxed: its state word, which is SeqCst, publishes them.
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Receives that one link gets before the next one's turn.
const SHARE: u32 = 8;

/// On whose behalf a receive is claimed.
pub(super) enum Taker {
    /// Somebody comes by: nothing while the owner hands receives out.
    Passer,
    /// The owner hands out so many.
    Owner(Cell<u32>),
}

impl Taker {
    fn may_take(&self, receiver: &ContextView) -> bool {
        match self {
            Taker::Passer => !receiver.hands_out(),
            Taker::Owner(left) => left.get() > 0,
        }
    }

    /// Whether it would get a receive now.
    pub(super) fn finds_one(&self, receiver: &ContextView) -> bool {
        is_any_posted(receiver) && self.may_take(receiver)
    }
}

fn is_any_posted(receiver: &ContextView) -> bool {
    let (head, tail) = receiver.receive_cursors();
    head.load(SeqCst) < tail.load(SeqCst)
}

fn does_any_wait(own: &ContextView) -> bool {
    own.waiting().iter().any(|word| word.load(SeqCst) != 0)
}

/// Posts a receive at the owner's next position, which it knows to be free. [`serve_waiting`] must follow.
pub fn post(own: &ContextView, position: u64, pieces: impl Iterator<Item = Piece>) {
    let (entry, room, lap) = own.receive_entry(position);
    entry.pieces.store(queue::write_pieces(room, pieces), Relaxed);
    entry.state.set(Word::new(Phase::Posted, lap));
    if does_any_wait(own) {
        own.set_hands_out(true);
    }
    own.receive_cursors().1.store(position + 1, SeqCst);
}

/// Claims the oldest posted receive. Before it gives up, it leaves a note for the receiver that `link` waits.
pub(super) fn claim<'a>(
    receiver: &'a ContextView,
    me: ProcId,
    link: u32,
    taker: &Taker,
) -> Option<(&'a ReceiveEntry, &'a [SharedPiece], u64)> {
    let (head, tail) = receiver.receive_cursors();
    let mut noted = false;
    // A peer that scribbles over its cursors must not keep us here.
    for _ in 0..1 << 20 {
        let position = head.load(SeqCst);
        if position >= tail.load(SeqCst) || !taker.may_take(receiver) {
            if noted {
                return None;
            }
            bits::set(receiver.waiting(), link);
            noted = true;
            continue;
        }
        let (entry, room, lap) = receiver.receive_entry(position);
        let found = entry.state.get();
        let mine = context::is_posted(found, lap) && entry.state.swap(found, Word::claimed(me, lap));
        if mine || found.lap_of() == lap && found.phase() != Phase::Posted {
            let _ = head.compare_exchange(position, position + 1, SeqCst, SeqCst);
        }
        if mine {
            fault::point();
            if let Taker::Owner(left) = taker {
                left.set(left.get() - 1);
            }
            if noted || bits::is_set(receiver.waiting(), link) {
                bits::clear(receiver.waiting(), link);
            }
            return Some((entry, room, lap));
        }
    }
    None
}

/// Completes a claimed receive.
pub(super) fn finish(entry: &ReceiveEntry, lap: u64, result: Received) {
    entry.opcode.store(result.opcode, Relaxed);
    entry.length.store(result.length, Relaxed);
    entry.immediate.store(result.immediate, Relaxed);
    entry.link.store(result.link.bits(), Relaxed);
    entry.outcome.store(result.outcome as u32, Relaxed);
    entry.state.set(Word::new(Phase::Done, lap));
}

/// After the owner has posted receives: hands them out to the links that wait, on from where it left off. `peer` finds what is
/// at the far end of a link.
pub fn serve_waiting(own: &ContextView, mut peer: impl FnMut(u32) -> Option<(Arc<ContextView>, u32)>) {
    loop {
        // Also if nobody waits any more: who looked before the last receive was posted may have taken it, and its bit.
        if own.hands_out() {
            own.set_hands_out(false);
        }
        // Whoever came while receives were handed out has left a bit, and looks no further.
        if !(does_any_wait(own) && is_any_posted(own)) {
            return;
        }
        own.set_hands_out(true);
        for link in bits::each(own.waiting(), own.turn()) {
            if !is_any_posted(own) {
                break;
            }
            own.set_turn(link + 1);
            if bits::clear(own.waiting(), link)
                && let Some((sender, index)) = peer(link)
            {
                queue::pump_for(&sender, index, Some(own), &Taker::Owner(Cell::new(SHARE)));
            }
        }
    }
}

/// Ends the owner's posted receives: for a context that stops. Those that a peer is filling are left to it.
pub fn flush(own: &ContextView, report: u64) {
    let tail = own.receive_cursors().1.load(SeqCst);
    for position in report..tail {
        let (entry, _, lap) = own.receive_entry(position);
        let found = entry.state.get();
        let gone = found.phase() == Phase::Claimed && !process::lives(found.claimant());
        let Ok(me) = process::local().map(|process| process.id()) else { return };
        if (context::is_posted(found, lap) || gone) && entry.state.swap(found, Word::claimed(me, lap)) {
            entry.outcome.store(Outcome::Flushed as u32, Relaxed);
            entry.length.store(0, Relaxed);
            entry.state.set(Word::new(Phase::Done, lap));
        }
    }
}

/// Ends receives whose claimants died while filling them.
pub fn reap(own: &ContextView, report: u64) {
    let head = own.receive_cursors().0.load(SeqCst);
    for position in report..head {
        let (entry, _, lap) = own.receive_entry(position);
        let found = entry.state.get();
        let orphan =
            found.phase() == Phase::Claimed && found.lap_of() == lap && !process::lives(found.claimant());
        if orphan {
            entry.outcome.store(Outcome::Abandoned as u32, Relaxed);
            entry.state.swap(found, Word::new(Phase::Done, lap));
        }
    }
}

/// `enum doca_rdma_opcode`: what a receive met.
pub(super) mod opcode {
    /// A send.
    pub const SEND: u32 = 0;
    /// A send with immediate data.
    pub const SEND_IMMEDIATE: u32 = 1;
    /// A write with immediate data.
    pub const WRITE_IMMEDIATE: u32 = 2;
}

/// A finished receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// How it ended.
    pub outcome: Outcome,
    /// `doca_rdma_opcode`
    pub opcode: u32,
    /// Bytes.
    pub length: u64,
    /// Immediate data.
    pub immediate: u32,
    /// The link on which it came.
    pub link: LinkId,
}

impl Received {
    /// Bytes that came into the receive's room. The data of a write with immediate are in the memory that the writer
    /// named.
    pub fn placed(&self) -> u64 {
        if self.opcode == opcode::WRITE_IMMEDIATE { 0 } else { self.length }
    }
}

/// The result of a receive that is done, or `None`.
pub fn received(own: &ContextView, position: u64) -> Option<Received> {
    let (entry, _, lap) = own.receive_entry(position);
    (entry.state.get() == Word::new(Phase::Done, lap)).then(|| Received {
        outcome: Outcome::of(entry.outcome.load(Relaxed)),
        opcode: entry.opcode.load(Relaxed),
        length: entry.length.load(Relaxed),
        immediate: entry.immediate.load(Relaxed),
        link: LinkId::from_bits(entry.link.load(Relaxed)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::context::{ContextId, FarEnd, LinkState, Sizes};
    use crate::fabric::operation::{Operation, Post};
    use crate::fabric::process::Process;
    use crate::fabric::route::Route;

    const PEERS: u32 = 12;
    const MESSAGES: u32 = 200;

    fn sizes(conns: u32, sends: u32, receives: u32) -> Sizes {
        Sizes { conns, sends, receives, send_pieces: 1, receive_pieces: 1 }
    }

    fn context(index: u32, sizes: Sizes) -> Arc<ContextView> {
        let process: &Arc<Process> = process::local().unwrap();
        let view = ContextView::create(process.clone(), ContextId { index, generation: 1 }, sizes).unwrap();
        view.describe(0, 0, Route::NOWHERE);
        view.set_open(true);
        Arc::new(view)
    }

    fn connect(one: &ContextView, index: u32, other: &ContextView, far: u32) {
        for (near, link, far, far_link) in [(one, index, other, far), (other, far, one, index)] {
            let link = near.link(link).unwrap();
            link.set_state(LinkState::Init);
            let process = far.process().id().bits();
            let far_link = LinkId { index: far_link, generation: 0 };
            link.connect(FarEnd { process, context: far.id(), link: far_link });
        }
    }

    /// A context with peers whose send queues are full.
    struct Crowd {
        own: Arc<ContextView>,
        peers: Vec<Arc<ContextView>>,
        /// Next position to post, next to take.
        posted: u64,
        taken: u64,
        /// Messages that each peer has posted.
        sent: Vec<u64>,
    }

    impl Crowd {
        fn new(receives: u32) -> Crowd {
            // Room for many more links than there are: turns go by those that wait, not by numbers.
            let own = context(0, sizes(1024, 1, receives));
            let peers: Vec<_> = (0..PEERS).map(|peer| context(1 + peer, sizes(1, 256, 1))).collect();
            for (index, peer) in (0..).zip(&peers) {
                connect(&own, index, peer, 0);
            }
            let sent = vec![0; peers.len()];
            Crowd { own, peers, posted: 0, taken: 0, sent }
        }

        fn send(&mut self, peer: usize) {
            let message = Post::message(Operation::Send, 0, 0);
            queue::post_send(&self.peers[peer], 0, self.sent[peer], &message, std::iter::empty());
            self.sent[peer] += 1;
            queue::pump(&self.peers[peer], 0, Some(&self.own));
        }

        fn post(&mut self, count: u32) {
            for _ in 0..count {
                post(&self.own, self.posted, std::iter::empty());
                self.posted += 1;
            }
        }

        fn serve(&self) {
            serve_waiting(&self.own, |link| Some((self.peers.get(link as usize)?.clone(), 0)));
        }

        /// Whose the messages are that have come.
        fn take(&mut self) -> Vec<usize> {
            let mut links = Vec::new();
            while let Some(received) = received(&self.own, self.taken) {
                assert_eq!(received.outcome, Outcome::Success);
                links.push(received.link.index as usize);
                self.taken += 1;
            }
            links
        }
    }

    /// Peers that have as much to send as one may want, and receives in portions of any size, also such as have a common divisor
    /// with the number of links: nobody waits for more than a share of each other one.
    #[test]
    fn no_peer_is_overtaken_by_more_than_a_share_of_each_other() {
        for portion in [1, 7, 64, 256] {
            let mut crowd = Crowd::new(256);
            for _ in 0..MESSAGES {
                (0..crowd.peers.len()).for_each(|peer| crowd.send(peer));
            }
            let mut overtaken = vec![0; crowd.peers.len()];
            let mut came = vec![0; crowd.peers.len()];
            while came.iter().sum::<u32>() < PEERS * MESSAGES {
                crowd.post(portion);
                crowd.serve();
                let links = crowd.take();
                assert!(!links.is_empty(), "receives of {portion} at once help nobody");
                for link in links {
                    came[link] += 1;
                    let waiting = (0..crowd.peers.len()).filter(|peer| came[*peer] < MESSAGES);
                    waiting.for_each(|peer| overtaken[peer] += 1);
                    overtaken[link] = 0;
                    let most = overtaken.iter().max().copied().unwrap_or(0);
                    assert!(
                        most <= (PEERS - 1) * SHARE,
                        "{most} messages came before one, {portion} at once"
                    );
                }
            }
        }
    }

    /// Who comes by while others wait does not take what was posted for them.
    #[test]
    fn nobody_gets_in_before_those_who_wait() {
        let mut crowd = Crowd::new(4);
        crowd.send(2);
        crowd.post(1);
        crowd.send(5);
        assert!(crowd.take().is_empty());
        crowd.serve();
        assert_eq!(crowd.take(), [2]);
        crowd.post(1);
        crowd.serve();
        assert_eq!(crowd.take(), [5]);
        // Nobody waits: the first who comes takes it.
        crowd.post(1);
        crowd.serve();
        crowd.send(7);
        assert_eq!(crowd.take(), [7]);
        assert!(!does_any_wait(&crowd.own) && !crowd.own.hands_out());
        // One that waited is served by itself after the owner has seen that it waits.
        bits::set(crowd.own.waiting(), 3);
        crowd.post(1);
        bits::clear(crowd.own.waiting(), 3);
        crowd.serve();
        crowd.send(7);
        assert_eq!(crowd.take(), [7]);
    }

    /// A single message at a time, and a single receive: whoever is late is woken by nobody else.
    #[test]
    fn no_message_is_forgotten_that_meets_its_receive() {
        const ROUNDS: u64 = 20_000;
        let mut crowd = Crowd::new(1);
        let (own, peer) = (crowd.own.clone(), crowd.peers[0].clone());
        let taken = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for position in 0..ROUNDS {
                    let message = Post::message(Operation::Send, 0, 0);
                    queue::post_send(&peer, 0, position, &message, std::iter::empty());
                    queue::pump(&peer, 0, Some(&own));
                    while taken.load(SeqCst) <= position {
                        std::hint::spin_loop();
                        std::thread::yield_now();
                    }
                }
            });
            let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
            for round in 0..ROUNDS {
                crowd.post(1);
                crowd.serve();
                while crowd.take().is_empty() {
                    assert!(std::time::Instant::now() < until, "message {round} is forgotten");
                    std::thread::yield_now();
                }
                taken.store(round + 1, SeqCst);
            }
        });
    }

    /// Peers on threads of their own, which post and come by whenever they like: nothing is lost, nobody sleeps for ever.
    #[test]
    fn whoever_comes_while_receives_are_handed_out_is_served() {
        let mut crowd = Crowd::new(8);
        let (own, peers) = (crowd.own.clone(), crowd.peers.clone());
        std::thread::scope(|scope| {
            for peer in &peers {
                let own = &own;
                scope.spawn(move || {
                    for position in 0..u64::from(MESSAGES) {
                        let message = Post::message(Operation::Send, 0, 0);
                        queue::post_send(peer, 0, position, &message, std::iter::empty());
                        queue::pump(peer, 0, Some(own));
                    }
                });
            }
            let mut came = 0;
            crowd.post(8);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while came < (PEERS * MESSAGES) as usize {
                let taken = crowd.take().len();
                came += taken;
                crowd.post(taken as u32);
                crowd.serve();
                assert!(std::time::Instant::now() < until, "{came} messages came");
                std::thread::yield_now();
            }
        });
    }
}
