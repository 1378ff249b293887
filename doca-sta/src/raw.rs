//! The C calls of this crate, by object.

pub(crate) mod caps;
mod sta;
