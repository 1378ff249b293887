//! Commands, completions and scatter-gather descriptors, as the NVMe specifications lay them out.

/// Bytes of a command.
pub(super) const COMMAND: usize = 64;
/// Bytes of a completion.
pub(super) const COMPLETION: usize = 16;

pub(super) const WRITE: u8 = 0x01;
pub(super) const READ: u8 = 0x02;
pub(super) const FABRICS: u8 = 0x7f;
pub(super) const CONNECT: u8 = 0x01;

/// A status: code and type as they stand above the phase bit, with "do not retry".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Status(pub(super) u16);

impl Status {
    const DNR: u16 = 1 << 14;
    pub(super) const INVALID_FIELD: Status = Status(0x02 | Status::DNR);
    pub(super) const INTERNAL: Status = Status(0x06);
    pub(super) const ABORTED: Status = Status(0x07);
    pub(super) const INVALID_NAMESPACE: Status = Status(0x0b | Status::DNR);
    pub(super) const SGL_LENGTH: Status = Status(0x0f | Status::DNR);
    pub(super) const SGL_TYPE: Status = Status(0x11 | Status::DNR);
    pub(super) const SGL_OFFSET: Status = Status(0x16 | Status::DNR);
}

/// A command as it arrived.
#[derive(Clone, Copy)]
pub(super) struct Command(pub(super) [u8; COMMAND]);

/// A scatter-gather descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sgl {
    /// Memory of the host. `invalidate` asks for its key to be mentioned with the answer.
    Keyed { addr: u64, len: u32, key: u32, invalidate: bool },
    /// Data behind the command, from an offset on.
    InCapsule { offset: u64, len: u32 },
    /// Anything else.
    Other,
}

impl Command {
    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from(self.u32_at(at)) | u64::from(self.u32_at(at + 4)) << 32
    }

    pub(super) fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Whether data are described by PRPs (0), or by a descriptor (1).
    pub(super) fn psdt(&self) -> u8 {
        self.0[1] >> 6
    }

    pub(super) fn is_fused(&self) -> bool {
        self.0[1] & 3 != 0
    }

    pub(super) fn cid(&self) -> u16 {
        self.u16_at(2)
    }

    pub(super) fn nsid(&self) -> u32 {
        self.u32_at(4)
    }

    pub(super) fn lba(&self) -> u64 {
        self.u64_at(40)
    }

    /// Blocks.
    pub(super) fn blocks(&self) -> u64 {
        u64::from(self.u16_at(48)) + 1
    }

    pub(super) fn is_connect(&self) -> bool {
        self.opcode() == FABRICS && self.0[4] == CONNECT
    }

    /// The queue that a Connect is about.
    pub(super) fn connect_qid(&self) -> u16 {
        self.u16_at(42)
    }

    /// Which way data go: 0 none, 1 to the controller, 2 to the host, 3 both.
    pub(super) fn direction(&self) -> u8 {
        let code = if self.opcode() == FABRICS { self.0[4] } else { self.opcode() };
        code & 3
    }

    pub(super) fn sgl(&self) -> Sgl {
        match self.0[39] {
            kind @ (0x40 | 0x4f) => Sgl::Keyed {
                addr: self.u64_at(24),
                len: self.u32_at(32) & 0xff_ffff,
                key: u32::from_le_bytes([self.0[35], self.0[36], self.0[37], self.0[38]]),
                invalidate: kind == 0x4f,
            },
            0x01 => Sgl::InCapsule { offset: self.u64_at(24), len: self.u32_at(32) },
            _ => Sgl::Other,
        }
    }

    /// The key that the answer is to mention.
    pub(super) fn invalidates(&self) -> Option<u32> {
        match self.sgl() {
            Sgl::Keyed { key, invalidate: true, .. } if self.psdt() != 0 => Some(key),
            _ => None,
        }
    }

    /// The command for a disk: the same blocks of its own namespace, data by PRPs.
    pub(super) fn for_disk(&self, cid: u16, nsid: u32, prps: [u64; 2]) -> [u8; COMMAND] {
        let mut entry = [0; COMMAND];
        entry[0] = self.opcode();
        entry[2..4].copy_from_slice(&cid.to_le_bytes());
        entry[4..8].copy_from_slice(&nsid.to_le_bytes());
        entry[24..32].copy_from_slice(&prps[0].to_le_bytes());
        entry[32..40].copy_from_slice(&prps[1].to_le_bytes());
        // Blocks, and what else is said about them.
        entry[40..64].copy_from_slice(&self.0[40..64]);
        entry
    }
}

/// The answer to a command.
pub(super) fn completion(cid: u16, sq_head: u16, status: Status) -> [u8; COMPLETION] {
    let mut bytes = [0; COMPLETION];
    bytes[8..10].copy_from_slice(&sq_head.to_le_bytes());
    bytes[12..14].copy_from_slice(&cid.to_le_bytes());
    bytes[14..16].copy_from_slice(&(status.0 << 1).to_le_bytes());
    bytes
}

/// Whether an answer says that all is well.
pub(super) fn is_success(completion: &[u8; COMPLETION]) -> bool {
    completion[14] & !1 == 0 && completion[15] & 0x0f == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_told_apart() {
        let mut command = Command([0; COMMAND]);
        command.0[24..32].copy_from_slice(&0x1122_3344_5566_7788u64.to_le_bytes());
        command.0[32..35].copy_from_slice(&[0x00, 0x10, 0x02]);
        command.0[35..39].copy_from_slice(&0xa1b2_c3d4u32.to_le_bytes());
        command.0[39] = 0x4f;
        let keyed =
            Sgl::Keyed { addr: 0x1122_3344_5566_7788, len: 0x02_1000, key: 0xa1b2_c3d4, invalidate: true };
        assert_eq!(command.sgl(), keyed);
        assert_eq!(command.invalidates(), None, "PRPs");
        command.0[1] = 0x40;
        assert_eq!(command.invalidates(), Some(0xa1b2_c3d4));
        command.0[39] = 0x31;
        assert_eq!(command.sgl(), Sgl::Other);
        command.0[35..39].copy_from_slice(&[0; 4]);
        command.0[39] = 0x01;
        assert_eq!(command.sgl(), Sgl::InCapsule { offset: 0x1122_3344_5566_7788, len: 0x02_1000 });
    }

    #[test]
    fn an_answer_has_its_fields_in_place() {
        let bytes = completion(0x1234, 7, Status::SGL_LENGTH);
        assert_eq!(bytes[8..16], [7, 0, 0, 0, 0x34, 0x12, 0x1e, 0x80]);
        assert!(!is_success(&bytes) && is_success(&completion(1, 2, Status(0))));
    }

    #[test]
    fn a_disk_gets_the_blocks_and_no_descriptor() {
        let mut command = Command(std::array::from_fn(|at| at as u8));
        command.0[0] = READ;
        let entry = command.for_disk(0x0102, 9, [0x1000, 0x2000]);
        assert_eq!(entry[..8], [READ, 0, 2, 1, 9, 0, 0, 0]);
        assert_eq!(entry[24..40], [0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
        assert_eq!(entry[40..64], command.0[40..64]);
    }
}
