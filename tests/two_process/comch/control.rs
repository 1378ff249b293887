//! The control path: messages, back-pressure, ends that each side wants.

use super::server::{RECV_QUEUE, SEND_TASKS};
use super::{ON_DPU, Pair};
use crate::process::{LIMIT, Peer, Talk};
use doca::comch::{Client, ConnectionState, Ended, Event, Left, caps};
use doca::{Device, Kind, ProgressEngine, Refusal, context::State};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

fn until(engine: &ProgressEngine, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "did not happen within {LIMIT:?}");
        engine.progress().unwrap();
    }
}

pub fn messages_come_whole_and_in_order() {
    let pair = Pair::new("echo");
    let (client, connection) = pair.connect("echo");
    let most = connection.max_msg_size();
    let sizes = [0, 1, 7, 4000, most, 3];
    for (round, size) in sizes.into_iter().cycle().take(60).enumerate() {
        let message: Vec<u8> = (0..size).map(|at| (at + round) as u8).collect();
        let (left, right) = message.split_at(size / 2);
        connection.send_parts(&[left, &[], right]).unwrap();
        assert_eq!(connection.receive_for(LIMIT).unwrap(), message, "round {round}");
    }
    connection.wait_sent_for(LIMIT).unwrap();
    let too_long = connection.send(&vec![0; most + 1]).unwrap_err();
    assert_eq!(too_long.refusal(), Some(Refusal::TooLong));
    let counters = connection.counters().unwrap();
    assert_eq!((counters.sent_messages, counters.received_messages), (61, 61), "one from before");
    assert_eq!(counters.sent_bytes, counters.received_bytes);
    // A client that stops is told to its server.
    let config = client.stop().wait_for(LIMIT).unwrap();
    assert_eq!(config.ended(), Some(Ended::Stopped));
    let mut pair = pair;
    pair.server.expect("a client has gone");
    assert_eq!(connection.state(), ConnectionState::Disconnected);
    let gone = connection.send(b"late").unwrap_err();
    assert_eq!(gone.refusal(), Some(Refusal::Stale));
    pair.finish();
}

pub fn a_peer_that_takes_nothing_is_a_value() {
    let mut pair = Pair::new("slow");
    let (client, connection) = pair.connect("slow");
    pair.server.say("sleep");
    pair.server.expect("asleep");
    // Its queue, then our tasks.
    let mut sent = 0u32;
    let deadline = Instant::now() + LIMIT;
    let busy = loop {
        match connection.send(&sent.to_le_bytes()) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        pair.engine.progress().unwrap();
        assert!(Instant::now() < deadline);
    };
    assert!(busy.is_retryable() && busy.kind() == Kind::Full, "{busy}");
    assert!((SEND_TASKS..=SEND_TASKS + RECV_QUEUE).contains(&sent), "{sent}");
    assert_eq!(connection.in_flight(), SEND_TASKS);
    let late = connection.wait_sent_for(Duration::from_millis(10)).unwrap_err();
    assert_eq!(late.refusal(), Some(Refusal::TimedOut));
    pair.server.say("wake");
    for number in 0..sent {
        assert_eq!(connection.receive_for(LIMIT).unwrap(), number.to_le_bytes());
    }
    connection.wait_sent_for(LIMIT).unwrap();
    drop(client);
    pair.server.expect_eventually("a client has gone", &pair.engine);
    pair.finish();
}

