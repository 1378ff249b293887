//! Targets from description to end, without initiators, under every reading of when DOCA wants to be told. A process reads
//! its profile once, so each test asks in a process of its own.

mod support;

use doca_common::context::State;
use doca_common::{Code, Kind, Memory, ProgressEngine, Refusal};
use doca_sta::event::{EuKind, Event};
use doca_sta::{Config, HugepageAllocator, Left, Namespace, PlainAllocator, Sta};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{Counted, LIMIT, control, network, until, with_profile};

fn described() -> (Config, doca_sta::NamespaceId, doca_sta::BackEndId, support::Deleted) {
    let mut config = Sta::configure(&control()).unwrap();
    config.add_network(&network()).unwrap();
    config.set_io_contexts(2).unwrap();
    let (queue, deleted) = Counted::new(64);
    let back_end = config.add_back_end(vec![queue]).unwrap();
    let subsystem = config.add_subsystem("nqn.2014-08.org.example:one").unwrap();
    let namespace = Namespace { subsystem, nsid: 1, block_size: 512, back_end, disk_nsid: 1 };
    let namespace = config.add_namespace(namespace).unwrap();
    (config, namespace, back_end, deleted)
}

/// Starts, serves two threads, and ends in order.
fn whole_life() {
    let engine = ProgressEngine::new().unwrap();
    let (config, namespace, back_end, deleted) = described();
    let sta = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
    assert_eq!(sta.state(), State::Running);
    let counters = sta.namespace_counters(namespace).unwrap();
    assert_eq!(counters.get("read_cmds"), Some(0), "{counters}");
    assert_eq!(sta.back_end_counters(back_end).unwrap().len(), 1);
    assert!(sta.eu_counters().unwrap().iter().any(|(eu, _)| eu.kind == EuKind::Completion));
    assert_eq!(sta.remove_back_end(back_end).unwrap_err().refusal(), Some(Refusal::InUse));
    let seeds = [sta.io_seed().unwrap(), sta.io_seed().unwrap()];
    assert_eq!(sta.io_seed().unwrap_err().code(), Some(Code::NO_MEMORY));
    let threads = seeds.map(|seed| {
        std::thread::spawn(move || {
            let engine = ProgressEngine::new().unwrap();
            let io = seed.start(&engine).unwrap().running_within(LIMIT).unwrap();
            assert!(io.command_within(Duration::from_millis(1)).unwrap().is_none());
            io.close(LIMIT).unwrap();
        })
    });
    let stopping = sta.stop();
    let left = stopping.wait_for(Duration::ZERO);
    let stopping = match left {
        Err(failed) => match failed.value {
            Left::Running(sta) => sta.stop(),
            other => panic!("{other:?}"),
        },
        Ok(()) => panic!("stopped with IO contexts"),
    };
    stopping.wait_for(LIMIT).unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(deleted.load(Ordering::Relaxed), 1, "the queue came back");
}

#[test]
fn a_target_is_described_after_the_start() {
    with_profile("a_target_is_described_after_the_start", "", whole_life);
}

#[test]
fn or_before_it_if_the_release_wants_that() {
    with_profile("or_before_it_if_the_release_wants_that", "sta-setup-idle", whole_life);
}

#[test]
fn or_at_any_time() {
    with_profile("or_at_any_time", "sta-setup-any", whole_life);
}

#[test]
fn or_without_a_state_of_starting() {
    with_profile("or_without_a_state_of_starting", "sta-start-at-once", whole_life);
}

#[test]
fn namespaces_and_disks_come_and_go_while_it_runs() {
    with_profile("namespaces_and_disks_come_and_go_while_it_runs", "", || {
        let engine = ProgressEngine::new().unwrap();
        let (config, first, disk, deleted) = described();
        let sta = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
        let mut events = sta.events();
        let (queue, other_deleted) = Counted::new(32);
        let other = sta.add_back_end(vec![queue]).unwrap();
        sta.remove_namespace(first).unwrap();
        assert_eq!(sta.remove_namespace(first).unwrap_err().refusal(), Some(Refusal::Stale));
        until(&engine, || events.next() == Some(Event::NamespaceRemoved(first)));
        assert!(!sta.has_namespace(first));
        assert_eq!(sta.namespace_counters(first).unwrap_err().refusal(), Some(Refusal::Stale));
        sta.remove_back_end(disk).unwrap();
        until(&engine, || events.next() == Some(Event::BackEndRemoved(disk)));
        assert_eq!((deleted.load(Ordering::Relaxed), other_deleted.load(Ordering::Relaxed)), (1, 0));
        assert_eq!(sta.remove_back_end(disk).unwrap_err().refusal(), Some(Refusal::Stale));
        let _ = other;
        drop(sta);
        drop(engine);
        assert_eq!(other_deleted.load(Ordering::Relaxed), 1, "dropping ends it all");
    });
}

