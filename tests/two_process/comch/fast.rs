//! The fast path: bulk data into posted buffers, from other threads too.

use super::Pair;
use super::server::{BUFFERS, BULK};
use crate::counting::allocations;
use crate::process::{LIMIT, Talk};
use crate::wake::poll;
use doca::comch::{
    Client, Connection, ConnectionState, Consumer, Event, Left, Message, Producer, RemoteConsumer,
};
use doca::{Access, Code, Kind, Memory, ProgressEngine, Refusal, SharedBuffer, SharedMemory};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A fast path to the server, which sends everything back.
struct Bulk {
    client: Client,
    connection: Connection,
    memory: SharedMemory,
    consumer: Consumer,
    producer: Producer,
    to: RemoteConsumer,
}

fn open(pair: &mut Pair, name: &str) -> Bulk {
    let (client, connection) = pair.connect(name);
    let memory = Memory::zeroed(4 * BUFFERS * BULK).unwrap();
    let memory = memory.shared(&pair.device, Access::PCI_READ_WRITE).unwrap();
    let mut consumer = Consumer::configure(&connection, &memory).unwrap().here();
    consumer.set_num_tasks(BUFFERS as u32).unwrap();
    consumer.set_imm_data_len(32).unwrap();
    let consumer = consumer.start(&pair.engine).unwrap().running_within(LIMIT).unwrap();
    let producer = Producer::configure(&connection).unwrap().start(&pair.engine).unwrap();
    let producer = producer.running_within(LIMIT).unwrap();
    pair.server.say("fast path");
    let to = opened(pair, &connection);
    assert_eq!(connection.consumer(to.id()).unwrap().id(), to.id());
    Bulk { client, connection, memory, consumer, producer, to }
}

/// The server's consumer, once it told of it.
fn opened(pair: &mut Pair, connection: &Connection) -> RemoteConsumer {
    let found = connection.wait_consumer_for(&[], LIMIT);
    let line = pair.server.hear();
    let to = found.unwrap();
    assert_eq!(line, to.id().to_string());
    to
}

impl Bulk {
    /// Sends, as soon as the other side has a buffer posted.
    fn send(&self, engine: &ProgressEngine, mut buffer: SharedBuffer, immediate: &[u8]) -> SharedBuffer {
        let deadline = Instant::now() + LIMIT;
        loop {
            assert!(Instant::now() < deadline);
            match self.producer.send(&self.to, buffer, immediate) {
                Ok(mut sending) => return sending.wait_for(LIMIT).unwrap(),
                Err(failed) if failed.error.is_retryable() => buffer = failed.value,
                Err(failed) => panic!("{failed}"),
            }
            engine.progress().unwrap();
        }
    }
}

fn pattern(round: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + round * 13) as u8).collect()
}

pub fn bulk_data_come_back() {
    let mut pair = Pair::new("bulk");
    let bulk = open(&mut pair, "bulk");
    let mut spare = bulk.memory.take(BULK).unwrap();
    for (round, len) in [1, 100, 4096, BULK - 1, BULK].into_iter().cycle().take(20).enumerate() {
        let data = pattern(round, len);
        let mut receive = bulk.consumer.receive(bulk.memory.take(BULK).unwrap()).unwrap();
        spare.write(&data);
        let immediate = &data[..round.min(32).min(len)];
        spare = bulk.send(&pair.engine, spare, immediate);
        let Message { buffer, producer, immediate: got, .. } = receive.wait_for(LIMIT).unwrap();
        let mut back = vec![0; BULK];
        let read = buffer.read(&mut back);
        assert_eq!((&back[..read], &got[..]), (&data[..], immediate), "round {round}");
        assert!(producer > 0);
    }
    pair.server.say("close fast path");
    pair.server.expect("closed");
    // The server's consumer is gone, and this side was told.
    let deadline = Instant::now() + LIMIT;
    while bulk.to.is_up() {
        assert!(Instant::now() < deadline);
        pair.engine.progress().unwrap();
    }
    let gone = bulk.producer.send(&bulk.to, spare, &[]).unwrap_err();
    assert_eq!(gone.error.refusal(), Some(Refusal::NotConnected));
    bulk.consumer.stop().wait_for(LIMIT).unwrap();
    bulk.producer.stop().wait_for(LIMIT).unwrap();
    bulk.client.stop().wait_for(LIMIT).unwrap();
    pair.server.expect("a client has gone");
    pair.finish();
}

