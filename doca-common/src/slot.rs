//! The slab of operations: what is in flight, what came back, who waits for it.
//!
//! A context has one slab, sized when it starts; nothing is allocated afterwards. Each pool of the slab serves one
//! kind of task. DOCA's callbacks record outcomes here and return; what runs user code (waking, dropping) is queued
//! in the slab and done after progress.
//!
//! ```text
//!        launch           complete          take
//! Free ──────────> Flying ──────────> Done ───────> Free
//!   ^                                   │ nobody waits
//!   └───────────────────────────────────┘ (after progress)
//!
//!         hold            fly                complete           fly
//! Free ─────────> Held ─────────> Flying ──────────────> Done ───────> Flying ...      for prepared tasks
//!   ^               │ release                              │ release, or nobody waits
//!   └───────────────┴──────────────────────────────────────┘
//! ```
//!
//! All of it is made of cells, so that a completion is a few stores. Nothing here runs user code: loads and wakers
//! are handed out to be dropped or woken elsewhere.

use crate::engine::Core;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

/// Names one operation: the place of its slot, and how often that had been used before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token {
    /// Place in the slab.
    pub index: u32,
    /// How often the place had been used before.
    pub generation: u32,
}

impl Token {
    /// Names no operation.
    pub const NONE: Token = Token { index: u32::MAX, generation: u32::MAX };

    /// As eight bytes of user data.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// From eight bytes of user data.
    pub fn from_bits(bits: u64) -> Self {
        Token { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Free,
    /// Out of the free list, for a task that will be submitted again and again.
    Held,
    Flying,
    /// In flight, and something is to be done when it came back: somebody waits, or nobody wants it any more.
    Heeded,
    Done,
    /// Done, and not well.
    Failed,
    /// Done, well or not, and in the list for after progress.
    Queued,
    /// Taken while it was in the list for after progress.
    Spent,
}

/// The place of one operation.
pub struct Slot<L, S> {
    phase: Cell<Phase>,
    /// The phase after the list came by.
    end: Cell<Phase>,
    /// Whether its handle was dropped.
    detached: Cell<bool>,
    pool: u16,
    /// Its place in the slab.
    index: u32,
    generation: Cell<u32>,
    /// Next in the free list of its pool, or in the list for after progress.
    next: Cell<u32>,
    load: Cell<L>,
    waker: Cell<Option<Waker>>,
    side: S,
}

const END: u32 = u32::MAX;

/// Operations with what they have in flight (`L`), and what the library keeps in each slot beside it (`S`): its C
/// task, how it ended.
pub struct Slab<L, S> {
    slots: Box<[Slot<L, S>]>,
    /// First free slot of each pool.
    free: Box<[Cell<u32>]>,
    /// First slot in the list for after progress.
    queue: Cell<u32>,
    /// Whether some slot was ever held.
    holds: Cell<bool>,
    /// No other slab of the process has it, so a completion that was meant for another one is recognised.
    serial: u32,
}

/// What is to be done after progress.
pub enum After<'a, L, S> {
    /// Somebody waits.
    Wake(Waker),
    /// Nobody wants what came back.
    Drop {
        /// What it is.
        load: L,
        /// What is kept beside it.
        side: &'a S,
    },
}

/// A slot that the next operation of a pool will have. Nothing happened to it yet.
pub struct Vacant<'a, L, S> {
    slab: &'a Slab<L, S>,
    slot: &'a Slot<L, S>,
}

