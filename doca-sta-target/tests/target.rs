//! A target on a simulated disk and a host, over the simulated RDMA. DOCA has one allocator for a process, and a process
//! reads one topology, so each test has a process of its own; where death matters, the other side is a process, too.

mod support;

use doca_sim_initiator::controller::read_write;
use doca_sim_initiator::load::{self, Load, Mix};
use doca_sim_initiator::{Controller, Data, Host, Part, Target as Way, smoke, wire};
use doca_sta::event::{Event, Origin};
use nvme_wire::{IoOpcode, Nqn, Sqe, Status};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ask, BLOCKS, LIMIT, Serving, alone, alone_with, connected, disk, host, start, verify, way};

#[test]
fn capsules_get_the_status_of_the_specification() {
    alone("capsules_get_the_status_of_the_specification", "", || {
        let serving = Serving::start();
        let verdict = wire::run(&host(), &way(), 1).unwrap();
        assert!(verdict.wrong.is_empty(), "{:#?}", verdict.wrong);
        serving.until("queues end", |statistics| statistics.queues == 0);
        serving.stop();
    });
}

#[test]
fn reads_and_writes_do_not_reach_the_application() {
    alone("reads_and_writes_do_not_reach_the_application", "", || {
        let serving = Serving::start();
        let mut controller = connected();
        let mut queue = controller.io_queue(1, 32).unwrap();
        let mut block = [0; 512];
        queue.write(1, 5, 512, &[7; 512]).unwrap();
        let before = serving.statistics();
        for _ in 0..200 {
            queue.read(1, 5, 512, &mut block).unwrap();
        }
        assert_eq!(block, [7; 512]);
        serving.until("the adapter counts", |now| now.namespaces[0].2.get("read_cmds") == Some(200));
        assert_eq!(
            serving.statistics().threads[0].commands,
            before.threads[0].commands,
            "the thread saw none"
        );
        queue.flush(1).unwrap();
        serving.until("the thread sees what is not offloaded", |now| {
            now.threads[0].commands == before.threads[0].commands + 1
        });
        drop(queue);
        controller.shutdown().unwrap();
        drop(controller);
        serving.stop();
    });
}

#[test]
fn a_disk_that_fails_is_told_and_used_again() {
    alone("a_disk_that_fails_is_told_and_used_again", "", || {
        let serving = Serving::start();
        let controller = connected();
        let mut queue = controller.io_queue(1, 32).unwrap();
        queue.write(1, 0, 512, &[1; 512]).unwrap();
        serving.faults.fail_many(Some(IoOpcode::READ), 1, 1, Status::UNRECOVERED_READ_ERROR);
        let failed = queue.read(1, 0, 512, &mut [0; 512]).unwrap_err();
        assert!(failed.status().is_some_and(|status| status.is(Status::UNRECOVERED_READ_ERROR)), "{failed}");
        let mut block = [0; 512];
        queue.read(1, 0, 512, &mut block).unwrap();
        assert_eq!(block, [1; 512]);
        let beyond = queue.read(1, BLOCKS, 512, &mut [0; 512]).unwrap_err();
        assert!(beyond.status().is_some_and(|status| status.is(Status::LBA_OUT_OF_RANGE)), "{beyond}");
        drop((queue, controller));
        serving.stop();
    });
}

#[test]
fn a_disk_that_stalls_raises_an_event_and_goes_on() {
    let topology = r#"{ "extends": "default", "host": { "mlx5_0": { "sta": { "be_timeout_ms": 200 } } } }"#;
    alone("a_disk_that_stalls_raises_an_event_and_goes_on", topology, || {
        let serving = Serving::start();
        let faults = serving.faults.clone();
        let reader = std::thread::spawn(move || {
            let controller = connected();
            let mut queue = controller.io_queue(1, 32).unwrap();
            faults.stall(true);
            queue.read(1, 0, 512, &mut [0; 512]).unwrap();
        });
        let event = serving.events.recv_timeout(LIMIT).unwrap();
        assert!(matches!(event, Event::BackEndTimeout { back_end: Some(_) }), "{event:?}");
        serving.faults.stall(false);
        reader.join().unwrap();
        serving.stop();
    });
}

