//! What can fail, and which part of a host it concerns.

use nvme_wire::Status;
use nvme_wire::cm::RejectStatus;
use std::fmt;
use std::time::Duration;

/// Why something failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A function of DOCA.
    #[error("{call}: {name}")]
    Doca {
        /// The function.
        call: &'static str,
        /// The name of its error code.
        name: String,
    },
    /// A function of librdmacm.
    #[error("{call}: {source}")]
    Cm {
        /// The function.
        call: &'static str,
        /// What it left in errno.
        source: std::io::Error,
    },
    /// The connection manager told of something else than what was waited for.
    #[error("instead of {wanted}, the connection manager told of event {event} with status {}", reason(*status))]
    Event {
        /// What was waited for.
        wanted: &'static str,
        /// `enum rdma_cm_event_type`.
        event: i32,
        /// Its status.
        status: i32,
    },
    /// Nobody listens at the address.
    #[error("nobody listens there (rejected with status {0})")]
    Refused(i32),
    /// The target turned the connection away.
    #[error("the target rejected the connection: {0}")]
    Rejected(RejectStatus),
    /// A message did not arrive.
    #[error("the connection is broken: a {0} task failed with {1}")]
    Transport(&'static str, String),
    /// The target disconnected.
    #[error("the target disconnected")]
    Disconnected,
    /// No answer.
    #[error("no answer to {what} within {after:?}")]
    Timeout {
        /// What was asked.
        what: String,
        /// How long.
        after: Duration,
    },
    /// A command ended with an error status.
    #[error("{command}: {status}")]
    Status {
        /// The command.
        command: String,
        /// Its status.
        status: Status,
        /// Command specific result.
        result: u64,
    },
    /// The target broke the protocol.
    #[error("the target broke the protocol: {0}")]
    Protocol(String),
    /// Data that were read are not those that were written.
    #[error("block {lba} differs from what was written")]
    Differs {
        /// The block.
        lba: u64,
    },
    /// Something was asked that this host cannot do.
    #[error("{0}")]
    Usage(String),
}

/// Which part failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The RDMA connection of a queue, by its number.
    Fabric(u16),
    /// The admin queue: Fabrics commands and admin commands.
    Admin,
    /// An I/O queue, by its number.
    Io(u16),
    /// None: what this host was told to do, or its files.
    Host,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Fabric(0) => f.write_str("fabric (connection of the admin queue)"),
            Part::Fabric(qid) => write!(f, "fabric (connection of I/O queue {qid})"),
            Part::Admin => f.write_str("admin queue"),
            Part::Io(qid) => write!(f, "I/O queue {qid}"),
            Part::Host => f.write_str("this host"),
        }
    }
}

/// An error and the part that it concerns.
#[derive(Debug, thiserror::Error)]
#[error("{part}: {error}")]
pub struct Failure {
    /// Which part.
    pub part: Part,
    /// Why.
    pub error: Error,
}

/// What this crate's functions return.
pub type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// The status of the command that failed, if it was one.
    pub fn status(&self) -> Option<Status> {
        match &self.error {
            Error::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl Error {
    /// The error as one of the queue `qid`: of its connection, or of the queue itself, unless it is this host's own.
    pub(crate) fn on(self, qid: u16) -> Failure {
        let part = match &self {
            Error::Doca { .. }
            | Error::Cm { .. }
            | Error::Event { .. }
            | Error::Refused(_)
            | Error::Rejected(_)
            | Error::Transport(..)
            | Error::Disconnected => Part::Fabric(qid),
            Error::Usage(_) => Part::Host,
            _ if qid == 0 => Part::Admin,
            _ => Part::Io(qid),
        };
        Failure { part, error: self }
    }
}

/// The status of an event, in words where it is an errno.
fn reason(status: i32) -> String {
    match status.checked_neg() {
        Some(errno) if errno > 0 => format!("{status}: {}", std::io::Error::from_raw_os_error(errno)),
        _ => status.to_string(),
    }
}
