//! Faults on request, for tests of what happens when things go wrong.
//!
//! `DOCA_SIM_KILL_AT=N` ends this process by SIGKILL when it passes its Nth internal point: places inside submit and
//! progress between which shared memory is half-changed, so that a test can put a death into each of them.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

const UNREAD: i64 = i64::MIN;
const NEVER: i64 = i64::MAX;

static LEFT: AtomicI64 = AtomicI64::new(UNREAD);

/// A place where a death would be interesting. Costs one load when none is wanted.
#[inline]
pub fn point() {
    if LEFT.load(Relaxed) != NEVER {
        count_down();
    }
}

#[cold]
fn count_down() {
    if LEFT.load(Relaxed) == UNREAD {
        let wanted = std::env::var("DOCA_SIM_KILL_AT").ok().and_then(|n| n.parse().ok());
        LEFT.store(wanted.unwrap_or(NEVER), Relaxed);
        if wanted.is_none() {
            return;
        }
    }
    if LEFT.fetch_sub(1, Relaxed) == 1 {
        // SAFETY: plain system calls on this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}
