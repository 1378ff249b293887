//! The controller: reset, admin queue, identification, I/O queues.

use crate::queue::{IoQueue, Ring};
use crate::raw::Registers;
use crate::{Bar, DmaBuffer, Error, Mapper};
use nvme_wire::admin::{CreateCq, CreateSq, DeleteQueue, Features, Identify};
use nvme_wire::command::AdminOpcode;
use nvme_wire::feature::{FeatureId, NumberOfQueues};
use nvme_wire::identify::{Cns, IdentifyController, IdentifyNamespace, namespaces};
use nvme_wire::property::{Aqa, Cap, Cc, Csts, cq_doorbell, offset, sq_doorbell};
use nvme_wire::{Cqe, Layout, Sqe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries of the admin queue.
const ADMIN_ENTRIES: u32 = 32;
/// How many I/O queues are asked for.
const WANTED_QUEUES: u16 = 64;
/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the deletion of a queue may take. It is what is left to do about a disk that is silent.
const DELETE_LIMIT: Duration = Duration::from_secs(5);
/// Data of one command of [`IoQueue`] when the controller sets no smaller limit.
const MAX_DATA: usize = 128 << 10;

/// Memory of an I/O queue pair: rings of the same number of entries, and where their doorbells stand.
#[derive(Debug)]
pub struct QueueMemory {
    /// Queue identifier of both.
    pub qid: u16,
    /// Entries of each, a power of two.
    pub entries: u32,
    /// Submission queue: 64 bytes an entry. The memory may be longer.
    pub sq: DmaBuffer,
    /// Completion queue: 16 bytes an entry, zeroed. The memory may be longer.
    pub cq: DmaBuffer,
    /// Offset of the tail doorbell in the BAR, in bytes.
    pub sq_doorbell: u32,
    /// Offset of the head doorbell in the BAR, in bytes.
    pub cq_doorbell: u32,
}

/// A controller that was brought up. Dropping it resets the controller, so that it touches no memory any more.
pub struct Driver {
    registers: Registers,
    bar: Arc<dyn Bar>,
    mapper: Arc<dyn Mapper>,
    cap: Cap,
    admin: Option<Ring>,
    page: Option<DmaBuffer>,
    next_cid: u16,
    granted: u16,
    in_use: Vec<bool>,
    identity: Box<IdentifyController>,
    /// It did not even end a reset.
    lost: bool,
}

impl Driver {
    /// Resets the controller, enables it with an admin queue, identifies it, and asks for I/O queues.
    pub fn open(bar: Arc<dyn Bar>, mapper: Arc<dyn Mapper>) -> Result<Self, Error> {
        let registers = Registers::new(bar.clone())?;
        let cap = registers.read64(offset::CAP);
        if cap == u64::MAX {
            return Err(Error::Gone);
        }
        let cap = Cap::from(cap);
        if cap.mpsmin > 0 {
            return Err(Error::Unsuitable("it has no pages of 4096 bytes"));
        }
        if cap.css & 1 == 0 {
            return Err(Error::Unsuitable("it has no NVM command set"));
        }
        let mut driver = Driver {
            registers,
            bar,
            cap,
            admin: None,
            page: Some(DmaBuffer::new(4096, &mapper)?),
            mapper,
            next_cid: 0,
            granted: 0,
            in_use: Vec::new(),
            identity: Box::default(),
            lost: false,
        };
        driver.enable()?;
        driver.identity = Box::new(driver.identify(Cns::CONTROLLER, 0)?);
        let most = (driver.registers.len() as u32 - offset::DOORBELLS) / (8 << driver.cap.dstrd) - 1;
        let wanted = WANTED_QUEUES.min(most as u16).max(1) - 1;
        let value = NumberOfQueues { submission: wanted, completion: wanted };
        let features =
            Features { fid: FeatureId::NUMBER_OF_QUEUES, value: value.into(), ..Default::default() };
        let command = Sqe { opcode: AdminOpcode::SET_FEATURES.0, ..Sqe::default() }.with(&features);
        let granted = NumberOfQueues::from(driver.admin(command)?.result as u32);
        driver.granted = granted.submission.min(granted.completion).min(wanted) + 1;
        driver.in_use = vec![false; usize::from(driver.granted)];
        Ok(driver)
    }

    /// What Identify Controller returned.
    pub fn controller(&self) -> &IdentifyController {
        &self.identity
    }

    /// The controller's capabilities.
    pub fn capabilities(&self) -> &Cap {
        &self.cap
    }

    /// The BAR that was given.
    pub fn bar(&self) -> &Arc<dyn Bar> {
        &self.bar
    }

    /// The mapper that was given.
    pub fn mapper(&self) -> &Arc<dyn Mapper> {
        &self.mapper
    }

    /// How many I/O queues the controller granted.
    pub fn num_queues(&self) -> u16 {
        self.granted
    }

    /// Bytes that one command may move at most.
    pub fn max_transfer(&self) -> Option<usize> {
        (self.identity.mdts != 0)
            .then(|| 4096usize.checked_shl(self.identity.mdts.into()).unwrap_or(usize::MAX))
    }

    /// The active namespaces with their identifiers.
    pub fn namespaces(&mut self) -> Result<Vec<(u32, IdentifyNamespace)>, Error> {
        let mut list = [0; 4096];
        self.identify_page(Cns::ACTIVE_NAMESPACES, 0, &mut list)?;
        namespaces(&list).map(|nsid| Ok((nsid, self.identify(Cns::NAMESPACE, nsid)?))).collect()
    }

    /// Creates an I/O queue pair of `entries` entries, rounded down to a power of two that the controller takes, to be lent.
    /// Nobody may use it but who it is lent to, and it must come back to [`Driver::delete_queue`] or be forgotten: dropping
    /// it without deleting makes the controller write into memory that it cannot reach any more.
    pub fn create_queue(&mut self, entries: u32) -> Result<QueueMemory, Error> {
        let most = u32::from(self.cap.mqes) + 1;
        let entries = 1 << entries.clamp(2, most.max(2)).ilog2();
        let free = self.in_use.iter().position(|used| !used).ok_or(Error::NoQueue(self.granted))?;
        let memory = self.queue_memory(free as u16 + 1, entries)?;
        let (qid, qsize) = (memory.qid, (entries - 1) as u16);
        let mut command = Sqe { opcode: AdminOpcode::CREATE_CQ.0, ..Sqe::default() };
        command.set_prps([memory.cq.iova(), 0]);
        self.admin(command.with(&CreateCq { qid, qsize, pc: true, ..Default::default() }))?;
        let mut command = Sqe { opcode: AdminOpcode::CREATE_SQ.0, ..Sqe::default() };
        command.set_prps([memory.sq.iova(), 0]);
        let arguments = CreateSq { qid, qsize, pc: true, cqid: qid, ..Default::default() };
        if let Err(why) = self.admin(command.with(&arguments)) {
            self.delete(AdminOpcode::DELETE_CQ, qid)?;
            return Err(why);
        }
        self.in_use[free] = true;
        Ok(memory)
    }

    /// Deletes a queue pair. Commands that are outstanding end without a completion for us.
    ///
    /// A controller that does not answer within seconds is reset, which ends what it was told to do, and is of no use any more. If it
    /// does not even end the reset, nothing but the mapper keeps it from memory that it was told of: that of the queues is unmapped here.
    pub fn delete_queue(&mut self, mut memory: QueueMemory) -> Result<(), Error> {
        // Completions of others, which must not be taken for ours.
        memory.cq.clear();
        let deleted = self
            .delete(AdminOpcode::DELETE_SQ, memory.qid)
            .and_then(|()| self.delete(AdminOpcode::DELETE_CQ, memory.qid));
        if let Err(Error::Timeout { .. }) = &deleted {
            self.disable();
        }
        deleted?;
        self.in_use[usize::from(memory.qid) - 1] = false;
        Ok(())
    }

    /// Resets the controller for good: it touches no memory any more, if it obeys.
    fn disable(&mut self) {
        self.registers.write(offset::CC, 0);
        let disabled = self.wait("disabled", |csts| !csts.rdy);
        let memory = (self.admin.take(), self.page.take());
        if let Err(Error::NotReady { .. } | Error::Fatal) = disabled {
            // It may still write into the admin queue and the page.
            self.lost = true;
            std::mem::forget(memory);
        }
    }

    /// Creates an I/O queue for commands of this process.
    pub fn io_queue(&mut self, entries: u32) -> Result<IoQueue, Error> {
        let max_data = self.max_transfer().map_or(MAX_DATA, |most| most.min(MAX_DATA));
        let ring = Ring::new(self.registers.clone(), self.create_queue(entries)?);
        IoQueue::new(ring, &self.mapper, max_data, LIMIT)
    }

    /// Deletes such a queue.
    pub fn delete_io_queue(&mut self, queue: IoQueue) -> Result<(), Error> {
        self.delete_queue(queue.into_memory())
    }

    /// Runs an admin command without data, or with PRPs of the caller's, and gives its completion.
    pub fn admin(&mut self, command: Sqe) -> Result<Cqe, Error> {
        self.admin_within(command, LIMIT)
    }

    fn admin_within(&mut self, mut command: Sqe, limit: Duration) -> Result<Cqe, Error> {
        let opcode = AdminOpcode(command.opcode);
        command.cid = self.next_cid;
        self.next_cid = self.next_cid.wrapping_add(1);
        let ring = self.admin.as_mut().ok_or(Error::Gone)?;
        ring.submit(&command)?;
        loop {
            let cqe = ring.wait(|| opcode.to_string(), limit)?;
            if cqe.cid == command.cid {
                return if cqe.status.is_success() {
                    Ok(cqe)
                } else {
                    Err(Error::Admin { command: opcode, status: cqe.status })
                };
            }
        }
    }

    /// Tells the controller to shut down, and waits until it has.
    pub fn shutdown(self) -> Result<(), Error> {
        let cc = Cc::from(self.registers.read(offset::CC));
        self.registers.write(offset::CC, Cc { shn: 1, ..cc }.into());
        self.wait("shut down", |csts| csts.shst == 2)
    }

    fn identify<T: Layout>(&mut self, cns: Cns, nsid: u32) -> Result<T, Error> {
        let mut bytes = [0; 4096];
        self.identify_page(cns, nsid, &mut bytes)?;
        T::read(&bytes).map_err(|_| Error::Unsuitable("Identify is too short"))
    }

    fn identify_page(&mut self, cns: Cns, nsid: u32, to: &mut [u8; 4096]) -> Result<(), Error> {
        let page = self.page.take().ok_or(Error::Gone)?;
        let mut command = Sqe { opcode: AdminOpcode::IDENTIFY.0, nsid, ..Sqe::default() };
        command.set_prps([page.iova(), 0]);
        let outcome = self.admin(command.with(&Identify { cns, ..Default::default() }));
        page.read(0, to);
        self.page = Some(page);
        outcome.map(drop)
    }

    fn delete(&mut self, opcode: AdminOpcode, qid: u16) -> Result<(), Error> {
        let command = Sqe { opcode: opcode.0, ..Sqe::default() };
        self.admin_within(command.with(&DeleteQueue { qid }), DELETE_LIMIT).map(drop)
    }

    fn queue_memory(&self, qid: u16, entries: u32) -> Result<QueueMemory, Error> {
        Ok(QueueMemory {
            qid,
            entries,
            sq: DmaBuffer::new(entries as usize * 64, &self.mapper)?,
            cq: DmaBuffer::new(entries as usize * 16, &self.mapper)?,
            sq_doorbell: sq_doorbell(qid, self.cap.dstrd),
            cq_doorbell: cq_doorbell(qid, self.cap.dstrd),
        })
    }

    fn enable(&mut self) -> Result<(), Error> {
        self.registers.write(offset::CC, 0);
        self.wait("disabled", |csts| !csts.rdy)?;
        let memory = self.queue_memory(0, ADMIN_ENTRIES)?;
        let size = (ADMIN_ENTRIES - 1) as u16;
        self.registers.write(offset::AQA, Aqa { asqs: size, acqs: size }.into());
        self.registers.write64(offset::ASQ, memory.sq.iova());
        self.registers.write64(offset::ACQ, memory.cq.iova());
        self.admin = Some(Ring::new(self.registers.clone(), memory));
        self.registers.write(offset::CC, Cc { en: true, iosqes: 6, iocqes: 4, ..Cc::default() }.into());
        self.wait("ready", |csts| csts.rdy)
    }

    fn wait(&self, what: &'static str, reached: impl Fn(&Csts) -> bool) -> Result<(), Error> {
        let after = Duration::from_millis(500) * u32::from(self.cap.to.max(20));
        let until = Instant::now() + after;
        loop {
            let csts = self.registers.read(offset::CSTS);
            if csts == u32::MAX {
                return Err(Error::Gone);
            }
            let csts = Csts::from(csts);
            if reached(&csts) {
                return Ok(());
            }
            if csts.cfs {
                return Err(Error::Fatal);
            }
            if Instant::now() > until {
                return Err(Error::NotReady { what, after });
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.lost {
            self.disable();
        }
    }
}
