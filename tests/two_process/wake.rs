//! Who waits is served: by its receiver, by a descriptor that becomes readable, by its deadline.

use crate::process::{LIMIT, Parent, Peer, Talk};
use crate::side::Side;
use doca::Refusal;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Posts its receive when the sender has long been blocked.
pub fn late_receiver(parent: &mut Parent, _: &[String]) {
    let (side, _connection) = Side::start("mlx5_0", 1, 64).connect(parent);
    parent.expect("sent");
    let mut receive = side.receives.submit(side.memory.take(64).unwrap()).unwrap();
    assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], b"blocked");
    parent.say("received");
    side.close();
}

pub fn a_blocked_sender_is_served_by_its_receiver() {
    let mut peer = Peer::start("late receiver", &[]);
    let (side, connection) = Side::start("mlx5_1", 1, 64).connect(&mut peer);
    let mut message = side.memory.take(64).unwrap();
    message.fill_with(b"blocked").unwrap();
    let mut send = side.sends.submit(&connection, message).unwrap();
    assert!(!send.is_done());
    peer.say("sent");
    // This process does not progress before the message is there.
    peer.expect("received");
    send.wait_for(LIMIT).unwrap();
    peer.finish();
    side.close();
}

/// Sends when told to, and says when that was.
pub fn late_sender(parent: &mut Parent, _: &[String]) {
    let (side, connection) = Side::start("mlx5_1", 1, 64).connect(parent);
    parent.expect("asleep");
    let mut message = side.memory.take(64).unwrap();
    message.fill_with(b"good morning").unwrap();
    side.sends.submit(&connection, message).unwrap().wait_for(LIMIT).unwrap();
    parent.say("sent");
    parent.expect("end");
    side.close();
}

/// Whether the descriptor becomes readable in time.
pub fn poll(fd: impl AsFd, time: Duration) -> bool {
    let mut waited = libc::pollfd { fd: fd.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, whose descriptor is borrowed for the call.
    (unsafe { libc::poll(&mut waited, 1, time.as_millis() as i32) }) == 1
}

pub fn a_sleeper_in_poll_is_woken() {
    let mut peer = Peer::start("late sender", &[]);
    let (side, _connection) = Side::start("mlx5_0", 1, 64).connect(&mut peer);
    let mut receive = side.receives.submit(side.memory.take(64).unwrap()).unwrap();
    // The peer may be connecting still, which wakes too: its word comes after that.
    while side.engine.progress().unwrap() {}
    side.engine.arm().unwrap();
    peer.say("asleep");
    let deadline = Instant::now() + LIMIT;
    while !receive.is_done() {
        assert!(poll(&side.engine, deadline.saturating_duration_since(Instant::now())), "not woken");
        while side.engine.progress().unwrap() {}
        side.engine.arm().unwrap();
    }
    assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], b"good morning");
    peer.expect("sent");
    // Asleep again, and nothing to wake for.
    side.engine.arm().unwrap();
    assert!(!poll(&side.engine, Duration::ZERO));
    peer.say("end");
    peer.finish();
    side.close();
}

pub fn a_deadline_is_kept() {
    let (side, _connection) = Side::alone("mlx5_0", 1, 64);
    let mut receive = side.receives.submit(side.memory.take(64).unwrap()).unwrap();
    let time = Duration::from_millis(150);
    let in_time = |started: Instant| {
        let took = started.elapsed();
        assert!(took >= time && took < LIMIT, "{took:?}");
    };
    let started = Instant::now();
    let late = receive.wait_for(time).unwrap_err();
    in_time(started);
    assert_eq!(late.error.refusal(), Some(Refusal::TimedOut));
    let started = Instant::now();
    assert!(!side.engine.wait_for(time).unwrap());
    in_time(started);
    // What was waited for goes on: the context's end gives it back.
    assert!(!receive.is_done());
    side.rdma.stop().wait_for(LIMIT).unwrap();
    let flushed = receive.wait_for(LIMIT).unwrap_err();
    assert!(flushed.value.is_some() && flushed.error.refusal().is_none());
}
