//! The work, written with the safe API.

use super::PROGRESS;
use doca::event::{Publisher, Subscriber};
use doca::rdma::{
    CompareSwapTask, Config, Connection, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, Queue, Rdma,
    ReadTask, ReceiveTask, SendImmTask, SendTask, Task, WriteImmTask, WriteTask, caps,
};
use doca::{
    Access, Device, Memory, PrivateMemory, ProgressEngine, RemoteEvent, RemoteMemory, SharedMemory, SyncEvent,
};

const LEN: usize = 64;

struct Peers<T> {
    queue: Queue<T>,
    receives: Queue<ReceiveTask>,
    connection: Connection,
    local: PrivateMemory,
    remote: RemoteMemory,
    event: RemoteEvent,
    _event: SyncEvent,
    _window: SharedMemory,
    _back: Connection,
    _left: Rdma,
    _right: Rdma,
    engine: ProgressEngine,
}

impl<T: Task> Peers<T> {
    fn new() -> Self {
        let device = Device::find().with(caps::SEND).list().unwrap()[0].open().unwrap();
        let engine = ProgressEngine::new().unwrap();
        let local = Memory::zeroed(4096).unwrap().private(&device).unwrap();
        let window = Memory::zeroed(4096).unwrap().shared(&device, Access::ANY_RDMA).unwrap();
        let remote = RemoteMemory::import(&device, window.export().unwrap()).unwrap();
        let event = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(&device)).unwrap();
        let configure = |device| {
            let mut config: Config = Rdma::configure(device).unwrap();
            config.set_gid_roce_v2().unwrap();
            config
        };
        let (mut left, mut right) = (configure(&device), configure(&device));
        right.set_permissions(Access::ANY_RDMA).unwrap();
        let (key, receives) = (left.enable::<T>(4).unwrap(), right.enable::<ReceiveTask>(4).unwrap());
        let left = left.start(&engine).unwrap().running().unwrap();
        let right = right.start(&engine).unwrap().running().unwrap();
        let (ours, descriptor) = left.export().unwrap();
        let (theirs, their_descriptor) = right.export().unwrap();
        Peers {
            queue: left.queue(key).unwrap(),
            receives: right.queue(receives).unwrap(),
            connection: ours.connect(their_descriptor).unwrap(),
            _back: theirs.connect(descriptor).unwrap(),
            local,
            remote,
            event: RemoteEvent::import(&device, event.export_net().unwrap()).unwrap(),
            _event: event,
            _window: window,
            _left: left,
            _right: right,
            engine,
        }
    }

    fn progress(&self) {
        for _ in 0..PROGRESS {
            self.engine.progress().unwrap();
        }
    }
}

pub fn send(number: u64) {
    let peers = Peers::<SendTask>::new();
    let (mut source, mut room) = (peers.local.take(LEN).unwrap(), peers.local.take(LEN).unwrap());
    for _ in 0..number {
        let mut receive = peers.receives.submit(room).unwrap();
        let mut send = peers.queue.submit(&peers.connection, source).unwrap();
        peers.progress();
        source = send.wait().unwrap();
        room = receive.wait().unwrap().buffer;
    }
}

pub fn send_imm(number: u64) {
    let peers = Peers::<SendImmTask>::new();
    let (mut source, mut room) = (peers.local.take(LEN).unwrap(), peers.local.take(LEN).unwrap());
    for _ in 0..number {
        let mut receive = peers.receives.submit(room).unwrap();
        let mut send = peers.queue.submit(&peers.connection, source, 7).unwrap();
        peers.progress();
        source = send.wait().unwrap();
        room = receive.wait().unwrap().buffer;
    }
}

pub fn read(number: u64) {
    let peers = Peers::<ReadTask>::new();
    let range = peers.remote.range(0, LEN).unwrap();
    let mut room = peers.local.take(LEN).unwrap();
    for _ in 0..number {
        let mut task = peers.queue.submit(&peers.connection, &range, room).unwrap();
        peers.progress();
        room = task.wait().unwrap().buffer;
    }
}

pub fn write(number: u64) {
    let peers = Peers::<WriteTask>::new();
    let range = peers.remote.range(0, LEN).unwrap();
    let mut source = peers.local.take(LEN).unwrap();
    for _ in 0..number {
        let mut task = peers.queue.submit(&peers.connection, source, &range).unwrap();
        peers.progress();
        source = task.wait().unwrap();
    }
}

pub fn write_imm(number: u64) {
    let peers = Peers::<WriteImmTask>::new();
    let range = peers.remote.range(0, LEN).unwrap();
    let mut source = peers.local.take(LEN).unwrap();
    for _ in 0..number {
        let mut receive = peers.receives.submit(()).unwrap();
        let mut task = peers.queue.submit(&peers.connection, source, &range, 7).unwrap();
        peers.progress();
        source = task.wait().unwrap();
        receive.wait().unwrap();
    }
}

pub fn compare_swap(number: u64) {
    let peers = Peers::<CompareSwapTask>::new();
    let cell = peers.remote.cell(0).unwrap();
    let mut result = peers.local.take(8).unwrap();
    for _ in 0..number {
        let mut task = peers.queue.submit(&peers.connection, &cell, result, 1, 2).unwrap();
        peers.progress();
        result = task.wait().unwrap().buffer;
    }
}

pub fn fetch_add(number: u64) {
    let peers = Peers::<FetchAddTask>::new();
    let cell = peers.remote.cell(0).unwrap();
    let mut result = peers.local.take(8).unwrap();
    for _ in 0..number {
        let mut task = peers.queue.submit(&peers.connection, &cell, result, 1).unwrap();
        peers.progress();
        result = task.wait().unwrap().buffer;
    }
}

pub fn event_get(number: u64) {
    let peers = Peers::<EventGetTask>::new();
    let mut room = peers.local.take(8).unwrap();
    for _ in 0..number {
        let mut task = peers.queue.submit(&peers.connection, &peers.event, room).unwrap();
        peers.progress();
        room = task.wait().unwrap().buffer;
    }
}

pub fn event_set(number: u64) {
    let peers = Peers::<EventSetTask>::new();
    let mut source = peers.local.take(8).unwrap();
    for _ in 0..number {
        let mut task = peers.queue.submit(&peers.connection, &peers.event, source).unwrap();
        peers.progress();
        source = task.wait().unwrap();
    }
}

pub fn event_add(number: u64) {
    let peers = Peers::<EventAddTask>::new();
    let mut room = peers.local.take(8).unwrap();
    for _ in 0..number {
        let mut task = peers.queue.submit(&peers.connection, &peers.event, room, 1).unwrap();
        peers.progress();
        room = task.wait().unwrap().buffer;
    }
}
