//! Handles may be dropped, forgotten, or used too late, in any order and at any place: nothing crashes, nothing that
//! a device may still reach is freed, and each misuse is an error value.

mod support;

use doca::rdma::{Connection, Decision, Left, Listener, Pending, Queue, Rdma, ReceiveTask, SendTask};
use doca::{Buffer, Frozen, Kind, Memory, PrivateMemory, ProgressEngine, Refusal};
use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use support::drops::{self, Parts};
use support::{Pair, Side, device, free_port, log};

/// Longer than anything here takes; a test that needs it fails.
const LIMIT: Duration = Duration::from_secs(10);

/// Everything that a program can hold, with tasks in flight.
fn everything() -> Parts {
    let pair = Pair::new();
    let Pair { engine, memory, left, right } = pair;
    let listener = right.rdma.listen(free_port(), |_| Decision::accept()).unwrap();
    let taken = memory.take(64).unwrap();
    let frozen = memory.take(64).unwrap().freeze().unwrap();
    let receive = right.receives.submit(memory.take(64).unwrap()).unwrap();
    // Without a receive on the other side these two stay in flight.
    let send = right.sends.submit(&right.connection, memory.take(64).unwrap()).unwrap();
    let shared = right.sends.submit(&right.connection, frozen.clone()).unwrap();
    let (exported, _) = left.rdma.export().unwrap();
    vec![
        Box::new(engine),
        Box::new(memory),
        Box::new(left.rdma),
        Box::new(left.connection),
        Box::new((left.sends, left.receives)),
        Box::new(right.rdma),
        Box::new(right.connection),
        Box::new((right.sends, right.receives)),
        Box::new(listener),
        Box::new(taken),
        Box::new(frozen),
        Box::new(receive),
        Box::new(send),
        Box::new(shared),
        Box::new(exported),
    ]
}

#[test]
fn handles_can_be_dropped_in_any_order() {
    drops::in_any_order(everything);
}

#[test]
fn handles_can_be_dropped_while_the_engine_goes_on() {
    drops::while_the_engine_goes_on(everything);
}

#[test]
fn any_handle_can_be_forgotten() {
    drops::but_one_that_is_forgotten(everything);
}

#[test]
fn a_context_can_be_stopped_configured_and_started_again() {
    let mut pair = Pair::new();
    for round in 0..20u8 {
        pair.exchange(&[round; 33]);
        let old = pair.left.sends.clone();
        let mut receive = pair.left.receives.submit(pair.memory.take(8).unwrap()).unwrap();
        pair = pair.restart();
        // What was in flight came back, and handles of the earlier run say so.
        let failed = receive.wait_for(LIMIT).unwrap_err();
        assert_eq!(failed.value.unwrap().capacity(), 8);
        let failed = old.submit(&pair.left.connection, pair.memory.take(8).unwrap()).unwrap_err();
        assert_eq!(failed.error.refusal(), Some(Refusal::Stale));
    }
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn a_stopping_context_says_what_is_left() {
    let Pair { engine, memory, left, right } = Pair::new();
    let mut pending = right.sends.submit(&right.connection, memory.take(8).unwrap()).unwrap();
    let stopping = right.rdma.stop();
    let config = stopping.wait_for(LIMIT).unwrap();
    assert_eq!(pending.wait_for(LIMIT).unwrap_err().value.unwrap().len(), 8);
    let failed = pending.wait().unwrap_err();
    assert_eq!((failed.error.refusal(), failed.value.is_none()), (Some(Refusal::Taken), true));
    let refused = right.sends.submit(&right.connection, memory.take(8).unwrap()).unwrap_err();
    assert_eq!((refused.error.refusal(), refused.value.len()), (Some(Refusal::Stale), 8));

    // Another engine is refused, and the context is as it was.
    let other = ProgressEngine::new().unwrap();
    let failed = config.start(&other).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::OtherEngine));
    let Left::Config(config) = failed.value else { panic!("{:?}", failed.value) };
    let (rdma, _connection) = support::alone(config.start(&engine).unwrap());

    // With its engine gone nothing is left.
    drop((engine, left));
    let failed = rdma.stop().wait().unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::EngineGone));
    assert!(matches!(failed.value, Left::Consumed));
}

