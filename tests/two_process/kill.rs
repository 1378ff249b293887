//! Peers that are killed by SIGKILL, at random points and inside submit and progress.
//!
//! `DOCA_SIM_KILL_AT=N` ends a process where it passes its Nth place between which shared memory is half-changed. The
//! other half of the peers is killed from outside, after a number of messages.

use crate::process::{LIMIT, Parent, Peer, Talk};
use crate::random::Random;
use crate::side::{Side, Started};
use doca::rdma::{Connection, Decision, Pending, ReceiveTask, SendTask};
use doca::{Buffer, Code, Device, Kind};
use std::any::Any;
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ROUNDS: u64 = 200;
const TASKS: usize = 8;
const SIZE: usize = 64;
const PORT: u16 = 13579;

/// Within this the survivor hears of a death over RDMA CM.
const NOTICE: Duration = Duration::from_secs(1);
/// Within this its sends fail: the default topology's second, and time to look.
const TRANSPORT_TIMEOUT: Duration = Duration::from_millis(1500);

type Sending = Pending<SendTask, Buffer>;
type Receiving = Pending<ReceiveTask, Buffer>;

/// `DOCA_TEST_SEED=N` repeats a run.
pub fn seed() -> u64 {
    let fixed =
        std::env::var("DOCA_TEST_SEED").ok().map(|text| text.parse().expect("DOCA_TEST_SEED is a number"));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    let seed = fixed.unwrap_or_else(now);
    println!("DOCA_TEST_SEED={seed}");
    seed
}

pub fn peers_killed_over_cm() {
    let mut survivor = Peer::start("survivor", &[&seed().to_string(), "cm", &ROUNDS.to_string()]);
    println!("{}", survivor.hear_for(Duration::from_secs(120)));
    survivor.finish();
    nothing_is_left();
}

pub fn peers_killed_over_descriptors() {
    let mut survivor = Peer::start("survivor", &[&seed().to_string(), "descriptors", "12"]);
    println!("{}", survivor.hear_for(Duration::from_secs(120)));
    survivor.finish();
    nothing_is_left();
}

/// After all the deaths and the survivor's end, one who comes anew finds an empty network and leaves one.
pub fn nothing_is_left() {
    let mut newcomer = Peer::start("newcomer", &[]);
    newcomer.expect("here");
    let mine = format!("adapter-{}-", newcomer.id());
    let strangers: Vec<_> = network().into_iter().filter(|name| !name.starts_with(&mine)).collect();
    assert!(strangers.is_empty(), "left behind: {strangers:?}");
    newcomer.say("end");
    newcomer.finish();
    assert_eq!(network(), Vec::<String>::new(), "left behind by one who ended well");
}

fn network() -> Vec<String> {
    let dir = std::env::var_os("DOCA_SIM_DIR").expect("each test has a network directory");
    let entries = std::fs::read_dir(dir).expect("there is a network");
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

pub fn newcomer(parent: &mut Parent, _: &[String]) {
    let (side, connection) = Side::alone("mlx5_0", 1, 2 * SIZE);
    let mut receive = side.receives.submit(side.memory.take(SIZE).unwrap()).unwrap();
    side.sends.submit(&connection, side.memory.take(SIZE).unwrap()).unwrap().wait_for(LIMIT).unwrap();
    receive.wait_for(LIMIT).unwrap();
    parent.say("here");
    parent.expect("end");
    side.close();
}

/// Messages in both directions, each side counting its own.
struct Traffic<'a> {
    side: &'a Side,
    connection: &'a Connection,
    sends: VecDeque<Sending>,
    receives: VecDeque<Receiving>,
    sent: u64,
    received: u64,
}

impl<'a> Traffic<'a> {
    fn new(side: &'a Side, connection: &'a Connection) -> Self {
        let receive = |_| side.receives.submit(side.memory.take(SIZE).unwrap()).unwrap();
        let receives = (0..TASKS).map(receive).collect();
        Traffic { side, connection, sends: VecDeque::new(), receives, sent: 0, received: 0 }
    }

