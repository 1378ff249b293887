//! Says so when tasks are in flight and nobody progresses: the commonest reason why completions never arrive.
//!
//! A thread looks, because a program that has forgotten `doca_pe_progress` makes no call that could. It starts with the
//! first task that stays in flight, only reads counters, and moves no data.

use crate::fabric::clock;
use crate::lock::lock;
use crate::log;
use crate::sleeper;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, OnceLock, Weak};
use std::time::Duration;

/// How long tasks may be in flight without progress before a line is logged.
const PATIENCE: u64 = clock::millis(1000);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What a progress engine lets the watchdog see.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Beats counted, not timed: reading a clock at each progress would cost more than progress itself.
    beats: AtomicU64,
    in_flight: AtomicUsize,
    watched: AtomicBool,
    ended: AtomicBool,
    /// Whether the program has asked to be woken, and the descriptor that would wake it.
    armed: AtomicBool,
    handle: OnceLock<OwnedFd>,
}

struct Watched {
    pulse: Weak<Pulse>,
    beats: u64,
    since: u64,
    told: bool,
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
static THREAD: Once = Once::new();

impl Pulse {
    /// The engine was progressed.
    pub fn beat(&self) {
        self.beats.store(self.beats.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The engine's number of tasks in flight has changed.
    pub fn set_in_flight(self: &Arc<Self>, count: usize) {
        self.in_flight.store(count, Relaxed);
        if count > 0 && !self.watched.load(Relaxed) {
            self.watched.store(true, Relaxed);
            let pulse = Arc::downgrade(self);
            let (beats, since) = (self.beats.load(Relaxed), clock::now());
            lock(&WATCHED).push(Watched { pulse, beats, since, told: false });
            THREAD.call_once(start);
        }
    }

    /// The program has asked to be woken when this handle becomes readable.
    pub fn arm(&self, handle: BorrowedFd) {
        if self.handle.get().is_none()
            && let Ok(own) = handle.try_clone_to_owned()
        {
            let _ = self.handle.set(own);
        }
        self.armed.store(true, Relaxed);
    }

    /// The program is awake.
    pub fn disarm(&self) {
        self.armed.store(false, Relaxed);
    }

    /// Whether the program rightly waits: it asked to be woken, and there is nothing to wake it for.
    fn sleeps(&self) -> bool {
        self.armed.load(Relaxed)
            && self.handle.get().is_some_and(|handle| !sleeper::is_readable(handle.as_raw_fd()))
    }

    /// The engine is gone.
    pub fn end(&self) {
        self.ended.store(true, Relaxed);
    }
}

fn start() {
    // Signals are the program's business and must not be delivered to our thread: it inherits this mask.
    // SAFETY: all-zero is a valid sigset_t; the calls write to locals and this thread's mask.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let spawned = std::thread::Builder::new().name("doca-sim-watch".into()).spawn(|| {
        loop {
            std::thread::sleep(LOOK_EVERY);
            look();
        }
    });
    // SAFETY: restores the mask that was read above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    if spawned.is_err() {
        log::debug!("no watchdog: a thread could not be started");
    }
}

fn look() {
    let now = clock::now();
    lock(&WATCHED).retain_mut(|entry| {
        let Some(pulse) = entry.pulse.upgrade() else { return false };
        let (beats, in_flight) = (pulse.beats.load(Relaxed), pulse.in_flight.load(Relaxed));
        if beats != entry.beats || in_flight == 0 || pulse.sleeps() {
            *entry = Watched { pulse: entry.pulse.clone(), beats, since: now, told: false };
        } else if !entry.told && now.saturating_sub(entry.since) >= PATIENCE {
            entry.told = true;
            log::warning!(
                "{in_flight} task(s) are in flight and doca_pe_progress has not been called for a second: \
                 completions are delivered by progress only"
            );
        }
        !pulse.ended.load(Relaxed)
    });
}

#[cfg(test)]
mod tests {
    use super::Pulse;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_program_sleeps_as_long_as_there_is_nothing_to_wake_it_for() {
        let (mut handle, mut work) = UnixStream::pair().expect("a pair");
        let pulse = Pulse::default();
        assert!(!pulse.sleeps(), "it has not asked to be woken");

        pulse.arm(handle.as_fd());
        assert!(pulse.sleeps());
        work.write_all(&[1]).expect("written");
        assert!(!pulse.sleeps(), "it has been woken and does not come");

        handle.read_exact(&mut [0]).expect("read");
        assert!(pulse.sleeps());
        pulse.disarm();
        assert!(!pulse.sleeps(), "it is awake");
    }
}
