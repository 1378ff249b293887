//! The controller: registers, queues, and what runs in each step.

use crate::disk::{Config, Counters};
use crate::faults::Faults;
use crate::raw::{Bar, Map};
use nvme_wire::admin::AsyncEvent;
use nvme_wire::command::IoOpcode;
use nvme_wire::property::{Aqa, Cap, Cc, Csts, Version, cq_doorbell, offset, sq_doorbell};
use nvme_wire::{Cqe, Sqe, Status};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Commands that one queue runs before the next has its turn.
const TURN: usize = 32;
/// Asynchronous Event Requests at once: AERL + 1.
pub(crate) const MAX_EVENTS: usize = 4;

pub(crate) struct Sq {
    base: u64,
    entries: u32,
    head: u32,
    pub(crate) cqid: u16,
    /// A doorbell value that the queue does not have, reported once.
    bad_tail: Option<u32>,
}

pub(crate) struct Cq {
    base: u64,
    entries: u32,
    tail: u32,
    phase: bool,
    waiting: VecDeque<Waiting>,
}

/// A completion that cannot be posted yet.
struct Waiting {
    due: Option<Instant>,
    cqe: Cqe,
}

impl Sq {
    pub(crate) fn new(base: u64, entries: u32, cqid: u16) -> Self {
        Sq { base, entries, head: 0, cqid, bad_tail: None }
    }
}

impl Cq {
    pub(crate) fn new(base: u64, entries: u32) -> Self {
        Cq { base, entries, tail: 0, phase: true, waiting: VecDeque::new() }
    }
}

pub(crate) struct Controller {
    pub(crate) config: Config,
    pub(crate) map: Arc<Map>,
    pub(crate) sqs: BTreeMap<u16, Sq>,
    pub(crate) cqs: BTreeMap<u16, Cq>,
    pub(crate) features: BTreeMap<u8, u32>,
    /// Command identifiers of Asynchronous Event Requests, and events that wait for one.
    pub(crate) requests: VecDeque<u16>,
    events: VecDeque<AsyncEvent>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) pieces: Vec<(u64, usize)>,
    bar: Arc<Bar>,
    faults: Faults,
    pub(crate) counters: Arc<Counters>,
    enabled: bool,
    gone: bool,
}

impl Controller {
    pub(crate) fn new(
        config: Config,
        bar: Arc<Bar>,
        map: Arc<Map>,
        faults: Faults,
        counters: Arc<Counters>,
    ) -> Self {
        let cap =
            Cap { mqes: (config.max_queue_entries - 1) as u16, cqr: true, to: 20, css: 1, ..Cap::default() };
        bar.write64(offset::CAP, cap.into());
        bar.write(offset::VS, version().into());
        Controller {
            config,
            map,
            sqs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            features: BTreeMap::new(),
            requests: VecDeque::new(),
            events: VecDeque::new(),
            buffer: Vec::new(),
            pieces: Vec::new(),
            bar,
            faults,
            counters,
            enabled: false,
            gone: false,
        }
    }

    /// Does what there is to do; false when there was nothing.
    pub(crate) fn step(&mut self) -> bool {
        let faults = self.faults.clone();
        let _step = faults.step();
        if self.gone {
            return false;
        }
        if self.faults.gone() {
            self.gone = true;
            self.bar.vanish();
            return true;
        }
        if self.faults.frozen() {
            return false;
        }
        let mut worked = self.look_at_configuration();
        if !self.enabled {
            return worked;
        }
        let stalled = self.faults.stalled();
        let ids: Vec<u16> = self.sqs.keys().copied().filter(|&id| id == 0 || !stalled).collect();
        for id in ids {
            worked |= self.run_queue(id);
        }
        self.deliver_events();
        let ids: Vec<u16> = self.cqs.keys().copied().filter(|&id| id == 0 || !stalled).collect();
        for id in ids {
            worked |= self.post(id);
        }
        worked
    }

    fn look_at_configuration(&mut self) -> bool {
        let cc = Cc::from(self.bar.read(offset::CC));
        let csts = Csts::from(self.bar.read(offset::CSTS));
        if cc.en && !self.enabled && !csts.cfs {
            self.enabled = self.enable(&cc);
            let csts = Csts { rdy: self.enabled, cfs: !self.enabled, ..Csts::default() };
            self.bar.write(offset::CSTS, csts.into());
            return true;
        }
        if !cc.en && (csts.rdy || csts.cfs || csts.shst != 0 || self.enabled) {
            self.reset();
            self.bar.write(offset::CSTS, Csts::default().into());
            return true;
        }
        if cc.shn != 0 && csts.shst == 0 {
            for namespace in &self.config.namespaces {
                // Nobody to tell: the shutdown has no status.
                _ = namespace.flush();
            }
            self.bar.write(offset::CSTS, Csts { shst: 2, ..csts }.into());
            return true;
        }
        false
    }

