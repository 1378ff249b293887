//! Two connected contexts in one process, for tests that need no second one.

// Each test file uses a part.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod drops;
pub mod peers;

use doca::rdma::{
    Address, Config, Connection, Exported, Key, Queue, Rdma, ReceiveTask, SendTask, Starting, caps,
};
use doca::{Buffer, Device, Memory, PrivateMemory, ProgressEngine};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Tasks of each kind that each side can have in flight.
pub const TASKS: usize = 8;

/// Longer than anything in these tests takes.
pub const LIMIT: Duration = Duration::from_secs(10);

/// Able devices, in DOCA's order.
fn devices() -> Vec<doca::DeviceInfo> {
    log::install();
    Device::find().with(caps::SEND).with(caps::RECEIVE).list().unwrap()
}

/// The device that tests use.
pub fn device() -> Device {
    devices()[0].open().unwrap()
}

/// Another device.
pub fn other_device() -> Device {
    devices()[1].open().unwrap()
}

/// An address at which a listener of [`device`] is reached.
pub fn address(port: u16) -> Address {
    let ip = device().info().ipv4_address().unwrap().expect("the first device has an IPv4 address");
    Address::from(std::net::SocketAddr::from((ip, port)))
}

/// A port that no other test of this process uses, and tests of other processes hardly.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 20_000 + (std::process::id() % 40) as u16 * 1000;
    base + NEXT.fetch_add(1, Ordering::Relaxed) % 1000
}

/// Runs one test of a file again in a process of its own.
pub fn again(test: &str, variables: &[(&str, &str)]) -> std::process::Output {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).envs(variables.iter().copied()).output().unwrap()
}

/// Tests of both transports, in modules of their names: each is a function that is told which.
#[allow(unused_macros, reason = "each test file uses a part")]
macro_rules! over_each_transport {
    ($($test:ident;)*) => {
        $crate::support::over_each_transport! { rc, RC: $($test;)* }
        $crate::support::over_each_transport! { dc, DC: $($test;)* }
    };
    ($module:ident, $transport:ident: $($test:ident;)*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test(doca::rdma::TransportType::$transport);
            })*
        }
    };
}
#[allow(unused_imports, reason = "each test file uses a part")]
pub(crate) use over_each_transport;

/// Progresses until `done`.
///
/// # Panics
///
/// After [`LIMIT`].
pub fn until(engine: &ProgressEngine, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "did not happen within {LIMIT:?}");
        engine.progress().unwrap();
    }
}

/// Waits until the thread with this number sleeps in the kernel.
///
/// # Panics
///
/// After [`LIMIT`].
pub fn until_asleep(thread: i32) {
    let deadline = Instant::now() + LIMIT;
    // The state is the field behind the name, which is in parentheses.
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    while state() != Some('S') {
        assert!(Instant::now() < deadline, "did not sleep within {LIMIT:?}");
        std::thread::yield_now();
    }
}

/// Lets a context run that has no peer: connected with itself, for releases in which only a connected one runs.
pub fn alone(starting: Starting) -> (Rdma, Connection) {
    let (exported, descriptor) = starting.export().unwrap();
    let connection = exported.connect(descriptor).unwrap();
    (starting.running_within(LIMIT).unwrap(), connection)
}

/// One context with its queues and its connection to the other.
pub struct Side {
    pub rdma: Rdma,
    pub sends: Queue<SendTask>,
    pub receives: Queue<ReceiveTask>,
    pub connection: Connection,
    keys: Keys,
}

type Keys = (Key<SendTask>, Key<ReceiveTask>);

impl Side {
    /// Sends and forgets the handle.
    pub fn send(&self, buffer: Buffer) {
        drop(self.sends.submit(&self.connection, buffer).unwrap());
    }
}

/// Two contexts, connected with each other, on one engine.
pub struct Pair {
    pub engine: ProgressEngine,
    pub memory: PrivateMemory,
    pub left: Side,
    pub right: Side,
}

