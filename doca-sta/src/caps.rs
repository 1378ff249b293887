//! What a device can do as a storage target: every limit of `libdoca_sta`, by name.
//!
//! Names are those of the C functions without `doca_sta_get_`, and without `max_` where there is no minimum. Nothing has
//! to be started. On a device that cannot control a target, [`SUPPORTED`] is no, and every other question fails with
//! `NOT_SUPPORTED`, although DOCA gives some of the limits without a device.
//!
//! Questions that DOCA answers only for a `doca_sta` open the device and make one, which stays idle, for as long as
//! the question takes.
//!
//! ```no_run
//! # // Needs a device; the tests run this for real.
//! # fn main() -> doca_common::Result<()> {
//! use doca_common::Device;
//! use doca_sta::caps;
//!
//! let control = Device::find().with(caps::SUPPORTED).called("mlx5_0").open()?;
//! let all = caps::snapshot(&control.info());
//! println!("{all}");
//! all.require("sta.qps>=16,sta.io_queue_size>=64")?;
//! # Ok(())
//! # }
//! ```

use crate::raw;
use doca_common::caps::{Capability, Snapshot, Value};
use doca_common::{DeviceInfo, Result};

pub use raw::caps::{
    BE, DEVS, ICDOFF, IO_NUM_PER_DEV, IO_QUEUE_SIZE, IO_SIZE, IO_THREADS, MAX_IOCCSZ, MAX_IORCSZ, MIN_IOCCSZ,
    MIN_IORCSZ, NS_PER_SUBS, NUM_CONNECTED_QP_PER_EU, NUM_EUS_AVAILABLE, QPS, QS_PER_BE, STA_IO, SUBSYS,
    SUPPORTED,
};

/// Whether namespaces can have blocks of 512 bytes: `doca_sta_is_logical_block_size_supported`
pub const BLOCK_SIZE_512: Capability =
    Capability::new("sta.block_size_512", "doca_sta_is_logical_block_size_supported", |device| {
        raw::caps::block_size(device, 512).map(Value::Supported)
    });

/// Whether namespaces can have blocks of 4096 bytes: `doca_sta_is_logical_block_size_supported`
pub const BLOCK_SIZE_4096: Capability =
    Capability::new("sta.block_size_4096", "doca_sta_is_logical_block_size_supported", |device| {
        raw::caps::block_size(device, 4096).map(Value::Supported)
    });

/// All questions.
pub const ALL: &[Capability] = &[
    SUPPORTED,
    DEVS,
    NUM_EUS_AVAILABLE,
    NUM_CONNECTED_QP_PER_EU,
    SUBSYS,
    NS_PER_SUBS,
    QPS,
    IO_THREADS,
    STA_IO,
    IO_SIZE,
    IO_NUM_PER_DEV,
    IO_QUEUE_SIZE,
    MIN_IOCCSZ,
    MAX_IOCCSZ,
    MIN_IORCSZ,
    MAX_IORCSZ,
    ICDOFF,
    BE,
    QS_PER_BE,
    BLOCK_SIZE_512,
    BLOCK_SIZE_4096,
];

/// Asks everything.
pub fn snapshot(device: &DeviceInfo) -> Snapshot {
    Snapshot::of(device, ALL)
}

/// Whether namespaces can have blocks of this size, bytes: `doca_sta_is_logical_block_size_supported`.
///
/// # Errors
///
/// `NOT_SUPPORTED` if the device cannot control a target.
#[doc(alias = "doca_sta_is_logical_block_size_supported")]
pub fn is_block_size_supported(device: &DeviceInfo, size: u32) -> Result<bool> {
    raw::caps::block_size(device, size)
}
