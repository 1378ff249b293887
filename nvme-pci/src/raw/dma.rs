//! Memory that the controller reads and writes.

use crate::Error;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes memory of this process reachable for the controller.
///
/// # Safety
///
/// When `unmap` has returned, the controller does not touch the memory any more.
pub unsafe trait Mapper: Send + Sync {
    /// Makes `len` bytes from `start` reachable, both multiples of 4096; gives the address that the controller uses for the
    /// first one. The rest follows it without gaps.
    ///
    /// # Safety
    ///
    /// The bytes stay allocated until `unmap`.
    unsafe fn map(&self, start: NonNull<u8>, len: usize) -> io::Result<u64>;

    /// Takes back what `map` gave.
    fn unmap(&self, iova: u64, len: usize);
}

/// Pages for the controller: aligned to 4096 bytes, zeroed, contiguous for both sides. Unmapped and freed when dropped.
pub struct DmaBuffer {
    start: NonNull<u8>,
    len: usize,
    iova: u64,
    mapper: Arc<dyn Mapper>,
}

// SAFETY: the memory belongs to the buffer alone, and the mapper may be used by any thread.
unsafe impl Send for DmaBuffer {}
// SAFETY: all access through `&self` is by atomics or behind raw pointers.
unsafe impl Sync for DmaBuffer {}

impl DmaBuffer {
    /// At least `len` bytes, which is rounded up to pages.
    pub fn new(len: usize, mapper: &Arc<dyn Mapper>) -> Result<Self, Error> {
        let len = len.max(1).next_multiple_of(4096);
        let failed = |source| Error::Memory { len, source };
        // SAFETY: a new private mapping, of nothing that exists.
        let start = unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0)
        };
        let start = match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => start,
            _ => return Err(failed(io::Error::last_os_error())),
        };
        // SAFETY: just allocated, and freed only after `unmap`.
        match unsafe { mapper.map(start, len) } {
            Ok(iova) => Ok(DmaBuffer { start, len, iova, mapper: mapper.clone() }),
            Err(source) => {
                // SAFETY: made above, and nobody knows it.
                unsafe { libc::munmap(start.as_ptr().cast(), len) };
                Err(failed(source))
            }
        }
    }

    /// The first byte, for this process.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes, a multiple of 4096.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The first byte, for the controller.
    pub fn iova(&self) -> u64 {
        self.iova
    }

    fn range(&self, at: usize, len: usize) -> *mut u8 {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} bytes at {at} of {}",
            self.len
        );
        // SAFETY: within the allocation.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// Copies from the buffer.
    ///
    /// # Panics
    ///
    /// Beyond its end.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        // SAFETY: in range; the slice is the caller's own. A device that writes meanwhile gives old or new bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.range(at, to.len()), to.as_mut_ptr(), to.len()) };
    }

    /// Copies into the buffer.
    ///
    /// # Panics
    ///
    /// Beyond its end.
    pub fn write(&mut self, at: usize, from: &[u8]) {
        // SAFETY: in range; the slice is the caller's own.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.range(at, from.len()), from.len()) };
    }

    /// Writes zeros everywhere.
    pub fn clear(&mut self) {
        // SAFETY: the whole allocation.
        unsafe { std::ptr::write_bytes(self.start.as_ptr(), 0, self.len) };
    }

    /// A 32-bit word, after which everything that the device wrote before it is seen.
    ///
    /// # Panics
    ///
    /// Beyond the end, or not aligned.
    pub(crate) fn load(&self, at: usize) -> u32 {
        assert!(at.is_multiple_of(4));
        // SAFETY: in range and aligned; the device writes whole words.
        u32::from_le(unsafe { AtomicU32::from_ptr(self.range(at, 4).cast()) }.load(Ordering::Acquire))
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        self.mapper.unmap(self.iova, self.len);
        // SAFETY: made by `new`; neither the device nor anybody else uses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl std::fmt::Debug for DmaBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DmaBuffer(0x{:x}, {} bytes)", self.iova, self.len)
    }
}
