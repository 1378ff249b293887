//! A submission queue with its completion queue, driven by us.

use crate::driver::QueueMemory;
use crate::raw::Registers;
use crate::{DmaBuffer, Error, Mapper};
use nvme_wire::command::IoOpcode;
use nvme_wire::io::{DatasetManagement, DsmRange, ReadWrite};
use nvme_wire::{Cqe, Sqe};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAGE: usize = 4096;

/// Positions in both rings.
pub(crate) struct Ring {
    registers: Registers,
    memory: QueueMemory,
    tail: u16,
    /// What the controller has fetched, as completions tell.
    fetched: u16,
    head: u16,
    phase: bool,
}

impl Ring {
    pub(crate) fn new(registers: Registers, memory: QueueMemory) -> Self {
        Ring { registers, memory, tail: 0, fetched: 0, head: 0, phase: true }
    }

    pub(crate) fn memory(&self) -> &QueueMemory {
        &self.memory
    }

    pub(crate) fn into_memory(self) -> QueueMemory {
        self.memory
    }

    fn next(&self, index: u16) -> u16 {
        if u32::from(index) + 1 == self.memory.entries { 0 } else { index + 1 }
    }

    /// Writes a command and rings the doorbell.
    pub(crate) fn submit(&mut self, command: &Sqe) -> Result<(), Error> {
        let next = self.next(self.tail);
        if next == self.fetched {
            return Err(Error::Full);
        }
        self.memory.sq.write(usize::from(self.tail) * 64, &command.to_bytes());
        self.tail = next;
        self.registers.write(self.memory.sq_doorbell, u32::from(next));
        Ok(())
    }

    /// Takes the next completion.
    pub(crate) fn poll(&mut self) -> Option<Cqe> {
        let at = usize::from(self.head) * 16;
        if (self.memory.cq.load(at + 12) >> 16 & 1 == 1) != self.phase {
            return None;
        }
        let mut entry = [0; 16];
        self.memory.cq.read(at, &mut entry);
        let cqe = Cqe::parse(&entry);
        self.head = self.next(self.head);
        self.phase ^= self.head == 0;
        if u32::from(cqe.sqhd) < self.memory.entries {
            self.fetched = cqe.sqhd;
        }
        self.registers.write(self.memory.cq_doorbell, u32::from(self.head));
        Some(cqe)
    }

    /// Waits for the next completion.
    pub(crate) fn wait(&mut self, what: impl Fn() -> String, limit: Duration) -> Result<Cqe, Error> {
        /// Looks at the queue before it sleeps between two, and for how long.
        const LOOKS: u32 = 10_000;
        const NAP: Duration = Duration::from_micros(100);
        let until = Instant::now() + limit;
        for look in 0.. {
            if let Some(cqe) = self.poll() {
                return Ok(cqe);
            }
            if self.registers.read(nvme_wire::property::offset::CSTS) == u32::MAX {
                return Err(Error::Gone);
            }
            if Instant::now() > until {
                break;
            }
            if look < LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(NAP);
            }
        }
        Err(Error::Timeout { what: what(), after: limit })
    }
}

/// An I/O queue for commands of this process, one at a time or many by [`IoQueue::submit`] and [`IoQueue::poll`].
pub struct IoQueue {
    ring: Ring,
    /// Data of the commands that the synchronous calls make.
    data: DmaBuffer,
    list: DmaBuffer,
    limit: Duration,
    next_cid: u16,
    outstanding: u32,
}

impl IoQueue {
    pub(crate) fn new(
        ring: Ring,
        mapper: &Arc<dyn Mapper>,
        max_data: usize,
        limit: Duration,
    ) -> Result<Self, Error> {
        let (data, list) = (DmaBuffer::new(max_data, mapper)?, DmaBuffer::new(PAGE, mapper)?);
        Ok(IoQueue { ring, data, list, limit, next_cid: 0, outstanding: 0 })
    }

    pub(crate) fn into_memory(self) -> QueueMemory {
        self.ring.into_memory()
    }

    /// The queue's identifier.
    pub fn qid(&self) -> u16 {
        self.ring.memory().qid
    }

    /// Bytes that one of the synchronous calls moves at most.
    pub fn max_data(&self) -> usize {
        self.data.len()
    }

    /// Submits a command whose PRPs are the caller's; the queue chooses the command identifier and returns it.
    pub fn submit(&mut self, mut command: Sqe) -> Result<u16, Error> {
        command.cid = self.next_cid;
        self.ring.submit(&command)?;
        self.next_cid = self.next_cid.wrapping_add(1);
        self.outstanding += 1;
        Ok(command.cid)
    }

