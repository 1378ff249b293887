//! Immediates, reads, writes, atomics and events: what they do, and what is refused by whom. Both peers are in this
//! process; neither is asked for anything while its memory is reached into.

mod support;

use doca::event::{Condition, Publisher, Subscriber};
use doca::rdma::{Opcode, TransportType};
use doca::{Access, Buffer, Code, Device, Failed, Memory, Refusal, RemoteEvent, RemoteMemory, SyncEvent};
use std::time::Duration;
use support::peers::{Peers, configure};
use support::{LIMIT, device, other_device};

const ALL: Access = Access::ANY_RDMA;

fn immediates_arrive_as_they_were_sent(over: TransportType) {
    let peers = Peers::over(over, Access::empty());
    let mut receive = peers.receives.submit(peers.local.take(16).unwrap()).unwrap();
    let mut send = peers.imms.submit(&peers.connection, peers.with(b"hello"), 0x0102_0304).unwrap();
    assert_eq!(&send.wait_for(LIMIT).unwrap()[..], b"hello");
    let received = receive.wait_for(LIMIT).unwrap();
    assert_eq!((received.opcode(), received.immediate()), (Opcode::SEND_WITH_IMM, Some(0x0102_0304)));
    assert_eq!(&received.buffer[..], b"hello");

    let mut receive = peers.receives.submit(()).unwrap();
    peers.imms.submit(&peers.connection, (), u32::MAX).unwrap().wait_for(LIMIT).unwrap();
    let received = receive.wait_for(LIMIT).unwrap();
    assert_eq!((received.message_len(), received.immediate()), (0, Some(u32::MAX)));
}

fn reads_bring_what_is_there(over: TransportType) {
    let peers = Peers::over(over, Access::RDMA_READ);
    let (memory, remote) = peers.window(Access::RDMA_READ);
    memory.write(100, b"0123456789").unwrap();

    // Twice with the same task and buffer: nothing is appended.
    let (mut buffer, mut range) = (peers.local.take(64).unwrap(), remote.range(0, 200).unwrap());
    for (offset, expected) in [(100, &b"0123456789"[..]), (103, b"345")] {
        range.set_range(offset, expected.len()).unwrap();
        let mut read = peers.reads.submit(&peers.connection, &range, buffer).unwrap();
        assert_eq!(range.set_range(0, 1).unwrap_err().refusal(), Some(Refusal::InUse));
        let fetched = read.wait_for(LIMIT).unwrap();
        assert_eq!((fetched.bytes_read(), &fetched.buffer[..]), (expected.len(), expected));
        buffer = fetched.buffer;
    }

    let range = remote.range(100, 10).unwrap();
    let mut read = peers.reads.submit(&peers.connection, &range, peers.chain(&[4, 1, 8])).unwrap();
    let parts = read.wait_for(LIMIT).unwrap().buffer.into_buffers();
    assert_eq!([&parts[0][..], &parts[1][..], &parts[2][..]], [&b"0123"[..], b"4", b"56789"]);

    let (shared, _) = peers.window(Access::RDMA_WRITE);
    let mut read = peers.reads.submit(&peers.connection, &range, shared.take(16).unwrap()).unwrap();
    let mut bytes = [0; 16];
    assert_eq!(read.wait_for(LIMIT).unwrap().buffer.read(&mut bytes), 10);
    assert_eq!(&bytes[..10], b"0123456789");
}

