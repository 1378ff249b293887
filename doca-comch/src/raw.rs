//! The C calls of this crate, by object.

pub(crate) mod bytes;
pub(crate) mod caps;
pub(crate) mod channel;
pub(crate) mod connection;
pub(crate) mod end;
pub(crate) mod task;
pub(crate) mod transfer;
