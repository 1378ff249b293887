//! The work, written with the safe API.

use super::Way;
use doca::event::{Publisher, Subscriber};
use doca::rdma::{
    CompareSwapTask, Config, Connection, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, Queue, Rdma,
    ReadTask, ReceiveTask, SendImmTask, SendTask, Task, WriteImmTask, WriteTask, caps,
};
use doca::{
    Access, Device, Memory, PrivateMemory, ProgressEngine, RemoteEvent, RemoteMemory, SharedMemory, SyncEvent,
};
use std::hint::black_box;

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
    _engine: ProgressEngine,
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
            _engine: engine,
        }
    }
}

pub fn send(number: u64, way: Way) {
    let peers = Peers::<SendTask>::new();
    let mut buffer = peers.local.take(LEN).unwrap();
    let mut room = peers.local.take(LEN).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, buffer).unwrap();
            let mut receive = peers.receives.prepare(room).unwrap();
            for _ in 0..number {
                let landing = receive.submit().unwrap();
                task = task.submit().unwrap().wait().unwrap();
                receive = landing.wait().unwrap();
                black_box(receive.arrival().unwrap().message_len());
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut receive = peers.receives.submit(room).unwrap();
                let mut task = peers.queue.submit(&peers.connection, buffer).unwrap();
                buffer = task.wait().unwrap();
                room = receive.wait().unwrap().buffer;
            }
        }
    }
}

pub fn send_imm(number: u64, way: Way) {
    let peers = Peers::<SendImmTask>::new();
    let mut buffer = peers.local.take(LEN).unwrap();
    let mut room = peers.local.take(LEN).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, buffer, 7).unwrap();
            let mut receive = peers.receives.prepare(room).unwrap();
            for _ in 0..number {
                let landing = receive.submit().unwrap();
                task = task.submit().unwrap().wait().unwrap();
                receive = landing.wait().unwrap();
                black_box(receive.arrival().unwrap().message_len());
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut receive = peers.receives.submit(room).unwrap();
                let mut task = peers.queue.submit(&peers.connection, buffer, 7).unwrap();
                buffer = task.wait().unwrap();
                room = receive.wait().unwrap().buffer;
            }
        }
    }
}

pub fn read(number: u64, way: Way) {
    let peers = Peers::<ReadTask>::new();
    let range = peers.remote.range(0, LEN).unwrap();
    let mut buffer = peers.local.take(LEN).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, &range, buffer).unwrap();
            for _ in 0..number {
                task = task.submit().unwrap().wait().unwrap();
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut task = peers.queue.submit(&peers.connection, &range, buffer).unwrap();
                buffer = task.wait().unwrap().buffer;
            }
        }
    }
}

pub fn write(number: u64, way: Way) {
    let peers = Peers::<WriteTask>::new();
    let range = peers.remote.range(0, LEN).unwrap();
    let mut buffer = peers.local.take(LEN).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, buffer, &range).unwrap();
            for _ in 0..number {
                task = task.submit().unwrap().wait().unwrap();
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut task = peers.queue.submit(&peers.connection, buffer, &range).unwrap();
                buffer = task.wait().unwrap();
            }
        }
    }
}

pub fn write_imm(number: u64, way: Way) {
    let peers = Peers::<WriteImmTask>::new();
    let range = peers.remote.range(0, LEN).unwrap();
    let mut buffer = peers.local.take(LEN).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, buffer, &range, 7).unwrap();
            let mut receive = peers.receives.prepare(()).unwrap();
            for _ in 0..number {
                let landing = receive.submit().unwrap();
                task = task.submit().unwrap().wait().unwrap();
                receive = landing.wait().unwrap();
                black_box(receive.arrival().unwrap().message_len());
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut receive = peers.receives.submit(()).unwrap();
                let mut task = peers.queue.submit(&peers.connection, buffer, &range, 7).unwrap();
                buffer = task.wait().unwrap();
                receive.wait().unwrap();
            }
        }
    }
}

pub fn compare_swap(number: u64, way: Way) {
    let peers = Peers::<CompareSwapTask>::new();
    let cell = peers.remote.cell(0).unwrap();
    let mut buffer = peers.local.take(8).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, &cell, buffer, 1, 2).unwrap();
            for _ in 0..number {
                task = task.submit().unwrap().wait().unwrap();
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut task = peers.queue.submit(&peers.connection, &cell, buffer, 1, 2).unwrap();
                buffer = task.wait().unwrap().buffer;
            }
        }
    }
}

pub fn fetch_add(number: u64, way: Way) {
    let peers = Peers::<FetchAddTask>::new();
    let cell = peers.remote.cell(0).unwrap();
    let mut buffer = peers.local.take(8).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, &cell, buffer, 1).unwrap();
            for _ in 0..number {
                task = task.submit().unwrap().wait().unwrap();
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut task = peers.queue.submit(&peers.connection, &cell, buffer, 1).unwrap();
                buffer = task.wait().unwrap().buffer;
            }
        }
    }
}

pub fn event_get(number: u64, way: Way) {
    let peers = Peers::<EventGetTask>::new();
    let mut buffer = peers.local.take(8).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, &peers.event, buffer).unwrap();
            for _ in 0..number {
                task = task.submit().unwrap().wait().unwrap();
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut task = peers.queue.submit(&peers.connection, &peers.event, buffer).unwrap();
                buffer = task.wait().unwrap().buffer;
            }
        }
    }
}

pub fn event_set(number: u64, way: Way) {
    let peers = Peers::<EventSetTask>::new();
    let mut buffer = peers.local.take(8).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, &peers.event, buffer).unwrap();
            for _ in 0..number {
                task = task.submit().unwrap().wait().unwrap();
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut task = peers.queue.submit(&peers.connection, &peers.event, buffer).unwrap();
                buffer = task.wait().unwrap();
            }
        }
    }
}

pub fn event_add(number: u64, way: Way) {
    let peers = Peers::<EventAddTask>::new();
    let mut buffer = peers.local.take(8).unwrap();
    match way {
        Way::Prepared => {
            let mut task = peers.queue.prepare(&peers.connection, &peers.event, buffer, 1).unwrap();
            for _ in 0..number {
                task = task.submit().unwrap().wait().unwrap();
            }
        }
        Way::Each => {
            for _ in 0..number {
                let mut task = peers.queue.submit(&peers.connection, &peers.event, buffer, 1).unwrap();
                buffer = task.wait().unwrap().buffer;
            }
        }
    }
}
