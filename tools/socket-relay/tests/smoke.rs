//! The smoke test at a relay that says what each test wants it to: whichever arrow is dark, its name is told.

mod support;

use serde_json::json;
use std::cmp::Ordering;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use support::pair::Place;

/// What a round trip sends.
const BYTES: u64 = 4096;

/// Names of the arrows in the order in which bytes pass, with the side that counts each and its name there.
const ARROWS: [(&str, usize, &str); 8] = [
    ("client -> host relay", 0, "local_in"),
    ("host relay -> link", 0, "link_out"),
    ("link -> DPU relay", 1, "link_in"),
    ("DPU relay -> application", 1, "local_out"),
    ("application -> DPU relay", 1, "local_in"),
    ("DPU relay -> link", 1, "link_out"),
    ("link -> host relay", 0, "link_in"),
    ("host relay -> client", 0, "local_out"),
];

/// Two relays that count `seen` bytes on each arrow, once a client has sent its own, and then nothing.
fn stand_in(place: &Place, seen: [u64; 8]) {
    let through = Arc::new(AtomicBool::new(false));
    let passed = Arc::clone(&through);
    let clients = UnixListener::bind(place.client_path()).unwrap();
    thread::spawn(move || {
        for client in clients.incoming() {
            let mut client = client.unwrap();
            let mut bytes = [0; BYTES as usize];
            // The first bytes may be a question for what an echo has counted: this is none.
            let count = client.read(&mut bytes).unwrap();
            if count > 16 && client.read_exact(&mut bytes[count..]).is_ok() {
                passed.store(true, SeqCst);
            }
        }
    });
    let mut admin = place.client_path().into_os_string();
    admin.push(".admin");
    let admin = UnixListener::bind(admin).unwrap();
    let answer = move |stream: &mut UnixStream| {
        let mut line = String::new();
        BufReader::new(stream.try_clone()?).read_line(&mut line)?;
        let after = through.load(SeqCst);
        let mut sides = [json!({}), json!({})];
        for ((_, side, name), bytes) in ARROWS.into_iter().zip(seen) {
            sides[side][name] = json!(if after { bytes } else { 0 });
        }
        let [ours, theirs] = sides;
        writeln!(stream, "{}", json!({ "ok": true, "ours": ours, "theirs": theirs }))
    };
    thread::spawn(move || admin.incoming().for_each(|stream| answer(&mut stream.unwrap()).unwrap()));
}

#[test]
fn a_socket_that_comes_while_its_relay_is_asked_is_there() {
    let place = Place::new();
    let mut admin = place.client_path().into_os_string();
    admin.push(".admin");
    let admin = UnixListener::bind(admin).unwrap();
    let path = place.client_path();
    thread::spawn(move || {
        // The test tries first whether there is anybody.
        let _tried = admin.accept().unwrap();
        let (mut stream, _) = admin.accept().unwrap();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
        let bound = UnixListener::bind(path).unwrap();
        let status =
            json!({ "session": "up", "other_side": "unknown", "last_error": "class 4: the application" });
        writeln!(stream, "{status}").unwrap();
        while let Ok((_client, _)) = bound.accept() {}
    });
    let mut command = place.program();
    command.arg("--smoke").arg("-s").arg(place.client_path()).args(["--steps", "2", "--timeout", "60"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Runs the smoke test against a socket on which no relay listens, or one to whose application steps 3 and 4 lead.
fn smoke(place: &Place, socket: &std::path::Path) -> (Option<i32>, String) {
    let mut command = place.program();
    command.arg("--smoke").arg("-s").arg(socket).args(["--steps", "5", "--timeout", "60"]);
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_application_that_is_no_echo_is_told_from_a_way_that_fails() {
    let place = Place::new();
    let server = UnixListener::bind(place.server_path()).unwrap();
    thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            // It answers whatever was asked, and ends.
            if stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                _ = stream.write_all(b"400 what?\n");
            }
        }
    });
    let _relays = place.pair();
    drop(place.client());
    let (status, said) = smoke(&place, &place.server_path());
    assert_eq!(status, Some(13), "{said}");
    assert!(said.contains("this is the DPU relay"), "{said}");
    let (status, said) = smoke(&place, &place.client_path());
    assert_eq!(status, Some(14), "{said}");
    assert!(said.contains("an echo is needed there, or --steps 4"), "{said}");
}

#[test]
fn a_socket_of_an_application_is_none_of_a_relay() {
    let place = Place::new();
    support::pair::echo(UnixListener::bind(place.server_path()).unwrap());
    let (status, said) = smoke(&place, &place.server_path());
    assert_eq!(status, Some(13), "{said}");
    assert_eq!(said.matches("class ").count(), 1, "{said}");
    assert!(said.contains("must be that of a host relay"), "{said}");
}

fn named(seen: [u64; 8], name: &str) {
    let place = Place::new();
    stand_in(&place, seen);
    let mut command = place.program();
    command.arg("--smoke").arg("-s").arg(place.client_path()).args(["--steps", "5", "--timeout", "60"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(14), "{said}");
    assert!(said.contains(&format!("; the dark arrow: {name}\n")), "{name}: {said}");
}

#[test]
fn an_arrow_without_bytes_is_named() {
    for (dark, (name, ..)) in ARROWS.into_iter().enumerate() {
        named(std::array::from_fn(|at| if at < dark { BYTES } else { 0 }), name);
    }
}

#[test]
fn an_arrow_with_fewer_bytes_than_the_one_before_is_named() {
    for (dark, (name, ..)) in ARROWS.into_iter().enumerate().skip(1) {
        // Behind one out of a relay nothing passes, as where the application answers whole questions only.
        let behind = if name.ends_with("relay") { BYTES / 2 } else { 0 };
        let seen = |at: usize| match at.cmp(&dark) {
            Ordering::Less => BYTES,
            Ordering::Equal => BYTES / 2,
            Ordering::Greater => behind,
        };
        named(std::array::from_fn(seen), name);
    }
}

#[test]
fn a_relay_that_reads_less_because_its_way_out_is_stuck_is_told_from_one_that_is_given_less() {
    let (all, part) = (BYTES, BYTES / 2);
    named([all, all, all, all, part, 0, 0, 0], "DPU relay -> link");
    named([all, all, part, 0, 0, 0, 0, 0], "DPU relay -> application");
}

#[test]
fn bytes_that_the_client_was_given_and_did_not_get_are_named() {
    named([BYTES; 8], "client has read");
}
