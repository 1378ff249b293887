//! Commands that DOCA does not execute: values that are answered exactly once.

use crate::io_instance::IoInstance;
use crate::qp::QpId;
use crate::raw::io::Loan;
use doca_common::{Error, Failed, Refusal};
use std::fmt;
use std::ptr::NonNull;
use std::rc::Rc;

/// Bytes of a submission queue entry.
pub const SQE: usize = 64;
/// Bytes of a completion queue entry.
pub const CQE: usize = 16;

/// What a command is answered with when the program drops it: Internal Error (SCT 0, SC 6), do not retry.
const DROPPED: u16 = 1 << 15 | 0x06 << 1;

/// A command as DOCA handed it over.
pub(crate) struct Capsule {
    pub(crate) sqe: [u8; SQE],
    pub(crate) payload: Option<NonNull<u8>>,
    /// Bytes of data that are there if `valid`, else room.
    pub(crate) len: usize,
    pub(crate) valid: bool,
    pub(crate) loan: Loan,
}

/// Which way the data of a command goes, as the opcode says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// There is no data.
    None,
    /// To the target.
    ToController,
    /// To the initiator.
    ToHost,
    /// Both, which no command of NVMe over Fabrics has.
    Both,
}

impl Capsule {
    pub(crate) fn direction(&self) -> Direction {
        let code = if self.sqe[0] == FABRICS { self.sqe[4] } else { self.sqe[0] };
        match code & 3 {
            0 => Direction::None,
            1 => Direction::ToController,
            2 => Direction::ToHost,
            _ => Direction::Both,
        }
    }

    /// Bytes that the descriptor in the command has.
    pub(crate) fn sgl_len(&self) -> usize {
        let [a, b, c, d] = [self.sqe[32], self.sqe[33], self.sqe[34], self.sqe[35]];
        match self.sqe[39] >> 4 {
            KEYED => u32::from_le_bytes([a, b, c, 0]) as usize,
            BLOCK => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => 0,
        }
    }

    /// Bytes of the payload that are the command's.
    pub(crate) fn data_len(&self) -> usize {
        if self.payload.is_none() {
            0
        } else if self.valid {
            self.len
        } else {
            self.len.min(self.sgl_len())
        }
    }

    /// Notes that the data were fetched.
    pub(crate) fn fetched(&mut self) {
        self.len = self.data_len();
        self.valid = true;
    }
}

const FABRICS: u8 = 0x7F;
/// Type of a keyed data block descriptor.
const KEYED: u8 = 4;
/// Type of a data block descriptor, whose data are in the capsule.
const BLOCK: u8 = 0;

/// A command that the application has to execute. It must be answered once; dropping it answers Internal Error. When
/// its queue pair goes, there is nobody to answer any more: [`is_open`](Command::is_open) tells.
pub struct Command {
    io: Rc<IoInstance>,
    qp: QpId,
    /// There until it is answered.
    capsule: Option<Capsule>,
    /// Whether the payload was zeroed, of which all goes to the initiator.
    cleared: bool,
}

impl Command {
    /// The table of queue pairs counts it until it is dropped.
    pub(crate) fn new(io: Rc<IoInstance>, qp: QpId, capsule: Capsule) -> Self {
        Command { io, qp, capsule: Some(capsule), cleared: false }
    }

    fn capsule(&self) -> &Capsule {
        self.capsule.as_ref().expect("there until the command is answered, which consumes it")
    }

    /// The submission queue entry.
    pub fn sqe(&self) -> &[u8; SQE] {
        &self.capsule().sqe
    }

    /// The queue pair that it came by.
    pub fn qp(&self) -> QpId {
        self.qp
    }

    /// Whether it can still be answered.
    pub fn is_open(&self) -> bool {
        self.io.is_open(self.qp)
    }

    /// Which way its data goes.
    pub fn direction(&self) -> Direction {
        self.capsule().direction()
    }

    /// Whether its data must be [fetched](Command::fetch) before they can be read.
    pub fn needs_fetch(&self) -> bool {
        let capsule = self.capsule();
        capsule.direction() == Direction::ToController && !capsule.valid && capsule.sgl_len() > 0
    }

    /// Bytes of the command's data, by its descriptor: those that are there, or are to be sent.
    pub fn data_len(&self) -> usize {
        self.capsule().data_len()
    }

    /// Bytes that DOCA's buffer has room for. A descriptor of more cannot be served.
    pub fn room(&self) -> usize {
        self.capsule().len
    }