fn writes_land_where_they_aim(over: TransportType) {
    let peers = Peers::over(over, Access::RDMA_WRITE);
    let (memory, remote) = peers.window(Access::RDMA_WRITE);
    let range = remote.range(1000, 100).unwrap();
    let mut chain = peers.chain(&[3, 2]);
    chain.data_mut(0).copy_from_slice(b"abc");
    chain.data_mut(1).copy_from_slice(b"de");
    peers.writes.submit(&peers.connection, chain, &range).unwrap().wait_for(LIMIT).unwrap();
    let mut bytes = [0xff; 7];
    memory.read(999, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\0abcde\0");

    let frozen = peers.with(b"XY").freeze().unwrap();
    for offset in [0, 4094] {
        let range = remote.range(offset, 2).unwrap();
        peers.writes.submit(&peers.connection, frozen.clone(), &range).unwrap().wait_for(LIMIT).unwrap();
        memory.read(offset, &mut bytes[..2]).unwrap();
        assert_eq!(&bytes[..2], b"XY");
    }
    peers.writes.submit(&peers.connection, (), &range).unwrap().wait_for(LIMIT).unwrap();
}

fn a_write_with_an_immediate_tells_the_peer(over: TransportType) {
    let peers = Peers::over(over, Access::RDMA_WRITE);
    let (memory, remote) = peers.window(Access::RDMA_WRITE);
    let mut receive = peers.receives.submit(peers.with(b"untouched")).unwrap();
    let source = peers.with(b"news");
    let mut write =
        peers.write_imms.submit(&peers.connection, source, &remote.whole().unwrap(), 0xabcd).unwrap();
    assert_eq!(&write.wait_for(LIMIT).unwrap()[..], b"news");
    let received = receive.wait_for(LIMIT).unwrap();
    assert_eq!((received.opcode(), received.immediate()), (Opcode::WRITE_WITH_IMM, Some(0xabcd)));
    let mut bytes = [0; 4];
    memory.read(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"news");
}

/// No memory is named, so none must be permitted.
fn a_write_of_nothing_tells_the_peer_its_immediate(over: TransportType) {
    let peers = Peers::over(over, Access::empty());
    for immediate in [7, u32::MAX] {
        let mut receive = peers.receives.submit(()).unwrap();
        peers.write_imms.notify(&peers.connection, immediate).unwrap().wait_for(LIMIT).unwrap();
        let received = receive.wait_for(LIMIT).unwrap();
        assert_eq!((received.opcode(), received.immediate()), (Opcode::WRITE_WITH_IMM, Some(immediate)));
        assert_eq!(received.message_len(), 0);
    }
}

fn atomics_give_the_value_before(over: TransportType) {
    let peers = Peers::over(over, Access::RDMA_ATOMIC);
    let (memory, remote) = peers.window(Access::RDMA_ATOMIC);
    let cell = remote.cell(64).unwrap();
    memory.cell(64).unwrap().store(7);
    let mut result = peers.local.take(8).unwrap();
    for (compare, swap, before, after) in [(7, 9, 7, 9), (7, 1, 9, 9), (9, u64::MAX, 9, u64::MAX)] {
        let mut task = peers.swaps.submit(&peers.connection, &cell, result, compare, swap).unwrap();
        let word = task.wait_for(LIMIT).unwrap();
        assert_eq!((word.value, memory.cell(64).unwrap().load()), (before, after));
        assert_eq!(&word.buffer[..], before.to_ne_bytes());
        result = word.buffer;
    }
    for (add, before, after) in [(3, u64::MAX, 2), (40, 2, 42)] {
        let word = peers.adds.submit(&peers.connection, &cell, result, add).unwrap().wait_for(LIMIT).unwrap();
        assert_eq!((word.value, memory.cell(64).unwrap().load()), (before, after));
        result = word.buffer;
    }
    let (shared, _) = peers.window(Access::RDMA_READ);
    let mut task = peers.adds.submit(&peers.connection, &cell, shared.take(8).unwrap(), 0).unwrap();
    assert_eq!(task.wait_for(LIMIT).unwrap().value, 42);
}

fn events_signal_a_peer(over: TransportType) {
    let peers = Peers::over(over, ALL);
    let (event, remote) = peers.event();
    let source = peers.with(&5u64.to_ne_bytes());
    let source = peers.sets.submit(&peers.connection, &remote, source).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(event.wait_for(Condition::Greater(4), LIMIT).unwrap(), 5);
    let mut add = peers.event_adds.submit(&peers.connection, &remote, source, 10).unwrap();
    let word = add.wait_for(LIMIT).unwrap();
    assert_eq!((word.value, event.get().unwrap()), (5, 15));
    assert_eq!(event.add(1).unwrap(), 15);
    event.set(0xff00).unwrap();
    let mut get = peers.gets.submit(&peers.connection, &remote, word.buffer).unwrap();
    assert_eq!(get.wait_for(LIMIT).unwrap().value, 0xff00);

    assert_eq!(event.wait_masked(Condition::Equal(0xf00), 0xfff, LIMIT).unwrap(), 0xff00);
    assert_eq!(event.wait_for(Condition::NotEqual(0), LIMIT).unwrap(), 0xff00);
    let error = event.wait_for(Condition::Greater(0xff00), Duration::from_millis(5)).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::TimedOut));
    assert!(error.to_string().contains("0xff00"), "{error}");
}

