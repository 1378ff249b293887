//! I/O commands of the NVM command set.

use crate::command::Arguments;
use crate::layout::layout;

layout! {
    /// Arguments of Read, Write, Compare, Verify and Write Zeroes.
    pub struct ReadWrite [64] {
        /// Starting LBA (SLBA).
        40 slba: u64,
        /// Number of Logical Blocks (NLB), 0-based.
        48[0..=15] nlb: u16,
        /// Deallocate (DEAC), Write Zeroes only.
        48[25..=25] deac: bool,
        /// Protection Information Field (PRINFO).
        48[26..=29] prinfo: u8,
        /// Force Unit Access (FUA).
        48[30..=30] fua: bool,
        /// Limited Retry (LR).
        48[31..=31] lr: bool,
        /// Dataset Management hints (DSM).
        52 dsm: u8,
        /// Expected Initial Logical Block Reference Tag.
        56 reference_tag: u32,
        /// Expected Logical Block Application Tag.
        60 application_tag: u16,
        /// Expected Logical Block Application Tag Mask.
        62 application_tag_mask: u16,
    }

    /// Arguments of Dataset Management; its data are [`DsmRange`]s.
    pub struct DatasetManagement [64] {
        /// Number of Ranges (NR), 0-based.
        40 nr: u8,
        /// Integral Dataset for Read (IDR).
        44[0..=0] idr: bool,
        /// Integral Dataset for Write (IDW).
        44[1..=1] idw: bool,
        /// Deallocate (AD).
        44[2..=2] ad: bool,
    }

    /// A range of Dataset Management.
    pub struct DsmRange [16] {
        /// Context attributes.
        0 attributes: u32,
        /// Length in logical blocks.
        4 nlb: u32,
        /// Starting LBA.
        8 slba: u64,
    }
}

impl Arguments for ReadWrite {}
impl Arguments for DatasetManagement {}

impl ReadWrite {
    /// How many blocks: NLB + 1.
    pub fn blocks(&self) -> u32 {
        u32::from(self.nlb) + 1
    }
}

impl DatasetManagement {
    /// How many ranges: NR + 1.
    pub fn ranges(&self) -> usize {
        usize::from(self.nr) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Sqe;

    #[test]
    fn arguments_are_the_bytes_of_the_specification() {
        let rw = ReadWrite {
            slba: 0x1_0000_0002,
            nlb: 0xFFFF,
            deac: true,
            prinfo: 0b1000,
            fua: true,
            lr: true,
            dsm: 3,
            reference_tag: 4,
            application_tag: 5,
            application_tag_mask: 6,
        };
        let bytes = Sqe::default().with(&rw).to_bytes();
        assert_eq!(
            bytes[40..],
            [2, 0, 0, 0, 1, 0, 0, 0, 0xFF, 0xFF, 0, 0xE2, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 6, 0]
        );
        assert_eq!(rw.blocks(), 65_536);
        let dsm = DatasetManagement { nr: 255, ad: true, ..Default::default() };
        assert_eq!(
            (Sqe::default().with(&dsm).to_bytes()[40..48].to_vec(), dsm.ranges()),
            (vec![255, 0, 0, 0, 4, 0, 0, 0], 256)
        );
        assert_eq!(
            DsmRange { attributes: 1, nlb: 2, slba: 3 }.to_bytes(),
            [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}
