//! Who may do what with whose memory, and who refuses what else: the permission matrix, cell by cell.

mod support;

use doca::access::{MATRIX, requirement};
use doca::rdma::{EventAddTask, EventSetTask, FetchAddTask, ReadTask, SendTask, Task, TransportType};
use doca::{Access, Code, Error, Memory, ProgressEngine, Refusal, RemoteEvent, RemoteMemory};
use support::peers::{Peers, configure};
use support::{LIMIT, device};

const ALL: Access = Access::ANY_RDMA;

/// A device that may only read our memory sends from it. What would fill it is refused here, with the row of the matrix.
fn read_only_memory_is_sent_from_and_never_filled(over: TransportType) {
    let peers = Peers::over(over, ALL);
    let (memory, remote) = peers.window(ALL);
    let (event, remote_event) = peers.event();
    let (range, cell) = (remote.range(0, 8).unwrap(), remote.cell(0).unwrap());
    let ours = Memory::zeroed(4096).unwrap().read_only(&peers.device).unwrap();
    let on = &peers.connection;
    let take = || {
        let mut buffer = ours.take(8).unwrap();
        buffer.copy_from_slice(&7u64.to_ne_bytes());
        buffer
    };
    peers.writes.submit(on, take(), &range).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(memory.cell(0).unwrap().load(), 7);
    peers.sets.submit(on, &remote_event, take()).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(event.get().unwrap(), 7);
    let mut receive = peers.receives.submit(peers.local.take(8).unwrap()).unwrap();
    peers.imms.submit(on, take(), 1).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(receive.wait_for(LIMIT).unwrap().buffer[..], 7u64.to_ne_bytes());

    let refused = [
        ("receive", peers.receives.submit(take()).map(drop).unwrap_err()),
        ("read", peers.reads.submit(on, &range, take()).map(drop).unwrap_err()),
        ("atomic_cmp_swp", peers.swaps.submit(on, &cell, take(), 0, 1).map(drop).unwrap_err()),
        ("atomic_fetch_add", peers.adds.submit(on, &cell, take(), 1).map(drop).unwrap_err()),
        ("remote_net_sync_event_get", peers.gets.submit(on, &remote_event, take()).map(drop).unwrap_err()),
        (
            "remote_net_sync_event_notify_add",
            peers.event_adds.submit(on, &remote_event, take(), 1).map(drop).unwrap_err(),
        ),
    ];
    let filling = MATRIX.iter().filter(|row| row.local_memory == Access::LOCAL_READ_WRITE);
    assert!(
        filling.map(|row| row.task).eq(refused.iter().map(|(task, _)| *task)),
        "others than the matrix says"
    );
    for (task, failed) in refused {
        assert_eq!((failed.error.refusal(), failed.value.len()), (Some(Refusal::Permissions), 8), "{task}");
        let row = requirement(task).unwrap().to_string();
        assert!(failed.to_string().contains(&row), "{failed}");
    }
}

/// What must be allowed twice, on memory and context, and how a task goes that needs it.
type Attempt = fn(&Peers, &RemoteMemory) -> Result<(), Error>;

fn ended<T, P>(mut pending: doca::rdma::Pending<T, P>) -> Result<(), Error>
where
    T: Task,
    P: doca::buffer::Payload + std::fmt::Debug,
{
    match pending.wait_for(LIMIT) {
        Ok(_) => Ok(()),
        Err(failed) => {
            assert!(failed.value.is_some(), "{}: the buffer is lost", failed.error);
            Err(failed.error)
        }
    }
}

const ATTEMPTS: &[(Access, &str, Attempt)] = &[
    (Access::RDMA_READ, "read", |peers, remote| {
        ended(peers.reads.submit(&peers.connection, &remote.range(8, 8)?, peers.local.take(8)?)?)
    }),
    (Access::RDMA_WRITE, "write", |peers, remote| {
        ended(peers.writes.submit(&peers.connection, peers.with(b"01234567"), &remote.range(8, 8)?)?)
    }),
    (Access::RDMA_WRITE, "write_imm", |peers, remote| {
        let receive = peers.receives.submit(())?;
        let write =
            peers.write_imms.submit(&peers.connection, peers.with(b"01234567"), &remote.range(8, 8)?, 1)?;
        ended(write)?;
        ended(receive)
    }),
    (Access::RDMA_ATOMIC, "atomic_cmp_swp", |peers, remote| {
        ended(peers.swaps.submit(&peers.connection, &remote.cell(8)?, peers.local.take(8)?, 0, 1)?)
    }),
    (Access::RDMA_ATOMIC, "atomic_fetch_add", |peers, remote| {
        ended(peers.adds.submit(&peers.connection, &remote.cell(8)?, peers.local.take(8)?, 1)?)
    }),
];

