//! Prepared tasks: each kind again and again, changes between submissions, what revokes them, and handles that are
//! dropped or forgotten in each state.

mod support;

use doca::rdma::{
    Connection, Decision, InFlight, Opcode, Prepared, Queue, ReceiveTask, SendTask, Task, TaskLeft,
};
use doca::{Access, Buffer, Code, Error, Failed, Kind, Memory, PrivateMemory, Refusal};
use std::cell::RefCell;
use std::future::IntoFuture;
use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;
use support::drops::{self, Parts};
use support::peers::Peers;
use support::{LIMIT, Pair, TASKS, address, free_port, log, until};

type Sending = Prepared<SendTask, Buffer>;
type Receiving = Prepared<ReceiveTask, Buffer>;

/// The prepared task that is left of a failed wait.
fn left<T: Task>(failed: Failed<TaskLeft<T, Buffer>>) -> (Error, Prepared<T, Buffer>) {
    match failed.into_parts() {
        (error, TaskLeft::Prepared(task)) => (error, task),
        (error, left) => panic!("{error}: {left:?}"),
    }
}

/// The task that goes on after a failed wait.
fn going_on<T: Task>(failed: Failed<TaskLeft<T, Buffer>>) -> (Error, InFlight<T, Buffer>) {
    match failed.into_parts() {
        (error, TaskLeft::InFlight(task)) => (error, task),
        (error, left) => panic!("{error}: {left:?}"),
    }
}

/// A send from left to right with its receive.
fn both(pair: &Pair, len: usize) -> (Sending, Receiving) {
    let send = pair.left.sends.prepare(&pair.left.connection, pair.memory.take(len).unwrap()).unwrap();
    let receive = pair.right.receives.prepare(pair.memory.take(len).unwrap()).unwrap();
    (send, receive)
}

