//! The engine's thread of an instance: it does what the execution units of the adapter do, while no thread of the program has
//! to run. It calls no code of programs, and ends before its instance is IDLE.

use super::core::{ControlEvent, Core, State, UnitKind};
use super::handle::Handle;
use super::qp::{Limits, QpState};
use crate::fabric::clock;
use crate::fabric::operation::Outcome;
use crate::fabric::receives;
use crate::log;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

/// How often timeouts and the life of peers are looked at.
const CHORES_EVERY: u64 = clock::millis(5);
/// Rounds without work before the thread sleeps.
const PATIENT: u32 = 32;
/// Sleep while a disk works, which tells nobody when it is done: from this, in microseconds, to 32 times as long.
const NAP_US: u32 = 20;
const LONGEST_NAP_US: u32 = 640;
/// Sleep while a client has not named its end of the data, and while a peer owes something.
const LOOK_MS: u32 = 1;
/// Sleep while nothing is expected.
const REST_MS: u32 = 200;

/// Starts the thread.
pub(super) fn start(core: &Arc<Core>) -> std::io::Result<JoinHandle<()>> {
    let core = core.clone();
    std::thread::Builder::new().name("doca-sta".to_owned()).spawn(move || run(&core))
}

fn run(core: &Core) {
    let limits = Limits { max_io_size: core.limits.max_io_size, queue_size: core.caps.max_io_queue_size };
    let (mut idle, mut chores) = (0u32, 0u64);
    loop {
        let mut state = core.serve();
        if state.target.ending {
            return;
        }
        let round = catch_unwind(AssertUnwindSafe(|| round(&mut state, limits, &mut chores)));
        let busy = round.unwrap_or_else(|_| {
            break_down(&mut state);
            false
        });
        state.target.ready = true;
        if busy {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle <= PATIENT && expects_disk(&state) {
            drop(state);
            std::thread::yield_now();
            continue;
        }
        let nap = nap(core, &mut state, idle);
        drop(state);
        sleep(core, nap);
    }
}

/// One look at everything; tells whether there was something to do.
fn round(state: &mut State, limits: Limits, chores: &mut u64) -> bool {
    if state.target.broken {
        return end_all(state);
    }
    let now = clock::now();
    let mut busy = receive(state, limits);
    busy |= serve_queue_pairs(state, now, limits);
    busy |= state.serve_disks();
    busy |= state.finish_removals();
    busy |= state.finish_destruction();
    if now.saturating_sub(*chores) >= CHORES_EVERY {
        *chores = now;
        for qp in state.qps.values_mut() {
            qp.look_after();
        }
        for io in state.target.ios.values() {
            receives::reap(&io.view, io.received);
        }
        state.watch_disks(state.target.patience);
    }
    busy
}

/// Serves each queue pair once, then lets each begin commands. What there is too little of goes round: whoever went without is
/// first next time, and if nobody did, the next in the row is. What is freed is nobody's before it is shared out: a queue pair
/// that got back what its commands had held at its own turn would take it again, and the same ones would be served for ever.
fn serve_queue_pairs(state: &mut State, now: u64, limits: Limits) -> bool {
    let State { qps, target } = state;
    let mut busy = false;
    for qp in qps.values_mut() {
        busy |= qp.serve(target, now);
    }
    let (before, after) = (qps.range(..target.turn), qps.range(target.turn..));
    let order: Vec<Handle> = after.chain(before).map(|(handle, _)| *handle).collect();
    let mut starved = None;
    for handle in &order {
        let Some(qp) = qps.get_mut(handle) else { continue };
        busy |= qp.take_commands(target, limits);
        if qp.starved {
            starved = starved.or(Some(*handle));
        }
    }
    target.turn = starved.or(order.get(1).copied()).unwrap_or(target.turn);
    busy
}

/// Takes capsules in, and serves hosts that wait for room.
fn receive(state: &mut State, limits: Limits) -> bool {
    let State { qps, target } = state;
    let mut busy = false;
    for index in target.ios.keys().copied().collect::<Vec<_>>() {
        while let Some(io) = target.ios.get_mut(&index) {
            let Some(result) = receives::received(&io.view, io.received) else { break };
            busy = true;
            let slot = io.received as usize & (io.view.sizes().receives as usize - 1);
            let len = (result.length as usize).min(io.capsule_len);
            let bytes = io.capsules.as_ref().map(|capsules| capsules.read(slot * io.capsule_len, len));
            let qp = io.slots.get(result.link.index as usize).copied().flatten();
            io.received += 1;
            io.post_receive();
            let qp = qp.and_then(|qp| qps.get_mut(&qp));
            let named = qp.filter(|qp| qp.wire.as_ref().is_some_and(|wire| wire.link == result.link));
            if let (Some(qp), Some(bytes), Outcome::Success) = (named, bytes, result.outcome) {
                qp.arrived(target, &bytes, limits);
            }
        }
        let Some(io) = target.ios.get(&index) else { continue };
        receives::serve_waiting(&io.view, |link| {
            let qp = io.slots.get(link as usize).copied().flatten()?;
            qps.get(&qp)?.wire.as_ref()?.far_view()
        });
    }
    busy
}

/// Whether a disk has something to do.
fn expects_disk(state: &State) -> bool {
    state.target.queues.values().any(|queue| queue.outstanding() > 0)
}

/// How long to sleep, in microseconds. Whatever comes from hosts and programs wakes.
fn nap(core: &Core, state: &mut State, idle: u32) -> u32 {
    for io in state.target.ios.values() {
        io.view.arm(core.pipe.writer());
    }
    // What came before that would wake nobody.
    let missed = state.target.ios.values().any(|io| receives::received(&io.view, io.received).is_some());
    let lonely = state.qps.values().any(|qp| {
        !matches!(qp.state, QpState::Ended | QpState::Disconnected)
            && qp.wire.as_ref().is_some_and(super::wire::Wire::is_lonely)
    });
    let owed = state.qps.values().any(|qp| qp.wire.as_ref().is_some_and(|wire| wire.posted > wire.reported));
    if missed {
        0
    } else if expects_disk(state) {
        (NAP_US << (idle.saturating_sub(PATIENT) / 4).min(5)).min(LONGEST_NAP_US)
    } else if lonely || owed {
        LOOK_MS * 1000
    } else {
        REST_MS * 1000
    }
}

fn sleep(core: &Core, micros: u32) {
    if micros > 0 {
        let mut waited = libc::pollfd { fd: core.pipe.reader(), events: libc::POLLIN, revents: 0 };
        let limit = libc::timespec {
            tv_sec: (micros / 1_000_000).into(),
            tv_nsec: i64::from(micros % 1_000_000) * 1000,
        };
        // SAFETY: one valid `pollfd` and a valid time; no signal mask.
        unsafe { libc::ppoll(&mut waited, 1, &limit, std::ptr::null()) };
    }
    core.pipe.drain();
}

/// What is left when nothing is served any more: connections break, and tasks end.
fn end_all(state: &mut State) -> bool {
    let State { qps, target } = state;
    let mut busy = false;
    for qp in qps.values_mut() {
        qp.fail(target, 0, 0x14);
        busy |= qp.wind_up(target);
    }
    busy |= state.finish_removals();
    busy | state.finish_destruction()
}

/// After an error of this library: nothing is served any more, and the program hears of it.
fn break_down(state: &mut State) {
    log::error!("internal error of the simulator in an execution unit, please report it");
    end_all(state);
    let target = &mut state.target;
    target.broken = true;
    if let Some(unit) = target.units.iter().find(|unit| unit.kind == UnitKind::Comp) {
        let unit = unit.handle;
        target.tell(ControlEvent::UnitError { fatal: true, unit });
    }
}