impl<'a, L, S> Vacant<'a, L, S> {
    /// What is kept in the slot.
    #[inline]
    pub fn side(&self) -> &'a S {
        &self.slot.side
    }

    /// The slot, for libraries whose C tasks point to it: see [`crate::raw::task::pointer_to`].
    #[inline]
    pub fn slot(&self) -> &'a Slot<L, S> {
        self.slot
    }

    /// What the user data of the slot's C task is to be, once and for all: [`Slab::complete`] finds the slot by it.
    pub fn address(&self) -> u64 {
        u64::from(self.slab.serial) << 32 | u64::from(self.slot.index)
    }

    /// Takes the slot for operations that come one after the other, until it is [released](Slab::release).
    pub fn hold(self) -> &'a Slot<L, S> {
        self.slab.free[usize::from(self.slot.pool)].set(self.slot.next.get());
        self.slab.holds.set(true);
        self.slot.phase.set(Phase::Held);
        self.slot
    }

    /// Takes the slot for an operation that is in flight now, with its load.
    #[inline]
    pub fn launch(self, load: L) -> Token {
        let slot = self.slot;
        self.slab.free[usize::from(slot.pool)].set(slot.next.get());
        slot.phase.set(Phase::Flying);
        // What was there is the empty load, so dropping it would only cost time.
        std::mem::forget(slot.load.replace(load));
        Token { index: slot.index, generation: slot.generation.get() }
    }
}

impl<L, S> Slot<L, S> {
    /// What is kept beside the operation.
    #[inline]
    pub fn side(&self) -> &S {
        &self.side
    }

    /// Notes that the next operation of a held slot is in flight.
    #[inline]
    pub fn fly(&self) {
        self.phase.set(Phase::Flying);
    }

    /// Forgets how the last operation of a held slot ended. None is in flight.
    pub fn rest(&self) {
        self.phase.set(Phase::Held);
    }

    /// Whether the operation of a held slot came back, and what was to be done after progress is done.
    #[inline]
    pub fn is_done(&self) -> bool {
        matches!(self.phase.get(), Phase::Done | Phase::Failed)
    }

    /// Whether it came back, and well.
    #[inline]
    pub fn has_succeeded(&self) -> bool {
        self.phase.get() == Phase::Done
    }

    /// Whether a held slot has no operation in flight, nor one in the list for after progress.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase.get(), Phase::Held | Phase::Done | Phase::Failed)
    }

    /// Records that an operation came back, after `note` has recorded how; ignores what is not in flight. True if
    /// something is to be done after progress: [`Slab::queue`] is to be told then.
    #[inline]
    pub fn complete(&self, note: impl FnOnce(&S)) -> bool {
        if self.land() {
            note(&self.side);
            return false;
        }
        self.end(Phase::Done, note)
    }

    /// Records that an operation came back well, if nothing is to be done after progress: then it was in flight, and
    /// nobody waits. False changes nothing, and [`complete`](Self::complete) does the rest.
    #[inline]
    pub fn land(&self) -> bool {
        let flying = self.phase.get() == Phase::Flying;
        if flying {
            self.phase.set(Phase::Done);
        }
        flying
    }

    /// As [`complete`](Self::complete), for one that failed.
    #[cold]
    pub fn fail(&self, note: impl FnOnce(&S)) -> bool {
        self.end(Phase::Failed, note)
    }

    #[cold]
    fn end(&self, phase: Phase, note: impl FnOnce(&S)) -> bool {
        let heeded = self.phase.get() == Phase::Heeded;
        if is_flying(self) {
            self.phase.set(phase);
            note(&self.side);
        }
        heeded
    }

    /// Wants to be woken when the outcome is there. Gives a waker that is no longer needed.
    pub fn watch(&self, waker: Waker) -> Option<Waker> {
        if !is_flying(self) {
            return Some(waker);
        }
        self.phase.set(Phase::Heeded);
        self.waker.replace(Some(waker))
    }
}