/// What ends with its connection says so, and does not blame the engine.
pub fn the_end_of_a_connection_is_told_as_such() {
    let mut pair = Pair::new("ended");
    let (_client, connection) = pair.connect("ended");
    let memory = Memory::zeroed(64).unwrap().shared(&pair.device, Access::PCI_READ_WRITE).unwrap();
    let start = || Consumer::configure(&connection, &memory).unwrap().start(&pair.engine).unwrap();
    let running = start().running_within(LIMIT).unwrap();
    pair.server.say("sleep");
    pair.server.expect("asleep");
    let starting = start();
    pair.server.say("wake");
    pair.server.say("disconnect");
    let deadline = Instant::now() + LIMIT;
    while connection.state() != ConnectionState::Disconnected {
        assert!(Instant::now() < deadline);
        pair.engine.progress().unwrap();
    }
    // It may be idle first.
    let end_of = |consumer: Consumer| match consumer.stop().wait_for(LIMIT) {
        Err(failed) => failed.error,
        Ok(mut config) => loop {
            match config.set_num_tasks(1) {
                Err(error) => break error,
                Ok(()) => assert!(Instant::now() < deadline),
            }
            pair.engine.progress().unwrap();
        },
    };
    let error = end_of(running);
    assert_eq!((error.refusal(), error.kind()), (Some(Refusal::NotConnected), Kind::Disconnected), "{error}");
    let error = match starting.running_within(LIMIT) {
        Ok(late) => end_of(late),
        Err(failed) => failed.error,
    };
    let idle = error.code() == Some(Code::INITIALIZATION);
    assert!(idle || error.refusal() == Some(Refusal::NotConnected), "{error}");
    let mut lines = [pair.server.hear(), pair.server.hear()];
    lines.sort();
    assert_eq!(lines, ["a client has gone", "disconnected"]);
    pair.finish();
}

pub fn a_producer_without_a_buffer_sleeps_until_there_is_one() {
    let mut pair = Pair::new("starved");
    let bulk = open(&mut pair, "starved");
    pair.server.say("swallow");
    pair.server.say("sleep");
    pair.server.expect("asleep");
    let mut sent = Vec::new();
    let deadline = Instant::now() + LIMIT;
    let refused = loop {
        let mut buffer = bulk.memory.take(64).unwrap();
        buffer.write(b"one of too many");
        match bulk.producer.send(&bulk.to, buffer, &[]) {
            Ok(sending) => sent.push(sending),
            // It may not have heard of all buffers yet.
            Err(_) if sent.len() < BUFFERS => {}
            Err(failed) => break failed,
        }
        assert!(Instant::now() < deadline, "{} sent", sent.len());
        pair.engine.progress().unwrap();
    };
    assert!(refused.error.is_retryable() && sent.len() == BUFFERS, "{} {}", sent.len(), refused.error);
    let mut buffer = refused.value;
    pair.server.say("wake");
    let deadline = Instant::now() + LIMIT;
    let mut last = loop {
        while pair.engine.progress().unwrap() {}
        pair.engine.arm().unwrap();
        match bulk.producer.send(&bulk.to, buffer, &[]) {
            Ok(sending) => break sending,
            Err(failed) => buffer = failed.value,
        }
        assert!(poll(&pair.engine, deadline.saturating_duration_since(Instant::now())), "not woken");
    };
    last.wait_for(LIMIT).unwrap();
    drop((bulk.consumer, bulk.producer));
    bulk.client.stop().wait_for(LIMIT).unwrap();
    pair.server.expect("a client has gone");
    pair.finish();
}

