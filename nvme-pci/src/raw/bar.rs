//! The controller's registers.

use crate::Error;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// BAR0 of a controller, mapped into this process.
///
/// # Safety
///
/// `base` is aligned to 4096 bytes, and `len` bytes from there can be read and written as aligned 32-bit words for as long
/// as the value lives. Only atomic or volatile accesses are made to them.
pub unsafe trait Bar: Send + Sync {
    /// The first register.
    fn base(&self) -> NonNull<u8>;

    /// Length in bytes.
    fn len(&self) -> usize;

    /// Never.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Registers by their offset.
#[derive(Clone)]
pub(crate) struct Registers(Arc<dyn Bar>);

impl Registers {
    /// Through a BAR that has at least the admin queue's doorbells.
    pub(crate) fn new(bar: Arc<dyn Bar>) -> Result<Self, Error> {
        if bar.len() < 0x1008 || !(bar.base().as_ptr() as usize).is_multiple_of(4096) {
            return Err(Error::Unsuitable("the BAR is too short or not aligned to a page"));
        }
        Ok(Registers(bar))
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        let offset = offset as usize;
        assert!(
            offset.is_multiple_of(4) && offset + 4 <= self.0.len(),
            "register 0x{offset:x} is outside the BAR"
        );
        // SAFETY: within the BAR and aligned, which the implementor of `Bar` vouches for as long as it lives; we hold it.
        unsafe { AtomicU32::from_ptr(self.0.base().as_ptr().add(offset).cast()) }
    }

    /// Reads 4 bytes.
    pub(crate) fn read(&self, offset: u32) -> u32 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Reads 8 bytes as two words.
    pub(crate) fn read64(&self, offset: u32) -> u64 {
        u64::from(self.read(offset)) | u64::from(self.read(offset + 4)) << 32
    }

    /// Writes 4 bytes, after everything that was written before.
    pub(crate) fn write(&self, offset: u32, value: u32) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Writes 8 bytes as two words.
    pub(crate) fn write64(&self, offset: u32, value: u64) {
        self.write(offset, value as u32);
        self.write(offset + 4, (value >> 32) as u32);
    }
}
