//! A polled driver for an NVMe controller whose registers are mapped into this process.
//!
//! Storage targets need little of an NVMe disk: bring it up, ask what it is, create I/O queues whose memory and doorbells are
//! lent to the offload engine, and keep a queue for the commands that are not offloaded. Interrupts are not used.
//!
//! The driver meets the machine at two traits. [`Bar`] is the controller's BAR0 as memory; [`Mapper`] makes memory reachable for
//! the controller. A simulated disk implements both; on hardware they are thin wrappers around VFIO:
//!
//! | trait | with VFIO |
//! | --- | --- |
//! | [`Bar`] | bind the function to `vfio-pci`, enable bus mastering in its configuration space, `mmap` region 0 of the device descriptor |
//! | [`Mapper`] | `VFIO_IOMMU_MAP_DMA` and `VFIO_IOMMU_UNMAP_DMA` on the container; addresses are the process's own, or from a counter |
//!
//! These wrappers are not in this crate, which has run on the simulated disk only.
//!
//! ```no_run
//! # fn example(
//! #     bar: std::sync::Arc<dyn nvme_pci::Bar>,
//! #     mapper: std::sync::Arc<dyn nvme_pci::Mapper>,
//! # ) -> Result<(), nvme_pci::Error> {
//! let mut driver = nvme_pci::Driver::open(bar, mapper)?;
//! for (nsid, namespace) in driver.namespaces()? {
//!     println!("namespace {nsid}: {} blocks", namespace.nsze);
//! }
//! let lent = driver.create_queue(128)?;          // memory and doorbells for the offload engine
//! let mut queue = driver.io_queue(32)?;          // for our own commands
//! queue.flush(1)?;
//! driver.delete_queue(lent)?;
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod driver;
mod queue;
#[allow(unsafe_code)]
mod raw;

pub use driver::{Driver, QueueMemory};
pub use queue::IoQueue;
pub use raw::{Bar, DmaBuffer, Mapper};

use nvme_wire::{AdminOpcode, Status};
use std::time::Duration;

/// What went wrong with a controller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory could not be allocated, or not made reachable for the controller.
    #[error("cannot map {len} bytes for the controller")]
    Memory {
        /// How many bytes.
        len: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The controller cannot do what this driver needs, or the BAR is too short.
    #[error("the controller cannot be driven: {0}")]
    Unsuitable(&'static str),
    /// Registers read as all ones: the device is gone.
    #[error("the controller is gone: its registers read as ones")]
    Gone,
    /// Controller Fatal Status.
    #[error("the controller reports a fatal error (CSTS.CFS)")]
    Fatal,
    /// The controller did not become ready, or did not stop.
    #[error("the controller is not {what} after {after:?}")]
    NotReady {
        /// The state that was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// No completion came.
    #[error("no completion of {what} after {after:?}")]
    Timeout {
        /// The command.
        what: String,
        /// How long.
        after: Duration,
    },
    /// The controller ended an admin command with an error.
    #[error("{command} failed: {status}")]
    Admin {
        /// The command.
        command: AdminOpcode,
        /// Its status.
        status: Status,
    },
    /// The controller ended an I/O command with an error.
    #[error("the command failed: {0}")]
    Io(Status),
    /// The queue has as many commands outstanding as it takes.
    #[error("the queue is full")]
    Full,
    /// More data than one command of this driver moves.
    #[error("{len} bytes are more than one command moves ({max})")]
    TooLong {
        /// How many bytes.
        len: usize,
        /// How many are possible.
        max: usize,
    },
    /// No more queues: the controller granted fewer.
    #[error("the controller granted {0} I/O queues, and all are in use")]
    NoQueue(u16),
}
