//! The state word of a queue entry: phase, claimant and lap in one atomic, so that a claim is one
//! compare-and-swap, names the process that made it, and cannot succeed on an entry that was reused meanwhile.

use super::ProcId;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Where an entry is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Free for whoever fills it.
    Empty = 0,
    /// Filled, waiting for somebody to execute it.
    Posted = 1,
    /// Being executed by the claimant.
    Claimed = 2,
    /// Executed; waiting for its owner to report it.
    Done = 3,
}

/// A value of a state word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(u64);

const PHASE_BITS: u32 = 2;
const PROC_BITS: u32 = 38;

impl Word {
    /// How often the ring has gone round at a position, in the bits that a word has for it.
    pub fn lap(position: u64, depth: u32) -> u64 {
        (position / u64::from(depth)) & ((1 << 24) - 1)
    }

    /// An unclaimed phase.
    pub fn new(phase: Phase, lap: u64) -> Self {
        Word(phase as u64 | lap << (PHASE_BITS + PROC_BITS))
    }

    /// Claimed by a process.
    pub fn claimed(by: ProcId, lap: u64) -> Self {
        Word(Phase::Claimed as u64 | by.bits() << PHASE_BITS | lap << (PHASE_BITS + PROC_BITS))
    }

    /// The phase.
    pub fn phase(self) -> Phase {
        match self.0 & 3 {
            0 => Phase::Empty,
            1 => Phase::Posted,
            2 => Phase::Claimed,
            _ => Phase::Done,
        }
    }

    /// The claimant, meaningful in phase Claimed.
    pub fn claimant(self) -> ProcId {
        ProcId::from_bits(self.0 >> PHASE_BITS)
    }

    /// The lap it was written in.
    pub fn lap_of(self) -> u64 {
        self.0 >> (PHASE_BITS + PROC_BITS)
    }
}

/// A state word in shared memory.
#[repr(transparent)]
#[derive(Debug)]
pub struct State(AtomicU64);

impl State {
    /// Reads it.
    pub fn get(&self) -> Word {
        Word(self.0.load(SeqCst))
    }

    /// Writes it. Only for whoever owns the entry in its present phase.
    pub fn set(&self, word: Word) {
        self.0.store(word.0, SeqCst);
    }

    /// Moves it from one value to another, if nobody was faster.
    pub fn swap(&self, from: Word, to: Word) -> bool {
        self.0.compare_exchange(from.0, to.0, SeqCst, SeqCst).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_parts() {
        let who = ProcId::new(4_194_303, 0xbeef);
        let word = Word::claimed(who, 0xff_ffff);
        assert_eq!(word.phase(), Phase::Claimed);
        assert_eq!(word.claimant(), who);
        assert_eq!((who.pid(), who.salt()), (4_194_303, 0xbeef));
        assert_eq!(word.lap_of(), 0xff_ffff);
        for phase in [Phase::Empty, Phase::Posted, Phase::Claimed, Phase::Done] {
            assert_eq!(Word::new(phase, 7).phase(), phase);
        }
    }

    #[test]
    fn laps_wrap() {
        assert_eq!(Word::lap(0, 8), 0);
        assert_eq!(Word::lap(8, 8), 1);
        assert_eq!(Word::lap(8 << 24, 8), 0);
    }
}
