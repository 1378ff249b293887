//! Devices, GIDs, memory, waiting, and DOCA's log, against the default machine of the simulator.

mod support;

use doca::memory::Heap;
use doca::rdma::gid::{self, Protocol};
use doca::rdma::{Rdma, ReceiveTask, SendTask, caps};
use doca::{Access, Chain, Descriptor, Device, DeviceInfo, Kind, Memory, ProgressEngine, Refusal};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use support::{LIMIT, Pair, device};

#[test]
fn a_device_is_found_by_each_of_its_names() {
    let first = device();
    let info = first.info();
    let long = info.pci_address().unwrap();
    let short = long.strip_prefix("0000:").unwrap().to_uppercase();
    let names = [info.ibdev_name().unwrap(), info.iface_name().unwrap(), long, short];
    for name in &names {
        assert_eq!(Device::open(name).unwrap(), first, "{name}");
        assert!(Device::open(name).unwrap() != support::other_device(), "{name}");
    }
    assert_eq!(info.ipv4_address().unwrap().unwrap().to_string(), "192.168.1.1");
    assert!(info.mac_address().unwrap().is_some() && info.lid().unwrap().is_none());
    assert!(info.active_rate().unwrap() > 0);
}

#[test]
fn no_device_and_several_are_errors_that_list_devices() {
    let none = Device::open("mlx5_77").unwrap_err();
    assert_eq!((none.refusal(), none.kind()), (Some(Refusal::NoDevice), Kind::NotFound));
    let several = Device::find().with(caps::SEND).open().unwrap_err();
    assert_eq!(several.refusal(), Some(Refusal::Ambiguous));
    for error in [none, several] {
        let text = error.to_string();
        assert!(
            text.contains("mlx5_0") && text.contains("mlx5_1") && text.contains("0000:3b:00.1"),
            "{text}"
        );
    }
}

#[test]
fn every_capability_is_asked_and_can_be_required() {
    let info = device().info();
    let snapshot = caps::snapshot(&info);
    assert_eq!(snapshot.iter().count(), caps::ALL.len());
    for (name, answer) in snapshot.iter() {
        assert!(answer.is_ok(), "{name}: {answer:?}");
    }
    snapshot.require("rdma.send,rdma.receive,rdma.max_message_size>=65536").unwrap();
    assert!(snapshot.to_string().contains("rdma.atomic_cmp_swp: yes"));
    assert!(snapshot.diff(&caps::snapshot(&support::other_device().info())).is_empty());
    let common = info.capabilities();
    assert!(common.iter().all(|(name, answer)| answer.is_ok() && name.starts_with("common.")), "{common}");
    common.require("common.mmap_export_pci,common.num_completion_vectors>=1").unwrap();
}

#[test]
fn more_than_the_device_has_is_refused_when_it_is_configured() {
    let mut config = Rdma::configure(&device()).unwrap();
    let refused = config.set_send_queue_size(u32::MAX).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Capability));
    assert!(refused.to_string().contains("rdma.max_send_queue_size = "), "{refused}");
    assert_eq!(config.set_max_send_buf_list_len(1 << 20).unwrap_err().kind(), Kind::NotSupported);
    assert_eq!(config.enable::<SendTask>(0).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    assert_eq!(config.set_recv_queue_size(16).unwrap_err().kind(), Kind::NotSupported);
    let refused = config.set_permissions(Access::PCI_READ_ONLY).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Permissions));
}

