//! A relay from outside its thread.

use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Asks a running relay to end or to report. Can be cloned and sent to other threads.
#[derive(Clone, Debug)]
pub struct Handle(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) wake: EventFd,
    /// How often an end was asked for.
    pub(super) ends: AtomicU32,
    pub(super) report: AtomicBool,
}

impl Shared {
    pub(super) fn new() -> nix::Result<Arc<Shared>> {
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Arc::new(Shared { wake, ends: AtomicU32::new(0), report: AtomicBool::new(false) }))
    }
}

impl Handle {
    /// Takes no new clients, serves those that are there for a while, then ends. Asked again, it ends at once.
    pub fn drain(&self) {
        self.0.ends.fetch_add(1, Ordering::Relaxed);
        self.wake();
    }

    /// Logs status and connections.
    pub fn report(&self) {
        self.0.report.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn wake(&self) {
        // It fails only when the counter is at its end, and then the relay is awake.
        _ = self.0.wake.write(1);
    }
}
