//! The slab of operations: what is in flight, what came back, who waits for it.
//!
//! A context has one slab, sized when it starts; nothing is allocated afterwards. Each pool of the slab serves one
//! kind of task. DOCA's callbacks record outcomes here and return; what runs user code (waking, dropping) is queued
//! in the slab and done after progress.
//!
//! ```text
//!        launch           complete          take
//! Free ──────────> Flying ──────────> Done ───────> Free
//!   ^                │ cancel           │ nobody waits
//!   └────────────────┴──────────────────┘ (after progress)
//! ```

use std::task::Waker;

/// Names one operation: index and generation of its slot, as user data carries them.
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
    Flying,
    Done,
    /// Taken while it was queued for after progress.
    Spent,
}

#[derive(Debug)]
struct Slot<L, O> {
    generation: u32,
    phase: Phase,
    /// Whether it is in the list for after progress.
    queued: bool,
    /// Whether its handle was dropped.
    detached: bool,
    pool: u16,
    /// Next in the free list of its pool, or in the list for after progress.
    next: u32,
    load: L,
    outcome: O,
    waker: Option<Waker>,
}

const END: u32 = u32::MAX;

/// Operations with what they have in flight (`L`) and how they ended (`O`).
#[derive(Debug)]
pub struct Slab<L, O> {
    slots: Box<[Slot<L, O>]>,
    /// First free slot of each pool.
    free: Box<[u32]>,
    /// First slot in the list for after progress.
    queue: u32,
}

/// What is to be done after progress.
#[derive(Debug)]
pub enum After<L> {
    /// Somebody waits.
    Wake(Waker),
    /// Nobody wants what came back.
    Drop {
        /// Its place in the slab.
        index: u32,
        /// What it is.
        load: L,
    },
}

