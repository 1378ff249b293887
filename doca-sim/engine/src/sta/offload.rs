//! Reads and writes, which no CPU of the program has to do with.
//!
//! ```text
//! write   capsule -> data: from the capsule, or by an RDMA read -> disk -> answer
//! read    capsule -> disk -> data by an RDMA write, if all is well -> answer
//! ```

use super::core::{ControlEvent, Notice, State, Target};
use super::handle::Handle;
use super::memory::{Buffer, PAGE};
use super::nvme::{self, Command, Sgl, Status};
use super::qp::{Capsule, Qp, Sent};
use super::stats;
use crate::fabric::clock;
use crate::fault;
use crate::log;

/// A command that a unit serves.
pub(super) struct Offload {
    /// Whom to answer; nobody, if the queue pair is gone.
    pub(super) qp: Option<Handle>,
    /// The unit that holds it: a position.
    unit: usize,
    pub(super) space: Handle,
    end: Handle,
    pub(super) command: Command,
    len: usize,
    pub(super) buffer: Option<Buffer>,
    pub(super) queue: Option<Handle>,
    /// Its identifier at the disk, while the disk has it.
    pub(super) slot: Option<u16>,
    /// Since when the disk has it.
    pub(super) since: Option<u64>,
    /// Its answer is on the way or has arrived.
    answered: bool,
    /// It is over, but its disk, which is silent, still has the buffer.
    pub(super) abandoned: bool,
}

/// Why a command is not served.
enum Refused {
    /// Its answer.
    Status(Status),
    /// Something is lacking that will come back.
    Later,
}

impl Offload {
    /// Where the data are, for the disk: two pages, or one and a list of the rest.
    pub(super) fn prps(&self) -> [u64; 2] {
        let Some(buffer) = &self.buffer else { return [0; 2] };
        let pages = self.len.div_ceil(PAGE);
        if pages <= 2 {
            return [buffer.page(0), if pages == 2 { buffer.page(1) } else { 0 }];
        }
        let list: Vec<u8> = (1..pages).flat_map(|page| buffer.page(page).to_le_bytes()).collect();
        let at = list_at(buffer);
        buffer.write(at, &list);
        [buffer.page(0), buffer.page(at / PAGE)]
    }

    /// Whether the disk has had it for longer than that.
    pub(super) fn is_late(&self, now: u64, patience: u64) -> bool {
        self.slot.is_some() && self.since.is_some_and(|since| now.saturating_sub(since) >= patience)
    }
}

/// Buffers for data of more than a page have one behind them for the list of their pages.
fn list_at(buffer: &Buffer) -> usize {
    buffer.len() - PAGE
}

impl Qp {
    /// Serves a read or write; `false` if it must wait.
    pub(super) fn offload(&mut self, target: &mut Target, capsule: &Capsule, max_io_size: u32) -> bool {
        let command = capsule.command;
        match self.begin(target, capsule, max_io_size) {
            Ok(()) => true,
            Err(Refused::Later) => false,
            Err(Refused::Status(status)) => {
                self.consumed += 1;
                self.refuse(target, &command, status);
                true
            }
        }
    }

    fn begin(&mut self, target: &mut Target, capsule: &Capsule, max_io_size: u32) -> Result<(), Refused> {
        let command = capsule.command;
        let refuse = |status| Err(Refused::Status(status));
        if command.psdt() == 0 {
            return refuse(Status::INVALID_FIELD);
        }
        let write = command.opcode() == nvme::WRITE;
        let (room, inline) = match command.sgl() {
            Sgl::Keyed { len, .. } => (u64::from(len), None),
            Sgl::InCapsule { offset, len } if write => {
                let bytes = usize::try_from(offset)
                    .ok()
                    .and_then(|offset| capsule.data.get(offset..)?.get(..len as usize));
                let Some(bytes) = bytes else { return refuse(Status::SGL_OFFSET) };
                (u64::from(len), Some(bytes))
            }
            _ => return refuse(Status::SGL_TYPE),
        };
        let space = self
            .subsystem
            .and_then(|subsystem| target.subsystems.get(&subsystem)?.spaces.get(&command.nsid()).copied());
        let Some((handle, known)) = space
            .and_then(|space| Some((space, target.spaces.get(&space)?)))
            .filter(|(_, space)| space.removing.is_none())
        else {
            return refuse(Status::INVALID_NAMESPACE);
        };
        let len = command.blocks() * u64::from(known.block);
        let end = known.end;
        if len > room {
            return refuse(Status::SGL_LENGTH);
        }
        if len > u64::from(max_io_size) {
            return refuse(Status::INVALID_FIELD);
        }
        let len = len as usize;
        if target.units[self.unit].commands >= target.max_commands {
            return Err(Refused::Later);
        }
        let Target { staging, commands, .. } = &mut *target;
        let buffer = staging.take(len, |alike| {
            let held = |command: &&Offload| command.end == end && command.buffer.as_ref().is_some_and(alike);
            commands.values().filter(held).count()
        });
        let Some(buffer) = buffer else { return Err(Refused::Later) };
        self.consumed += 1;
        let number = target.next_command;
        target.next_command += 1;
        target.units[self.unit].commands += 1;
        if let Some(space) = target.spaces.get_mut(&handle) {
            space.in_flight += 1;
            let (commands, bytes) = match write {
                true => (stats::space::WRITE_CMDS, stats::space::WRITE_BYTES),
                false => (stats::space::READ_CMDS, stats::space::READ_BYTES),
            };
            space.counters.add(commands, 1);
            space.counters.add(bytes, len as u64);
        }
        let piece = buffer.piece(0, len);
        if let Some(bytes) = inline {
            buffer.write(0, &bytes[..len]);
        }
        let made = Offload {
            qp: Some(self.handle),
            unit: self.unit,
            space: handle,
            end,
            command,
            len,
            buffer: Some(buffer),
            queue: None,
            slot: None,
            since: None,
            answered: false,
            abandoned: false,
        };
        target.commands.insert(number, made);
        if let Some(fatal) = fault::unit() {
            let unit = target.units[self.unit].handle;
            log::error!("execution unit {} has failed", self.unit);
            target.broken = fatal;
            target.tell(ControlEvent::UnitError { fatal, unit });
        }
        self.offloaded.insert(number);
        match command.sgl() {
            Sgl::Keyed { addr, key, .. } if write => {
                self.fetch(target, addr, key, piece, Sent::Fetch(number))
            }
            _ => target.enqueue(number, end),
        }
        Ok(())
    }