#[test]
fn answers_and_failures_of_the_adapter_are_told() {
    let faults = [("DOCA_SIM_FAULTS", "unit=2:recoverable")];
    alone_with("answers_and_failures_of_the_adapter_are_told", &faults, "", || {
        let serving = Serving::start();
        let controller = connected();
        let mut queue = controller.io_queue(1, 32).unwrap();
        let told = || serving.events.recv_timeout(LIMIT).unwrap();
        // The first command that the adapter takes: the disk fails it.
        queue.read(1, BLOCKS, 512, &mut [0; 512]).unwrap_err();
        let event = told();
        let Event::ErrorResponse(response) = &event else { panic!("{event:?}") };
        assert_eq!((response.origin, response.opcode), (Origin::Disk, IoOpcode::READ.0));
        assert_eq!((response.nsid, response.lba), (1, BLOCKS));
        assert!(event.to_string().ends_with("block 8192 of namespace 1: SCT 0 SC 0x80"), "{event}");
        // One that the adapter refuses itself is not taken.
        queue.status(read_write(IoOpcode::READ, 9, 0, 1), Data::In(512)).unwrap();
        let event = told();
        assert!(
            matches!(&event, Event::ErrorResponse(response) if response.origin == Origin::Validation),
            "{event:?}"
        );
        // The second: the unit that takes it fails.
        queue.read(1, 0, 512, &mut [0; 512]).unwrap();
        let event = told();
        assert!(matches!(&event, Event::EuFailed { fatal: false, eu: Some(_) }), "{event:?}");
        assert!(event.to_string().starts_with("execution unit comp"), "{event}");
        drop((queue, controller));
        serving.stop();
    });
}

#[test]
fn a_host_that_keeps_silent_loses_its_queues() {
    alone("a_host_that_keeps_silent_loses_its_queues", "", || {
        let serving = Serving::start();
        let quiet = Host { kato: 300, ..host() };
        let mut controller = quiet.open(&way()).unwrap();
        controller.set_num_queues(1).unwrap();
        serving.until("it expires", |now| now.engine.expired == 1 && now.queues == 0);
        assert!(controller.keep_alive().is_err());
        verify(&mut connected(), Duration::from_millis(100));
        serving.stop();
    });
}

#[test]
fn a_namespace_leaves_under_load() {
    alone("a_namespace_leaves_under_load", "", || {
        let serving = Serving::start();
        let mut controller = connected();
        let mut queue = controller.io_queue(1, 32).unwrap();
        let asks = serving.asks.clone();
        let remover = std::thread::spawn(move || {
            std::thread::yield_now();
            asks.send(Ask::Remove(1)).unwrap();
        });
        let deadline = Instant::now() + LIMIT;
        let refused = loop {
            assert!(Instant::now() < deadline);
            if let Err(error) = queue.read(1, 0, 512, &mut [0; 512]) {
                break error;
            }
        };
        assert!(refused.status().is_some_and(|status| status.is(Status::INVALID_NAMESPACE)), "{refused}");
        remover.join().unwrap();
        // The refusal is told, too, and it may be so first.
        while !matches!(serving.events.recv_timeout(LIMIT).unwrap(), Event::NamespaceRemoved(_)) {}
        assert_eq!(controller.namespaces().unwrap(), []);
        drop((queue, controller));
        serving.stop();
    });
}

#[test]
fn a_target_ends_under_load() {
    alone("a_target_ends_under_load", "", || {
        let serving = Serving::start();
        let hosts = std::thread::spawn(move || {
            let mut controller = connected();
            let time = Duration::from_secs(600);
            let load =
                Load { queues: 2, depth: 16, size: 4096, random: true, mix: Mix::Write, time, nsid: 1 };
            load::run(&mut controller, &load).map(|_| ())
        });
        serving.until("it is under way", |now| now.namespaces[0].2.get("write_cmds") > Some(50));
        serving.stop();
        assert!(hosts.join().unwrap().is_err(), "the host notices");
    });
}

#[test]
fn the_smoke_test_says_which_part_failed() {
    alone("the_smoke_test_says_which_part_failed", "", || {
        let time = Duration::from_millis(50);
        let run = |way: &Way| {
            let mut steps = Vec::new();
            let ended = smoke::run(&host(), way, 1, time, |step| steps.push(step.to_owned()));
            (ended.map_err(|failure| (failure.part, failure.status())), steps)
        };
        let (ended, steps) = run(&way());
        assert!(
            matches!(ended, Err((Part::Fabric(0), None))) && steps.is_empty(),
            "nobody listens: {ended:?}"
        );
        let serving = Serving::start();
        let stranger = Way { subnqn: Nqn::new("nqn.2014-08.org.example:none").unwrap(), ..way() };
        let (ended, steps) = run(&stranger);
        assert!(matches!(ended, Err((Part::Admin, Some(_)))) && steps.is_empty(), "{ended:?}");
        serving.faults.fail_many(Some(IoOpcode::WRITE), 1, 1, Status::WRITE_FAULT);
        let (ended, steps) = run(&way());
        assert!(
            matches!(ended, Err((Part::Io(1), Some(status))) if status.is(Status::WRITE_FAULT)),
            "{ended:?}"
        );
        assert!(steps.len() == 3 && steps.iter().all(|step| step.starts_with("admin: ")), "{steps:?}");
        assert_eq!(run(&way()).0, Ok(()));
        serving.stop();
    });
}

