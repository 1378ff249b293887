//! Says so when tasks are in flight and nobody progresses: the commonest reason why completions never arrive.
//!
//! A thread looks, because a program that has forgotten `doca_pe_progress` makes no call that could. It starts with the
//! first task that stays in flight, only reads counters, and moves no data. A program whose thread does not get a processor
//! has forgotten nothing, so the kernel is asked what the thread does before a line is logged.

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
/// How long a thread computes without progress when it has forgotten it. One that progresses does so all the time.
const COMPUTES: Duration = Duration::from_millis(200);

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
    /// The thread that submitted the first task.
    thread: libc::pid_t,
    beats: u64,
    since: u64,
    told: bool,
    /// What the thread did when the last look found no beat, and how long it had computed when the first did.
    blocked: bool,
    computed: Option<Duration>,
}

/// What the kernel says of a thread.
#[derive(Clone, Copy, Debug)]
struct Glance {
    /// Waits for something, which is not a processor.
    blocked: bool,
    computed: Duration,
}

impl Glance {
    /// Of a thread of this process, if there still is one of that number.
    fn at(thread: libc::pid_t) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
        // The name, in parentheses, may have spaces. Behind it: the state, and time in user and kernel mode.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        // SAFETY: asks for a constant.
        let a_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|&n| n > 0)?;
        Some(Glance { blocked: fields[0] != "R", computed: Duration::from_millis(ticks * 1000 / a_second) })
    }
}

impl Watched {
    /// As if a beat had just been heard.
    fn hear(&mut self, beats: u64, now: u64) {
        (self.beats, self.since, self.told) = (beats, now, false);
        (self.blocked, self.computed) = (false, None);
    }

    /// Whether a thread that has not progressed for a while has forgotten it: it does something else, or waits for
    /// something else since the last look. One that is gone does neither.
    fn has_forgotten(&mut self, seen: Option<Glance>) -> bool {
        let Some(seen) = seen else { return true };
        let before = *self.computed.get_or_insert(seen.computed);
        let blocked = std::mem::replace(&mut self.blocked, seen.blocked) && seen.blocked;
        blocked || seen.computed.saturating_sub(before) >= COMPUTES
    }
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
            // SAFETY: a plain system call.
            let thread = unsafe { libc::gettid() };
            let (blocked, computed) = (false, None);
            lock(&WATCHED).push(Watched { pulse, thread, beats, since, told: false, blocked, computed });
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
            entry.hear(beats, now);
        } else if !entry.told
            && entry.has_forgotten(Glance::at(entry.thread))
            && now.saturating_sub(entry.since) >= PATIENCE
        {
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
    use super::{Glance, Pulse, Watched};
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Weak;
    use std::time::Duration;

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

    /// What each look finds: whether the thread is blocked, and how long it has computed, in milliseconds.
    fn has_forgotten(looks: &[(bool, u64)]) -> bool {
        let (blocked, computed) = (false, None);
        let mut entry =
            Watched { pulse: Weak::new(), thread: 0, beats: 0, since: 0, told: false, blocked, computed };
        let seen =
            |&(blocked, computed): &_| Some(Glance { blocked, computed: Duration::from_millis(computed) });
        looks.iter().map(|look| entry.has_forgotten(seen(look))).fold(false, |_, last| last)
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_has_forgotten_nothing() {
        assert!(!has_forgotten(&[(false, 500), (false, 510), (false, 690)]), "it computes now and then");
        assert!(!has_forgotten(&[(true, 500), (false, 500), (true, 500)]), "it is woken, and waits again");
        assert!(has_forgotten(&[(false, 500), (false, 600), (false, 700)]), "it computes something else");
        assert!(has_forgotten(&[(false, 500), (true, 500), (true, 510)]), "it waits for something else");
    }

    #[test]
    fn the_kernel_tells_what_a_thread_does() {
        // SAFETY: a plain system call.
        let own = Glance::at(unsafe { libc::gettid() }).expect("a thread of this process");
        assert!(!own.blocked, "{own:?}");
        // The first thread has the process's number.
        assert!(Glance::at(std::process::id() as libc::pid_t).is_some());
        assert!(Glance::at(i32::MAX).is_none());
    }
}
