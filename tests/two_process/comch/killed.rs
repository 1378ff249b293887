//! Peers that are killed by SIGKILL while both sides fill each other's buffers: at random points from outside, and inside
//! submit and progress.
//!
//! `DOCA_SIM_KILL_AT=N` ends a process where it passes its Nth place between which shared memory is half-changed.

use super::{FUNCTION, ON_DPU};
use crate::kill::{nothing_is_left, open_files, seed};
use crate::process::{LIMIT, Parent, Peer, Talk};
use crate::random::Random;
use doca::comch::{
    Client, Config, Connection, ConnectionState, Consumer, Left, Message, Pending, Producer, RemoteConsumer,
    Server, Starting,
};
use doca::{Access, Code, Device, Kind, Memory, ProgressEngine, Refusal, SharedBuffer, SharedMemory};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const NAME: &str = "killed";
const ROUNDS: u64 = 40;
const BUFFERS: usize = 4;
const SIZE: usize = 4096;
/// Messages to the dead fail after some milliseconds, and so do clients without a server: many are to die.
const DEATH: &str = r#"{"extends": "default", "timeouts": {"comch_death_ms": 50, "comch_connect_ms": 5}}"#;

const ON_HOST: (&str, &str) = ("DOCA_SIM_SIDE", "host");

/// A server outlives its clients.
pub fn clients_are_killed_in_copies() {
    outlive("server");
}

/// A client, each time connecting anew, outlives its servers.
pub fn servers_are_killed_in_copies() {
    outlive("client");
}

fn outlive(end: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let topology = scratch.path().join("topology.json");
    std::fs::write(&topology, DEATH).unwrap();
    let topology = ("DOCA_SIM_TOPOLOGY", topology.to_str().unwrap());
    let side = if end == "server" { ON_DPU } else { ON_HOST };
    let args = [end, &seed().to_string(), &ROUNDS.to_string()];
    let mut survivor = Peer::start_with("comch survivor", &args, &[side, topology]);
    println!("{}", survivor.hear_for(Duration::from_secs(300)));
    survivor.finish();
    nothing_is_left();
}

/// Progresses until something is there, or the peer has ended; then as long as it may still have been on its way.
fn unless_ended<T>(
    engine: &ProgressEngine,
    peer: &mut Peer,
    mut take: impl FnMut() -> Option<T>,
) -> Option<T> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let ended = peer.has_ended();
        while engine.progress().unwrap() {}
        if let Some(found) = take() {
            return Some(found);
        }
        if ended {
            return None;
        }
        assert!(Instant::now() < deadline, "the peer neither comes so far nor dies");
        std::thread::yield_now();
    }
}

/// A consumer and a producer of one connection, and what is on its way. Messages are numbered in each direction.
struct Lane {
    memory: SharedMemory,
    consumer: Consumer,
    producer: Producer,
    to: RemoteConsumer,
    posted: VecDeque<Pending<Consumer, SharedBuffer>>,
    sending: VecDeque<Pending<Producer, SharedBuffer>>,
    spare: Vec<SharedBuffer>,
    sent: u64,
    received: u64,
}

/// How a turn went.
#[derive(PartialEq, Eq)]
enum Turn {
    Fine,
    /// Something failed, as it does when the peer is gone.
    Over,
}

