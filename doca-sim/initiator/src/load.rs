//! Load: many queues, each with a thread of its own and many commands under way.

use crate::controller::{Controller, Seed, read_write};
use crate::failure::{Error, Result};
use crate::queue::{Completion, Data, Queue};
use nvme_wire::command::IoOpcode;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the queues do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Each block is written, read back, and compared.
    Verify,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Load {
    /// I/O queues.
    pub queues: u16,
    /// Commands under way in each.
    pub depth: u16,
    /// Bytes of a command, a multiple of the block size.
    pub size: u32,
    /// Random or ascending addresses.
    pub random: bool,
    /// What to do.
    pub mix: Mix,
    /// For how long.
    pub time: Duration,
    /// The namespace.
    pub nsid: u32,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Reads that succeeded.
    pub reads: u64,
    /// Writes that succeeded.
    pub writes: u64,
    /// From the first submission to the last answer.
    pub elapsed: Duration,
    /// Time from submission to answer of each command, in nanoseconds, ascending.
    latencies: Vec<u64>,
}

impl Report {
    /// Commands in a second.
    pub fn iops(&self) -> f64 {
        (self.reads + self.writes) as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The latency that this share of the commands, 0.0 to 1.0, does not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        Duration::from_nanos(self.latencies.get(index).copied().unwrap_or(0))
    }

    fn add(&mut self, other: Report) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latencies.extend(other.latencies);
    }
}

/// Numbers that are random enough for addresses (xorshift).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// A stretch of the namespace that one queue has for itself.
#[derive(Clone, Copy)]
struct Part {
    first: u64,
    /// Places for a command.
    places: u64,
    /// Blocks of a command.
    blocks: u32,
}

/// Runs it. The controller's admin queue keeps the controller alive meanwhile.
pub fn run(controller: &mut Controller, load: &Load) -> Result<Report> {
    let namespace = controller.namespace(load.nsid)?;
    let usage = |why: &str| Err(Error::Usage(why.to_owned()).on(1));
    if load.queues == 0 || load.depth == 0 {
        return usage("load needs a queue, and a command under way in each");
    }
    let Some(block_size) =
        namespace.block_size().filter(|&size| load.size > 0 && load.size.is_multiple_of(size))
    else {
        return usage("the size of a command is no multiple of the block size");
    };
    let blocks = load.size / block_size;
    let share = namespace.nsze / u64::from(load.queues);
    let places = share / u64::from(blocks);
    if places < u64::from(load.depth) {
        return usage("the namespace is too small for so many queues and commands");
    }
    let granted = controller.num_queues(load.queues)?;
    if granted < load.queues {
        return Err(Error::Usage(format!("the target grants {granted} I/O queues")).on(0));
    }
    // One entry of a queue stays free; the size of the largest does not fit 16 bits.
    let most = controller.capabilities().mqes.min(u16::MAX - 1);
    if load.depth > most {
        return usage(&format!("the target takes {most} commands under way in a queue"));
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |index: u16| {
            let (seed, stop) = (controller.seed(index + 1, load.depth + 1), &stop);
            let part = Part { first: share * u64::from(index), places, blocks };
            scope.spawn(move || {
                let outcome = work(&seed, load, part, stop, index);
                // One that fails ends all.
                stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                outcome
            })
        };
        let threads: Vec<_> = (0..load.queues).map(start).collect();
        let mut kept = Ok(());
        while kept.is_ok() && !threads.iter().all(|thread| thread.is_finished()) {
            std::thread::park_timeout(Duration::from_millis(500));
            kept = controller.keep_alive();
        }
        stop.fetch_or(kept.is_err(), Ordering::Relaxed);
        let mut total = Report::default();
        let mut failed = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(report)) => total.add(report),
                Ok(Err(failure)) => failed = failed.or(Some(failure)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failed.map_or(Ok(()), Err)?;
        kept?;
        total.latencies.sort_unstable();
        Ok(total)
    })
}

/// The same without a target: each queue is a thread that calls `pread` or `pwrite` on a file, one call at a time.
/// The depth plays no part, and there is nothing to verify: with [`Mix::Verify`] it writes.
pub fn run_on_file(file: &File, load: &Load) -> io::Result<Report> {
    let places = file.metadata()?.len() / u64::from(load.size.max(1));
    if places == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is shorter than a command"));
    }
    let work = |index: u16| -> io::Result<Report> {
        let (mut random, mut data) = (Random::new(u64::from(index) + 1), vec![0; load.size as usize]);
        let (mut report, start) = (Report::default(), Instant::now());
        random.fill(&mut data);
        let mut next = u64::from(index) * (places / u64::from(load.queues));
        while start.elapsed() < load.time {
            let place = if load.random { random.number() } else { next } % places;
            next += 1;
            let since = Instant::now();
            if load.mix == Mix::Read {
                file.read_exact_at(&mut data, place * u64::from(load.size))?;
                report.reads += 1;
            } else {
                file.write_all_at(&data, place * u64::from(load.size))?;
                report.writes += 1;
            }
            report.latencies.push(since.elapsed().as_nanos() as u64);
        }
        report.elapsed = start.elapsed();
        Ok(report)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..load.queues).map(|index| scope.spawn(move || work(index))).collect();
        let mut total = Report::default();
        for thread in threads {
            match thread.join() {
                Ok(report) => total.add(report?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        total.latencies.sort_unstable();
        Ok(total)
    })
}

