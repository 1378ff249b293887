//! A target beside the file below its disk, in one run: `cargo sim bench sta [SECONDS]`.
//!
//! The target is this program again, in a process of its own. Random commands of 4 KiB go to it over simulated RDMA, and as
//! `pread` and `pwrite` to the same file, from as many threads as there are queues. Ratios hold within one run only: the
//! machine may be busy with other things.

use doca_common::Device;
use doca_sim_initiator::load::{self, Load, Mix, Report};
use doca_sim_initiator::{Host, Target};
use doca_sim_nvme::{Config, Disk, Namespace};
use doca_sta_target::{NamespaceOptions, NvmeDisk, Options, SubsystemOptions};
use nvme_wire::Nqn;
use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const NQN: &str = "nqn.2014-08.org.example:bench";
const ADDRESS: &str = "192.168.1.1:4420";
const FILE_LEN: u64 = 256 << 20;
const SIZE: u32 = 4096;
/// Queues and depth.
const SHAPES: &[(u16, u16)] = &[(1, 1), (1, 32), (4, 32)];

fn main() -> Result {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    match (args.next().as_deref(), args.next()) {
        (Some("target"), Some(file)) => target(Path::new(&file)),
        (seconds, _) => measure(seconds.map_or(Ok(3), str::parse)?),
    }
}

/// Serves a file until standard input ends.
fn target(file: &Path) -> Result {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    std::thread::spawn(move || {
        // Whatever comes is the end.
        _ = std::io::stdin().read(&mut [0]);
        flag.store(true, Ordering::Relaxed);
    });
    let disk = Disk::start(Config::default().namespace(Namespace::open(file, SIZE)?))?;
    let mut options = Options::new(&Device::open("mlx5_0")?);
    options.listen = vec![ADDRESS.parse()?];
    options
        .disks
        .push(Box::new(NvmeDisk::open(disk.bar(), disk.mapper()).map_err(|error| error.to_string())?));
    options.subsystems.push(SubsystemOptions {
        nqn: NQN.to_owned(),
        serial: "BENCH".to_owned(),
        hosts: None,
        namespaces: vec![NamespaceOptions { nsid: 1, disk: 0, disk_nsid: 1 }],
    });
    let mut target = doca_sta_target::Target::start(options)?;
    println!("ready");
    while !ended.load(Ordering::Relaxed) {
        target.run_for(Duration::from_millis(50))?;
    }
    target.stop()?;
    Ok(())
}

fn measure(seconds: u64) -> Result {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("disk.img");
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path)?;
    file.set_len(FILE_LEN)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("target").arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().ok_or("no output of the target")?);
    output.read_line(&mut line)?;
    if line != "ready\n" {
        return Err("the target did not start".into());
    }
    let host = Host::new(Nqn::new("nqn.2014-08.org.example:host")?);
    let place = Target::new("mlx5_1", ADDRESS.parse()?, Nqn::new(NQN)?);
    println!(
        "{:8} {:>6} {:>5}  {:>32}  {:>32}  {:>6}",
        "4 KiB", "queues", "depth", "target", "file", "ratio"
    );
    for mix in [Mix::Write, Mix::Read] {
        for &(queues, depth) in SHAPES {
            let time = Duration::from_secs(seconds);
            let load = Load { queues, depth, size: SIZE, random: true, mix, time, nsid: 1 };
            let mut controller = host.open(&place)?;
            let ours = load::run(&mut controller, &load)?;
            controller.shutdown()?;
            drop(controller);
            let plain = load::run_on_file(&file, &load)?;
            let what = if mix == Mix::Read { "read" } else { "write" };
            let ratio = ours.iops() / plain.iops();
            println!("{what:8} {queues:>6} {depth:>5}  {}  {}  {ratio:>6.3}", shown(&ours), shown(&plain));
        }
    }
    drop(child.stdin.take());
    if child.wait()?.success() { Ok(()) } else { Err("the target failed".into()) }
}

/// Commands a second, median and 99th percentile in microseconds.
fn shown(report: &Report) -> String {
    let us = |share| report.latency(share).as_secs_f64() * 1e6;
    format!("{:>8.0}/s {:>8.1} {:>8.1} us", report.iops(), us(0.5), us(0.99))
}
