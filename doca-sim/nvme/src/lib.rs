//! A simulated NVMe controller, as it looks from its BAR.
//!
//! [`Disk::start`] runs a controller on a thread of its own. Whoever drives it meets it only where a real one is met: at
//! the registers ([`Disk::bar`]), at memory that was mapped for it ([`Disk::mapper`]), and at queues and doorbells in that
//! memory. There are no calls, so an offload engine that was lent a queue drives it the same way.
//!
//! Addresses in queues and PRPs are looked up in the table of mapped memory; one that is not there ends the command with Data
//! Transfer Error. Mapped memory has its own address for an IOVA.
//!
//! ```
//! # let file = tempfile::tempfile().unwrap();
//! # file.set_len(1 << 20).unwrap();
//! use doca_sim_nvme::{Config, Disk, Namespace};
//!
//! let disk = Disk::start(Config::default().namespace(Namespace::new(file, 512)?))?;
//! let mut driver = nvme_pci::Driver::open(disk.bar(), disk.mapper())?;
//! let mut queue = driver.io_queue(32)?;
//! queue.write(1, 0, 512, &[7; 512])?;
//! disk.faults().stall(true);                     // from here on nothing completes
//! # disk.faults().stall(false);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod admin;
mod commands;
mod controller;
mod disk;
mod faults;
mod media;
mod prp;
#[allow(unsafe_code)]
mod raw;

pub use disk::{Config, Counters, Disk};
pub use faults::Faults;
pub use media::Namespace;
