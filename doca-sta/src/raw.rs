//! The C calls of this crate, by object.

pub(crate) mod caps;
pub(crate) mod cm;
pub(crate) mod event;
pub(crate) mod io;
pub(crate) mod memory;
pub(crate) mod object;
pub(crate) mod queue;
pub(crate) mod sta;
pub(crate) mod stats;
pub(crate) mod task;