#[test]
fn an_event_is_exported_only_to_its_publisher() {
    let device = device();
    let net = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(&device)).unwrap();
    assert_eq!(net.export_pci(&device).unwrap_err().code(), Some(Code::NOT_SUPPORTED));
    let pci = SyncEvent::new(Publisher::RemotePci, Subscriber::Cpu(&device)).unwrap();
    assert_eq!(pci.export_net().unwrap_err().code(), Some(Code::NOT_SUPPORTED));
    let own = SyncEvent::new(Publisher::Cpu(&device), Subscriber::Cpu(&device)).unwrap();
    assert_eq!((own.add(2).unwrap(), own.get().unwrap()), (0, 2));
    for bytes in [&b""[..], b"no descriptor", net.export_net().unwrap().as_bytes()] {
        assert!(SyncEvent::import(&device, bytes).is_err());
    }
    for bytes in [&b""[..], b"no descriptor", pci.export_pci(&device).unwrap().as_bytes()] {
        assert!(RemoteEvent::import(&device, bytes).is_err());
    }
}

/// The other side of PCI is another process, since a process is on one side.
#[test]
fn an_event_crosses_pci() {
    const DESCRIPTOR: &str = "EVENT_DESCRIPTOR";
    if let Ok(text) = std::env::var(DESCRIPTOR) {
        let bytes: Vec<u8> = text.split(',').map(|byte| byte.parse().unwrap()).collect();
        let able = doca::event::CAPABILITIES.iter().find(|able| able.name == "event.import_from_remote_pci");
        let device = Device::find().with(*able.unwrap()).list().unwrap()[0].open().unwrap();
        let event = SyncEvent::import(&device, bytes).unwrap();
        assert_eq!(event.wait_for(Condition::Equal(3), LIMIT).unwrap(), 3);
        assert_eq!(event.add(4).unwrap(), 3);
        return;
    }
    let device = device();
    let event = SyncEvent::new(Publisher::RemotePci, Subscriber::Cpu(&device)).unwrap();
    event.set(3).unwrap();
    let bytes = event.export_pci(&device).unwrap();
    let text: Vec<String> = bytes.as_bytes().iter().map(u8::to_string).collect();
    let output =
        support::again("an_event_crosses_pci", &[("DOCA_SIM_SIDE", "dpu"), (DESCRIPTOR, &text.join(","))]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(event.wait_for(Condition::Greater(3), LIMIT).unwrap(), 7);
}

#[test]
fn names_of_remote_memory_are_checked() {
    let peers = Peers::new(ALL);
    let (_memory, remote) = peers.window(ALL);
    let refusal = |result: doca::Result<doca::RemoteBuffer>| result.unwrap_err().refusal();
    for (offset, len) in [(0, 0), (4090, 7), (4097, 1), (usize::MAX, 2), (2, usize::MAX)] {
        assert_eq!(refusal(remote.range(offset, len)), Some(Refusal::OutOfRange), "{len} at {offset}");
    }
    let mut part = remote.range(100, 50).unwrap();
    for (offset, len) in [(99, 2), (149, 2), (120, 0)] {
        assert_eq!(part.set_range(offset, len).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    }
    assert_eq!((part.offset(), part.len()), (100, 50));
    assert_eq!(remote.cell(4092).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    assert_eq!(remote.cell(4).unwrap_err().refusal(), Some(Refusal::Misaligned));
    let import = |bytes: &[u8]| RemoteMemory::import(&peers.device, bytes).unwrap_err();
    assert_eq!(import(b"").refusal(), Some(Refusal::Malformed));
    assert_eq!(import(b"what is this").code(), Some(Code::INVALID_VALUE));
}

/// The refusal, and that the buffer came back with its data.
fn refused<P>(result: Result<P, Failed<Buffer>>, len: usize) -> Option<Refusal> {
    let Err(Failed { error, value, .. }) = result else { panic!("accepted") };
    assert_eq!(value.capacity(), len);
    error.refusal()
}

fn what_cannot_work_is_refused_before_doca_is_asked(over: TransportType) {
    let peers = Peers::over(over, ALL);
    let (_memory, remote) = peers.window(ALL);
    let (_event, event) = peers.event();
    let (range, cell) = (remote.range(0, 16).unwrap(), remote.cell(0).unwrap());
    let on = &peers.connection;
    let take = |len: usize| peers.local.take(len).unwrap();

    // Sizes.
    assert_eq!(refused(peers.reads.submit(on, &range, take(15)), 15), Some(Refusal::TooLong));
    assert_eq!(refused(peers.writes.submit(on, take(17), &range), 17), Some(Refusal::OutOfRange));
    assert_eq!(refused(peers.write_imms.submit(on, take(17), &range, 0), 17), Some(Refusal::OutOfRange));
    assert_eq!(refused(peers.swaps.submit(on, &cell, take(7), 0, 0), 7), Some(Refusal::TooLong));
    assert_eq!(refused(peers.adds.submit(on, &cell, take(7), 0), 7), Some(Refusal::TooLong));
    assert_eq!(refused(peers.gets.submit(on, &event, take(7)), 7), Some(Refusal::TooLong));
    assert_eq!(refused(peers.sets.submit(on, &event, take(9)), 9), Some(Refusal::OutOfRange));
    assert_eq!(refused(peers.event_adds.submit(on, &event, take(7), 1), 7), Some(Refusal::TooLong));
    let failed = peers.gets.submit(on, &event, ()).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::TooLong));

    // Chains.
    let long = peers.reads.submit(on, &range, peers.chain(&[4; 5])).unwrap_err();
    assert_eq!(long.error.refusal(), Some(Refusal::TooLong));
    assert!(long.error.to_string().contains("max_send_buf_list_len = 4"), "{}", long.error);
    assert_eq!(long.value.num_buffers(), 5);
    let long = peers.writes.submit(on, peers.chain(&[1; 5]), &range).unwrap_err();
    assert_eq!((long.error.refusal(), long.value.num_buffers()), (Some(Refusal::TooLong), 5));

    // Devices.
    let other = other_device();
    let far = Memory::zeroed(64).unwrap().private(&other).unwrap();
    let theirs = Memory::zeroed(64).unwrap().shared(&other, ALL).unwrap();
    let theirs = RemoteMemory::import(&other, theirs.export().unwrap()).unwrap();
    let event_there = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(&other)).unwrap();
    let event_there = RemoteEvent::import(&other, event_there.export_net().unwrap()).unwrap();
    let (far_range, far_cell) = (theirs.range(0, 16).unwrap(), theirs.cell(0).unwrap());
    for refusal in [
        refused(peers.imms.submit(on, far.take(16).unwrap(), 1), 16),
        refused(peers.reads.submit(on, &range, far.take(16).unwrap()), 16),
        refused(peers.reads.submit(on, &far_range, take(16)), 16),
        refused(peers.writes.submit(on, take(16), &far_range), 16),
        refused(peers.write_imms.submit(on, take(16), &far_range, 0), 16),
        refused(peers.swaps.submit(on, &far_cell, take(16), 0, 0), 16),
        refused(peers.adds.submit(on, &far_cell, take(16), 0), 16),
        refused(peers.gets.submit(on, &event_there, take(8)), 8),
        refused(peers.sets.submit(on, &event_there, take(8)), 8),
        refused(peers.event_adds.submit(on, &event_there, take(8), 0), 8),
    ] {
        assert_eq!(refusal, Some(Refusal::OtherDevice));
    }

    // A full queue, a connection of somebody else or that is over, a context that stopped.
    let pending: Vec<_> = (0..2).map(|_| peers.reads.submit(on, &range, take(16)).unwrap()).collect();
    assert_eq!(refused(peers.reads.submit(on, &range, take(16)), 16), Some(Refusal::Full));
    pending.into_iter().for_each(|mut read| drop(read.wait_for(LIMIT).unwrap()));
    if let Some(back) = &peers.back {
        assert_eq!(refused(peers.reads.submit(back, &range, take(16)), 16), Some(Refusal::OtherContext));
    }
    on.disconnect().unwrap();
    assert_eq!(refused(peers.reads.submit(on, &range, take(16)), 16), Some(Refusal::NotConnected));
    peers.asker.stop().wait_for(LIMIT).unwrap();
    assert_eq!(refused(peers.reads.submit(on, &range, take(16)), 16), Some(Refusal::Stale));
}

