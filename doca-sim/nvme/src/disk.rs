//! The disk as its owner has it: configuration, thread, faults.

use crate::controller::Controller;
use crate::faults::Faults;
use crate::media::Namespace;
use crate::raw::{Bar, Map};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a disk is made of.
#[derive(Debug)]
pub struct Config {
    /// Serial number, at most 20 printable characters.
    pub serial: String,
    /// Model number, at most 40 printable characters.
    pub model: String,
    /// Entries of an I/O queue at most (CAP.MQES + 1), 2 to 65536.
    pub max_queue_entries: u32,
    /// I/O queue pairs at most, up to 511.
    pub max_queues: u16,
    /// Largest transfer (MDTS) as a power of two of 4096 bytes; 0 is no limit.
    pub mdts: u8,
    /// Namespaces: the first is NSID 1.
    pub namespaces: Vec<Namespace>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            serial: "SIM0001".to_owned(),
            model: "Simulated NVMe disk".to_owned(),
            max_queue_entries: 1024,
            max_queues: 64,
            mdts: 5,
            namespaces: Vec::new(),
        }
    }
}

impl Config {
    /// Adds a namespace.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespaces.push(namespace);
        self
    }

    fn check(&self) -> io::Result<()> {
        let printable = |text: &str| text.bytes().all(|byte| (0x20..0x7F).contains(&byte));
        let why = if self.serial.len() > 20 || !printable(&self.serial) {
            "the serial number is not 20 printable characters at most"
        } else if self.model.len() > 40 || !printable(&self.model) {
            "the model number is not 40 printable characters at most"
        } else if !(2..=65536).contains(&self.max_queue_entries) {
            "a queue has 2 to 65536 entries"
        } else if !(1..=511).contains(&self.max_queues) {
            "there are 1 to 511 I/O queues"
        } else if self.namespaces.len() > 1024 {
            "there are at most 1024 namespaces"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

/// What a disk has done.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) commands: AtomicU64,
    pub(crate) errors: AtomicU64,
}

impl Counters {
    /// I/O commands completed.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Those among them that failed.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

/// A disk that runs. Dropping it takes it out: registers read as ones, and nothing is written any more.
pub struct Disk {
    bar: Arc<Bar>,
    map: Arc<Map>,
    faults: Faults,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Disk {
    /// Starts a controller on a thread of its own. It is disabled, as after a reset.
    ///
    /// # Errors
    ///
    /// A value of the configuration that cannot be, or no thread.
    pub fn start(config: Config) -> io::Result<Self> {
        config.check()?;
        let (bar, map, faults) = (Arc::new(Bar::new()), Arc::new(Map::default()), Faults::default());
        let (counters, stop) = (Arc::<Counters>::default(), Arc::<AtomicBool>::default());
        let mut controller =
            Controller::new(config, bar.clone(), map.clone(), faults.clone(), counters.clone());
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("nvme disk".to_owned()).spawn(move || {
            let mut idle = 0;
            while !stopped.load(Ordering::Acquire) {
                idle = if controller.step() { 0 } else { idle + 1 };
                rest(idle);
            }
        })?;
        Ok(Disk { bar, map, faults, counters, stop, thread: Some(thread) })
    }

    /// The registers.
    pub fn bar(&self) -> Arc<dyn nvme_pci::Bar> {
        self.bar.clone()
    }

    /// What makes memory reachable for the disk.
    pub fn mapper(&self) -> Arc<dyn nvme_pci::Mapper> {
        self.map.clone()
    }

    /// Failures on demand.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What it has done.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed already.
            _ = thread.join();
        }
        self.bar.vanish();
    }
}

/// Doorbells are memory, which wakes nobody: look often while there is work, seldom when there has been none for long.
fn rest(idle: u32) {
    match idle {
        0 => {}
        1..200 => std::thread::yield_now(),
        200..2000 => std::thread::sleep(Duration::from_micros(50)),
        _ => std::thread::sleep(Duration::from_millis(1)),
    }
}