#[test]
fn a_host_leaves_in_the_middle_of_its_commands() {
    alone("a_host_leaves_in_the_middle_of_its_commands", "", || {
        let serving = Serving::start();
        for size in [512, 64 << 10] {
            let mut controller = connected();
            let mut queues = [1, 2].map(|qid| controller.io_queue(qid, 32).unwrap());
            controller.request_event().unwrap();
            let blocks = (size / 512) as u32;
            for queue in &mut queues {
                let flush = Sqe { opcode: IoOpcode::FLUSH.0, nsid: 1, ..Sqe::default() };
                queue.submit(flush, Data::None).unwrap().unwrap();
                for opcode in [IoOpcode::READ, IoOpcode::WRITE].repeat(15) {
                    let data = vec![1; size];
                    let data = if opcode == IoOpcode::READ { Data::In(size) } else { Data::Out(&data) };
                    queue.submit(read_write(opcode, 1, 0, blocks), data).unwrap().unwrap();
                }
            }
            // One queue first, and what is left with the controller.
            let [first, second] = queues;
            drop(first);
            drop((second, controller));
            serving.until("its queues end", |now| now.queues == 0 && now.controllers == 0);
        }
        verify(&mut connected(), Duration::from_millis(100));
        serving.stop();
    });
}

/// Set in a process that a test starts to kill it: it is the same test again, in another part.
const VICTIM: &str = "DOCA_STA_TARGET_VICTIM";

fn is_victim() -> bool {
    std::env::var_os(VICTIM).is_some()
}

fn victim_of(test: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env(VICTIM, "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Writes until it is killed.
fn busy_host() {
    let time = Duration::from_secs(600);
    let load = Load { queues: 2, depth: 16, size: 4096, random: true, mix: Mix::Write, time, nsid: 1 };
    let _ = load::run(&mut connected(), &load);
}

#[test]
fn a_killed_host_leaves_nothing() {
    if is_victim() {
        return busy_host();
    }
    alone("a_killed_host_leaves_nothing", "", || {
        let serving = Serving::start();
        for _ in 0..3 {
            let before = serving.statistics().namespaces[0].2.get("write_cmds").unwrap();
            let mut victim = victim_of("a_killed_host_leaves_nothing");
            serving.until("it writes", |now| now.namespaces[0].2.get("write_cmds").unwrap() > before + 20);
            victim.kill().unwrap();
            victim.wait().unwrap();
            serving.until("its queues end", |now| now.queues == 0 && now.controllers == 0);
        }
        verify(&mut connected(), Duration::from_millis(100));
        serving.stop();
    });
}

/// Serves until it is killed.
fn lone_target() {
    let disk = disk();
    let mut target = start(&disk).unwrap();
    loop {
        target.run_for(Duration::from_secs(1)).unwrap();
    }
}

/// Connects once the target listens.
fn eventually_connected() -> Controller {
    let deadline = Instant::now() + LIMIT;
    loop {
        match host().open(&way()) {
            Ok(mut controller) => {
                controller.set_num_queues(4).unwrap();
                return controller;
            }
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}

#[test]
fn a_killed_target_can_be_started_again() {
    const NAME: &str = "a_killed_target_can_be_started_again";
    if is_victim() {
        return lone_target();
    }
    alone(NAME, "", || {
        let mut target = victim_of(NAME);
        let mut controller = eventually_connected();
        verify(&mut controller, Duration::from_millis(100));
        target.kill().unwrap();
        target.wait().unwrap();
        assert!(controller.keep_alive().is_err(), "the host notices");
        drop(controller);
        let mut again = victim_of(NAME);
        verify(&mut eventually_connected(), Duration::from_millis(100));
        again.kill().unwrap();
        again.wait().unwrap();
    });
}