#[test]
fn properties_are_read_back() {
    let engine = ProgressEngine::new().unwrap();
    let mut config = Rdma::configure(&device()).unwrap();
    config.set_send_queue_size(100).unwrap();
    config.set_max_num_connections(3).unwrap();
    config.set_rnr_retry_count(7).unwrap();
    config.set_sl(3).unwrap();
    config.set_mtu(doca::rdma::Mtu::KIB_4).unwrap();
    config.set_permissions(Access::LOCAL_READ_WRITE | Access::RDMA_READ).unwrap();
    config.set_connection_request_timeout(Duration::from_millis(1500)).unwrap();
    config.set_receive_buf_list_len(2).unwrap();
    config.set_max_send_buf_list_len(4).unwrap();
    config.set_grh_enabled(true).unwrap();
    let gid = config.set_gid_roce_v2().unwrap();
    let (rdma, _connection) = support::alone(config.start(&engine).unwrap());
    assert_eq!(rdma.send_queue_size().unwrap(), 128, "rounded up");
    assert_eq!(rdma.max_num_connections().unwrap(), 3);
    assert_eq!(rdma.rnr_retry_count().unwrap(), 7);
    assert_eq!(rdma.sl().unwrap(), 3);
    assert_eq!(rdma.mtu().unwrap(), doca::rdma::Mtu::KIB_4);
    assert_eq!(rdma.permissions().unwrap(), Access::LOCAL_READ_WRITE | Access::RDMA_READ);
    assert!(rdma.connection_request_timeout().unwrap() >= Duration::from_millis(1500));
    assert!(rdma.receive_buf_list_len().unwrap() >= 2);
    assert_eq!(rdma.max_send_buf_list_len().unwrap(), 4);
    assert!(rdma.grh_enabled().unwrap());
    assert_eq!(rdma.gid_index().unwrap(), gid.index);
    assert_eq!(rdma.transport_type().unwrap(), doca::rdma::TransportType::RC);
}

#[test]
fn a_gid_is_chosen_by_protocol_or_refused_with_the_usable_ones() {
    let info = device().info();
    let table = gid::table(&info).unwrap();
    let best = gid::roce_v2(&info).unwrap();
    assert_eq!((best.protocol, best.ipv4()), (Protocol::RoceV2, info.ipv4_address().unwrap()));
    let mut config = Rdma::configure(&device()).unwrap();
    config.set_gid_index(best.index).unwrap();
    let bad: Vec<u32> = table.iter().filter(|gid| !gid.is_usable()).map(|gid| gid.index).collect();
    assert!(bad.len() > 2, "empty and v1 entries");
    for index in bad.into_iter().chain([table.len() as u32]) {
        let refused = config.set_gid_index(index).unwrap_err();
        assert_eq!(refused.refusal(), Some(Refusal::Gid));
        assert!(refused.to_string().contains(&best.to_string()), "{refused}");
    }
}

#[test]
fn private_memory_gives_slices_and_takes_them_back() {
    let memory = Memory::zeroed(1000).unwrap().private(&device()).unwrap();
    let mut buffer = memory.take_at(10, 20).unwrap();
    assert_eq!((buffer.len(), buffer.capacity(), buffer.offset()), (20, 20, 10));
    assert!(buffer.iter().all(|&byte| byte == 0));
    buffer.fill_with(b"short").unwrap();
    assert_eq!((&buffer[..], buffer.capacity()), (&b"short"[..], 20));
    assert_eq!(buffer.set_len(21).unwrap_err().refusal(), Some(Refusal::TooLong));
    for (offset, len) in [(29, 2), (0, 11), (990, 11), (1000, 1), (0, 0), (usize::MAX, 2)] {
        let refused = memory.take_at(offset, len).unwrap_err();
        assert_eq!(refused.refusal(), Some(Refusal::OutOfRange), "{offset} {len}");
    }
    drop(buffer);
    assert_eq!(memory.take(1000).unwrap().len(), 1000);
    // More buffers than one inventory holds.
    let many: Vec<_> = (0..125).map(|_| memory.take(8).unwrap()).collect();
    assert_eq!(memory.take(8).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    drop(many);
    assert_eq!(Memory::zeroed(0).unwrap_err().refusal(), Some(Refusal::OutOfRange));
}

#[test]
fn memory_of_the_heap_carries_messages() {
    let Pair { engine: _engine, memory, left, right } = Pair::new();
    let heap = Heap::from(vec![7u8; 300].into_boxed_slice());
    let heap = Memory::foreign(heap).private(&device()).unwrap();
    let mut receive = right.receives.submit(memory.take(300).unwrap()).unwrap();
    left.sends.submit(&left.connection, heap.take(300).unwrap()).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], [7; 300]);
}