    /// The data of a write have come.
    pub(super) fn fetched(&mut self, target: &mut Target, number: u64) {
        if let Some(end) = target.commands.get(&number).map(|command| command.end) {
            target.enqueue(number, end);
        }
    }

    /// A disk has answered.
    fn conclude(&mut self, target: &mut Target, number: u64, status: Status, from_disk: bool, result: u64) {
        let Some(offload) = target.commands.get_mut(&number) else { return };
        offload.answered = true;
        let offload = &*offload;
        let command = offload.command;
        let mut answer = nvme::completion(command.cid(), self.sq_head(), status);
        answer[..8].copy_from_slice(&result.to_le_bytes());
        let failed = status.0 & 0x7ff != 0;
        if failed {
            if let Some(space) = target.spaces.get(&offload.space) {
                space.counters.add(stats::space::ERRORS, 1);
            }
            target.notice(self, if from_disk { 1 } else { 0 }, &command, answer);
        } else if command.opcode() == nvme::READ
            && let (Sgl::Keyed { addr, key, .. }, Some(buffer)) = (command.sgl(), &offload.buffer)
        {
            let piece = buffer.piece(0, offload.len);
            self.deliver_data(target, addr, key, piece);
        }
        self.answer(target, &answer, command.invalidates(), Sent::Answer(Some(number)));
    }
}

impl Target {
    /// Puts a command on a queue of its back end.
    pub(super) fn enqueue(&mut self, number: u64, end: Handle) {
        let queue = self.queue_for(end);
        if let Some(command) = self.commands.get_mut(&number) {
            command.queue = queue;
        }
        match queue.and_then(|queue| self.queues.get_mut(&queue)) {
            Some(queue) => queue.waiting.push_back(number),
            None => log::error!("a back end with namespaces has no queue"),
        }
    }

    /// A command is over.
    pub(super) fn finish(&mut self, number: u64) {
        let Some(command) = self.commands.get_mut(&number) else { return };
        let (unit, space) = (command.unit, command.space);
        let was_counted = !command.abandoned;
        if command.slot.is_none() {
            if let Some(queue) = command.queue.and_then(|queue| self.queues.get_mut(&queue)) {
                queue.waiting.retain(|waiting| *waiting != number);
            }
            if let Some(buffer) = self.commands.remove(&number).and_then(|command| command.buffer) {
                self.staging.put(buffer);
            }
        } else {
            // The disk still has its buffer.
            command.abandoned = true;
            command.answered = true;
            command.qp = None;
        }
        if was_counted {
            self.units[unit].commands -= 1;
            if let Some(space) = self.spaces.get_mut(&space) {
                space.in_flight -= 1;
            }
        }
    }

    /// Tells the program of an error answer, if it wants to know.
    pub(super) fn notice(
        &mut self,
        qp: &Qp,
        kind: u32,
        command: &Command,
        completion: [u8; nvme::COMPLETION],
    ) {
        let Some(subsystem) = qp.subsystem.filter(|_| self.notifies) else { return };
        // Where the parameter is that is at fault, as in the error log: byte, and bit in the upper half.
        let location = match u16::from_le_bytes([completion[14], completion[15]]) >> 1 & 0xff {
            0x0b => 4,
            0x0f => 32,
            0x11 => 39,
            0x16 => 24,
            _ => 0,
        };
        self.tell(ControlEvent::Notify(Notice {
            kind,
            completion,
            subsystem,
            qp: qp.handle,
            opcode: command.opcode(),
            cid: command.cid(),
            nsid: command.nsid() as u16,
            lba: command.lba(),
            location,
        }));
    }
}

impl State {
    /// A disk has answered a command.
    pub(super) fn disk_said(&mut self, number: u64, said: super::backend::Said) {
        let Some(command) = self.target.commands.get_mut(&number) else { return };
        command.slot = None;
        if command.answered && !command.abandoned {
            // It ends when its answer has been sent.
            return;
        }
        match command.qp.and_then(|qp| self.qps.get_mut(&qp)) {
            // The identifier and the queue's head are the disk's own affair.
            Some(qp) => qp.conclude(&mut self.target, number, Status(said.status), true, said.result),
            None => self.target.finish(number),
        }
    }

    /// Answers commands for their disk, which has not done so for too long.
    pub(super) fn abandon(&mut self, which: impl Fn(&Offload) -> bool) {
        let now = clock::now();
        let patience = self.target.patience;
        let late: Vec<u64> = self
            .target
            .commands
            .iter()
            .filter(|(_, command)| which(command) && !command.answered && command.is_late(now, patience))
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            let Some(command) = self.target.commands.get(&number) else { continue };
            log::warning!("a command is answered without its disk, which is silent");
            match command.qp.and_then(|qp| self.qps.get_mut(&qp)) {
                Some(qp) => qp.conclude(&mut self.target, number, Status::ABORTED, false, 0),
                None => self.target.finish(number),
            }
        }
    }
}