    /// Bytes that the command's descriptor names.
    pub fn descriptor_len(&self) -> usize {
        self.capsule().sgl_len()
    }

    /// The data that the initiator sent, if they are there.
    pub fn data(&self) -> Option<&[u8]> {
        let capsule = self.capsule();
        if !capsule.valid || capsule.direction() != Direction::ToController {
            return None;
        }
        Some(capsule.bytes())
    }

    /// The data that [`respond_with_data`](Command::respond_with_data) will send, zeroed at first. Empty unless they go
    /// to the initiator.
    pub fn data_mut(&mut self) -> &mut [u8] {
        if self.direction() != Direction::ToHost {
            return &mut [];
        }
        let clear = !std::mem::replace(&mut self.cleared, true);
        let data = self.capsule.as_mut().map_or(&mut [][..], Capsule::bytes_mut);
        if clear {
            data.fill(0);
        }
        data
    }

    /// Fetches the data of the command: `doca_sta_io_task_non_offload_rdma_read_alloc_init`. The command comes again by
    /// [`Io::command`](crate::Io::command), with its data. If that fails, the queue pair is disconnected.
    ///
    /// # Errors
    ///
    /// With the command: [`Refusal::OutOfRange`] if there is nothing to fetch, [`Refusal::TooLong`] beyond DOCA's
    /// buffer, [`Refusal::NotConnected`]; `NO_MEMORY` while DOCA has no task left.
    #[doc(alias = "doca_sta_io_task_non_offload_rdma_read_alloc_init")]
    pub fn fetch(mut self) -> std::result::Result<(), Failed<Command>> {
        const CALL: &str = "doca_sta_io_task_non_offload_rdma_read_alloc_init";
        let refused = |refusal, text: String| Error::refused(CALL, refusal).with(text);
        let capsule = self.capsule();
        if !self.needs_fetch() {
            return Err(Failed::new(refused(Refusal::OutOfRange, "no data to be fetched".to_owned()), self));
        }
        if capsule.sgl_len() > capsule.len {
            let text = format!("{} bytes, room for {}", capsule.sgl_len(), capsule.len);
            return Err(Failed::new(refused(Refusal::TooLong, text), self));
        }
        let capsule = self.capsule.take().expect("it was there");
        let io = self.io.clone();
        match io.fetch(self.qp, capsule) {
            Ok(()) => Ok(()),
            Err((error, capsule)) => {
                self.capsule = Some(capsule);
                Err(Failed::new(error, self))
            }
        }
    }

    /// Answers: `doca_sta_io_task_non_offload_rdma_send_alloc_init`. DOCA sets the submission queue's head.
    ///
    /// # Errors
    ///
    /// With the command: [`Refusal::NotConnected`]; `NO_MEMORY` while DOCA has no task left.
    #[doc(alias = "doca_sta_io_task_non_offload_rdma_send_alloc_init")]
    pub fn respond(self, completion: [u8; CQE]) -> std::result::Result<(), Failed<Command>> {
        self.answer(completion, false)
    }

    /// Sends [the data](Command::data_mut) and answers:
    /// `doca_sta_io_task_non_offload_rdma_write_send_alloc_init`.
    ///
    /// # Errors
    ///
    /// With the command: as for [`respond`](Command::respond), [`Refusal::OutOfRange`] if no data go to the initiator,
    /// [`Refusal::TooLong`] if the initiator wants more than DOCA's buffer has.
    #[doc(alias = "doca_sta_io_task_non_offload_rdma_write_send_alloc_init")]
    pub fn respond_with_data(mut self, completion: [u8; CQE]) -> std::result::Result<(), Failed<Command>> {
        const CALL: &str = "doca_sta_io_task_non_offload_rdma_write_send_alloc_init";
        let capsule = self.capsule();
        let wrong = if capsule.direction() != Direction::ToHost || capsule.data_len() == 0 {
            Some(Error::refused(CALL, Refusal::OutOfRange).with("the command wants no data"))
        } else if capsule.sgl_len() > capsule.len {
            let text = format!("{} bytes, room for {}", capsule.sgl_len(), capsule.len);
            Some(Error::refused(CALL, Refusal::TooLong).with(text))
        } else {
            None
        };
        if let Some(error) = wrong {
            return Err(Failed::new(error, self));
        }
        // All of it is sent, so what nobody wrote must not be what was there before.
        let _ = self.data_mut();
        self.answer(completion, true)
    }