#[test]
fn shared_memory_is_copied_and_has_cells() {
    let device = device();
    let refused = Memory::zeroed(64).unwrap().shared(&device, Access::LOCAL_READ_WRITE).unwrap_err();
    assert_eq!(refused.error.refusal(), Some(Refusal::Permissions));
    let window = refused.value.shared(&device, Access::RDMA_WRITE).unwrap();
    assert_eq!(window.access(), Access::LOCAL_READ_WRITE | Access::RDMA_WRITE);
    assert!(!window.export().unwrap().as_bytes().is_empty());

    let bytes: Vec<u8> = (0..64).collect();
    let mut back = [0; 64];
    for offset in 0..9 {
        window.write(offset, &bytes[..50]).unwrap();
        window.read(offset, &mut back[..50]).unwrap();
        assert_eq!(back[..50], bytes[..50], "offset {offset}");
    }
    window.cell(8).unwrap().store(0x0123_4567_89ab_cdef);
    window.read(8, &mut back[..8]).unwrap();
    assert_eq!(back[..8], 0x0123_4567_89ab_cdef_u64.to_ne_bytes());
    assert_eq!(window.cell(8).unwrap().load(), 0x0123_4567_89ab_cdef);
    assert_eq!(window.cell(4).unwrap_err().refusal(), Some(Refusal::Misaligned));
    assert_eq!(window.cell(64).unwrap_err().refusal(), Some(Refusal::OutOfRange));

    // A range has one owner.
    let mut piece = window.take_at(16, 16).unwrap();
    assert_eq!(window.read(24, &mut [0; 16]).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    assert_eq!(window.cell(16).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    assert_eq!((piece.write(b"seventeen letters"), piece.len()), (16, 16));
    assert_eq!((piece.read(&mut back), &back[..16]), (16, &b"seventeen letter"[..]));
    drop(piece);
    window.read(16, &mut back[..16]).unwrap();
}

#[test]
fn shared_memory_sends_and_receives() {
    let Pair { engine: _engine, memory: _, left, right } = Pair::new();
    let window = Memory::zeroed(4096).unwrap().shared(&device(), Access::RDMA_READ).unwrap();
    let mut receive = right.receives.submit(window.take(64).unwrap()).unwrap();
    let mut source = window.take(64).unwrap();
    source.write(b"through shared memory");
    left.sends.submit(&left.connection, source).unwrap().wait_for(LIMIT).unwrap();
    let received = receive.wait_for(LIMIT).unwrap().buffer;
    let mut text = [0; 64];
    let len = received.read(&mut text);
    assert_eq!(&text[..len], b"through shared memory");
}

#[test]
fn messages_without_bytes_arrive() {
    let Pair { engine: _engine, memory, left, right } = Pair::new();
    let mut nothing = right.receives.submit(()).unwrap();
    let mut something = right.receives.submit(memory.take(8).unwrap()).unwrap();
    left.sends.submit(&left.connection, ()).unwrap().wait_for(LIMIT).unwrap();
    let mut empty = memory.take(8).unwrap();
    empty.set_len(0).unwrap();
    left.sends.submit(&left.connection, empty).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(nothing.wait_for(LIMIT).unwrap().message_len(), 0);
    assert!(something.wait_for(LIMIT).unwrap().buffer.is_empty());
}

#[test]
fn chains_are_gathered_and_scattered_within_their_limits() {
    let engine = ProgressEngine::new().unwrap();
    let memory = Memory::zeroed(4096).unwrap().private(&device()).unwrap();
    let chain = |sizes: &[usize]| {
        let mut buffers = sizes.iter().map(|&size| memory.take(size).unwrap());
        let mut chain = Chain::new(buffers.next().unwrap());
        for buffer in buffers {
            chain.push(buffer).unwrap();
        }
        chain
    };
    let mut left = Rdma::configure(&device()).unwrap();
    left.set_max_send_buf_list_len(3).unwrap();
    let mut right = Rdma::configure(&device()).unwrap();
    right.set_receive_buf_list_len(2).unwrap();
    let (sends, receives) = (left.enable::<SendTask>(2).unwrap(), right.enable::<ReceiveTask>(2).unwrap());
    let (left, right) = (left.start(&engine).unwrap(), right.start(&engine).unwrap());
    let ((to_right, for_right), (to_left, for_left)) = (left.export().unwrap(), right.export().unwrap());
    let (to_right, _to_left) = (to_right.connect(for_left).unwrap(), to_left.connect(for_right).unwrap());
    let (left, right) = (left.running().unwrap(), right.running().unwrap());
    let (sends, receives) = (left.queue(sends).unwrap(), right.queue(receives).unwrap());

    let mut source = chain(&[3, 10, 5]);
    source.data_mut(0).copy_from_slice(b"one");
    source.set_len(1, 4).unwrap();
    source.data_mut(1).copy_from_slice(b" two");
    source.data_mut(2).copy_from_slice(b" more");
    assert_eq!((source.len(), source.num_buffers()), (12, 3));
    let mut destination = chain(&[5, 20]);
    for _ in 0..3 {
        let mut receive = receives.submit(destination).unwrap();
        source = sends.submit(&to_right, source).unwrap().wait_for(LIMIT).unwrap();
        destination = receive.wait_for(LIMIT).unwrap().buffer;
        let parts: Vec<&[u8]> = destination.buffers().iter().map(|buffer| &buffer[..]).collect();
        assert_eq!(parts, [&b"one t"[..], b"wo more"]);
    }
    for (refused, limit) in [
        (sends.submit(&to_right, chain(&[1; 4])).map(drop).unwrap_err(), "max_send_buf_list_len = "),
        (receives.submit(chain(&[1; 40])).map(drop).unwrap_err(), "receive_buf_list_len = "),
    ] {
        assert_eq!(refused.error.refusal(), Some(Refusal::TooLong));
        assert!(refused.to_string().contains(limit), "{refused}");
    }
    // Taken apart, the buffers are what they were before.
    let [first, second] = <[_; 2]>::try_from(destination.into_buffers()).unwrap();
    let mut receive = receives.submit(second).unwrap();
    sends.submit(&to_right, first).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], b"one t");
    drop(source);
    assert_eq!(memory.take(4096).unwrap().len(), 4096, "all came back");
    assert_eq!(support::log::warnings(), Vec::<String>::new());
}

