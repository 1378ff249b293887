//! Safe Rust over `libdoca_comch`: messages between the programs of a host and those of its DPU.
//!
//! ```text
//!  Server::configure ─┐
//!                     ├─> Config ── start ──> Starting ── running ──> Server | Client ── stop ──> Stopping ── wait ──> Config
//!  Client::configure ─┘   set_max_msg_size     (C: STARTING)            │        │              (C: STOPPING)
//!                         set_send_tasks                  wait (accept) ┘        └ connection
//!                         on_message                                 Connection
//!                                                                     send, receive, counters
//! ```
//!
//! Servers run on the DPU, each for the clients of one function of the host, which its representor names. Clients run on
//! the host, each of one server, which it finds by name.
//!
//! Wrong orders do not compile. What changes by itself (a peer goes, a client falls back to idle) is checked when it
//! matters, and a handle whose object is gone gives an error value.
//!
//! # Example
//!
//! A question from the host, and the answer of the DPU. It takes both, so it is compiled here and not run; the examples
//! `comch_ctrl_path_server` and `comch_ctrl_path_client` of the repository run as two processes.
//!
//! ```no_run
//! use doca_comch::{Client, Server};
//! use doca_common::{Device, Error, ProgressEngine};
//!
//! /// On the DPU, for the host function 3b:00.0.
//! fn serve() -> Result<(), Error> {
//!     let device = Device::open("03:00.0")?;
//!     let function = device.representor("3b:00.0")?;
//!     let engine = ProgressEngine::new()?;
//!     let server = Server::configure(&device, &function, "greetings")?.start(&engine)?.running()?;
//!     let client = server.wait()?;
//!     let name = client.receive()?;
//!     client.send_parts(&[b"hello, ", &name])?;
//!     client.wait_sent()?;
//!     server.stop().wait()?;
//!     Ok(())
//! }
//!
//! /// On the host, in that function.
//! fn ask() -> Result<Vec<u8>, Error> {
//!     let device = Device::open("3b:00.0")?;
//!     let engine = ProgressEngine::new()?;
//!     let mut config = Client::configure(&device, "greetings")?;
//!     config.set_max_msg_size(4080)?;
//!     // Where no server has that name, the client gets no further than STARTING.
//!     let client = config.start(&engine)?.running()?;
//!     let server = client.connection()?;
//!     server.send(b"world")?;
//!     let answer = server.receive()?;
//!     client.stop().wait()?;
//!     Ok(answer)
//! }
//! # _ = (serve, ask);
//! ```
//!
//! # Messages
//!
//! The control path takes messages up to [`caps::MAX_MSG_SIZE`]. [`Connection::send`] copies and never waits: while too
//! many messages are on their way it answers with an error that is [retryable](doca_common::Error::is_retryable), and
//! takes nothing. Messages of the peer are kept by their [`Connection`], or go to the closure of
//! [`Config::on_message`].
//!
//! # Bulk data
//!
//! A [`Producer`] of one side fills the buffers that a [`Consumer`] of the other has posted, both on one connection, with
//! some immediate data beside. Each is created on its connection's thread as a [`Seed`], which may move to another thread
//! and the engine there; the control paths of both sides must be progressed meanwhile. Which consumers the peer has is
//! told by [`Event::ConsumerUp`] and kept in [`Connection::consumers`]. They end with their connection, and a server or
//! client stops only after all of its own have ended.
//!
//! # Silence
//!
//! DOCA does not notice at once when a peer is killed or hangs: messages stay on their way for seconds before they fail,
//! and without messages nothing is told at all. Whoever must know sends heartbeats, and looks at
//! [`Connection::counters`] too. What the library itself does not tell, that a connection ended because the server wanted
//! it, is told here as any other end.
//!
//! # Event loops
//!
//! One engine drives any number of servers and clients: progress until there is nothing to do, read [`Events`], arm the
//! engine, sleep on its descriptor; sleep for some milliseconds at most, since not every release raises an event for
//! everything in Comch. [`Left`] keeps a context in whatever state it is.
#![deny(unsafe_code)]

pub mod caps;
mod client;
mod connection;
mod consumer;
mod control;
mod event;
mod family;
mod fast;
mod immediate;
mod lifecycle;
mod outbox;
mod pending;
mod producer;
#[allow(unsafe_code, reason = "the C calls of this crate")]
mod raw;
mod run;
mod server;

pub use client::Client;
pub use connection::{Connection, ConnectionId, ConnectionState, Counters, RemoteConsumer};
pub use consumer::{Consumer, Message};
pub use control::{ControlPath, Ended};
pub use event::{Event, Events};
pub use fast::FastPath;
pub use immediate::Immediate;
pub use lifecycle::{Config, Context, Left, Seed, Starting, Stopping};
pub use pending::{Done, Pending};
pub use producer::Producer;
pub use server::Server;
