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

/// A fault for AddressSanitizer to find: reads behind the end of an allocation, inside this library. It exists only in
/// an instrumented build, where a test calls it to see that the instrumentation is on.
///
/// # Safety
///
/// None: that is its purpose.
#[cfg(doca_sim_asan)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sim_planted_fault() -> u8 {
    let bytes = std::hint::black_box(vec![0u8; 16]);
    let behind = std::hint::black_box(bytes.len());
    // SAFETY: there is none.
    unsafe { bytes.as_ptr().add(behind).read_volatile() }
}