fn content(number: u64) -> Vec<u8> {
    let len = 8 + (number * 977) as usize % (SIZE - 8);
    let mut bytes = vec![number as u8; len];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

impl Lane {
    /// None if the peer dies before it is open.
    fn open(
        engine: &ProgressEngine,
        device: &Device,
        connection: &Connection,
        peer: &mut Option<&mut Peer>,
    ) -> Option<Lane> {
        let memory = Memory::zeroed(2 * BUFFERS * SIZE).unwrap();
        let memory = memory.shared(device, Access::PCI_READ_WRITE).unwrap();
        let mut consumer = Consumer::configure(connection, &memory).ok()?.here();
        consumer.set_num_tasks(BUFFERS as u32).unwrap();
        let mut left = Some(Left::Starting(consumer.start(engine).ok()?));
        let consumer = wait(engine, peer, || match left.take().map(Left::now) {
            Some(Left::Running(consumer)) => Some(Some(consumer)),
            Some(Left::Config(_)) => Some(None),
            other => {
                left = other;
                None
            }
        })??;
        drop(left);
        let producer =
            Producer::configure(connection).ok()?.start(engine).ok()?.running_within(LIMIT).ok()?;
        let posted = (0..BUFFERS).map(|_| consumer.receive(memory.take(SIZE).unwrap()).unwrap()).collect();
        let to = wait(engine, peer, || connection.consumers().pop())?;
        let spare = (0..BUFFERS).map(|_| memory.take(SIZE).unwrap()).collect();
        let sending = VecDeque::new();
        Some(Lane { memory, consumer, producer, to, posted, sending, spare, sent: 0, received: 0 })
    }

    /// Takes what is done and sends what can be sent.
    fn turn(&mut self, engine: &ProgressEngine) -> Turn {
        engine.progress().unwrap();
        while self.posted.front().is_some_and(Pending::is_done) {
            let Ok(message) = self.posted.pop_front().expect("looked at").wait() else { return Turn::Over };
            let buffer = self.check(message);
            match self.consumer.receive(buffer) {
                Ok(posted) => self.posted.push_back(posted),
                Err(_) => return Turn::Over,
            }
        }
        while self.sending.front().is_some_and(Pending::is_done) {
            match self.sending.pop_front().expect("looked at").wait() {
                Ok(buffer) => self.spare.push(buffer),
                Err(_) => return Turn::Over,
            }
        }
        while let Some(mut buffer) = self.spare.pop() {
            buffer.write(&content(self.sent));
            match self.producer.send(&self.to, buffer, &[]) {
                Ok(sending) => self.sending.push_back(sending),
                Err(failed) if failed.error.is_retryable() => {
                    self.spare.push(failed.value);
                    break;
                }
                Err(_) => return Turn::Over,
            }
            self.sent += 1;
        }
        Turn::Fine
    }

    fn check(&mut self, message: Message<SharedBuffer>) -> SharedBuffer {
        let mut back = vec![0; SIZE];
        let len = message.buffer.read(&mut back);
        assert_eq!(back[..len], content(self.received), "message {}", self.received);
        self.received += 1;
        message.buffer
    }

    /// The peer is dead: what was on its way ends as it must, and everything comes back.
    fn end(mut self, engine: &ProgressEngine) {
        let deadline = Instant::now() + LIMIT;
        for mut send in self.sending.drain(..) {
            // It was there before the death, or fails after some time.
            if let Err(failed) = send.wait_for(deadline - Instant::now()) {
                // Memory that went while bytes were on their way to it is an error of its own.
                let told = matches!(failed.error.code(), Some(Code::CONNECTION_ABORTED | Code::IO_FAILED));
                assert!(told && failed.value.is_some(), "{}", failed.error);
            }
        }
        while engine.progress().unwrap() {}
        // What came before the death is whole; a buffer that the dead one was filling is not given for one that came.
        while self.posted.front().is_some_and(Pending::is_done) {
            match self.posted.pop_front().expect("looked at").wait() {
                Ok(message) => drop(self.check(message)),
                Err(failed) => {
                    let broken =
                        matches!(failed.error.code(), Some(Code::CONNECTION_ABORTED | Code::IO_FAILED));
                    assert!(broken && failed.value.is_some(), "{}", failed.error);
                }
            }
        }
        let Lane { memory, consumer, producer, posted, .. } = self;
        // Under some profiles the connection is over by now, and they have gone with it.
        let ended = [
            consumer.stop().wait_for(LIMIT).err().map(|failed| failed.error),
            producer.stop().wait_for(LIMIT).err().map(|failed| failed.error),
        ];
        for error in ended.into_iter().flatten() {
            assert_eq!(error.refusal(), Some(Refusal::NotConnected), "{error}");
        }
        for mut receive in posted {
            let Err(failed) = receive.wait_for(LIMIT) else { panic!("a message of the dead") };
            assert!(matches!(failed.error.kind(), Kind::Io | Kind::Disconnected), "{}", failed.error);
        }
        drop((self.spare, self.to));
        assert_eq!(memory.take(memory.len()).unwrap().len(), memory.len(), "every buffer is back");
    }
}

/// As [`unless_ended`] beside a peer, else for as long as it takes.
fn wait<T>(
    engine: &ProgressEngine,
    peer: &mut Option<&mut Peer>,
    mut take: impl FnMut() -> Option<T>,
) -> Option<T> {
    if let Some(peer) = peer {
        return unless_ended(engine, peer, take);
    }
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = take() {
            return Some(found);
        }
        assert!(Instant::now() < deadline);
        engine.progress().unwrap();
    }
}

/// The role of those who die: an end that talks until it is killed.
pub fn victim(_: &mut Parent, args: &[String]) {
    let engine = ProgressEngine::new().unwrap();
    let device = Device::open("mlx5_0").unwrap();
    let (_keeps, connection): (Box<dyn std::any::Any>, Connection) = match args[0].as_str() {
        "client" => {
            let client = start_client(&engine, &device, Client::configure(&device, NAME).unwrap());
            let connection = client.connection().unwrap();
            (Box::new(client), connection)
        }
        _ => {
            let server = start_server(&engine, &device);
            let connection = server.wait_for(LIMIT).unwrap();
            (Box::new(server), connection)
        }
    };
    let mut lane = Lane::open(&engine, &device, &connection, &mut None).expect("the survivor lives");
    while lane.turn(&engine) == Turn::Fine {}
    panic!("the survivor failed after {} messages", lane.received);
}

fn start_server(engine: &ProgressEngine, device: &Device) -> Server {
    let representor = device.representor(FUNCTION).unwrap();
    let config = Server::configure(device, &representor, NAME).unwrap();
    config.start(engine).unwrap().running_within(LIMIT).unwrap()
}

fn start_client(engine: &ProgressEngine, _: &Device, config: Config<Client>) -> Client {
    config.start(engine).and_then(|starting: Starting<Client>| starting.running_within(LIMIT)).unwrap()
}