#[test]
fn the_same_tasks_carry_message_after_message() {
    let pair = Pair::new();
    let (mut send, mut receive) = both(&pair, 64);
    assert!(receive.arrival().is_none());
    for round in 0..300u64 {
        let landing = receive.submit().unwrap();
        send.data_mut().fill(round as u8);
        send = send.submit().unwrap().wait_for(LIMIT).unwrap();
        receive = landing.wait_for(LIMIT).unwrap();
        assert_eq!(receive.data(), [round as u8; 64]);
        let arrival = receive.arrival().unwrap();
        assert_eq!((arrival.message_len(), arrival.opcode(), arrival.immediate()), (64, Opcode::SEND, None));
        assert_eq!(arrival.connection(), pair.right.connection.id());
    }
    assert_eq!((send.into_buffer().len(), receive.into_buffer().len()), (64, 64));
    assert_eq!(pair.engine.in_flight().unwrap(), 0);
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn every_kind_can_be_prepared() {
    let peers = Peers::new(Access::ANY_RDMA);
    let (memory, remote) = peers.window(Access::ANY_RDMA);
    let (event, remote_event) = peers.event();
    let (connection, range, cell) =
        (&peers.connection, remote.range(0, 16).unwrap(), remote.cell(64).unwrap());
    let word = || peers.local.take(8).unwrap();

    let mut imm = peers.imms.prepare(connection, peers.with(b"imm"), 0).unwrap();
    let mut write = peers.writes.prepare(connection, peers.local.take(16).unwrap(), &range).unwrap();
    let mut write_imm =
        peers.write_imms.prepare(connection, peers.local.take(16).unwrap(), &range, 0).unwrap();
    let mut read = peers.reads.prepare(connection, &range, peers.local.take(16).unwrap()).unwrap();
    let mut swap = peers.swaps.prepare(connection, &cell, word(), 0, 1).unwrap();
    let mut add = peers.adds.prepare(connection, &cell, word(), 10).unwrap();
    let mut get = peers.gets.prepare(connection, &remote_event, word()).unwrap();
    let mut set = peers.sets.prepare(connection, &remote_event, word()).unwrap();
    let mut event_add = peers.event_adds.prepare(connection, &remote_event, word(), 5).unwrap();
    let mut receive = peers.receives.prepare(peers.local.take(16).unwrap()).unwrap();
    assert_eq!((read.bytes_read(), swap.value(), add.value(), get.value()), (0, None, None, None));
    let mut number = 0;
    for round in 1..50u8 {
        let landing = receive.submit().unwrap();
        imm.set_immediate(u32::from(round) << 24);
        imm = imm.submit().unwrap().wait_for(LIMIT).unwrap();
        receive = landing.wait_for(LIMIT).unwrap();
        assert_eq!(receive.arrival().unwrap().immediate(), Some(u32::from(round) << 24));
        assert_eq!(receive.data(), b"imm");

        write.data_mut().fill(round);
        write = write.submit().unwrap().wait_for(LIMIT).unwrap();
        read = read.submit().unwrap().wait_for(LIMIT).unwrap();
        assert_eq!((read.data(), read.bytes_read()), (&[round; 16][..], 16));

        let landing = receive.submit().unwrap();
        write_imm.data_mut().fill(round + 100);
        write_imm.set_immediate(u32::from(round));
        write_imm = write_imm.submit().unwrap().wait_for(LIMIT).unwrap();
        receive = landing.wait_for(LIMIT).unwrap();
        let arrival = receive.arrival().unwrap();
        assert_eq!((arrival.opcode(), arrival.immediate()), (Opcode::WRITE_WITH_IMM, Some(round.into())));
        read = read.submit().unwrap().wait_for(LIMIT).unwrap();
        assert_eq!(read.data(), [round + 100; 16]);

        swap.set_operands(number, number + 1);
        swap = swap.submit().unwrap().wait_for(LIMIT).unwrap();
        assert_eq!(swap.value(), Some(number));
        add.set_add(round.into());
        add = add.submit().unwrap().wait_for(LIMIT).unwrap();
        assert_eq!(add.value(), Some(number + 1));
        number += 1 + u64::from(round);

        set.data_mut().copy_from_slice(&number.to_ne_bytes());
        set = set.submit().unwrap().wait_for(LIMIT).unwrap();
        event_add.set_add(3);
        event_add = event_add.submit().unwrap().wait_for(LIMIT).unwrap();
        assert_eq!(event_add.value(), Some(number));
        get = get.submit().unwrap().wait_for(LIMIT).unwrap();
        assert_eq!(get.value(), Some(number + 3));
    }
    assert_eq!(memory.cell(64).unwrap().load(), number);
    assert_eq!(event.get().unwrap(), number + 3);
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn between_submissions_the_buffer_can_be_changed() {
    let pair = Pair::new();
    let (mut send, mut receive) = both(&pair, 32);
    let mut exchange = |mut send: Sending| {
        let landing = mem::replace(&mut receive, pair.right.receives.prepare(pair.message(b"_")).unwrap());
        let landing = landing.submit().unwrap();
        send = send.submit().unwrap().wait_for(LIMIT).unwrap();
        receive = landing.wait_for(LIMIT).unwrap();
        (send, receive.data().to_vec())
    };
    send.edit(|buffer| buffer.fill_with(b"short")).unwrap().unwrap();
    let (mut send, seen) = exchange(send);
    assert_eq!(seen, b"short");
    // Another buffer in its place: what is sent is in that one, and the first is the program's again.
    let first = send.edit(|buffer| mem::replace(buffer, pair.message(b"another"))).unwrap();
    assert_eq!(&first[..], b"short");
    drop(first);
    let (mut send, seen) = exchange(send);
    assert_eq!(seen, b"another");

    // What would be refused when preparing is refused here, until it is mended.
    let device = support::other_device();
    let foreign = Memory::zeroed(4096).unwrap().private(&device).unwrap();
    let refused = send.edit(|buffer| *buffer = foreign.take(8).unwrap()).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::OtherDevice));
    let failed = send.submit().unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::Stale));
    let mut send = failed.value;
    send.edit(|buffer| *buffer = pair.message(b"mended")).unwrap();
    let (send, seen) = exchange(send);
    assert_eq!(seen, b"mended");
    drop(send);
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn a_change_that_panics_leaves_a_task_that_cannot_be_submitted() {
    let pair = Pair::new();
    let (mut send, _receive) = both(&pair, 8);
    let changing = std::panic::AssertUnwindSafe(|| {
        send.edit(|buffer| {
            *buffer = pair.message(b"new");
            panic!("in the middle");
        })
    });
    assert!(std::panic::catch_unwind(changing).is_err());
    let failed = send.submit().unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::Stale));
}

