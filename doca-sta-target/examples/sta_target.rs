//! A storage target on simulated NVMe disks, each over a file.
//!
//! ```sh
//! cargo sim run -p doca-sta-target --example sta_target -- target.json
//! ```
//!
//! ```json
//! {
//!   "control": "mlx5_0",
//!   "listen": ["192.168.1.1:4420"],
//!   "disks": [{ "file": "disk.img", "block_size": 512, "create_mib": 64 }],
//!   "subsystems": [{ "nqn": "nqn.2014-08.org.example:disk", "namespaces": [{ "nsid": 1, "disk": 0 }] }]
//! }
//! ```
//!
//! It prints where it listens, connections, and statistics now and then; SIGINT and SIGTERM drain it.

use doca_common::Device;
use doca_sim_nvme::{Config, Disk, Namespace};
use doca_sta_target::{Failure, NamespaceOptions, NvmeDisk, Options, Statistics, SubsystemOptions, Target};
use doca_tool_output::{Lost, print, try_println};
use nix::sys::signal::{SigSet, Signal};
use serde::Deserialize;
use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = r#"usage: sta_target CONFIG.json, for example with
{
  "control": "mlx5_0",
  "listen": ["192.168.1.1:4420"],
  "disks": [{ "file": "disk.img", "block_size": 512, "create_mib": 64 }],
  "subsystems": [{ "nqn": "nqn.2014-08.org.example:disk", "namespaces": [{ "nsid": 1, "disk": 0 }] }]
}
"#;

/// Whatever goes wrong.
type Fault = Box<dyn std::error::Error + Send + Sync>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The device that controls the target.
    control: String,
    /// Devices of connections; the control device unless given.
    #[serde(default)]
    networks: Vec<String>,
    listen: Vec<SocketAddr>,
    #[serde(default = "one")]
    threads: u16,
    #[serde(default = "depth")]
    queue_entries: u16,
    disks: Vec<DiskFile>,
    subsystems: Vec<SubsystemFile>,
    /// Seconds between two statistics.
    #[serde(default = "interval")]
    statistics: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskFile {
    file: PathBuf,
    #[serde(default = "block_size")]
    block_size: u32,
    /// Size to create the file with, if it is not there.
    create_mib: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubsystemFile {
    nqn: String,
    #[serde(default = "serial")]
    serial: String,
    hosts: Option<Vec<String>>,
    namespaces: Vec<NamespaceFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceFile {
    nsid: u32,
    disk: usize,
}

fn one() -> u16 {
    1
}

fn depth() -> u16 {
    128
}

fn interval() -> u64 {
    10
}

fn block_size() -> u32 {
    512
}

fn serial() -> String {
    "STA0001".to_owned()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = match &arguments[..] {
        [help] if help == "--help" || help == "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [path] => path,
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
    match serve(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(lost) = error.downcast_ref::<Lost>() {
                lost.end();
            }
            eprintln!("sta_target: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the target warns of goes to standard error.
struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("sta_target: {}", record.args());
        }
    }

    fn flush(&self) {}
}

/// Until a signal asks for the end.
fn serve(path: &str) -> Result<(), Fault> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let file: File = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
    if file.listen.is_empty() {
        return Err(format!("{path}: `listen` names no address").into());
    }
    if file.statistics == 0 {
        return Err(format!("{path}: `statistics` are 0 seconds apart").into());
    }
    let stop = on_signal()?;
    // Disks outlive the target that has their queues.
    let disks = file.disks.iter().map(start_disk).collect::<Result<Vec<_>, _>>()?;
    let mut target = Target::start(options(&file, &disks)?)?;
    for address in target.addresses() {
        try_println!("listening on {address}")?;
    }
    let interval = Duration::from_secs(file.statistics);
    let (mut told, mut queues) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        for event in target.run_for(Duration::from_millis(50))? {
            try_println!("event: {event}")?;
        }
        let now = target.frontend().num_queues();
        if now != queues {
            try_println!("connections: {now} queues of {} controllers", target.frontend().num_controllers())?;
            queues = now;
        }
        if told.elapsed() >= interval {
            told = Instant::now();
            print(&target.statistics()?)?;
            if let Some(finding) = target.diagnosis() {
                try_println!("no initiator was served yet: {finding}")?;
            }
        }
    }
    print(&target.statistics()?)?;
    try_println!("draining")?;
    target.stop()?;
    try_println!("stopped")?;
    Ok(())
}

/// Set once a signal asks for the end.
fn on_signal() -> Result<Arc<AtomicBool>, Fault> {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    // Threads that are started from now on leave them to the one below.
    signals.thread_block()?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    Ok(stop)
}

fn start_disk(disk: &DiskFile) -> Result<Disk, Fault> {
    let name = disk.file.display();
    if let Some(mib) = disk.create_mib.filter(|_| !disk.file.exists()) {
        let len = mib.checked_mul(1 << 20).filter(|len| (1..=i64::MAX as u64).contains(len));
        let len = len.ok_or_else(|| format!("{name}: no file has {mib} MiB"))?;
        let file = OpenOptions::new().write(true).create_new(true).open(&disk.file);
        let made = file.map_err(|error| format!("{name}: {error}"))?.set_len(len);
        if let Err(error) = made {
            // The next attempt must not take it for a disk.
            _ = std::fs::remove_file(&disk.file);
            return Err(format!("{name}: {error}").into());
        }
    }
    let namespace =
        Namespace::open(&disk.file, disk.block_size).map_err(|error| format!("{name}: {error}"))?;
    Ok(Disk::start(Config::default().namespace(namespace))?)
}

fn options(file: &File, disks: &[Disk]) -> Result<Options, Fault> {
    // A `Failure` says what to check, as those of the target do.
    let open = |name: &String| Device::open(name).map_err(Failure::from);
    let mut options = Options::new(&open(&file.control)?);
    if !file.networks.is_empty() {
        options.networks = file.networks.iter().map(open).collect::<Result<_, _>>()?;
    }
    options.listen = file.listen.clone();
    (options.threads, options.queue_entries) = (file.threads, file.queue_entries);
    for disk in disks {
        options.disks.push(Box::new(NvmeDisk::open(disk.bar(), disk.mapper())?));
    }
    for own in &file.subsystems {
        let namespaces = own
            .namespaces
            .iter()
            .map(|own| NamespaceOptions { nsid: own.nsid, disk: own.disk, disk_nsid: 1 })
            .collect();
        options.subsystems.push(SubsystemOptions {
            nqn: own.nqn.clone(),
            serial: own.serial.clone(),
            hosts: own.hosts.clone(),
            namespaces,
        });
    }
    Ok(options)
}

fn print(statistics: &Statistics) -> Result<(), Lost> {
    try_println!(
        "statistics: {} controllers, {} queues; {} requests, {} rejected; Connect {} done, {} refused; {} expired",
        statistics.controllers,
        statistics.queues,
        statistics.requests,
        statistics.rejected,
        statistics.engine.connects,
        statistics.engine.refused,
        statistics.engine.expired,
    )?;
    for (index, thread) in statistics.threads.iter().enumerate() {
        try_println!(
            "  thread {index}: {} commands not offloaded, {} transport errors",
            thread.commands,
            thread.transport_errors
        )?;
    }
    for (nqn, nsid, counters) in &statistics.namespaces {
        try_println!("  {nqn} namespace {nsid}: {counters}")?;
    }
    Ok(())
}