/// Two sides whose engine is somebody else's.
pub struct Sides {
    pub left: Side,
    pub right: Side,
}

fn configure(device: &Device) -> (Config, Keys) {
    let mut config = Rdma::configure(device).unwrap();
    config.set_gid_roce_v2().unwrap();
    config.set_max_num_connections(8).unwrap();
    // A busy machine is no reason to give up.
    config.set_rnr_retry_count(7).unwrap();
    let keys = (config.enable(TASKS as u32).unwrap(), config.enable(TASKS as u32).unwrap());
    (config, keys)
}

fn connect(engine: &ProgressEngine, sides: [(Config, Keys); 2]) -> Sides {
    let [left, right] = sides.map(|(config, keys)| {
        let starting = config.start(engine).unwrap();
        let (exported, descriptor) = starting.export().unwrap();
        (starting, keys, exported, descriptor)
    });
    let (to_left, to_right) = (left.3, right.3);
    let side = |starting: Starting, keys: Keys, exported: Exported, to_peer| {
        let connection = exported.connect(to_peer).unwrap();
        let rdma = starting.running().unwrap();
        Side {
            sends: rdma.queue(keys.0).unwrap(),
            receives: rdma.queue(keys.1).unwrap(),
            rdma,
            connection,
            keys,
        }
    };
    Sides { left: side(left.0, left.1, left.2, to_right), right: side(right.0, right.1, right.2, to_left) }
}

impl Pair {
    pub fn new() -> Self {
        let device = device();
        let engine = ProgressEngine::new().unwrap();
        let memory = Memory::zeroed(1 << 16).unwrap().private(&device).unwrap();
        let Sides { left, right } = connect(&engine, [configure(&device), configure(&device)]);
        Pair { engine, memory, left, right }
    }

    /// Two more sides on an engine that is there.
    pub fn on(engine: &ProgressEngine) -> Sides {
        let device = device();
        connect(engine, [configure(&device), configure(&device)])
    }

    /// Stops both sides, and starts and connects them again.
    pub fn restart(self) -> Self {
        let Pair { engine, memory, left, right } = self;
        let stopped = [left, right].map(|side| {
            let Side { rdma, keys, .. } = side;
            (rdma.stop().wait_for(LIMIT).unwrap(), keys)
        });
        let Sides { left, right } = connect(&engine, stopped);
        Pair { engine, memory, left, right }
    }

    /// A buffer with this message.
    pub fn message(&self, text: &[u8]) -> Buffer {
        let mut buffer = self.memory.take(text.len()).unwrap();
        buffer.copy_from_slice(text);
        buffer
    }

    /// Sends a message from left to right and back, and compares.
    pub fn exchange(&mut self, text: &[u8]) {
        let pass = |from: &Side, to: &Side, buffer: Buffer| {
            let mut receive = to.receives.submit(self.memory.take(text.len() + 1).unwrap()).unwrap();
            from.sends.submit(&from.connection, buffer).unwrap().wait_for(LIMIT).unwrap();
            receive.wait_for(LIMIT).unwrap().buffer
        };
        let there = pass(&self.left, &self.right, self.message(text));
        assert_eq!(&there[..], text);
        let back = pass(&self.right, &self.left, there);
        assert_eq!(&back[..], text);
    }
}

/// What these crates and DOCA log while tests run, by thread.
pub mod log {
    use std::cell::RefCell;

    thread_local! {
        static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    struct Collect;

    impl log::Log for Collect {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            if record.level() <= log::Level::Warn {
                WARNINGS.with_borrow_mut(|warnings| warnings.push(record.args().to_string()));
            }
        }

        fn flush(&self) {}
    }

    pub fn install() {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            log::set_boxed_logger(Box::new(Collect)).unwrap();
            log::set_max_level(log::LevelFilter::Warn);
        });
    }

    /// Warnings of this thread since the last time.
    pub fn warnings() -> Vec<String> {
        WARNINGS.take()
    }
}
