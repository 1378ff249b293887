//! Memory of somebody else, and the safe implementation for bytes of the heap.

use std::ptr::NonNull;

/// Memory of somebody else that may be registered: of an allocator, a driver, a GPU.
///
/// # Safety
///
/// From [`base`](Foreign::base) on, [`len`](Foreign::len) bytes are allocated, initialised, and stay where they are
/// until the object is dropped; both answers never change. Nothing else reads or writes the bytes while the object
/// lives, and no reference to them exists.
pub unsafe trait Foreign: Send + Sync + 'static {
    /// The first byte.
    fn base(&self) -> NonNull<u8>;

    /// How many bytes; more than none.
    fn len(&self) -> usize;

    /// Whether there is nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dma-buf that the memory is a part of, with the offset inside it.
    fn dmabuf(&self) -> Option<(std::ffi::c_int, usize)> {
        None
    }
}

/// Bytes of the heap, as foreign memory: no `unsafe` needed. Made from a `Box<[u8]>`.
pub struct Heap {
    bytes: NonNull<[u8]>,
}

// SAFETY: owns its bytes, which nothing else can name.
unsafe impl Send for Heap {}
// SAFETY: has no access through a shared reference but the address.
unsafe impl Sync for Heap {}

// SAFETY: the box was turned into a pointer, so nothing asserts to be its only user; it stays allocated and in
// place until this object is dropped, and it has no other owner.
unsafe impl Foreign for Heap {
    fn base(&self) -> NonNull<u8> {
        self.bytes.cast()
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl From<Box<[u8]>> for Heap {
    fn from(bytes: Box<[u8]>) -> Self {
        Heap { bytes: NonNull::from(Box::leak(bytes)) }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: came from a box and goes back into one once.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}