#[test]
fn a_received_buffer_can_be_sent_back_and_received_into_again() {
    let mut pair = Pair::new();
    let mut buffer = pair.memory.take(64).unwrap();
    for len in [64, 1, 33, 0, 64] {
        let mut receive = pair.right.receives.submit(buffer).unwrap();
        let mut message = pair.memory.take(64).unwrap();
        message.set_len(len).unwrap();
        pair.left.send(message);
        buffer = receive.wait_for(LIMIT).unwrap().buffer;
        assert_eq!((buffer.len(), buffer.capacity()), (len, 64));
        let mut back = pair.left.receives.submit(pair.memory.take(64).unwrap()).unwrap();
        buffer = pair.right.sends.submit(&pair.right.connection, buffer).unwrap().wait_for(LIMIT).unwrap();
        assert_eq!(back.wait_for(LIMIT).unwrap().buffer.len(), len);
    }
    pair.exchange(b"at last");
}

/// Waits on the descriptor, as an event loop does.
fn readable(engine: &ProgressEngine, time: Duration) -> bool {
    let fd = engine.as_fd().as_raw_fd();
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry; the engine keeps the descriptor open meanwhile.
    unsafe { libc::poll(&mut poll, 1, time.as_millis() as libc::c_int) == 1 }
}

#[test]
fn the_descriptor_tells_when_there_is_work() {
    let Pair { engine, memory, left, right } = Pair::new();
    let mut receive = right.receives.submit(memory.take(8).unwrap()).unwrap();
    while engine.progress().unwrap() {}
    engine.arm().unwrap();
    assert!(!readable(&engine, Duration::from_millis(30)), "nothing to do yet");
    drop(left.sends.submit(&left.connection, memory.take(3).unwrap()).unwrap());
    assert!(readable(&engine, LIMIT), "a message came");
    support::until(&engine, || receive.is_done());
    assert_eq!(receive.wait().unwrap().buffer.len(), 3);
    while engine.progress().unwrap() {}
    engine.arm().unwrap();
    assert!(!readable(&engine, Duration::from_millis(30)), "all done");
}