pub fn misuse_of_the_fast_path_is_refused() {
    let mut pair = Pair::new("misuse");
    let bulk = open(&mut pair, "misuse");
    let (device, consumer, producer) = (&pair.device, &bulk.consumer, &bulk.producer);
    let other = Memory::zeroed(4096).unwrap().shared(device, Access::PCI_READ_WRITE).unwrap();
    let refusal = consumer.receive(other.take(64).unwrap()).unwrap_err().error.refusal();
    assert_eq!(refusal, Some(Refusal::OtherContext), "of other memory");
    let rdma = Memory::zeroed(4096).unwrap().shared(device, Access::RDMA_READ).unwrap();
    let refusal = producer.send(&bulk.to, rdma.take(64).unwrap(), &[]).unwrap_err().error.refusal();
    assert_eq!(refusal, Some(Refusal::Permissions));
    let refusal = Consumer::configure(&bulk.connection, &rdma).unwrap_err().refusal();
    assert_eq!(refusal, Some(Refusal::Permissions));
    assert_eq!(
        producer.send_immediate(&bulk.to, &[]).unwrap_err().error.refusal(),
        Some(Refusal::OutOfRange)
    );
    // More than are configured.
    let mut posted: Vec<_> =
        (0..BUFFERS).map(|_| consumer.receive(bulk.memory.take(64).unwrap()).unwrap()).collect();
    let full = consumer.receive(bulk.memory.take(64).unwrap()).unwrap_err();
    assert!(full.error.is_retryable());
    // A consumer of another connection.
    let (second, elsewhere) = pair.connect("misuse");
    let stranger = Producer::configure(&elsewhere).unwrap().start(&pair.engine).unwrap();
    let stranger = stranger.running_within(LIMIT).unwrap();
    let refusal = stranger.send(&bulk.to, full.value, &[]).unwrap_err().error.refusal();
    assert_eq!(refusal, Some(Refusal::OtherContext));
    drop((stranger, elsewhere, second));
    // Stopping the client ends what is on its connection; what was posted comes back.
    bulk.client.stop().wait_for(LIMIT).unwrap();
    for receive in &mut posted {
        assert!(receive.wait_for(LIMIT).unwrap_err().value.is_some());
    }
    let late = consumer.receive(bulk.memory.take(64).unwrap()).unwrap_err();
    assert!(matches!(late.error.refusal(), Some(Refusal::NotConnected | Refusal::Stale)), "{late}");
    drop((bulk.consumer, bulk.producer));
    pair.server.expect_eventually("a client has gone", &pair.engine);
    pair.server.expect_eventually("a client has gone", &pair.engine);
    pair.finish();
}