#[test]
fn a_prepared_task_is_one_of_its_queue() {
    let pair = Pair::new();
    let take = || pair.memory.take(8).unwrap();
    let prepare = || pair.left.sends.prepare(&pair.left.connection, take());
    let mut tasks: Vec<Sending> = (0..TASKS).map(|_| prepare().unwrap()).collect();
    assert_eq!(prepare().unwrap_err().error.refusal(), Some(Refusal::Full));
    let failed = pair.left.sends.submit(&pair.left.connection, take()).unwrap_err();
    assert_eq!((failed.error.refusal(), failed.value.len()), (Some(Refusal::Full), 8));
    // One that is not in flight gives its task back at once.
    drop(tasks.pop());
    tasks.push(prepare().unwrap());
    // One that is detached, when it came back.
    drop(tasks.pop().unwrap().submit().unwrap());
    assert_eq!(prepare().unwrap_err().error.refusal(), Some(Refusal::Full));
    let mut receive = pair.right.receives.submit(take()).unwrap();
    until(&pair.engine, || pair.engine.in_flight().unwrap() == 0);
    receive.wait_for(LIMIT).unwrap();
    tasks.push(prepare().unwrap());
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn tasks_may_wait_for_each_other_in_any_order() {
    let pair = Pair::new();
    let both: Vec<_> = (0..TASKS).map(|_| both(&pair, 16)).collect();
    let (mut sends, mut receives): (Vec<_>, Vec<_>) = both.into_iter().unzip();
    for round in 0..20u8 {
        let landing: Vec<_> = receives.into_iter().map(|task| task.submit().unwrap()).collect();
        let flying: Vec<_> = sends
            .into_iter()
            .enumerate()
            .map(|(index, mut task)| {
                task.data_mut().fill(round ^ index as u8);
                task.submit().unwrap()
            })
            .collect();
        sends = flying.into_iter().rev().map(|task| task.wait_for(LIMIT).unwrap()).collect();
        sends.reverse();
        receives = landing.into_iter().map(|task| task.wait_for(LIMIT).unwrap()).collect();
        for (index, task) in receives.iter().enumerate() {
            assert_eq!(task.data(), [round ^ index as u8; 16]);
        }
    }
}

#[test]
fn a_deadline_gives_the_task_back_in_flight() {
    let pair = Pair::new();
    let (send, receive) = both(&pair, 8);
    let landing = receive.submit().unwrap();
    let (error, landing) = going_on(landing.wait_for(Duration::from_millis(1)).unwrap_err());
    assert_eq!(error.refusal(), Some(Refusal::TimedOut));
    assert!(!landing.is_done());
    drop(send.submit().unwrap().wait_for(LIMIT).unwrap());
    assert_eq!(landing.wait_for(LIMIT).unwrap().data().len(), 8);
}

#[test]
fn it_can_be_awaited() {
    let Pair { engine, memory, left, right } = Pair::new();
    let mut send = left.sends.prepare(&left.connection, memory.take(8).unwrap()).unwrap();
    let mut receive = right.receives.prepare(memory.take(8).unwrap()).unwrap();
    let rounds = async {
        for round in 0..50u8 {
            let landing = receive.submit().unwrap();
            send.data_mut().fill(round);
            send = send.submit().unwrap().await.unwrap();
            receive = landing.await.unwrap();
            assert_eq!(receive.data(), [round; 8]);
        }
        (send, receive)
    };
    let (send, receive) = engine.block_on(rounds).unwrap();
    // A future that was polled and is dropped detaches the task.
    let mut landing = receive.submit().unwrap().into_future();
    assert!(pin!(&mut landing).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(landing);
    drop(send.submit().unwrap().wait_for(LIMIT).unwrap());
    until(&engine, || engine.in_flight().unwrap() == 0);
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn a_stop_flushes_and_revokes() {
    let pair = Pair::new();
    let (send, receive) = both(&pair, 8);
    let idle = pair.right.receives.prepare(pair.memory.take(8).unwrap()).unwrap();
    let receive = receive.submit().unwrap();
    let pair = pair.restart();
    let (error, receive) = left(receive.wait_for(LIMIT).unwrap_err());
    assert!(error.code().is_some_and(|code| code != Code::SUCCESS), "{error}");
    assert!(receive.arrival().is_none());
    for failed in [receive.submit().unwrap_err(), idle.submit().unwrap_err()] {
        assert_eq!(failed.error.refusal(), Some(Refusal::Stale));
        assert_eq!(failed.value.into_buffer().capacity(), 8);
    }
    assert_eq!(send.submit().unwrap_err().error.refusal(), Some(Refusal::Stale));
    let (mut send, receive) = both(&pair, 8);
    send.data_mut().fill(7);
    let landing = receive.submit().unwrap();
    drop(send.submit().unwrap().wait_for(LIMIT).unwrap());
    assert_eq!(landing.wait_for(LIMIT).unwrap().data(), [7; 8]);
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn a_change_does_not_bring_back_what_a_stop_revoked() {
    let Pair { engine, memory, left, right } = Pair::new();
    let mut receive = right.receives.prepare(memory.take(8).unwrap()).unwrap();
    let mut rdma = Some(right.rdma);
    let stopping = receive.edit(|_| rdma.take().unwrap().stop()).unwrap();
    let failed = receive.submit().unwrap_err();
    assert_eq!(failed.error.kind(), Kind::BadState);
    drop(stopping.wait_for(LIMIT).unwrap());
    drop((failed, left, engine));
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn the_end_of_a_connection_revokes() {
    let pair = Pair::new();
    let (send, receive) = both(&pair, 8);
    let Pair { engine, memory, left, right } = pair;
    left.connection.disconnect().unwrap();
    let failed = send.submit().unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::NotConnected));
    // Receives belong to the context.
    drop(receive.submit().unwrap());

    // Dropping it does too, at once; a task in flight on it is waited for before it is disconnected.
    let send = right.sends.prepare(&right.connection, memory.take(8).unwrap()).unwrap();
    let idle = right.sends.prepare(&right.connection, memory.take(8).unwrap()).unwrap();
    let send = send.submit().unwrap();
    drop(right.connection);
    let mut idle = idle.submit().unwrap_err();
    assert_eq!(idle.error.refusal(), Some(Refusal::NotConnected));
    // A change does not bring it back.
    idle.value.edit(|_| ()).unwrap();
    assert_eq!(idle.value.submit().unwrap_err().error.refusal(), Some(Refusal::NotConnected));
    let (_, send) = left_of_any(send.wait_for(LIMIT));
    // Its peer has gone, so it failed; there are readings in which that ends the context too.
    let revoked = send.submit().unwrap_err().error.refusal();
    assert!(matches!(revoked, Some(Refusal::NotConnected | Refusal::Stopped)), "{revoked:?}");
    drop((left.rdma, engine));
}

/// How a task ended, and the task.
fn left_of_any<T: Task>(
    done: Result<Prepared<T, Buffer>, Failed<TaskLeft<T, Buffer>>>,
) -> (Option<Error>, Prepared<T, Buffer>) {
    match done {
        Ok(task) => (None, task),
        Err(failed) => {
            let (error, task) = left(failed);
            (Some(error), task)
        }
    }
}

#[test]
fn a_failure_that_nobody_heard_of_is_not_told_to_the_next_task() {
    let Pair { engine, memory, left, right } = Pair::new();
    // Without a receive on the other side it stays in flight.
    let send = right.sends.prepare(&right.connection, memory.take(8).unwrap()).unwrap();
    drop(send.submit().unwrap());
    right.connection.disconnect().unwrap();
    until(&engine, || engine.in_flight().unwrap() == 0);
    let ((ours, descriptor), (theirs, their_descriptor)) =
        (left.rdma.export().unwrap(), right.rdma.export().unwrap());
    let _ours = ours.connect(their_descriptor).unwrap();
    let theirs = theirs.connect(descriptor).unwrap();
    let mut receive = left.receives.submit(memory.take(8).unwrap()).unwrap();
    // The task that failed is the next that is used.
    right.sends.submit(&theirs, memory.take(8).unwrap()).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(receive.wait_for(LIMIT).unwrap().message_len(), 8);
}

#[test]
fn inside_callbacks_they_are_submitted_but_not_waited_for() {
    let Pair { engine, memory, left, right } = Pair::new();
    let send = left.sends.prepare(&left.connection, memory.take(8).unwrap()).unwrap();
    let receive = right.receives.prepare(memory.take(8).unwrap()).unwrap();
    let landing = receive.submit().unwrap();
    let kept = Rc::new(RefCell::new(Some(send)));
    let seen = Rc::new(RefCell::new(None));
    let port = free_port();
    let decide = {
        let (kept, seen) = (kept.clone(), seen.clone());
        move |_: &_| {
            if let Some(send) = kept.borrow_mut().take() {
                let (error, flying) = going_on(send.submit().unwrap().wait().unwrap_err());
                *seen.borrow_mut() = Some((error.refusal(), flying));
            }
            Decision::accept()
        }
    };
    let _listener = right.rdma.listen(port, decide).unwrap();
    let _connecting = left.rdma.connect_addr(address(port)).unwrap();
    until(&engine, || seen.borrow().is_some());
    let (refusal, flying) = seen.borrow_mut().take().unwrap();
    assert_eq!(refusal, Some(Refusal::InCallback));
    drop(flying.wait_for(LIMIT).unwrap());
    drop(landing.wait_for(LIMIT).unwrap());
}

/// Everything that a program can hold of prepared tasks, and what they need.
fn everything() -> Parts {
    let pair = Pair::new();
    let prepare = |queue: &Queue<SendTask>, connection: &Connection, memory: &PrivateMemory| {
        queue.prepare(connection, memory.take(64).unwrap()).unwrap()
    };
    let Pair { engine, memory, left, right } = pair;
    let fresh = prepare(&left.sends, &left.connection, &memory);
    let landing = right.receives.prepare(memory.take(64).unwrap()).unwrap().submit().unwrap();
    let back = prepare(&left.sends, &left.connection, &memory).submit().unwrap().wait_for(LIMIT).unwrap();
    let arrived = landing.wait_for(LIMIT).unwrap();
    let posted = right.receives.prepare(memory.take(64).unwrap()).unwrap().submit().unwrap();
    // Without a receive on the other side these stay in flight.
    let flying = prepare(&right.sends, &right.connection, &memory).submit().unwrap();
    let frozen = memory.take(64).unwrap().freeze().unwrap();
    let shared = right.sends.prepare(&right.connection, frozen.clone()).unwrap().submit().unwrap();
    let mut polled = prepare(&right.sends, &right.connection, &memory).submit().unwrap().into_future();
    assert!(pin!(&mut polled).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    vec![
        Box::new(engine),
        Box::new(memory),
        Box::new(left.rdma),
        Box::new(left.connection),
        Box::new(left.sends),
        Box::new(right.rdma),
        Box::new(right.connection),
        Box::new((right.sends, right.receives)),
        Box::new(fresh),
        Box::new(back),
        Box::new(arrived),
        Box::new(posted),
        Box::new(flying),
        Box::new(frozen),
        Box::new(shared),
        Box::new(polled),
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
