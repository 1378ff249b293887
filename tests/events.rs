//! Events in asynchronous mode: what their tasks do, who is woken, and what is refused by whom.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/event_tasks.rs"]
mod event_tasks;
mod support;

use counting::allocations;
use doca::context::State;
use doca::event::{Config, GetTask, Left, Pending, Publisher, Subscriber, Task};
use doca::{AsyncEvent, Code, Device, ProgressEngine, Refusal, RemoteEvent};
use event_tasks::Tasks;
use std::time::Duration;
use support::{LIMIT, device};

/// An event of this process alone.
fn configure(device: &Device) -> Config {
    AsyncEvent::configure(Publisher::Cpu(device), Subscriber::Cpu(device)).unwrap()
}

fn running() -> Tasks {
    Tasks::start(configure(&device()))
}

fn value(tasks: &Tasks) -> u64 {
    done(tasks.gets.submit())
}

fn done<T: Task>(submitted: doca::Result<Pending<T>>) -> T::Output {
    submitted.unwrap().wait_for(LIMIT).unwrap()
}

#[test]
fn each_kind_does_what_it_says() {
    let running = running();
    assert_eq!(value(&running), 0, "events begin with 0");
    done(running.sets.submit(u64::MAX));
    assert_eq!(value(&running), u64::MAX);
    // A second round has the same C tasks, told something else.
    for (add, before, after) in [(3, u64::MAX, 2), (40, 2, 42), (0xff00, 42, 0xff2a)] {
        assert_eq!(done(running.adds.submit(add)), before);
        assert_eq!(value(&running), after);
    }
    // Values that are there, under each width of mask.
    for (value, mask) in
        [(0xff2a, u64::MAX), (0x2a, 0xff), (0xff00, 0xff00), (0xff2a, 0xffff), (0xff2a, 0xffff_ffff), (0, 0)]
    {
        done(running.equals.submit(value, mask));
        done(running.others.submit(!value, mask));
    }
}

#[test]
fn a_wait_is_done_when_its_condition_holds() {
    let running = running();
    let mut seven = running.equals.submit(7, u64::MAX).unwrap();
    let mut low = running.equals.submit(5, 0xff).unwrap();
    let mut other = running.others.submit(0, u64::MAX).unwrap();
    let late = seven.wait_for(Duration::from_millis(5)).unwrap_err();
    assert_eq!((late.refusal(), late.call()), (Some(Refusal::TimedOut), "doca_sync_event_task_wait_eq"));
    assert!(!low.is_done() && !other.is_done());
    done(running.sets.submit(0x105));
    low.wait_for(LIMIT).unwrap();
    other.wait_for(LIMIT).unwrap();
    assert!(!seven.is_done());
    done(running.sets.submit(7));
    seven.wait_for(LIMIT).unwrap();
    for error in [seven.wait().unwrap_err(), low.wait_for(LIMIT).unwrap_err()] {
        assert_eq!(error.refusal(), Some(Refusal::Taken));
    }
}

#[test]
fn waits_can_be_awaited() {
    let running = running();
    let Tasks { equals, sets, adds, engine, .. } = &running;
    engine
        .block_on(async {
            let wait = equals.submit(9, u64::MAX).unwrap();
            sets.submit(4).unwrap().await.unwrap();
            assert_eq!(adds.submit(5).unwrap().await.unwrap(), 4);
            wait.await.unwrap();
        })
        .unwrap();
    let stopping = running.event.stop();
    let config = running.engine.block_on(stopping.stopped()).unwrap().unwrap();
    drop(config);
}

#[test]
fn places_of_dropped_waits_come_back_with_their_condition() {
    let running = running();
    for _ in 0..2 {
        drop(running.equals.submit(1, u64::MAX).unwrap());
    }
    let full = running.equals.submit(1, u64::MAX).unwrap_err();
    assert_eq!((full.refusal(), full.is_retryable()), (Some(Refusal::Full), true));
    done(running.sets.submit(1));
    support::until(&running.engine, || running.equals.submit(1, u64::MAX).is_ok());
}

#[test]
fn stopping_flushes_waits_and_revokes_queues() {
    let running = running();
    let Tasks { event, equals, others, gets, engine, .. } = running;
    let mut wait = equals.submit(1, u64::MAX).unwrap();
    drop(others.submit(0, u64::MAX).unwrap());
    let mut config = event.stop().wait_for(LIMIT).unwrap();
    let flushed = wait.wait_for(LIMIT).unwrap_err();
    assert!(flushed.code().is_some(), "{flushed}");
    assert_eq!(equals.submit(1, 0).unwrap_err().refusal(), Some(Refusal::Stale));

    // Once more with the same object: it begins anew, and what belongs to the first run stays refused.
    let more = config.enable::<GetTask>(1).unwrap();
    let event = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
    assert_eq!(event.state(), State::Running);
    assert_eq!(done(event.queue(more).unwrap().submit()), 0);
    assert_eq!(gets.submit().unwrap_err().refusal(), Some(Refusal::Stale));
    drop(engine);
    assert_eq!(event.queue(more).unwrap_err().refusal(), Some(Refusal::Stopped));
    let Left::Consumed = event.stop().wait_for(LIMIT).unwrap_err().value else { panic!("something is left") };
}

