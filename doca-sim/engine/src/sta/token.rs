//! Commands that the program must answer.
//!
//! Command and payload are lent to the program from the callback until that of the task which answers, or until the queue
//! pair is destroyed.

use super::memory::Buffer;
use super::nvme::{Command, Sgl};
use super::qp::Capsule;
use crate::fabric::region::Piece;

/// Host to controller.
const INWARD: u8 = 1;

/// What becomes of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The program thinks.
    Open,
    /// A task fetches its data.
    Reading,
    /// A task answers it.
    Answered,
}

/// A command that the program has, or will be handed.
pub(super) struct Token {
    /// Where the program sees it.
    command: Box<Command>,
    /// Data that came with it, until there is a payload.
    data: Vec<u8>,
    payload: Option<Buffer>,
    /// How much of the payload came from the host.
    valid: Option<usize>,
    stage: Stage,
}

impl Token {
    pub(super) fn new(capsule: Capsule) -> Token {
        let command = Box::new(capsule.command);
        let mut token = Token { command, data: Vec::new(), payload: None, valid: None, stage: Stage::Open };
        if let Some((offset, len)) = token.inline() {
            token.data =
                capsule.data.get(offset..).and_then(|rest| rest.get(..len)).unwrap_or_default().to_vec();
            token.valid = Some(token.data.len());
        }
        token
    }

    /// Where in the capsule its data are.
    fn inline(&self) -> Option<(usize, usize)> {
        match self.command.sgl() {
            Sgl::InCapsule { offset, len } if self.command.direction() == INWARD => {
                Some((usize::try_from(offset).ok()?, len as usize))
            }
            _ => None,
        }
    }

    /// Whether its descriptor is about more than the capsule has.
    pub(super) fn is_torn(capsule: &Capsule) -> bool {
        match capsule.command.sgl() {
            Sgl::InCapsule { offset, len } if capsule.command.direction() == INWARD => {
                offset.checked_add(len.into()).is_none_or(|end| end > capsule.data.len() as u64)
            }
            _ => false,
        }
    }

    pub(super) fn command(&self) -> &Command {
        &self.command
    }

    /// The command as the program reads it.
    pub(super) fn command_pointer(&self) -> *const u8 {
        self.command.0.as_ptr()
    }

    /// Bytes of payload that it may need.
    pub(super) fn wants(&self) -> usize {
        match self.command.sgl() {
            Sgl::Keyed { len, .. } => len as usize,
            _ => self.data.len(),
        }
    }

    /// Gives it a payload. The program is told of the bytes that came with the command, or of the room.
    pub(super) fn lend(&mut self, buffer: Buffer) -> (*mut u8, u32, bool) {
        buffer.write(0, &std::mem::take(&mut self.data));
        let told = (buffer.address(), self.valid.unwrap_or(buffer.len()) as u32, self.valid.is_some());
        self.payload = Some(buffer);
        told
    }

    pub(super) fn take_payload(&mut self) -> Option<Buffer> {
        self.payload.take()
    }

    /// Whether its data can be fetched from the host.
    pub(super) fn is_readable(&self) -> bool {
        self.stage == Stage::Open
            && self.valid.is_none()
            && self.command.direction() == INWARD
            && self.source().is_some()
    }

    /// Whether it can be answered.
    pub(super) fn is_answerable(&self, with_data: bool) -> bool {
        self.stage == Stage::Open && (!with_data || self.target().is_some())
    }

    pub(super) fn begin_read(&mut self) {
        self.stage = Stage::Reading;
    }

    pub(super) fn begin_answer(&mut self) {
        self.stage = Stage::Answered;
    }

    /// The task that fetches has ended.
    pub(super) fn fetched(&mut self, fine: bool) {
        self.stage = Stage::Open;
        if fine {
            self.valid = Some(self.wants());
        }
    }

    /// Host memory and the part of the payload that goes with it, if it fits.
    pub(super) fn source(&self) -> Option<(u64, u32, Piece)> {
        match (self.command.sgl(), &self.payload) {
            (Sgl::Keyed { addr, len, key, .. }, Some(payload))
                if len > 0 && len as usize <= payload.len() =>
            {
                Some((addr, key, payload.piece(0, len as usize)))
            }
            _ => None,
        }
    }

    /// The same, for data to the host.
    pub(super) fn target(&self) -> Option<(u64, u32, Piece)> {
        self.source().filter(|_| self.command.direction() & 2 != 0)
    }
}
