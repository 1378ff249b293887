//! Many messages and large ones, each with contents that are checked.

use crate::process::{LIMIT, Parent, Peer, Talk};
use crate::side::Side;
use std::collections::VecDeque;
use std::time::Instant;

/// Messages under way.
const WINDOW: usize = 64;

/// What message number `index` contains, eight bytes at a time.
fn word(index: u64, position: usize) -> u64 {
    (index << 24 ^ position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn fill(bytes: &mut [u8], index: u64) {
    for (position, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&word(index, position).to_le_bytes());
    }
}

fn check(bytes: &[u8], index: u64) {
    for (position, chunk) in bytes.chunks_exact(8).enumerate() {
        assert!(
            chunk == word(index, position).to_le_bytes(),
            "message {index} differs at byte {}",
            position * 8
        );
    }
}

/// Receives so many messages of this size, in order and unchanged.
pub fn receiver(parent: &mut Parent, args: &[String]) {
    let (count, size): (u64, usize) = (args[0].parse().unwrap(), args[1].parse().unwrap());
    let window = window(size);
    let (side, connection) = Side::start("mlx5_0", window as u32, window * size).connect(parent);
    let post = |buffer| side.receives.submit(buffer).unwrap();
    let mut posted: VecDeque<_> = (0..window).map(|_| post(side.memory.take(size).unwrap())).collect();
    for index in 0..count {
        let mut oldest = posted.pop_front().expect("receives are posted");
        let received = oldest.wait_for(LIMIT).unwrap();
        assert_eq!((received.message_len(), received.connection()), (size, connection.id()));
        check(&received.buffer, index);
        posted.push_back(post(received.buffer));
    }
    // Nothing more comes than was sent.
    assert_eq!(side.engine.in_flight().unwrap(), window);
    assert!(posted.iter().all(|receive| !receive.is_done()));
    side.close();
    parent.say("all there");
}

/// Large messages need no deep queues.
fn window(size: usize) -> usize {
    WINDOW.min((8 << 20) / size)
}

fn transfer(count: u64, size: usize) {
    let mut peer = Peer::start("receiver", &[&count.to_string(), &size.to_string()]);
    let window = window(size);
    let (side, connection) = Side::start("mlx5_1", window as u32, window * size).connect(&mut peer);
    let mut free: Vec<_> = (0..window).map(|_| side.memory.take(size).unwrap()).collect();
    let mut sent = VecDeque::with_capacity(window);
    let started = Instant::now();
    for index in 0..count {
        if free.is_empty() {
            let mut oldest: doca::rdma::Pending<doca::rdma::SendTask, _> =
                sent.pop_front().expect("under way");
            free.push(oldest.wait_for(LIMIT).unwrap());
        }
        let mut buffer = free.pop().expect("just given back");
        fill(&mut buffer, index);
        sent.push_back(side.sends.submit(&connection, buffer).unwrap());
    }
    for mut rest in sent {
        rest.wait_for(LIMIT).unwrap();
    }
    peer.expect("all there");
    let seconds = started.elapsed().as_secs_f64();
    let (rate, volume) = (count as f64 / seconds, count as f64 * size as f64 / seconds / f64::from(1 << 20));
    println!(
        "{count} messages of {size} bytes: {rate:.0} a second, {volume:.0} MiB a second, contents checked"
    );
    peer.finish();
    side.close();
}

pub fn many_small_messages() {
    transfer(50_000, 64);
}

pub fn large_messages() {
    transfer(64, 1 << 20);
}

pub fn soak_small_messages() {
    transfer(1_000_000, 64);
}

pub fn soak_large_messages() {
    transfer(4096, 1 << 20);
}
