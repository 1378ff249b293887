//! `doca_pe`

use crate::call;
use crate::error::{Code, Error, Result};
use crate::raw::context::Ctx;
use crate::version;
use doca_sys::doca_pe;
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::time::Duration;

/// A progress engine of DOCA, until it is destroyed.
#[derive(Debug)]
pub(crate) struct Pe(Cell<*mut doca_pe>);

impl Pe {
    pub(crate) fn new() -> Result<Self> {
        version::require_fit()?;
        let mut pe = ptr::null_mut();
        // SAFETY: the out-parameter is a local.
        unsafe { call!(doca_pe_create(&mut pe)) }?;
        if pe.is_null() {
            return Err(Error::doca("doca_pe_create", Code::UNEXPECTED));
        }
        Ok(Pe(Cell::new(pe)))
    }

    /// One step. Callbacks run inside.
    #[inline]
    pub(crate) fn progress(&self) -> bool {
        // SAFETY: alive: callers ask a destroyed engine for nothing; and this thread is the only one that has it.
        unsafe { doca_sys::doca_pe_progress(self.0.get()) != 0 }
    }

    pub(crate) fn connect(&self, ctx: &Ctx) -> Result<()> {
        // SAFETY: both are alive: callers ask a destroyed engine for nothing.
        unsafe { call!(doca_pe_connect_ctx(self.0.get(), ctx.as_ptr())) }
    }

    pub(crate) fn in_flight(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_pe_get_num_inflight_tasks(self.0.get(), &mut count)) }.map(|()| count)
    }

    /// The descriptor that becomes readable after arming. DOCA owns it as long as the engine.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        let mut fd = -1;
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_pe_get_notification_handle(self.0.get(), &mut fd)) }?;
        if fd < 0 {
            return Err(Error::doca("doca_pe_get_notification_handle", Code::NOT_SUPPORTED));
        }
        // SAFETY: an open descriptor, constant for the life of the engine, which the borrow keeps.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    pub(crate) fn arm(&self) -> Result<()> {
        // SAFETY: alive.
        unsafe { call!(doca_pe_request_notification(self.0.get())) }
    }

    pub(crate) fn disarm(&self) -> Result<()> {
        // SAFETY: alive. Linux ignores the handle.
        unsafe { call!(doca_pe_clear_notification(self.0.get(), 0)) }
    }

    /// Leaks it: contexts that could not be stopped still refer to it.
    pub(crate) fn forget(&self) {
        self.0.set(ptr::null_mut());
    }

    /// Destroys it; a failure leaves it alive.
    pub(crate) fn destroy(&self) -> Result<()> {
        // SAFETY: alive, and no context is connected any more, or DOCA refuses.
        unsafe { call!(doca_pe_destroy(self.0.get())) }?;
        self.0.set(ptr::null_mut());
        Ok(())
    }
}

/// Sleeps until the descriptor is readable or the time is over.
pub(crate) fn sleep(fd: BorrowedFd<'_>, at_most: Duration) {
    use std::os::fd::AsRawFd;
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = libc::timespec {
        tv_sec: at_most.as_secs().min(86_400) as libc::time_t,
        tv_nsec: at_most.subsec_nanos() as libc::c_long,
    };
    // SAFETY: one valid entry and a valid time. An interruption is as good as a wake-up: the caller looks again.
    unsafe { libc::ppoll(&mut poll, 1, &time, ptr::null()) };
}