    /// Takes what is done, and keeps both queues full. False once something failed: the other side is gone.
    fn turn(&mut self) -> bool {
        self.side.engine.progress().unwrap();
        while self.sends.front().is_some_and(Pending::is_done) {
            match self.sends.pop_front().expect("looked at").wait() {
                Ok(buffer) => drop(buffer),
                Err(_) => return false,
            }
        }
        while self.receives.front().is_some_and(Pending::is_done) {
            let Ok(message) = self.receives.pop_front().expect("looked at").wait() else { return false };
            assert_eq!(message.buffer[..8], self.received.to_le_bytes(), "messages come in order");
            assert!(message.buffer[8..].iter().all(|byte| u64::from(*byte) == self.received & 0xff));
            self.received += 1;
            self.receives.push_back(self.side.receives.submit(message.buffer).unwrap());
        }
        while self.sends.len() < TASKS {
            let mut message = self.side.memory.take(SIZE).unwrap();
            message.fill(self.sent as u8);
            message[..8].copy_from_slice(&self.sent.to_le_bytes());
            match self.side.sends.submit(self.connection, message) {
                Ok(send) => self.sends.push_back(send),
                Err(_) => return false,
            }
            self.sent += 1;
        }
        true
    }
}

fn new_side(device: &str) -> Started {
    // Room for messages whose buffers are in flight, given back, and being filled.
    Side::start(device, TASKS as u32, 4 * TASKS * SIZE)
}

/// Connects to the survivor, and talks until it is killed.
pub fn victim(parent: &mut Parent, _: &[String]) {
    let started = new_side("mlx5_1");
    let address = Device::open("mlx5_0").unwrap().info().ipv4_address().unwrap().unwrap();
    let address = std::net::SocketAddr::from((address, PORT));
    let connection = started.starting.connect_addr(address).unwrap().wait_for(LIMIT).unwrap();
    parent.say("connected");
    talk(&started.running(), &connection);
}

/// The same with descriptors.
pub fn descriptor_victim(parent: &mut Parent, _: &[String]) {
    let (side, connection) = new_side("mlx5_1").connect(parent);
    talk(&side, &connection);
}

fn talk(side: &Side, connection: &Connection) {
    let mut traffic = Traffic::new(side, connection);
    // The survivor goes only after this process: what fails here is a fault, unless death comes first.
    while traffic.turn() {}
    panic!("the survivor failed after {} messages", traffic.received);
}

/// What becomes of all peers.
#[derive(Default)]
struct Tally {
    inside: u64,
    outside: u64,
    before_connecting: u64,
    messages: u64,
    slowest_notice: Duration,
}

pub fn survivor(parent: &mut Parent, args: &[String]) {
    let (seed, over_cm, rounds): (u64, bool, u64) =
        (args[0].parse().unwrap(), args[1] == "cm", args[2].parse().unwrap());
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    // What a process keeps for good, it has after the first round.
    round(&mut random, &mut tally, over_cm, 0);
    let before = open_files();
    for number in 1..rounds {
        round(&mut random, &mut tally, over_cm, number);
    }
    let after = open_files();
    assert!(after.len() == before.len(), "descriptors are left behind: {after:#?}\nat first {before:#?}");
    let connected = rounds - tally.before_connecting;
    assert!(connected * 10 >= rounds * 9, "only {connected} of {rounds} peers lived to be connected");
    assert!(tally.messages > rounds, "only {} messages", tally.messages);
    parent.say(&format!(
        "{} killed inside submit or progress, {} from outside, {} before they were connected; {} messages; \
         noticed within {:?}",
        tally.inside, tally.outside, tally.before_connecting, tally.messages, tally.slowest_notice
    ));
}

/// What each open descriptor of this process is, that of the list among them.
pub fn open_files() -> Vec<String> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let file = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_link(entry.unwrap().path()).ok();
    let mut open: Vec<_> = open.filter_map(file).map(|file| file.to_string_lossy().into_owned()).collect();
    open.sort();
    open
}