/// What one connection may have on its way, whatever the context can.
pub fn a_connection_has_its_share() {
    const SHARE: u32 = 3;
    let mut pair = Pair::new("share");
    let mut config = pair.configure("share");
    assert_eq!(config.set_sends_per_connection(0).unwrap_err().refusal(), Some(Refusal::OutOfRange));
    config.set_sends_per_connection(SHARE).unwrap();
    let client = config.start(&pair.engine).unwrap().running_within(LIMIT).unwrap();
    let connection = client.connection().unwrap();
    pair.server.say("sleep");
    pair.server.expect("asleep");
    let (mut sent, most) = (0, RECV_QUEUE + SHARE);
    until(&pair.engine, || {
        let taken = connection.send(b"one of many");
        let full = taken.as_ref().is_err_and(|error| error.kind() == Kind::Full);
        assert!(connection.in_flight() <= SHARE && (full || taken.is_ok()), "{taken:?}");
        sent += u32::from(taken.is_ok());
        sent == most
    });
    assert_eq!(
        (connection.send(b"too many").unwrap_err().kind(), connection.in_flight()),
        (Kind::Full, SHARE)
    );
    pair.server.say("wake");
    for _ in 0..most {
        assert_eq!(connection.receive_for(LIMIT).unwrap(), b"one of many");
    }
    connection.wait_sent_for(LIMIT).unwrap();
    client.stop().wait_for(LIMIT).unwrap();
    pair.server.expect("a client has gone");
    pair.finish();
}

pub fn a_server_ends_a_connection() {
    let mut pair = Pair::new("ends");
    let (client, connection) = pair.connect("ends");
    let mut events = client.events();
    pair.server.say("disconnect");
    // The library does not tell the server of the end that it wanted.
    let mut lines = [pair.server.hear(), pair.server.hear()];
    lines.sort();
    assert_eq!(lines, ["a client has gone", "disconnected"]);
    connection.wait_disconnected_for(LIMIT).unwrap();
    let mut left = Left::Running(client);
    until(&pair.engine, || {
        left = std::mem::replace(&mut left, Left::Consumed).now();
        matches!(left, Left::Config(_))
    });
    let Left::Config(config) = left else { unreachable!() };
    assert_eq!(config.ended(), Some(Ended::Lost(None)));
    assert!(matches!(events.next(), Some(Event::Disconnected(id)) if id == connection.id()));
    // The same object connects again.
    let client = config.start(&pair.engine).unwrap().running_within(LIMIT).unwrap();
    let again = client.connection().unwrap();
    again.send(b"again").unwrap();
    assert_eq!(again.receive_for(LIMIT).unwrap(), b"again");
    assert_eq!(connection.state(), ConnectionState::Disconnected, "the handle is of an earlier run");
    client.stop().wait_for(LIMIT).unwrap();
    pair.server.expect("a client has gone");
    pair.finish();
}

pub fn a_client_without_a_server_falls_back() {
    let device = Device::open("mlx5_0").unwrap();
    let engine = ProgressEngine::new().unwrap();
    let config = Client::configure(&device, "nobody").unwrap();
    let failed = config.start(&engine).unwrap().running_within(LIMIT).unwrap_err();
    assert!(failed.error.to_string().contains("nobody"), "{failed}");
    let Left::Config(config) = failed.value else { panic!("{:?}", failed.value) };
    assert_eq!(config.ended(), Some(Ended::NotReached));
    // Stopping one that is starting takes no time.
    drop(config.start(&engine).unwrap());
    let long = "x".repeat(4096);
    assert_eq!(Client::configure(&device, &long).unwrap_err().refusal(), Some(Refusal::Capability));
    assert_eq!(Client::configure(&device, "a\0b").unwrap_err().refusal(), Some(Refusal::Malformed));
}

pub fn one_name_has_one_server() {
    let pair = Pair::new("taken");
    let mut second = Peer::start_with("comch server", &["taken"], &[ON_DPU, ("DOCA_LOG_LEVEL_SDK", "20")]);
    second.expect("INITIALIZATION");
    second.finish();
    pair.finish();
}

pub fn a_server_stops_under_its_clients() {
    let mut pair = Pair::new("leaves");
    let clients: Vec<_> = (0..8).map(|_| pair.connect("leaves")).collect();
    for (number, (_, connection)) in clients.iter().enumerate() {
        connection.send(&[number as u8]).unwrap();
        assert_eq!(connection.receive_for(LIMIT).unwrap(), [number as u8]);
    }
    pair.server.say("connections");
    pair.server.expect("8");
    pair.server.say("stop");
    for (client, connection) in &clients {
        connection.wait_disconnected_for(LIMIT).unwrap();
        until(&pair.engine, || client.state() == State::Idle);
        assert_eq!(connection.send(b"late").unwrap_err().refusal(), Some(Refusal::Stale));
    }
    pair.server.expect("stopped");
    drop(clients);
    drop(pair.engine);
    pair.server.finish();
}

