//! Safe Rust over `libdoca_sta`: NVMe over RDMA storage targets whose data path runs on the adapter.
//!
//! The adapter takes read and write commands from the network, moves their data, and has them executed by an NVMe disk.
//! The application keeps everything else: it listens for connections, answers Connect and the admin commands, and
//! brings up the disk.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`caps`] | whether a device can control a target, and every limit |
//!
//! Targets themselves cannot be built with this crate yet; [`doca_sys`] has all of the C functions.
#![deny(unsafe_code)]

pub mod caps;
#[allow(unsafe_code, reason = "the C calls of this crate")]
mod raw;