impl<L: Default, S: Default> Slab<L, S> {
    /// A slab with a pool of each of these sizes.
    pub fn new(pools: &[u32]) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(1);
        let slot = |(index, pool): (usize, usize)| Slot {
            phase: Cell::new(Phase::Free),
            end: Cell::new(Phase::Free),
            detached: Cell::new(false),
            pool: pool as u16,
            index: index as u32,
            generation: Cell::new(0),
            next: Cell::new(END),
            load: Cell::default(),
            waker: Cell::new(None),
            side: S::default(),
        };
        let sizes = pools.iter().enumerate();
        let slots: Box<[_]> =
            sizes.flat_map(|(pool, &size)| (0..size).map(move |_| pool)).enumerate().map(slot).collect();
        let free: Box<[_]> = pools.iter().map(|_| Cell::new(END)).collect();
        for slot in slots.iter().rev() {
            slot.next.set(free[usize::from(slot.pool)].replace(slot.index));
        }
        Slab {
            slots,
            free,
            queue: Cell::new(END),
            holds: Cell::new(false),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The slot of the next operation of a pool, if one is free.
    #[inline]
    pub fn vacant(&self, pool: usize) -> Option<Vacant<'_, L, S>> {
        let index = self.free[pool].get();
        let slot = self.slots.get(index as usize)?;
        Some(Vacant { slab: self, slot })
    }

    /// Records that an operation came back, after `note` has recorded how. Gives `None` for what is not in flight,
    /// otherwise whether something is to be done after progress.
    #[inline]
    pub fn complete(&self, address: u64, note: impl FnOnce(&S)) -> Option<bool> {
        let slot = self.slots.get(address as u32 as usize);
        let slot = slot.filter(|slot| (address >> 32) as u32 == self.serial && is_flying(slot))?;
        let heeded = slot.complete(note);
        if heeded {
            self.queue(slot);
        }
        Some(heeded)
    }

    /// Puts an operation that came back, and is heeded, in the list for after progress.
    pub fn queue(&self, slot: &Slot<L, S>) {
        slot.end.set(slot.phase.replace(Phase::Queued));
        slot.next.set(self.queue.replace(slot.index));
    }

    /// Wants to hear of the operations in flight that are chosen when they come back: they will be queued. Gives how
    /// many are.
    pub fn heed(&self, chosen: impl Fn(&S) -> bool) -> usize {
        let chosen = self.slots.iter().filter(|slot| is_flying(slot) && chosen(&slot.side));
        chosen.map(|slot| slot.phase.set(Phase::Heeded)).count()
    }

    /// Gives a slot back whose operation is not in flight.
    #[inline]
    pub fn release(&self, slot: &Slot<L, S>) {
        slot.generation.set(slot.generation.get().wrapping_add(1));
        self.link(slot);
    }

    /// Nobody wants the operation of a held slot any more, which is in flight or in the list for after progress: `load`
    /// is kept until it came by, and the slot is given back then. Gives what is to be dropped.
    pub fn abandon(&self, slot: &Slot<L, S>, load: L) -> (L, Option<Waker>) {
        if is_flying(slot) {
            slot.phase.set(Phase::Heeded);
        }
        slot.detached.set(true);
        (slot.load.replace(load), slot.waker.take())
    }

    /// Whether the operation came back. A stale token counts as done: there is nothing to wait for.
    pub fn is_done(&self, token: Token) -> bool {
        match self.slots.get(token.index as usize) {
            Some(slot) if slot.generation.get() == token.generation => {
                matches!(slot.phase.get(), Phase::Done | Phase::Failed | Phase::Queued)
            }
            _ => true,
        }
    }

    /// Progresses for an operation in flight that is about to come back, as long as there is something to do now.
    #[inline(always)]
    pub fn poll(&self, token: Token, engine: Option<&Rc<Core>>) {
        if let Some(core) = engine
            && let Some(slot) = self.slot(token)
            && slot.phase.get() == Phase::Flying
        {
            core.poll(|| slot.phase.get() != Phase::Flying);
        }
    }

    /// Whether the operation was taken, so that there is nothing left to do for its token.
    #[inline]
    pub fn is_spent(&self, token: Token) -> bool {
        self.slot(token).is_none()
    }

