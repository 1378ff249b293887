//! NVMe and NVMe over Fabrics as bytes: what hosts, controllers and fabrics targets say to each other.
//!
//! Types only: no I/O, no `unsafe`, no DOCA. Structures are named after the specifications (NVM Express Base 2.0, NVM
//! Command Set 1.0, RDMA Transport 1.0), their fields carry the specifications' abbreviations, and each is written as one
//! table of offsets. A structure is read by `parse` (exact length) or [`Layout::read`] (at least that length) and
//! written by `to_bytes`; reserved bytes are ignored and written as 0.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`command`] | submission and completion queue entries, opcodes |
//! | [`sgl`] | where the data are |
//! | [`status`] | status codes with their names |
//! | [`admin`], [`io`], [`fabrics`] | arguments of commands |
//! | [`identify`], [`log`], [`feature`], [`discovery`] | what they return |
//! | [`property`] | controller properties, which over PCI are its registers |
//! | [`cm`] | private data of RDMA connections |
//!
//! ```
//! use nvme_wire::{Capsule, IoOpcode, Sgl, Sqe, io::ReadWrite};
//!
//! let mut command = Sqe { opcode: IoOpcode::READ.0, cid: 7, nsid: 1, ..Sqe::fabric(Sgl::keyed(0x1000, 4096, 0x55)) };
//! command.set(&ReadWrite { slba: 100, nlb: 7, ..Default::default() });
//! let bytes = command.to_bytes();
//! let capsule = Capsule::read(&bytes)?;
//! assert_eq!(capsule.command.get::<ReadWrite>().blocks(), 8);
//! # Ok::<(), nvme_wire::Short>(())
//! ```
#![forbid(unsafe_code)]

mod code;
mod layout;
mod text;

pub mod admin;
pub mod cm;
pub mod command;
pub mod discovery;
pub mod fabrics;
pub mod feature;
pub mod identify;
pub mod io;
pub mod log;
pub mod property;
pub mod sgl;
pub mod status;

pub use command::{AdminOpcode, Capsule, Cqe, Direction, IoOpcode, Sqe};
pub use layout::{Bits, Field, Layout, Short, Wire};
pub use sgl::{Sgl, SglKind};
pub use status::Status;
pub use text::{Nqn, Padded, Terminated, TextError};
