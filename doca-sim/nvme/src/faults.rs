//! Failures on demand.

use nvme_wire::Status;
use nvme_wire::command::IoOpcode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Makes a disk misbehave; takes effect with the next command. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Beginnings and ends of what the controller does: odd while it works.
    steps: AtomicU64,
}

/// The controller works as long as this is there.
pub(crate) struct Step<'a>(&'a AtomicU64);

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    stalled: bool,
    frozen: bool,
    gone: bool,
    latency: Duration,
}

#[derive(Debug)]
struct Rule {
    opcode: Option<IoOpcode>,
    /// Commands still to come before the first that fails.
    skip: u64,
    /// How many fail.
    times: u64,
    status: Status,
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The controller begins to work: before it asks for anything here.
    pub(crate) fn step(&self) -> Step<'_> {
        self.0.steps.fetch_add(1, SeqCst);
        Step(&self.0.steps)
    }

    /// Changes what is asked for when the controller begins to work, and lets what it does now come to its end.
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        let now = self.0.steps.load(SeqCst);
        while now % 2 == 1 && self.0.steps.load(SeqCst) == now {
            std::thread::yield_now();
        }
    }

    /// The `nth` I/O command from now, counted from 1, ends with this status and does nothing; with an opcode only
    /// commands of that kind count.
    pub fn fail(&self, opcode: Option<IoOpcode>, nth: u64, status: Status) {
        self.fail_many(opcode, nth, 1, status);
    }

    /// Like [`Faults::fail`] for `times` commands in a row.
    pub fn fail_many(&self, opcode: Option<IoOpcode>, nth: u64, times: u64, status: Status) {
        self.state().rules.push(Rule { opcode, skip: nth.saturating_sub(1), times, status });
    }

    /// While it is stalled the controller fetches no I/O commands and posts no completions; afterwards it goes on.
    pub fn stall(&self, stalled: bool) {
        self.change(|state| state.stalled = stalled);
    }

    /// While it is frozen the controller does nothing at all: registers keep their values, admin commands are not answered
    /// either, and a reset has no end.
    pub fn freeze(&self, frozen: bool) {
        self.change(|state| state.frozen = frozen);
    }

    /// The device disappears for good: registers read as ones, nothing completes any more.
    pub fn vanish(&self) {
        self.change(|state| state.gone = true);
    }

    /// Each I/O command completes only after this time.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Forgets failures, stall, frost and latency. A device that disappeared stays away.
    pub fn heal(&self) {
        let mut state = self.state();
        *state = State { gone: state.gone, ..State::default() };
    }

    pub(crate) fn gone(&self) -> bool {
        self.state().gone
    }

    pub(crate) fn frozen(&self) -> bool {
        self.state().frozen
    }

    pub(crate) fn stalled(&self) -> bool {
        self.state().stalled
    }

    /// How the next command fares: the status with which it fails, if so, and how long it takes.
    pub(crate) fn next(&self, opcode: IoOpcode) -> (Option<Status>, Duration) {
        let mut state = self.state();
        let mut failure = None;
        for rule in state.rules.iter_mut().filter(|rule| rule.opcode.is_none_or(|only| only == opcode)) {
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.times > 0 {
                rule.times -= 1;
                failure = failure.or(Some(rule.status));
            }
        }
        state.rules.retain(|rule| rule.times > 0);
        (failure, state.latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_count_the_commands_they_name() {
        let faults = Faults::default();
        faults.fail(Some(IoOpcode::READ), 2, Status::UNRECOVERED_READ_ERROR);
        faults.fail_many(None, 4, 2, Status::INTERNAL_ERROR);
        let outcomes = [
            IoOpcode::READ,
            IoOpcode::WRITE,
            IoOpcode::READ,
            IoOpcode::READ,
            IoOpcode::WRITE,
            IoOpcode::READ,
        ];
        let (read, all) = (Some(Status::UNRECOVERED_READ_ERROR), Some(Status::INTERNAL_ERROR));
        assert_eq!(outcomes.map(|opcode| faults.next(opcode).0), [None, None, read, all, all, None]);
        faults.set_latency(Duration::from_millis(1));
        faults.stall(true);
        faults.heal();
        assert_eq!((faults.next(IoOpcode::READ), faults.stalled()), ((None, Duration::ZERO), false));
    }
}
