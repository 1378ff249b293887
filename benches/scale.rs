//! Whether the cost of a message grows with the number of connections, or of tasks in flight: `cargo sim bench scale
//! [--check]`.
//!
//! This program runs under callgrind, twice for each row with different numbers of messages; the difference is what the
//! messages cost, without the start. Both peers are in one process, on one engine. A round puts so many messages into
//! flight, spread over the connections, progresses until all have arrived, and takes them back.

#[path = "support/callgrind.rs"]
mod callgrind;

use callgrind::Counts;
use doca::rdma::{Config, Connection, Rdma, ReceiveTask, SendTask, caps};
use doca::{Access, Buffer, Device, Memory, ProgressEngine};
use std::process::ExitCode;

/// Connections, and tasks in flight.
const ROWS: &[(u16, u32)] = &[
    (1, 1),
    (1, 16),
    (1, 64),
    (1, 512),
    (1, 4096),
    (16, 16),
    (16, 512),
    (16, 4096),
    (512, 512),
    (512, 4096),
    (512, 512 * 64),
];

/// Messages of the shorter run, unless one round has more. The longer run has three times as many.
const SHORT: u64 = 4096;

/// How many times the first row's instructions of the safe layer a row may have. A message in a round of many costs less
/// than one alone: it shares the progress calls that find nothing.
const TARGET: f64 = 1.05;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--bench").collect();
    match words[..] {
        ["count", connections, flight, messages] => {
            count(number(connections), number(flight), number(messages))
        }
        [] => table(false),
        ["--check"] => table(true),
        _ => {
            eprintln!("scale takes nothing or --check");
            ExitCode::from(2)
        }
    }
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

fn table(check: bool) -> ExitCode {
    println!("instructions for each message (send and receive)\n");
    println!(
        "{:>12}{:>11}{:>12}{:>9}{:>8}  allocations",
        "connections", "in flight", "safe layer", "growth", "all"
    );
    let mut first = None;
    let mut missed = false;
    for &(connections, flight) in ROWS {
        let cost = per_message(connections, flight);
        let growth = cost.ours / *first.get_or_insert(cost.ours);
        // A thousandth of one is a start that differed.
        let allocations = (cost.allocations * 100.0).round().abs() / 100.0;
        let fails = growth > TARGET || allocations > 0.0;
        missed |= fails;
        println!(
            "{connections:>12}{flight:>11}{:>12.0}{growth:>9.2}{:>8.0}  {allocations:.2}{}",
            cost.ours,
            cost.all,
            if fails { "  MISSED" } else { "" }
        );
    }
    println!("\n`all` counts the simulator too. Targets: growth {TARGET}, no allocation.");
    if check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What one message costs.
fn per_message(connections: u16, flight: u32) -> Counts {
    let run = |messages: u64| {
        callgrind::run(&["count", &connections.to_string(), &flight.to_string(), &messages.to_string()])
    };
    let short = SHORT.max(flight.into());
    run(3 * short).less(&run(short)).each(2.0 * short as f64)
}

/// The work itself, in the process that callgrind watches.
fn count(connections: u64, flight: u64, messages: u64) -> ExitCode {
    let device = Device::find().with(caps::SEND).list().unwrap()[0].open().unwrap();
    let engine = ProgressEngine::new().unwrap();
    let memory = Memory::zeroed(flight as usize * 16).unwrap().private(&device).unwrap();
    let side = || {
        let mut config: Config = Rdma::configure(&device).unwrap();
        config.set_gid_roce_v2().unwrap();
        config.set_permissions(Access::LOCAL_READ_WRITE).unwrap();
        config.set_max_num_connections(connections as u16).unwrap();
        config
    };
    let (mut left, mut right) = (side(), side());
    let tasks = flight as u32;
    left.set_send_queue_size(flight.div_ceil(connections) as u32).unwrap();
    let (sends, receives) =
        (left.enable::<SendTask>(tasks).unwrap(), right.enable::<ReceiveTask>(tasks).unwrap());
    let (left, right) =
        (left.start(&engine).unwrap().running().unwrap(), right.start(&engine).unwrap().running().unwrap());
    let links: Vec<(Connection, Connection)> = (0..connections)
        .map(|_| {
            let ((ours, descriptor), (theirs, back)) = (left.export().unwrap(), right.export().unwrap());
            (ours.connect(back).unwrap(), theirs.connect(descriptor).unwrap())
        })
        .collect();
    let (sends, receives) = (left.queue(sends).unwrap(), right.queue(receives).unwrap());
    let some = || (0..flight).map(|_| memory.take(8).unwrap()).collect::<Vec<Buffer>>();
    let (mut sources, mut rooms) = (some(), some());
    let (mut sent, mut received) = (Vec::with_capacity(sources.len()), Vec::with_capacity(rooms.len()));
    for _ in 0..messages / flight {
        received.extend(rooms.drain(..).map(|room| receives.submit(room).unwrap()));
        let turns = links.iter().cycle();
        sent.extend(
            sources.drain(..).zip(turns).map(|(source, (link, _))| sends.submit(link, source).unwrap()),
        );
        while engine.in_flight().unwrap() > 0 {
            engine.progress().unwrap();
        }
        sources.extend(sent.drain(..).map(|mut task| task.wait().unwrap()));
        rooms.extend(received.drain(..).map(|mut task| task.wait().unwrap().buffer));
    }
    ExitCode::SUCCESS
}
