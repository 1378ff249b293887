//! What happens to a target by itself.

use crate::config::{BackEndId, NamespaceId};
use crate::qp::{QpId, QpState};
use doca_common::Code;
use std::fmt;

/// What an execution unit of the adapter does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum EuKind {
    /// Not known to this release.
    Unknown,
    /// Takes commands from the network.
    Completion,
    /// Sends data and responses.
    Transmit,
    /// Talks to a disk.
    BackEndQueue,
}

/// An execution unit of the adapter: `doca_sta_eu_handle`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Eu {
    /// Its name, as DOCA says.
    pub name: String,
    /// What it does.
    pub kind: EuKind,
    /// Its number among those of its kind.
    pub id: u16,
    /// The port that it serves.
    pub port: u16,
}

/// Who made an error status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Origin {
    /// The adapter refused the command.
    Validation,
    /// The disk failed it.
    Disk,
}

/// An error status that an initiator got without the application: `doca_sta_event_cqe_notify`. Newer releases tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorResponse {
    /// Who made it.
    pub origin: Origin,
    /// The completion queue entry.
    pub completion: [u8; 16],
    /// Opcode of the command.
    pub opcode: u8,
    /// Its identifier.
    pub cid: u16,
    /// Its namespace, of which DOCA tells 16 bits.
    pub nsid: u16,
    /// Its first block.
    pub lba: u64,
    /// Where the wrong parameter is: byte in bits 7 to 0, bit in bits 10 to 8.
    pub location: u16,
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.origin {
            Origin::Validation => "the adapter refused",
            Origin::Disk => "the disk failed",
        };
        let status = u16::from_le_bytes([self.completion[14], self.completion[15]]);
        let (sct, sc) = (status >> 9 & 7, status >> 1 & 0xff);
        write!(f, "{who} command {} (opcode {:#04x}), ", self.cid, self.opcode)?;
        write!(f, "block {} of namespace {}: SCT {sct} SC {sc:#04x}", self.lba, self.nsid)
    }
}

/// What happened to a control context, its disks and namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A disk did not complete a command in time: `doca_sta_event_be_timeout`. Remove its namespaces, then reset it.
    BackEndTimeout {
        /// Whose queue it is.
        back_end: Option<BackEndId>,
    },
    /// A program on the adapter failed: `doca_sta_event_eu_err`. After a fatal failure, end the target.
    EuFailed {
        /// Whether the whole engine is lost.
        fatal: bool,
        /// Which one, unless fatal.
        eu: Option<Eu>,
    },
    /// An initiator got an error status without the application.
    ErrorResponse(ErrorResponse),
    /// A namespace is gone: its removal is complete.
    NamespaceRemoved(NamespaceId),
    /// A disk is gone: its queues were given back.
    BackEndRemoved(BackEndId),
    /// DOCA did not let a namespace or queue go, and it stays until the target ends.
    Stuck {
        /// The call that failed.
        call: &'static str,
        /// DOCA's answer.
        code: Code,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::BackEndTimeout { back_end: Some(id) } => {
                write!(f, "{id} did not complete a command in time")
            }
            Event::BackEndTimeout { back_end: None } => {
                f.write_str("a disk did not complete a command in time")
            }
            Event::EuFailed { fatal: true, .. } => f.write_str("the adapter's engine is lost"),
            Event::EuFailed { eu: Some(eu), .. } => write!(f, "execution unit {} failed", eu.name),
            Event::EuFailed { eu: None, .. } => f.write_str("an execution unit failed"),
            Event::ErrorResponse(response) => response.fmt(f),
            Event::NamespaceRemoved(id) => write!(f, "{id} is gone"),
            Event::BackEndRemoved(id) => write!(f, "{id} is gone"),
            Event::Stuck { call, code } => write!(f, "{call}: {code}: what it is about stays until the end"),
        }
    }
}

/// Something went wrong between a queue pair and its initiator. It is no status of NVMe, and nothing is sent again: the
/// queue pair is disconnected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportError {
    /// Where.
    pub qp: QpId,
    /// What was done, as far as DOCA tells.
    pub operation: u32,
    /// The adapter's syndrome; 0 if a task failed and DOCA told no more.
    pub syndrome: u32,
    /// The vendor's.
    pub vendor_syndrome: u32,
    /// How a task of a command ended, if that told it.
    pub code: Option<Code>,
}

/// Syndromes of the adapter's completions, which DOCA passes on.
const SYNDROMES: &[(u32, &str)] = &[
    (0x05, "flushed after an earlier error"),
    (0x12, "the initiator took the request for invalid"),
    (0x13, "the initiator's memory may not be accessed so: key, range or rights"),
    (0x14, "the initiator could not do it"),
    (0x15, "no answer: the initiator or the way to it is gone"),
    (0x16, "the initiator had no receive posted"),
];

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transport of {}: ", self.qp)?;
        if let Some(code) = self.code {
            write!(f, "{code}, ")?;
        }
        let known = SYNDROMES.iter().find(|(syndrome, _)| *syndrome == self.syndrome);
        let text = known.map_or("see the adapter's manual", |(_, text)| text);
        write!(f, "syndrome {:#04x} ({text}), vendor {:#x}", self.syndrome, self.vendor_syndrome)
    }
}

/// What happened on an IO context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IoEvent {
    /// A queue pair got into another state.
    Qp {
        /// Which one.
        qp: QpId,
        /// Where it is now.
        state: QpState,
    },
    /// The transport failed: `doca_sta_event_transport_err`, or a task of a command that ended so.
    Transport(TransportError),
}