    fn enable(&mut self, cc: &Cc) -> bool {
        let aqa = Aqa::from(self.bar.read(offset::AQA));
        let (asq, acq) = (self.bar.read64(offset::ASQ), self.bar.read64(offset::ACQ));
        let aligned = |base: u64| base != 0 && base.is_multiple_of(4096);
        if cc.css != 0
            || cc.mps != 0
            || cc.ams != 0
            || aqa.asqs == 0
            || aqa.acqs == 0
            || !aligned(asq)
            || !aligned(acq)
        {
            return false;
        }
        self.reset();
        self.add_cq(0, Cq::new(acq, u32::from(aqa.acqs) + 1));
        self.add_sq(0, Sq::new(asq, u32::from(aqa.asqs) + 1, 0));
        true
    }

    fn reset(&mut self) {
        self.enabled = false;
        self.sqs.clear();
        self.cqs.clear();
        self.features.clear();
        self.requests.clear();
        self.events.clear();
    }

    pub(crate) fn add_cq(&mut self, id: u16, queue: Cq) {
        self.bar.write(cq_doorbell(id, 0), 0);
        self.cqs.insert(id, queue);
    }

    pub(crate) fn add_sq(&mut self, id: u16, queue: Sq) {
        self.bar.write(sq_doorbell(id, 0), 0);
        self.sqs.insert(id, queue);
    }

    /// Forgets completions of a queue that were not posted.
    pub(crate) fn drop_waiting(&mut self, sqid: u16) {
        for queue in self.cqs.values_mut() {
            queue.waiting.retain(|waiting| waiting.cqe.sqid != sqid);
        }
    }

    fn run_queue(&mut self, id: u16) -> bool {
        let mut worked = false;
        for _ in 0..TURN {
            // Deleted by a command that just ran.
            let Some(queue) = self.sqs.get_mut(&id) else { return worked };
            let tail = self.bar.read(sq_doorbell(id, 0));
            if tail >= queue.entries {
                if queue.bad_tail.replace(tail) != Some(tail) {
                    self.event(AsyncEvent::INVALID_DOORBELL);
                }
                return worked;
            }
            if tail == queue.head {
                return worked;
            }
            let mut bytes = [0; 64];
            if self.map.read(queue.base + u64::from(queue.head) * 64, &mut bytes).is_err() {
                self.fail();
                return true;
            }
            queue.head = (queue.head + 1) % queue.entries;
            let (head, cqid) = (queue.head as u16, queue.cqid);
            worked = true;
            let command = Sqe::parse(&bytes);
            let (outcome, due) = if id == 0 {
                (self.run_admin(&command), None)
            } else {
                let (failure, latency) = self.faults.next(IoOpcode(command.opcode));
                let outcome = match failure {
                    Some(status) => Err(status),
                    None => self.run_io(&command).map(|()| Some(0)),
                };
                self.counters.commands.fetch_add(1, Ordering::Relaxed);
                self.counters.errors.fetch_add(u64::from(outcome.is_err()), Ordering::Relaxed);
                (outcome, (!latency.is_zero()).then(|| Instant::now() + latency))
            };
            let (result, status) = match outcome {
                Ok(Some(result)) => (result, Status::SUCCESS),
                Ok(None) => continue,
                Err(status) => (0, status),
            };
            let cqe = Cqe { result, sqhd: head, sqid: id, cid: command.cid, phase: false, status };
            self.complete(cqid, cqe, due);
        }
        worked
    }

    pub(crate) fn complete(&mut self, cqid: u16, cqe: Cqe, due: Option<Instant>) {
        if let Some(queue) = self.cqs.get_mut(&cqid) {
            queue.waiting.push_back(Waiting { due, cqe });
        }
    }

    /// Posts completions that are due while there is room.
    fn post(&mut self, id: u16) -> bool {
        let Some(queue) = self.cqs.get_mut(&id) else { return false };
        let mut worked = false;
        while let Some(next) = queue.waiting.front() {
            let head = self.bar.read(cq_doorbell(id, 0));
            let after = (queue.tail + 1) % queue.entries;
            if head >= queue.entries || after == head || next.due.is_some_and(|due| due > Instant::now()) {
                break;
            }
            let entry = Cqe { phase: queue.phase, ..next.cqe.clone() }.to_bytes();
            if self.map.write_completion(queue.base + u64::from(queue.tail) * 16, &entry).is_err() {
                self.fail();
                return true;
            }
            queue.waiting.pop_front();
            queue.tail = after;
            queue.phase ^= after == 0;
            worked = true;
        }
        worked
    }

    /// Something for the host to know.
    fn event(&mut self, event: AsyncEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }

    fn deliver_events(&mut self) {
        while !self.requests.is_empty() && !self.events.is_empty() {
            if let (Some(cid), Some(event)) = (self.requests.pop_front(), self.events.pop_front()) {
                self.complete_admin(cid, event.into(), Status::SUCCESS);
            }
        }
    }

    /// Completes an admin command that was held.
    pub(crate) fn complete_admin(&mut self, cid: u16, result: u64, status: Status) {
        let sqhd = self.sqs.get(&0).map_or(0, |queue| queue.head as u16);
        self.complete(0, Cqe { result, sqhd, cid, status, ..Cqe::default() }, None);
    }

    /// A queue cannot be reached: nothing goes on until the host resets.
    fn fail(&mut self) {
        self.reset();
        self.bar.write(offset::CSTS, Csts { cfs: true, ..Csts::default() }.into());
    }
}

/// NVMe 1.4.
pub(crate) fn version() -> Version {
    Version { mjr: 1, mnr: 4, ter: 0 }
}
