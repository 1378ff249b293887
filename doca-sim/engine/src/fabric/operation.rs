//! What a send queue entry asks for, and how it ends.

use super::region::{Piece, RegionId};
use crate::access::{RDMA_ATOMIC, RDMA_READ, RDMA_WRITE};

/// What a send queue entry asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A message into the peer's next receive.
    Send = 1,
    /// The same with immediate data.
    SendImmediate = 2,
    /// From remote memory into local pieces.
    Read = 3,
    /// From local pieces into remote memory.
    Write = 4,
    /// The same, then consumes a receive and hands it immediate data.
    WriteImmediate = 5,
    /// Compare and swap 8 remote bytes.
    CompareSwap = 6,
    /// Add to 8 remote bytes.
    FetchAdd = 7,
    /// Fails, and with it the link: a fault on request.
    Fault = 8,
}

impl Operation {
    /// From shared memory; `None` for anything unknown.
    pub(super) fn of(number: u32) -> Option<Operation> {
        use Operation::*;
        [Send, SendImmediate, Read, Write, WriteImmediate, CompareSwap, FetchAdd, Fault]
            .into_iter()
            .find(|op| *op as u32 == number)
    }

    /// The right that the target must have granted.
    pub fn needs(self) -> Option<u32> {
        match self {
            Operation::Send | Operation::SendImmediate | Operation::Fault => None,
            Operation::Read => Some(RDMA_READ),
            Operation::Write | Operation::WriteImmediate => Some(RDMA_WRITE),
            Operation::CompareSwap | Operation::FetchAdd => Some(RDMA_ATOMIC),
        }
    }
}

/// How an entry ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Well.
    Success = 1,
    /// Not executed: the connection broke or its context stopped.
    Flushed = 2,
    /// The task's own memory could not be reached.
    LocalAccess = 3,
    /// The target has not granted the right.
    Refused = 4,
    /// The target's memory is not registered, or not that far.
    RemoteAddress = 5,
    /// A message larger than the receive that it met.
    Length = 6,
    /// No receive was posted for as long as the sender was willing to retry.
    ReceiverNotReady = 7,
    /// The peer did not answer.
    Unreachable = 8,
    /// An atomic at an address that is not a multiple of 8.
    Misaligned = 9,
    /// The process that was executing it died.
    Abandoned = 10,
    /// A fault on request.
    Injected = 11,
}

impl Outcome {
    /// From shared memory; anything unknown counts as abandoned.
    pub fn of(number: u32) -> Outcome {
        use Outcome::*;
        [
            Success,
            Flushed,
            LocalAccess,
            Refused,
            RemoteAddress,
            Length,
            ReceiverNotReady,
            Unreachable,
            Misaligned,
            Injected,
        ]
        .into_iter()
        .find(|outcome| *outcome as u32 == number)
        .unwrap_or(Abandoned)
    }
}

/// Why the head of a queue cannot be executed yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The peer is not connected, not reachable, or gone.
    Peer = 1,
    /// The peer has posted no receive.
    Receive = 2,
}

/// A send-side operation to be posted.
#[derive(Clone, Copy, Debug)]
pub struct Post {
    /// What to do.
    pub operation: Operation,
    /// Immediate data.
    pub immediate: u32,
    /// Bytes to move.
    pub length: u64,
    /// Remote memory of one-sided operations.
    pub remote: Piece,
    /// Compare or add.
    pub first: u64,
    /// Swap.
    pub second: u64,
}

impl Post {
    /// A message of so many bytes.
    pub fn message(operation: Operation, length: u64, immediate: u32) -> Post {
        let nowhere = Piece { addr: 0, len: 0, region: RegionId { index: 0, generation: 0 } };
        Post { operation, immediate, length, remote: nowhere, first: 0, second: 0 }
    }
}
