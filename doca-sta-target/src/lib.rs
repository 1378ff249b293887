//! An NVMe over RDMA target on DOCA STA: the application supplies subsystems and disks, and calls
//! [`Target::run_for`].
//!
//! | part | what it does |
//! | --- | --- |
//! | [`Target`] | listens, spreads connections over threads, progresses, ends in order |
//! | [`Engine`] | Connect, properties, Identify, features, logs, events, keep-alive and discovery, as a state machine without I/O |
//! | [`Disk`], [`NvmeDisk`], [`DiskMemory`] | disks by their queues; an NVMe controller behind mapped registers; memory that disks reach |
//! | [`Frontend`], [`AdminTransport`] | the engine for transports of the application |
//!
//! Reads and writes do not come here: the adapter executes them. Flush, Compare, Write Zeroes and Dataset Management are
//! executed by a thread of each disk, on a queue of its own.
//!
//! # The admin queue on hardware
//!
//! DOCA STA is given I/O queues only, as far as is known: it tells commands apart by opcodes, and has no way to say that a
//! queue pair carries admin commands. On hardware, everything here works but connections for queue 0, which need a queue
//! pair of the application's own (verbs, or any other transport): an [`AdminTransport`] in
//! [`Options::admin`](Options) gets their requests and shares the engine. Without one, queue 0 is accepted on a queue pair
//! of STA like the others; the simulator, and whichever release can do that, hand its commands over.
//!
//! # Disks that never return
//!
//! A disk that does not complete a command raises [`Event::BackEndTimeout`](doca_sta::event::Event::BackEndTimeout); what becomes of the
//! command is the application's decision: wait, or take the namespace away, which answers it with Abort Requested. Stopping a target
//! gives such commands up, and takes the queues from the adapter, then from the disk: deleting a submission queue makes an NVMe controller drop
//! what it holds. One that does not answer its admin queue either is reset, and if that has no end, nothing but its
//! [`Mapper`](nvme_pci::Mapper) keeps it from the memory, as an IOMMU does: the adapter's memory is unmapped before it is freed. So nothing of
//! a target is leaked, and stopping it takes some 15 seconds for each disk in that state. A command in [`Disk::execute`] cannot be given up: its
//! thread is left behind with the disk, which it owns, and [`Target::stop`] says so.
#![deny(unsafe_code)]

mod admin;
mod controller;
mod disk;
mod engine;
mod frontend;
mod model;
#[allow(unsafe_code, reason = "memory that disks and adapters reach")]
mod raw;
mod serve;
mod sgl;
mod target;
mod worker;

pub use disk::{Disk, DiskError, EXECUTED, NvmeDisk};
pub use engine::{Action, Engine, EngineCounts, Outcome, QueueKey};
pub use frontend::{AdminTransport, Frontend, Told};
pub use model::{Capacity, Model, NamespaceInfo, SubsystemInfo};
pub use raw::DiskMemory;
pub use target::{Failure, NamespaceOptions, Options, Statistics, SubsystemOptions, Target};
