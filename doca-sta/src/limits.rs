//! The limits of a device, asked once.

use crate::caps;
use doca_common::caps::{Capability, Value};
use doca_common::{DeviceInfo, Error, Refusal, Result};

macro_rules! limits {
    ($($field:ident: $capability:ident,)*) => {
        /// Every limit of a device that controls a target; the constants in [`caps`] say what each is.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Limits {
            $(#[doc = concat!("[`", stringify!($capability), "`](caps::", stringify!($capability), ")")]
            pub $field: u64,)*
        }

        impl Limits {
            /// Asks a device.
            ///
            /// # Errors
            ///
            /// `NOT_SUPPORTED` if it cannot control a target.
            pub fn of(device: &DeviceInfo) -> Result<Self> {
                Ok(Limits { $($field: number(device, caps::$capability)?,)* })
            }
        }
    };
}

limits! {
    devices: DEVS,
    execution_units: NUM_EUS_AVAILABLE,
    qps_per_unit: NUM_CONNECTED_QP_PER_EU,
    subsystems: SUBSYS,
    namespaces: NS_PER_SUBS,
    qps: QPS,
    io_contexts: IO_THREADS,
    io_size: IO_SIZE,
    commands_per_unit: IO_NUM_PER_DEV,
    queue_size: IO_QUEUE_SIZE,
    command_capsule: MAX_IOCCSZ,
    response_capsule: MAX_IORCSZ,
    in_capsule_offset: ICDOFF,
    back_ends: BE,
    queues_per_back_end: QS_PER_BE,
}

fn number(device: &DeviceInfo, capability: Capability) -> Result<u64> {
    match capability.ask(device)? {
        Value::Number(number) => Ok(number),
        other => Err(Error::refused(capability.call, Refusal::Malformed).with(format!("{other}"))),
    }
}

/// Refuses one more than a limit allows.
pub(crate) fn room(call: &'static str, have: usize, most: u64, name: &str) -> Result<()> {
    if (have as u64) < most {
        return Ok(());
    }
    Err(Error::refused(call, Refusal::Capability).with(format!("{name} = {most}, and {have} are there")))
}
