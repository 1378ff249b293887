//! Memory of our own: a sealed memfd, page-aligned and zeroed.

use crate::error::{Error, Refusal, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// A shared mapping of a memfd that can neither shrink nor grow. The descriptor stays open, so that another
/// process which is given it can map the same pages.
pub(crate) struct Memfd {
    base: NonNull<u8>,
    mapped: usize,
    _file: OwnedFd,
}

// SAFETY: an address range and a descriptor; nothing in them belongs to a thread.
unsafe impl Send for Memfd {}
// SAFETY: as above; the bytes are reached through the owner's own rules.
unsafe impl Sync for Memfd {}

impl Memfd {
    pub(crate) fn new(len: usize) -> Result<Self> {
        // SAFETY: no precondition.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize;
        let mapped = len
            .checked_next_multiple_of(page)
            .filter(|&mapped| len > 0 && isize::try_from(mapped).is_ok())
            .ok_or_else(|| Error::refused("mmap", Refusal::OutOfRange).with(format!("{len} bytes")))?;
        // SAFETY: the name is a terminated literal.
        let fd = unsafe {
            libc::memfd_create(c"doca-memory".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if fd < 0 {
            return Err(Error::system("memfd_create"));
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain call on an open descriptor.
        if unsafe { libc::ftruncate(fd, mapped as libc::off_t) } != 0 {
            return Err(Error::system("ftruncate").with(format!("{mapped} bytes")));
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: plain call on an open descriptor.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
            return Err(Error::system("fcntl(F_ADD_SEALS)"));
        }
        // SAFETY: the kernel chooses the address, so no other mapping is touched.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), mapped, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(Error::system("mmap").with(format!("{mapped} bytes")));
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| Error::system("mmap"))?;
        Ok(Memfd { base, mapped, _file: file })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Memfd {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` and unmapped once. Whoever registered it has unregistered it, or leaked it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}
