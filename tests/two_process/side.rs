//! What each process of a conversation has.

use crate::process::{LIMIT, Talk, from_hex, to_hex};
use doca::rdma::{Connection, Key, Queue, Rdma, ReceiveTask, SendTask, Starting};
use doca::{Device, Memory, PrivateMemory, ProgressEngine};

/// One side of a conversation.
pub struct Side {
    pub memory: PrivateMemory,
    pub sends: Queue<SendTask>,
    pub receives: Queue<ReceiveTask>,
    pub rdma: Rdma,
    pub engine: ProgressEngine,
}

/// A side on its way: there are releases in which it runs only when it is connected.
pub struct Started {
    pub memory: PrivateMemory,
    pub starting: Starting,
    pub engine: ProgressEngine,
    keys: (Key<SendTask>, Key<ReceiveTask>),
}

impl Side {
    /// A context with so many tasks of each kind, and memory.
    pub fn start(device: &str, tasks: u32, bytes: usize) -> Started {
        let device = Device::open(device).unwrap();
        let engine = ProgressEngine::new().unwrap();
        let memory = Memory::zeroed(bytes).unwrap().private(&device).unwrap();
        let mut config = Rdma::configure(&device).unwrap();
        config.set_gid_roce_v2().unwrap();
        config.set_send_queue_size(tasks).unwrap();
        // A busy machine is no reason to give up.
        config.set_rnr_retry_count(7).unwrap();
        let keys = (config.enable(tasks).unwrap(), config.enable(tasks).unwrap());
        Started { memory, starting: config.start(&engine).unwrap(), engine, keys }
    }

    /// One that is connected with itself.
    pub fn alone(device: &str, tasks: u32, bytes: usize) -> (Side, Connection) {
        let started = Side::start(device, tasks, bytes);
        let (exported, descriptor) = started.starting.export().unwrap();
        let connection = exported.connect(descriptor).unwrap();
        (started.running(), connection)
    }

    /// Stops and drops everything.
    pub fn close(self) {
        self.rdma.stop().wait_for(LIMIT).unwrap();
    }
}

impl Started {
    /// Exchanges descriptors with the other process.
    pub fn connect(self, other: &mut impl Talk) -> (Side, Connection) {
        let (exported, descriptor) = self.starting.export().unwrap();
        other.say(&to_hex(descriptor.as_bytes()));
        let connection = exported.connect(from_hex(&other.hear())).unwrap();
        (self.running(), connection)
    }

    /// With its queues, once it is connected.
    pub fn running(self) -> Side {
        let Started { memory, starting, engine, keys } = self;
        let rdma = starting.running_within(LIMIT).unwrap();
        let (sends, receives) = (rdma.queue(keys.0).unwrap(), rdma.queue(keys.1).unwrap());
        Side { memory, sends, receives, rdma, engine }
    }
}