fn memory_that_is_gone_is_refused_by_the_peer(over: TransportType) {
    let peers = Peers::over(over, ALL);
    let (memory, remote) = peers.window(ALL);
    let range = remote.range(0, 8).unwrap();
    drop((memory, remote));
    let mut read = peers.reads.submit(&peers.connection, &range, peers.local.take(8).unwrap()).unwrap();
    let failed = read.wait_for(LIMIT).unwrap_err();
    assert!(failed.error.next_check().contains("unregistered"), "{}", failed.error);
    assert_eq!(failed.value.map(|buffer| buffer.capacity()), Some(8));
}

fn a_deadline_passes_and_the_task_goes_on(over: TransportType) {
    let peers = Peers::over(over, Access::RDMA_WRITE);
    let (memory, remote) = peers.window(Access::RDMA_WRITE);
    // No receive is posted yet: the task is tried again and again.
    let range = remote.range(0, 4).unwrap();
    let source = peers.with(b"late");
    let mut write = peers.write_imms.submit(&peers.connection, source, &range, 7).unwrap();
    let failed = write.wait_for(Duration::from_millis(20)).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::TimedOut));
    assert!(failed.value.is_none(), "the buffer is the task's until it is done");
    assert_eq!(peers.local.take(4096).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    let mut receive = peers.receives.submit(()).unwrap();
    assert_eq!(&write.wait_for(LIMIT).unwrap()[..], b"late");
    assert_eq!(receive.wait_for(LIMIT).unwrap().immediate(), Some(7));
    let mut bytes = [0; 4];
    memory.read(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"late");
}

