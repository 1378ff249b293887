//! A context that reaches into another one's memory, with a queue of each kind of task.

use super::device;
use doca::event::{Publisher, Subscriber};
use doca::rdma::{
    CompareSwapTask, Config, Connection, EventAddTask, EventGetTask, EventSetTask, Exported, FetchAddTask,
    Queue, Rdma, ReadTask, ReceiveTask, SendImmTask, TransportType, WriteImmTask, WriteTask,
};
use doca::{
    Access, Buffer, Chain, Device, Memory, PrivateMemory, ProgressEngine, RemoteEvent, RemoteMemory,
    SharedMemory, SyncEvent,
};

/// A context that asks, with a queue of each kind, and one that is asked.
pub struct Peers {
    pub device: Device,
    pub local: PrivateMemory,
    pub connection: Connection,
    pub imms: Queue<SendImmTask>,
    pub reads: Queue<ReadTask>,
    pub writes: Queue<WriteTask>,
    pub write_imms: Queue<WriteImmTask>,
    pub swaps: Queue<CompareSwapTask>,
    pub adds: Queue<FetchAddTask>,
    pub gets: Queue<EventGetTask>,
    pub sets: Queue<EventSetTask>,
    pub event_adds: Queue<EventAddTask>,
    pub receives: Queue<ReceiveTask>,
    /// The other end, unless the asker alone connects.
    pub back: Option<Connection>,
    _exported: Option<Exported>,
    pub asker: Rdma,
    pub asked: Rdma,
    pub engine: ProgressEngine,
}

pub fn configure(device: &Device) -> Config {
    let mut config = Rdma::configure(device).unwrap();
    config.set_gid_roce_v2().unwrap();
    config
}

impl Peers {
    /// The asked context permits this.
    pub fn new(permitted: Access) -> Self {
        Self::over(TransportType::RC, permitted)
    }

    /// The same over this transport.
    pub fn over(transport: TransportType, permitted: Access) -> Self {
        let device = device();
        let engine = ProgressEngine::new().unwrap();
        let local = Memory::zeroed(4096).unwrap().private(&device).unwrap();
        let (mut asker, mut asked) = (configure(&device), configure(&device));
        for config in [&mut asker, &mut asked] {
            config.set_transport_type(transport).unwrap();
        }
        asker.set_max_send_buf_list_len(4).unwrap();
        // A busy machine is no reason to give up.
        asker.set_rnr_retry_count(7).unwrap();
        asked.set_permissions(permitted).unwrap();
        let (imms, reads, writes) =
            (asker.enable(2).unwrap(), asker.enable(2).unwrap(), asker.enable(2).unwrap());
        let (write_imms, swaps, adds) =
            (asker.enable(2).unwrap(), asker.enable(2).unwrap(), asker.enable(2).unwrap());
        let (gets, sets, event_adds) =
            (asker.enable(2).unwrap(), asker.enable(2).unwrap(), asker.enable(2).unwrap());
        let receives = asked.enable(2).unwrap();
        let (asker, asked) = (asker.start(&engine).unwrap(), asked.start(&engine).unwrap());
        let (ours, descriptor) = asker.export().unwrap();
        let (theirs, their_descriptor) = asked.export().unwrap();
        let connection = ours.connect(their_descriptor).unwrap();
        // With DC the asked one only exports.
        let (back, exported) = match transport {
            TransportType::DC => (None, Some(theirs)),
            _ => (Some(theirs.connect(descriptor).unwrap()), None),
        };
        let (asker, asked) = (asker.running().unwrap(), asked.running().unwrap());
        Peers {
            connection,
            back,
            _exported: exported,
            imms: asker.queue(imms).unwrap(),
            reads: asker.queue(reads).unwrap(),
            writes: asker.queue(writes).unwrap(),
            write_imms: asker.queue(write_imms).unwrap(),
            swaps: asker.queue(swaps).unwrap(),
            adds: asker.queue(adds).unwrap(),
            gets: asker.queue(gets).unwrap(),
            sets: asker.queue(sets).unwrap(),
            event_adds: asker.queue(event_adds).unwrap(),
            receives: asked.queue(receives).unwrap(),
            device,
            local,
            asker,
            asked,
            engine,
        }
    }

    /// Shared memory of the asked side, and how the asker names it.
    pub fn window(&self, access: Access) -> (SharedMemory, RemoteMemory) {
        let memory = Memory::zeroed(4096).unwrap().shared(&self.device, access).unwrap();
        let remote = RemoteMemory::import(&self.device, memory.export().unwrap()).unwrap();
        (memory, remote)
    }

    pub fn event(&self) -> (SyncEvent, RemoteEvent) {
        let event = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(&self.device)).unwrap();
        let remote = RemoteEvent::import(&self.device, event.export_net().unwrap()).unwrap();
        (event, remote)
    }

    pub fn with(&self, data: &[u8]) -> Buffer {
        let mut buffer = self.local.take(data.len()).unwrap();
        buffer.copy_from_slice(data);
        buffer
    }

    pub fn chain(&self, lens: &[usize]) -> Chain {
        let mut chain = Chain::new(self.local.take(lens[0]).unwrap());
        for &len in &lens[1..] {
            chain.push(self.local.take(len).unwrap()).unwrap();
        }
        chain
    }
}