pub fn seeds_run_on_other_threads() {
    const ROUNDS: usize = 50;
    let mut pair = Pair::new("threads");
    let (client, connection) = pair.connect("threads");
    let memory = Memory::zeroed(2 * BULK).unwrap().shared(&pair.device, Access::PCI_READ_WRITE).unwrap();
    let mut consumer = Consumer::configure(&connection, &memory).unwrap().here();
    consumer.set_imm_data_len(8).unwrap();
    let consumer = consumer.start(&pair.engine).unwrap().running_within(LIMIT).unwrap();
    pair.server.say("fast path");
    let to = opened(&mut pair, &connection);
    let seed = Producer::configure(&connection).unwrap();
    let done = AtomicBool::new(false);
    let outgoing = memory.take(BULK).unwrap();
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            let engine = ProgressEngine::new().unwrap();
            let producer = seed.start(&engine).unwrap().running_within(LIMIT).unwrap();
            let mut buffer = outgoing;
            for round in 0..ROUNDS {
                buffer.write(&pattern(round, 1000));
                buffer = loop {
                    match producer.send(&to, buffer, &[]) {
                        Ok(mut sending) => break sending.wait_for(LIMIT).unwrap(),
                        Err(failed) if failed.error.is_retryable() => buffer = failed.value,
                        Err(failed) => panic!("{failed}"),
                    }
                    engine.progress().unwrap();
                };
            }
            while !done.load(Ordering::Acquire) {
                engine.wait_for(Duration::from_millis(1)).unwrap();
            }
        });
        let mut buffer = memory.take(BULK).unwrap();
        for round in 0..ROUNDS {
            buffer = consumer.receive(buffer).unwrap().wait_for(LIMIT).unwrap().buffer;
            let mut back = vec![0; 1000];
            buffer.read(&mut back);
            assert_eq!(back, pattern(round, 1000));
        }
        // The producer of the other thread is counted here: its connection does not go before it.
        let stopping = client.stop();
        let Err(failed) = stopping.wait_for(Duration::from_millis(50)) else { panic!("it did not wait") };
        assert_eq!(failed.error.refusal(), Some(Refusal::TimedOut));
        // Who progresses until there is nothing to do can sleep meanwhile.
        let deadline = Instant::now() + LIMIT;
        while pair.engine.progress().unwrap() {
            assert!(Instant::now() < deadline, "there always is something to do");
        }
        done.store(true, Ordering::Release);
        let Left::Running(client) = failed.value else { panic!("{:?}", failed.value) };
        client.stop().wait_for(LIMIT).unwrap();
    });
    pair.server.expect("a client has gone");
    pair.finish();
}

/// Neither messages nor bulk data, there and back.
pub fn messages_allocate_nothing() {
    let mut pair = Pair::new("frugal");
    let bulk = open(&mut pair, "frugal");
    let mut message = Vec::new();
    let messages = allocations(|| {
        bulk.connection.send_parts(&[b"head", &[7; 1000]]).unwrap();
        let deadline = Instant::now() + LIMIT;
        while !bulk.connection.try_receive(&mut message) {
            assert!(Instant::now() < deadline);
            pair.engine.progress().unwrap();
        }
        bulk.connection.wait_sent_for(LIMIT).unwrap();
    });
    assert_eq!((messages, message.len()), (0, 1004), "allocations for messages");
    let mut buffers = Some((bulk.memory.take(BULK).unwrap(), bulk.memory.take(BULK).unwrap()));
    let transfers = allocations(|| {
        let (room, mut data) = buffers.take().unwrap();
        let mut receive = bulk.consumer.receive(room).unwrap();
        data.write(b"data");
        let data = bulk.send(&pair.engine, data, b"beside");
        let came = receive.wait_for(LIMIT).unwrap();
        assert_eq!(came.immediate[..], b"beside"[..]);
        buffers = Some((came.buffer, data));
    });
    assert_eq!(transfers, 0, "allocations for bulk data");
    drop((bulk.consumer, bulk.producer));
    bulk.client.stop().wait_for(LIMIT).unwrap();
    pair.server.expect("a client has gone");
    pair.finish();
}

pub fn consumers_come_and_go() {
    let mut pair = Pair::new("visits");
    let bulk = open(&mut pair, "visits");
    let mut events = bulk.client.events();
    pair.server.say("close fast path");
    pair.server.expect("closed");
    let deadline = Instant::now() + LIMIT;
    let down = loop {
        assert!(Instant::now() < deadline);
        pair.engine.progress().unwrap();
        match events.next() {
            Some(Event::ConsumerDown(consumer)) => break consumer,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    };
    assert_eq!((down.id(), down.is_up(), down.connection()), (bulk.to.id(), false, bulk.connection.id()));
    assert!(bulk.connection.consumers().is_empty());
    drop((bulk.consumer, bulk.producer));
    bulk.client.stop().wait_for(LIMIT).unwrap();
    pair.server.expect("a client has gone");
    pair.finish();
}
