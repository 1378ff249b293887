//! Comch between a host, which each test is, and its DPU.

pub mod control;
pub mod fast;
pub mod killed;
pub mod lost;
mod server;

pub use server::serve;

use crate::process::{LIMIT, Peer, Talk};
use doca::comch::{Client, Config, Connection};
use doca::{Device, ProgressEngine};

/// The host's function, which the DPU represents.
pub const FUNCTION: &str = "0000:3b:00.0";

/// Puts a process on the DPU.
pub const ON_DPU: (&str, &str) = ("DOCA_SIM_SIDE", "dpu");

/// A server on the DPU, and the client of it that each test is.
pub struct Pair {
    pub server: Peer,
    pub engine: ProgressEngine,
    pub device: Device,
}

impl Pair {
    /// Starts the server.
    pub fn new(name: &str) -> Self {
        let mut server = Peer::start_with("comch server", &[name], &[ON_DPU]);
        server.expect("running");
        Pair { server, engine: ProgressEngine::new().unwrap(), device: Device::open("mlx5_0").unwrap() }
    }

    /// A client that is configured like the server.
    pub fn configure(&self, name: &str) -> Config<Client> {
        let mut config = Client::configure(&self.device, name).unwrap();
        config.set_send_tasks(server::SEND_TASKS).unwrap();
        config.set_recv_queue_size(server::RECV_QUEUE).unwrap();
        config
    }

    /// A client that runs, with its connection, which the server has heard of.
    pub fn connect(&self, name: &str) -> (Client, Connection) {
        let client = self.configure(name).start(&self.engine).unwrap().running_within(LIMIT).unwrap();
        let connection = client.connection().unwrap();
        connection.send(b"there?").unwrap();
        assert_eq!(connection.receive_for(LIMIT).unwrap(), b"there?");
        connection.wait_sent_for(LIMIT).unwrap();
        (client, connection)
    }

    /// Ends the server, which must be content.
    pub fn finish(mut self) {
        self.server.say("stop");
        self.server.expect("stopped");
        self.server.finish();
    }
}
