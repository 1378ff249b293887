//! A sleeper's bell in shared memory: whether it wants to be woken, and where a byte wakes it.

use super::process::Process;
use super::shm::Shared;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Zeroed, it belongs to somebody who is awake.
#[repr(C)]
pub struct Bell {
    /// 1 while the owner sleeps, or is about to, and wants to be woken.
    armed: AtomicU32,
    /// The owner's descriptor to write a byte to, plus one; zero if it has none.
    wake_fd: AtomicU32,
    /// The inode of the pipe behind it: numbers are used again.
    pipe: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for Bell {}

impl Bell {
    /// The owner is about to sleep: `wake_fd`, the end of a pipe, is where a byte wakes it.
    pub fn arm(&self, wake_fd: i32) {
        if self.wake_fd.swap(wake_fd as u32 + 1, SeqCst) != wake_fd as u32 + 1 {
            self.pipe.store(inode(wake_fd), SeqCst);
        }
        self.armed.store(1, SeqCst);
    }

    /// The owner is awake.
    pub fn disarm(&self) {
        self.armed.store(0, SeqCst);
    }

    /// Wakes the owner, a thread of that process, if it sleeps. To be called after what it should see has been written.
    pub fn ring(&self, owner: &Process) {
        if self.armed.load(SeqCst) == 0 || self.armed.swap(0, SeqCst) == 0 {
            return;
        }
        if let Some(fd) = self.wake_fd.load(SeqCst).checked_sub(1) {
            owner.wake(fd, self.pipe.load(SeqCst));
        }
    }
}

fn inode(fd: i32) -> u64 {
    // SAFETY: all-zero is a valid `stat`.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a local; an error leaves it zero.
    unsafe { libc::fstat(fd, &mut stat) };
    stat.st_ino
}
