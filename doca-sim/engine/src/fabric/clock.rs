//! Time in nanoseconds of the monotonic clock, which all processes of a machine share.

/// Now. Cheap (no system call) and precise to the kernel tick, which is all that timeouts need.
pub fn now() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Milliseconds as nanoseconds.
pub const fn millis(ms: u64) -> u64 {
    ms * 1_000_000
}
