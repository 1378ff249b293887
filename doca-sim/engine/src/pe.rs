//! The progress engine: polls contexts, runs the program's callbacks, sleeps on a descriptor.

use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::entry::{Object, Tag};
use crate::fabric::shm::os;
use crate::log;
use crate::watchdog::Pulse;
use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

/// `enum doca_pe_event_mode`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventMode {
    /// While armed, only contexts that raised an event are served. The notification must be cleared.
    Selective,
    /// Every context is served always.
    All,
}

/// What `struct doca_pe *` points to.
#[repr(C)]
pub struct Pe {
    tag: Tag,
    contexts: RefCell<Vec<Rc<dyn Context>>>,
    /// Which context is served next.
    turn: Cell<usize>,
    dispatching: Cell<bool>,
    mode: Cell<EventMode>,
    armed: Cell<bool>,
    in_flight: Cell<usize>,
    sleeper: OnceCell<Sleeper>,
    pulse: Arc<Pulse>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Pe {
    const TAG: u32 = u32::from_le_bytes(*b"pe__");
}

impl Pe {
    /// An engine without contexts.
    pub fn new() -> Self {
        Pe {
            tag: Tag::live::<Self>(),
            contexts: RefCell::new(Vec::new()),
            turn: Cell::new(0),
            dispatching: Cell::new(false),
            mode: Cell::new(EventMode::Selective),
            armed: Cell::new(false),
            in_flight: Cell::new(0),
            sleeper: OnceCell::new(),
            pulse: Arc::new(Pulse::default()),
        }
    }

    /// `doca_pe_destroy`: refuses while contexts are connected.
    pub fn retire(&self) -> Res {
        if !self.contexts.borrow().is_empty() || self.dispatching.get() {
            return Err(Code::IN_USE);
        }
        self.tag.kill();
        Ok(())
    }

    /// `doca_pe_connect_ctx`
    pub fn connect(self: &Rc<Self>, ctx: &Ctx) -> Res {
        let owner = ctx.owner()?;
        ctx.set_pe(self)?;
        self.contexts.borrow_mut().push(owner);
        Ok(())
    }

    /// Forgets a context that is being destroyed.
    pub fn disconnect(&self, ctx: &Ctx) {
        self.contexts.borrow_mut().retain(|owner| !std::ptr::eq(owner.ctx(), ctx));
    }

    /// Whether a callback is running.
    pub fn is_dispatching(&self) -> bool {
        self.dispatching.get()
    }

    /// Tasks in flight over all contexts.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Counts tasks in or out of flight, for the program and for the watchdog.
    pub fn count_in_flight(&self, change: isize) {
        self.in_flight.set(self.in_flight.get().wrapping_add_signed(change));
        self.pulse.set_in_flight(self.in_flight.get(), &self.pulse);
    }

    /// `doca_pe_progress`: one step of the next context that has something to do.
    pub fn progress(&self) -> bool {
        if self.dispatching.get() {
            log::error!(
                "doca_pe_progress was called from a callback of the same engine; it does nothing there"
            );
            return false;
        }
        self.pulse.beat();
        // A callback may connect or destroy contexts, so each is taken out by index and kept alive by its Rc.
        let count = self.contexts.borrow().len();
        for offset in 0..count {
            let index = (self.turn.get() + offset) % count;
            let Some(owner) = self.contexts.borrow().get(index).cloned() else { break };
            let _guard = Dispatching::enter(&self.dispatching);
            if owner.ctx().progress(&*owner) {
                self.turn.set(index + 1);
                return true;
            }
        }
        false
    }

    /// `doca_pe_set_event_mode`
    pub fn set_mode(&self, mode: EventMode) {
        self.mode.set(mode);
    }

    fn sleeper(&self) -> Res<&Sleeper> {
        if self.sleeper.get().is_none() {
            let _ = self.sleeper.set(Sleeper::new()?);
        }
        self.sleeper.get().ok_or(Code::UNEXPECTED)
    }

    /// `doca_pe_get_notification_handle`
    pub fn handle(&self) -> Res<i32> {
        Ok(self.sleeper()?.epoll.as_raw_fd())
    }

