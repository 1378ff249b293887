//! RDMA CM and descriptors: accept, reject, several connections, ends, and what the program is told about them.

mod support;

use doca::rdma::{Address, ConnectionEvent, ConnectionState, Decision, Left, Rdma};
use doca::{Descriptor, Kind, ProgressEngine, Refusal};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use support::{LIMIT, Pair, device, free_port, log};

#[test]
fn several_peers_connect_and_each_message_says_whose_it_is() {
    let Pair { engine: _engine, memory, left, right } = Pair::new();
    let port = free_port();
    let listener = right.rdma.listen(port, |_| Decision::accept()).unwrap();
    let mut pairs = Vec::new();
    for _ in 0..4 {
        let client = left.rdma.connect_addr(support::address(port)).unwrap().wait_for(LIMIT).unwrap();
        pairs.push((client, listener.wait_for(LIMIT).unwrap()));
    }
    let mut ids: Vec<_> = pairs.iter().map(|(_, server)| server.id()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    for (index, (client, server)) in pairs.iter().enumerate().rev() {
        let mut receive = right.receives.submit(memory.take(64).unwrap()).unwrap();
        let mut message = memory.take(1).unwrap();
        message[0] = index as u8;
        left.sends.submit(client, message).unwrap().wait_for(LIMIT).unwrap();
        let received = receive.wait_for(LIMIT).unwrap();
        assert_eq!((received.connection(), received.buffer[0]), (server.id(), index as u8));
        assert_eq!((received.immediate(), received.message_len()), (None, 1));
    }
}

#[test]
fn decisions_are_asked_for_and_followed() {
    let Pair { engine: _engine, memory: _, left, right } = Pair::new();
    let port = free_port();
    let asked = Rc::new(RefCell::new(Vec::new()));
    let asked_in = asked.clone();
    let listener = right
        .rdma
        .listen(port, move |request| {
            asked_in.borrow_mut().push((request.port(), request.connections()));
            match asked_in.borrow().len() {
                1 => Decision::reject(),
                2 => Decision::accept_with(b"private data").unwrap(),
                _ => Decision::accept(),
            }
        })
        .unwrap();
    let connect = || left.rdma.connect_addr(support::address(port)).unwrap().wait_for(LIMIT);
    let rejected = connect().unwrap_err();
    assert_eq!((rejected.error.kind(), rejected.value.is_none()), (Kind::Disconnected, true));
    assert!(rejected.error.to_string().contains(&format!("192.168.1.1:{port}")), "{rejected}");
    let (second, third) = (connect().unwrap(), connect().unwrap());
    // The connection of the pair itself is there all the time.
    assert_eq!(*asked.borrow(), [(port, 1), (port, 1), (port, 2)]);
    assert!(
        listener.wait_for(LIMIT).unwrap().is_connected() && second.is_connected() && third.is_connected()
    );
    assert_eq!(Decision::accept_with(&[0; 256]).unwrap_err().refusal(), Some(Refusal::TooLong));
}

#[test]
fn the_end_of_a_connection_is_told_on_both_sides_once() {
    let Pair { engine, memory, left, right } = Pair::new();
    let port = free_port();
    let listener = right.rdma.listen(port, |_| Decision::accept()).unwrap();
    let (mut on_left, mut on_right) = (left.rdma.events(), right.rdma.events());
    let client = left.rdma.connect_addr(support::address(port)).unwrap().wait_for(LIMIT).unwrap();
    let server = listener.wait_for(LIMIT).unwrap();
    let (client_id, server_id) = (client.id(), server.id());
    let told = |connection, state| Some(ConnectionEvent { connection, state });
    assert_eq!(on_left.next(), told(client_id, ConnectionState::Connected));
    assert_eq!(on_right.next(), told(server_id, ConnectionState::Connected));

    client.disconnect().unwrap();
    client.disconnect().unwrap();
    server.wait_disconnected_for(LIMIT).unwrap();
    client.wait_disconnected_for(LIMIT).unwrap();
    assert_eq!(
        (client.state(), server.state()),
        (ConnectionState::Disconnected, ConnectionState::Disconnected)
    );
    let refused = right.sends.submit(&server, memory.take(1).unwrap()).unwrap_err();
    assert_eq!(refused.error.refusal(), Some(Refusal::NotConnected));
    while engine.progress().unwrap() {}
    assert_eq!(
        on_left.by_ref().collect::<Vec<_>>(),
        told(client_id, ConnectionState::Disconnected).as_slice()
    );
    assert_eq!(
        on_right.by_ref().collect::<Vec<_>>(),
        told(server_id, ConnectionState::Disconnected).as_slice()
    );

    // Dropping is disconnecting too, and the slots can be used again, more often than there are.
    for _ in 0..20 {
        let client = left.rdma.connect_addr(support::address(port)).unwrap().wait_for(LIMIT).unwrap();
        let server = listener.wait_for(LIMIT).unwrap();
        drop(server);
        client.wait_disconnected_for(LIMIT).unwrap();
    }
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn nobody_listening_is_an_error_and_the_context_goes_on() {
    let mut pair = Pair::new();
    let connecting = pair.left.rdma.connect_addr(support::address(free_port())).unwrap();
    let failed = connecting.wait_for(LIMIT).unwrap_err();
    assert_eq!(failed.error.kind(), Kind::Disconnected);
    assert!(failed.error.next_check().contains("listens"), "{failed}");
    pair.exchange(b"as before");
    let port = free_port();
    let first = pair.right.rdma.listen(port, |_| Decision::accept()).unwrap();
    let taken = Pair::on(&pair.engine).right.rdma.listen(port, |_| Decision::accept()).unwrap_err();
    assert!(taken.to_string().contains(&format!("port {port}")), "{taken}");
    drop(first);
    support::until(&pair.engine, || pair.right.rdma.listen(port, |_| Decision::accept()).is_ok());
}

#[test]
fn waiting_for_a_peer_ends_at_its_deadline_and_can_go_on() {
    let Pair { engine: _engine, memory: _, left, right } = Pair::new();
    let port = free_port();
    let listener = right.rdma.listen(port, |_| Decision::accept()).unwrap();
    let before = Instant::now();
    let late = listener.wait_for(Duration::from_millis(50)).unwrap_err();
    assert_eq!(late.refusal(), Some(Refusal::TimedOut));
    assert!((Duration::from_millis(50)..LIMIT).contains(&before.elapsed()));
    // The peer's engine is not progressed at first.
    let other = Pair::new();
    let port = free_port();
    let listener = other.right.rdma.listen(port, |_| Decision::accept()).unwrap();
    let connecting = left.rdma.connect_addr(support::address(port)).unwrap();
    let failed = connecting.wait_for(Duration::from_millis(50)).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::TimedOut));
    let mut connecting = failed.value.expect("still connecting");
    let connection = loop {
        other.engine.wait_for(Duration::from_millis(1)).unwrap();
        match connecting.wait_for(Duration::from_millis(1)) {
            Ok(connection) => break connection,
            Err(failed) => connecting = failed.value.expect("still connecting"),
        }
    };
    assert!(connection.is_connected() && listener.wait_for(LIMIT).unwrap().is_connected());
}