/// What became of all.
#[derive(Default)]
struct Tally {
    early: u64,
    messages: u64,
}

/// The role of the one that outlives them.
pub fn survivor(parent: &mut Parent, args: &[String]) {
    let (is_server, rounds) = (args[0] == "server", args[2].parse().unwrap());
    let mut random = Random::new(args[1].parse().unwrap());
    let mut tally = Tally::default();
    let engine = ProgressEngine::new().unwrap();
    // What sleeping opens: whether a wait sleeps, and when for the first time, is chance.
    engine.notification_handle().unwrap();
    engine.arm().unwrap();
    let device = Device::open("mlx5_0").unwrap();
    let server = is_server.then(|| start_server(&engine, &device));
    let mut before = Vec::new();
    for number in 0..rounds {
        match &server {
            Some(server) => client_dies(&engine, &device, server, &mut random, &mut tally, number),
            None => server_dies(&engine, &device, &mut random, &mut tally, number),
        }
        // What a process keeps for good, it has after the first rounds.
        if number == 1 {
            before = open_files();
        }
    }
    let after = open_files();
    assert!(after.len() <= before.len(), "descriptors are left behind: {after:#?}\nat first {before:#?}");
    assert!(tally.early * 2 < rounds, "{} of {rounds} died before their fast path was open", tally.early);
    assert!(tally.messages > rounds, "only {} messages", tally.messages);
    if let Some(server) = server {
        server.stop().wait_for(LIMIT).unwrap();
    }
    parent.say(&format!(
        "{rounds} killed, half of them inside submit or progress, {} of all before their fast path was open; {} messages",
        tally.early, tally.messages
    ));
}

/// One who will be killed: inside after so many points, or after so many messages from outside.
fn start_victim(end: &str, side: (&str, &str), random: &mut Random, number: u64) -> (Peer, Option<u64>) {
    let kill_at = random.within(20..900).to_string();
    let kill_after = random.within(0..80);
    let inside = number.is_multiple_of(2);
    let variables = [side, ("DOCA_SIM_KILL_AT", kill_at.as_str())];
    let variables = if inside { &variables[..] } else { &variables[..1] };
    (Peer::start_with("comch killed", &[end], variables), (!inside).then_some(kill_after))
}

fn client_dies(
    engine: &ProgressEngine,
    device: &Device,
    server: &Server,
    random: &mut Random,
    tally: &mut Tally,
    number: u64,
) {
    let (mut peer, kill_after) = start_victim("client", ON_HOST, random, number);
    let connection = unless_ended(engine, &mut peer, || server.try_accept());
    outlive_one(engine, device, connection, peer, kill_after, tally);
}

fn server_dies(
    engine: &ProgressEngine,
    device: &Device,
    random: &mut Random,
    tally: &mut Tally,
    number: u64,
) {
    let (mut peer, kill_after) = start_victim("server", ON_DPU, random, number);
    // There is a server of that name only after a while, or never.
    let mut config = Some(Client::configure(device, NAME).unwrap());
    let mut left = None;
    let client = unless_ended(engine, &mut peer, || {
        if let Some(config) = config.take() {
            left = Some(Left::Starting(config.start(engine).unwrap()));
        }
        match left.take().map(Left::now) {
            Some(Left::Running(client)) => return Some(client),
            Some(Left::Config(idle)) => config = Some(idle),
            other => left = other,
        }
        None
    });
    drop((config, left));
    let connection = client.as_ref().map(|client| client.connection().unwrap());
    outlive_one(engine, device, connection, peer, kill_after, tally);
    drop(client);
    while engine.progress().unwrap() {}
}

/// Talks to one until it is dead, and looks at what that leaves.
fn outlive_one(
    engine: &ProgressEngine,
    device: &Device,
    connection: Option<Connection>,
    mut peer: Peer,
    kill_after: Option<u64>,
    tally: &mut Tally,
) {
    let lane = connection
        .as_ref()
        .and_then(|connection| Lane::open(engine, device, connection, &mut Some(&mut peer)));
    let deadline = Instant::now() + LIMIT;
    match lane {
        None => tally.early += 1,
        Some(mut lane) => {
            while !peer.has_ended() && kill_after.is_none_or(|after| lane.received < after) {
                assert!(Instant::now() < deadline, "the peer lives after {} messages", lane.received);
                if lane.turn(engine) == Turn::Over {
                    while !peer.has_ended() {
                        assert!(Instant::now() < deadline, "messages fail although the peer lives");
                    }
                }
            }
            peer.kill();
            tally.messages += lane.received;
            lane.end(engine);
        }
    }
    peer.kill();
    let Some(connection) = connection else { return };
    // Nobody tells of a death before a message was tried, and that one fails.
    let tried = connection.send(b"anybody there?");
    connection.wait_disconnected_for(LIMIT).unwrap();
    assert_eq!(connection.state(), ConnectionState::Disconnected);
    if tried.is_ok() {
        assert_eq!(connection.wait_sent_for(LIMIT).unwrap_err().kind(), Kind::Disconnected);
    }
}
