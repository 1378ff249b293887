//! Back ends: disks, as the queues that their program has lent.
//!
//! ```text
//! submission queue   entries of 64 bytes, written here, fetched by the disk up to what its doorbell says
//! completion queue   entries of 16 bytes, written by the disk, each with the phase of its round; read up to what the other
//!                    doorbell says
//! doorbells          32 bits each: the next entry to write, the next entry to read
//! ```
//!
//! All of it is plain memory here, and memory of the disk in the field. Nothing else passes between the two.

use super::core::{ControlEvent, Core, State, Target, UnitKind};
use super::handle::{Handle, Kind};
use super::nvme::{COMMAND, COMPLETION};
use super::stats::{self, Counters};
use crate::code::{Code, Res};
use crate::fabric::clock;
use crate::log;
use crate::mmap::{Backing, Mmap};
use crate::topology::Device;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

const DOORBELL_LINE: usize = 64;

#[derive(Default)]
pub(crate) struct BackEnd {
    /// Which of its queues gets the next command.
    pub(super) turn: usize,
}

/// Memory of the program, which stays as it is until the queue is destroyed.
struct Lent {
    at: usize,
    len: usize,
    _map: Arc<Mmap>,
}

impl Lent {
    /// BAD_STATE if the map was not started, NOT_PERMITTED without the control device or the right to write.
    fn of(map: &Mmap, control: &Device, what: &str) -> Res<Lent> {
        if !map.is_started() {
            log::error!("the map of the {what} is not started");
            return Err(Code::BAD_STATE);
        }
        let local = matches!(map.backing(), Backing::Local(_));
        if !local || !map.has_device(control) || map.access() & 1 == 0 {
            log::error!(
                "the map of the {what} must have the control device, {}, and be for local reading and writing",
                control.ibdev
            );
            return Err(Code::NOT_PERMITTED);
        }
        let (at, len) = map.range().ok_or(Code::BAD_STATE)?;
        Ok(Lent { at, len, _map: map.share()? })
    }

    fn doorbell(&self, offset: u16, what: &str) -> Res<usize> {
        let offset = usize::from(offset);
        if !offset.is_multiple_of(4) || offset + 4 > self.len {
            log::error!("the {what} doorbell is not within its map, or not at a multiple of 4");
            return Err(Code::INVALID_VALUE);
        }
        Ok(self.at + offset)
    }

    fn overlaps(&self, other: &Lent) -> bool {
        self.at < other.at + other.len && other.at < self.at + self.len
    }
}

/// The two queues and their doorbells.
struct Rings {
    sq: Lent,
    cq: Lent,
    _bells: [Lent; 2],
    sq_bell: usize,
    cq_bell: usize,
    entries: u32,
    tail: u32,
    head: u32,
    phase: u32,
}

/// What a disk says about a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Said {
    pub(super) cid: u16,
    /// Status code, type and flags.
    pub(super) status: u16,
    pub(super) result: u64,
}

impl Rings {
    /// Checks the geometry, in this order.
    fn new(sq: Lent, cq: Lent, bells: [Lent; 2], offsets: [u16; 2]) -> Res<Rings> {
        let entries = sq.len / COMMAND;
        let fits = sq.len.is_multiple_of(COMMAND) && cq.len.is_multiple_of(COMPLETION);
        if !fits
            || cq.len / COMPLETION != entries
            || !entries.is_power_of_two()
            || !(2..=65536).contains(&entries)
        {
            log::error!(
                "{} bytes of submissions and {} of completions are not the same power of two of entries",
                sq.len,
                cq.len
            );
            return Err(Code::INVALID_VALUE);
        }
        let sq_bell = bells[0].doorbell(offsets[0], "submission")?;
        let cq_bell = bells[1].doorbell(offsets[1], "completion")?;
        if bells.iter().any(|bell| !bell.at.is_multiple_of(DOORBELL_LINE)) {
            log::error!("a map of doorbells must start at a multiple of {DOORBELL_LINE}");
            return Err(Code::INVALID_VALUE);
        }
        if !sq.at.is_multiple_of(COMMAND) || !cq.at.is_multiple_of(COMPLETION) {
            log::error!("queues must start at a multiple of the size of their entries");
            return Err(Code::INVALID_VALUE);
        }
        Ok(Rings {
            sq,
            cq,
            _bells: bells,
            sq_bell,
            cq_bell,
            entries: entries as u32,
            tail: 0,
            head: 0,
            phase: 1,
        })
    }

