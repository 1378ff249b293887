//! What the safe layer costs: instructions outside the DOCA libraries for each task, safe against raw, and allocations.
//!
//! `cargo sim bench cost [--check]` runs this program under callgrind, twice for each kind of task, each way to use it and
//! each side, with different numbers of tasks; the difference of the two runs is what the tasks cost, without the start.
//! Both peers are in one process, on one engine. One task is in flight at a time (with the peer's receive, where it needs
//! one), and is waited for by progress until it came back.
//!
//! | rows | raw | safe |
//! | --- | --- | --- |
//! | `prepared` | a `doca_task` is allocated once, and submitted again and again | `Queue::prepare`, then `submit` and `wait` |
//! | `each` | a `doca_task` is allocated, submitted and freed for each operation | `Queue::submit` and `wait` |
//!
//! Raw does what a careful C program does, and no more: each answer is compared with `DOCA_SUCCESS`; the callback notes in
//! a record, which the task's user data points to, whether the task ended well, and of a message its length, opcode,
//! immediate value and connection, as the safe side does for its users; buffers that are filled are reset before. It never
//! asks whether context and connection are still there, whose memory it is, or what is in flight. The first ratio
//! compares these instructions alone; the one behind `all` the whole of it, with DOCA, here the simulator.
//!
//! 1.05 is reached by the whole, and not by these instructions alone: of 21 they allow one more. A prepared write has 13
//! more. Before the submission 3: the handle's place, and whether the task was revoked (its connection ended, its context
//! is to stop). To wait 8: place and engine by the handle, whether there is something to be heeded before DOCA is entered
//! and after it, that it is entered (so that user code which DOCA calls cannot enter again), and that it was left. In the
//! callback 2: whether somebody sleeps, or nobody wants the outcome. A kind that fills its buffer has 15 to 20 beyond
//! that: it notes the length of the data, which a read asks DOCA for, and knows whether DOCA has to be told to reset it.
//!
//! An operation of its own has 180 to 210 more than raw, which for its part has DOCA allocate and free a task (`all` counts
//! that). It looks at state and connection, device, permission and length; compares the C task's fields with what they were
//! told; takes a place and gives it back; keeps the buffer and the peer's memory until the end; and hands over the answer.

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
    raw: fn(u64, Way),
    safe: fn(u64, Way),
}

/// What a program does with tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Sets one up, and submits it again and again.
    Prepared,
    /// Sets up another one for each operation.
    Each,
}

const WAYS: &[(Way, &str)] = &[(Way::Prepared, "prepared"), (Way::Each, "each")];

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

/// Tasks of the shorter and of the longer run.
const SHORT: u64 = 200;
const LONG: u64 = 1200;

/// The target for the ratio.
const TARGET: f64 = 1.05;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--bench").collect();
    match words[..] {
        ["count", name, side, way, number] => count(name, side, way, number),
        [] => table(false),
        ["--check"] => table(true),
        _ => {
            eprintln!("cost takes nothing or --check");
            ExitCode::from(2)
        }
    }
}

/// The work itself, in the process that callgrind watches.
fn count(name: &str, side: &str, way: &str, number: &str) -> ExitCode {
    let row = ROWS.iter().find(|row| row.name == name).expect("a name from the table");
    let (way, _) = WAYS.iter().find(|(_, word)| *word == way).expect("a way from the table");
    let work = if side == "raw" { row.raw } else { row.safe };
    work(number.parse().expect("a number of tasks"), *way);
    ExitCode::SUCCESS
}

fn table(check: bool) -> ExitCode {
    println!("instructions for each task, with its receive where it needs one\n");
    let mut missed = false;
    for (way, word) in WAYS {
        println!(
            "{:<18}{:>8}{:>8}{:>8}{:>10}{:>11}{:>8}  allocations",
            word, "raw", "safe", "ratio", "all, raw", "all, safe", "ratio"
        );
        for row in ROWS {
            missed |= line(row, *way, word);
        }
        println!();
    }
    println!(
        "the first three: outside the libraries; `all` counts DOCA too, here the simulator. Targets, for prepared tasks: \
         ratio {TARGET}; for all: no allocation."
    );
    if check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// One row; true if a target was missed.
fn line(row: &Row, way: Way, word: &str) -> bool {
    let (raw, safe) = (per_task(row.name, "raw", word), per_task(row.name, "safe", word));
    let ratio = safe.ours / raw.ours;
    // A thousandth of one is a start that differed.
    let allocations = (safe.allocations * 100.0).round().abs() / 100.0;
    let missed = (way == Way::Prepared && ratio > TARGET) || allocations > 0.0;
    println!(
        "{:<18}{:>8.1}{:>8.1}{:>8.2}{:>10.0}{:>11.0}{:>8.3}  {:.2}{}",
        row.name,
        raw.ours,
        safe.ours,
        ratio,
        raw.all,
        safe.all,
        safe.all / raw.all,
        allocations,
        if missed { "  MISSED" } else { "" }
    );
    missed
}

/// What one task costs.
fn per_task(name: &str, side: &str, way: &str) -> Counts {
    let run = |number: u64| callgrind::run(&["count", name, side, way, &number.to_string()]);
    let (short, long) = (run(SHORT), run(LONG));
    long.less(&short).each((LONG - SHORT) as f64)
}