/// The sleeper would look by itself only after a day, so it is the descriptor that wakes it.
#[test]
fn waiting_sleeps_until_another_thread_sends() {
    let (to_us, from_them) = mpsc::channel();
    let (to_them, from_us) = mpsc::channel::<Descriptor>();
    let (tell, received) = mpsc::channel();
    let waits = Arc::new(AtomicBool::new(false));
    let (device, says_so) = (device(), waits.clone());
    let thread = std::thread::spawn({
        let device = device.clone();
        move || {
            let engine = ProgressEngine::new().unwrap();
            engine.set_longest_sleep(Duration::from_secs(86_400));
            let memory = Memory::zeroed(64).unwrap().private(&device).unwrap();
            let mut config = Rdma::configure(&device).unwrap();
            let receives = config.enable::<ReceiveTask>(1).unwrap();
            let starting = config.start(&engine).unwrap();
            let (exported, descriptor) = starting.export().unwrap();
            // SAFETY: asks for this thread's number.
            to_us.send((unsafe { libc::gettid() }, descriptor)).unwrap();
            let _connection = exported.connect(from_us.recv().unwrap()).unwrap();
            let rdma = starting.running().unwrap();
            let mut receive = rdma.queue(receives).unwrap().submit(memory.take(8).unwrap()).unwrap();
            says_so.store(true, Ordering::Release);
            tell.send(receive.wait().unwrap().buffer.len()).unwrap();
        }
    });
    let engine = ProgressEngine::new().unwrap();
    let memory = Memory::zeroed(64).unwrap().private(&device).unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    let sends = config.enable::<SendTask>(1).unwrap();
    let starting = config.start(&engine).unwrap();
    let (exported, descriptor) = starting.export().unwrap();
    let (waiter, peer) = from_them.recv().unwrap();
    let connection = exported.connect(peer).unwrap();
    to_them.send(descriptor).unwrap();
    let rdma = starting.running().unwrap();
    while !waits.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    support::until_asleep(waiter);
    let sends = rdma.queue(sends).unwrap();
    sends.submit(&connection, memory.take(5).unwrap()).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(received.recv_timeout(LIMIT), Ok(5), "the descriptor wakes the sleeper");
    thread.join().unwrap();
}

#[test]
fn versions_are_known_and_fit() {
    let versions = doca::version::version();
    assert_eq!(versions.built.unwrap().major, versions.loaded.unwrap().major);
    doca::version::require_fit().unwrap();
    assert!(DeviceInfo::list().unwrap().len() >= 2);
}

#[test]
fn the_kernel_moves_bytes_between_sockets_and_memory_that_peers_reach() {
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;
    let device = device();
    let memory = Memory::zeroed(64).unwrap().shared(&device, Access::RDMA_WRITE).unwrap();
    let mut buffer = memory.take(16).unwrap();
    let (mut near, far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    near.write_all(b"0123456789").unwrap();
    // Behind what is there, as much as was asked for, and no more than fits.
    assert_eq!(buffer.write(b"head"), 4);
    assert_eq!(buffer.read_from(&far, 3).unwrap(), 3);
    assert_eq!(buffer.read_from(&far, 0).unwrap(), 0);
    assert_eq!(buffer.read_from(&far, 1000).unwrap(), 7);
    assert_eq!(buffer.read_from(&far, 1000).unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut copy = [0; 20];
    assert_eq!((buffer.read(&mut copy), &copy[..14]), (14, &b"head0123456789"[..]));
    assert_eq!((buffer.read_at(12, &mut copy), &copy[..2]), (2, &b"89"[..]));
    assert_eq!(buffer.read_at(15, &mut copy), 0);
    near.write_all(b"abcdef").unwrap();
    assert_eq!(buffer.read_from(&far, 1000).unwrap(), 2);
    assert_eq!(buffer.read_from(&far, 1000).unwrap(), 0, "it is full");
    // And back, from an offset on.
    assert_eq!(buffer.send_to(&far, 4).unwrap(), 12);
    let mut back = [0; 12];
    near.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"0123456789ab");
    assert_eq!(buffer.send_to(&far, 99).unwrap(), 0);
    drop(near);
    assert_eq!(buffer.send_to(&far, 0).unwrap_err().kind(), ErrorKind::BrokenPipe);
}