    /// Takes the next completion, in the order in which the controller gave them.
    pub fn poll(&mut self) -> Option<Cqe> {
        let cqe = self.ring.poll()?;
        self.outstanding = self.outstanding.saturating_sub(1);
        Some(cqe)
    }

    /// Reads blocks: `to` is a multiple of the block size.
    pub fn read(&mut self, nsid: u32, slba: u64, block_size: u32, to: &mut [u8]) -> Result<(), Error> {
        self.blocks(IoOpcode::READ, nsid, slba, block_size, to.len())?;
        self.data.read(0, to);
        Ok(())
    }

    /// Writes blocks: `from` is a multiple of the block size.
    pub fn write(&mut self, nsid: u32, slba: u64, block_size: u32, from: &[u8]) -> Result<(), Error> {
        self.fits(from.len())?;
        self.data.write(0, from);
        self.blocks(IoOpcode::WRITE, nsid, slba, block_size, from.len())
    }

    /// Makes what was written durable.
    pub fn flush(&mut self, nsid: u32) -> Result<(), Error> {
        self.run(Sqe { opcode: IoOpcode::FLUSH.0, nsid, ..Sqe::default() })
    }

    /// Sets blocks to zero; `deallocate` lets the controller free them.
    pub fn write_zeroes(&mut self, nsid: u32, slba: u64, nlb: u16, deallocate: bool) -> Result<(), Error> {
        let arguments = ReadWrite { slba, nlb, deac: deallocate, ..Default::default() };
        self.run(Sqe { opcode: IoOpcode::WRITE_ZEROES.0, nsid, ..Sqe::default() }.with(&arguments))
    }

    /// Tells the controller that the content of ranges is not needed. At most 256 ranges.
    pub fn deallocate(&mut self, nsid: u32, ranges: &[DsmRange]) -> Result<(), Error> {
        let Some(nr) = ranges.len().checked_sub(1) else { return Ok(()) };
        let nr =
            u8::try_from(nr).map_err(|_| Error::TooLong { len: ranges.len() * DsmRange::LEN, max: PAGE })?;
        for (index, range) in ranges.iter().enumerate() {
            self.data.write(index * DsmRange::LEN, &range.to_bytes());
        }
        let mut command = Sqe { opcode: IoOpcode::DATASET_MANAGEMENT.0, nsid, ..Sqe::default() };
        command.set_prps([self.data.iova(), 0]);
        self.run(command.with(&DatasetManagement { nr, ad: true, ..Default::default() }))
    }

    fn fits(&self, len: usize) -> Result<(), Error> {
        if len > self.data.len() { Err(Error::TooLong { len, max: self.data.len() }) } else { Ok(()) }
    }

    fn blocks(
        &mut self,
        opcode: IoOpcode,
        nsid: u32,
        slba: u64,
        block_size: u32,
        len: usize,
    ) -> Result<(), Error> {
        self.fits(len)?;
        let blocks = len / block_size as usize;
        let nlb = blocks.checked_sub(1).and_then(|n| u16::try_from(n).ok());
        let nlb = nlb.ok_or(Error::TooLong { len, max: self.data.len() })?;
        let mut command = Sqe { opcode: opcode.0, nsid, ..Sqe::default() };
        command.set_prps(prps(&self.data, len, &mut self.list));
        self.run(command.with(&ReadWrite { slba, nlb, ..Default::default() }))
    }

    /// One command, with nothing else outstanding.
    fn run(&mut self, command: Sqe) -> Result<(), Error> {
        if self.outstanding > 0 {
            return Err(Error::Full);
        }
        let opcode = IoOpcode(command.opcode);
        let cid = self.submit(command)?;
        loop {
            let cqe = self.ring.wait(|| opcode.to_string(), self.limit)?;
            self.outstanding = self.outstanding.saturating_sub(1);
            if cqe.cid == cid {
                return if cqe.status.is_success() { Ok(()) } else { Err(Error::Io(cqe.status)) };
            }
        }
    }
}

/// PRP entries for the first `len` bytes of a buffer; the list page is used for more than two pages.
pub(crate) fn prps(data: &DmaBuffer, len: usize, list: &mut DmaBuffer) -> [u64; 2] {
    let page = |index: usize| data.iova() + (index * PAGE) as u64;
    match len.div_ceil(PAGE) {
        0 | 1 => [page(0), 0],
        2 => [page(0), page(1)],
        pages => {
            assert!(pages <= PAGE / 8, "one list page holds {} pages", PAGE / 8);
            for index in 1..pages {
                list.write((index - 1) * 8, &page(index).to_le_bytes());
            }
            [page(0), list.iova()]
        }
    }
}
