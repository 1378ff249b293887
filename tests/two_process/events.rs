//! Events between processes, one of which waits in its engine while the other signals.

use crate::event_tasks::Tasks;
use crate::process::{LIMIT, Parent, Peer, Talk, from_hex, to_hex};
use crate::wake::poll;
use doca::event::{Condition, Publisher, Subscriber};
use doca::rdma::{EventAddTask, EventSetTask, Rdma};
use doca::{Access, AsyncEvent, Device, Memory, ProgressEngine, Refusal, RemoteEvent, SyncEvent};
use std::time::{Duration, Instant};

/// Puts a process on the DPU.
const ON_DPU: (&str, &str) = ("DOCA_SIM_SIDE", "dpu");

/// Sleeps in the kernel until a submitted wait is done.
fn sleep_until(engine: &ProgressEngine, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while engine.progress().unwrap() {}
    while !done() {
        engine.arm().unwrap();
        assert!(poll(engine, deadline.saturating_duration_since(Instant::now())), "not woken");
        while engine.progress().unwrap() {}
    }
}

/// An end of an event, in either mode.
enum End {
    Calls(SyncEvent),
    Tasks(Tasks),
}

impl End {
    fn set(&self, value: u64) {
        match self {
            End::Calls(event) => event.set(value).unwrap(),
            End::Tasks(tasks) => tasks.sets.submit(value).unwrap().wait_for(LIMIT).unwrap(),
        }
    }

    fn add(&self, value: u64) -> u64 {
        match self {
            End::Calls(event) => event.add(value).unwrap(),
            End::Tasks(tasks) => tasks.adds.submit(value).unwrap().wait_for(LIMIT).unwrap(),
        }
    }

    /// Waits for a value, then gives what is there.
    fn wait(&self, condition: Condition) -> u64 {
        match (self, condition) {
            (End::Calls(event), _) => event.wait_for(condition, LIMIT).unwrap(),
            (End::Tasks(tasks), Condition::Equal(value)) => {
                let wait = tasks.equals.submit(value, u64::MAX).unwrap();
                sleep_until(&tasks.engine, || wait.is_done());
                tasks.gets.submit().unwrap().wait_for(LIMIT).unwrap()
            }
            (End::Tasks(tasks), Condition::NotEqual(value)) => {
                tasks.others.submit(value, u64::MAX).unwrap().wait_for(LIMIT).unwrap();
                tasks.gets.submit().unwrap().wait_for(LIMIT).unwrap()
            }
            (End::Tasks(_), _) => panic!("there is no such task"),
        }
    }

    fn close(self) {
        if let End::Tasks(tasks) = self {
            tasks.event.stop().wait_for(LIMIT).unwrap();
        }
    }
}

/// A device that imports events of the other side.
fn importing() -> Device {
    let able = doca::event::CAPABILITIES.iter().find(|able| able.name == "event.import_from_remote_pci");
    Device::find().with(*able.unwrap()).list().unwrap()[0].open().unwrap()
}

/// On the DPU: answers, in this mode.
pub fn importer(parent: &mut Parent, args: &[String]) {
    let (device, bytes) = (importing(), from_hex(&parent.hear()));
    let end = match args[0].as_str() {
        "calls" => End::Calls(SyncEvent::import(&device, bytes).unwrap()),
        _ => End::Tasks(Tasks::start(AsyncEvent::import(&device, bytes).unwrap())),
    };
    end.set(1);
    assert_eq!(end.wait(Condition::Equal(2)), 2);
    assert_eq!(end.add(8), 2);
    end.close();
}

/// Exports an event across PCI, and lets the peer signal and be signalled.
fn cross_pci(tasks: bool, theirs: &str) {
    let device = Device::open("mlx5_0").unwrap();
    let places = (Publisher::RemotePci, Subscriber::Cpu(&device));
    let (end, descriptor) = if tasks {
        let tasks = Tasks::start(AsyncEvent::configure(places.0, places.1).unwrap());
        let descriptor = tasks.event.export_pci(&device).unwrap();
        (End::Tasks(tasks), descriptor)
    } else {
        let event = SyncEvent::new(places.0, places.1).unwrap();
        let descriptor = event.export_pci(&device).unwrap();
        (End::Calls(event), descriptor)
    };
    let mut peer = Peer::start_with("event importer", &[theirs], &[ON_DPU]);
    peer.say(&to_hex(descriptor.as_bytes()));
    assert_eq!(end.wait(Condition::Equal(1)), 1);
    assert_eq!(end.add(1), 1);
    assert_eq!(end.wait(Condition::NotEqual(2)), 10);
    peer.finish();
    end.close();
}

