//! SGL descriptors: the 16 bytes that say where the data of a command are.

use std::fmt;

/// An SGL descriptor as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sgl(pub [u8; 16]);

/// What a descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SglKind {
    /// Keyed SGL Data Block (type 4): memory of the host, reached by RDMA.
    Keyed {
        /// Address in the host.
        address: u64,
        /// Bytes, 24 bits.
        len: u32,
        /// Remote key.
        key: u32,
        /// Subtype 0xF: the response invalidates the key.
        invalidate: bool,
    },
    /// SGL Data Block with an offset (type 0, subtype 1): data in the capsule.
    InCapsule {
        /// Offset from the start of the in-capsule data.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// SGL Data Block with an address (type 0, subtype 0), as PCI controllers take it.
    Address {
        /// Address.
        address: u64,
        /// Bytes.
        len: u32,
    },
    /// Anything else: segments, bit buckets, transport and vendor specific ones.
    Other {
        /// SGL Descriptor Type, 4 bits.
        kind: u8,
        /// SGL Descriptor Sub Type, 4 bits.
        subtype: u8,
    },
}

const KEYED: u8 = 0x40;
const KEYED_INVALIDATE: u8 = 0x4F;
const DATA_ADDRESS: u8 = 0x00;
const DATA_OFFSET: u8 = 0x01;

impl Sgl {
    /// Byte 15 of a Last Segment descriptor with an offset, which announces a list in the capsule.
    pub const LAST_SEGMENT_OFFSET: u8 = 0x31;
    /// Longest keyed block in bytes.
    pub const MAX_KEYED_LEN: u32 = (1 << 24) - 1;

    /// The descriptor of commands without data: a keyed block of no bytes.
    pub fn none() -> Self {
        Sgl::keyed(0, 0, 0)
    }

    /// Memory of the host: a keyed data block.
    ///
    /// # Panics
    ///
    /// `len` needs more than 24 bits.
    pub fn keyed(address: u64, len: u32, key: u32) -> Self {
        assert!(len <= Self::MAX_KEYED_LEN, "a keyed block has at most {} bytes", Self::MAX_KEYED_LEN);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..11].copy_from_slice(&len.to_le_bytes()[..3]);
        bytes[11..15].copy_from_slice(&key.to_le_bytes());
        bytes[15] = KEYED;
        Sgl(bytes)
    }

    /// A keyed data block whose key the response shall invalidate.
    ///
    /// # Panics
    ///
    /// `len` needs more than 24 bits.
    pub fn keyed_invalidate(address: u64, len: u32, key: u32) -> Self {
        Sgl::keyed(address, len, key).with_type(KEYED_INVALIDATE)
    }

    /// Data in the capsule.
    pub fn in_capsule(offset: u64, len: u32) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[15] = DATA_OFFSET;
        Sgl(bytes)
    }

    /// The same with another byte 15: type in bits 7:4, subtype in 3:0.
    pub fn with_type(mut self, byte: u8) -> Self {
        self.0[15] = byte;
        self
    }

    /// What it says.
    pub fn kind(self) -> SglKind {
        let number =
            |at: std::ops::Range<usize>| self.0[at].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
        let address = number(0..8);
        match self.0[15] {
            byte @ (KEYED | KEYED_INVALIDATE) => SglKind::Keyed {
                address,
                len: number(8..11) as u32,
                key: number(11..15) as u32,
                invalidate: byte == KEYED_INVALIDATE,
            },
            DATA_OFFSET => SglKind::InCapsule { offset: address, len: number(8..12) as u32 },
            DATA_ADDRESS => SglKind::Address { address, len: number(8..12) as u32 },
            byte => SglKind::Other { kind: byte >> 4, subtype: byte & 0xF },
        }
    }

    /// How many bytes it describes; `None` where it describes none by itself.
    pub fn len(self) -> Option<u32> {
        match self.kind() {
            SglKind::Keyed { len, .. } | SglKind::InCapsule { len, .. } | SglKind::Address { len, .. } => {
                Some(len)
            }
            SglKind::Other { .. } => None,
        }
    }

    /// Whether it describes a block of no bytes.
    pub fn is_empty(self) -> bool {
        self.len() == Some(0)
    }
}

impl fmt::Debug for Sgl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_the_bytes_of_the_specification() {
        let table = [
            (
                Sgl::keyed(0x1122_3344_5566_7788, 0x0A_0B0C, 0xDEAD_BEEF),
                [
                    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x0C, 0x0B, 0x0A, 0xEF, 0xBE, 0xAD, 0xDE,
                    0x40,
                ],
                SglKind::Keyed {
                    address: 0x1122_3344_5566_7788,
                    len: 0x0A_0B0C,
                    key: 0xDEAD_BEEF,
                    invalidate: false,
                },
            ),
            (
                Sgl::keyed_invalidate(1, 2, 3),
                [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0, 0, 0, 0x4F],
                SglKind::Keyed { address: 1, len: 2, key: 3, invalidate: true },
            ),
            (
                Sgl::in_capsule(16, 0x0100_0000),
                [16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x01],
                SglKind::InCapsule { offset: 16, len: 0x0100_0000 },
            ),
            (
                Sgl::in_capsule(7, 8).with_type(0),
                [7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0],
                SglKind::Address { address: 7, len: 8 },
            ),
            (
                Sgl::in_capsule(0, 32).with_type(Sgl::LAST_SEGMENT_OFFSET),
                [0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0x31],
                SglKind::Other { kind: 3, subtype: 1 },
            ),
            (
                Sgl::none(),
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40],
                SglKind::Keyed { address: 0, len: 0, key: 0, invalidate: false },
            ),
        ];
        for (sgl, bytes, kind) in table {
            assert_eq!((sgl.0, sgl.kind()), (bytes, kind));
        }
        assert!(Sgl::none().is_empty());
        assert_eq!((Sgl::in_capsule(0, 9).len(), Sgl::none().with_type(0x31).len()), (Some(9), None));
    }
}