#[test]
fn tasks_outlive_their_engine_as_results_or_as_errors() {
    let Pair { engine, memory, left: _left, right } = Pair::new();
    let mut receive = right.receives.submit(memory.take(8).unwrap()).unwrap();
    drop(engine);
    let failed = receive.wait().unwrap_err();
    assert_eq!(failed.value.expect("flushed when the engine was dropped").capacity(), 8);
    assert_eq!(receive.wait().unwrap_err().error.refusal(), Some(Refusal::EngineGone));
    let refused = right.receives.submit(memory.take(8).unwrap()).unwrap_err();
    assert_eq!(refused.error.kind(), Kind::BadState);
    assert!(!right.connection.is_connected());
    assert!(right.rdma.export().is_err() && right.rdma.send_queue_size().is_err());
}

#[test]
fn a_buffer_comes_back_from_every_refusal() {
    let pair = Pair::new();
    let take = || pair.memory.take(16).unwrap();
    let mut flying = Vec::new();
    let refused = loop {
        match pair.left.receives.submit(take()) {
            Ok(pending) => flying.push(pending),
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused.error.kind(), refused.value.len(), flying.len()), (Kind::Full, 16, support::TASKS));
    assert!(refused.error.is_retryable());

    let other = Pair::new();
    let refused = pair.left.sends.submit(&other.left.connection, take()).unwrap_err();
    assert_eq!(refused.error.refusal(), Some(Refusal::OtherContext));

    let elsewhere = Memory::zeroed(64).unwrap().private(&support::other_device()).unwrap();
    let refused = pair.left.sends.submit(&pair.left.connection, elsewhere.take(8).unwrap()).unwrap_err();
    assert_eq!(refused.error.refusal(), Some(Refusal::OtherDevice));

    pair.left.connection.disconnect().unwrap();
    let refused = pair.left.sends.submit(&pair.left.connection, take()).unwrap_err();
    assert_eq!(refused.error.refusal(), Some(Refusal::NotConnected));
}

#[test]
fn frozen_sources_are_shared_by_sends_and_thawed_afterwards() {
    let pair = Pair::new();
    let frozen: Frozen = pair.message(b"many times").freeze().unwrap();
    let receives: Vec<_> =
        (0..4).map(|_| pair.right.receives.submit(pair.memory.take(16).unwrap()).unwrap()).collect();
    let sends: Vec<_> =
        (0..4).map(|_| pair.left.sends.submit(&pair.left.connection, frozen.clone()).unwrap()).collect();
    let frozen = frozen.thaw().unwrap_err();
    for mut receive in receives {
        assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], b"many times");
    }
    for mut send in sends {
        send.wait_for(LIMIT).unwrap();
    }
    let mut buffer = frozen.thaw().unwrap();
    buffer.set_len(3).unwrap();
    assert_eq!(&buffer[..], b"man");
}

