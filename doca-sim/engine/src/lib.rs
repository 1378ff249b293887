//! The virtual adapter behind the software DOCA SDK.
//!
//! Everything the simulator knows lives here, in `libdoca_sim.so.1`, once per process. The public
//! libraries (`libdoca_common.so.2`, `libdoca_rdma.so.2`, ...) are thin: each of their functions makes
//! one call to the function of the same name with the prefix `sim_`, which this crate exports.
//!
//! ```text
//! abi      one file per public header: boundary, argument checks, one call down
//!   |
//! dev mmap buf inventory pool pe ctx task rdma rdmacm comch sta argp log   the objects that programs hold
//!   |
//! fabric   shared memory: adapters, regions, queues, mailboxes; the only place that meets other processes
//! ```
//!
//! Objects use interior mutability and are reached by shared references only, because a callback may call
//! any function on the object that is calling it.

pub mod abi;
pub mod access;
pub mod argp;
pub mod buf;
pub mod code;
pub mod comch;
pub mod ctx;
pub mod dev;
pub mod dma;
pub mod entry;
pub mod fabric;
pub mod fault;
mod fork;
pub mod inventory;
mod lock;
pub mod log;
pub mod mmap;
pub mod pe;
pub mod pieces;
pub mod pool;
pub mod profile;
pub mod rdma;
pub mod rdmacm;
mod sleeper;
pub mod sta;
pub mod strict;
pub mod sync_event;
pub mod task;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod trace;
pub mod watchdog;
