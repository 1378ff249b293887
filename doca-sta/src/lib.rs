//! Safe Rust over `libdoca_sta`: NVMe over RDMA storage targets whose data path runs on the adapter.
//!
//! The adapter takes read and write commands from the network, moves their data, and has them executed by an NVMe disk.
//! The application keeps everything else: it listens for connections, answers Connect and the admin commands, and
//! brings up the disk. (`doca-sta-target` does all that on top of this crate.)
//!
//! ```text
//!  control thread                                                      a thread for each IO context
//!  Sta::configure ──> Config ── start ──> Starting ── running ──> Sta
//!       add_network, set_io_contexts,                              │
//!       add_back_end, add_subsystem,                               ├─ io_seed ──> IoSeed ── start ──> IoStarting ── running ──> Io
//!       add_namespace                                              │                                                           │
//!  cm::Listener ── next ──> Request ───────────────────────────────┼──────────────────── accept(request, private data) ──> Qp ─┤
//!                                                                  │                     Connect: bind, set_sq_size            │
//!                                                                  │                     command ──> Command ── respond        │
//!                                                                  └─ stop ──> Stopping ── wait        close ──────────────────┘
//! ```
//!
//! | module | what it has |
//! | --- | --- |
//! | [`caps`], [`Limits`] | whether a device can control a target, and every limit |
//! | [`Config`], [`Sta`] | the control context: description, start, disks, namespaces, statistics, end |
//! | [`IoSeed`], [`Io`] | IO contexts: queue pairs and commands of one thread |
//! | [`Qp`], [`QpState`] | a connection with an initiator |
//! | [`Command`] | what DOCA does not execute, to be answered once |
//! | [`cm`] | the listener, over librdmacm |
//! | [`event`], [`stats`] | what happens by itself; counters |
//! | [`diagnosis`] | why initiators cannot connect, in the order in which to look |
//!
//! # Two roles of devices
//!
//! The device that [controls](Sta::configure) a target, a physical function that may run DPA programs, is not the one
//! that carries traffic. Connections are on devices that were [added](Config::add_network); the control device may
//! be one of them.
//!
//! # What is not safe by nature
//!
//! [`NvmeQueue`]: the memory of a disk's queues, which disk and adapter change at any time; and [`Allocator`]: whose
//! addresses the disk writes to. Who implements these answers for them.
//!
//! # The admin queue
//!
//! DOCA offers no way to say that a queue pair carries admin commands, and tells commands apart by opcodes that admin
//! commands use for something else (Get Log Page is 2, as Read is). No program is known that has its admin queue on a
//! queue pair of STA on hardware: there, admin connections (queue number 0 in the private data) belong to a queue pair of
//! the application's own, by verbs or another transport, and everything else works as here. The simulator hands all
//! commands of such a connection to the application (profile `sta-no-admin-qp` switches that off).
#![deny(unsafe_code)]
#![allow(
    clippy::result_large_err,
    reason = "commands come back by value: a box would be an allocation for each"
)]

pub mod caps;
pub mod cm;
mod command;
mod config;
mod context;
pub mod diagnosis;
pub mod event;
mod instance;
mod io;
mod io_instance;
mod limits;
mod qp;
#[allow(unsafe_code, reason = "the C calls of this crate")]
mod raw;
pub mod stats;
mod table;

pub use command::{CQE, Command, Direction, SQE, completion};
pub use config::{BackEndId, Config, Namespace, NamespaceId, Subsystem, SubsystemId};
pub use context::{Events, Left, Sta, Starting, Stopping};
pub use io::{Io, IoEvents, IoSeed, IoStarting, Spare};
pub use io_instance::IoCounts;
pub use limits::Limits;
pub use qp::{Qp, QpId, QpState, SqSize};
pub use raw::memory::{Allocation, Allocator, HugepageAllocator, PlainAllocator};
pub use raw::queue::{Doorbells, NvmeQueue};
