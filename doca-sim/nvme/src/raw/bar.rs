//! Registers in plain memory.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const LEN: usize = 8192;

/// BAR0: registers in the first page, doorbells of 512 queue pairs in the second.
#[repr(C, align(4096))]
pub(crate) struct Bar([AtomicU32; LEN / 4]);

// SAFETY: an aligned array of atomic words, which lives as long as the value and is reached only as atomics.
unsafe impl nvme_pci::Bar for Bar {
    fn base(&self) -> NonNull<u8> {
        NonNull::from(&self.0).cast()
    }

    fn len(&self) -> usize {
        LEN
    }
}

impl Bar {
    pub(crate) fn new() -> Self {
        Bar(std::array::from_fn(|_| AtomicU32::new(0)))
    }

    /// Reads a register, and sees what was written before it.
    pub(crate) fn read(&self, offset: u32) -> u32 {
        self.0[offset as usize / 4].load(Ordering::Acquire)
    }

    pub(crate) fn read64(&self, offset: u32) -> u64 {
        u64::from(self.read(offset)) | u64::from(self.read(offset + 4)) << 32
    }

    pub(crate) fn write(&self, offset: u32, value: u32) {
        self.0[offset as usize / 4].store(value, Ordering::Release);
    }

    pub(crate) fn write64(&self, offset: u32, value: u64) {
        self.write(offset, value as u32);
        self.write(offset + 4, (value >> 32) as u32);
    }

    /// Every register reads as ones, as where no device answers.
    pub(crate) fn vanish(&self) {
        for word in &self.0 {
            word.store(u32::MAX, Ordering::Release);
        }
    }
}