#[test]
fn a_detached_task_keeps_its_buffer_and_gives_the_range_back() {
    let pair = Pair::new();
    let memory = Memory::zeroed(4096).unwrap().private(&device()).unwrap();
    let receive = pair.right.receives.submit(memory.take(4096).unwrap()).unwrap();
    drop(receive);
    assert_eq!(memory.take(1).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    pair.left.send(pair.message(b"into the detached buffer"));
    support::until(&pair.engine, || memory.take(4096).is_ok());
}

#[test]
fn awaiting_needs_no_blocking_wait() {
    let pair = Pair::new();
    let Pair { engine, memory, left, right } = pair;
    let message = {
        let mut message = memory.take(5).unwrap();
        message.copy_from_slice(b"async");
        message
    };
    let got = engine
        .block_on(async {
            let receive = right.receives.submit(memory.take(64).unwrap()).unwrap();
            left.sends.submit(&left.connection, message).unwrap().await.unwrap();
            let received = receive.await.unwrap();
            assert_eq!(received.connection(), right.connection.id());
            received.buffer.to_vec()
        })
        .unwrap();
    assert_eq!(got, b"async");
    let config = engine.block_on(right.rdma.stop().stopped()).unwrap().unwrap();
    drop(config);
}

/// Runs `inside` in the decision about a peer that connects to `pair.right`.
fn in_callback(
    pair: &Pair,
    inside: impl FnMut() -> Decision + 'static,
) -> (Listener, doca::rdma::Connecting) {
    let mut inside = inside;
    let port = free_port();
    let listener = pair.right.rdma.listen(port, move |_| inside()).unwrap();
    let connecting = pair.left.rdma.connect_addr(support::address(port)).unwrap();
    (listener, connecting)
}

#[test]
fn callbacks_can_neither_progress_nor_wait() {
    let Pair { engine, memory, left, right } = Pair::new();
    let engine = Rc::new(engine);
    let pending = Rc::new(RefCell::new(right.receives.submit(memory.take(8).unwrap()).unwrap()));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let port = free_port();
    let (engine_in, pending_in, seen_in) = (engine.clone(), pending.clone(), seen.clone());
    let listener = right
        .rdma
        .listen(port, move |request| {
            assert_eq!(request.port(), port);
            let mut seen = seen_in.borrow_mut();
            seen.push(engine_in.progress().unwrap_err().refusal());
            seen.push(engine_in.wait_for(LIMIT).unwrap_err().refusal());
            seen.push(engine_in.arm().unwrap_err().refusal());
            seen.push(engine_in.block_on(async {}).unwrap_err().refusal());
            let failed = pending_in.borrow_mut().wait().unwrap_err();
            assert!(failed.value.is_none(), "the task goes on");
            seen.push(failed.error.refusal());
            Decision::accept()
        })
        .unwrap();
    let connecting = left.rdma.connect_addr(support::address(port)).unwrap();
    let connection = connecting.wait_for(LIMIT).unwrap();
    assert_eq!(*seen.borrow(), [Some(Refusal::InCallback); 5]);
    let accepted = listener.wait_for(LIMIT).unwrap();
    left.sends.submit(&connection, memory.take(3).unwrap()).unwrap().wait_for(LIMIT).unwrap();
    let received = pending.borrow_mut().wait_for(LIMIT).unwrap();
    assert_eq!((received.buffer.len(), received.connection()), (3, accepted.id()));
}

#[test]
fn contexts_can_be_stopped_inside_callbacks() {
    let pair = Pair::new();
    let victim = Rc::new(RefCell::new(None::<Rdma>));
    let result = Rc::new(RefCell::new(None));
    let (victim_in, result_in) = (victim.clone(), result.clone());
    let (listener, connecting) = in_callback(&pair, move || {
        let rdma = victim_in.borrow_mut().take().unwrap();
        *result_in.borrow_mut() = Some(rdma.stop().wait().unwrap_err());
        Decision::reject()
    });
    let other = Pair::on(&pair.engine);
    let mut receive = other.right.receives.submit(pair.memory.take(8).unwrap()).unwrap();
    *victim.borrow_mut() = Some(other.right.rdma);
    assert!(connecting.wait_for(LIMIT).is_err(), "rejected");
    let failed = result.borrow_mut().take().unwrap();
    assert_eq!(failed.error.refusal(), Some(Refusal::InCallback));
    // It stops after progress.
    assert!(receive.wait_for(LIMIT).unwrap_err().value.is_some());
    match failed.value {
        Left::Running(rdma) => drop(rdma.stop().wait_for(LIMIT).unwrap()),
        Left::Stopping(stopping) => drop(stopping.wait_for(LIMIT).unwrap()),
        left => panic!("{left:?}"),
    }
    drop((listener, other.left));
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn everything_can_be_dropped_inside_a_callback() {
    let pair = Pair::new();
    let hoard = Rc::new(RefCell::new(Vec::<Box<dyn std::any::Any>>::new()));
    let hoard_in = hoard.clone();
    let (listener, connecting) = in_callback(&pair, move || {
        let parts = mem::take(&mut *hoard_in.borrow_mut());
        drop(parts);
        Decision::accept()
    });
    let Pair { engine, memory, left, right } = pair;
    let receive = right.receives.submit(memory.take(8).unwrap()).unwrap();
    let send = right.sends.submit(&right.connection, memory.take(8).unwrap()).unwrap();
    hoard.borrow_mut().extend([
        Box::new(receive) as Box<dyn std::any::Any>,
        Box::new(send),
        Box::new(right.connection),
        Box::new((right.sends, right.receives)),
        Box::new(right.rdma),
        Box::new(listener),
        Box::new(left.connection),
        Box::new(memory),
    ]);
    // The peer's context went: the connection was refused, or ends.
    if let Ok(connection) = connecting.wait_for(LIMIT) {
        connection.wait_disconnected_for(LIMIT).unwrap();
    }
    assert!(hoard.borrow().is_empty());
    drop(left.rdma.stop().wait_for(LIMIT).unwrap());
    drop(engine);
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn a_panic_in_a_decision_comes_out_of_progress() {
    let mut pair = Pair::new();
    let mut first = true;
    let (listener, connecting) = in_callback(&pair, move || {
        assert!(!mem::take(&mut first), "first peer");
        Decision::accept()
    });
    let panic = catch_unwind(AssertUnwindSafe(|| connecting.wait_for(LIMIT))).unwrap_err();
    assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("first peer")));
    // The engine is sound, the panicking decision was a rejection, and the next peer is asked about.
    pair.exchange(b"after the panic");
    let connecting = pair.left.rdma.connect_addr(support::address(listener.port())).unwrap();
    let connection = connecting.wait_for(LIMIT).unwrap();
    assert!(connection.is_connected() && listener.wait_for(LIMIT).unwrap().is_connected());
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("in a waker");
    }
}

