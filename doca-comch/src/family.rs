//! The producers and consumers of one connection, which may be on other threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many there are, and whether their connection is still there.
#[derive(Debug, Default)]
pub struct Family {
    children: AtomicUsize,
    orphaned: AtomicBool,
}

impl Family {
    /// Producers and consumers that were not destroyed yet.
    pub(crate) fn len(&self) -> usize {
        self.children.load(Ordering::Acquire)
    }

    /// The connection is over.
    pub(crate) fn orphan(&self) {
        self.orphaned.store(true, Ordering::Release);
    }
}
