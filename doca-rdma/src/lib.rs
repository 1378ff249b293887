//! Safe Rust over `libdoca_rdma`: messages and one-sided memory access between peers.
//!
//! ```text
//!  Rdma::configure ──> Config ── start ──> Starting ── running ──> Rdma ── stop ──> Stopping ── wait ──> Config
//!                      options              (C: STARTING)           │                (C: STOPPING)
//!                      enable(task) ─ key ──────────────> queue(key)│
//!                                                                   ├─ export ──────> Exported ── connect ──┐
//!                                                                   ├─ connect_addr > Connecting ── wait ───┼─> Connection
//!                                                                   ├─ listen ──────> Listener ── wait ─────┤
//!                                                                   └─ bridge ──────> Bridging, Accepted ───┘
//!                             queue.submit(&connection, buffer) ──> Pending ── wait, or .await ──> buffer
//!                             queue.prepare(&connection, buffer) ─> Prepared ── submit ──> InFlight ── wait ──> Prepared
//! ```
//!
//! Wrong orders do not compile. What changes by itself (a peer goes, a context stops) is checked when it matters, and
//! a handle whose object is gone gives an error value.
//!
//! # Tasks
//!
//! | kind | names at the peer | local buffer | gives |
//! | --- | --- | --- | --- |
//! | [`SendTask`], [`SendImmTask`] | a posted receive | [`Source`] | the buffer |
//! | [`ReceiveTask`] | | [`Destination`] | [`Received`]: the message, whose it is, the immediate value |
//! | [`ReadTask`] | [`RemoteBuffer`] | [`Destination`] | [`Fetched`]: the bytes |
//! | [`WriteTask`], [`WriteImmTask`] | [`RemoteBuffer`] | [`Source`] | the buffer |
//! | [`CompareSwapTask`], [`FetchAddTask`] | [`RemoteCell`] | [`Destination`] of 8 bytes | [`Word`]: the value before |
//! | [`EventGetTask`] | [`RemoteEvent`] | [`Destination`] of 8 bytes | [`Word`]: the value |
//! | [`EventSetTask`] | [`RemoteEvent`] | [`Source`] of 8 bytes | the buffer |
//! | [`EventAddTask`] | [`RemoteEvent`] | [`Destination`] of 8 bytes | [`Word`]: the value before |
//!
//! What both sides must permit is in the [permission matrix](doca_common::access::MATRIX). Who is reached into declares
//! it by [`Config::allow`] and [`Memory::allow`](doca_common::Memory::allow), and wider permissions are logged then.
//!
//! DOCA does not check a task when it is submitted, so these crates do: device, length, room, alignment, chain, state.
//! What the peer refuses is told when the task is done, with the row of the matrix.
//!
//! [`Source`]: doca_common::buffer::Source
//! [`Destination`]: doca_common::buffer::Destination
//! [`RemoteBuffer`]: doca_common::RemoteBuffer
//! [`RemoteCell`]: doca_common::RemoteCell
//! [`RemoteEvent`]: doca_common::RemoteEvent
//!
//! # Buffers
//!
//! Submitting takes a buffer by value; success, failure and flush give it back. Dropping a [`Pending`] detaches it:
//! the buffer stays with the task until that is done, then goes back to its memory.
//!
//! A task that is done over and over is [prepared] once and submitted again and again, which costs little more
//! than DOCA's own call.
//!
//! # Stopping
//!
//! Handles may be dropped or forgotten in any order. Dropping [`Rdma`] queues its end: progress of its engine (or
//! dropping the engine) flushes tasks, closes connections, and destroys the C object.
#![deny(unsafe_code)]

pub mod address;
pub mod caps;
mod config;
pub mod connection;
mod context;
pub mod gid;
mod instance;
pub mod prepared;
#[allow(unsafe_code, reason = "the C calls of this crate")]
mod raw;
mod run;
mod task;
mod values;

pub use address::Address;
pub use config::Config;
pub use connection::{
    Accepted, Bridging, CmId, Connecting, Connection, ConnectionEvent, ConnectionId, ConnectionState,
    Decision, Events, Exported, Listener, Request,
};
pub use context::{Left, Rdma, Starting, Stopping};
pub use doca_common::owner::Key;
pub use prepared::{InFlight, Prepared, TaskLeft};
pub use task::{
    Arrival, CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, Fetched, Pending,
    Queue, ReadTask, ReceiveTask, Received, SendImmTask, SendTask, Task, Word, WriteImmTask, WriteTask,
};
pub use values::{Mtu, Opcode, TransportType};