#[test]
fn what_cannot_work_is_refused_before_doca_is_asked() {
    let device = device();
    let mut config = configure(&device);
    assert_eq!(config.enable::<GetTask>(0).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    assert_eq!(config.enable::<GetTask>(u32::MAX).unwrap_err().code(), Some(Code::INVALID_VALUE));
    let foreign = config.enable::<GetTask>(1).unwrap();
    let running = running();
    assert_eq!(running.event.queue(foreign).unwrap_err().refusal(), Some(Refusal::OtherContext));
    for mask in [1, 0xff_ffff, 0xf0, u64::MAX >> 8] {
        for error in [running.equals.submit(0, mask).err(), running.others.submit(0, mask).err()] {
            let error = error.unwrap();
            assert_eq!(error.refusal(), Some(Refusal::OutOfRange));
            assert!(error.to_string().contains(&format!("{mask:#x}")), "{error}");
        }
    }
    // On another engine than the one that it was started on first.
    let config = running.event.stop().wait_for(LIMIT).unwrap();
    let failed = config.start(&ProgressEngine::new().unwrap()).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::OtherEngine));
    assert!(matches!(failed.value, Left::Config(_)));
}

/// Descriptors are of two kinds, and each side of PCI imports the other's only.
#[test]
fn an_event_is_exported_only_to_its_publisher() {
    let device = device();
    let engine = ProgressEngine::new().unwrap();
    let start = |publisher| {
        let config = AsyncEvent::configure(publisher, Subscriber::Cpu(&device)).unwrap();
        config.start(&engine).unwrap().running_within(LIMIT).unwrap()
    };
    let net = start(Publisher::RemoteNet);
    assert_eq!(net.export_pci(&device).unwrap_err().code(), Some(Code::NOT_SUPPORTED));
    let pci = start(Publisher::RemotePci);
    assert_eq!(pci.export_net().unwrap_err().code(), Some(Code::NOT_SUPPORTED));
    for bytes in [&b""[..], b"no descriptor", net.export_net().unwrap().as_bytes()] {
        assert!(AsyncEvent::import(&device, bytes).is_err());
    }
    drop(engine);
    assert_eq!(pci.export_pci(&device).unwrap_err().refusal(), Some(Refusal::Stopped));
}

#[test]
fn a_peer_signals_by_rdma_tasks() {
    let peers = support::peers::Peers::new(doca::Access::ANY_RDMA);
    let config = AsyncEvent::configure(Publisher::RemoteNet, Subscriber::Cpu(&peers.device)).unwrap();
    let running = Tasks::start(config);
    let remote = RemoteEvent::import(&peers.device, running.event.export_net().unwrap()).unwrap();
    let mut wait = running.equals.submit(5, u64::MAX).unwrap();
    let source = peers.with(&5u64.to_ne_bytes());
    let source = peers.sets.submit(&peers.connection, &remote, source).unwrap().wait_for(LIMIT).unwrap();
    wait.wait_for(LIMIT).unwrap();
    let mut add = peers.event_adds.submit(&peers.connection, &remote, source, 10).unwrap();
    assert_eq!(add.wait_for(LIMIT).unwrap().value, 5);
    assert_eq!(value(&running), 15);
}

#[test]
fn tasks_allocate_nothing() {
    let running = running();
    let mut expected = 0;
    let counted = allocations(|| {
        expected += 1;
        done(running.sets.submit(expected));
        assert_eq!(done(running.adds.submit(1)), expected);
        expected += 1;
        assert_eq!(value(&running), expected);
        done(running.equals.submit(expected, u64::MAX));
        done(running.others.submit(0, u64::MAX));
    });
    assert_eq!(counted, 0);
}

/// Faults are read once per process, so this test runs itself once more.
#[test]
fn a_task_that_fails_is_told_and_the_event_goes_on() {
    const FAULTS: &str = "fail=sync_event_get:1:IO_FAILED; fail=sync_event_notify_set:1:IO_FAILED; \
                          fail=sync_event_notify_add:1:IO_FAILED; fail=sync_event_wait_eq:1:IO_FAILED; \
                          fail=sync_event_wait_neq:1:IO_FAILED; refuse=sync_event_get:2:BAD_STATE; \
                          exhaust=sync_event_notify_set:1";
    const TEST: &str = "a_task_that_fails_is_told_and_the_event_goes_on";
    if std::env::var("DOCA_SIM_FAULTS").is_err() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]).env("DOCA_SIM_FAULTS", FAULTS);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("never happened"), "{said}");
        return;
    }
    fn ended<T: Task>(submitted: doca::Result<Pending<T>>) -> doca::Result<()> {
        submitted?.wait_for(LIMIT).map(drop)
    }
    let Tasks { event, gets, sets, adds, equals, others, .. } = &running();
    let failures = [
        ("get", ended(gets.submit())),
        ("notify_set", ended(sets.submit(1))),
        ("notify_add", ended(adds.submit(1))),
        ("wait_eq", ended(equals.submit(0, u64::MAX))),
        ("wait_neq", ended(others.submit(1, u64::MAX))),
    ];
    for (kind, failure) in failures {
        let error = failure.unwrap_err();
        let name = format!("doca_sync_event_task_{kind}");
        assert_eq!((error.call(), error.code()), (name.as_str(), Some(Code::IO_FAILED)), "{error}");
    }
    assert_eq!(gets.submit().unwrap_err().code(), Some(Code::BAD_STATE));
    assert_eq!(event.state(), State::Running);
    // DOCA's pool has one task, where two were asked for.
    let first = sets.submit(3).unwrap();
    assert_eq!(sets.submit(4).unwrap_err().code(), Some(Code::NO_MEMORY));
    done(Ok(first));
    assert_eq!(done(gets.submit()), 3, "what failed has changed nothing");
}
