//! What DOCA's log says of tasks that wait for progress which does not come, and of each step at trace level.

use crate::process::{LIMIT, Parent, Peer};
use crate::side::Side;
use std::time::{Duration, Instant};

const COMPLAINT: &str = "doca_pe_progress has not been called for a second";

/// Time is the subject: long enough for a complaint, and for a second one if there were one.
const SILENCE: Duration = Duration::from_millis(2600);

fn lines_with(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

/// Posts receives and then forgets to progress.
pub fn idler(_: &mut Parent, _: &[String]) {
    let side = Side::new("mlx5_0", 4, 64);
    let receives: Vec<_> =
        (0..3).map(|_| side.receives.submit(side.memory.take(16).unwrap()).unwrap()).collect();
    std::thread::sleep(SILENCE);
    drop(receives);
    side.close();
}

pub fn one_line_when_nobody_progresses() {
    let log = Peer::start("idler", &[]).finish_with();
    assert_eq!(lines_with(&log, COMPLAINT), 1, "{log}");
    assert!(log.contains("3 task(s) are in flight") && log.lines().count() == 1, "{log}");
}

/// Progresses all the time; and does nothing at all while nothing is in flight.
pub fn progresser(_: &mut Parent, _: &[String]) {
    let side = Side::new("mlx5_0", 1, 64);
    let receive = side.receives.submit(side.memory.take(16).unwrap()).unwrap();
    let started = Instant::now();
    while started.elapsed() < SILENCE {
        side.engine.progress().unwrap();
    }
    side.rdma.stop().wait_for(LIMIT).unwrap();
    drop(receive);
    std::thread::sleep(SILENCE);
}

pub fn no_line_for_who_progresses() {
    Peer::start("progresser", &[]).finish();
}

const MESSAGES: usize = 5;

/// Sends itself messages.
pub fn tracer(_: &mut Parent, _: &[String]) {
    let side = Side::new("mlx5_0", MESSAGES as u32, 1024);
    let (exported, descriptor) = side.rdma.export().unwrap();
    let connection = exported.connect(descriptor).unwrap();
    for _ in 0..MESSAGES {
        let mut receive = side.receives.submit(side.memory.take(16).unwrap()).unwrap();
        let message = side.memory.take(16).unwrap();
        side.sends.submit(&connection, message).unwrap().wait_for(LIMIT).unwrap();
        receive.wait_for(LIMIT).unwrap();
    }
    side.close();
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
