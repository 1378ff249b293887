//! One-sided operations need nothing of the process whose memory they touch: they complete while it is stopped.

use crate::process::{LIMIT, Parent, Peer, Talk, from_hex, to_hex};
use doca::event::{Publisher, Subscriber};
use doca::memory::Heap;
use doca::rdma::{
    CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, Rdma, ReadTask, ReceiveTask,
    TransportType, WriteImmTask, WriteTask,
};
use doca::{Access, Device, Memory, ProgressEngine, RemoteEvent, RemoteMemory, SyncEvent};
use std::time::Instant;

const LEN: usize = 4096;
const WRITTEN: &[u8] = b"written while you slept";
const IMMEDIATE: u32 = 0x0d0c_a000;

/// Shares memory and an event, is stopped, and finds afterwards what was done to them.
pub fn target(parent: &mut Parent, args: &[String]) {
    let device = Device::open("mlx5_1").unwrap();
    let engine = ProgressEngine::new().unwrap();
    let memory = match args[0].as_str() {
        "heap" => Memory::foreign(Heap::from(vec![0; LEN].into_boxed_slice())),
        _ => Memory::zeroed(LEN).unwrap(),
    };
    let shared = memory.shared(&device, Access::ANY_RDMA).unwrap();
    shared.write(0, b"read me").unwrap();
    let event = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(&device)).unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    config.set_permissions(Access::ANY_RDMA).unwrap();
    config.set_transport_type(transport(&args[1])).unwrap();
    let receives = config.enable::<ReceiveTask>(1).unwrap();
    let starting = config.start(&engine).unwrap();
    let (exported, descriptor) = starting.export().unwrap();
    for blob in [&descriptor, &shared.export().unwrap(), &event.export_net().unwrap()] {
        parent.say(&to_hex(blob.as_bytes()));
    }
    let descriptor = from_hex(&parent.hear());
    // With DC the initiator alone connects.
    let _ends = match args[1].as_str() {
        "DC" => (Some(exported), None),
        _ => (None, Some(exported.connect(descriptor).unwrap())),
    };
    let rdma = starting.running_within(LIMIT).unwrap();
    let mut receive = rdma.queue(receives).unwrap().submit(()).unwrap();
    parent.say("stop me");
    parent.expect("look");
    let mut found = [0; WRITTEN.len()];
    for offset in [64, 128] {
        shared.read(offset, &mut found).unwrap();
        assert_eq!(found, WRITTEN, "at {offset}");
    }
    assert_eq!(receive.wait_for(LIMIT).unwrap().immediate(), Some(IMMEDIATE));
    assert_eq!((shared.cell(256).unwrap().load(), event.get().unwrap()), (12, 107));
    rdma.stop().wait_for(LIMIT).unwrap();
}

fn transport(name: &str) -> TransportType {
    if name == "DC" { TransportType::DC } else { TransportType::RC }
}

/// Stops a process, and waits until it is.
fn stop(pid: u32) {
    // SAFETY: a signal to a child of ours that was not waited for, so the number is its own.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, libc::SIGSTOP) }, 0);
    let deadline = Instant::now() + LIMIT;
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    while state() != Some('T') {
        assert!(Instant::now() < deadline, "it does not stop");
        std::thread::yield_now();
    }
}

fn every_kind_completes(memory: &str, over: &str) {
    let device = Device::open("mlx5_0").unwrap();
    let engine = ProgressEngine::new().unwrap();
    let local = Memory::zeroed(LEN).unwrap().private(&device).unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    config.set_transport_type(transport(over)).unwrap();
    let (reads, writes) = (config.enable::<ReadTask>(1).unwrap(), config.enable::<WriteTask>(1).unwrap());
    let write_imms = config.enable::<WriteImmTask>(1).unwrap();
    let (swaps, adds) =
        (config.enable::<CompareSwapTask>(1).unwrap(), config.enable::<FetchAddTask>(1).unwrap());
    let (gets, sets) = (config.enable::<EventGetTask>(1).unwrap(), config.enable::<EventSetTask>(1).unwrap());
    let event_adds = config.enable::<EventAddTask>(1).unwrap();
    let starting = config.start(&engine).unwrap();
    let (exported, descriptor) = starting.export().unwrap();

    let mut peer = Peer::start("target", &[memory, over]);
    let there = exported.connect(from_hex(&peer.hear())).unwrap();
    let remote = RemoteMemory::import(&device, from_hex(&peer.hear())).unwrap();
    let event = RemoteEvent::import(&device, from_hex(&peer.hear())).unwrap();
    peer.say(&to_hex(descriptor.as_bytes()));
    let rdma = starting.running_within(LIMIT).unwrap();
    peer.expect("stop me");
    stop(peer.id());

    let bytes = |text: &[u8]| {
        let mut buffer = local.take(text.len()).unwrap();
        buffer.copy_from_slice(text);
        buffer
    };
    let word = |value: u64| bytes(&value.to_ne_bytes());
    let range = |offset, len| remote.range(offset, len).unwrap();
    let cell = remote.cell(256).unwrap();

    let read = rdma.queue(reads).unwrap().submit(&there, &range(0, 7), bytes(&[0; 7])).unwrap();
    assert_eq!(&{ read }.wait_for(LIMIT).unwrap().buffer[..], b"read me");
    let write = rdma.queue(writes).unwrap().submit(&there, bytes(WRITTEN), &range(64, WRITTEN.len()));
    write.unwrap().wait_for(LIMIT).unwrap();
    let write_imms = rdma.queue(write_imms).unwrap();
    let write = write_imms.submit(&there, bytes(WRITTEN), &range(128, WRITTEN.len()), IMMEDIATE);
    write.unwrap().wait_for(LIMIT).unwrap();
    let swap = rdma.queue(swaps).unwrap().submit(&there, &cell, word(1), 0, 5).unwrap().wait_for(LIMIT);
    assert_eq!(swap.unwrap().value, 0);
    let add = rdma.queue(adds).unwrap().submit(&there, &cell, word(1), 7).unwrap().wait_for(LIMIT);
    assert_eq!(add.unwrap().value, 5);
    rdma.queue(sets).unwrap().submit(&there, &event, word(100)).unwrap().wait_for(LIMIT).unwrap();
    let add = rdma.queue(event_adds).unwrap().submit(&there, &event, word(1), 7).unwrap().wait_for(LIMIT);
    assert_eq!(add.unwrap().value, 100);
    let get = rdma.queue(gets).unwrap().submit(&there, &event, word(1)).unwrap().wait_for(LIMIT);
    assert_eq!(get.unwrap().value, 107);

    // SAFETY: as in `stop`.
    assert_eq!(unsafe { libc::kill(peer.id() as libc::pid_t, libc::SIGCONT) }, 0);
    peer.say("look");
    peer.finish();
    drop(there);
    rdma.stop().wait_for(LIMIT).unwrap();
}

/// Memory of these crates, which peers map.
pub fn every_kind_completes_in_mapped_memory() {
    every_kind_completes("mapped", "RC");
}

/// Memory that peers reach through the kernel.
pub fn every_kind_completes_in_memory_of_the_heap() {
    every_kind_completes("heap", "RC");
}

/// Both, over dynamic connections.
pub fn every_kind_completes_over_dc() {
    for memory in ["mapped", "heap"] {
        every_kind_completes(memory, "DC");
    }
}