    fn word(at: usize) -> &'static AtomicU32 {
        let pointer = std::ptr::with_exposed_provenance_mut::<u32>(at);
        // SAFETY: aligned and inside memory that the program has lent until the queue's destruction, which ends `self`
        // too; both sides reach it atomically.
        unsafe { AtomicU32::from_ptr(pointer) }
    }

    /// Writes an entry, then tells the disk. The queue has room.
    fn submit(&mut self, entry: &[u8; COMMAND]) {
        let at = self.sq.at + self.tail as usize * COMMAND;
        let room = std::ptr::with_exposed_provenance_mut::<u8>(at);
        // SAFETY: an entry of the lent queue that the disk does not read before the doorbell says so.
        unsafe { std::ptr::copy_nonoverlapping(entry.as_ptr(), room, COMMAND) };
        self.tail = (self.tail + 1) & (self.entries - 1);
        Self::word(self.sq_bell).store(self.tail, Release);
    }

    /// The next completion, if the disk has written it.
    fn complete(&mut self) -> Option<Said> {
        let at = self.cq.at + self.head as usize * COMPLETION;
        let last = Self::word(at + 12).load(Acquire);
        if last >> 16 & 1 != self.phase {
            return None;
        }
        let words = [0, 4].map(|offset| Self::word(at + offset).load(Acquire));
        self.head = (self.head + 1) & (self.entries - 1);
        self.phase ^= u32::from(self.head == 0);
        Self::word(self.cq_bell).store(self.head, Release);
        Some(Said {
            cid: last as u16,
            status: (last >> 17) as u16,
            result: u64::from(words[0]) | u64::from(words[1]) << 32,
        })
    }
}

/// A queue of a back end.
pub(crate) struct Queue {
    pub(super) end: Handle,
    rings: Rings,
    /// The unit that serves it: a position.
    pub(super) unit: usize,
    /// Commands at the disk, by the identifier that it knows.
    slots: Vec<Option<u64>>,
    free: Vec<u16>,
    /// Commands that wait for room.
    pub(super) waiting: std::collections::VecDeque<u64>,
    pub(super) counters: Counters,
    pub(super) mapping: Counters,
    /// The program knows that the disk does not answer.
    told: bool,
    /// The task that ends the queue.
    pub(super) destroying: Option<usize>,
}

impl Queue {
    pub(super) fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// The maps of a queue and its doorbells.
pub(crate) struct Maps<'a> {
    pub(crate) sq: &'a Mmap,
    pub(crate) sq_bell: &'a Mmap,
    pub(crate) sq_offset: u16,
    pub(crate) cq: &'a Mmap,
    pub(crate) cq_bell: &'a Mmap,
    pub(crate) cq_offset: u16,
}

impl Core {
    /// `doca_sta_be_create`
    pub(crate) fn create_back_end(&self) -> Res<Handle> {
        let mut state = self.hold();
        let target = &mut state.target;
        target.require_setup()?;
        if target.ends.len() >= self.limits.max_be as usize {
            log::error!("there are {} back ends already", self.limits.max_be);
            return Err(Code::NO_MEMORY);
        }
        let handle = target.handle(Kind::BackEnd);
        target.ends.insert(handle, BackEnd::default());
        Ok(handle)
    }

    /// `doca_sta_be_destroy`
    pub(crate) fn destroy_back_end(&self, end: Handle) -> Res {
        let mut state = self.hold();
        let target = &mut state.target;
        target.ends.get(&end).ok_or(Code::INVALID_VALUE)?;
        target.require_setup()?;
        let queues = target.queues.values().filter(|queue| queue.end == end).count();
        let spaces = target.spaces.values().filter(|space| space.end == end).count();
        if queues > 0 || spaces > 0 {
            log::error!("the back end still has {queues} queues and {spaces} namespaces");
            return Err(Code::IN_USE);
        }
        target.ends.remove(&end);
        Ok(())
    }

