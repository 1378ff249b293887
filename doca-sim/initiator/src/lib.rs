//! An NVMe over Fabrics host for tests: it speaks RDMA to a storage target through the public C functions of DOCA and
//! librdmacm, as far as the software SDK has them. On hardware a host is the kernel's `nvme-rdma` or SPDK; this one lends
//! its client connection to a `doca_rdma`, which only the SDK can.
//!
//! [`Host`] opens controllers, [`Controller`] runs admin commands and opens I/O queues, [`Queue`] is one connection with
//! its commands, [`load`] drives many queues, [`smoke`] is a first look at a target, [`wire`] its conformance. [`Failure`] says which part failed:
//! the fabric, the admin queue, or an I/O queue.
#![deny(unsafe_code)]

pub mod controller;
mod failure;
pub mod load;
pub mod queue;
#[allow(unsafe_code)]
mod raw;
pub mod smoke;
pub mod wire;

pub use controller::{Controller, Host, Target};
pub use failure::{Error, Failure, Part, Result};
pub use queue::{Completion, Data, Queue};
