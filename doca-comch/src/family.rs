//! The producers and consumers of one connection, which may be on other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many there are, and whether their connection is still there.
#[derive(Debug)]
pub struct Family {
    children: AtomicUsize,
    /// Those of all connections of one server or client, of all its runs.
    total: Arc<AtomicUsize>,
    orphaned: AtomicBool,
}

impl Family {
    pub(crate) fn new(total: &Arc<AtomicUsize>) -> Arc<Self> {
        let (children, orphaned) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Family { children, total: total.clone(), orphaned })
    }

    /// Producers and consumers that were not destroyed yet.
    pub(crate) fn len(&self) -> usize {
        self.children.load(Ordering::Acquire)
    }

    /// The connection is over, or its end stops.
    pub(crate) fn orphan(&self) {
        self.orphaned.store(true, Ordering::Release);
    }

    /// Whether producers and consumers are to end.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.orphaned.load(Ordering::Acquire)
    }
}

/// The place of a producer or consumer in its family.
#[derive(Debug)]
pub(crate) struct Child(Arc<Family>);

impl Child {
    pub(crate) fn of(family: Arc<Family>) -> Self {
        family.children.fetch_add(1, Ordering::AcqRel);
        family.total.fetch_add(1, Ordering::AcqRel);
        Child(family)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.0.children.fetch_sub(1, Ordering::AcqRel);
        self.0.total.fetch_sub(1, Ordering::AcqRel);
    }
}
