//! What the safe layer costs: instructions outside the DOCA libraries for each task, safe against raw, and allocations.
//!
//! `cargo sim bench cost [--check]` runs this program under callgrind, twice for each kind of task and each way to write
//! it, with different numbers of tasks; the difference of the two runs is what the tasks cost, without the start. Both
//! peers are in one process, on one engine, with a fixed number of progress calls for each task. The raw loop is the one
//! that a careful C program has: tasks are allocated once and submitted again and again.
//!
//! The raw loop checks nothing and takes 26 to 34 instructions, four progress calls and the callbacks among them, so its
//! 1.05-fold is out of reach for a layer that checks anything: the target is missed by far. What is spent, for a read:
//! about 95 before DOCA's submit (state and connection, device, permission, length, what the C task was told last), 45 to
//! keep the buffer and the peer's memory, 50 in four progress calls, 80 in the callback (which finds engine, context, run
//! and slot by number, and compares each), 70 to give the buffer back. Beside what DOCA itself does, here the
//! simulator, that is the second ratio.

#[path = "support/callgrind.rs"]
mod callgrind;
#[path = "cost/raw.rs"]
mod raw;
#[path = "cost/safe.rs"]
mod safe;

use callgrind::Counts;
use std::process::ExitCode;

/// A kind of task, and the same work written both ways for so many tasks.
struct Row {
    name: &'static str,
    raw: fn(u64),
    safe: fn(u64),
}

const ROWS: &[Row] = &[
    Row { name: "send", raw: raw::send, safe: safe::send },
    Row { name: "send_imm", raw: raw::send_imm, safe: safe::send_imm },
    Row { name: "read", raw: raw::read, safe: safe::read },
    Row { name: "write", raw: raw::write, safe: safe::write },
    Row { name: "write_imm", raw: raw::write_imm, safe: safe::write_imm },
    Row { name: "atomic_cmp_swp", raw: raw::compare_swap, safe: safe::compare_swap },
    Row { name: "atomic_fetch_add", raw: raw::fetch_add, safe: safe::fetch_add },
    Row { name: "event_get", raw: raw::event_get, safe: safe::event_get },
    Row { name: "event_notify_set", raw: raw::event_set, safe: safe::event_set },
    Row { name: "event_notify_add", raw: raw::event_add, safe: safe::event_add },
];

/// Progress calls for each task: enough for the completions of both sides.
const PROGRESS: usize = 4;

/// Tasks of the shorter and of the longer run.
const SHORT: u64 = 200;
const LONG: u64 = 1200;

/// The target for the ratio.
const TARGET: f64 = 1.05;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--bench").collect();
    match words[..] {
        ["count", name, way, number] => count(name, way, number),
        [] => table(false),
        ["--check"] => table(true),
        _ => {
            eprintln!("cost takes nothing or --check");
            ExitCode::from(2)
        }
    }
}

/// The work itself, in the process that callgrind watches.
fn count(name: &str, way: &str, number: &str) -> ExitCode {
    let row = ROWS.iter().find(|row| row.name == name).expect("a name from the table");
    let work = if way == "raw" { row.raw } else { row.safe };
    work(number.parse().expect("a number of tasks"));
    ExitCode::SUCCESS
}

fn table(check: bool) -> ExitCode {
    println!(
        "instructions outside the DOCA libraries for each task (with its receive, where it needs one)\n"
    );
    println!(
        "{:<18}{:>8}{:>8}{:>8}{:>10}{:>11}{:>8}  allocations",
        "task", "raw", "safe", "ratio", "all, raw", "all, safe", "ratio"
    );
    let mut missed = false;
    for row in ROWS {
        let raw = per_task(row.name, "raw");
        let safe = per_task(row.name, "safe");
        let ratio = safe.ours / raw.ours;
        // A thousandth of one is a start that differed.
        let allocations = (safe.allocations * 100.0).round().abs() / 100.0;
        let fails = ratio > TARGET || allocations > 0.0;
        missed |= fails;
        println!(
            "{:<18}{:>8.0}{:>8.0}{:>8.2}{:>10.0}{:>11.0}{:>8.2}  {:.2}{}",
            row.name,
            raw.ours,
            safe.ours,
            ratio,
            raw.all,
            safe.all,
            safe.all / raw.all,
            allocations,
            if fails { "  MISSED" } else { "" }
        );
    }
    println!("\n`all` counts the simulator too. Targets: ratio {TARGET}, no allocation.");
    if check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What one task costs.
fn per_task(name: &str, way: &str) -> Counts {
    let run = |number: u64| callgrind::run(&["count", name, way, &number.to_string()]);
    let (short, long) = (run(SHORT), run(LONG));
    long.less(&short).each((LONG - SHORT) as f64)
}
