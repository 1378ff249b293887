//! Submission queue entries, completion queue entries, and the capsules that carry them over a fabric.

use crate::code::codes;
use crate::layout::{Layout, Short, Wire, layout};
use crate::sgl::Sgl;
use crate::status::Status;

layout! {
    /// Submission Queue Entry: a command. What stands in CDW10 to CDW15 depends on the command: [`Sqe::get`] and
    /// [`Sqe::set`] with the types in [`admin`](crate::admin), [`io`](crate::io) and [`fabrics`](crate::fabrics).
    pub struct Sqe [64] {
        /// Opcode (OPC).
        0 opcode: u8,
        /// Fused Operation (FUSE): 0 for a normal command.
        1[0..=1] fuse: u8,
        /// PRP or SGL for Data Transfer (PSDT): 0 PRP, 1 SGL; fabrics take 1 only.
        1[6..=7] psdt: u8,
        /// Command Identifier (CID).
        2 cid: u16,
        /// Namespace Identifier (NSID). In a Fabrics command byte 4 is the type.
        4 nsid: u32,
        /// Command Dword 2.
        8 cdw2: u32,
        /// Command Dword 3.
        12 cdw3: u32,
        /// Metadata Pointer (MPTR).
        16 mptr: u64,
        /// Data Pointer (DPTR) as bytes; see [`Sqe::sgl`] and [`Sqe::prps`].
        24 dptr: [u8; 16],
        /// Command Dwords 10 to 15.
        40 cdw: [u32; 6],
    }

    /// Completion Queue Entry.
    pub struct Cqe [16] {
        /// Command specific: bytes 7:0. DW0 is the low half.
        0 result: u64,
        /// Submission Queue Head Pointer (SQHD).
        8 sqhd: u16,
        /// Submission Queue Identifier (SQID); 0 over fabrics.
        10 sqid: u16,
        /// Command Identifier (CID).
        12 cid: u16,
        /// Phase Tag (P); 0 over fabrics.
        14[0..=0] phase: bool,
        /// Status.
        14[1..=15] status: Status,
    }
}

impl Default for Status {
    fn default() -> Self {
        Status::SUCCESS
    }
}

impl Cqe {
    /// The completion of a command, with a result of 0.
    pub fn new(cid: u16, status: Status) -> Self {
        Cqe { cid, status, ..Cqe::default() }
    }
}

impl Sqe {
    /// A command that a fabric carries: PSDT says SGL, and this is the data's.
    pub fn fabric(sgl: Sgl) -> Self {
        Sqe { psdt: 1, dptr: sgl.0, ..Sqe::default() }
    }

    /// The command's arguments.
    pub fn get<C: Arguments>(&self) -> C {
        C::get(&self.to_bytes())
    }

    /// Writes the command's arguments; what they do not cover stays.
    pub fn set<C: Arguments>(&mut self, arguments: &C) {
        let mut bytes = self.to_bytes();
        arguments.put(&mut bytes);
        *self = Sqe::parse(&bytes);
    }

    /// The same command with these arguments.
    pub fn with<C: Arguments>(mut self, arguments: &C) -> Self {
        self.set(arguments);
        self
    }

    /// The data pointer as SGL descriptor 1.
    pub fn sgl(&self) -> Sgl {
        Sgl(self.dptr)
    }

    /// The data pointer as PRP Entry 1 and 2.
    pub fn prps(&self) -> [u64; 2] {
        Wire::get(&self.dptr)
    }

    /// Sets PRP Entry 1 and 2.
    pub fn set_prps(&mut self, prps: [u64; 2]) {
        prps.put(&mut self.dptr);
    }

    /// Where the data go: bits 1:0 of the opcode, in a Fabrics command of its type.
    pub fn direction(&self) -> Direction {
        Direction::of(if self.opcode == FABRICS { self.nsid as u8 } else { self.opcode })
    }
}

/// A structure of 64 bytes that covers only what one command adds to [`Sqe`].
pub trait Arguments: Layout {}

/// Where the data of a command go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// There are none.
    None,
    /// From the host to the controller.
    ToController,
    /// From the controller to the host.
    ToHost,
    /// Both ways; no command does that.
    Both,
}

impl Direction {
    /// From bits 1:0 of an opcode or Fabrics command type.
    pub const fn of(code: u8) -> Self {
        match code & 3 {
            0 => Direction::None,
            1 => Direction::ToController,
            2 => Direction::ToHost,
            _ => Direction::Both,
        }
    }
}

/// A command capsule: a command, and data when they travel with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capsule<'a> {
    /// The command.
    pub command: Sqe,
    /// In-capsule data; an SGL offset of 0 means their first byte where ICDOFF is 0.
    pub data: &'a [u8],
}

impl<'a> Capsule<'a> {
    /// Takes the bytes of one message apart.
    pub fn read(message: &'a [u8]) -> Result<Self, Short> {
        let command = Sqe::read(message)?;
        Ok(Capsule { command, data: &message[Sqe::LEN..] })
    }

    /// Writes it to the beginning of `message`; the number of bytes, or the error when they do not fit.
    pub fn write(&self, message: &mut [u8]) -> Result<usize, Short> {
        let (need, have) = (Sqe::LEN + self.data.len(), message.len());
        let place = message.get_mut(..need).ok_or(Short { what: "the message", need, have })?;
        self.command.put(&mut place[..Sqe::LEN]);
        place[Sqe::LEN..].copy_from_slice(self.data);
        Ok(need)
    }
}

/// Opcode of all Fabrics commands, on every queue.
pub const FABRICS: u8 = 0x7F;