pub fn closures_take_messages_and_cannot_progress() {
    let pair = Pair::new("closure");
    let mut config = pair.configure("closure");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (inside, engine) = (seen.clone(), Rc::new(ProgressEngine::new().unwrap()));
    let own = engine.clone();
    config.on_message(move |connection, message| {
        let refused = own.progress().unwrap_err().refusal();
        inside.borrow_mut().push((connection, message.to_vec(), refused));
        assert_ne!(message, b"panic", "as the message wants");
    });
    let client = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
    let connection = client.connection().unwrap();
    connection.send(b"one").unwrap();
    until(&engine, || seen.borrow().len() == 1);
    assert_eq!(seen.borrow()[0], (connection.id(), b"one".to_vec(), Some(Refusal::InCallback)));
    // A panic comes out of progress, and the closure is still there afterwards.
    std::panic::set_hook(Box::new(|_| {}));
    connection.send(b"panic").unwrap();
    let resumed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until(&engine, || false);
    }));
    let _ = std::panic::take_hook();
    let text = resumed.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("as the message wants"), "{text}");
    connection.send(b"two").unwrap();
    until(&engine, || seen.borrow().len() == 3);
    assert!(!connection.try_receive(&mut Vec::new()), "the closure has them");
    client.stop().wait_for(LIMIT).unwrap();
    let mut pair = pair;
    pair.server.expect("a client has gone");
    pair.finish();
}

pub fn futures_are_woken() {
    let mut pair = Pair::new("futures");
    let (client, connection) = pair.connect("futures");
    let engine = &pair.engine;
    for number in 0..20u8 {
        let message = engine.block_on(async {
            connection.send(&[number])?;
            connection.sent().await?;
            connection.message().await
        });
        assert_eq!(message.unwrap().unwrap(), [number]);
    }
    pair.server.say("disconnect");
    engine.block_on(connection.disconnected()).unwrap();
    let gone = engine.block_on(connection.message()).unwrap().unwrap_err();
    assert_eq!(gone.refusal(), Some(Refusal::NotConnected));
    engine.block_on(client.stop().stopped()).unwrap().unwrap();
    let mut lines = [pair.server.hear(), pair.server.hear()];
    lines.sort();
    assert_eq!(lines, ["a client has gone", "disconnected"]);
    pair.finish();
}

pub fn every_limit_is_told() {
    let device = Device::open("mlx5_0").unwrap();
    let all = caps::snapshot(&device.info());
    all.require("comch.client,comch.consumer,comch.producer,comch.max_msg_size>=1024").unwrap();
    assert_eq!(all.iter().filter(|(_, answer)| answer.is_ok()).count(), caps::ALL.len());
    let mut config = Client::configure(&device, "limits").unwrap();
    let zero = config.set_max_msg_size(0).unwrap_err();
    assert_eq!(zero.refusal(), Some(Refusal::OutOfRange));
    for refused in [
        config.set_max_msg_size(u32::MAX),
        config.set_recv_queue_size(u32::MAX),
        config.set_send_tasks(u32::MAX),
    ] {
        assert_eq!(refused.unwrap_err().refusal(), Some(Refusal::Capability));
    }
    config.set_max_msg_size(100).unwrap();
    config.set_recv_queue_size(5).unwrap();
    assert_eq!((config.max_msg_size().unwrap(), config.recv_queue_size().unwrap()), (100, 5));
    let none = device.representors(doca::representor::Filter::Net);
    assert!(none.is_err() || none.is_ok_and(|none| none.is_empty()), "the host represents nothing");
}
