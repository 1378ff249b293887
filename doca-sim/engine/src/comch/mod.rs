//! `libdoca_comch`: messages between programs on the host and on the DPU.
//!
//! ```text
//! endpoint    servers and clients: configuration, state
//! running     what exists between start and stop; progress
//! handshake   how a client comes to a server
//! traffic     messages, and notes about consumers
//! connection  one connection
//! half        what producers and consumers, on their threads, share with the control path
//! consumer    fast path: buffers that the peer fills
//! producer    fast path: fills the peer's buffers
//! ```

mod connection;
mod consumer;
mod endpoint;
mod half;
mod handshake;
mod producer;
mod running;
mod traffic;

pub use connection::Connection;
pub use consumer::Consumer;
pub use endpoint::{
    Client, Conf, ConsumerCallback, Endpoint, MessageCallback, Server, StatusCallback, connects, serves,
};
pub use producer::Producer;

use crate::topology::Device;

/// Whether a device has producers and consumers.
pub fn has_fast_path(device: &Device) -> bool {
    device.comch.supported && device.comch.fast_path
}