fn a_dropped_task_lets_go_of_what_it_named(over: TransportType) {
    let peers = Peers::over(over, Access::RDMA_READ);
    let (_memory, remote) = peers.window(Access::RDMA_READ);
    let mut range = remote.range(0, 8).unwrap();
    for done_before in [false, true] {
        let read = peers.reads.submit(&peers.connection, &range, peers.local.take(8).unwrap()).unwrap();
        if done_before {
            support::until(&peers.engine, || read.is_done());
        }
        drop(read);
        support::until(&peers.engine, || range.set_range(0, 8).is_ok());
    }
}

#[test]
fn durations_that_do_not_fit_are_refused() {
    let mut config = configure(&device());
    let mut set = |time| config.set_connection_request_timeout(time).map_err(|error| error.refusal());
    assert_eq!(set(Duration::from_micros(1500)), Err(Some(Refusal::OutOfRange)));
    assert_eq!(set(Duration::from_secs(66)), Err(Some(Refusal::TooLong)));
    assert_eq!(set(Duration::from_millis(65_535)), Ok(()));
    assert_eq!(config.connection_request_timeout().unwrap(), Duration::from_millis(65_535));
}

support::over_each_transport! {
    immediates_arrive_as_they_were_sent;
    reads_bring_what_is_there;
    writes_land_where_they_aim;
    a_write_with_an_immediate_tells_the_peer;
    a_write_of_nothing_tells_the_peer_its_immediate;
    atomics_give_the_value_before;
    events_signal_a_peer;
    what_cannot_work_is_refused_before_doca_is_asked;
    memory_that_is_gone_is_refused_by_the_peer;
    a_deadline_passes_and_the_task_goes_on;
    a_dropped_task_lets_go_of_what_it_named;
}
