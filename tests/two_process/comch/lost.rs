//! Peers that are killed.

use super::Pair;
use crate::process::{LIMIT, Talk};
use doca::comch::{ConnectionState, Ended, Event};
use doca::{Code, Kind};
use std::time::Instant;

/// A server that is killed is noticed when a message to it fails.
pub fn a_killed_server_is_noticed_by_sending() {
    let mut pair = Pair::new("victim");
    let (client, connection) = pair.connect("victim");
    let mut events = client.events();
    connection.send(b"alive").unwrap();
    assert_eq!(connection.receive_for(LIMIT).unwrap(), b"alive");
    pair.server.kill();
    assert_eq!(connection.state(), ConnectionState::Connected, "silence");
    // Nothing is told before a message was tried.
    connection.send(b"anybody there?").unwrap();
    connection.wait_disconnected_for(LIMIT).unwrap();
    let code = Code::CONNECTION_ABORTED;
    let failed = connection.wait_sent_for(LIMIT).unwrap_err();
    assert_eq!((failed.code(), failed.kind()), (Some(code), Kind::Disconnected));
    assert!(failed.next_check().contains("progresses"), "{failed}");
    let config = client.stop().wait_for(LIMIT).unwrap();
    assert_eq!(config.ended(), Some(Ended::Lost(Some(code))));
    let told: Vec<Event> = std::iter::from_fn(|| events.next()).collect();
    let (last, failures) = told.split_last().unwrap();
    assert!(matches!(last, Event::Disconnected(_)), "{told:?}");
    assert!(failures.iter().all(|event| matches!(event, Event::SendFailed(_, other) if *other == code)));
}

/// A client that is killed with tasks and a fast path open does not keep its server from stopping.
pub fn a_killed_client_does_not_hold_its_server() {
    let mut pair = Pair::new("mourner");
    let mut client = crate::process::Peer::start("comch victim", &["mourner"]);
    client.expect("connected");
    client.kill();
    // Others are served meanwhile.
    let (other, connection) = pair.connect("mourner");
    connection.send(b"next").unwrap();
    assert_eq!(connection.receive_for(LIMIT).unwrap(), b"next");
    let begun = Instant::now();
    drop((connection, other));
    pair.server.expect_eventually("a client has gone", &pair.engine);
    pair.server.say("stop");
    while pair.server.hear() != "stopped" {}
    assert!(begun.elapsed() < LIMIT);
    pair.server.finish();
}

/// The role: a client that waits to be killed, with messages on their way.
pub fn victim(parent: &mut crate::process::Parent, args: &[String]) {
    let device = doca::Device::open("mlx5_0").unwrap();
    let engine = doca::ProgressEngine::new().unwrap();
    let client = doca::comch::Client::configure(&device, &args[0]).unwrap();
    let client = client.start(&engine).unwrap().running_within(LIMIT).unwrap();
    let connection = client.connection().unwrap();
    connection.send(b"last words").unwrap();
    parent.say("connected");
    loop {
        engine.progress().unwrap();
    }
}