/// All subsets of the flags.
fn masks(of: Access) -> impl Iterator<Item = Access> {
    let flags: Vec<Access> = of.iter().collect();
    (0..1u32 << flags.len()).map(move |mask| {
        flags.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1).map(|(_, &flag)| flag).collect()
    })
}

/// Each task under all masks of memory and context: it succeeds exactly where the matrix says so, with the samples'
/// narrow flags and with the guidance's wide ones; else the error has `code` and names the row, and the memory stays
/// as it was.
fn try_all_permissions(over: TransportType, code: Code) {
    let (mut passed, mut failed) = (0, 0);
    for &(needed, task, attempt) in ATTEMPTS {
        let row = requirement(task).unwrap();
        assert_eq!((row.peer_memory & ALL, row.peer_context), (needed, needed), "{row}");
        for context in masks(ALL | Access::LOCAL_READ_WRITE) {
            let reconnect = || Peers::over(over, context);
            let mut peers = reconnect();
            for memory in masks(ALL).filter(|memory| !memory.is_empty()) {
                let (window, remote) = peers.window(memory);
                let result = attempt(&peers, &remote);
                let cell = format!("{task} with memory {memory} and context {context}");
                if (memory & context).contains(needed) {
                    result.unwrap_or_else(|error| panic!("{cell}: {error}"));
                    passed += 1;
                    continue;
                }
                let error = result.expect_err(&cell);
                assert_eq!(error.code(), Some(code), "{cell}: {error}");
                let row = requirement(task).unwrap().to_string();
                assert!(error.to_string().contains(&row), "{cell}: {error}");
                let causes = ["the peer's memory lacks", "the peer's context lacks"]
                    .map(|text| error.next_check().find(text).unwrap_or_else(|| panic!("{cell}: {error}")));
                assert!(causes[0] < causes[1], "in the order of the matrix: {error}");
                let mut bytes = [0xff; 16];
                window.read(0, &mut bytes).unwrap();
                assert_eq!(bytes, [0; 16], "{cell}");
                failed += 1;
                peers = reconnect();
            }
        }
    }
    assert_eq!((passed, failed), (5 * 4 * 8, 5 * 7 * 16 - 5 * 4 * 8));
}

/// The same for events, whose only flags are those of the context.
fn try_event_permissions(over: TransportType, code: Code) {
    type OnEvent = fn(&Peers, &RemoteEvent) -> Result<(), Error>;
    let attempts: [(Access, &str, OnEvent); 3] = [
        (Access::RDMA_READ, "remote_net_sync_event_get", |peers, event| {
            ended(peers.gets.submit(&peers.connection, event, peers.local.take(8)?)?)
        }),
        (Access::RDMA_WRITE, "remote_net_sync_event_notify_set", |peers, event| {
            ended(peers.sets.submit(&peers.connection, event, peers.with(&[1; 8]))?)
        }),
        (Access::RDMA_ATOMIC, "remote_net_sync_event_notify_add", |peers, event| {
            ended(peers.event_adds.submit(&peers.connection, event, peers.local.take(8)?, 1)?)
        }),
    ];
    for (needed, task, attempt) in attempts {
        let row = requirement(task).unwrap();
        assert_eq!((row.peer_memory & ALL, row.peer_context), (Access::empty(), needed), "{row}");
        for context in masks(ALL) {
            let peers = Peers::over(over, context);
            let (event, remote) = peers.event();
            let result = attempt(&peers, &remote);
            if context.contains(needed) {
                result.unwrap_or_else(|error| panic!("{needed} with {context}: {error}"));
            } else {
                let error = result.expect_err("not permitted");
                assert_eq!((error.code(), event.get().unwrap()), (Some(code), 0), "{context}: {error}");
            }
        }
    }
}

