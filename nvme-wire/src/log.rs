//! Log pages. The discovery log is in [`discovery`](crate::discovery).

use crate::code::codes;
use crate::layout::layout;
use crate::status::Status;

codes! {
    /// Log Page Identifier (LID).
    pub struct LogId(u8) {
        SUPPORTED = 0x00 "Supported Log Pages",
        ERROR = 0x01 "Error Information",
        SMART = 0x02 "SMART / Health Information",
        FIRMWARE_SLOT = 0x03 "Firmware Slot Information",
        CHANGED_NAMESPACES = 0x04 "Changed Namespace List",
        EFFECTS = 0x05 "Commands Supported and Effects",
        SELF_TEST = 0x06 "Device Self-test",
        ANA = 0x0C "Asymmetric Namespace Access",
        DISCOVERY = 0x70 "Discovery",
        RESERVATION = 0x80 "Reservation Notification",
    }
}

layout! {
    /// An entry of the Error Information log.
    pub struct ErrorEntry [64] {
        /// Error Count: 1 for the first error; 0 is an unused entry.
        0 error_count: u64,
        /// Submission Queue ID.
        8 sqid: u16,
        /// Command ID.
        10 cid: u16,
        /// Phase Tag of the completion.
        12[0..=0] phase: bool,
        /// Status Field of the completion.
        12[1..=15] status: Status,
        /// Parameter Error Location: byte in the command.
        14 parameter_byte: u8,
        /// Parameter Error Location: bit in that byte.
        15[0..=2] parameter_bit: u8,
        /// LBA of the error.
        16 lba: u64,
        /// Namespace.
        24 nsid: u32,
        /// Command Specific Information.
        32 command_specific: u64,
    }

    /// SMART / Health Information.
    pub struct SmartLog [512] {
        /// Critical Warning.
        0 critical_warning: u8,
        /// Composite Temperature in kelvin.
        1 temperature: u16,
        /// Available Spare in percent.
        3 available_spare: u8,
        /// Available Spare Threshold in percent.
        4 spare_threshold: u8,
        /// Percentage Used.
        5 percentage_used: u8,
        /// Data Units Read, in units of 1000 times 512 bytes.
        32 data_units_read: u128,
        /// Data Units Written, in units of 1000 times 512 bytes.
        48 data_units_written: u128,
        /// Host Read Commands.
        64 host_reads: u128,
        /// Host Write Commands.
        80 host_writes: u128,
        /// Controller Busy Time in minutes.
        96 busy_time: u128,
        /// Power Cycles.
        112 power_cycles: u128,
        /// Power On Hours.
        128 power_on_hours: u128,
        /// Unsafe Shutdowns.
        144 unsafe_shutdowns: u128,
        /// Media and Data Integrity Errors.
        160 media_errors: u128,
        /// Number of Error Information Log Entries.
        176 error_entries: u128,
    }

    /// Firmware Slot Information.
    pub struct FirmwareSlotLog [512] {
        /// Active Firmware Info (AFI).
        0 afi: u8,
        /// Firmware Revision for Slot 1 (FRS1).
        8 frs1: [u8; 8],
    }

    /// A command in the Commands Supported and Effects log.
    pub struct CommandEffects [4] {
        /// Command Supported (CSUPP).
        0[0..=0] csupp: bool,
        /// Logical Block Content Change (LBCC).
        0[1..=1] lbcc: bool,
        /// Namespace Capability Change (NCC).
        0[2..=2] ncc: bool,
        /// Namespace Inventory Change (NIC).
        0[3..=3] nic: bool,
        /// Controller Capability Change (CCC).
        0[4..=4] ccc: bool,
        /// Command Submission and Execution (CSE).
        2[0..=2] cse: u8,
    }

    /// Commands Supported and Effects.
    pub struct EffectsLog [4096] {
        /// By opcode of admin commands (ACS0 to ACS255).
        0 admin: [CommandEffects; 256],
        /// By opcode of I/O commands (IOCS0 to IOCS255).
        1024 io: [CommandEffects; 256],
    }
}

/// The part of a log page that a host asked for, filled with zeros past the page's end.
/// `None`: the offset is beyond the end, which is Invalid Field in Command.
pub fn part(page: &[u8], offset: u64, len: usize) -> Option<Vec<u8>> {
    let rest = page.get(usize::try_from(offset).ok()?..)?;
    let mut part = rest[..len.min(rest.len())].to_vec();
    part.resize(len, 0);
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_bytes_of_the_specification() {
        let entry = ErrorEntry {
            error_count: 1,
            sqid: 2,
            cid: 3,
            phase: true,
            status: Status::INVALID_FIELD,
            parameter_byte: 40,
            lba: 5,
            nsid: 6,
            ..Default::default()
        };
        assert_eq!(
            entry.to_bytes()[..28],
            [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 5, 0, 40, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0]
        );
        let smart = SmartLog { temperature: 300, available_spare: 100, host_reads: 7, ..Default::default() };
        assert_eq!((smart.to_bytes()[..4].to_vec(), smart.to_bytes()[64]), (vec![0, 0x2C, 1, 100], 7));
        let mut effects = EffectsLog::default();
        effects.io[1] = CommandEffects { csupp: true, lbcc: true, ..Default::default() };
        assert_eq!(effects.to_bytes()[1028..1032], [3, 0, 0, 0]);
    }

    #[test]
    fn a_part_past_the_end_is_zeros() {
        assert_eq!(part(&[1, 2, 3, 4], 2, 4), Some(vec![3, 4, 0, 0]));
        assert_eq!(part(&[1], 1, 2), Some(vec![0, 0]));
        assert_eq!(part(&[1], 2, 2), None);
    }
}
