//! What tests of targets share.

#![allow(dead_code, reason = "each test file uses a part")]

use doca_common::{Device, ProgressEngine};
use doca_sta::{Doorbells, NvmeQueue, caps};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything in these tests takes.
pub const LIMIT: Duration = Duration::from_secs(20);

const CHILD: &str = "DOCA_STA_TEST_CHILD";

/// Runs `body` of the test of this name in a process with this profile of the simulator.
pub fn with_profile(test: &str, profile: &str, body: fn()) {
    with(test, &[("DOCA_SIM_PROFILE", profile)], body);
}

/// Runs `body` of the test of this name in a process of its own, with these variables.
pub fn with(test: &str, variables: &[(&str, &str)], body: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("DOCA_SIM_QUIET", "1")
        .envs(variables.iter().filter(|(_, value)| !value.is_empty()).copied())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

/// The device that controls targets.
pub fn control() -> Device {
    Device::find().with(caps::SUPPORTED).list().unwrap()[0].open().unwrap()
}

/// A device for connections.
pub fn network() -> Device {
    control()
}

/// Progresses until `done`.
///
/// # Panics
///
/// After [`LIMIT`].
pub fn until(engine: &ProgressEngine, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "did not happen within {LIMIT:?}");
        engine.progress().unwrap();
    }
}

/// How many queues were deleted.
pub type Deleted = Arc<AtomicUsize>;

/// A queue of no disk, which counts its deletion.
pub struct Counted {
    entries: usize,
    memory: NonNull<u8>,
    tail: u16,
    head: u16,
    deleted: Deleted,
}

// SAFETY: owns its memory.
unsafe impl Send for Counted {}

impl Counted {
    pub fn new(entries: usize) -> (Box<Self>, Deleted) {
        let queue = Self::with_doorbells(entries, 0, 4);
        let deleted = queue.deleted.clone();
        (queue, deleted)
    }

    pub fn with_doorbells(entries: usize, tail: u16, head: u16) -> Box<Self> {
        // SAFETY: the layout has a size.
        let memory = NonNull::new(unsafe { alloc_zeroed(Self::layout(entries)) }).unwrap();
        Box::new(Counted { entries, memory, tail, head, deleted: Arc::default() })
    }

    fn layout(entries: usize) -> Layout {
        Layout::from_size_align(entries * 80 + 4096, 4096).unwrap()
    }
}

// SAFETY: one zeroed allocation with room for both queues and a block of doorbells behind them, kept until dropped.
unsafe impl NvmeQueue for Counted {
    fn entries(&self) -> usize {
        self.entries
    }

    fn submission(&self) -> NonNull<u8> {
        self.memory
    }

    fn completion(&self) -> NonNull<u8> {
        // SAFETY: inside the allocation.
        unsafe { self.memory.add(self.entries * 64) }
    }

    fn doorbells(&self) -> Doorbells {
        // SAFETY: inside the allocation.
        let start = unsafe { self.memory.add((self.entries * 80).next_multiple_of(64)) };
        Doorbells { start, len: 64, dmabuf: None, submission_tail: self.tail, completion_head: self.head }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.deleted.fetch_add(1, Ordering::Relaxed);
        // SAFETY: allocated above with this layout.
        unsafe { dealloc(self.memory.as_ptr(), Self::layout(self.entries)) };
    }
}
