//! The status field of a completion.

use crate::layout::Bits;
use std::fmt;

/// Status of a command without the phase bit: SC in bits 7:0, SCT 10:8, CRD 12:11, M 13, DNR 14.
///
/// Equality compares all of them; [`Status::is`] compares SCT and SC only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u16);

const DNR: u16 = 1 << 14;

impl Status {
    /// From status code type (3 bits) and status code; DNR, M and CRD are 0.
    pub const fn new(sct: u8, sc: u8) -> Self {
        Status((sct as u16 & 7) << 8 | sc as u16)
    }

    /// Status Code Type.
    pub const fn sct(self) -> u8 {
        (self.0 >> 8) as u8 & 7
    }

    /// Status Code.
    pub const fn sc(self) -> u8 {
        self.0 as u8
    }

    /// Do Not Retry: the same command would fail again.
    pub const fn dnr(self) -> bool {
        self.0 & DNR != 0
    }

    /// The same status with Do Not Retry set.
    pub const fn with_dnr(self) -> Self {
        Status(self.0 | DNR)
    }

    /// Whether the command succeeded.
    pub const fn is_success(self) -> bool {
        self.0 & 0x7FF == 0
    }

    /// Whether both have the same type and code.
    pub const fn is(self, other: Status) -> bool {
        self.0 & 0x7FF == other.0 & 0x7FF
    }

    /// The name in the specification. Command specific codes (SCT 1) from 0x80 on are those of Fabrics.
    pub fn name(self) -> Option<&'static str> {
        Self::ALL.iter().find(|(known, _)| known.is(self)).map(|(_, name)| *name)
    }
}