    /// `doca_sta_be_add_queue`
    pub(crate) fn add_queue(&self, end: Handle, maps: &Maps<'_>) -> Res<Handle> {
        let mut state = self.hold();
        let target = &mut state.target;
        target.ends.get(&end).ok_or(Code::INVALID_VALUE)?;
        target.require_setup()?;
        let devices = &crate::topology::get()?.devices;
        let control = devices.get(self.control).ok_or(Code::UNEXPECTED)?;
        let named = [
            (maps.sq, "submission queue"),
            (maps.sq_bell, "submission doorbell"),
            (maps.cq, "completion queue"),
            (maps.cq_bell, "completion doorbell"),
        ];
        if let Some((_, what)) = named.iter().find(|(map, _)| !map.is_started()) {
            log::error!("the map of the {what} is not started");
            return Err(Code::BAD_STATE);
        }
        let [sq, sq_bell, cq, cq_bell] = named.map(|(map, what)| Lent::of(map, control, what));
        let rings = Rings::new(sq?, cq?, [sq_bell?, cq_bell?], [maps.sq_offset, maps.cq_offset])?;
        if target.queues.values().filter(|queue| queue.end == end).count()
            >= self.limits.max_qs_per_be as usize
        {
            log::error!("the back end has {} queues already", self.limits.max_qs_per_be);
            return Err(Code::NO_MEMORY);
        }
        if target.queues.values().any(|queue| queue.rings.sq.overlaps(&rings.sq)) {
            log::error!("the submission queue is another queue's already");
            return Err(Code::ALREADY_EXIST);
        }
        let load = |unit: usize| target.queues.values().filter(|queue| queue.unit == unit).count();
        let unit = target.units_of(UnitKind::Beq).min_by_key(|unit| load(*unit)).ok_or(Code::UNEXPECTED)?;
        let mapping = Counters::new(stats::mapping::NAMES);
        mapping.set(stats::mapping::EU_ID, target.units[unit].id.into());
        mapping.set(stats::mapping::INDEX_IN_EU, load(unit) as u64);
        let handle = target.handle(Kind::Queue);
        // One entry stays empty, or a full queue would look like an empty one.
        let room = rings.entries - 1;
        let queue = Queue {
            end,
            rings,
            unit,
            slots: vec![None; room as usize],
            free: (0..room).rev().map(|cid| cid as u16).collect(),
            waiting: std::collections::VecDeque::new(),
            counters: Counters::new(stats::beq::NAMES),
            mapping,
            told: false,
            destroying: None,
        };
        target.queues.insert(handle, queue);
        Ok(handle)
    }
}

