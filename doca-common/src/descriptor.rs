//! Descriptors: the bytes by which a peer reaches memory or a connection of ours.

use std::fmt;

/// Bytes that DOCA made for a peer. They carry keys, so treat them as a secret: whoever has them can reach what
/// they describe. They are opaque and go stale when what they describe is stopped.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Descriptor(Vec<u8>);

impl Descriptor {
    /// The bytes, to be sent to the peer over any channel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Descriptor {
    fn from(bytes: Vec<u8>) -> Self {
        Descriptor(bytes)
    }
}

impl From<&[u8]> for Descriptor {
    fn from(bytes: &[u8]) -> Self {
        Descriptor(bytes.to_vec())
    }
}

impl AsRef<[u8]> for Descriptor {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The length only: the bytes are secret.
impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Descriptor({} bytes)", self.0.len())
    }
}
