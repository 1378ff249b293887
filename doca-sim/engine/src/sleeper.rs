//! What a program sleeps on: one descriptor that becomes readable when there is work, a timeout or a dead peer.

use crate::code::Res;
use crate::fabric::shm::os;
use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One epoll over a pipe (work), a timer (timeouts) and the pidfds of peers (their end): behind the notification handle of
/// a progress engine, and behind an event channel.
#[derive(Debug)]
pub(crate) struct Sleeper {
    epoll: OwnedFd,
    timer: OwnedFd,
    pipe: Pipe,
    watched: RefCell<Vec<i32>>,
}

fn own(fd: i32, what: &str) -> Res<OwnedFd> {
    if fd < 0 {
        return Err(os(what));
    }
    // SAFETY: the callers pass what a system call has just made, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A pipe whose bytes mean nothing but that there is something to look at.
#[derive(Debug)]
pub(crate) struct Pipe([OwnedFd; 2]);

impl Pipe {
    /// An empty one that never blocks.
    pub(crate) fn new() -> Res<Pipe> {
        let mut ends = [-1; 2];
        // SAFETY: plain system call that writes two integers.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } < 0 {
            return Err(os("pipe2"));
        }
        Ok(Pipe([own(ends[0], "pipe2")?, own(ends[1], "pipe2")?]))
    }

    /// Readable when there is something.
    pub(crate) fn reader(&self) -> i32 {
        self.0[0].as_raw_fd()
    }

    /// Where a byte says so.
    pub(crate) fn writer(&self) -> i32 {
        self.0[1].as_raw_fd()
    }

    pub(crate) fn wake(&self) {
        wake(self.writer());
    }

    /// Everything has been looked at.
    pub(crate) fn drain(&self) {
        let mut bytes = [0u8; 64];
        // SAFETY: reads into a local buffer; the pipe does not block.
        while unsafe { libc::read(self.reader(), bytes.as_mut_ptr().cast(), bytes.len()) } > 0 {}
    }
}

/// Writes a byte to the pipe that wakes a sleeper of this process.
pub(crate) fn wake(writer: i32) {
    // SAFETY: one byte to a pipe that its owner keeps open while it sleeps or is about to; when the pipe is full, it is
    // readable, which is all we want.
    unsafe { libc::write(writer, [1u8].as_ptr().cast(), 1) };
}

/// Whether there is something to read, now.
pub(crate) fn is_readable(fd: i32) -> bool {
    let mut asked = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: plain system call on one local entry; it does not wait.
    unsafe { libc::poll(&mut asked, 1, 0) > 0 }
}

impl Sleeper {
    /// Nothing to wake for yet.
    pub(crate) fn new() -> Res<Sleeper> {
        let pipe = Pipe::new()?;
        // SAFETY: plain system call.
        let epoll = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "epoll_create1")?;
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: plain system call.
        let timer = own(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) }, "timerfd_create")?;
        let sleeper = Sleeper { epoll, timer, pipe, watched: RefCell::new(Vec::new()) };
        sleeper.add(sleeper.pipe.reader())?;
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
    pub(crate) fn watch(&self, pidfd: i32) {
        if !self.watched.borrow().contains(&pidfd) && self.add(pidfd).is_ok() {
            self.watched.borrow_mut().push(pidfd);
        }
    }

    /// The descriptor that programs poll.
    pub(crate) fn fd(&self) -> i32 {
        self.epoll.as_raw_fd()
    }

    /// Whether the descriptor is readable.
    pub(crate) fn has_fired(&self) -> bool {
        is_readable(self.fd())
    }

    /// Where a byte wakes.
    pub(crate) fn wake_fd(&self) -> i32 {
        self.pipe.writer()
    }

    /// Makes the descriptor readable.
    pub(crate) fn wake(&self) {
        self.pipe.wake();
    }

    /// What woke by [`Sleeper::wake`] has been seen to; deadline and peers stay.
    pub(crate) fn calm(&self) {
        self.pipe.drain();
    }

    /// Nothing to wake for any more: no work, no deadline, no peers.
    pub(crate) fn clear(&self) {
        self.pipe.drain();
        let mut expirations = 0u64;
        // SAFETY: reads a number into a local; the timer does not block.
        unsafe { libc::read(self.timer.as_raw_fd(), (&raw mut expirations).cast(), 8) };
        // A pidfd that fired has told what it had to tell; closed ones are no longer there.
        for fd in self.watched.take() {
            // SAFETY: plain system call; errors do not matter.
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
        }
    }

    /// Wakes at that time of the monotonic clock, in nanoseconds.
    pub(crate) fn set_deadline(&self, deadline: Option<u64>) -> Res {
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

impl AsFd for Sleeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
