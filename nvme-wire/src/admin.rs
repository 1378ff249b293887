//! Arguments and results of admin commands.

use crate::command::Arguments;
use crate::feature::FeatureId;
use crate::identify::Cns;
use crate::layout::layout;
use crate::log::LogId;

layout! {
    /// Arguments of Identify.
    pub struct Identify [64] {
        /// Controller or Namespace Structure (CNS).
        40 cns: Cns,
        /// Controller Identifier (CNTID).
        42 cntid: u16,
        /// Command Set Identifier (CSI).
        47 csi: u8,
    }

    /// Arguments of Get Log Page.
    pub struct GetLogPage [64] {
        /// Log Page Identifier (LID).
        40 lid: LogId,
        /// Log Specific Parameter (LSP).
        41[0..=6] lsp: u8,
        /// Retain Asynchronous Event (RAE).
        41[7..=7] rae: bool,
        /// Number of Dwords (NUMDL and NUMDU), 0-based.
        42 numd: u32,
        /// Log Specific Identifier (LSI).
        46 lsi: u16,
        /// Log Page Offset (LPOL and LPOU) in bytes.
        48 lpo: u64,
    }

    /// Arguments of Set Features and, without `save` and `value`, of Get Features.
    pub struct Features [64] {
        /// Feature Identifier (FID).
        40 fid: FeatureId,
        /// Get Features: Select (SEL): 0 current, 1 default, 2 saved, 3 supported capabilities.
        41[0..=2] sel: u8,
        /// Set Features: Save (SV).
        43[7..=7] save: bool,
        /// Feature specific (CDW11).
        44 value: u32,
    }

    /// Arguments of Create I/O Completion Queue; PRP1 is its base address.
    pub struct CreateCq [64] {
        /// Queue Identifier (QID).
        40 qid: u16,
        /// Queue Size (QSIZE), 0-based.
        42 qsize: u16,
        /// Physically Contiguous (PC).
        44[0..=0] pc: bool,
        /// Interrupts Enabled (IEN).
        44[1..=1] ien: bool,
        /// Interrupt Vector (IV).
        46 iv: u16,
    }

    /// Arguments of Create I/O Submission Queue; PRP1 is its base address.
    pub struct CreateSq [64] {
        /// Queue Identifier (QID).
        40 qid: u16,
        /// Queue Size (QSIZE), 0-based.
        42 qsize: u16,
        /// Physically Contiguous (PC).
        44[0..=0] pc: bool,
        /// Queue Priority (QPRIO).
        44[1..=2] qprio: u8,
        /// Completion Queue Identifier (CQID).
        46 cqid: u16,
    }

    /// Arguments of Delete I/O Submission and Completion Queue.
    pub struct DeleteQueue [64] {
        /// Queue Identifier (QID).
        40 qid: u16,
    }

    /// Arguments of Abort; bit 0 of its result: 1 means the command was not aborted.
    pub struct Abort [64] {
        /// Submission Queue Identifier (SQID).
        40 sqid: u16,
        /// Command Identifier (CID).
        42 cid: u16,
    }

    /// Result of an Asynchronous Event Request: DW0.
    pub struct AsyncEvent [4] {
        /// Asynchronous Event Type: 0 error, 1 SMART, 2 notice, 6 I/O command set, 7 vendor.
        0[0..=2] kind: u8,
        /// Asynchronous Event Information.
        1 info: u8,
        /// Log Page Identifier that clears the event.
        2 lid: LogId,
    }
}

impl Arguments for Identify {}
impl Arguments for GetLogPage {}
impl Arguments for Features {}
impl Arguments for CreateCq {}
impl Arguments for CreateSq {}
impl Arguments for DeleteQueue {}
impl Arguments for Abort {}

impl GetLogPage {
    /// How many bytes the host asks for.
    pub fn len(&self) -> u64 {
        (u64::from(self.numd) + 1) * 4
    }

    /// Never: the number of dwords is 0-based.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl AsyncEvent {
    /// Notice: the attributes or the list of namespaces changed; log page 4 has their list.
    pub const NAMESPACE_CHANGED: AsyncEvent =
        AsyncEvent { kind: 2, info: 0x00, lid: LogId::CHANGED_NAMESPACES };
    /// Notice: the discovery log changed.
    pub const DISCOVERY_CHANGED: AsyncEvent = AsyncEvent { kind: 2, info: 0xF0, lid: LogId::DISCOVERY };
    /// Error: a doorbell was written with a value that its queue does not have.
    pub const INVALID_DOORBELL: AsyncEvent = AsyncEvent { kind: 0, info: 0x01, lid: LogId::ERROR };
}

impl From<AsyncEvent> for u64 {
    fn from(event: AsyncEvent) -> u64 {
        u64::from(u32::from_le_bytes(event.to_bytes()))
    }
}

impl From<u64> for AsyncEvent {
    fn from(result: u64) -> Self {
        AsyncEvent::parse(&(result as u32).to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Sqe;

    fn dwords(sqe: Sqe) -> [u32; 4] {
        [sqe.cdw[0], sqe.cdw[1], sqe.cdw[2], sqe.cdw[3]]
    }

    #[test]
    fn arguments_are_the_dwords_of_the_specification() {
        let sqe = Sqe::default;
        let identify = Identify { cns: Cns::CONTROLLER, cntid: 0x1234, csi: 2 };
        assert_eq!(dwords(sqe().with(&identify)), [0x1234_0001, 0x0200_0000, 0, 0]);
        let log = GetLogPage {
            lid: LogId::DISCOVERY,
            lsp: 1,
            rae: true,
            numd: 0x0002_03FF,
            lsi: 9,
            lpo: 0x1_0000_0010,
        };
        assert_eq!(dwords(sqe().with(&log)), [0x03FF_8170, 0x0009_0002, 0x10, 1]);
        assert_eq!(log.len(), 0x8_1000);
        let set = Features { fid: FeatureId::NUMBER_OF_QUEUES, sel: 0, save: true, value: 0x000F_000F };
        assert_eq!(dwords(sqe().with(&set)), [0x8000_0007, 0x000F_000F, 0, 0]);
        assert_eq!(dwords(sqe().with(&Features { fid: FeatureId(6), sel: 3, ..set }))[0], 0x8000_0306);
        let cq = CreateCq { qid: 1, qsize: 63, pc: true, ien: true, iv: 2 };
        assert_eq!(dwords(sqe().with(&cq)), [0x003F_0001, 0x0002_0003, 0, 0]);
        let sq = CreateSq { qid: 1, qsize: 63, pc: true, qprio: 2, cqid: 3 };
        assert_eq!(dwords(sqe().with(&sq)), [0x003F_0001, 0x0003_0005, 0, 0]);
        assert_eq!(dwords(sqe().with(&Abort { sqid: 1, cid: 2 }))[0], 0x0002_0001);
        assert_eq!(dwords(sqe().with(&DeleteQueue { qid: 7 }))[0], 7);
    }

    #[test]
    fn an_event_is_in_dword_0() {
        assert_eq!(u64::from(AsyncEvent::NAMESPACE_CHANGED), 0x0004_0002);
        assert_eq!(AsyncEvent::from(0x0070_F002), AsyncEvent::DISCOVERY_CHANGED);
    }
}
