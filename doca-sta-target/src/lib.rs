//! An NVMe over RDMA target on DOCA STA: the application supplies subsystems and disks, and calls
//! [`Target::run_for`].
//!
//! | part | what it does |
//! | --- | --- |
//! | [`Target`] | listens, spreads connections over threads, progresses, ends in order |
//! | [`Engine`] | Connect, properties, Identify, features, logs, events, keep-alive and discovery, as a state machine without I/O |
//! | [`Disk`], [`NvmeDisk`], [`DiskMemory`] | disks by their queues; an NVMe controller behind mapped registers; memory that disks reach |
//! | [`Frontend`], [`AdminTransport`], [`AdminQueue`] | the engine for transports of the application |
//!
//! Reads and writes do not come here: the adapter executes them. Flush, Compare, Write Zeroes and Dataset Management are
//! executed by a thread of each disk, on a queue of its own.
//!
//! # The admin queue on hardware
//!
//! DOCA STA is given I/O queues only, as far as is known: it tells commands apart by opcodes, and has no way to say that a
//! queue pair carries admin commands. Without a queue pair of the application's own, all of a target works on hardware but its admin
//! queues (connections for queue 0), and without those no host gets as far as I/O. Whether STA hands the commands of a queue pair over
//! that was never bound to a subsystem, as this crate leaves those of queue 0, is not known; the simulator does, and by profile
//! `sta-no-admin-qp` it does not.
//!
//! A queue pair of the application's own is an [`AdminTransport`] in [`Options::admin`](Options): it gets the requests for queue 0, accepts
//! them by [`Request::into_raw`](doca_sta::cm::Request::into_raw) with librdmacm, and does what an [`AdminQueue`] says, which shares the engine with the rest
//! of the target: receive a capsule of 64 bytes, RDMA read, RDMA write, send 16 bytes. `doca-rdma` can receive and send on such a connection
//! (its bridge takes the identifier), but DOCA reaches memory of a peer by exported descriptors only, and initiators name theirs by keys: that
//! needs verbs, on the protection domain of the same device. The test `admin` has its hosts export descriptors beside the protocol instead.
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
mod admin_queue;
mod controller;
mod describe;
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

pub use admin_queue::{AdminQueue, Fetch, HostMemory, Step};
pub use disk::{Disk, DiskError, EXECUTED, NvmeDisk};
pub use engine::{Action, Engine, EngineCounts, Outcome, QueueKey};
pub use frontend::{AdminTransport, Frontend, Told};
pub use model::{Capacity, Model, NamespaceInfo, SubsystemInfo};
pub use raw::DiskMemory;
pub use target::{Failure, NamespaceOptions, Options, Statistics, SubsystemOptions, Target};