/// One peer comes, talks, is killed; one context outlives it.
fn round(random: &mut Random, tally: &mut Tally, over_cm: bool, number: u64) {
    let inside = number.is_multiple_of(2);
    let kill_at = random.within(20..3000).to_string();
    let kill_after = random.within(0..400);
    let role = if over_cm { "victim" } else { "descriptor victim" };
    let variables = [("DOCA_SIM_KILL_AT", kill_at.as_str())];

    let started = new_side("mlx5_0");
    let listener = over_cm.then(|| started.starting.listen(PORT, |_| Decision::accept()).unwrap());
    let mut peer = Peer::start_with(role, &[], if inside { &variables } else { &[] });
    let connected = match &listener {
        Some(listener) => {
            let deadline = Instant::now() + LIMIT;
            let connection = loop {
                started.engine.progress().unwrap();
                if let Some(connection) = listener.try_accept() {
                    break Some(connection);
                }
                if peer.has_ended() {
                    // It may have come as far as to be connected.
                    break listener.wait_for(Duration::from_millis(20)).ok();
                }
                assert!(Instant::now() < deadline, "the peer neither connects nor dies");
            };
            connection.map(|connection| (started.running(), connection))
        }
        None => Some(started.connect(&mut peer)),
    };
    *(if inside { &mut tally.inside } else { &mut tally.outside }) += 1;
    let Some((side, connection)) = connected else {
        tally.before_connecting += 1;
        peer.kill();
        return;
    };

    let mut traffic = Traffic::new(&side, &connection);
    let deadline = Instant::now() + LIMIT;
    while traffic.turn() && !peer.has_ended() {
        assert!(Instant::now() < deadline, "the peer lives after {} messages", traffic.received);
        if !inside && traffic.received >= kill_after {
            break;
        }
    }
    if !inside {
        peer.kill();
    }
    while !peer.has_ended() {
        assert!(Instant::now() < deadline, "sends fail although the peer lives");
    }
    let died = Instant::now();
    let Traffic { mut sends, receives, received, .. } = traffic;
    tally.messages += received;

    if over_cm {
        let told = connection.wait_disconnected_for(NOTICE);
        told.unwrap_or_else(|error| panic!("round {number}: {error}"));
        tally.slowest_notice = tally.slowest_notice.max(died.elapsed());
    }
    while let Some(mut send) = sends.pop_front() {
        let left = TRANSPORT_TIMEOUT.saturating_sub(died.elapsed());
        match send.wait_for(left) {
            Ok(_) => {}
            Err(failed) => {
                assert_eq!(failed.error.code(), Some(Code::IO_FAILED), "round {number}: {}", failed.error);
                assert_eq!(failed.value.expect("the buffer comes back").len(), SIZE);
            }
        }
    }
    end(random, side, connection, listener, receives);
}

/// Posted receives stay until the context stops, which gives them back; then all goes in some order.
fn end(
    random: &mut Random,
    side: Side,
    connection: Connection,
    listener: Option<doca::rdma::Listener>,
    receives: VecDeque<Receiving>,
) {
    // What had arrived, or was arriving when the peer died, is taken first.
    while side.engine.progress().unwrap() {}
    let (arrived, mut posted): (Vec<_>, Vec<_>) = receives.into_iter().partition(Pending::is_done);
    assert_eq!(side.engine.in_flight().unwrap(), posted.len(), "posted receives stay posted");
    drop(arrived);
    let Side { memory, sends, receives, rdma, engine } = side;
    let stopped = rdma.stop().wait_for(LIMIT).unwrap();
    for receive in &mut posted {
        let failed = receive.wait_for(LIMIT).unwrap_err();
        assert!(failed.error.kind() == Kind::Io && failed.value.is_some(), "{}", failed.error);
    }
    drop(posted);
    assert_eq!(memory.take(memory.len()).unwrap().len(), memory.len(), "every buffer is back");
    let mut things: Vec<Box<dyn Any>> = vec![
        Box::new(memory),
        Box::new(sends),
        Box::new(receives),
        Box::new(stopped),
        Box::new(engine),
        Box::new(connection),
        Box::new(listener),
    ];
    random.shuffle(&mut things);
    things.into_iter().for_each(drop);
}