    /// `doca_pe_request_notification`: from now on the handle becomes readable when there is work.
    pub fn request_notification(&self) -> Res {
        let sleeper = self.sleeper()?;
        if self.mode.get() == EventMode::All {
            sleeper.clear();
        }
        self.armed.set(true);
        let contexts = self.contexts.borrow();
        let mut deadline: Option<u64> = None;
        for owner in contexts.iter() {
            owner.arm(sleeper.wake_fd());
            owner.pidfds(&mut |fd| sleeper.watch(fd));
            deadline = deadline.into_iter().chain(owner.deadline()).min();
        }
        // Work that came before the contexts were armed would wake nobody.
        if contexts.iter().any(|owner| owner.ctx().has_work(&**owner)) {
            sleeper.wake();
        }
        sleeper.set_deadline(deadline)
    }

    /// `doca_pe_clear_notification`
    pub fn clear_notification(&self) -> Res {
        self.sleeper()?.clear();
        self.armed.set(false);
        for owner in self.contexts.borrow().iter() {
            owner.disarm();
        }
        Ok(())
    }
}

impl Default for Pe {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Pe {
    fn drop(&mut self) {
        self.pulse.end();
    }
}

/// Marks that a callback may be running, until dropped.
struct Dispatching<'a>(&'a Cell<bool>);

impl<'a> Dispatching<'a> {
    fn enter(flag: &'a Cell<bool>) -> Self {
        flag.set(true);
        Dispatching(flag)
    }
}

impl Drop for Dispatching<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The descriptors behind a notification handle: one epoll over a pipe (work), a timer (timeouts) and the pidfds of peers
/// (their end).
struct Sleeper {
    epoll: OwnedFd,
    timer: OwnedFd,
    pipe: [OwnedFd; 2],
    watched: RefCell<Vec<i32>>,
}

impl Sleeper {
    fn new() -> Res<Sleeper> {
        let own = |fd: i32, what: &str| {
            if fd < 0 {
                return Err(os(what));
            }
            // SAFETY: a new descriptor that nobody else owns.
            Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        };
        let mut ends = [0; 2];
        // SAFETY: plain system calls that write two integers.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } < 0 {
            return Err(os("pipe2"));
        }
        let pipe = [own(ends[0], "pipe2")?, own(ends[1], "pipe2")?];
        // SAFETY: plain system call.
        let epoll = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "epoll_create1")?;
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: plain system call.
        let timer = own(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) }, "timerfd_create")?;
        let sleeper = Sleeper { epoll, timer, pipe, watched: RefCell::new(Vec::new()) };
        sleeper.add(sleeper.pipe[0].as_raw_fd())?;
        sleeper.add(sleeper.timer.as_raw_fd())?;
        Ok(sleeper)
    }

    fn add(&self, fd: i32) -> Res {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        // SAFETY: plain system call on descriptors that are open.
        if unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) } < 0 {
            let error = std::io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EEXIST) {
                return Err(os("epoll_ctl"));
            }
        }
        Ok(())
    }

    /// Wakes when this pidfd becomes readable, once: it stays readable for ever after.
    fn watch(&self, pidfd: i32) {
        if !self.watched.borrow().contains(&pidfd) && self.add(pidfd).is_ok() {
            self.watched.borrow_mut().push(pidfd);
        }
    }

    fn wake_fd(&self) -> i32 {
        self.pipe[1].as_raw_fd()
    }

    fn wake(&self) {
        // SAFETY: one byte to our own pipe; when it is full, it is readable, which is all we want.
        unsafe { libc::write(self.wake_fd(), [1u8].as_ptr().cast(), 1) };
    }

    fn clear(&self) {
        let mut bytes = [0u8; 64];
        // SAFETY: reads into a local buffer; the pipe does not block.
        while unsafe { libc::read(self.pipe[0].as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) } > 0 {}
        // SAFETY: as above, for the timer.
        unsafe { libc::read(self.timer.as_raw_fd(), bytes.as_mut_ptr().cast(), 8) };
        // A pidfd that fired has told what it had to tell; closed ones are no longer there.
        for fd in self.watched.take() {
            // SAFETY: plain system call; errors do not matter.
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
        }
    }

    fn set_deadline(&self, deadline: Option<u64>) -> Res {
        let at = deadline.unwrap_or(0);
        let value = libc::timespec {
            tv_sec: (at / 1_000_000_000) as libc::time_t,
            tv_nsec: (at % 1_000_000_000) as libc::c_long,
        };
        let spec =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: plain system call with a valid itimerspec; an all-zero value disarms the timer.
        let set = unsafe {
            libc::timerfd_settime(
                self.timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &spec,
                std::ptr::null_mut(),
            )
        };
        if set < 0 { Err(os("timerfd_settime")) } else { Ok(()) }
    }
}