pub fn an_event_crosses_pci_in_every_pairing_of_modes() {
    for (ours, theirs) in [(true, "tasks"), (true, "calls"), (false, "tasks"), (false, "calls")] {
        cross_pci(ours, theirs);
    }
}

/// Signals by RDMA, twice, without being asked anything in between.
pub fn signaller(parent: &mut Parent, _: &[String]) {
    let device = Device::open("mlx5_1").unwrap();
    let engine = ProgressEngine::new().unwrap();
    let memory = Memory::zeroed(64).unwrap().private(&device).unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    config.set_gid_roce_v2().unwrap();
    let (sets, adds) = (config.enable::<EventSetTask>(1).unwrap(), config.enable::<EventAddTask>(1).unwrap());
    let starting = config.start(&engine).unwrap();
    let (exported, descriptor) = starting.export().unwrap();
    parent.say(&to_hex(descriptor.as_bytes()));
    let connection = exported.connect(from_hex(&parent.hear())).unwrap();
    let rdma = starting.running_within(LIMIT).unwrap();
    let event = RemoteEvent::import(&device, from_hex(&parent.hear())).unwrap();
    let (sets, adds) = (rdma.queue(sets).unwrap(), rdma.queue(adds).unwrap());
    let mut number = memory.take(8).unwrap();
    number.copy_from_slice(&7u64.to_ne_bytes());
    parent.expect("asleep");
    let number = sets.submit(&connection, &event, number).unwrap().wait_for(LIMIT).unwrap();
    parent.expect("woken");
    let word = adds.submit(&connection, &event, number, 3).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(word.value, 7);
    parent.expect("end");
    rdma.stop().wait_for(LIMIT).unwrap();
}

pub fn a_sleeping_wait_is_woken_over_rdma() {
    let mut peer = Peer::start("event signaller", &[]);
    let device = Device::open("mlx5_0").unwrap();
    let tasks = Tasks::start(AsyncEvent::configure(Publisher::RemoteNet, Subscriber::Cpu(&device)).unwrap());
    // The connection has an engine of its own, which nobody progresses any more once it runs.
    let engine = ProgressEngine::new().unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    config.set_gid_roce_v2().unwrap();
    config.set_permissions(Access::RDMA_WRITE | Access::RDMA_ATOMIC).unwrap();
    let starting = config.start(&engine).unwrap();
    let (exported, descriptor) = starting.export().unwrap();
    peer.say(&to_hex(descriptor.as_bytes()));
    let _connection = exported.connect(from_hex(&peer.hear())).unwrap();
    let rdma = starting.running_within(LIMIT).unwrap();
    peer.say(&to_hex(tasks.event.export_net().unwrap().as_bytes()));

    let first = tasks.others.submit(0, u64::MAX).unwrap();
    peer.say("asleep");
    sleep_until(&tasks.engine, || first.is_done());
    assert_eq!(tasks.gets.submit().unwrap().wait_for(LIMIT).unwrap(), 7);
    let second = tasks.equals.submit(10, u64::MAX).unwrap();
    peer.say("woken");
    sleep_until(&tasks.engine, || second.is_done());
    peer.say("end");
    peer.finish();
    rdma.stop().wait_for(LIMIT).unwrap();
    tasks.event.stop().wait_for(LIMIT).unwrap();
}

/// Exports an event, and is killed.
pub fn exporter(parent: &mut Parent, _: &[String]) {
    let device = Device::open("mlx5_0").unwrap();
    let event = SyncEvent::new(Publisher::RemotePci, Subscriber::Cpu(&device)).unwrap();
    parent.say(&to_hex(event.export_pci(&device).unwrap().as_bytes()));
    parent.expect("never said");
}

/// Waits for a signal that will not come: no document says that DOCA notices, so who waits has a deadline, and can stop.
pub fn bereaved(parent: &mut Parent, _: &[String]) {
    let tasks = Tasks::start(AsyncEvent::import(&importing(), from_hex(&parent.hear())).unwrap());
    let mut wait = tasks.equals.submit(1, u64::MAX).unwrap();
    parent.say("waiting");
    parent.expect("dead");
    let late = wait.wait_for(Duration::from_millis(20)).unwrap_err();
    assert_eq!(late.refusal(), Some(Refusal::TimedOut), "{late}");
    tasks.event.stop().wait_for(LIMIT).unwrap();
    let flushed = wait.wait_for(LIMIT).unwrap_err();
    assert!(flushed.code().is_some(), "{flushed}");
}

pub fn a_wait_for_a_killed_process_can_be_given_up() {
    let mut owner = Peer::start("event exporter", &[]);
    let mut waiter = Peer::start_with("event bereaved", &[], &[ON_DPU]);
    let descriptor = owner.hear();
    waiter.say(&descriptor);
    waiter.expect("waiting");
    owner.kill();
    waiter.say("dead");
    waiter.finish();
}
