//! Memory that was mapped for the controller.

use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

/// An address that is not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unmapped;

/// What the controller reaches: ranges by their address, which is the same on both sides.
#[derive(Default)]
pub(crate) struct Map(RwLock<BTreeMap<u64, usize>>);

// SAFETY: copies are made with the lock held for reading, and `unmap` takes it for writing.
unsafe impl nvme_pci::Mapper for Map {
    unsafe fn map(&self, start: NonNull<u8>, len: usize) -> io::Result<u64> {
        let iova = start.as_ptr() as u64;
        if !iova.is_multiple_of(4096) || len == 0 || !len.is_multiple_of(4096) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "only whole pages can be mapped"));
        }
        let mut ranges = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = ranges.range(..iova + len as u64).next_back();
        if before.is_some_and(|(start, len)| start + *len as u64 > iova) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the range is mapped already"));
        }
        ranges.insert(iova, len);
        Ok(iova)
    }

    fn unmap(&self, iova: u64, len: usize) {
        let mut ranges = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if ranges.get(&iova) == Some(&len) {
            ranges.remove(&iova);
        }
    }
}

impl Map {
    /// Runs `f` with a pointer to mapped memory, which stays mapped meanwhile.
    fn with<T>(&self, iova: u64, len: usize, f: impl FnOnce(*mut u8) -> T) -> Result<T, Unmapped> {
        let ranges = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (start, size) = ranges.range(..=iova).next_back().ok_or(Unmapped)?;
        let end = iova.checked_add(len as u64).ok_or(Unmapped)?;
        if end > start + *size as u64 {
            return Err(Unmapped);
        }
        Ok(f(iova as *mut u8))
    }

    /// Copies from mapped memory.
    pub(crate) fn read(&self, iova: u64, to: &mut [u8]) -> Result<(), Unmapped> {
        let (target, len) = (to.as_mut_ptr(), to.len());
        // SAFETY: mapped for as long as the lock is held, so allocated; the target is a slice of ours.
        self.with(iova, len, |from| unsafe { std::ptr::copy(from, target, len) })
    }

    /// Copies to mapped memory.
    pub(crate) fn write(&self, iova: u64, from: &[u8]) -> Result<(), Unmapped> {
        // SAFETY: mapped for as long as the lock is held, so allocated; whoever mapped it expects a device to write.
        self.with(iova, from.len(), |to| unsafe { std::ptr::copy(from.as_ptr(), to, from.len()) })
    }

    /// Writes a completion: the dword with the phase bit last, so that who sees it sees the rest.
    pub(crate) fn write_completion(&self, iova: u64, entry: &[u8; 16]) -> Result<(), Unmapped> {
        if !iova.is_multiple_of(16) {
            return Err(Unmapped);
        }
        let last = u32::from_ne_bytes([entry[12], entry[13], entry[14], entry[15]]);
        self.with(iova, 16, |to| {
            // SAFETY: 16 mapped, aligned bytes.
            unsafe {
                std::ptr::copy(entry.as_ptr(), to, 12);
                AtomicU32::from_ptr(to.add(12).cast()).store(last, Ordering::Release);
            }
        })
    }
}
