//! Counts with atomics in memory that several may change: both sides of a connection are in this program, which is
//! also how a program changes its own shared memory atomically against its peers.
//!
//! ```text
//! rdma_atomic -d mlx5_0
//! ```

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
mod support;

use doca::rdma::{CompareSwapTask, FetchAddTask, caps};
use doca::{Access, Memory, ProgressEngine, RemoteMemory};
use support::{Options, Outcome};

fn main() -> std::process::ExitCode {
    support::run(count)
}

/// Tasks in flight at once.
const TASKS: u32 = 8;

fn count(options: &Options) -> Outcome<()> {
    let able = [caps::ATOMIC_FETCH_ADD, caps::ATOMIC_CMP_SWP];
    let (device, mut asking) = options.configure(&able, Access::empty())?;
    let (_, asked) = options.configure(&[], Access::RDMA_ATOMIC)?;
    let (adds, swaps) = (asking.enable::<FetchAddTask>(TASKS)?, asking.enable::<CompareSwapTask>(1)?);
    let engine = ProgressEngine::new()?;
    let (asking, asked) = (asking.start(&engine)?, asked.start(&engine)?);
    let ((ours, descriptor), (theirs, their_descriptor)) = (asking.export()?, asked.export()?);
    let (connection, _back) = (ours.connect(their_descriptor)?, theirs.connect(descriptor)?);
    let (asking, asked) = (asking.running()?, asked.running()?);
    let (adds, swaps) = (asking.queue(adds)?, asking.queue(swaps)?);

    let counters = Memory::zeroed(4096)?.shared(&device, Access::RDMA_ATOMIC)?;
    let remote = RemoteMemory::import(&device, counters.export()?)?;
    let cell = remote.cell(0)?;
    let results = Memory::zeroed(4096)?.private(&device)?;

    // They are done in order, so each finds what the one before left.
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        tasks.push(adds.submit(&connection, &cell, results.take(8)?, 5)?);
    }
    for (before, mut task) in (0..).step_by(5).zip(tasks) {
        assert_eq!(task.wait()?.value, before);
    }
    println!("After {TASKS} additions of 5: {}", counters.cell(0)?.load());

    let word = swaps.submit(&connection, &cell, results.take(8)?, 40, 1000)?.wait()?;
    println!("Was {}, so it was replaced by {}", word.value, counters.cell(0)?.load());
    let word = swaps.submit(&connection, &cell, word.buffer, 40, 2000)?.wait()?;
    println!("Was {}, so it stays {}", word.value, counters.cell(0)?.load());

    connection.disconnect()?;
    asking.stop().wait()?;
    asked.stop().wait()?;
    Ok(())
}
