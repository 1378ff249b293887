//! Immediate data: some bytes that travel with a message beside its buffer.

use std::fmt;
use std::ops::Deref;

/// Bytes that fit without an allocation: what BlueField-3 takes.
const INLINE: usize = 32;

/// The immediate data of a message, as a slice of bytes.
#[derive(Clone)]
pub struct Immediate(Bytes);

#[derive(Clone)]
enum Bytes {
    Inline([u8; INLINE], u8),
    Long(Box<[u8]>),
}

impl Default for Immediate {
    fn default() -> Self {
        Immediate::new(&[])
    }
}

impl Immediate {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        if bytes.len() > INLINE {
            return Immediate(Bytes::Long(bytes.into()));
        }
        let mut inline = [0; INLINE];
        inline[..bytes.len()].copy_from_slice(bytes);
        Immediate(Bytes::Inline(inline, bytes.len() as u8))
    }
}

impl Deref for Immediate {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline(bytes, len) => &bytes[..usize::from(*len)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Immediate({:?})", &**self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_is_kept() {
        let bytes: Vec<u8> = (0..100).collect();
        for len in [0, 1, 31, 32, 33, 100] {
            assert_eq!(*Immediate::new(&bytes[..len]), bytes[..len]);
        }
    }
}