/// A command under way.
struct Running {
    place: u64,
    opcode: IoOpcode,
    since: Instant,
}

fn work(seed: &Seed, load: &Load, part: Part, stop: &AtomicBool, index: u16) -> Result<Report> {
    let mut queue = seed.open()?;
    let mut worker = Worker {
        random: Random::new(u64::from(index) + 1),
        next: 0,
        load,
        part,
        running: HashMap::new(),
        busy: Vec::new(),
        data: vec![0; load.size as usize],
        back: vec![0; load.size as usize],
        report: Report::default(),
    };
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) && start.elapsed() < load.time {
        while queue.outstanding() < usize::from(load.depth) && worker.begin(&mut queue)? {}
        if queue.outstanding() == 0 {
            // The news that the last capsule was sent is behind its answer: its slot is not free yet.
            queue.check()?;
            continue;
        }
        let completion = queue.wait()?;
        worker.end(&mut queue, completion, true)?;
    }
    while queue.outstanding() > 0 {
        let completion = queue.wait()?;
        worker.end(&mut queue, completion, false)?;
    }
    worker.report.elapsed = start.elapsed();
    Ok(worker.report)
}

struct Worker<'a> {
    random: Random,
    next: u64,
    load: &'a Load,
    part: Part,
    running: HashMap<u16, Running>,
    /// Places where a command is under way; with verification a place has one at a time.
    busy: Vec<u64>,
    data: Vec<u8>,
    back: Vec<u8>,
    report: Report,
}

impl Worker<'_> {
    /// Starts a command at a new place; false when none can be started now.
    fn begin(&mut self, queue: &mut Queue) -> Result<bool> {
        let place = loop {
            let place = if self.load.random { self.random.number() } else { self.next } % self.part.places;
            self.next += 1;
            if !self.busy.contains(&place) {
                break place;
            }
        };
        let opcode = if self.load.mix == Mix::Read { IoOpcode::READ } else { IoOpcode::WRITE };
        let began = self.submit(queue, place, opcode)?;
        if began {
            self.busy.push(place);
        }
        Ok(began)
    }

    fn submit(&mut self, queue: &mut Queue, place: u64, opcode: IoOpcode) -> Result<bool> {
        let command = read_write(opcode, self.load.nsid, self.lba(place), self.part.blocks);
        let data = if opcode == IoOpcode::WRITE {
            self.pattern(place);
            Data::Out(&self.data)
        } else {
            Data::In(self.data.len())
        };
        let since = Instant::now();
        let Some(cid) = queue.submit(command, data)? else { return Ok(false) };
        self.running.insert(cid, Running { place, opcode, since });
        Ok(true)
    }

    fn lba(&self, place: u64) -> u64 {
        self.part.first + place * u64::from(self.part.blocks)
    }

    /// What stands at a place: different for each address.
    fn pattern(&mut self, place: u64) {
        Random::new(self.lba(place) + 1).fill(&mut self.data);
    }

    fn end(&mut self, queue: &mut Queue, completion: Completion, go_on: bool) -> Result {
        let cqe = completion.cqe.clone();
        let Some(Running { place, opcode, since }) = self.running.remove(&cqe.cid) else {
            return Err(Error::Protocol(format!("an answer to command {}", cqe.cid)).on(queue.qid()));
        };
        self.report.latencies.push(since.elapsed().as_nanos() as u64);
        let reading = opcode == IoOpcode::READ;
        queue.finish(completion, if reading { &mut self.back } else { &mut [] });
        if !cqe.status.is_success() {
            let error = Error::Status { command: opcode.to_string(), status: cqe.status, result: cqe.result };
            return Err(error.on(queue.qid()));
        }
        *(if reading { &mut self.report.reads } else { &mut self.report.writes }) += 1;
        if self.load.mix == Mix::Verify {
            if !reading && go_on {
                while !self.submit(queue, place, IoOpcode::READ)? {
                    queue.check()?;
                }
                return Ok(());
            }
            if reading {
                self.pattern(place);
                if self.back != self.data {
                    return Err(Error::Differs { lba: self.lba(place) }.on(queue.qid()));
                }
            }
        }
        self.busy.retain(|&busy| busy != place);
        Ok(())
    }
}
