//! The progress engine: nothing moves unless it is progressed.
//!
//! ```no_run
//! # // Needs an engine with contexts on it; the examples of the `doca` package run this for real.
//! # fn main() -> doca_common::Result<()> {
//! use doca_common::ProgressEngine;
//! use std::time::Duration;
//!
//! let engine = ProgressEngine::new()?;
//! while engine.progress()? {}                       // poll, until there is nothing to do now
//! engine.wait_for(Duration::from_millis(10))?;      // or sleep until something happens
//! # Ok(())
//! # }
//! ```
//!
//! For an event loop: progress until `false`, call [`arm`](ProgressEngine::arm), wait until the descriptor
//! ([`AsFd`]) is readable, progress again. Progress disarms.
//!
//! # Rules
//!
//! - Completions, wakers and drops run after DOCA's progress returned, on the thread that called it. Only decisions
//!   about connections run inside; there, progressing, stopping and waiting are refused as [`Refusal::InCallback`].
//! - A panic inside is kept, and resumed when progress returns.
//! - Dropped contexts are stopped and destroyed by progress. Dropping the engine waits for all of them, for
//!   [`PATIENCE`] at most; what could not be stopped by then is leaked, never freed while in use.

use crate::context::State;
use crate::error::{Error, Refusal, Result};
use crate::raw::context::Ctx;
use crate::raw::current;
use crate::raw::members::Members;
use crate::raw::pe::{self, Pe};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Poller, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// How long dropping an engine waits for its contexts.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How long waiting polls before it sleeps on the descriptor: a message between two processes is often faster.
const SPIN: Duration = Duration::from_micros(50);

/// How long it sleeps between two looks while a context is starting, or is to be looked at again.
const DOZE: Duration = Duration::from_millis(1);

/// Steps of a busy engine between two looks at the clock.
const BETWEEN_CLOCKS: u32 = 64;

/// How long waiting sleeps at most without a look, unless it was told otherwise.
const NAP: Duration = Duration::from_millis(100);

/// Drives contexts of any library: `doca_pe`. It stays on its thread, with all that runs on it.
#[derive(Debug)]
pub struct ProgressEngine {
    core: Rc<Core>,
}

/// The inside of an engine, which its contexts share.
pub struct Core {
    pe: Pe,
    members: Members,
    /// What progress must heed; mostly nothing.
    flags: Cell<Flags>,
    /// The next engine of this thread.
    pub(crate) next: Cell<*const Core>,
    panic: RefCell<Option<Box<dyn Any + Send>>>,
    /// The longest sleep without a look.
    nap: Cell<Duration>,
}

bitflags::bitflags! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Flags: u8 {
        /// The descriptor was armed and not cleared yet.
        const ARMED = 1;
        /// Something is to be done after progress.
        const MARKED = 2;
        /// The engine was destroyed or leaked.
        const CLOSED = 4;
        /// A context is stopping: what comes back is to be freed, or it would never be idle.
        const STOPPING = 8;
        /// DOCA was called, and callbacks may come.
        const INSIDE = 16;
    }
}

impl ProgressEngine {
    /// Creates an engine: `doca_pe_create`.
    ///
    /// # Errors
    ///
    /// `NO_MEMORY`, [`Refusal::Version`].
    #[doc(alias = "doca_pe_create")]
    pub fn new() -> Result<Self> {
        let core = Core {
            pe: Pe::new()?,
            members: Members::default(),
            flags: Cell::new(Flags::empty()),
            next: Cell::new(ptr::null()),
            panic: RefCell::new(None),
            nap: Cell::new(NAP),
        };
        let core = Rc::new(core);
        current::register(&core);
        Ok(ProgressEngine { core })
    }

    /// Takes one step: `doca_pe_progress`. True if something was done, false if there is nothing to do now.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`] inside a callback.
    ///
    /// # Panics
    ///
    /// Resumes a panic of a closure that ran inside.
    #[doc(alias = "doca_pe_progress")]
    #[inline]
    pub fn progress(&self) -> Result<bool> {
        self.core.progress()
    }

    /// Waits until a step was taken; false if there was none within `time`.
    ///
    /// # Errors
    ///
    /// As for [`progress`](Self::progress), and the operating system's.
    pub fn wait_for(&self, time: Duration) -> Result<bool> {
        let mut stepped = false;
        let deadline = Instant::now().checked_add(time);
        self.core.steps("doca_pe_progress", deadline, |step| {
            stepped |= step;
            stepped
        })
    }

    /// Sets how long waiting sleeps at most before it looks by itself, 100 milliseconds at first. DOCA wakes it as soon as
    /// there is work, but not every context of every release can.
    pub fn set_longest_sleep(&self, time: Duration) {
        self.core.nap.set(time);
    }

    /// Makes the descriptor readable as soon as there is work, at once if there is some:
    /// `doca_pe_request_notification`. Progress first until there is nothing to do. The next progress, of whoever, and
    /// also inside a wait, clears it again (`doca_pe_clear_notification`): arm before each sleep.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`], or DOCA's.
    #[doc(alias = "doca_pe_request_notification")]
    pub fn arm(&self) -> Result<()> {
        self.core.require_outside("doca_pe_request_notification")?;
        self.core.arm()
    }

