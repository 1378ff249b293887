//! The bytes of messages on their way.

use std::ptr::NonNull;

/// One buffer for each message that can be on its way, all of one size. DOCA may read a buffer until its message is
/// sent, so there are no references into them.
#[derive(Debug)]
pub(crate) struct Bytes {
    start: NonNull<[u8]>,
    size: usize,
}

impl Bytes {
    pub(crate) fn new(count: usize, size: usize) -> Self {
        let bytes: Box<[u8]> = vec![0; count.saturating_mul(size)].into_boxed_slice();
        Bytes { start: NonNull::from(Box::leak(bytes)), size }
    }

    /// Copies a message into a buffer, in parts; gives its address and length.
    ///
    /// # Panics
    ///
    /// If there is no such buffer, or the parts are longer than it.
    ///
    /// # Safety
    ///
    /// No message is on its way from this buffer.
    pub(crate) unsafe fn fill(&self, index: usize, parts: &[&[u8]]) -> (*const u8, usize) {
        let begin = index * self.size;
        assert!(begin + self.size <= self.start.len());
        // SAFETY: the buffer lies inside the allocation, as was checked.
        let buffer = unsafe { self.start.cast::<u8>().add(begin) };
        let mut len = 0;
        for part in parts {
            assert!(part.len() <= self.size - len);
            // SAFETY: inside the buffer, which nobody else uses, as the caller says; the part is another allocation.
            unsafe { buffer.add(len).copy_from_nonoverlapping(NonNull::from(*part).cast(), part.len()) };
            len += part.len();
        }
        (buffer.as_ptr(), len)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`, and taken back once. The run that owns this ends with its last message.
        drop(unsafe { Box::from_raw(self.start.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn parts_follow_each_other_and_buffers_do_not_overlap() {
        let bytes = Bytes::new(2, 4);
        // SAFETY: nothing is on its way.
        let ((first, len), (second, _)) =
            unsafe { (bytes.fill(0, &[b"ab", b"", b"cd"]), bytes.fill(1, &[b"efgh"])) };
        assert_eq!((len, second), (4, first.wrapping_add(4)));
        // SAFETY: inside the allocation, which nobody writes now.
        assert_eq!(unsafe { std::slice::from_raw_parts(first, 8) }, b"abcdefgh");
    }
}
