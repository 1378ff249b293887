//! The relay beside `socat UNIX-LISTEN,fork UNIX-CONNECT`, in one run on one machine: what a byte, a round trip, a
//! connection and a client cost. Both relays run here, so they share the machine that socat has for itself. Arguments are
//! handed on to the relays.

#![allow(dead_code, reason = "the tests use more of their support")]

#[path = "../tests/support/pair.rs"]
mod pair;

use pair::{Place, Process, connect, memory};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const STREAM: usize = 1 << 30;
const ROUND_TRIPS: usize = 20_000;
const CONNECTIONS: usize = 2_000;
const CLIENTS: usize = 200;

/// A way from client to server.
struct Way<'a> {
    name: &'static str,
    path: &'a Path,
    processes: &'a dyn Fn() -> Vec<u32>,
}

/// What was measured.
struct Row {
    name: &'static str,
    one: f64,
    eight: f64,
    /// Seconds of processor that the processes on the way took for a gigabyte of one client.
    processor: Option<f64>,
    latency: Duration,
    connections: f64,
    memory: Option<f64>,
}

/// Two relays, which the arguments of the benchmark are handed to.
struct Pair {
    place: Place,
    relays: [Process; 2],
}

impl Pair {
    fn start(server: &Path, fast_path: &'static str) -> Pair {
        let place = Place::with_fast_path(fast_path);
        std::os::unix::fs::symlink(server, place.server_path()).expect("a link to the server's socket");
        let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
        let mut all = vec!["--probe-app", "off", "-l", "30"];
        all.extend(args.iter().map(String::as_str));
        let relays = [place.dpu(&all), place.host(&all)];
        Pair { place, relays }
    }

    fn processes(&self) -> Vec<u32> {
        self.relays.iter().map(Process::id).collect()
    }
}

fn main() {
    let place = Place::new();
    let server_path = place.server_path();
    let server = UnixListener::bind(&server_path).expect("bind");
    thread::spawn(move || serve(&server));
    let [fast, control] = ["require", "off"].map(|path| Pair::start(&server_path, path));
    let socat_path = place.path("socat.sock");
    let socat = Process::start(
        Command::new("socat")
            .arg(format!("UNIX-LISTEN:{},fork,backlog=1024", socat_path.display()))
            .arg(format!("UNIX-CONNECT:{}", server_path.display())),
        &place.path("socat.log"),
    );
    let socats = || children(socat.id());
    let (fast_processes, control_processes) = (|| fast.processes(), || control.processes());
    let (fast_path, control_path) = (fast.place.client_path(), control.place.client_path());
    let ways = [
        Way { name: "direct", path: &server_path, processes: &Vec::new },
        Way { name: "socat", path: &socat_path, processes: &socats },
        Way { name: "relay", path: &fast_path, processes: &fast_processes },
        Way { name: "control", path: &control_path, processes: &control_processes },
    ];
    println!(
        "{:8} {:>12} {:>12} {:>14} {:>12} {:>14} {:>16}",
        "", "1 client", "8 clients", "processor", "round trip", "connections", "memory/client"
    );
    let rows: Vec<Row> = ways.iter().map(measure).collect();
    for row in &rows {
        println!(
            "{:8} {:>7.2} GB/s {:>7.2} GB/s {:>14} {:>9.1} us {:>12.0}/s {:>16}",
            row.name,
            row.one,
            row.eight,
            row.processor.map_or_else(String::new, |seconds| format!("{seconds:.2} s/GB")),
            row.latency.as_secs_f64() * 1e6,
            row.connections,
            row.memory.map_or_else(String::new, |kib| format!("{kib:.1} KiB"))
        );
    }
    let [_, socat_row, relay_rows @ ..] = &rows[..] else { return };
    for row in relay_rows {
        println!(
            "{} / socat: throughput {:.2} (1 client), {:.2} (8 clients); round trip {:.2}; connections {:.2}",
            row.name,
            row.one / socat_row.one,
            row.eight / socat_row.eight,
            row.latency.as_secs_f64() / socat_row.latency.as_secs_f64(),
            row.connections / socat_row.connections
        );
    }
}

