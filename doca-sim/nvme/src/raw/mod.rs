//! Registers and mapped memory: what the controller and its driver share.

mod bar;
mod map;
mod punch;

pub(crate) use bar::Bar;
pub(crate) use map::Map;
pub(crate) use punch::punch_hole;