#[test]
fn peers_can_be_awaited() {
    let Pair { engine, memory, left, right } = Pair::new();
    let port = free_port();
    let listener = right.rdma.listen(port, |_| Decision::accept()).unwrap();
    let connecting = left.rdma.connect_addr(support::address(port)).unwrap();
    engine
        .block_on(async {
            let client = connecting.established().await.unwrap();
            let server = listener.accept().await.unwrap();
            let receive = right.receives.submit(memory.take(8).unwrap()).unwrap();
            left.sends.submit(&client, memory.take(2).unwrap()).unwrap().await.unwrap();
            assert_eq!(receive.await.unwrap().buffer.len(), 2);
            client.disconnect().unwrap();
            server.disconnected().await;
        })
        .unwrap();
}

#[test]
fn descriptors_from_a_peer_are_not_trusted() {
    let Pair { engine: _engine, memory: _, left, right } = Pair::new();
    let (exported, _) = left.rdma.export().unwrap();
    let (_other, good) = right.rdma.export().unwrap();
    let good = good.as_bytes().to_vec();
    let mut bad: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
    bad.extend((0..good.len()).map(|at| {
        let mut flipped = good.clone();
        flipped[at] ^= 1 << (at % 8);
        flipped
    }));
    let mut exported = exported;
    for bytes in bad {
        let failed = exported.connect(&bytes).unwrap_err();
        let expected = if bytes.is_empty() { Kind::Invalid } else { Kind::Disconnected };
        assert_eq!(failed.error.kind(), expected, "{failed}");
        exported = failed.value;
    }
    let connection = exported.connect(&good).unwrap();
    assert!(connection.is_connected());
    let debug = format!("{:?}", Descriptor::from(good.clone()));
    assert_eq!(debug, format!("Descriptor({} bytes)", good.len()), "no secret bytes");
}

#[test]
fn connections_are_limited_and_come_back() {
    let engine = ProgressEngine::new().unwrap();
    let mut config = Rdma::configure(&device()).unwrap();
    config.set_max_num_connections(2).unwrap();
    let rdma = config.start(&engine).unwrap();
    let first = rdma.export().unwrap();
    let second = rdma.export().unwrap();
    let full = rdma.export().unwrap_err();
    assert_eq!((full.kind(), full.is_retryable()), (Kind::Full, true));
    drop(first);
    support::until(&engine, || rdma.export().is_ok());
    drop(second);
}

