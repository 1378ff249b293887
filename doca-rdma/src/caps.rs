//! What a device can do with RDMA: every capability query of `libdoca_rdma`, by name.
//!
//! ```no_run
//! # // Needs a device; `doca caps` and the tests run this for real.
//! # fn main() -> doca_common::Result<()> {
//! use doca_common::Device;
//! use doca_rdma::caps;
//!
//! let device = Device::find().with(caps::SEND).open()?;
//! let all = caps::snapshot(&device.info());
//! println!("{all}");
//! all.require("rdma.receive,rdma.max_message_size>=1048576")?;
//! # Ok(())
//! # }
//! ```

use crate::raw;
use crate::values::TransportType;
use doca_common::DeviceInfo;
use doca_common::caps::{Capability, Snapshot};

pub use raw::caps::{
    ATOMIC_CMP_SWP, ATOMIC_FETCH_ADD, GID_TABLE_SIZE, MAX_MESSAGE_SIZE, MAX_RECV_QUEUE_SIZE,
    MAX_SEND_BUF_LIST_LEN, MAX_SEND_QUEUE_SIZE, READ, RECEIVE, SEND, SEND_IMM, SYNC_EVENT_GET,
    SYNC_EVENT_NOTIFY_ADD, SYNC_EVENT_NOTIFY_SET, WRITE, WRITE_IMM,
};

/// Whether reliable connections are supported: `doca_rdma_cap_transport_type_is_supported`
pub const TRANSPORT_RC: Capability =
    Capability::new("rdma.transport_rc", "doca_rdma_cap_transport_type_is_supported", |device| {
        raw::caps::transport(device, TransportType::RC.to_c())
    });

/// Whether dynamic connections, which are alpha in DOCA, are supported: `doca_rdma_cap_transport_type_is_supported`
pub const TRANSPORT_DC: Capability =
    Capability::new("rdma.transport_dc", "doca_rdma_cap_transport_type_is_supported", |device| {
        raw::caps::transport(device, TransportType::DC.to_c())
    });

/// Buffers in the chain of a receive on RC: `doca_rdma_cap_task_receive_get_max_dst_buf_list_len`
pub const MAX_RECEIVE_BUF_LIST_LEN_RC: Capability = Capability::new(
    "rdma.max_receive_buf_list_len_rc",
    "doca_rdma_cap_task_receive_get_max_dst_buf_list_len",
    |device| raw::caps::receive_list_len(device, TransportType::RC.to_c()),
);

/// Buffers in the chain of a receive on DC: `doca_rdma_cap_task_receive_get_max_dst_buf_list_len`
pub const MAX_RECEIVE_BUF_LIST_LEN_DC: Capability = Capability::new(
    "rdma.max_receive_buf_list_len_dc",
    "doca_rdma_cap_task_receive_get_max_dst_buf_list_len",
    |device| raw::caps::receive_list_len(device, TransportType::DC.to_c()),
);

/// All questions.
pub const ALL: &[Capability] = &[
    MAX_SEND_QUEUE_SIZE,
    MAX_RECV_QUEUE_SIZE,
    MAX_SEND_BUF_LIST_LEN,
    MAX_MESSAGE_SIZE,
    GID_TABLE_SIZE,
    TRANSPORT_RC,
    TRANSPORT_DC,
    MAX_RECEIVE_BUF_LIST_LEN_RC,
    MAX_RECEIVE_BUF_LIST_LEN_DC,
    RECEIVE,
    SEND,
    SEND_IMM,
    READ,
    WRITE,
    WRITE_IMM,
    ATOMIC_CMP_SWP,
    ATOMIC_FETCH_ADD,
    SYNC_EVENT_GET,
    SYNC_EVENT_NOTIFY_SET,
    SYNC_EVENT_NOTIFY_ADD,
];

/// Asks everything.
pub fn snapshot(device: &DeviceInfo) -> Snapshot {
    Snapshot::of(device, ALL)
}