    /// Takes what came back, once. What is kept beside it says how, until the slot is used again.
    #[inline]
    pub fn take(&self, token: Token) -> Option<(L, &S)> {
        let slot = self.slots.get(token.index as usize)?;
        if slot.generation.get() != token.generation {
            return None;
        }
        match slot.phase.get() {
            Phase::Done | Phase::Failed => self.release(slot),
            // The list still names the slot, which is freed when it comes by.
            Phase::Queued => {
                slot.phase.set(Phase::Spent);
                slot.generation.set(token.generation.wrapping_add(1));
            }
            _ => return None,
        }
        Some((slot.load.take(), &slot.side))
    }

    /// Wants to be woken when the outcome is there. Gives a waker that is no longer needed.
    pub fn watch(&self, token: Token, waker: Waker) -> Option<Waker> {
        match self.slot(token) {
            Some(slot) => slot.watch(waker),
            None => Some(waker),
        }
    }

    /// Notes that nobody waits for the outcome any more. Gives what came back if it is there already, and a waker
    /// that is no longer needed.
    pub fn detach(&self, token: Token) -> (Option<(L, &S)>, Option<Waker>) {
        let Some(slot) = self.slot(token) else { return (None, None) };
        let waker = slot.waker.take();
        if is_flying(slot) {
            slot.phase.set(Phase::Heeded);
            slot.detached.set(true);
            return (None, waker);
        }
        (self.take(token), waker)
    }

    /// The next thing to do after progress.
    pub fn after(&self) -> Option<After<'_, L, S>> {
        loop {
            let index = self.queue.get();
            let slot = self.slots.get(index as usize)?;
            self.queue.set(slot.next.get());
            let waker = slot.waker.take();
            if slot.phase.get() == Phase::Spent {
                // The generation went up when it was taken.
                self.link(slot);
                // Nobody waits any more, but dropping a waker is for others to do.
                if let Some(waker) = waker {
                    return Some(After::Wake(waker));
                }
            } else if slot.detached.replace(false) {
                let load = slot.load.take();
                self.release(slot);
                return Some(After::Drop { load, side: &slot.side });
            } else {
                slot.phase.set(slot.end.get());
                if let Some(waker) = waker {
                    return Some(After::Wake(waker));
                }
            }
        }
    }

    /// What is kept in all slots that are held, and in some others.
    pub fn held(&self) -> impl Iterator<Item = &S> {
        let slots = if self.holds.get() { &*self.slots } else { &[] };
        slots.iter().map(|slot| &slot.side)
    }

    /// What is kept in all slots, each with whether its operation is in flight.
    pub fn sides(&self) -> impl Iterator<Item = (&S, bool)> {
        self.slots.iter().map(|slot| (&slot.side, is_flying(slot)))
    }

    #[inline]
    fn slot(&self, token: Token) -> Option<&Slot<L, S>> {
        self.slots.get(token.index as usize).filter(|slot| slot.generation.get() == token.generation)
    }

    #[inline]
    fn link(&self, slot: &Slot<L, S>) {
        slot.phase.set(Phase::Free);
        slot.next.set(self.free[usize::from(slot.pool)].replace(slot.index));
    }
}

