//! Disks that fail a busy target: silent, frozen, pulled out, or losing a namespace. Nothing hangs, nothing is left: DOCA has one
//! allocator for a process, so a target can be started only when nothing is left of the one before.

mod support;

use doca_common::Refusal;
use doca_sim_initiator::controller::read_write;
use doca_sim_initiator::{Data, Queue};
use doca_sim_nvme::Faults;
use doca_sta::event::Event;
use nvme_wire::{IoOpcode, Sqe, Status};
use std::time::Duration;
use support::{Ask, LIMIT, Serving, alone, connected, verify};

const DEPTH: u16 = 31;

/// As many reads as the queue takes, but for a place.
fn fill(queue: &mut Queue) -> u16 {
    for lba in 0..u64::from(DEPTH) - 1 {
        let command = read_write(IoOpcode::READ, 1, lba, 1);
        queue.submit(command, Data::In(512)).unwrap().unwrap();
    }
    DEPTH - 1
}

/// Ends a target under load whose disk does not work; gives what stopping it said.
fn ended(fail: impl Fn(&Faults), with_flush: bool) -> Result<(), doca_common::Error> {
    let serving = Serving::start();
    let controller = connected();
    let mut queue = controller.io_queue(1, DEPTH + 1).unwrap();
    queue.write(1, 0, 512, &[1; 512]).unwrap();
    let before = serving.statistics();
    fail(&serving.faults);
    let reads = u64::from(fill(&mut queue));
    serving.until("the adapter has the reads", |now| now.namespaces[0].2.get("read_cmds") == Some(reads));
    if with_flush {
        let flush = Sqe { opcode: IoOpcode::FLUSH.0, nsid: 1, ..Sqe::default() };
        queue.submit(flush, Data::None).unwrap().unwrap();
        serving
            .until("the disk has the flush", |now| now.threads[0].commands == before.threads[0].commands + 1);
    }
    let ended = serving.end();
    let left = queue.wait().map(|completion| completion.cqe);
    assert!(left.is_err(), "the host notices: {left:?}");
    drop((queue, controller));
    // Nothing is left of it, so another one can start, and works.
    let serving = Serving::start();
    verify(&mut connected(), Duration::from_millis(50));
    serving.stop();
    ended
}

#[test]
fn a_target_ends_though_its_disk_is_silent() {
    alone("a_target_ends_though_its_disk_is_silent", "", || {
        ended(|faults| faults.stall(true), false).unwrap();
    });
}

#[test]
fn a_command_that_a_disk_executes_for_ever_is_named() {
    alone("a_command_that_a_disk_executes_for_ever_is_named", "", || {
        let error = ended(|faults| faults.stall(true), true).unwrap_err();
        assert_eq!(error.refusal(), Some(Refusal::TimedOut), "{error}");
        assert!(error.to_string().contains("disk 0"), "{error}");
    });
}

#[test]
fn a_target_ends_though_its_disk_does_not_even_end_a_reset() {
    alone("a_target_ends_though_its_disk_does_not_even_end_a_reset", "", || {
        ended(|faults| faults.freeze(true), false).unwrap();
    });
}

#[test]
fn a_target_ends_though_its_disk_was_pulled_out() {
    alone("a_target_ends_though_its_disk_was_pulled_out", "", || {
        ended(Faults::vanish, false).unwrap();
    });
}

#[test]
fn a_namespace_leaves_with_many_reads_in_flight() {
    alone("a_namespace_leaves_with_many_reads_in_flight", "", || {
        let serving = Serving::start();
        let mut controller = connected();
        let mut queue = controller.io_queue(1, DEPTH + 1).unwrap();
        queue.write(1, 0, 512, &[1; 512]).unwrap();
        serving.faults.stall(true);
        let first = fill(&mut queue);
        let reads = Some(u64::from(first));
        serving.until("the disk has the reads", |now| now.namespaces[0].2.get("read_cmds") == reads);
        serving.asks.send(Ask::Remove(1)).unwrap();
        serving.until("it is told to leave", |now| now.namespaces.is_empty());
        // One more, which comes too late.
        let late = read_write(IoOpcode::READ, 1, 0, 1);
        let late = queue.submit(late, Data::In(512)).unwrap().unwrap();
        let refused = queue.wait().unwrap();
        assert!(
            refused.cqe.cid == late && refused.cqe.status.is(Status::INVALID_NAMESPACE),
            "{:?}",
            refused.cqe
        );
        queue.finish(refused, &mut []);
        let removed = |event: &Event| matches!(event, Event::NamespaceRemoved(_));
        assert!(
            !serving.events.try_iter().any(|event| removed(&event)),
            "it stays while commands are under way"
        );
        serving.faults.stall(false);
        for _ in 0..first {
            let completion = queue.wait().unwrap();
            assert!(completion.cqe.status.is_success(), "{:?}", completion.cqe);
            queue.finish(completion, &mut []);
        }
        assert_eq!(queue.outstanding(), 0);
        while !removed(&serving.events.recv_timeout(LIMIT).unwrap()) {}
        assert_eq!(controller.namespaces().unwrap(), []);
        drop((queue, controller));
        serving.stop();
    });
}
