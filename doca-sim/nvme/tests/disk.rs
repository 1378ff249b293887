//! A disk, driven through its BAR.

use doca_sim_nvme::{Config, Disk, Namespace};
use nvme_pci::{Driver, Error, IoQueue};
use nvme_wire::command::{AdminOpcode, IoOpcode};
use nvme_wire::io::DsmRange;
use nvme_wire::{Cqe, Sqe, Status};
use std::time::{Duration, Instant};

fn disk(config: Config) -> Disk {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    Disk::start(config.namespace(Namespace::new(file, 512).unwrap().with_nguid([3; 16]))).unwrap()
}

fn driver(disk: &Disk) -> Driver {
    Driver::open(disk.bar(), disk.mapper()).unwrap()
}

fn poll(queue: &mut IoQueue) -> Cqe {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(cqe) = queue.poll() {
            return cqe;
        }
        assert!(Instant::now() < until, "no completion");
        std::thread::yield_now();
    }
}

#[track_caller]
fn refused<T>(outcome: Result<T, Error>, expected: Status) {
    match outcome {
        Err(Error::Io(status) | Error::Admin { status, .. }) => {
            assert!(status.is(expected), "{status} is not {expected}")
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("succeeded instead of {expected}"),
    }
}

#[test]
fn it_says_what_it_is() {
    let disk = disk(Config { serial: "S1".into(), mdts: 3, ..Config::default() });
    let mut driver = driver(&disk);
    assert_eq!(driver.controller().sn.text(), "S1");
    assert_eq!((driver.max_transfer(), driver.num_queues()), (Some(32 << 10), 64));
    let [(nsid, namespace)] = &driver.namespaces().unwrap()[..] else { panic!("one namespace") };
    assert_eq!(
        (*nsid, namespace.nsze, namespace.block_size(), namespace.nguid),
        (1, 2048, Some(512), [3; 16])
    );
    driver.shutdown().unwrap();
}

#[test]
fn blocks_come_back_through_one_page_two_and_lists() {
    let disk = disk(Config::default());
    let mut driver = driver(&disk);
    let mut queue = driver.io_queue(4).unwrap();
    // More rounds than entries: phases flip and doorbells wrap.
    for (round, blocks) in [1, 8, 9, 16, 17, 64, 256].into_iter().cycle().take(30).enumerate() {
        let data: Vec<u8> = (0..blocks * 512).map(|i| (i * 7 + round) as u8).collect();
        let slba = (round * 50) as u64;
        queue.write(1, slba, 512, &data).unwrap();
        let mut back = vec![0; data.len()];
        queue.read(1, slba, 512, &mut back).unwrap();
        assert!(back == data, "round {round}");
    }
    queue.flush(1).unwrap();
    queue.flush(u32::MAX).unwrap();
}

#[test]
fn zeros_and_holes() {
    let disk = disk(Config::default());
    let mut driver = driver(&disk);
    let mut queue = driver.io_queue(8).unwrap();
    queue.write(1, 0, 512, &[0xAA; 512 * 32]).unwrap();
    queue.write_zeroes(1, 1, 0, false).unwrap();
    queue.write_zeroes(1, 8, 7, true).unwrap();
    queue
        .deallocate(
            1,
            &[DsmRange { attributes: 0, nlb: 8, slba: 16 }, DsmRange { attributes: 0, nlb: 0, slba: 0 }],
        )
        .unwrap();
    let mut back = [0; 512 * 32];
    queue.read(1, 0, 512, &mut back).unwrap();
    for (block, bytes) in back.chunks(512).enumerate() {
        let zero = block == 1 || (8..24).contains(&block);
        assert!(bytes.iter().all(|&byte| byte == if zero { 0 } else { 0xAA }), "block {block}");
    }
    refused(queue.deallocate(1, &[DsmRange { attributes: 0, nlb: 2, slba: 2047 }]), Status::LBA_OUT_OF_RANGE);
}

#[test]
fn bad_commands_get_their_status() {
    let disk = disk(Config { mdts: 1, ..Config::default() });
    let mut driver = driver(&disk);
    let mut queue = driver.io_queue(8).unwrap();
    let mut block = [0; 512];
    refused(queue.read(2, 0, 512, &mut block), Status::INVALID_NAMESPACE);
    refused(queue.read(1, 2048, 512, &mut block), Status::LBA_OUT_OF_RANGE);
    refused(queue.read(1, u64::MAX, 512, &mut block), Status::LBA_OUT_OF_RANGE);
    refused(queue.write_zeroes(1, 2047, 1, false), Status::LBA_OUT_OF_RANGE);
    let mapped = nvme_pci::DmaBuffer::new(4096, driver.mapper()).unwrap().iova();
    // Unmapped again: the buffer is dropped.
    for (opcode, nlb, prps, status) in [
        (IoOpcode::READ.0, 0, [mapped, 0], Status::DATA_TRANSFER_ERROR),
        (IoOpcode::WRITE.0, 0, [0x1000, 0], Status::DATA_TRANSFER_ERROR),
        (IoOpcode::READ.0, 0, [0x1002, 0], Status::PRP_OFFSET_INVALID),
        (IoOpcode::READ.0, 15, [0x1000, 0x2008], Status::PRP_OFFSET_INVALID),
        (IoOpcode::READ.0, 16, [0x1000, 0x2000], Status::INVALID_FIELD),
        (0xC3, 0, [0, 0], Status::INVALID_OPCODE),
    ] {
        let mut command = Sqe { opcode, nsid: 1, cdw: [0, 0, nlb, 0, 0, 0], ..Sqe::default() };
        command.set_prps(prps);
        let cid = queue.submit(command).unwrap();
        let cqe = poll(&mut queue);
        assert!(cqe.cid == cid && cqe.status.is(status), "{opcode:x} {prps:x?}: {}", cqe.status);
    }
    refused(driver.admin(Sqe { opcode: 0xC3, ..Sqe::default() }), Status::INVALID_OPCODE);
}

#[test]
fn queues_are_made_within_limits_and_used_again() {
    let disk = disk(Config { max_queues: 2, max_queue_entries: 100, ..Config::default() });
    let mut driver = driver(&disk);
    let first = driver.create_queue(1000).unwrap();
    assert_eq!((first.qid, first.entries, first.sq_doorbell, first.cq_doorbell), (1, 64, 0x1008, 0x100C));
    let mut second = driver.io_queue(2).unwrap();
    assert!(matches!(driver.create_queue(8), Err(Error::NoQueue(2))));
    let command = |opcode: AdminOpcode, cdw10: u32, cdw11: u32, base: u64| {
        let mut command = Sqe { opcode: opcode.0, cdw: [cdw10, cdw11, 0, 0, 0, 0], ..Sqe::default() };
        command.set_prps([base, 0]);
        command
    };
    for (opcode, cdw10, cdw11, base, status) in [
        (AdminOpcode::CREATE_CQ, 0x7_0001, 1, 0x1000, Status::INVALID_QUEUE_ID),
        (AdminOpcode::CREATE_CQ, 0x7_0003, 1, 0x1000, Status::INVALID_QUEUE_ID),
        (AdminOpcode::DELETE_CQ, 1, 0, 0, Status::INVALID_QUEUE_DELETION),
        (AdminOpcode::DELETE_SQ, 3, 0, 0, Status::INVALID_QUEUE_ID),
        (AdminOpcode::SET_FEATURES, 7, 0x0001_0001, 0, Status::COMMAND_SEQUENCE_ERROR),
    ] {
        refused(driver.admin(command(opcode, cdw10, cdw11, base)), status);
    }
    driver.delete_queue(first).unwrap();
    for (opcode, cdw10, cdw11, base, status) in [
        (AdminOpcode::CREATE_CQ, 0x0_0001, 1, 0x1000, Status::INVALID_QUEUE_SIZE),
        (AdminOpcode::CREATE_CQ, 0x64_0001, 1, 0x1000, Status::INVALID_QUEUE_SIZE),
        (AdminOpcode::CREATE_CQ, 0x7_0001, 0, 0x1000, Status::INVALID_FIELD),
        (AdminOpcode::CREATE_CQ, 0x7_0001, 1, 0x1010, Status::PRP_OFFSET_INVALID),
        (AdminOpcode::CREATE_CQ, 0x7_0001, 0x1_0003, 0x1000, Status::INVALID_INTERRUPT_VECTOR),
        (AdminOpcode::CREATE_SQ, 0x7_0001, 0x1_0001, 0x1000, Status::INVALID_COMPLETION_QUEUE),
    ] {
        refused(driver.admin(command(opcode, cdw10, cdw11, base)), status);
    }
    let again = driver.io_queue(8).unwrap();
    assert_eq!(again.qid(), 1);
    second.flush(1).unwrap();
    driver.delete_io_queue(again).unwrap();
    driver.delete_io_queue(second).unwrap();
}

#[test]
fn a_full_queue_is_a_value_and_everything_completes() {
    let disk = disk(Config::default());
    let mut driver = driver(&disk);
    let mut queue = driver.io_queue(8).unwrap();
    disk.faults().stall(true);
    let flush = Sqe { opcode: IoOpcode::FLUSH.0, nsid: 1, ..Sqe::default() };
    let submitted: Vec<u16> = (0..7).map(|_| queue.submit(flush.clone()).unwrap()).collect();
    assert!(matches!(queue.submit(flush.clone()), Err(Error::Full)));
    assert!(matches!(queue.flush(1), Err(Error::Full)), "one at a time only when nothing is outstanding");
    // The admin queue goes on.
    assert_eq!(driver.namespaces().unwrap().len(), 1);
    assert!(queue.poll().is_none());
    disk.faults().stall(false);
    assert_eq!(submitted.iter().map(|_| poll(&mut queue).cid).collect::<Vec<_>>(), submitted);
}

#[test]
fn failures_come_when_asked_for() {
    let disk = disk(Config::default());
    let mut driver = driver(&disk);
    let mut queue = driver.io_queue(8).unwrap();
    disk.faults().fail(Some(IoOpcode::WRITE), 2, Status::WRITE_FAULT);
    queue.write(1, 0, 512, &[1; 512]).unwrap();
    refused(queue.write(1, 0, 512, &[2; 512]), Status::WRITE_FAULT);
    let mut back = [0; 512];
    queue.read(1, 0, 512, &mut back).unwrap();
    assert_eq!(back, [1; 512], "a write that failed wrote nothing");
    assert_eq!(disk.counters().errors(), 1);
    disk.faults().set_latency(Duration::from_millis(20));
    let start = Instant::now();
    queue.flush(1).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(20));
    disk.faults().vanish();
    assert!(matches!(queue.flush(1), Err(Error::Gone)));
    assert!(matches!(Driver::open(disk.bar(), disk.mapper()), Err(Error::Gone)));
}

