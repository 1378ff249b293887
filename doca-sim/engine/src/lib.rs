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
//! Nothing here is for Rust programs, so all modules are private, and what nobody uses is found; the `sim_` functions
//! are exported by name.
//!
//! Objects use interior mutability and are reached by shared references only, because a callback may call
//! any function on the object that is calling it.

mod abi;
mod access;
mod argp;
mod buf;
mod code;
mod comch;
mod ctx;
mod dev;
mod dma;
mod entry;
mod environment;
mod fabric;
mod fault;
mod fork;
mod inventory;
mod lock;
mod log;
mod mmap;
mod pe;
mod pieces;
mod pool;
mod profile;
mod rdma;
mod rdmacm;
mod sleeper;
mod sta;
mod strict;
mod sync_event;
mod task;
#[cfg(test)]
mod testing;
mod topology;
mod trace;
mod watchdog;
