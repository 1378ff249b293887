//! Latency and bandwidth between two processes, beside memcpy in the same run: `cargo sim bench latency`.
//!
//! The peer is this program again. A message goes there and back for latency; for bandwidth a window of messages is kept
//! in flight. Ratios hold within one run only: the machine may be busy with other things.

use doca::rdma::{Connection, Queue, Rdma, ReceiveTask, SendTask, caps};
use doca::{Buffer, Device, Memory, PrivateMemory, ProgressEngine};
use std::collections::VecDeque;
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Sizes for bandwidth, bytes.
const SIZES: &[usize] = &[4 << 10, 64 << 10, 1 << 20];
/// Messages in flight.
const WINDOW: usize = 16;
/// Bytes moved for each size.
const VOLUME: usize = 1 << 30;
/// Round trips.
const ROUNDS: usize = 20_000;
/// Bytes of a message for latency.
const SMALL: usize = 64;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("peer") => peer(),
        _ => measure(),
    }
}

/// One side, connected over a pair of pipes that carry descriptors.
struct Side {
    sends: Queue<SendTask>,
    receives: Queue<ReceiveTask>,
    connection: Connection,
    memory: PrivateMemory,
    rdma: Rdma,
    engine: ProgressEngine,
}

impl Side {
    fn connect(mut to: impl Write, mut from: impl Read) -> Side {
        let device = Device::find().with(caps::SEND).list().unwrap()[0].open().unwrap();
        let engine = ProgressEngine::new().unwrap();
        let memory = Memory::zeroed((2 * WINDOW) << 20).unwrap().private(&device).unwrap();
        let mut config = Rdma::configure(&device).unwrap();
        config.set_gid_roce_v2().unwrap();
        config.set_rnr_retry_count(7).unwrap();
        let sends = config.enable::<SendTask>(WINDOW as u32).unwrap();
        let receives = config.enable::<ReceiveTask>(WINDOW as u32).unwrap();
        let rdma = config.start(&engine).unwrap().running().unwrap();
        let (exported, descriptor) = rdma.export().unwrap();
        let bytes = descriptor.as_ref();
        to.write_all(&(bytes.len() as u32).to_le_bytes()).unwrap();
        to.write_all(bytes).unwrap();
        to.flush().unwrap();
        let mut len = [0; 4];
        from.read_exact(&mut len).unwrap();
        let mut theirs = vec![0; u32::from_le_bytes(len) as usize];
        from.read_exact(&mut theirs).unwrap();
        Side {
            sends: rdma.queue(sends).unwrap(),
            receives: rdma.queue(receives).unwrap(),
            connection: exported.connect(&theirs).unwrap(),
            memory,
            rdma,
            engine,
        }
    }

    /// Sends `count` messages of `len` bytes, as many at a time as the window holds.
    fn stream(&self, len: usize, count: usize) {
        let mut free: Vec<Buffer> = (0..WINDOW).map(|_| self.memory.take(len).unwrap()).collect();
        let mut flying = VecDeque::with_capacity(WINDOW);
        for _ in 0..count {
            let buffer = match free.pop() {
                Some(buffer) => buffer,
                None => flying
                    .pop_front()
                    .map(|mut send: doca::rdma::Pending<_, _>| send.wait().unwrap())
                    .unwrap(),
            };
            flying.push_back(self.sends.submit(&self.connection, buffer).unwrap());
        }
        flying.into_iter().for_each(|mut send| drop(send.wait().unwrap()));
    }

    /// Receives as many.
    fn drain(&self, len: usize, count: usize) {
        let mut flying: VecDeque<_> = (0..WINDOW.min(count))
            .map(|_| self.receives.submit(self.memory.take(len).unwrap()).unwrap())
            .collect();
        for received in 0..count {
            let buffer = flying.pop_front().unwrap().wait().unwrap().buffer;
            if received + WINDOW < count {
                flying.push_back(self.receives.submit(buffer).unwrap());
            }
        }
    }

    /// One message there and one back; gives the time.
    fn round(&self, source: &mut Option<Buffer>, room: &mut Option<Buffer>, sleep: bool) -> Duration {
        let start = Instant::now();
        let mut receive = self.receives.submit(room.take().unwrap()).unwrap();
        let mut send = self.sends.submit(&self.connection, source.take().unwrap()).unwrap();
        while !receive.is_done() {
            if sleep {
                self.engine.wait_for(Duration::from_secs(1)).unwrap();
            } else {
                self.engine.progress().unwrap();
            }
        }
        *room = Some(receive.wait().unwrap().buffer);
        *source = Some(send.wait().unwrap());
        start.elapsed()
    }

    /// Answers so many round trips.
    fn echo(&self, rounds: usize) {
        let (mut source, mut room) = (self.memory.take(SMALL).unwrap(), self.memory.take(SMALL).unwrap());
        for _ in 0..rounds {
            room = self.receives.submit(room).unwrap().wait().unwrap().buffer;
            source = self.sends.submit(&self.connection, source).unwrap().wait().unwrap();
        }
    }
}

fn peer() {
    let side = Side::connect(std::io::stdout(), std::io::stdin());
    side.echo(2 * ROUNDS);
    for &len in SIZES {
        side.drain(len, VOLUME / len);
    }
    // The last acknowledgement must not find this process gone.
    side.stream(SMALL, 1);
    side.rdma.stop().wait().unwrap();
}

fn measure() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("peer")
        .env("DOCA_SIM_QUIET", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let side = Side::connect(child.stdin.take().unwrap(), child.stdout.take().unwrap());

    println!("round trip of {SMALL} bytes, microseconds      min   median     99 %");
    let (mut source, mut room) = (side.memory.take(SMALL).ok(), side.memory.take(SMALL).ok());
    for (name, sleep) in [("polling", false), ("sleeping on the descriptor", true)] {
        let mut times: Vec<Duration> =
            (0..ROUNDS).map(|_| side.round(&mut source, &mut room, sleep)).collect();
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e6;
        println!("  {name:<38}{:>8.2} {:>8.2} {:>8.2}", at(0), at(50), at(99));
    }
    drop((source, room));

    println!("\nbandwidth, {WINDOW} in flight          GB/s    memcpy    ratio");
    for &len in SIZES {
        let count = VOLUME / len;
        let start = Instant::now();
        side.stream(len, count);
        let moved = VOLUME as f64 / start.elapsed().as_secs_f64() / 1e9;
        let copied = memcpy(len, count);
        println!("  {:<28}{moved:>8.2} {copied:>9.2} {:>8.2}", format!("{} KiB", len >> 10), moved / copied);
    }
    side.drain(SMALL, 1);
    side.rdma.stop().wait().unwrap();
    assert!(child.wait().unwrap().success());
}

/// The same volume by memcpy, over as many buffers as the window has.
fn memcpy(len: usize, count: usize) -> f64 {
    let source = vec![1u8; len * WINDOW];
    let mut target = vec![0u8; len * WINDOW];
    let start = Instant::now();
    for turn in 0..count {
        let range = (turn % WINDOW) * len..(turn % WINDOW + 1) * len;
        target[range.clone()].copy_from_slice(black_box(&source[range]));
        black_box(&mut target);
    }
    (len * count) as f64 / start.elapsed().as_secs_f64() / 1e9
}