#[test]
fn addresses_are_read_and_shown() {
    let address = Address::parse_ip("192.168.1.1", 5).unwrap();
    assert_eq!((address.to_string(), address.port()), ("192.168.1.1:5".to_owned(), 5));
    assert_eq!(Address::parse_ip("fe80::1", 5).unwrap().to_string(), "[fe80::1]:5");
    assert_eq!(Address::parse_gid("fe80::1", 5).unwrap().to_string(), "gid fe80::1 port 5");
    for bad in ["", "192.168.1", "host", "::1::"] {
        assert_eq!(Address::parse_ip(bad, 1).unwrap_err().refusal(), Some(Refusal::Malformed), "{bad}");
        assert_eq!(Address::parse_gid(bad, 1).unwrap_err().refusal(), Some(Refusal::Malformed), "{bad}");
    }
}

#[test]
fn a_refused_message_fails_on_both_sides_with_both_buffers() {
    let Pair { engine: _engine, memory, left, right } = Pair::new();
    let mut receive = right.receives.submit(memory.take(4).unwrap()).unwrap();
    let mut send = left.sends.submit(&left.connection, memory.take(5).unwrap()).unwrap();
    let failed = send.wait_for(LIMIT).unwrap_err();
    assert_eq!((failed.error.kind(), failed.value.unwrap().len()), (Kind::Io, 5));
    for cause in ["no receive", "smaller", "gone"] {
        assert!(failed.error.next_check().contains(cause), "{}", failed.error);
    }
    let failed = receive.wait_for(LIMIT).unwrap_err();
    assert_eq!(failed.value.unwrap().capacity(), 4);
    let late = left.sends.submit(&left.connection, memory.take(1).unwrap());
    assert!(
        late.map_err(doca::Error::from).and_then(|mut late| Ok(late.wait_for(LIMIT)?)).is_err(),
        "it is broken"
    );
}

#[test]
fn a_message_says_whose_it_is_after_the_end_of_its_connection() {
    let Pair { engine, memory, left, right } = Pair::new();
    let port = free_port();
    let listener = right.rdma.listen(port, |_| Decision::accept()).unwrap();
    for round in 0..8 {
        let client = left.rdma.connect_addr(support::address(port)).unwrap().wait_for(LIMIT).unwrap();
        let server = listener.wait_for(LIMIT).unwrap();
        let mut message = memory.take(1).unwrap();
        message[0] = round;
        // The message is there when it finds its receive; both it and the end are told by progress afterwards.
        let mut receive = right.receives.submit(memory.take(64).unwrap()).unwrap();
        let sent = left.sends.submit(&client, message).unwrap();
        client.disconnect().unwrap();
        support::until(&engine, || server.state().is_over() && receive.is_done());
        let received = receive.wait_for(LIMIT).unwrap();
        assert_eq!((received.connection(), received.buffer[0]), (server.id(), round));
        drop(sent);
    }
}

#[test]
fn a_new_record_of_events_ends_the_one_before() {
    let pair = Pair::new();
    let mut old = pair.left.rdma.events();
    let mut new = pair.left.rdma.events();
    pair.left.connection.disconnect().unwrap();
    assert!(old.next().is_none());
    drop(old);
    let event = new.next().expect("dropping the old one leaves the new one alone");
    assert_eq!((event.connection, event.state), (pair.left.connection.id(), ConnectionState::Disconnected));
}

/// Under the reading of DOCA 2.x. The simulator reads its profile when it is loaded, so this runs in a process of its own.
#[test]
fn who_waits_for_running_without_a_connection_is_told() {
    const TEST: &str = "who_waits_for_running_without_a_connection_is_told";
    const PROFILE: (&str, &str) = ("DOCA_SIM_PROFILE", "starting-until-connected");
    if std::env::var(PROFILE.0).is_ok_and(|profile| profile == PROFILE.1) {
        return warned_while_starting();
    }
    let output = support::again(TEST, &[PROFILE]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn warned_while_starting() {
    let engine = ProgressEngine::new().unwrap();
    let starting = Rdma::configure(&device()).unwrap().start(&engine).unwrap();
    log::warnings();
    let failed = starting.running_within(Duration::from_millis(1500)).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::TimedOut));
    let warnings = log::warnings();
    assert!(matches!(&warnings[..], [one] if one.contains("first connection")), "{warnings:?}");

    // Connecting what is left of it leads to RUNNING, without more words.
    let Left::Starting(starting) = failed.value else { panic!("{:?}", failed.value) };
    let (_rdma, _connection) = support::alone(starting);
    assert_eq!(log::warnings(), [""; 0]);
}
