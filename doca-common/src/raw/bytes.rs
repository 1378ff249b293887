//! The bytes of memory: slices where it is private, volatile copies and atomic cells where a peer may write.

use crate::buffer::{Buffer, SharedBuffer};
use crate::memory::Cell;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the piece owns the range, which is initialised (zeroed, or foreign bytes) and private: no peer may
        // reach it, and while it is in flight nobody has the buffer to call this on.
        unsafe { std::slice::from_raw_parts(self.piece.start().as_ptr(), self.piece.len()) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the exclusive reference makes the slice the only one.
        unsafe { std::slice::from_raw_parts_mut(self.piece.start().as_ptr(), self.piece.len()) }
    }
}

impl SharedBuffer {
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.piece.start()
    }
}

/// Copies from memory that a peer may change meanwhile.
///
/// # Safety
///
/// `from` is the start of at least `to.len()` bytes that are allocated, and that no other thread of this process
/// writes.
pub(crate) unsafe fn copy_out(from: NonNull<u8>, to: &mut [u8]) {
    let from = from.as_ptr();
    let mut done = 0;
    if from.addr().is_multiple_of(8) {
        let (words, _) = to.as_chunks_mut::<8>();
        for (index, word) in words.iter_mut().enumerate() {
            // SAFETY: inside the range of the caller, and aligned.
            *word = unsafe { from.cast::<u64>().add(index).read_volatile() }.to_ne_bytes();
        }
        done = words.len() * 8;
    }
    for (index, byte) in to.iter_mut().enumerate().skip(done) {
        // SAFETY: inside the range of the caller.
        *byte = unsafe { from.add(index).read_volatile() };
    }
}

/// Copies into memory that a peer may look at or change meanwhile.
///
/// # Safety
///
/// `to` is the start of at least `from.len()` bytes that are allocated, and that no other thread of this process
/// touches.
pub(crate) unsafe fn copy_in(from: &[u8], to: NonNull<u8>) {
    let to = to.as_ptr();
    let mut done = 0;
    if to.addr().is_multiple_of(8) {
        let (words, _) = from.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            // SAFETY: inside the range of the caller, and aligned.
            unsafe { to.cast::<u64>().add(index).write_volatile(u64::from_ne_bytes(*word)) };
        }
        done = words.len() * 8;
    }
    for (index, byte) in from.iter().enumerate().skip(done) {
        // SAFETY: inside the range of the caller.
        unsafe { to.add(index).write_volatile(*byte) };
    }
}

impl SharedBuffer {
    /// Copies the beginning of the data out, as much as fits; returns how many bytes. A peer may be changing them.
    pub fn read(&self, to: &mut [u8]) -> usize {
        self.read_at(0, to)
    }

    /// As [`read`](Self::read), of the data from an offset on; 0 where there is none.
    pub fn read_at(&self, offset: usize, to: &mut [u8]) -> usize {
        let len = to.len().min(self.len().saturating_sub(offset));
        if len > 0 {
            // SAFETY: the piece owns the range, has `offset + len` bytes, and reading it elsewhere needs this object.
            unsafe { copy_out(self.start().add(offset), &mut to[..len]) };
        }
        len
    }

    /// Lets the kernel read from a descriptor into the room behind the data, at most this many bytes; returns how many
    /// came. They become data too.
    ///
    /// # Errors
    ///
    /// Those of `read`; nothing has changed then.
    pub fn read_from(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        let (fd, len) = (from.as_fd().as_raw_fd(), self.len());
        let most = most.min(self.capacity() - len);
        // SAFETY: the piece owns the range and has `len + most` bytes; the exclusive reference keeps other threads off,
        // and there are no references to the bytes.
        let read = unsafe { libc::read(fd, self.start().add(len).as_ptr().cast(), most) };
        let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
        self.set_len(len + read);
        Ok(read)
    }

    /// Lets the kernel send the data from an offset on over a socket, as much as it takes now; returns how much. A peer may
    /// be changing it. Does not wait and raises no SIGPIPE.
    ///
    /// # Errors
    ///
    /// Those of `send`.
    pub fn send_to(&self, socket: impl AsFd, offset: usize) -> io::Result<usize> {
        let fd = socket.as_fd().as_raw_fd();
        let offset = offset.min(self.len());
        // SAFETY: the piece owns the range and has `len` bytes; the kernel only reads them.
        let sent = unsafe {
            let from = self.start().add(offset).as_ptr().cast();
            libc::send(fd, from, self.len() - offset, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Copies bytes in from the start, as many as fit into the capacity; returns how many. They become the data.
    pub fn write(&mut self, from: &[u8]) -> usize {
        let len = from.len().min(self.capacity());
        // SAFETY: the piece owns the range and has `len` bytes; the exclusive reference keeps other threads off.
        unsafe { copy_in(&from[..len], self.start()) };
        self.set_len(len);
        len
    }
}

impl crate::memory::SharedMemory {
    pub(crate) fn copy_out(&self, offset: usize, to: &mut [u8]) {
        // SAFETY: the caller checked that the range lies inside and that nobody took it; the type is not Sync, so
        // this is the only thread that reaches it.
        unsafe { copy_out(self.region.at(offset), to) };
    }

    pub(crate) fn copy_in(&self, offset: usize, from: &[u8]) {
        // SAFETY: as above.
        unsafe { copy_in(from, self.region.at(offset)) };
    }
}

impl Cell<'_> {
    fn atomic(&self) -> &AtomicU64 {
        // SAFETY: made over 8 aligned bytes of a region that the borrow keeps; a peer changes them in one piece.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().cast()) }
    }

    /// The value now. What a peer wrote before it changed the cell is visible afterwards.
    pub fn load(&self) -> u64 {
        self.atomic().load(Ordering::Acquire)
    }

    /// Stores a value. What was stored before is visible to whoever sees it.
    pub fn store(&self, value: u64) {
        self.atomic().store(value, Ordering::Release);
    }
}