const PROFILE: &str = "DOCA_SIM_PROFILE";
const LIKE_ANY_FAILURE: &str = "refused-io-failed";

fn permissions_are_needed_on_memory_and_context(over: TransportType) {
    let like_any = std::env::var(PROFILE).is_ok_and(|profile| profile == LIKE_ANY_FAILURE);
    let code = if like_any { Code::IO_FAILED } else { Code::NOT_PERMITTED };
    try_all_permissions(over, code);
    try_event_permissions(over, code);
}

/// Where refusals look like any failed transfer. The simulator reads its profile when it is loaded, so this runs
/// in a process of its own.
#[test]
fn permissions_where_refusals_are_io_errors() {
    for module in ["rc", "dc"] {
        let test = format!("{module}::permissions_are_needed_on_memory_and_context");
        let output = support::again(&test, &[(PROFILE, LIKE_ANY_FAILURE)]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}

#[test]
fn declared_use_gives_the_flags_and_wider_ones_are_logged() {
    let device = device();
    let engine = ProgressEngine::new().unwrap();
    let mut config = configure(&device);
    config.allow::<ReadTask>().unwrap();
    config.allow::<EventAddTask>().unwrap();
    assert_eq!(config.permissions().unwrap(), Access::RDMA_READ | Access::RDMA_ATOMIC);
    support::log::warnings();
    let (rdma, _connection) = support::alone(config.start(&engine).unwrap());
    let config = rdma.stop().wait_for(LIMIT).unwrap();
    assert_eq!(support::log::warnings(), [""; 0]);
    let mut config = config;
    config.set_permissions(Access::RDMA_READ | Access::RDMA_WRITE | Access::RDMA_ATOMIC).unwrap();
    let _starting = config.start(&engine).unwrap();
    let warnings = support::log::warnings();
    assert!(
        warnings.iter().any(|text| text.contains("RDMA_WRITE") && !text.contains("READ")),
        "{warnings:?}"
    );
}

#[test]
fn memory_has_the_flags_of_its_declared_use_and_wider_ones_are_logged() {
    let device = device();
    let declared = || Memory::zeroed(8192).unwrap().allow(ReadTask::requirement());
    let shared = |memory: Memory, access| memory.shared(&device, access).unwrap();
    support::log::warnings();
    let narrow = shared(declared(), Access::empty());
    assert_eq!(narrow.access(), Access::LOCAL_READ_WRITE | Access::RDMA_READ);
    let two = shared(
        declared().allow(EventAddTask::requirement()).allow(FetchAddTask::requirement()),
        ALL - Access::RDMA_WRITE,
    );
    assert_eq!(two.access() & ALL, Access::RDMA_READ | Access::RDMA_ATOMIC);
    // Without a declaration nothing is too wide, and what is for PCI no row of the matrix judges.
    shared(Memory::zeroed(64).unwrap(), ALL);
    shared(declared(), Access::PCI_READ_WRITE);
    assert_eq!(support::log::warnings(), [""; 0]);

    let wide = shared(declared(), ALL);
    let warnings = support::log::warnings();
    let [line] = &warnings[..] else { panic!("once for each memory: {warnings:?}") };
    assert!(line.contains("RDMA_WRITE | RDMA_ATOMIC") && !line.contains("READ"), "{line}");
    assert!(line.contains("the 8192 bytes at 0x"), "{line}");
    // It is told when the memory is registered, and not again.
    wide.export().unwrap();
    assert_eq!(support::log::warnings(), [""; 0]);
    // Messages need no flag of the peer's memory, and events have memory of their own.
    for task in [SendTask::requirement(), EventSetTask::requirement()] {
        let failed = Memory::zeroed(64).unwrap().allow(task).shared(&device, Access::empty()).unwrap_err();
        assert_eq!(failed.error.refusal(), Some(Refusal::Permissions));
        shared(failed.value, Access::RDMA_READ);
        assert_eq!(support::log::warnings().len(), 1, "the declaration comes back with the memory");
    }
}

support::over_each_transport! {
    read_only_memory_is_sent_from_and_never_filled;
    permissions_are_needed_on_memory_and_context;
}
