//! The C calls of this crate, by object.

pub(crate) mod address;
pub(crate) mod bridge;
pub(crate) mod caps;
pub(crate) mod connection;
pub(crate) mod outgoing;
pub(crate) mod prepared;
pub(crate) mod rdma;
pub(crate) mod task;
