//! Whether all queues of a busy target are served, and its disk is kept busy: counted in commands, so the machine may be as
//! slow as it likes.

mod support;

use doca_sim_initiator::controller::read_write;
use doca_sim_initiator::{Data, Queue};
use nvme_wire::IoOpcode;
use std::time::Instant;
use support::{LIMIT, Serving, alone, connected};

/// Together more commands than the target has buffers for data, and more capsules than it has receives.
const QUEUES: u16 = 12;
const DEPTH: u16 = 32;
const COMMANDS: u64 = 12_000;
/// Commands that a queue gets begun before the others' turn.
const QUANTUM: u64 = 8;

/// A queue, and for each command under way how many were done when it began.
struct Busy {
    queue: Queue,
    began: Vec<(u16, u64)>,
}

impl Busy {
    fn fill(&mut self, done: u64) {
        while self.began.len() < usize::from(DEPTH) {
            let command = read_write(IoOpcode::READ, 1, done % 512, 1);
            let Some(cid) = self.queue.submit(command, Data::In(512)).unwrap() else { return };
            self.began.push((cid, done));
        }
    }

    /// How many others were done while the next command that is done was under way.
    fn take(&mut self, done: u64) -> Option<u64> {
        let completion = self.queue.poll().unwrap()?;
        assert!(completion.cqe.status.is_success(), "{:?}", completion.cqe);
        let place = self.began.iter().position(|(cid, _)| *cid == completion.cqe.cid).unwrap();
        let (_, began) = self.began.swap_remove(place);
        self.queue.finish(completion, &mut []);
        Some(done - began)
    }
}

#[test]
fn no_command_waits_while_thousands_of_others_are_served() {
    alone("no_command_waits_while_thousands_of_others_are_served", "", || {
        let serving = Serving::start();
        let mut controller = connected();
        assert!(controller.num_queues(QUEUES).unwrap() >= QUEUES);
        let open = |qid| Busy { queue: controller.io_queue(qid, DEPTH + 1).unwrap(), began: Vec::new() };
        let mut queues: Vec<Busy> = (1..=QUEUES).map(open).collect();
        let (mut done, mut longest) = (0, 0);
        let mut heard = Instant::now();
        while done < COMMANDS || queues.iter().any(|busy| !busy.began.is_empty()) {
            for busy in &mut queues {
                if done < COMMANDS {
                    busy.fill(done);
                }
                while let Some(others) = busy.take(done) {
                    (done, longest, heard) = (done + 1, longest.max(others), Instant::now());
                }
                busy.queue.check().unwrap();
            }
            assert!(heard.elapsed() < LIMIT, "{done} commands, and no more");
        }
        // Each turn of a queue begins one of its commands at least, and a few of each other queue.
        let most = u64::from(QUEUES) * u64::from(DEPTH) * QUANTUM;
        assert!(longest <= most, "{longest} commands were served while one waited, of {done}");
        drop(queues);
        controller.shutdown().unwrap();
        drop(controller);
        serving.stop();
    });
}

#[test]
fn a_disk_has_as_many_commands_as_its_queue_is_deep() {
    alone("a_disk_has_as_many_commands_as_its_queue_is_deep", "", || {
        /// One less than the entries that this target gives a disk, and a host.
        const FULL: u16 = 127;
        let serving = Serving::start();
        let mut controller = connected();
        let mut queue = controller.io_queue(1, FULL + 1).unwrap();
        queue.write(1, 0, 512, &[1; 512]).unwrap();
        serving.faults.stall(true);
        for lba in 0..u64::from(FULL) {
            let command = read_write(IoOpcode::READ, 1, lba, 1);
            queue.submit(command, Data::In(512)).unwrap().unwrap();
        }
        let all = Some(u64::from(FULL));
        serving.until("the disk has all of them", |now| now.namespaces[0].2.get("read_cmds") == all);
        serving.faults.stall(false);
        for _ in 0..FULL {
            let completion = queue.wait().unwrap();
            assert!(completion.cqe.status.is_success(), "{:?}", completion.cqe);
            queue.finish(completion, &mut []);
        }
        drop(queue);
        controller.shutdown().unwrap();
        drop(controller);
        serving.stop();
    });
}
