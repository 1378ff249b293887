//! The exported functions, one file per public header.

pub mod dev;
pub mod unsupported;
