//! What a device can do with Comch: every capability query of `libdoca_comch`, by name.
//!
//! ```no_run
//! # // Needs a device; `doca caps` and the tests run this for real.
//! # fn main() -> doca_common::Result<()> {
//! use doca_common::Device;
//! use doca_comch::caps;
//!
//! let device = Device::find().called("0000:b1:00.0").with(caps::CLIENT).open()?;
//! let all = caps::snapshot(&device.info());
//! println!("{all}");
//! all.require("comch.producer,comch.max_msg_size>=1024")?;
//! # Ok(())
//! # }
//! ```

use doca_common::DeviceInfo;
use doca_common::caps::Snapshot;

pub use crate::raw::caps::{
    ALL, CLIENT, CONSUMER, CONSUMER_MAX_BUF_LIST_LEN, CONSUMER_MAX_BUF_SIZE, CONSUMER_MAX_NUM_TASKS,
    MAX_CLIENTS, MAX_CONSUMERS, MAX_IMM_DATA_LEN, MAX_MSG_SIZE, MAX_NAME_LEN, MAX_PRODUCERS,
    MAX_RECV_QUEUE_SIZE, MAX_SEND_TASKS, PRODUCER, PRODUCER_MAX_BUF_LIST_LEN, PRODUCER_MAX_BUF_SIZE,
    PRODUCER_MAX_NUM_TASKS, SERVER,
};

/// Asks everything.
pub fn snapshot(device: &DeviceInfo) -> Snapshot {
    Snapshot::of(device, ALL)
}