impl<L: Default, O: Default + Copy> Slab<L, O> {
    /// A slab with a pool of each of these sizes.
    pub fn new(pools: &[u32]) -> Self {
        let slot = |pool: usize| Slot {
            generation: 0,
            phase: Phase::Free,
            queued: false,
            detached: false,
            pool: pool as u16,
            next: END,
            load: L::default(),
            outcome: O::default(),
            waker: None,
        };
        let sizes = pools.iter().enumerate();
        let mut slots: Box<[_]> =
            sizes.flat_map(|(pool, &size)| (0..size).map(move |_| pool)).map(slot).collect();
        let mut free = vec![END; pools.len()].into_boxed_slice();
        for index in (0..slots.len()).rev() {
            let first = &mut free[usize::from(slots[index].pool)];
            slots[index].next = std::mem::replace(first, index as u32);
        }
        Slab { slots, free, queue: END }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Puts a load into a free slot of a pool and takes it for in flight, after `look` has seen it where it will
    /// stay. Gives the load back if the pool has no free slot.
    ///
    /// # Errors
    ///
    /// The load.
    pub fn launch<R>(
        &mut self,
        pool: usize,
        load: L,
        look: impl FnOnce(&mut L) -> R,
    ) -> Result<(Token, R), L> {
        let index = self.free[pool];
        let Some(slot) = self.slots.get_mut(index as usize) else { return Err(load) };
        self.free[pool] = slot.next;
        slot.phase = Phase::Flying;
        slot.detached = false;
        // What was there is the empty load, so dropping it would only cost time.
        std::mem::forget(std::mem::replace(&mut slot.load, load));
        Ok((Token { index, generation: slot.generation }, look(&mut slot.load)))
    }

    /// Gives a slot back that did not go into flight after all, with its load.
    pub fn cancel(&mut self, token: Token) -> Option<L> {
        let slot = self.slot(token, Phase::Flying)?;
        let load = std::mem::take(&mut slot.load);
        self.release(token.index);
        Some(load)
    }

    /// Records how a flight ended, after `note` has seen its load. Gives `None` for a stale token, otherwise whether
    /// something is to be done after progress.
    pub fn complete(&mut self, token: Token, outcome: O, note: impl FnOnce(&mut L)) -> Option<bool> {
        let queue = self.queue;
        let slot = self.slot(token, Phase::Flying)?;
        slot.phase = Phase::Done;
        slot.outcome = outcome;
        note(&mut slot.load);
        let after = slot.detached || slot.waker.is_some();
        if after {
            slot.queued = true;
            slot.next = queue;
            self.queue = token.index;
        }
        Some(after)
    }

    /// Whether the outcome is there. A stale token counts as done: there is nothing to wait for.
    pub fn is_done(&self, token: Token) -> bool {
        match self.slots.get(token.index as usize) {
            Some(slot) if slot.generation == token.generation => slot.phase == Phase::Done,
            _ => true,
        }
    }

    /// Takes what came back, once.
    pub fn take(&mut self, token: Token) -> Option<(L, O)> {
        let slot = self.slot(token, Phase::Done)?;
        let result = (std::mem::take(&mut slot.load), slot.outcome);
        if slot.queued {
            // The list still names the slot, which is freed when it comes by.
            slot.phase = Phase::Spent;
            slot.waker = None;
            slot.generation = slot.generation.wrapping_add(1);
        } else {
            self.release(token.index);
        }
        Some(result)
    }

    /// Wants to be woken when the outcome is there. Gives a waker that is no longer needed.
    pub fn watch(&mut self, token: Token, waker: Waker) -> Option<Waker> {
        match self.slot(token, Phase::Flying) {
            Some(slot) => slot.waker.replace(waker),
            None => Some(waker),
        }
    }

    /// Notes that nobody waits for the outcome any more. Gives what came back if it is there already, and the
    /// waker.
    pub fn detach(&mut self, token: Token) -> (Option<L>, Option<Waker>) {
        let Some(slot) = self.slots.get_mut(token.index as usize) else { return (None, None) };
        if slot.generation != token.generation {
            return (None, None);
        }
        match slot.phase {
            Phase::Flying => {
                slot.detached = true;
                (None, slot.waker.take())
            }
            Phase::Done => (self.take(token).map(|(load, _)| load), None),
            Phase::Free | Phase::Spent => (None, None),
        }
    }

    /// The next thing to do after progress.
    pub fn after(&mut self) -> Option<After<L>> {
        loop {
            let index = self.queue;
            let slot = self.slots.get_mut(index as usize)?;
            self.queue = slot.next;
            slot.queued = false;
            if slot.phase == Phase::Spent {
                self.link(index);
            } else if slot.detached {
                let load = std::mem::take(&mut slot.load);
                self.release(index);
                return Some(After::Drop { index, load });
            } else if let Some(waker) = slot.waker.take() {
                return Some(After::Wake(waker));
            }
        }
    }

    /// Slots that are neither free nor done.
    pub fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| slot.phase == Phase::Flying).count()
    }

    /// Whether the operation in this slot is in flight.
    pub fn is_flying(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.phase == Phase::Flying)
    }

    fn slot(&mut self, token: Token, phase: Phase) -> Option<&mut Slot<L, O>> {
        let slot = self.slots.get_mut(token.index as usize)?;
        (slot.generation == token.generation && slot.phase == phase).then_some(slot)
    }

    fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.waker = None;
        self.link(index);
    }

    fn link(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.phase = Phase::Free;
        slot.next = std::mem::replace(&mut self.free[usize::from(slot.pool)], index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    type Small = Slab<Option<Rc<()>>, u32>;

    /// Launches a load and gives its token.
    fn launch(slab: &mut Small, pool: usize, load: Option<Rc<()>>) -> Option<Token> {
        slab.launch(pool, load, |_| ()).ok().map(|(token, ())| token)
    }

    #[test]
    fn a_pool_has_its_size_and_others_do_not_help() {
        let mut slab = Small::new(&[2, 0, 3]);
        assert!(launch(&mut slab, 1, None).is_none());
        let held: Vec<_> = (0..2).map(|_| launch(&mut slab, 0, None).unwrap()).collect();
        assert!(launch(&mut slab, 0, None).is_none());
        assert!(slab.cancel(held[1]).is_some());
        assert_eq!(launch(&mut slab, 0, None).unwrap().index, held[1].index);
        assert_eq!((0..4).filter_map(|_| launch(&mut slab, 2, None)).count(), 3);
    }

    #[test]
    fn stale_tokens_change_nothing() {
        let mut slab = Small::new(&[1]);
        let token = launch(&mut slab, 0, None).unwrap();
        assert_eq!(slab.complete(token, 1, |_| ()), Some(false));
        assert_eq!(slab.complete(token, 2, |_| ()), None, "twice");
        assert_eq!(slab.take(token).unwrap().1, 1);
        assert!(slab.take(token).is_none());
        assert_eq!(slab.complete(token, 1, |_| ()), None, "not in flight");
        let next = launch(&mut slab, 0, None).unwrap();
        assert_eq!((next.index, slab.complete(token, 3, |_| ())), (token.index, None));
        assert!(slab.is_done(token) && !slab.is_done(next));
    }

    #[test]
    fn a_dropped_handle_keeps_its_load_until_it_came_back() {
        let mut slab = Small::new(&[1]);
        let load = Rc::new(());
        let token = launch(&mut slab, 0, Some(load.clone())).unwrap();
        assert!(slab.detach(token).0.is_none());
        assert_eq!(Rc::strong_count(&load), 2);
        assert!(launch(&mut slab, 0, None).is_none());
        assert_eq!(slab.complete(token, 0, |_| ()), Some(true));
        assert_eq!(Rc::strong_count(&load), 2, "callbacks drop nothing");
        let Some(After::Drop { load: back, .. }) = slab.after() else { panic!("nothing to drop") };
        drop(back);
        assert_eq!(Rc::strong_count(&load), 1);
        assert!(slab.after().is_none() && launch(&mut slab, 0, None).is_some());
    }

    #[test]
    fn a_result_taken_before_its_waker_ran_is_queued_no_longer() {
        let (mut slab, count) = (Small::new(&[2]), Arc::new(Count(AtomicUsize::new(0))));
        let token = launch(&mut slab, 0, None).unwrap();
        assert!(slab.watch(token, count.clone().into()).is_none());
        assert_eq!(slab.complete(token, 5, |_| ()), Some(true));
        assert_eq!(slab.take(token).unwrap().1, 5);
        let other = launch(&mut slab, 0, None).unwrap();
        assert_ne!(other.index, token.index, "still in the list");
        assert!(slab.after().is_none());
        assert_eq!(launch(&mut slab, 0, None).unwrap().index, token.index);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn wakes_after_progress() {
        let (mut slab, count) = (Small::new(&[1]), Arc::new(Count(AtomicUsize::new(0))));
        let token = launch(&mut slab, 0, None).unwrap();
        slab.watch(token, count.clone().into());
        slab.complete(token, 0, |_| ());
        let Some(After::Wake(waker)) = slab.after() else { panic!("nobody to wake") };
        waker.wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(slab.after().is_none());
        assert!(slab.take(token).is_some());
    }
}