    fn answer(mut self, completion: [u8; CQE], with_data: bool) -> std::result::Result<(), Failed<Command>> {
        let capsule = self.capsule.take().expect("there until it is answered");
        let io = self.io.clone();
        match io.respond(self.qp, capsule, completion, with_data) {
            Ok(()) => Ok(()),
            Err((error, capsule)) => {
                self.capsule = Some(capsule);
                Err(Failed::new(error, self))
            }
        }
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if let Some(capsule) = self.capsule.take() {
            log::debug!("command {:#04x} of {} was dropped unanswered", capsule.sqe[0], self.qp);
            let completion = completion(&[0; 8], cid_of(&capsule.sqe), DROPPED);
            self.io.abandon(self.qp, capsule, completion);
        }
        self.io.let_go(self.qp);
    }
}

/// A completion queue entry: command specific bytes, the command's identifier, and the status field with its phase bit
/// clear.
pub fn completion(result: &[u8; 8], cid: u16, status: u16) -> [u8; CQE] {
    let mut entry = [0; CQE];
    entry[..8].copy_from_slice(result);
    entry[12..14].copy_from_slice(&cid.to_le_bytes());
    entry[14..].copy_from_slice(&(status & !1).to_le_bytes());
    entry
}

/// The identifier in a submission queue entry.
pub(crate) fn cid_of(sqe: &[u8; SQE]) -> u16 {
    u16::from_le_bytes([sqe[2], sqe[3]])
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opcode = self.capsule.as_ref().map(|capsule| capsule.sqe[0]);
        write!(f, "Command({opcode:02x?} on {})", self.qp)
    }
}

/// Nothing to say about a command that cannot be answered any more.
pub(crate) fn closed(call: &'static str) -> Error {
    Error::refused(call, Refusal::NotConnected)
}

/// For results of commands.
pub(crate) type Returned = std::result::Result<(), (Error, Capsule)>;

#[cfg(test)]
mod tests {
    use super::*;
    use doca_common::raw::number;

    fn capsule(opcode: u8, kind: u8, len: u32, room: usize, valid: bool) -> Capsule {
        let mut sqe = [0; SQE];
        (sqe[0], sqe[39]) = (opcode, kind);
        sqe[32..36].copy_from_slice(&len.to_le_bytes());
        Capsule { sqe, payload: Some(NonNull::dangling()), len: room, valid, loan: Loan(number(0)) }
    }

    #[test]
    fn data_have_the_length_of_the_descriptor_or_of_what_is_there() {
        assert_eq!(capsule(0x02, 0x40, 4096, 131_072, false).data_len(), 4096);
        assert_eq!(capsule(0x02, 0x40, 0xFF00_1000, 131_072, false).data_len(), 4096, "24 bits");
        assert_eq!(capsule(0x02, 0x40, 200_000, 131_072, false).data_len(), 131_072, "no more than room");
        assert_eq!(capsule(0x01, 0x01, 512, 512, true).data_len(), 512);
        assert_eq!(capsule(0x02, 0x31, 512, 4096, false).data_len(), 0, "no such descriptor");
        let mut fetched = capsule(0x01, 0x4F, 1024, 131_072, false);
        fetched.fetched();
        assert!(fetched.valid && fetched.data_len() == 1024);
    }

    #[test]
    fn directions_are_those_of_the_opcode_or_of_the_fabrics_command() {
        assert_eq!(capsule(0x00, 0x40, 0, 0, false).direction(), Direction::None);
        assert_eq!(capsule(0x01, 0x40, 0, 0, false).direction(), Direction::ToController);
        assert_eq!(capsule(0x06, 0x40, 0, 0, false).direction(), Direction::ToHost);
        assert_eq!(capsule(0xC3, 0x40, 0, 0, false).direction(), Direction::Both);
        let mut connect = capsule(0x7F, 0x40, 1024, 4096, false);
        connect.sqe[4] = 1;
        assert_eq!(connect.direction(), Direction::ToController);
        connect.sqe[4] = 4;
        assert_eq!(connect.direction(), Direction::None);
    }

    #[test]
    fn entries_have_no_phase() {
        let entry = completion(&[1, 0, 0, 0, 0, 0, 0, 0], 0x1234, 0x8005);
        assert_eq!(entry, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x34, 0x12, 0x04, 0x80]);
    }
}
