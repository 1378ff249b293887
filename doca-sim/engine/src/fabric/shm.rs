//! Shared segments: sealed memfds, mapped whole.
//!
//! A segment can neither shrink nor grow, so an access inside its length never faults, and nothing is left to
//! clean up when its owner dies. Everything in it is an atomic: the other side may write at any moment, and
//! whatever it writes is only a number, to be read once and checked.

use crate::code::{Code, Res};
use crate::lock::lock;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What may lie in a segment.
///
/// # Safety
///
/// The type consists of atomic integers only, `#[repr(C)]`, without padding that matters: every bit pattern is a
/// value, and all access through `&T` is atomic.
pub unsafe trait Shared {}

// SAFETY: atomic integers.
unsafe impl Shared for AtomicU32 {}
// SAFETY: atomic integers.
unsafe impl Shared for AtomicU64 {}

/// A mapped segment.
#[derive(Debug)]
pub struct Segment {
    /// Only of segments that others are to find by it.
    fd: Mutex<Option<OwnedFd>>,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is reached through `&T` with `T: Shared` only, that is through atomics.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

impl Segment {
    /// A new zeroed segment of at least `len` bytes. Pages cost memory when they are first touched.
    pub fn create(name: &CStr, len: usize) -> Res<Segment> {
        // SAFETY: plain system call; the name is NUL-terminated.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if fd < 0 {
            return Err(os("memfd_create"));
        }
        // SAFETY: a new descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let len = len.next_multiple_of(4096);
        let size = libc::off_t::try_from(len).map_err(|_| Code::NO_MEMORY)?;
        // SAFETY: plain system calls on our descriptor.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), size) } < 0 {
            return Err(os("ftruncate of a segment"));
        }
        // SAFETY: as above.
        if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } < 0 {
            return Err(os("sealing of a segment"));
        }
        Self::map(fd, len)
    }

    /// Maps another process's segment. Refuses what is not sealed, because it could shrink under us.
    pub fn open(path: &Path) -> Res<Segment> {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).map_err(|e| {
            crate::log::debug!("cannot open {}: {e}", path.display());
            Code::NOT_FOUND
        })?;
        let len = file.metadata().map_err(|_| Code::OPERATING_SYSTEM)?.len();
        if !cannot_shrink(file.as_raw_fd()) {
            return Err(Code::NOT_FOUND);
        }
        // The mapping outlives the descriptor, of which a process with many peers would run out.
        let segment = Self::map(file.into(), usize::try_from(len).map_err(|_| Code::NO_MEMORY)?)?;
        segment.hide();
        Ok(segment)
    }

    fn map(fd: OwnedFd, len: usize) -> Res<Segment> {
        if len == 0 {
            return Err(Code::NOT_FOUND);
        }
        // SAFETY: a new shared mapping at an address of the kernel's choice; the file is sealed at `len` or more.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(os("mapping of a segment"));
        }
        let base = NonNull::new(base.cast()).ok_or(Code::UNEXPECTED)?;
        Ok(Segment { fd: Mutex::new(Some(fd)), base, len })
    }

    /// The descriptor's number, by which a peer finds the segment under `/proc/PID/fd`; -1 for one that is hidden.
    pub fn fd(&self) -> i32 {
        lock(&self.fd).as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// No peer needs to find the segment any more: gives its descriptor back.
    pub fn hide(&self) {
        lock(&self.fd).take();
    }

    /// Bytes mapped.
    pub fn size(&self) -> usize {
        self.len
    }

    /// The `T` at a byte offset, if it lies inside and is aligned.
    pub fn at<T: Shared>(&self, offset: usize) -> Option<&T> {
        self.array(offset, 1).map(|one| &one[0])
    }

    /// `count` consecutive `T`s.
    pub fn array<T: Shared>(&self, offset: usize, count: usize) -> Option<&[T]> {
        let end = size_of::<T>().checked_mul(count)?.checked_add(offset)?;
        if end > self.len || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: in bounds and aligned (the base is page-aligned); `T: Shared` accepts any bits and is only
        // accessed atomically; the mapping lives as long as `self`.
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) })
    }

    /// The bare address of a range inside, for memory copies.
    pub fn address(&self, offset: usize, len: usize) -> Option<usize> {
        (offset.checked_add(len)? <= self.len).then(|| self.base.as_ptr() as usize + offset)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Whether the file is sealed against shrinking, so that a mapping of it never faults.
pub(super) fn cannot_shrink(fd: i32) -> bool {
    // SAFETY: plain system call; a descriptor that is none gives an error.
    let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
    seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
}

/// Logs a failed system call.
pub fn os(what: &str) -> Code {
    crate::log::error!("{what} failed: {}", std::io::Error::last_os_error());
    Code::OPERATING_SYSTEM
}
