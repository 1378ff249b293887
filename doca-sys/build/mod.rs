//! What the build script does, in the order in which it does it.
//!
//! Everything here is a plain function of an [`environment::Environment`], so that `tests/probe.rs` can
//! include this tree and drive it against prefixes that it made up.

pub(crate) mod bindings;
pub(crate) mod environment;
pub(crate) mod facts;
pub(crate) mod messages;
pub(crate) mod pkg_config;
pub(crate) mod probe;
pub(crate) mod version;
