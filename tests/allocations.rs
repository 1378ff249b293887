//! After the start, tasks allocate nothing: neither those that send nor those that reach into a peer's memory. Only what
//! Rust allocates is counted here; `benches/cost.rs` counts all.

#[path = "support/counting.rs"]
mod counting;
mod support;

use counting::allocations;
use doca::event::{Publisher, Subscriber};
use doca::rdma::{
    CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, Rdma, ReadTask, WriteTask,
};
use doca::{Access, Memory, ProgressEngine, RemoteEvent, RemoteMemory, SyncEvent};
use support::{LIMIT, Pair, device};

#[test]
fn tasks_allocate_nothing() {
    let pair = Pair::new();
    let (mut room, mut source) = (pair.memory.take(64).ok(), pair.memory.take(64).ok());
    let messages = allocations(|| {
        let mut receive = pair.right.receives.submit(room.take().unwrap()).unwrap();
        let mut send = pair.left.sends.submit(&pair.left.connection, source.take().unwrap()).unwrap();
        source = send.wait_for(LIMIT).ok();
        room = receive.wait_for(LIMIT).ok().map(|received| received.buffer);
    });
    assert_eq!(messages, 0, "send and receive");

    let device = device();
    let engine = ProgressEngine::new().unwrap();
    let (mut asker, mut asked) = (Rdma::configure(&device).unwrap(), Rdma::configure(&device).unwrap());
    asked.set_permissions(Access::ANY_RDMA).unwrap();
    let (reads, writes) = (asker.enable::<ReadTask>(1).unwrap(), asker.enable::<WriteTask>(1).unwrap());
    let (swaps, adds) =
        (asker.enable::<CompareSwapTask>(1).unwrap(), asker.enable::<FetchAddTask>(1).unwrap());
    let (gets, sets) = (asker.enable::<EventGetTask>(1).unwrap(), asker.enable::<EventSetTask>(1).unwrap());
    let event_adds = asker.enable::<EventAddTask>(1).unwrap();
    let (asker, asked) = (asker.start(&engine).unwrap(), asked.start(&engine).unwrap());
    let ((ours, descriptor), (theirs, their_descriptor)) = (asker.export().unwrap(), asked.export().unwrap());
    let connection = ours.connect(their_descriptor).unwrap();
    let _back = theirs.connect(descriptor).unwrap();
    let (asker, _asked) = (asker.running().unwrap(), asked.running().unwrap());
    let (reads, writes) = (asker.queue(reads).unwrap(), asker.queue(writes).unwrap());
    let (swaps, adds) = (asker.queue(swaps).unwrap(), asker.queue(adds).unwrap());
    let (gets, sets) = (asker.queue(gets).unwrap(), asker.queue(sets).unwrap());
    let event_adds = asker.queue(event_adds).unwrap();
    let window = Memory::zeroed(4096).unwrap().shared(&device, Access::ANY_RDMA).unwrap();
    let remote = RemoteMemory::import(&device, window.export().unwrap()).unwrap();
    let event = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(&device)).unwrap();
    let event = RemoteEvent::import(&device, event.export_net().unwrap()).unwrap();
    let (mut range, cell) = (remote.whole().unwrap(), remote.cell(0).unwrap());
    let mut buffer = pair.memory.take(8).ok();
    let mut offset = 0;
    let one_sided = allocations(|| {
        offset = (offset + 8) % 4096;
        range.set_range(offset, 8).unwrap();
        let own = buffer.take().unwrap();
        let own = writes.submit(&connection, own, &range).unwrap().wait_for(LIMIT).unwrap();
        let own = reads.submit(&connection, &range, own).unwrap().wait_for(LIMIT).unwrap().buffer;
        let own = swaps.submit(&connection, &cell, own, 0, 1).unwrap().wait_for(LIMIT).unwrap().buffer;
        let own = adds.submit(&connection, &cell, own, 1).unwrap().wait_for(LIMIT).unwrap().buffer;
        let own = sets.submit(&connection, &event, own).unwrap().wait_for(LIMIT).unwrap();
        let own = gets.submit(&connection, &event, own).unwrap().wait_for(LIMIT).unwrap().buffer;
        buffer = event_adds
            .submit(&connection, &event, own, 1)
            .unwrap()
            .wait_for(LIMIT)
            .ok()
            .map(|word| word.buffer);
    });
    assert_eq!(one_sided, 0, "one-sided tasks");

    let take = || pair.memory.take(64).unwrap();
    let mut send = pair.left.sends.prepare(&pair.left.connection, take()).ok();
    let mut receive = pair.right.receives.prepare(take()).ok();
    let mut write = writes.prepare(&connection, pair.memory.take(8).unwrap(), &range).ok();
    let prepared = allocations(|| {
        let landing = receive.take().unwrap().submit().unwrap();
        send = send.take().unwrap().submit().unwrap().wait_for(LIMIT).ok();
        receive = landing.wait_for(LIMIT).ok();
        write = write.take().unwrap().submit().unwrap().wait_for(LIMIT).ok();
    });
    assert_eq!(prepared, 0, "prepared tasks");
}
