//! As many connections of one context as anybody has, with tasks in flight on all of them, and what they carry.

#![allow(missing_docs, reason = "a test")]

mod support;

use doca::rdma::{Connection, Rdma, ReceiveTask, SendTask};
use doca::{Buffer, Memory, ProgressEngine};
use std::collections::HashMap;
use support::{LIMIT, device};

const CONNECTIONS: usize = 512;
/// Tasks in flight on each of them.
const TASKS: usize = 64;
const ROUNDS: u64 = 3;

/// What a message says: nothing of it is the same in another one.
fn words(round: u64, connection: usize, task: usize) -> [u8; 16] {
    let name = round << 32 | (connection as u64) << 16 | task as u64;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&name.to_le_bytes());
    bytes[8..].copy_from_slice(&(!name).to_le_bytes());
    bytes
}

/// Every message arrives once, unchanged, in the order of its connection, and says whose it is. `cargo sim bench scale`
/// counts that none of it costs more because there are many.
#[test]
fn many_connections_with_many_tasks_each() {
    const ALL: usize = CONNECTIONS * TASKS;
    let (device, engine) = (device(), ProgressEngine::new().unwrap());
    let memory = Memory::zeroed(ALL * 48).unwrap().private(&device).unwrap();
    let [mut left, mut right] = [(); 2].map(|()| {
        let mut config = Rdma::configure(&device).unwrap();
        config.set_max_num_connections(CONNECTIONS as u16).unwrap();
        config
    });
    left.set_send_queue_size(TASKS as u32).unwrap();
    let sends = left.enable::<SendTask>(ALL as u32).unwrap();
    let receives = right.enable::<ReceiveTask>(ALL as u32).unwrap();
    let (left, right) = (left.start(&engine).unwrap(), right.start(&engine).unwrap());
    let links: Vec<(Connection, Connection)> = (0..CONNECTIONS)
        .map(|_| {
            let ((ours, to_us), (theirs, to_them)) = (left.export().unwrap(), right.export().unwrap());
            (ours.connect(to_them).unwrap(), theirs.connect(to_us).unwrap())
        })
        .collect();
    let (left, right) = (left.running_within(LIMIT).unwrap(), right.running_within(LIMIT).unwrap());
    let (sends, receives) = (left.queue(sends).unwrap(), right.queue(receives).unwrap());
    let names: HashMap<_, _> =
        links.iter().enumerate().map(|(index, (_, theirs))| (theirs.id(), index)).collect();
    let mut sources: Vec<Buffer> = (0..ALL).map(|_| memory.take(16).unwrap()).collect();
    let mut rooms: Vec<Buffer> = (0..ALL).map(|_| memory.take(32).unwrap()).collect();

    for round in 0..ROUNDS {
        let received: Vec<_> = rooms.drain(..).map(|room| receives.submit(room).unwrap()).collect();
        // Task by task, so that the connections have their turns.
        let turns = (0..TASKS).flat_map(|task| (0..CONNECTIONS).map(move |connection| (connection, task)));
        let sent: Vec<_> = turns
            .zip(sources.drain(..))
            .map(|((connection, task), mut source)| {
                source.copy_from_slice(&words(round, connection, task));
                sends.submit(&links[connection].0, source).unwrap()
            })
            .collect();
        assert_eq!(engine.in_flight().unwrap(), 2 * ALL);
        sources.extend(sent.into_iter().map(|mut task| task.wait_for(LIMIT).unwrap()));
        let mut next = vec![0; CONNECTIONS];
        for mut task in received {
            let message = task.wait_for(LIMIT).unwrap();
            let whose = names[&message.connection()];
            assert_eq!(message.buffer[..], words(round, whose, next[whose]));
            next[whose] += 1;
            rooms.push(message.buffer);
        }
        assert!(next.iter().all(|arrived| *arrived == TASKS));
    }
}
