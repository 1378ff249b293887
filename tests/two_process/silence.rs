//! What DOCA's log says of tasks that wait for progress which does not come, and of each step at trace level.

use crate::process::{LIMIT, Parent, Peer, Talk};
use crate::side::Side;
use doca::rdma::Connection;

const COMPLAINT: &str = "doca_pe_progress has not been called for a second";

fn lines_with(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

/// Has four engines. It progresses one all the time, has nothing in flight any more in another, and forgets two: the
/// first at once, the second when the parent says so.
pub fn forgetter(parent: &mut Parent, _: &[String]) {
    let side = |tasks| {
        let (side, connection) = Side::alone("mlx5_0", 4, 64);
        let submit = |_| side.receives.submit(side.memory.take(16).unwrap()).unwrap();
        let receives: Vec<_> = (0..tasks).map(submit).collect();
        (side, connection, receives)
    };
    let (busy, idle, forgotten) = (side(1), side(0), side(3));
    messages_to_itself(&idle.0, &idle.1, 1);
    let next = || {
        loop {
            busy.0.engine.progress().unwrap();
            if let Some(line) = parent.said() {
                return line;
            }
        }
    };
    assert_eq!(next(), "forget another");
    let second = side(2);
    assert_eq!(next(), "end");
    for (side, _, receives) in [busy, idle, forgotten, second] {
        drop(receives);
        side.close();
    }
}

/// The second complaint comes more than a second after the first: time for a wrong one.
pub fn one_line_for_each_engine_that_nobody_progresses() {
    let mut peer = Peer::start("forgetter", &[]);
    for (tasks, then) in [(3, "forget another"), (2, "end")] {
        let line = peer.hear_log();
        assert!(
            line.contains(COMPLAINT) && line.contains(&format!("{tasks} task(s) are in flight")),
            "{line}"
        );
        peer.say(then);
    }
    let log = peer.finish_with();
    assert_eq!(log.lines().count(), 2, "{log}");
}

const MESSAGES: usize = 5;

/// Sends itself messages.
pub fn tracer(_: &mut Parent, _: &[String]) {
    let (side, connection) = Side::alone("mlx5_0", MESSAGES as u32, 1024);
    messages_to_itself(&side, &connection, MESSAGES);
    side.close();
}

fn messages_to_itself(side: &Side, connection: &Connection, number: usize) {
    for _ in 0..number {
        let mut receive = side.receives.submit(side.memory.take(16).unwrap()).unwrap();
        let message = side.memory.take(16).unwrap();
        side.sends.submit(connection, message).unwrap().wait_for(LIMIT).unwrap();
        receive.wait_for(LIMIT).unwrap();
    }
}

pub fn each_step_is_a_line_at_trace_level() {
    let log = Peer::start_with("tracer", &[], &[("DOCA_LOG_LEVEL_SDK", "70")]).finish_with();
    for (text, times) in [
        ("Idle -> Starting", 1),
        ("Starting -> Running", 1),
        ("Running -> Stopping", 1),
        ("Stopping -> Idle", 1),
        ("connection 0: Exported -> Connected", 1),
        ("submit of send task", MESSAGES),
        ("submit of receive task", MESSAGES),
        ("completion of task", 2 * MESSAGES),
    ] {
        assert_eq!(lines_with(&log, text), times, "{text}\n{log}");
    }
    // At the usual level there are none of them.
    Peer::start("tracer", &[]).finish();
}
