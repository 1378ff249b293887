//! Controller properties: registers of a PCI controller, reached by Property Get and Set over fabrics.

use crate::layout::layout;

/// Offsets of properties in bytes.
pub mod offset {
    /// Controller Capabilities (CAP), 8 bytes.
    pub const CAP: u32 = 0x00;
    /// Version (VS), 4 bytes.
    pub const VS: u32 = 0x08;
    /// Interrupt Mask Set (INTMS), PCI only.
    pub const INTMS: u32 = 0x0C;
    /// Interrupt Mask Clear (INTMC), PCI only.
    pub const INTMC: u32 = 0x10;
    /// Controller Configuration (CC), 4 bytes.
    pub const CC: u32 = 0x14;
    /// Controller Status (CSTS), 4 bytes.
    pub const CSTS: u32 = 0x1C;
    /// NVM Subsystem Reset (NSSR), 4 bytes.
    pub const NSSR: u32 = 0x20;
    /// Admin Queue Attributes (AQA), 4 bytes, PCI only.
    pub const AQA: u32 = 0x24;
    /// Admin Submission Queue Base Address (ASQ), 8 bytes, PCI only.
    pub const ASQ: u32 = 0x28;
    /// Admin Completion Queue Base Address (ACQ), 8 bytes, PCI only.
    pub const ACQ: u32 = 0x30;
    /// First doorbell, PCI only.
    pub const DOORBELLS: u32 = 0x1000;
}

/// Offset of the SQ tail doorbell of a queue; `dstrd` is CAP.DSTRD.
pub const fn sq_doorbell(qid: u16, dstrd: u8) -> u32 {
    offset::DOORBELLS + 2 * qid as u32 * (4 << dstrd)
}

/// Offset of the CQ head doorbell of a queue; `dstrd` is CAP.DSTRD.
pub const fn cq_doorbell(qid: u16, dstrd: u8) -> u32 {
    offset::DOORBELLS + (2 * qid as u32 + 1) * (4 << dstrd)
}

layout! {
    /// Controller Capabilities.
    pub struct Cap [8] {
        /// Maximum Queue Entries Supported (MQES), 0-based.
        0 mqes: u16,
        /// Contiguous Queues Required (CQR).
        2[0..=0] cqr: bool,
        /// Arbitration Mechanism Supported (AMS).
        2[1..=2] ams: u8,
        /// Timeout (TO) for CSTS.RDY in units of 500 ms.
        3 to: u8,
        /// Doorbell Stride (DSTRD): 4 << DSTRD bytes.
        4[0..=3] dstrd: u8,
        /// NVM Subsystem Reset Supported (NSSRS).
        4[4..=4] nssrs: bool,
        /// Command Sets Supported (CSS); bit 0 is the NVM command set.
        4[5..=12] css: u8,
        /// Memory Page Size Minimum (MPSMIN): 2 ^ (12 + MPSMIN) bytes.
        6[0..=3] mpsmin: u8,
        /// Memory Page Size Maximum (MPSMAX).
        6[4..=7] mpsmax: u8,
    }

    /// Version.
    pub struct Version [4] {
        /// Tertiary Version Number (TER).
        0 ter: u8,
        /// Minor Version Number (MNR).
        1 mnr: u8,
        /// Major Version Number (MJR).
        2 mjr: u16,
    }

    /// Controller Configuration.
    pub struct Cc [4] {
        /// Enable (EN).
        0[0..=0] en: bool,
        /// I/O Command Set Selected (CSS).
        0[4..=6] css: u8,
        /// Memory Page Size (MPS): 2 ^ (12 + MPS) bytes.
        0[7..=10] mps: u8,
        /// Arbitration Mechanism Selected (AMS).
        1[3..=5] ams: u8,
        /// Shutdown Notification (SHN): 1 normal, 2 abrupt.
        1[6..=7] shn: u8,
        /// I/O Submission Queue Entry Size (IOSQES): 6 is 64 bytes.
        2[0..=3] iosqes: u8,
        /// I/O Completion Queue Entry Size (IOCQES): 4 is 16 bytes.
        2[4..=7] iocqes: u8,
    }

    /// Controller Status.
    pub struct Csts [4] {
        /// Ready (RDY).
        0[0..=0] rdy: bool,
        /// Controller Fatal Status (CFS).
        0[1..=1] cfs: bool,
        /// Shutdown Status (SHST): 0 normal, 1 in progress, 2 complete.
        0[2..=3] shst: u8,
        /// NVM Subsystem Reset Occurred (NSSRO).
        0[4..=4] nssro: bool,
        /// Processing Paused (PP).
        0[5..=5] pp: bool,
    }

    /// Admin Queue Attributes.
    pub struct Aqa [4] {
        /// Admin Submission Queue Size (ASQS), 0-based.
        0[0..=11] asqs: u16,
        /// Admin Completion Queue Size (ACQS), 0-based.
        2[0..=11] acqs: u16,
    }
}

macro_rules! registers {
    ($($name:ident $number:ty;)*) => {$(
        impl From<$number> for $name {
            fn from(value: $number) -> Self {
                $name::parse(&value.to_le_bytes())
            }
        }

        impl From<$name> for $number {
            fn from(value: $name) -> $number {
                <$number>::from_le_bytes(value.to_bytes())
            }
        }
    )*};
}
registers! { Cap u64; Version u32; Cc u32; Csts u32; Aqa u32; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_the_bits_of_the_specification() {
        let cap = Cap {
            mqes: 127,
            cqr: true,
            ams: 0,
            to: 10,
            dstrd: 0,
            nssrs: false,
            css: 1,
            mpsmin: 0,
            mpsmax: 4,
        };
        assert_eq!(u64::from(cap.clone()), 127 | 1 << 16 | 10 << 24 | 1 << 37 | 4 << 52);
        assert_eq!(Cap::from(u64::from(cap.clone())), cap);
        let cc = Cc { en: true, iosqes: 6, iocqes: 4, ..Cc::default() };
        assert_eq!(u32::from(cc), 0x0046_0001);
        assert_eq!(
            Cc::from(0x0046_4781),
            Cc { en: true, css: 0, mps: 15, ams: 0, shn: 1, iosqes: 6, iocqes: 4 }
        );
        assert_eq!(u32::from(Csts { rdy: true, shst: 2, ..Csts::default() }), 0b1001);
        assert_eq!(u32::from(Version { mjr: 1, mnr: 3, ter: 0 }), 0x0001_0300);
        assert_eq!(u32::from(Aqa { asqs: 31, acqs: 0xFFF }), 0x0FFF_001F);
    }

    #[test]
    fn doorbells_come_in_pairs() {
        assert_eq!([sq_doorbell(0, 0), cq_doorbell(0, 0), sq_doorbell(3, 0)], [0x1000, 0x1004, 0x1018]);
        assert_eq!([sq_doorbell(1, 2), cq_doorbell(1, 2)], [0x1020, 0x1030]);
    }
}