impl Bits for Status {
    fn from_bits(bits: u64) -> Self {
        Status(bits as u16)
    }
    fn bits(self) -> u64 {
        u64::from(self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SCT {} SC 0x{:02X}", self.name().unwrap_or("unknown status"), self.sct(), self.sc())?;
        f.write_str(if self.dnr() { ", do not retry)" } else { ")" })
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! statuses {
    ($($name:ident = $sct:literal / $sc:literal $text:literal,)*) => {
        impl Status {
            $(#[doc = concat!($text, ": SCT ", $sct, ", SC ", $sc, ".")] pub const $name: Status = Status::new($sct, $sc);)*

            /// The statuses that have names.
            pub const ALL: &'static [(Status, &'static str)] = &[$((Status::$name, $text)),*];
        }
    };
}

statuses! {
    SUCCESS = 0/0x00 "Successful Completion",
    INVALID_OPCODE = 0/0x01 "Invalid Command Opcode",
    INVALID_FIELD = 0/0x02 "Invalid Field in Command",
    COMMAND_ID_CONFLICT = 0/0x03 "Command ID Conflict",
    DATA_TRANSFER_ERROR = 0/0x04 "Data Transfer Error",
    ABORTED_POWER_LOSS = 0/0x05 "Commands Aborted due to Power Loss Notification",
    INTERNAL_ERROR = 0/0x06 "Internal Error",
    ABORT_REQUESTED = 0/0x07 "Command Abort Requested",
    ABORTED_SQ_DELETION = 0/0x08 "Command Aborted due to SQ Deletion",
    ABORTED_FAILED_FUSED = 0/0x09 "Command Aborted due to Failed Fused Command",
    ABORTED_MISSING_FUSED = 0/0x0A "Command Aborted due to Missing Fused Command",
    INVALID_NAMESPACE = 0/0x0B "Invalid Namespace or Format",
    COMMAND_SEQUENCE_ERROR = 0/0x0C "Command Sequence Error",
    INVALID_SGL_SEGMENT = 0/0x0D "Invalid SGL Segment Descriptor",
    INVALID_SGL_COUNT = 0/0x0E "Invalid Number of SGL Descriptors",
    SGL_LENGTH_INVALID = 0/0x0F "Data SGL Length Invalid",
    METADATA_SGL_LENGTH_INVALID = 0/0x10 "Metadata SGL Length Invalid",
    SGL_TYPE_INVALID = 0/0x11 "SGL Descriptor Type Invalid",
    INVALID_CMB_USE = 0/0x12 "Invalid Use of Controller Memory Buffer",
    PRP_OFFSET_INVALID = 0/0x13 "PRP Offset Invalid",
    ATOMIC_WRITE_UNIT_EXCEEDED = 0/0x14 "Atomic Write Unit Exceeded",
    OPERATION_DENIED = 0/0x15 "Operation Denied",
    SGL_OFFSET_INVALID = 0/0x16 "SGL Offset Invalid",
    HOST_ID_INCONSISTENT = 0/0x18 "Host Identifier Inconsistent Format",
    KEEP_ALIVE_EXPIRED = 0/0x19 "Keep Alive Timer Expired",
    KEEP_ALIVE_INVALID = 0/0x1A "Keep Alive Timeout Invalid",
    ABORTED_PREEMPT = 0/0x1B "Command Aborted due to Preempt and Abort",
    SANITIZE_FAILED = 0/0x1C "Sanitize Failed",
    SANITIZE_IN_PROGRESS = 0/0x1D "Sanitize In Progress",
    SGL_GRANULARITY_INVALID = 0/0x1E "SGL Data Block Granularity Invalid",
    QUEUE_IN_CMB = 0/0x1F "Command Not Supported for Queue in CMB",
    WRITE_PROTECTED = 0/0x20 "Namespace is Write Protected",
    INTERRUPTED = 0/0x21 "Command Interrupted",
    TRANSIENT_TRANSPORT_ERROR = 0/0x22 "Transient Transport Error",
    LBA_OUT_OF_RANGE = 0/0x80 "LBA Out of Range",
    CAPACITY_EXCEEDED = 0/0x81 "Capacity Exceeded",
    NAMESPACE_NOT_READY = 0/0x82 "Namespace Not Ready",
    RESERVATION_CONFLICT = 0/0x83 "Reservation Conflict",
    FORMAT_IN_PROGRESS = 0/0x84 "Format In Progress",
    INVALID_COMPLETION_QUEUE = 1/0x00 "Completion Queue Invalid",
    INVALID_QUEUE_ID = 1/0x01 "Invalid Queue Identifier",
    INVALID_QUEUE_SIZE = 1/0x02 "Invalid Queue Size",
    ABORT_LIMIT_EXCEEDED = 1/0x03 "Abort Command Limit Exceeded",
    ASYNC_EVENT_LIMIT_EXCEEDED = 1/0x05 "Asynchronous Event Request Limit Exceeded",
    INVALID_INTERRUPT_VECTOR = 1/0x08 "Invalid Interrupt Vector",
    INVALID_LOG_PAGE = 1/0x09 "Invalid Log Page",
    INVALID_FORMAT = 1/0x0A "Invalid Format",
    INVALID_QUEUE_DELETION = 1/0x0C "Invalid Queue Deletion",
    FEATURE_NOT_SAVEABLE = 1/0x0D "Feature Identifier Not Saveable",
    FEATURE_NOT_CHANGEABLE = 1/0x0E "Feature Not Changeable",
    FEATURE_NOT_NAMESPACE_SPECIFIC = 1/0x0F "Feature Not Namespace Specific",
    INVALID_CONTROLLER_ID = 1/0x1F "Invalid Controller Identifier",
    CONNECT_INCOMPATIBLE_FORMAT = 1/0x80 "Connect Incompatible Format",
    CONNECT_CONTROLLER_BUSY = 1/0x81 "Connect Controller Busy",
    CONNECT_INVALID_PARAMETERS = 1/0x82 "Connect Invalid Parameters",
    CONNECT_RESTART_DISCOVERY = 1/0x83 "Connect Restart Discovery",
    CONNECT_INVALID_HOST = 1/0x84 "Connect Invalid Host",
    DISCOVERY_RESTART = 1/0x90 "Discover Restart",
    AUTHENTICATION_REQUIRED = 1/0x91 "Authentication Required",
    WRITE_FAULT = 2/0x80 "Write Fault",
    UNRECOVERED_READ_ERROR = 2/0x81 "Unrecovered Read Error",
    GUARD_CHECK_ERROR = 2/0x82 "End-to-end Guard Check Error",
    APPLICATION_TAG_CHECK_ERROR = 2/0x83 "End-to-end Application Tag Check Error",
    REFERENCE_TAG_CHECK_ERROR = 2/0x84 "End-to-end Reference Tag Check Error",
    COMPARE_FAILURE = 2/0x85 "Compare Failure",
    ACCESS_DENIED = 2/0x86 "Access Denied",
    DEALLOCATED_BLOCK = 2/0x87 "Deallocated or Unwritten Logical Block",
    INTERNAL_PATH_ERROR = 3/0x00 "Internal Path Error",
    ACCESS_PERSISTENT_LOSS = 3/0x01 "Asymmetric Access Persistent Loss",
    ACCESS_INACCESSIBLE = 3/0x02 "Asymmetric Access Inaccessible",
    ACCESS_TRANSITION = 3/0x03 "Asymmetric Access Transition",
    CONTROLLER_PATHING_ERROR = 3/0x60 "Controller Pathing Error",
    HOST_PATHING_ERROR = 3/0x70 "Host Pathing Error",
    ABORTED_BY_HOST = 3/0x71 "Command Aborted By Host",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_unique_and_named() {
        for (i, (status, name)) in Status::ALL.iter().enumerate() {
            assert!(!Status::ALL[..i].iter().any(|(other, _)| other.is(*status)), "{name}");
            assert_eq!(status.with_dnr().name(), Some(*name));
        }
        assert_eq!(
            Status::CONNECT_INVALID_PARAMETERS.to_string(),
            "Connect Invalid Parameters (SCT 1 SC 0x82)"
        );
        assert_eq!(
            Status::new(7, 0xFF).with_dnr().to_string(),
            "unknown status (SCT 7 SC 0xFF, do not retry)"
        );
    }

    #[test]
    fn do_not_retry_is_no_part_of_the_code() {
        let status = Status::INVALID_FIELD.with_dnr();
        assert!(status.dnr() && status.is(Status::INVALID_FIELD) && status != Status::INVALID_FIELD);
        assert!(Status::SUCCESS.is_success() && !status.is_success());
    }
}