#[test]
fn a_panic_in_a_waker_comes_out_of_progress_and_loses_nothing() {
    let mut pair = Pair::new();
    let mut receives: Vec<Pending<ReceiveTask, Buffer>> =
        (0..2).map(|_| pair.right.receives.submit(pair.memory.take(16).unwrap()).unwrap()).collect();
    let waker = Waker::from(Arc::new(Panics));
    for receive in &mut receives {
        assert!(Pin::new(receive).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    for message in [b"one", b"two"] {
        pair.left.sends.submit(&pair.left.connection, pair.message(message)).map(drop).unwrap();
    }
    for (receive, message) in receives.iter_mut().zip(["one", "two"]) {
        let panic = catch_unwind(AssertUnwindSafe(|| support::until(&pair.engine, || false)));
        assert!(panic.unwrap_err().downcast_ref::<&str>().is_some_and(|text| *text == "in a waker"));
        assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], message.as_bytes());
    }
    pair.exchange(b"after both");
}

#[test]
fn dropping_a_connection_waits_for_its_tasks() {
    let Pair { engine, memory, left, right } = Pair::new();
    let mut send = left.sends.submit(&left.connection, memory.take(9).unwrap()).unwrap();
    drop(left.connection);
    while engine.progress().unwrap() {}
    let mut receive = right.receives.submit(memory.take(16).unwrap()).unwrap();
    send.wait_for(LIMIT).unwrap();
    assert_eq!(receive.wait_for(LIMIT).unwrap().buffer.len(), 9);
    drop(left.rdma);
}

fn assert_types() {
    fn crosses<T: Send + Sync>() {}
    crosses::<doca::Device>();
    crosses::<doca::DeviceInfo>();
    crosses::<PrivateMemory>();
    crosses::<Buffer>();
    crosses::<doca::Descriptor>();
    crosses::<doca::Error>();
    fn moves<T: Send>() {}
    moves::<doca::SharedMemory>();
    moves::<doca::SharedBuffer>();
    fn stored(_: &Rdma, _: &Connection, _: &Queue<SendTask>, _: &Side) {}
    let _ = stored;
}

#[test]
fn what_crosses_threads_does() {
    assert_types();
    let device = device();
    let memory = Memory::zeroed(1 << 16).unwrap().private(&device).unwrap();
    let taken = std::thread::scope(|scope| {
        let take = || (0..100).map(|_| memory.take(64).unwrap()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let mut offsets: Vec<_> = taken.iter().map(Buffer::offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!(offsets.len(), 400);
}
