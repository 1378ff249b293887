//! Features: what Set Features sets and Get Features gets.

use crate::code::codes;
use crate::layout::layout;

codes! {
    /// Feature Identifier (FID).
    pub struct FeatureId(u8) {
        ARBITRATION = 0x01 "Arbitration",
        POWER_MANAGEMENT = 0x02 "Power Management",
        TEMPERATURE_THRESHOLD = 0x04 "Temperature Threshold",
        ERROR_RECOVERY = 0x05 "Error Recovery",
        WRITE_CACHE = 0x06 "Volatile Write Cache",
        NUMBER_OF_QUEUES = 0x07 "Number of Queues",
        INTERRUPT_COALESCING = 0x08 "Interrupt Coalescing",
        INTERRUPT_VECTOR = 0x09 "Interrupt Vector Configuration",
        WRITE_ATOMICITY = 0x0A "Write Atomicity Normal",
        ASYNC_EVENTS = 0x0B "Asynchronous Event Configuration",
        KEEP_ALIVE = 0x0F "Keep Alive Timer",
        HOST_BEHAVIOR = 0x16 "Host Behavior Support",
        HOST_IDENTIFIER = 0x81 "Host Identifier",
        RESERVATION_NOTIFICATIONS = 0x82 "Reservation Notification Mask",
        RESERVATION_PERSISTENCE = 0x83 "Reservation Persistence",
        WRITE_PROTECTION = 0x84 "Namespace Write Protection Config",
    }
}

layout! {
    /// Number of Queues: asked for in CDW11, granted in DW0 of the completion.
    pub struct NumberOfQueues [4] {
        /// Number of I/O Submission Queues (NSQR, NSQA), 0-based.
        0 submission: u16,
        /// Number of I/O Completion Queues (NCQR, NCQA), 0-based.
        2 completion: u16,
    }

    /// Asynchronous Event Configuration: CDW11.
    pub struct AsyncEvents [4] {
        /// SMART / Health Critical Warnings.
        0 smart: u8,
        /// Namespace Attribute Notices.
        1[0..=0] namespace_attributes: bool,
        /// Firmware Activation Notices.
        1[1..=1] firmware_activation: bool,
        /// Asymmetric Namespace Access Change Notices.
        1[3..=3] ana_change: bool,
        /// Discovery Log Page Change Notification.
        3[7..=7] discovery: bool,
    }
}

impl From<u32> for NumberOfQueues {
    fn from(value: u32) -> Self {
        NumberOfQueues::parse(&value.to_le_bytes())
    }
}

impl From<NumberOfQueues> for u32 {
    fn from(value: NumberOfQueues) -> u32 {
        u32::from_le_bytes(value.to_bytes())
    }
}

impl From<u32> for AsyncEvents {
    fn from(value: u32) -> Self {
        AsyncEvents::parse(&value.to_le_bytes())
    }
}

impl From<AsyncEvents> for u32 {
    fn from(value: AsyncEvents) -> u32 {
        u32::from_le_bytes(value.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_bits_of_the_specification() {
        assert_eq!(u32::from(NumberOfQueues { submission: 15, completion: 7 }), 0x0007_000F);
        assert_eq!(NumberOfQueues::from(0x0001_0002), NumberOfQueues { submission: 2, completion: 1 });
        let events = AsyncEvents { namespace_attributes: true, discovery: true, ..Default::default() };
        assert_eq!(u32::from(events.clone()), 0x8000_0100);
        assert_eq!(AsyncEvents::from(0x8000_0100), events);
    }
}
