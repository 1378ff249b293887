//! Faults on request, for tests of what happens when things go wrong. `FAULTS.md` describes them for users.
//!
//! `DOCA_SIM_FAULTS` holds rules, or `@` and the name of a file of rules. Where a fault can strike, the engine asks the
//! functions below; while there are no rules, that costs one load.
//!
//! `DOCA_SIM_KILL_AT=N` ends this process by SIGKILL when it passes its Nth internal point: places inside submit and
//! progress between which shared memory is half-changed, so that a test can put a death into each of them.

mod rules;

use crate::code::{Code, Res};
use crate::environment;
use crate::fabric::clock;
use crate::lock::lock;
use crate::log;
use crate::task::Task;
use rules::{Rule, What};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};

/// Environment variable with the rules.
const VARIABLE: &str = "DOCA_SIM_FAULTS";

const UNREAD: i64 = i64::MIN;
const NEVER: i64 = i64::MAX;

static LEFT: AtomicI64 = AtomicI64::new(UNREAD);

/// A place where a death would be interesting. Costs one load when none is wanted.
#[inline]
pub fn point() {
    if LEFT.load(Relaxed) != NEVER {
        count_down();
    }
}

#[cold]
fn count_down() {
    if LEFT.load(Relaxed) == UNREAD {
        let wanted = std::env::var(environment::KILL_AT).ok().and_then(|point| environment::kill_at(&point));
        LEFT.store(wanted.unwrap_or(NEVER), Relaxed);
        if wanted.is_none() {
            return;
        }
    }
    if LEFT.fetch_sub(1, Relaxed) == 1 {
        // SAFETY: plain system calls on this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

/// A rule at work.
struct Armed {
    rule: Rule,
    /// Occasions so far.
    count: AtomicU64,
    happened: AtomicBool,
}

impl Armed {
    /// Counts an occasion.
    fn next(&self) -> u64 {
        self.count.fetch_add(1, Relaxed) + 1
    }

    fn strike(&self) {
        if !self.happened.swap(true, Relaxed) {
            log::warning!("fault on request: {}", self.rule.text);
        }
    }
}

/// What will happen to a task in flight.
#[derive(Clone, Copy, Default)]
struct Mark {
    fails: Option<(usize, Code)>,
    not_before: Option<u64>,
}

struct Plan {
    process: u32,
    rules: Vec<Armed>,
    version: Option<CString>,
    /// By the task's address.
    marks: Mutex<HashMap<usize, Mark>>,
    /// State of the generator behind `reorder`.
    chance: AtomicU64,
}

static PLAN: LazyLock<Plan> = LazyLock::new(Plan::read);

static ARMED: AtomicU8 = AtomicU8::new(0);
const OFF: u8 = 1;
const ON: u8 = 2;

/// Whether there are rules at all. Costs one load.
#[inline]
pub fn armed() -> bool {
    match ARMED.load(Relaxed) {
        OFF => false,
        ON => true,
        _ => arm(),
    }
}

#[cold]
fn arm() -> bool {
    let on = !PLAN.rules.is_empty();
    if ARMED.swap(if on { ON } else { OFF }, Relaxed) == 0 && on {
        extern "C" fn at_exit() {
            report();
        }
        // SAFETY: a function without arguments that does not unwind: it only logs.
        unsafe { libc::atexit(at_exit) };
    }
    on
}

/// Says which rules have not happened: a test that relied on them has tested nothing.
fn report() {
    // A forked child that exits is not the process that was asked.
    if std::process::id() != PLAN.process {
        return;
    }
    for armed in PLAN.rules.iter().filter(|armed| !armed.happened.load(Relaxed)) {
        log::error!("{VARIABLE}: never happened: {}", armed.rule.text);
    }
}

impl Plan {
    fn read() -> Plan {
        let rules = load(&std::env::var(VARIABLE).unwrap_or_default()).unwrap_or_else(|why| {
            log::error!("{VARIABLE}: {why}; no fault is injected");
            Vec::new()
        });
        let mut plan = Plan {
            process: std::process::id(),
            rules: Vec::new(),
            version: None,
            marks: Mutex::new(HashMap::new()),
            chance: AtomicU64::new(0),
        };
        for rule in rules {
            match &rule.what {
                What::Version(text) => plan.version = CString::new(text.as_str()).ok(),
                What::Reorder { seed } => plan.chance = AtomicU64::new(*seed),
                _ => {}
            }
            plan.rules.push(Armed { rule, count: AtomicU64::new(0), happened: AtomicBool::new(false) });
        }
        plan
    }
}

fn load(value: &str) -> Result<Vec<Rule>, String> {
    match value.strip_prefix('@') {
        None => rules::parse(value),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
            rules::parse(&text).map_err(|why| format!("{path}: {why}"))
        }
    }
}

/// The first rule for which the meaning gives something; it has struck.
fn first<T>(meaning: impl Fn(&Armed) -> Option<T>) -> Option<T> {
    // Every rule is asked, because each counts its occasions.
    PLAN.rules.iter().fold(None, |found, armed| match (found, meaning(armed)) {
        (None, Some(now)) => {
            armed.strike();
            Some(now)
        }
        (found, _) => found,
    })
}

/// Whether this call of a C function is to fail, and how.
#[cold]
pub fn call(name: &str) -> Option<Code> {
    first(|armed| match &armed.rule.what {
        What::Call { function, nth, error } if function == name && nth.is(armed.next()) => Some(*error),
        _ => None,
    })
}

/// Whether this call of a function of librdmacm is to fail, and with which `errno`.
#[cold]
pub fn system(name: &str) -> Option<i32> {
    first(|armed| match &armed.rule.what {
        What::System { function, nth, errno } if function == name && nth.is(armed.next()) => Some(*errno),
        _ => None,
    })
}

/// The error of a context that is not to start.
pub fn start(library: &str) -> Res {
    if !armed() {
        return Ok(());
    }
    let refused = first(|armed| match &armed.rule.what {
        What::Start { library: named, nth, error } if named == library && nth.is(armed.next()) => {
            Some(*error)
        }
        _ => None,
    });
    refused.map_or(Ok(()), Err)
}

/// A task is being submitted: the error if it is refused; else what will happen to it is noted.
#[cold]
pub fn submit(task: &Task, kind: &str) -> Res {
    let mut mark = Mark::default();
    let mut refused = None;
    for (index, armed) in PLAN.rules.iter().enumerate() {
        match &armed.rule.what {
            What::Refuse { kind: named, nth, error } if named.is(kind) && nth.is(armed.next()) => {
                armed.strike();
                refused = refused.or(Some(*error));
            }
            What::Fail { kind: named, nth, error } if named.is(kind) && nth.is(armed.next()) => {
                mark.fails = mark.fails.or(Some((index, *error)));
            }
            What::Delay { kind: named, nth, ms } if named.is(kind) && nth.is(armed.next()) => {
                armed.strike();
                mark.not_before = Some(clock::now().saturating_add(ms.saturating_mul(clock::millis(1))));
            }
            _ => {}
        }
    }
    if let Some(code) = refused {
        return Err(code);
    }
    if mark.fails.is_some() || mark.not_before.is_some() {
        lock(&PLAN.marks).insert(address(task), mark);
    }
    Ok(())
}

fn address(task: *const Task) -> usize {
    task.addr()
}

#[inline]
fn mark(task: *const Task) -> Option<Mark> {
    if armed() { marked(task) } else { None }
}

#[cold]
fn marked(task: *const Task) -> Option<Mark> {
    lock(&PLAN.marks).get(&address(task)).copied()
}

/// Whether a task in flight is not to be executed, because it will fail.
pub fn will_fail(task: &Task) -> bool {
    mark(task).is_some_and(|mark| mark.fails.is_some())
}

/// The error that a task in flight fails with now.
pub fn failure(task: &Task) -> Option<Code> {
    let (rule, error) = mark(task)?.fails?;
    PLAN.rules[rule].strike();
    Some(error)
}

/// Whether the completion of a task is still held back.
pub fn is_held(task: *const Task) -> bool {
    mark(task).and_then(|mark| mark.not_before).is_some_and(|due| clock::now() < due)
}

/// When the next completion that is held back falls due.
pub fn next_due() -> Option<u64> {
    if !armed() {
        return None;
    }
    lock(&PLAN.marks).values().filter_map(|mark| mark.not_before).filter(|due| *due > clock::now()).min()
}

/// The task is the program's again.
pub fn forget(task: &Task) {
    if armed() {
        lock(&PLAN.marks).remove(&address(task));
    }
}

/// Whether the link of a connection is cut before this send-side task.
pub fn cut(connection: u32) -> bool {
    let cuts = |armed: &Armed| match armed.rule.what {
        What::Cut { connection: named, after } if named.is_none_or(|id| id == connection) => {
            (armed.next() == after + 1).then_some(())
        }
        _ => None,
    };
    armed() && first(cuts).is_some()
}

/// Whether an execution unit fails with this command, and all the others with it.
pub fn unit() -> Option<bool> {
    if !armed() {
        return None;
    }
    first(|armed| match armed.rule.what {
        What::Unit { nth, fatal } => nth.is(armed.next()).then_some(fatal),
        _ => None,
    })
}

/// How many tasks a pool has that was configured for `count`.
pub fn pool(kind: &str, count: u32) -> u32 {
    if !armed() {
        return count;
    }
    let limit = first(|armed| match &armed.rule.what {
        What::Exhaust { kind: named, count: limit } if named.is(kind) && *limit < count => Some(*limit),
        _ => None,
    });
    limit.unwrap_or(count)
}

/// Until when a context is frozen from now on: asked at its start, and when one of its tasks is submitted.
pub fn freeze(at_start: bool) -> Option<u64> {
    if !armed() {
        return None;
    }
    let ms = first(|armed| match armed.rule.what {
        What::Freeze { after: 0, ms } if at_start => (armed.next() == 1).then_some(ms),
        What::Freeze { after, ms } if !at_start && after > 0 => (armed.next() == after).then_some(ms),
        _ => None,
    });
    ms.map(|ms| clock::now().saturating_add(ms.saturating_mul(clock::millis(1))))
}

/// A number of chance below `end`, if queues are to be served in an order of chance.
#[inline]
pub fn shuffle(end: u32) -> Option<u32> {
    if armed() { chance(end) } else { None }
}

#[cold]
fn chance(end: u32) -> Option<u32> {
    let wanted = |armed: &Armed| matches!(armed.rule.what, What::Reorder { .. }).then_some(());
    first(wanted)?;
    // SplitMix64: any seed will do, and each gives its own sequence.
    let mut z = PLAN.chance.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Some(((z ^ z >> 31) % u64::from(end.max(1))) as u32)
}

/// What `doca_version_runtime` says instead of the truth.
pub fn version() -> Option<&'static CStr> {
    if !armed() {
        return None;
    }
    first(|armed| matches!(armed.rule.what, What::Version(_)).then_some(()))?;
    PLAN.version.as_deref()
}

/// A fault for AddressSanitizer to find: reads behind the end of an allocation, inside this library. It exists only in
/// an instrumented build, where a test calls it to see that the instrumentation is on.
///
/// # Safety
///
/// None: that is its purpose.
#[cfg(doca_sim_asan)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sim_planted_fault() -> u8 {
    let bytes = std::hint::black_box(vec![0u8; 16]);
    let behind = std::hint::black_box(bytes.len());
    // SAFETY: there is none.
    unsafe { bytes.as_ptr().add(behind).read_volatile() }
}