fn is_flying<L, S>(slot: &Slot<L, S>) -> bool {
    matches!(slot.phase.get(), Phase::Flying | Phase::Heeded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    type Small = Slab<Option<Rc<()>>, Cell<u32>>;

    /// Launches a load; gives its token, and what its completion names.
    fn launch(slab: &Small, pool: usize, load: Option<Rc<()>>) -> Option<(Token, u64)> {
        let vacant = slab.vacant(pool)?;
        let address = vacant.address();
        Some((vacant.launch(load), address))
    }

    fn complete(slab: &Small, address: u64, outcome: u32) -> Option<bool> {
        slab.complete(address, |side| side.set(outcome))
    }

    /// Takes an outcome.
    fn take(slab: &Small, token: Token) -> Option<u32> {
        slab.take(token).map(|(_, side)| side.get())
    }

    #[test]
    fn a_pool_has_its_size_and_others_do_not_help() {
        let slab = Small::new(&[2, 0, 3]);
        assert!(launch(&slab, 1, None).is_none());
        let held: Vec<_> = (0..2).map(|_| launch(&slab, 0, None).unwrap()).collect();
        assert!(launch(&slab, 0, None).is_none());
        assert_eq!(complete(&slab, held[1].1, 0), Some(false));
        assert!(launch(&slab, 0, None).is_none(), "not taken yet");
        assert!(slab.take(held[1].0).is_some());
        assert_eq!(launch(&slab, 0, None).unwrap().1, held[1].1);
        assert_eq!((0..4).filter_map(|_| launch(&slab, 2, None)).count(), 3);
    }

    #[test]
    fn a_slot_that_was_looked_at_is_still_vacant() {
        let slab = Small::new(&[1]);
        let address = slab.vacant(0).unwrap().address();
        assert_eq!(complete(&slab, address, 1), None, "not in flight");
        assert_eq!(launch(&slab, 0, None).unwrap().1, address);
    }

    #[test]
    fn stale_tokens_change_nothing() {
        let slab = Small::new(&[1]);
        let (token, address) = launch(&slab, 0, None).unwrap();
        assert_eq!(complete(&slab, address, 1), Some(false));
        assert_eq!(complete(&slab, address, 2), None, "twice");
        assert_eq!(take(&slab, token), Some(1));
        assert!(slab.take(token).is_none());
        assert_eq!(complete(&slab, address, 1), None, "not in flight");
        let (next, _) = launch(&slab, 0, None).unwrap();
        assert!(slab.is_done(token) && !slab.is_done(next));
        assert!(slab.detach(token).0.is_none());
        assert_eq!(complete(&slab, address, 4), Some(false), "the next one was not detached");
    }

    #[test]
    fn a_completion_of_another_slab_changes_nothing() {
        let (before, after) = (Small::new(&[1]), Small::new(&[1]));
        let address = launch(&before, 0, None).unwrap().1;
        let (token, _) = launch(&after, 0, None).unwrap();
        assert_eq!(complete(&after, address, 1), None);
        assert!(!after.is_done(token));
        assert_eq!(complete(&after, u64::MAX, 1), None);
    }

    #[test]
    fn a_dropped_handle_keeps_its_load_until_it_came_back() {
        let slab = Small::new(&[1]);
        let load = Rc::new(());
        let (token, address) = launch(&slab, 0, Some(load.clone())).unwrap();
        assert!(slab.detach(token).0.is_none());
        assert_eq!(Rc::strong_count(&load), 2);
        assert!(launch(&slab, 0, None).is_none());
        assert_eq!(complete(&slab, address, 0), Some(true));
        assert_eq!(Rc::strong_count(&load), 2, "callbacks drop nothing");
        let Some(After::Drop { load: back, .. }) = slab.after() else { panic!("nothing to drop") };
        drop(back);
        assert_eq!(Rc::strong_count(&load), 1);
        assert!(slab.after().is_none());
        let (token, address) = launch(&slab, 0, None).unwrap();
        assert_eq!(complete(&slab, address, 0), Some(false), "wanted again");
        assert!(slab.take(token).is_some());
    }

    #[test]
    fn a_dropped_handle_gives_back_what_was_there_already() {
        let (slab, count) = (Small::new(&[1]), Arc::new(Count(AtomicUsize::new(0))));
        let load = Rc::new(());
        let (token, address) = launch(&slab, 0, Some(load.clone())).unwrap();
        slab.watch(token, count.clone().into());
        assert_eq!(complete(&slab, address, 0), Some(true));
        let (back, waker) = slab.detach(token);
        assert!(back.is_some() && waker.is_some(), "before the list came by");
        assert!(slab.after().is_none());
        assert!(launch(&slab, 0, None).is_some());
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_held_slot_has_one_operation_after_the_other() {
        let slab = Small::new(&[1]);
        let slot = slab.vacant(0).unwrap().hold();
        assert!(slab.vacant(0).is_none() && slot.is_idle() && !slot.is_done());
        for outcome in 0..3 {
            slot.fly();
            assert!(!slot.is_idle() && slab.sides().all(|(_, flying)| flying));
            assert!(!slot.complete(|side| side.set(outcome)));
            assert!(!slot.complete(|side| side.set(100)), "twice");
            assert!(slot.is_done() && slot.is_idle());
            assert_eq!(slot.side().get(), outcome);
        }
        slot.rest();
        assert!(slot.is_idle() && !slot.is_done());
        slab.release(slot);
        assert!(launch(&slab, 0, None).is_some());
    }

    #[test]
    fn an_abandoned_slot_keeps_its_load_until_it_came_back() {
        let slab = Small::new(&[1]);
        let load = Rc::new(());
        let slot = slab.vacant(0).unwrap().hold();
        slot.fly();
        assert!(slab.abandon(slot, Some(load.clone())).0.is_none());
        assert!(slab.after().is_none() && slab.vacant(0).is_none());
        assert!(slot.complete(|_| ()));
        slab.queue(slot);
        assert!(slab.vacant(0).is_none(), "the list comes by first");
        let Some(After::Drop { load: back, .. }) = slab.after() else { panic!("nothing to drop") };
        drop(back);
        assert_eq!(Rc::strong_count(&load), 1);
        let slot = slab.vacant(0).unwrap().hold();
        slot.fly();
        assert!(!slot.complete(|_| ()), "wanted again");
    }

    #[test]
    fn a_held_slot_in_the_list_can_be_abandoned() {
        let (slab, count) = (Small::new(&[1]), Arc::new(Count(AtomicUsize::new(0))));
        let slot = slab.vacant(0).unwrap().hold();
        slot.fly();
        assert!(slot.watch(count.clone().into()).is_none());
        assert!(slot.complete(|_| ()));
        slab.queue(slot);
        assert!(!slot.is_idle() && !slot.is_done());
        let (_, waker) = slab.abandon(slot, Some(Rc::new(())));
        assert!(waker.is_some());
        assert!(matches!(slab.after(), Some(After::Drop { load: Some(_), .. })));
        assert!(slab.vacant(0).is_some() && slab.after().is_none());
    }

    #[test]
    fn what_is_heeded_is_told() {
        let slab = Small::new(&[2]);
        let (first, second) = (launch(&slab, 0, None).unwrap(), launch(&slab, 0, None).unwrap());
        assert_eq!(slab.heed(|_| true), 2);
        assert_eq!(slab.heed(|_| false), 0);
        assert_eq!(complete(&slab, second.1, 7), Some(true));
        assert!(!slab.is_done(first.0) && slab.is_done(second.0));
        assert!(slab.after().is_none());
        assert_eq!(take(&slab, second.0), Some(7));
    }

    #[test]
    fn a_result_taken_before_its_waker_ran_frees_its_slot_when_the_list_comes_by() {
        let (slab, count) = (Small::new(&[2]), Arc::new(Count(AtomicUsize::new(0))));
        let (token, address) = launch(&slab, 0, None).unwrap();
        assert!(slab.watch(token, count.clone().into()).is_none());
        assert_eq!(complete(&slab, address, 5), Some(true));
        assert_eq!(take(&slab, token), Some(5));
        let other = launch(&slab, 0, None).unwrap();
        assert_ne!(other.1, address, "still in the list");
        assert!(matches!(slab.after(), Some(After::Wake(_))), "its waker leaves the slab");
        assert!(slab.after().is_none());
        assert_eq!(launch(&slab, 0, None).unwrap().1, address);
    }

    #[test]
    fn wakes_after_progress() {
        let (slab, count) = (Small::new(&[1]), Arc::new(Count(AtomicUsize::new(0))));
        let (token, address) = launch(&slab, 0, None).unwrap();
        slab.watch(token, count.clone().into());
        complete(&slab, address, 0);
        let Some(After::Wake(waker)) = slab.after() else { panic!("nobody to wake") };
        waker.wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(slab.after().is_none());
        assert!(slab.take(token).is_some());
    }
}
