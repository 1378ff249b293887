//! A queue: one RDMA connection, with commands under way on it.

use crate::controller::Target;
use crate::failure::{Error, Result};
use crate::raw::{Layout, Link};
use nvme_wire::cm::{CmAccept, CmRequest};
use nvme_wire::command::{AdminOpcode, FABRICS, IoOpcode};
use nvme_wire::fabrics::{Connect, ConnectData, ConnectResult, Fabrics, FabricsType};
use nvme_wire::{Cqe, Layout as _, Sgl, Sqe, Status};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Where the data of a command are.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// It has none.
    None,
    /// The target writes this many bytes to memory of ours.
    In(usize),
    /// The target reads them from memory of ours.
    Out(&'a [u8]),
    /// They travel in the capsule.
    InCapsule(&'a [u8]),
}

/// A command that was answered. Its slot is taken until [`Queue::finish`].
#[derive(Debug)]
pub struct Completion {
    /// The response.
    pub cqe: Cqe,
    /// The key that the response invalidated.
    pub invalidated: Option<u32>,
    slot: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// The command identifier, while it is not answered.
    cid: Option<u16>,
    sent: bool,
    taken: bool,
    generation: u16,
}

/// A connected queue.
pub struct Queue {
    link: Link,
    qid: u16,
    entries: u16,
    slots: Vec<Slot>,
    submitted: u64,
    outstanding: usize,
    /// Answers to others than the one that was waited for.
    others: VecDeque<Completion>,
    limit: Duration,
    invalidate: bool,
    /// Whether responses carry SQHD: once Connect has told the target how long the queue is.
    flow_control: bool,
}

impl Queue {
    /// Connects by RDMA only: the target has not seen a command yet.
    ///
    /// `entries` is the number of entries that the submission queue shall have; one less can be under way.
    pub fn dial(target: &Target, qid: u16, entries: u16) -> Result<Self> {
        if entries < 2 {
            return Err(Error::Usage("a queue has at least 2 entries".into()).on(qid));
        }
        let request = CmRequest { qid, hrqsize: entries, hsqsize: entries - 1, ..CmRequest::default() };
        Queue::dial_with(target, qid, entries, &request.to_bytes())
    }

    /// Like [`Queue::dial`] with private data of the caller's.
    pub fn dial_with(target: &Target, qid: u16, entries: u16, private_data: &[u8]) -> Result<Self> {
        let slots = usize::from(entries.max(2)) - 1;
        let capsule = if qid == 0 { Sqe::LEN } else { Sqe::LEN + target.in_capsule };
        // The same for both, so that tests can send what does not belong there.
        let layout = Layout { slots, capsule: (capsule + 4096).next_multiple_of(64), data: target.max_data };
        let connected = Link::connect(&target.device, layout, target.address, private_data, target.limit);
        let (link, answer) = connected.map_err(|error| error.on(qid))?;
        let accept = CmAccept::read(&answer).unwrap_or_default();
        if accept.recfmt != 0 || accept.crqsize == 0 {
            let what = format!("accepted with RECFMT {} and CRQSIZE {}", accept.recfmt, accept.crqsize);
            return Err(Error::Protocol(what).on(qid));
        }
        Ok(Queue {
            link,
            qid,
            entries,
            slots: vec![Slot::default(); slots],
            submitted: 0,
            outstanding: 0,
            others: VecDeque::new(),
            limit: target.limit,
            invalidate: false,
            flow_control: false,
        })
    }

    /// Connects to a controller; gives its identifier.
    pub fn connect(&mut self, connect: &Connect, data: &ConnectData, in_capsule: bool) -> Result<u16> {
        let command = Fabrics::command(FabricsType::CONNECT, Sgl::none(), connect);
        let bytes = data.to_bytes();
        let data = if in_capsule { Data::InCapsule(&bytes) } else { Data::Out(&bytes) };
        let result = self.run(command, data, &mut [])?;
        self.flow_control = !connect.no_flow_control;
        Ok(ConnectResult::from(result).cntlid)
    }

    /// The queue's number; 0 is the admin queue.
    pub fn qid(&self) -> u16 {
        self.qid
    }

    /// How many commands can be under way.
    pub fn depth(&self) -> usize {
        self.slots.len()
    }

    /// How many commands are not answered.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether responses shall invalidate the key of our memory.
    pub fn set_invalidate(&mut self, invalidate: bool) {
        self.invalidate = invalidate;
    }

    /// How long [`Queue::run`] and [`Queue::wait`] wait at most.
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Submits a command; the queue chooses identifier and data pointer. `None`: all slots are taken.
    pub fn submit(&mut self, command: Sqe, data: Data<'_>) -> Result<Option<u16>> {
        let (invalidate, key) = (self.invalidate, self.link.key());
        let (len, out, in_capsule) = match data {
            Data::None => (0, &[][..], &[][..]),
            Data::In(len) => (len, &[][..], &[][..]),
            Data::Out(bytes) => (bytes.len(), bytes, &[][..]),
            Data::InCapsule(bytes) => (bytes.len(), &[][..], bytes),
        };
        if len > self.link.layout().data {
            let why = format!("{len} bytes are more than a command of this host moves");
            return Err(Error::Usage(why).on(self.qid));
        }
        self.submit_capsule(in_capsule, out, |address| {
            let sgl = match data {
                Data::None => Sgl::none(),
                Data::InCapsule(_) => Sgl::in_capsule(0, len as u32),
                _ if invalidate => Sgl::keyed_invalidate(address, len as u32, key),
                _ => Sgl::keyed(address, len as u32, key),
            };
            Sqe { psdt: 1, dptr: sgl.0, ..command }
        })
    }

    /// Submits a capsule of the caller's making, right or wrong: `build` gets the address of the slot's memory, into
    /// which `out` was copied. Only the command identifier is the queue's.
    pub fn submit_capsule(
        &mut self,
        in_capsule: &[u8],
        out: &[u8],
        build: impl FnOnce(u64) -> Sqe,
    ) -> Result<Option<u16>> {
        // An answer may overtake the news that its capsule was sent.
        while let Some(slot) = self.link.next_sent() {
            self.slots[slot].sent = true;
        }
        let free = |slot: &Slot| slot.cid.is_none() && !slot.taken && (slot.sent || slot.generation == 0);
        let Some(slot) = self.slots.iter().position(free) else { return Ok(None) };
        let most = u16::MAX / self.slots.len() as u16;
        let generation = self.slots[slot].generation % most + 1;
        let cid = slot as u16 + (generation - 1) * self.slots.len() as u16;
        let command = Sqe { cid, ..build(self.link.data_address(slot)) };
        self.link.write_data(slot, out);
        let sent = self.link.send(slot, [&command.to_bytes(), in_capsule]);
        sent.map_err(|error| error.on(self.qid))?;
        self.slots[slot] = Slot { cid: Some(cid), sent: false, taken: false, generation };
        self.submitted += 1;
        self.outstanding += 1;
        Ok(Some(cid))
    }

    /// Sends bytes that are no command, for which no answer is expected.
    pub fn send_garbage(&mut self, bytes: &[u8]) -> Result {
        let sent = self.link.send(self.slots.len() - 1, [bytes, &[]]);
        sent.map_err(|error| error.on(self.qid))
    }

    /// The memory that commands of this queue name, for a target that cannot reach it by key: the key in descriptors, the address where it
    /// begins, and DOCA's export descriptor.
    pub fn export(&self) -> Result<(u32, u64, Vec<u8>)> {
        self.link.export().map_err(|error| error.on(self.qid))
    }

    /// The key by which the target reaches our memory.
    pub fn key(&self) -> u32 {
        self.link.key()
    }

    /// Takes the next answer, if one has come.
    pub fn poll(&mut self) -> Result<Option<Completion>> {
        if let Some(other) = self.others.pop_front() {
            return Ok(Some(other));
        }
        self.arrived()
    }

    /// Takes the next answer, and waits for it until the limit.
    pub fn wait(&mut self) -> Result<Completion> {
        match self.others.pop_front() {
            Some(other) => Ok(other),
            None => self.wait_until(Instant::now() + self.limit, || "a command".to_owned()),
        }
    }

    /// Copies the data that came with an answer, and frees its slot.
    pub fn finish(&mut self, completion: Completion, to: &mut [u8]) {
        self.link.read_data(completion.slot, to);
        self.slots[completion.slot].taken = false;
    }

    /// Runs one command and waits for its answer; gives its result. Data that the target wrote are copied to `to`.
    pub fn run(&mut self, command: Sqe, data: Data<'_>, to: &mut [u8]) -> Result<u64> {
        let opcode = command.opcode;
        let type_of = FabricsType(command.nsid as u8);
        let name = move |qid: u16| match (opcode, qid) {
            (FABRICS, _) => type_of.to_string(),
            (opcode, 0) => AdminOpcode(opcode).to_string(),
            (opcode, _) => IoOpcode(opcode).to_string(),
        };
        let (qid, until) = (self.qid, Instant::now() + self.limit);
        let cid = loop {
            match self.submit(command.clone(), data)? {
                Some(cid) => break cid,
                None if Instant::now() > until => {
                    return Err(Error::Timeout { what: "a capsule".into(), after: self.limit }.on(qid));
                }
                None if self.outstanding < self.depth() => self.idle()?,
                None => return Err(Error::Usage("the queue is full".into()).on(self.qid)),
            }
        };
        loop {
            let completion = self.wait_until(until, || name(qid))?;
            if completion.cqe.cid != cid {
                self.others.push_back(completion);
                continue;
            }
            let Cqe { status, result, .. } = completion.cqe;
            self.finish(completion, if status.is_success() { to } else { &mut [] });
            return match status.is_success() {
                true => Ok(result),
                false => Err(Error::Status { command: name(qid), status, result }.on(qid)),
            };
        }
    }

    /// Like [`Queue::run`] where an error is expected: gives the status and the result.
    pub fn status(&mut self, command: Sqe, data: Data<'_>) -> Result<(Status, u64)> {
        match self.run(command, data, &mut []) {
            Ok(result) => Ok((Status::SUCCESS, result)),
            Err(crate::Failure { error: Error::Status { status, result, .. }, .. }) => Ok((status, result)),
            Err(other) => Err(other),
        }
    }

    /// Fails when the connection has ended.
    pub fn check(&mut self) -> Result {
        self.link.progress();
        self.link.check().map_err(|error| error.on(self.qid))
    }

    fn wait_until(&mut self, until: Instant, what: impl Fn() -> String) -> Result<Completion> {
        loop {
            if let Some(completion) = self.arrived()? {
                return Ok(completion);
            }
            if Instant::now() > until {
                return Err(Error::Timeout { what: what(), after: self.limit }.on(self.qid));
            }
            self.idle()?;
        }
    }

    /// Looks for a while, then sleeps for a moment.
    fn idle(&mut self) -> Result {
        for _ in 0..50 {
            if self.link.progress() {
                return Ok(());
            }
            std::thread::yield_now();
        }
        self.link.check().map_err(|error| error.on(self.qid))?;
        self.link.sleep(Duration::from_millis(20)).map_err(|error| error.on(self.qid))
    }

    fn arrived(&mut self) -> Result<Option<Completion>> {
        self.link.progress();
        let next = self.link.next_received().map_err(|error| error.on(self.qid))?;
        let Some(arrived) = next else { return Ok(None) };
        let wrong = |what: String| Err(Error::Protocol(what).on(self.qid));
        if arrived.len != Cqe::LEN {
            return wrong(format!("a response of {} bytes", arrived.len));
        }
        let cqe = Cqe::parse(&arrived.bytes);
        let slot = usize::from(cqe.cid) % self.slots.len();
        if self.slots[slot].cid != Some(cqe.cid) {
            return wrong(format!("a response to command {}, which is not under way", cqe.cid));
        }
        if cqe.phase || cqe.sqid != 0 {
            return wrong(format!("phase {} and SQID {} in a response", cqe.phase, cqe.sqid));
        }
        self.slots[slot].cid = None;
        self.slots[slot].taken = true;
        self.outstanding -= 1;
        // What the target has not consumed yet is not answered either.
        let entries = u64::from(self.entries);
        let behind = (self.submitted % entries + entries - u64::from(cqe.sqhd) % entries) % entries;
        if self.flow_control && (u64::from(cqe.sqhd) >= entries || behind > self.outstanding as u64) {
            return wrong(format!(
                "SQHD {} of {} entries, after {} commands of which {} are under way",
                cqe.sqhd, entries, self.submitted, self.outstanding
            ));
        }
        Ok(Some(Completion { cqe, invalidated: arrived.invalidated, slot }))
    }
}