#[test]
fn what_the_device_does_not_have_is_refused_at_configure_time() {
    with_profile("what_the_device_does_not_have_is_refused_at_configure_time", "", || {
        let refused = |result: doca_common::Result<()>| result.unwrap_err().refusal().unwrap();
        let (mut config, ..) = described();
        let limits = *config.limits();
        assert_eq!(refused(config.set_io_contexts(limits.io_contexts as u16 + 1)), Refusal::Capability);
        for nqn in ["", "iqn.x", "nqn.a\0b", &format!("nqn.{}", "a".repeat(220))] {
            assert_eq!(refused(config.add_subsystem(nqn).map(|_| ())), Refusal::Malformed, "{nqn:?}");
        }
        let again = config.add_subsystem("nqn.2014-08.org.example:one").map(|_| ());
        assert_eq!(refused(again), Refusal::Duplicate);
        for index in 1..limits.subsystems {
            config.add_subsystem(&format!("nqn.{index}")).unwrap();
        }
        assert_eq!(refused(config.add_subsystem("nqn.more").map(|_| ())), Refusal::Capability);
        let queues =
            (0..=limits.queues_per_back_end).map(|_| Counted::new(64).0 as Box<dyn doca_sta::NvmeQueue>);
        assert_eq!(refused(config.add_back_end(queues.collect()).map(|_| ())), Refusal::Capability);
        assert_eq!(refused(config.add_back_end(Vec::new()).map(|_| ())), Refusal::OutOfRange);
    });
}

#[test]
fn bad_namespaces_are_refused_at_configure_time() {
    with_profile("bad_namespaces_are_refused_at_configure_time", "", || {
        let mut config = Sta::configure(&control()).unwrap();
        let back_end = config.add_back_end(vec![Counted::new(64).0]).unwrap();
        let subsystem = config.add_subsystem("nqn.one").unwrap();
        let good = Namespace { subsystem, nsid: 1, block_size: 512, back_end, disk_nsid: 1 };
        let mut refused =
            |namespace| config.add_namespace(namespace).map(|_| ()).unwrap_err().refusal().unwrap();
        assert_eq!(refused(Namespace { nsid: 0, ..good }), Refusal::OutOfRange);
        assert_eq!(refused(Namespace { nsid: u32::MAX, ..good }), Refusal::OutOfRange);
        assert_eq!(refused(Namespace { block_size: 513, ..good }), Refusal::Capability);
        let mut other = Sta::configure(&control()).unwrap();
        let foreign = other.add_subsystem("nqn.two").unwrap();
        assert_eq!(refused(Namespace { subsystem: foreign, ..good }), Refusal::OtherContext);
        config.add_namespace(good).unwrap();
        let again = config.add_namespace(good).unwrap_err();
        assert_eq!(
            (again.refusal(), again.to_string().contains("clones")),
            (Some(Refusal::Duplicate), false),
            "{again}"
        );
    });
}

#[test]
fn queues_that_cannot_be_are_named_when_it_starts() {
    with_profile("queues_that_cannot_be_are_named_when_it_starts", "", || {
        for (queue, refusal) in [
            (Counted::new(48).0, Refusal::OutOfRange),
            (Counted::with_doorbells(64, 4, 62), Refusal::OutOfRange),
            (Counted::with_doorbells(64, 0, 0), Refusal::OutOfRange),
        ] {
            let engine = ProgressEngine::new().unwrap();
            let mut config = Sta::configure(&control()).unwrap();
            config.add_network(&network()).unwrap();
            config.add_back_end(vec![queue]).unwrap();
            let failed = config.start(&engine).unwrap().running_within(LIMIT).unwrap_err();
            assert_eq!(failed.error.refusal(), Some(refusal), "{}", failed.error);
            assert!(matches!(failed.value, Left::Running(_)));
        }
    });
}

#[test]
fn a_target_needs_a_device_for_connections() {
    with_profile("a_target_needs_a_device_for_connections", "", || {
        let engine = ProgressEngine::new().unwrap();
        let failed = Sta::configure(&control()).unwrap().start(&engine).unwrap_err();
        assert_eq!(failed.error.call(), "doca_sta_add_dev");
        let Left::Config(mut config) = failed.value else { panic!("gone") };
        config.add_network(&control()).unwrap();
        drop(config.start(&engine).unwrap().running_within(LIMIT).unwrap());
    });
}