#[test]
fn a_bad_doorbell_is_told_by_an_event_and_a_reset_helps() {
    let disk = disk(Config::default());
    {
        let mut driver = driver(&disk);
        let memory = driver.create_queue(8).unwrap();
        let doorbell = disk.bar().base().as_ptr().wrapping_add(memory.sq_doorbell as usize).cast::<u32>();
        // SAFETY: within the BAR and aligned, which lives as long as the disk.
        unsafe { doorbell.write_volatile(8) };
        let event =
            driver.admin(Sqe { opcode: AdminOpcode::ASYNC_EVENT_REQUEST.0, ..Sqe::default() }).unwrap();
        assert_eq!(event.result, 0x0001_0100);
        driver.delete_queue(memory).unwrap();
    }
    let mut again = driver(&disk);
    again.io_queue(8).unwrap().flush(1).unwrap();
}

#[test]
fn a_disk_that_was_taken_out_is_gone() {
    let disk = disk(Config::default());
    let mut driver = driver(&disk);
    drop(disk);
    assert!(matches!(driver.namespaces(), Err(Error::Gone)));
}

#[test]
fn a_file_is_one_disk() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let first = Namespace::open(file.path(), 512).unwrap();
    let again = Namespace::open(file.path(), 512).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::ResourceBusy, "{again}");
    assert!(again.to_string().contains("another disk"), "{again}");
    drop(first);
    Namespace::open(file.path(), 512).unwrap();
}

#[test]
fn what_cannot_be_is_refused() {
    let file = || {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4095).unwrap();
        file
    };
    assert!(Namespace::new(file(), 1024).is_err());
    assert!(Namespace::new(file(), 4096).is_err());
    assert_eq!(Namespace::new(file(), 512).unwrap().blocks(), 7);
    let long = || "x".repeat(41);
    for config in [
        Config { serial: long(), ..Config::default() },
        Config { model: long(), ..Config::default() },
        Config { max_queue_entries: 1, ..Config::default() },
        Config { max_queues: 512, ..Config::default() },
    ] {
        assert!(Disk::start(config).is_err());
    }
}
