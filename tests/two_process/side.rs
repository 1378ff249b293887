//! What each process of a conversation has.

use crate::process::{LIMIT, Talk, from_hex, to_hex};
use doca::rdma::{Connection, Queue, Rdma, ReceiveTask, SendTask};
use doca::{Device, Memory, PrivateMemory, ProgressEngine};

/// One side of a conversation.
pub struct Side {
    pub memory: PrivateMemory,
    pub sends: Queue<SendTask>,
    pub receives: Queue<ReceiveTask>,
    pub rdma: Rdma,
    pub engine: ProgressEngine,
}

impl Side {
    /// A running context with so many tasks of each kind, and memory.
    pub fn new(device: &str, tasks: u32, bytes: usize) -> Self {
        let device = Device::open(device).unwrap();
        let engine = ProgressEngine::new().unwrap();
        let memory = Memory::zeroed(bytes).unwrap().private(&device).unwrap();
        let mut config = Rdma::configure(&device).unwrap();
        config.set_gid_roce_v2().unwrap();
        config.set_send_queue_size(tasks).unwrap();
        // A busy machine is no reason to give up.
        config.set_rnr_retry_count(7).unwrap();
        let (sends, receives) = (config.enable(tasks).unwrap(), config.enable(tasks).unwrap());
        let rdma = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
        let (sends, receives) = (rdma.queue(sends).unwrap(), rdma.queue(receives).unwrap());
        Side { memory, sends, receives, rdma, engine }
    }

    /// Exchanges descriptors with the other process.
    pub fn connect(&self, other: &mut impl Talk) -> Connection {
        let (exported, descriptor) = self.rdma.export().unwrap();
        other.say(&to_hex(descriptor.as_bytes()));
        exported.connect(from_hex(&other.hear())).unwrap()
    }

    /// Stops and drops everything.
    pub fn close(self) {
        self.rdma.stop().wait_for(LIMIT).unwrap();
    }
}