#[test]
fn memory_of_the_allocator_comes_back() {
    with_profile("memory_of_the_allocator_comes_back", "", || {
        let engine = ProgressEngine::new().unwrap();
        let (mut config, ..) = described();
        let allocator = PlainAllocator::new();
        config.set_allocator(allocator.clone()).unwrap();
        assert_eq!(config.set_allocator(allocator.clone()).unwrap_err().refusal(), Some(Refusal::Taken));
        let mut other = Sta::configure(&control()).unwrap();
        assert_eq!(other.set_allocator(PlainAllocator::new()).unwrap_err().refusal(), Some(Refusal::InUse));
        let sta = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
        assert!(allocator.allocated() > 0);
        sta.stop().wait_for(LIMIT).unwrap();
        until(&engine, || allocator.allocated() == 0);
    });
}

/// Huge pages of 2 MiB that nobody has.
fn free_huge_pages() -> usize {
    let free = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    std::fs::read_to_string(free).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn huge_pages_are_shared_by_pieces_and_come_back() {
    const NEEDED: usize = 8;
    if free_huge_pages() < NEEDED {
        eprintln!(
            "NOT RUN: {NEEDED} free huge pages of 2 MiB are needed: echo {NEEDED} > /proc/sys/vm/nr_hugepages"
        );
        return;
    }
    with_profile("huge_pages_are_shared_by_pieces_and_come_back", "", || {
        let engine = ProgressEngine::new().unwrap();
        let (mut config, ..) = described();
        let mapped = Arc::<AtomicUsize>::default();
        let (more, less) = (mapped.clone(), mapped.clone());
        let allocator = HugepageAllocator::new(
            move |_, len| more.fetch_add(len, Ordering::Relaxed) < usize::MAX,
            move |_, len| {
                less.fetch_sub(len, Ordering::Relaxed);
            },
        );
        config.set_allocator(allocator.clone()).unwrap();
        let sta = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
        let (pages, bytes) = (allocator.pages(), allocator.allocated());
        assert!(pages > 0 && pages <= NEEDED, "{bytes} bytes are in {pages} huge pages");
        assert_eq!(mapped.load(Ordering::Relaxed), pages << 21);
        sta.stop().wait_for(LIMIT).unwrap();
        until(&engine, || allocator.allocated() == 0);
        assert_eq!((allocator.pages(), mapped.load(Ordering::Relaxed)), (0, 0));
    });
}

#[test]
fn a_seed_of_an_ended_target_does_not_start() {
    with_profile("a_seed_of_an_ended_target_does_not_start", "", || {
        let engine = ProgressEngine::new().unwrap();
        let (config, ..) = described();
        let sta = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
        let seed = sta.io_seed().unwrap();
        drop(sta.stop());
        let left = until_gone(&engine);
        assert!(!left, "it waits for its seed");
        drop(seed);
        drop(engine);
        let _ = Memory::zeroed(64).unwrap();
    });
}

/// Whether everything of an engine is gone after a while of progress.
fn until_gone(engine: &ProgressEngine) -> bool {
    for _ in 0..100 {
        engine.progress().unwrap();
    }
    engine.in_flight().is_err()
}

#[test]
fn a_device_that_cannot_control_a_target_says_so() {
    with_profile("a_device_that_cannot_control_a_target_says_so", "", || {
        let other = doca_common::DeviceInfo::list().unwrap();
        let other =
            other.into_iter().find(|info| doca_sta::caps::snapshot(info).require("sta.supported").is_err());
        let Some(info) = other else { return };
        let error = Sta::configure(&info.open().unwrap()).unwrap_err();
        assert_eq!(error.kind(), Kind::NotSupported);
    });
}

#[test]
fn an_address_that_cannot_be_listened_at_is_named() {
    use doca_sta::cm::Listener;
    use std::io::ErrorKind;
    let first = Listener::bind("192.168.1.1:0".parse().unwrap()).unwrap();
    let nowhere = "203.0.113.1:4420".parse().unwrap();
    for (address, kind) in [(first.address(), ErrorKind::AddrInUse), (nowhere, ErrorKind::AddrNotAvailable)] {
        let error = Listener::bind(address).unwrap_err();
        assert_eq!(error.os_error().map(|error| error.kind()), Some(kind), "{error}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        assert!(error.next_check().contains("address"), "{error}");
    }
}