impl Target {
    /// The queue that the next command of a back end goes to.
    pub(super) fn queue_for(&mut self, end: Handle) -> Option<Handle> {
        let usable: Vec<Handle> = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.end == end && queue.destroying.is_none())
            .map(|(handle, _)| *handle)
            .collect();
        let end = self.ends.get_mut(&end)?;
        end.turn = end.turn.wrapping_add(1);
        usable.get(end.turn % usable.len().max(1)).copied()
    }

    /// Hands waiting commands to the disk of a queue. Tells whether it did.
    pub(super) fn feed(&mut self, handle: Handle) -> bool {
        let mut fed = false;
        loop {
            let Some(queue) = self.queues.get_mut(&handle) else { return fed };
            let Some(number) = queue.waiting.front().copied() else { return fed };
            let Some(cid) = queue.free.pop() else { return fed };
            queue.waiting.pop_front();
            let entry = self.commands.get_mut(&number).and_then(|command| {
                let space = self.spaces.get(&command.space)?;
                command.since = Some(clock::now());
                command.slot = Some(cid);
                Some(command.command.for_disk(cid, space.on_disk, command.prps()))
            });
            let Some(queue) = self.queues.get_mut(&handle) else { return fed };
            let Some(entry) = entry else {
                queue.free.push(cid);
                continue;
            };
            queue.slots[usize::from(cid)] = Some(number);
            queue.rings.submit(&entry);
            queue.counters.add(stats::beq::SQE_POSTED, 1);
            self.units[queue.unit].counters.add(stats::beq::SQE_POSTED, 1);
            fed = true;
        }
    }

    /// The next command that a disk has answered.
    fn reap(&mut self, handle: Handle) -> Option<(u64, Said)> {
        loop {
            let queue = self.queues.get_mut(&handle)?;
            let said = queue.rings.complete()?;
            let unit = &self.units[queue.unit].counters;
            for counters in [&queue.counters, unit] {
                counters.add(stats::beq::CQE_POLLED, 1);
                counters.add(stats::beq::CQE_ERRORS, u64::from(said.status & 0x7ff != 0));
            }
            queue.told = false;
            match queue.slots.get_mut(usize::from(said.cid)).and_then(Option::take) {
                Some(number) => {
                    queue.free.push(said.cid);
                    return Some((number, said));
                }
                None => log::error!("a disk has completed command {}, which it was not given", said.cid),
            }
        }
    }

    /// Gives up the commands that a queue's disk has not answered: the queue ends. Until the program has deleted the queue on the
    /// disk, which nobody hears of here, the disk may write to their buffers: no other command gets them.
    fn forget(&mut self, handle: Handle) {
        let Some(queue) = self.queues.remove(&handle) else { return };
        for number in queue.slots.into_iter().flatten() {
            self.lost.extend(self.commands.remove(&number).and_then(|command| command.buffer));
        }
    }
}

impl State {
    /// Takes what disks have answered, and hands them what waits. Tells whether there was anything.
    pub(super) fn serve_disks(&mut self) -> bool {
        let handles: Vec<Handle> = self.target.queues.keys().copied().collect();
        let mut busy = false;
        for handle in handles {
            while let Some((number, said)) = self.target.reap(handle) {
                self.disk_said(number, said);
                busy = true;
            }
            busy |= self.target.feed(handle);
        }
        busy
    }

    /// Tells of disks that are silent.
    pub(super) fn watch_disks(&mut self, patience: u64) {
        let now = clock::now();
        let target = &mut self.target;
        for handle in target.queues.keys().copied().collect::<Vec<_>>() {
            let Some(queue) = target.queues.get_mut(&handle) else { continue };
            let late = |number: &u64| {
                target.commands.get(number).is_some_and(|command| command.is_late(now, patience))
            };
            if queue.told || !queue.slots.iter().flatten().any(late) {
                continue;
            }
            queue.told = true;
            let end = queue.end;
            log::warning!("a disk has not completed a command in {} ms", patience / clock::millis(1));
            target.tell(ControlEvent::BackEndTimeout { end, queue: handle });
        }
    }

    /// Ends queues whose program has asked for it. Tells whether it did.
    pub(super) fn finish_destruction(&mut self) -> bool {
        let mut done = false;
        for handle in self.target.queues.keys().copied().collect::<Vec<_>>() {
            let Some(queue) = self.target.queues.get(&handle) else { continue };
            let Some(task) = queue.destroying else { continue };
            let end = queue.end;
            let others = self.target.queues.iter().any(|(other, q)| *other != handle && q.end == end);
            if !others && self.target.spaces.values().any(|space| space.end == end) {
                log::error!("the queue is the last of a back end that has namespaces");
                if let Some(queue) = self.target.queues.get_mut(&handle) {
                    queue.destroying = None;
                }
                self.target.tell(ControlEvent::Done { task, code: Code::IN_USE });
                done = true;
                continue;
            }
            if let Some(queue) = self.target.queues.get_mut(&handle) {
                let moved = std::mem::take(&mut queue.waiting);
                for number in moved {
                    self.target.enqueue(number, end);
                }
            }
            self.abandon(|command| command.queue == Some(handle));
            let Some(queue) = self.target.queues.get(&handle) else { continue };
            let left =
                |number: &u64| self.target.commands.get(number).is_some_and(|command| !command.abandoned);
            if queue.slots.iter().flatten().any(left) {
                continue;
            }
            self.target.forget(handle);
            self.target.tell(ControlEvent::Done { task, code: Code::SUCCESS });
            done = true;
        }
        done
    }
}
