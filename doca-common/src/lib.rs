//! Safe Rust over `libdoca_common`: what all DOCA libraries share.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`device`] | the devices of this machine, and how one is chosen |
//! | [`representor`] | the functions of the host that a DPU represents |
//! | [`memory`] | memory that devices may reach, private to this program or shared with peers |
//! | [`remote`] | memory of a peer, in ranges and cells that tasks name |
//! | [`buffer`] | pieces of memory that tasks take by value and give back |
//! | [`chain`] | several buffers as one message |
//! | [`engine`] | the progress engine: polling, waiting, a descriptor for event loops |
//! | [`context`] | the states that every DOCA context goes through |
//! | [`event`] | numbers by which processors and peers signal each other |
//! | [`error`] | errors with DOCA's own words and the next thing to check |
//! | [`caps`] | what a device can do: snapshot, comparison, requirements |
//! | [`version`] | the DOCA that was built against and the one that is loaded |
//! | [`log`] | DOCA's messages in the `log` facade |
//!
//! # Threads
//!
//! A [`ProgressEngine`] and what is started on it stay on one thread, as DOCA demands;
//! scale with one engine per thread. Devices, memory, buffers, descriptors and errors cross threads.
//!
//! # For library crates
//!
//! `doca-rdma` and its sisters build on [`raw`], where the C calls are, and on [`slot`] and [`context`].
//! Applications need none of these.
#![deny(unsafe_code)]

pub mod access;
pub mod buffer;
pub mod caps;
pub mod chain;
pub mod context;
pub mod descriptor;
pub mod device;
pub mod engine;
pub mod error;
pub mod event;
pub mod log;
pub mod memory;
pub mod owner;
#[allow(unsafe_code, reason = "the C calls of this crate")]
pub mod raw;
pub mod remote;
pub mod representor;
pub mod slot;
pub mod version;

pub use access::Access;
pub use buffer::{Buffer, Frozen, SharedBuffer};
pub use chain::Chain;
pub use descriptor::Descriptor;
pub use device::{Device, DeviceInfo};
pub use engine::ProgressEngine;
pub use error::{Code, Error, Failed, Kind, Layer, Refusal, Result};
pub use event::{AsyncEvent, RemoteEvent, SyncEvent};
pub use memory::{Memory, PrivateMemory, SharedMemory};
pub use remote::{RemoteBuffer, RemoteCell, RemoteMemory};
pub use representor::{Representor, RepresentorInfo};