    /// The descriptor for event loops: `doca_pe_get_notification_handle`. DOCA owns it: neither read nor close it.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_pe_get_notification_handle")]
    pub fn notification_handle(&self) -> Result<BorrowedFd<'_>> {
        self.core.pe.descriptor()
    }

    /// Tasks in flight over all contexts: `doca_pe_get_num_inflight_tasks`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_pe_get_num_inflight_tasks")]
    pub fn in_flight(&self) -> Result<usize> {
        self.core.pe.in_flight()
    }

    /// Runs a future to its end, progressing meanwhile. The future may wait for anything on this engine.
    ///
    /// # Errors
    ///
    /// As for [`progress`](Self::progress).
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output> {
        struct Flag(AtomicBool);
        impl Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Release);
            }
        }
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut future = pin!(future);
        let mut output = None;
        self.core.wait("doca_pe_progress", None, || {
            if flag.0.swap(false, Ordering::Acquire)
                && let Poll::Ready(value) = future.as_mut().poll(&mut Poller::from_waker(&waker))
            {
                output = Some(value);
            }
            output.is_some()
        })?;
        output.ok_or_else(|| Error::refused("doca_pe_progress", Refusal::TimedOut))
    }

    /// The inside, for library crates.
    pub fn core(&self) -> &Rc<Core> {
        &self.core
    }
}

/// The notification handle.
///
/// # Panics
///
/// If DOCA has no descriptor on this system; see [`ProgressEngine::notification_handle`].
impl AsFd for ProgressEngine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.notification_handle() {
            Ok(fd) => fd,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Drop for ProgressEngine {
    fn drop(&mut self) {
        self.core.close();
    }
}

impl Core {
    /// One step, and what is to be done after it.
    #[inline]
    pub fn progress(&self) -> Result<bool> {
        if !self.flags.get().is_empty() {
            return self.progress_heeding();
        }
        self.flags.set(Flags::INSIDE);
        let stepped = self.pe.progress();
        if self.leave() { Ok(stepped) } else { Ok(self.finish_step() | stepped) }
    }

    /// Steps as long as there is something to do now and nothing to be heeded, until `done`, which is asked behind each
    /// step and does not unwind. True if it said so. For operations that are about to be done; [`wait`](Self::wait) does
    /// the rest.
    #[inline]
    pub fn poll(&self, done: impl Fn() -> bool) -> bool {
        if !self.flags.get().is_empty() {
            return false;
        }
        self.flags.set(Flags::INSIDE);
        loop {
            let stepped = self.pe.progress();
            if done() {
                if self.leave() {
                    return true;
                }
                break;
            }
            if !stepped || self.flags.get() != Flags::INSIDE {
                if self.leave() {
                    return false;
                }
                break;
            }
        }
        self.finish_step();
        done()
    }

    /// DOCA was called when there was nothing to be heeded, and returned: whether there still is nothing.
    #[inline]
    fn leave(&self) -> bool {
        if self.flags.get() == Flags::INSIDE {
            self.flags.set(Flags::empty());
            return true;
        }
        self.leave_heeding();
        false
    }

    #[cold]
    fn leave_heeding(&self) {
        self.set(Flags::INSIDE, false);
    }

    /// As progress, when there may be something to be heeded before.
    #[cold]
    fn progress_heeding(&self) -> Result<bool> {
        self.require_outside("doca_pe_progress")?;
        if self.has(Flags::ARMED) {
            self.pe.disarm()?;
            self.set(Flags::ARMED, false);
        }
        Ok(self.step())
    }

    #[inline]
    fn step(&self) -> bool {
        let stepped = self.inside(|| self.pe.progress());
        if self.flags.get().is_empty() { stepped } else { self.finish_step() | stepped }
    }

    /// After a step that left something to be done; true if anything was.
    #[cold]
    fn finish_step(&self) -> bool {
        let marked = self.has(Flags::MARKED);
        if marked || self.has(Flags::STOPPING) {
            self.tidy();
        }
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
        marked
    }

    fn has(&self, flag: Flags) -> bool {
        self.flags.get().contains(flag)
    }

    fn set(&self, flag: Flags, value: bool) {
        let mut flags = self.flags.get();
        flags.set(flag, value);
        self.flags.set(flags);
    }

