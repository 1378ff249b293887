//! How this process reaches another one's memory, or its own: by copies through the kernel, or, where the memory is a file, by
//! a mapping of that.

use super::shm::cannot_shrink;
use crate::code::{Code, Res};
use crate::lock::lock;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// How this process reaches another one's memory, or its own.
#[derive(Debug)]
pub enum Memory {
    /// It is this process.
    Own,
    /// `/proc/PID/mem`, which is bound to the address space: it cannot lead to a later process with the same pid.
    Other {
        /// The descriptor.
        file: File,
        /// Mappings of that process's shared regions, by their names.
        mapped: Mutex<HashMap<u64, Arc<Mapped>>>,
    },
}

/// A shared region of another process, mapped here.
#[derive(Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    len: u64,
    mapping: (usize, usize),
}
// SAFETY: a plain address range; accessed by memmove and atomics only.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// The address here of a stretch of the region, if what was mapped covers it.
    pub(super) fn at(&self, offset: u64, len: u64) -> Option<usize> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| self.base.as_ptr() as usize + offset as usize)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own mapping; pins that point into it hold an Arc of it.
        unsafe { libc::munmap(self.mapping.0 as *mut libc::c_void, self.mapping.1) };
    }
}

/// Which way bytes go, as this process sees it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    In,
    Out,
}

/// The kernel refused: the memory is not mapped, or the process is gone.
pub(super) struct Unreached;

impl Memory {
    /// Opens another process's memory.
    pub fn open(pid: u32) -> Res<Memory> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).map_err(|e| {
            crate::log::error!(
                "cannot reach the memory of process {pid}: {e}. Both processes must belong to the same user and be \
                 in the same PID namespace, and kernel.yama.ptrace_scope must be 0 or 1"
            );
            Code::NOT_PERMITTED
        })?;
        Ok(Memory::Other { file, mapped: Mutex::new(HashMap::new()) })
    }

    /// Reads from the other process, outside any region. (For proofs of identity.)
    pub fn read(&self, addr: u64, into: &mut [u8]) -> Res {
        match self {
            Memory::Own => Err(Code::UNEXPECTED),
            Memory::Other { file, .. } => file.read_exact_at(into, addr).map_err(|_| Code::NOT_FOUND),
        }
    }

    /// Moves bytes between this process (`here`, pinned or on our stack) and the other one (`there`).
    pub(super) fn transfer(&self, here: usize, there: u64, len: usize, way: Way) -> Result<(), Unreached> {
        let Memory::Other { file, .. } = self else { return Err(Unreached) };
        let mut done = 0usize;
        while done < len {
            let (ptr, at) = ((here + done) as *mut libc::c_void, (there + done as u64) as libc::off_t);
            // SAFETY: `here` is pinned or local for the whole length; the kernel checks the other side.
            let moved = unsafe {
                match way {
                    Way::In => libc::pread(file.as_raw_fd(), ptr, len - done, at),
                    Way::Out => libc::pwrite(file.as_raw_fd(), ptr, len - done, at),
                }
            };
            match moved {
                n if n > 0 => done += n as usize,
                -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
                _ => return Err(Unreached),
            }
        }
        Ok(())
    }

    /// Maps a shared region of the other process, or finds the mapping. Other regions whose names are not to be kept are
    /// forgotten.
    pub(super) fn map(
        &self,
        pid: u32,
        region: u64,
        (file, len): (BackingFile, u64),
        keep: impl Fn(u64) -> bool,
    ) -> Option<Arc<Mapped>> {
        let Memory::Other { mapped, .. } = self else { return None };
        let mut mapped = lock(mapped);
        if let Some(known) = mapped.get(&region) {
            return Some(known.clone());
        }
        let BackingFile { fd, offset, inode } = file;
        let path = format!("/proc/{pid}/fd/{fd}");
        let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        let meta = file.metadata().ok()?;
        let fits = offset.checked_add(len).is_some_and(|end| end <= meta.len());
        if !cannot_shrink(file.as_raw_fd()) || !fits || meta.ino() != inode {
            return None;
        }
        let skip = offset % 4096;
        let length = usize::try_from(len + skip).ok()?;
        // SAFETY: a new shared mapping of a file that cannot shrink below it.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                (offset - skip) as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new((base as usize + skip as usize) as *mut u8)?;
        let entry = Arc::new(Mapped { base: start, len, mapping: (base as usize, length) });
        mapped.retain(|region, _| keep(*region));
        mapped.insert(region, entry.clone());
        Some(entry)
    }
}

/// The sealed memfd that a range is a mapping of.
pub(super) struct BackingFile {
    /// Its descriptor, in the process that has the range.
    pub(super) fd: i32,
    /// Where the range begins in it.
    pub(super) offset: u64,
    /// Tells it from another file at that descriptor.
    pub(super) inode: u64,
}

/// The sealed memfd of which the range is a shared mapping, if it is one and the program still holds it.
pub(super) fn backing_file(addr: usize, len: usize) -> Option<BackingFile> {
    if !addr.is_multiple_of(4096) {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let (offset, inode) = maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        if addr < start || addr >= end || addr + len > end {
            return None;
        }
        let shared = words.next()? == "rw-s";
        let offset = u64::from_str_radix(words.next()?, 16).ok()?;
        let _device = words.next()?;
        let inode: u64 = words.next()?.parse().ok()?;
        let memfd = words.next()?.starts_with("/memfd:");
        (shared && memfd).then_some((offset + (addr - start) as u64, inode))
    })?;
    std::fs::read_dir("/proc/self/fd").ok()?.flatten().find_map(|entry| {
        let fd: i32 = entry.file_name().to_str()?.parse().ok()?;
        // SAFETY: all-zero is a valid `stat`.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: writes to a local; a descriptor that is closed meanwhile gives an error.
        if unsafe { libc::fstat(fd, &mut stat) } != 0 || stat.st_ino != inode {
            return None;
        }
        cannot_shrink(fd).then_some(BackingFile { fd, offset, inode })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beyond_what_was_mapped_is_reached() {
        let mapped = Mapped { base: NonNull::<u64>::dangling().cast(), len: 4096, mapping: (0, 0) };
        let base = mapped.base.as_ptr() as usize;
        assert_eq!(mapped.at(0, 4096), Some(base));
        assert_eq!(mapped.at(4096, 0), Some(base + 4096));
        for (offset, len) in [(0, 4097), (4095, 2), (u64::MAX, 2)] {
            assert_eq!(mapped.at(offset, len), None, "{offset} {len}");
        }
    }
}