/// The namespace identifier that means all namespaces.
pub const ALL_NAMESPACES: u32 = u32::MAX;

codes! {
    /// Opcodes of the admin queue.
    pub struct AdminOpcode(u8) {
        DELETE_SQ = 0x00 "Delete I/O Submission Queue",
        CREATE_SQ = 0x01 "Create I/O Submission Queue",
        GET_LOG_PAGE = 0x02 "Get Log Page",
        DELETE_CQ = 0x04 "Delete I/O Completion Queue",
        CREATE_CQ = 0x05 "Create I/O Completion Queue",
        IDENTIFY = 0x06 "Identify",
        ABORT = 0x08 "Abort",
        SET_FEATURES = 0x09 "Set Features",
        GET_FEATURES = 0x0A "Get Features",
        ASYNC_EVENT_REQUEST = 0x0C "Asynchronous Event Request",
        NAMESPACE_MANAGEMENT = 0x0D "Namespace Management",
        FIRMWARE_COMMIT = 0x10 "Firmware Commit",
        FIRMWARE_DOWNLOAD = 0x11 "Firmware Image Download",
        SELF_TEST = 0x14 "Device Self-test",
        NAMESPACE_ATTACHMENT = 0x15 "Namespace Attachment",
        KEEP_ALIVE = 0x18 "Keep Alive",
        DIRECTIVE_SEND = 0x19 "Directive Send",
        DIRECTIVE_RECEIVE = 0x1A "Directive Receive",
        FORMAT = 0x80 "Format NVM",
        SECURITY_SEND = 0x81 "Security Send",
        SECURITY_RECEIVE = 0x82 "Security Receive",
        SANITIZE = 0x84 "Sanitize",
    }

    /// Opcodes of I/O queues, NVM command set.
    pub struct IoOpcode(u8) {
        FLUSH = 0x00 "Flush",
        WRITE = 0x01 "Write",
        READ = 0x02 "Read",
        WRITE_UNCORRECTABLE = 0x04 "Write Uncorrectable",
        COMPARE = 0x05 "Compare",
        WRITE_ZEROES = 0x08 "Write Zeroes",
        DATASET_MANAGEMENT = 0x09 "Dataset Management",
        VERIFY = 0x0C "Verify",
        RESERVATION_REGISTER = 0x0D "Reservation Register",
        RESERVATION_REPORT = 0x0E "Reservation Report",
        RESERVATION_ACQUIRE = 0x11 "Reservation Acquire",
        RESERVATION_RELEASE = 0x15 "Reservation Release",
        COPY = 0x19 "Copy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_the_bytes_of_the_specification() {
        let mut bytes = [0; 64];
        (bytes[0], bytes[1]) = (0x02, 0b0100_0001);
        bytes[2..8].copy_from_slice(&[0x34, 0x12, 1, 0, 0, 0]);
        bytes[24..40].copy_from_slice(&[0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
        bytes[40] = 9;
        let sqe = Sqe::parse(&bytes);
        assert_eq!((sqe.opcode, sqe.fuse, sqe.psdt, sqe.cid, sqe.nsid), (2, 1, 1, 0x1234, 1));
        assert_eq!((sqe.prps(), sqe.cdw), ([0x1000, 0x2000], [9, 0, 0, 0, 0, 0]));
        assert_eq!(sqe.to_bytes(), bytes);

        let cqe = Cqe {
            result: 0x8_0000_0001,
            sqhd: 3,
            sqid: 1,
            cid: 0x1234,
            phase: true,
            status: Status::LBA_OUT_OF_RANGE.with_dnr(),
        };
        assert_eq!(cqe.to_bytes(), [1, 0, 0, 0, 8, 0, 0, 0, 3, 0, 1, 0, 0x34, 0x12, 0x01, 0x81]);
        assert_eq!(Cqe::parse(&cqe.to_bytes()), cqe);
    }

    #[test]
    fn the_direction_is_in_the_opcode_or_the_fabrics_type() {
        for (opcode, nsid, direction) in [
            (IoOpcode::FLUSH.0, 1, Direction::None),
            (IoOpcode::WRITE.0, 1, Direction::ToController),
            (IoOpcode::READ.0, 1, Direction::ToHost),
            (FABRICS, 0x01, Direction::ToController),
            (FABRICS, 0x04, Direction::None),
            (FABRICS, 0x06, Direction::ToHost),
            (0xC3, 0, Direction::Both),
        ] {
            assert_eq!(Sqe { opcode, nsid, ..Sqe::default() }.direction(), direction, "{opcode:x}");
        }
    }

    #[test]
    fn a_capsule_is_a_command_with_data_behind_it() {
        let command = Sqe { cid: 5, ..Sqe::fabric(Sgl::in_capsule(0, 3)) };
        let mut message = [0xFF; 80];
        let len = Capsule { command: command.clone(), data: b"abc" }.write(&mut message).unwrap();
        assert_eq!((len, &message[64..68]), (67, b"abc\xFF".as_slice()));
        assert_eq!(
            Capsule::read(&message[..len]).unwrap(),
            Capsule { command: command.clone(), data: b"abc" }
        );
        assert_eq!(Capsule::read(&[0; 63]).unwrap_err().to_string(), "Sqe has 64 bytes, here are 63");
        assert!(Capsule { command, data: &[0; 17] }.write(&mut message).is_err());
    }

    #[test]
    fn codes_without_a_name_survive() {
        assert_eq!(AdminOpcode(0xC3).to_string(), "unknown (0xC3)");
        assert_eq!(IoOpcode::WRITE.to_string(), "Write (0x01)");
    }
}