/// Reads a letter: `e` echoes, `s` swallows and tells how much it was.
fn serve(listener: &UnixListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        thread::Builder::new().stack_size(256 << 10).spawn(move || _ = serve_one(stream)).expect("a thread");
    }
}

fn serve_one(mut stream: UnixStream) -> std::io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    let mut letter = [0];
    stream.read_exact(&mut letter)?;
    let mut total = 0u64;
    loop {
        let bytes = stream.read(&mut buffer)?;
        if bytes == 0 {
            break;
        }
        total += bytes as u64;
        if letter == *b"e" {
            stream.write_all(&buffer[..bytes])?;
        }
    }
    if letter == *b"s" {
        stream.write_all(&total.to_le_bytes())?;
    }
    Ok(())
}

fn measure(way: &Way<'_>) -> Row {
    // The first of all is not measured.
    swallow(way, 1, STREAM / 16);
    let before = processor_time(way);
    let one = swallow(way, 1, STREAM);
    let spent = processor_time(way).zip(before).map(|(after, before)| after - before);
    let eight = swallow(way, 8, STREAM / 8);
    Row {
        name: way.name,
        one,
        eight,
        processor: spent.map(|seconds| seconds / (STREAM as f64 / 1e9)),
        latency: latency(way),
        connections: connections(way),
        memory: memory_per_client(way),
    }
}

/// GB/s of all clients together.
fn swallow(way: &Way<'_>, clients: usize, bytes: usize) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut stream = connect(way.path);
                let chunk = vec![7; 256 << 10];
                stream.write_all(b"s").expect("write");
                for _ in 0..bytes / chunk.len() {
                    stream.write_all(&chunk).expect("write");
                }
                stream.shutdown(Shutdown::Write).expect("shutdown");
                let mut total = [0; 8];
                stream.read_exact(&mut total).expect("the server's count");
                assert_eq!(u64::from_le_bytes(total), (bytes / chunk.len() * chunk.len()) as u64);
            });
        }
    });
    (clients * bytes) as f64 / began.elapsed().as_secs_f64() / 1e9
}

/// The median of 64 bytes there and back.
fn latency(way: &Way<'_>) -> Duration {
    let mut stream = connect(way.path);
    stream.write_all(b"e").expect("write");
    let mut times: Vec<Duration> = (0..ROUND_TRIPS)
        .map(|_| {
            let began = Instant::now();
            stream.write_all(&[1; 64]).expect("write");
            stream.read_exact(&mut [0; 64]).expect("read");
            began.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// Connections with one round trip each, one after the other.
fn connections(way: &Way<'_>) -> f64 {
    let began = Instant::now();
    for _ in 0..CONNECTIONS {
        let mut stream = connect(way.path);
        stream.write_all(b"ex").expect("write");
        stream.read_exact(&mut [0]).expect("read");
    }
    CONNECTIONS as f64 / began.elapsed().as_secs_f64()
}

/// Private memory in KiB for each client that has moved some bytes and stays.
fn memory_per_client(way: &Way<'_>) -> Option<f64> {
    let used = || (way.processes)().iter().map(|pid| memory(*pid)).sum::<u64>();
    if (way.processes)().is_empty() {
        return None;
    }
    let before = used();
    let clients: Vec<UnixStream> = (0..CLIENTS)
        .map(|_| {
            let mut stream = connect(way.path);
            stream.write_all(b"e").expect("write");
            stream.write_all(&[1; 16 << 10]).expect("write");
            stream.read_exact(&mut vec![0; 16 << 10]).expect("read");
            stream
        })
        .collect();
    let after = used();
    drop(clients);
    Some(after.saturating_sub(before) as f64 / CLIENTS as f64)
}

/// Seconds that the processes on the way have run, with children of theirs that have ended.
fn processor_time(way: &Way<'_>) -> Option<f64> {
    let ticks = |pid: &u32| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(4);
        fields.filter_map(|field| field.parse::<u64>().ok()).sum()
    };
    let processes = (way.processes)();
    // A tick is a hundredth of a second wherever Linux runs today.
    (!processes.is_empty()).then(|| processes.iter().map(ticks).sum::<u64>() as f64 / 100.0)
}

/// A process and its children.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut all = vec![pid];
    all.extend(list.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    all
}