    /// Runs a call during which callbacks of this engine's contexts may come.
    pub(crate) fn inside<T>(&self, call: impl FnOnce() -> T) -> T {
        struct Leave<'a>(&'a Core, bool);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.set(Flags::INSIDE, self.1);
            }
        }
        let _leave = Leave(self, self.is_inside());
        self.set(Flags::INSIDE, true);
        call()
    }

    /// Whether a callback is running.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.has(Flags::INSIDE)
    }

    /// Refuses inside callbacks and after the engine was dropped.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`], [`Refusal::EngineGone`]
    #[inline]
    pub fn require_outside(&self, call: &'static str) -> Result<()> {
        if self.is_inside() {
            return Err(Error::refused(call, Refusal::InCallback));
        }
        if self.has(Flags::CLOSED) {
            return Err(Error::refused(call, Refusal::EngineGone));
        }
        Ok(())
    }

    /// Notes that something is to be done after progress.
    #[inline]
    pub fn mark(&self) {
        self.set(Flags::MARKED, true);
    }

    /// Notes that a context is stopping, or waits for something that no engine may tell of: it is looked after at each
    /// step. That alone is no progress, or whoever progresses until there is nothing to do would never sleep.
    pub fn look_again(&self) {
        self.set(Flags::STOPPING, true);
    }

    /// Keeps a panic of a closure until progress returned. Only the first of several is resumed.
    pub(crate) fn keep(&self, panic: Box<dyn Any + Send>) {
        let mut kept = self.panic.borrow_mut();
        if kept.is_none() {
            *kept = Some(panic);
        }
        self.mark();
    }

    pub(crate) fn connect(&self, ctx: &Ctx) -> Result<()> {
        self.pe.connect(ctx)
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// Does what callbacks and dropped handles left to be done, children before contexts.
    pub(crate) fn tidy(&self) {
        self.set(Flags::MARKED, false);
        self.set(Flags::STOPPING, false);
        let mut place = 0;
        while let Some((next, id, member)) = self.members.next(place) {
            place = next;
            member.settle();
            member.life().pursue(self, &*member);
            if member.life().is_gone() {
                self.members.expel(id);
            }
        }
    }

    fn arm(&self) -> Result<()> {
        if !self.has(Flags::ARMED) {
            self.pe.arm()?;
            self.set(Flags::ARMED, true);
        }
        Ok(())
    }

    /// Progresses until `done` says so; false if the deadline passed before. `done` is asked outside callbacks.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`], [`Refusal::EngineGone`], or DOCA's.
    pub fn wait(
        &self,
        call: &'static str,
        deadline: Option<Instant>,
        mut done: impl FnMut() -> bool,
    ) -> Result<bool> {
        self.steps(call, deadline, |_| done())
    }

    fn steps(
        &self,
        call: &'static str,
        deadline: Option<Instant>,
        mut done: impl FnMut(bool) -> bool,
    ) -> Result<bool> {
        self.require_outside(call)?;
        if self.has(Flags::MARKED) {
            self.tidy();
        }
        let mut stepped = false;
        let mut steps = 0u32;
        let mut idle_since: Option<Instant> = None;
        loop {
            if done(stepped) {
                return Ok(true);
            }
            stepped = self.progress()?;
            if stepped {
                idle_since = None;
                steps += 1;
                // A busy engine must not hold up the deadline, and the clock not every step.
                if !steps.is_multiple_of(BETWEEN_CLOCKS) {
                    continue;
                }
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(done(stepped));
            }
            if stepped {
                continue;
            }
            if now.duration_since(*idle_since.get_or_insert(now)) < SPIN {
                std::hint::spin_loop();
            } else {
                let nap = self.nap.get();
                self.sleep(deadline.map_or(nap, |deadline| deadline - now).min(nap));
            }
        }
    }

    /// Sleeps until there is work. A context that raises no event is looked at after the time anyway.
    ///
    /// While one is starting the engine stays unarmed: there are releases in which a Comch consumer whose engine is armed
    /// then never gets to RUNNING.
    fn sleep(&self, at_most: Duration) {
        if self.members.any(|member| member.life().state() == State::Starting) {
            return std::thread::sleep(DOZE.min(at_most));
        }
        match self.arm().and_then(|()| self.pe.descriptor()) {
            Ok(fd) if self.has(Flags::STOPPING) => pe::sleep(fd, DOZE.min(at_most)),
            Ok(fd) => pe::sleep(fd, at_most),
            Err(_) => std::thread::sleep(SPIN.min(at_most)),
        }
    }

    /// Stops and destroys everything, for [`PATIENCE`] at most.
    fn close(&self) {
        if self.is_inside() {
            log::warn!("an engine was dropped inside its own callback and is leaked");
            return;
        }
        for member in self.members.all() {
            member.life().request_destroy(&*member);
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.members.is_empty() && Instant::now() < deadline {
            // User code that panics here (a waker, a drop) must not keep the others from being stopped.
            match catch_unwind(AssertUnwindSafe(|| self.progress())) {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => {
                    self.mark();
                    std::thread::sleep(Duration::from_micros(20));
                }
                Ok(Err(error)) => {
                    log::warn!("{error}");
                    break;
                }
                Err(panic) => log::warn!("a panic while an engine was dropped: {}", text_of(&*panic)),
            }
        }
        for member in self.members.all() {
            log::warn!("a context is leaked: {}", member.life().left());
            member.life().give_up();
            std::mem::forget(member);
        }
        if let Err(error) = self.pe.destroy() {
            log::warn!("{error}: the engine is leaked");
            self.pe.forget();
        }
        self.set(Flags::CLOSED, true);
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("not a text")
}

impl Drop for Core {
    fn drop(&mut self) {
        current::unregister(self);
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("flags", &self.flags.get()).finish_non_exhaustive()
    }
}
