//! `doca-sim`: the hands-on side of the software SDK. `doca-sim nvme …` is a host for storage targets.
#![forbid(unsafe_code)]

use clap::{Args, Parser, Subcommand, ValueEnum};
use doca_sim_initiator::load::{self, Load, Mix, Report};
use doca_sim_initiator::{Controller, Error, Failure, Host, Part, Target, smoke, wire};
use nvme_wire::Nqn;
use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
#[command(name = "doca-sim", about = "Tools of the software DOCA SDK")]
struct Cli {
    #[command(subcommand)]
    area: Area,
}

#[derive(Subcommand)]
enum Area {
    /// A host that speaks NVMe over Fabrics to a storage target on the simulated RDMA.
    #[command(subcommand)]
    Nvme(Nvme),
}

#[derive(Subcommand)]
enum Nvme {
    /// List the subsystems that a discovery service knows.
    Discover(Way),
    /// Show the controller and its namespaces.
    Identify(To),
    /// Read blocks to a file.
    Read(Blocks),
    /// Write a file to blocks.
    Write(Blocks),
    /// Make what was written durable.
    Flush(To),
    /// Drive many queues and tell how fast they are.
    Load(LoadArgs),
    /// From one command to load: stops at the first failure and says which part failed. Overwrites the namespace.
    Smoke(SmokeArgs),
    /// Send right and wrong connections and capsules, and compare what comes with the specifications.
    Conformance(To),
}

#[derive(Args)]
struct Way {
    /// Our device.
    #[arg(long, default_value = "mlx5_1")]
    device: String,
    /// Where the target listens.
    #[arg(long, default_value = "192.168.1.1:4420")]
    address: SocketAddrV4,
    /// Our qualified name.
    #[arg(long, default_value = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001")]
    host: Nqn,
    /// Seconds that a connection or a command may take.
    #[arg(long, default_value_t = 20)]
    limit: u64,
}

#[derive(Args)]
struct To {
    #[command(flatten)]
    way: Way,
    /// The subsystem.
    #[arg(long)]
    nqn: Nqn,
    /// The namespace.
    #[arg(long, default_value_t = 1)]
    nsid: u32,
}

#[derive(Args)]
struct Blocks {
    #[command(flatten)]
    to: To,
    /// The file.
    #[arg(long)]
    file: PathBuf,
    /// First block.
    #[arg(long, default_value_t = 0)]
    lba: u64,
    /// Read this many blocks; default: to the end.
    #[arg(long)]
    blocks: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Doing {
    Read,
    Write,
    Verify,
}

#[derive(Args)]
struct LoadArgs {
    #[command(flatten)]
    to: To,
    /// I/O queues.
    #[arg(long, default_value_t = 1)]
    queues: u16,
    /// Commands under way in each.
    #[arg(long, default_value_t = 32)]
    depth: u16,
    /// Bytes of a command.
    #[arg(long, default_value_t = 4096)]
    size: u32,
    /// Ascending addresses instead of random ones.
    #[arg(long)]
    sequential: bool,
    /// What to do.
    #[arg(long, value_enum, default_value = "verify")]
    mix: Doing,
    /// Seconds.
    #[arg(long, default_value_t = 5)]
    time: u64,
}

#[derive(Args)]
struct SmokeArgs {
    #[command(flatten)]
    to: To,
    /// Seconds of load.
    #[arg(long, default_value_t = 3)]
    time: u64,
}

fn main() -> ExitCode {
    let Area::Nvme(command) = Cli::parse().area;
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Nvme) -> Result<(), Failure> {
    match command {
        Nvme::Discover(way) => discover(way),
        Nvme::Identify(to) => identify(to),
        Nvme::Read(blocks) => read(blocks),
        Nvme::Write(blocks) => write(blocks),
        Nvme::Flush(to) => {
            let controller = open(to)?;
            controller.io_queue(1, 2)?.flush(to.nsid)?;
            println!("flush: ok");
            Ok(())
        }
        Nvme::Load(arguments) => drive(arguments),
        Nvme::Conformance(to) => conformance(to),
        Nvme::Smoke(arguments) => {
            let (host, target) = (host(&arguments.to.way), target(&arguments.to));
            let time = Duration::from_secs(arguments.time);
            smoke::run(&host, &target, arguments.to.nsid, time, |step| println!("{step}"))?;
            println!("nvme smoke: ok");
            Ok(())
        }
    }
}

fn host(way: &Way) -> Host {
    Host::new(way.host.clone())
}

fn target(to: &To) -> Target {
    let limit = Duration::from_secs(to.way.limit);
    Target { limit, ..Target::new(&to.way.device, to.way.address, to.nqn.clone()) }
}

fn open(to: &To) -> Result<Controller, Failure> {
    let mut controller = host(&to.way).open(&target(to))?;
    controller.set_num_queues(1)?;
    Ok(controller)
}

/// A fault of this program's own surroundings.
fn local(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Failure {
    Failure { part: Part::Host, error: Error::Usage(format!("{what}: {error}")) }
}

fn discover(way: &Way) -> Result<(), Failure> {
    let nqn = Nqn::new(Nqn::DISCOVERY).map_err(|error| local(Nqn::DISCOVERY, error))?;
    let target = Target::new(&way.device, way.address, nqn);
    let mut host = host(way);
    host.kato = 0;
    for entry in host.open(&target)?.discover()? {
        let name = entry.subnqn.text().unwrap_or("(not text)").to_owned();
        let (address, service) = (entry.traddr.text(), entry.trsvcid.text());
        println!("{} {}:{} {} {}", entry.trtype, address, service, entry.subtype, name);
    }
    Ok(())
}

fn identify(to: &To) -> Result<(), Failure> {
    let mut controller = host(&to.way).open(&target(to))?;
    let (cap, version, identity) = (controller.capabilities(), controller.version(), controller.identity());
    println!(
        "controller {}: {} serial {} firmware {}",
        identity.cntlid,
        identity.mn.text(),
        identity.sn.text(),
        identity.fr.text()
    );
    println!(
        "  NVMe {}.{}.{}, queues of {} entries, {} commands at most",
        version.mjr,
        version.mnr,
        version.ter,
        u32::from(cap.mqes) + 1,
        identity.maxcmd
    );
    println!(
        "  capsules of {} bytes, MDTS {}, keep alive every {} ms",
        identity.ioccsz * 16,
        identity.mdts,
        u32::from(identity.kas) * 100
    );
    for nsid in controller.namespaces()? {
        let namespace = controller.namespace(nsid)?;
        let size = namespace.block_size().unwrap_or(0);
        println!(
            "  namespace {nsid}: {} blocks of {size} bytes, {} MiB",
            namespace.nsze,
            (namespace.nsze * u64::from(size)) >> 20
        );
    }
    controller.shutdown()
}

/// Bytes of one command of the copy commands.
const CHUNK: u64 = 64 << 10;

fn read(arguments: &Blocks) -> Result<(), Failure> {
    let Blocks { to, file: path, lba, blocks } = arguments;
    let mut controller = open(to)?;
    let namespace = controller.namespace(to.nsid)?;
    let size = namespace.block_size().unwrap_or(512);
    let end = blocks.map_or(namespace.nsze, |blocks| lba.saturating_add(blocks));
    let mut queue = controller.io_queue(1, 2)?;
    let mut file = File::create(path).map_err(|error| local(path.display(), error))?;
    let mut at = *lba;
    while at < end {
        let some = (end - at).min(CHUNK / u64::from(size));
        let mut data = vec![0; some as usize * size as usize];
        queue.read(to.nsid, at, size, &mut data)?;
        file.write_all(&data).map_err(|error| local(path.display(), error))?;
        at += some;
    }
    println!("read: {} blocks to {}", at.saturating_sub(*lba), path.display());
    controller.shutdown()
}

fn write(arguments: &Blocks) -> Result<(), Failure> {
    let Blocks { to, file: path, lba, .. } = arguments;
    let mut file = File::open(path).map_err(|error| local(path.display(), error))?;
    let mut controller = open(to)?;
    let size = controller.namespace(to.nsid)?.block_size().unwrap_or(512) as usize;
    let mut queue = controller.io_queue(1, 2)?;
    let mut at = *lba;
    loop {
        let mut data = Vec::new();
        (&mut file).take(CHUNK).read_to_end(&mut data).map_err(|error| local(path.display(), error))?;
        if data.is_empty() {
            break;
        }
        // The last block is filled up with zeros.
        data.resize(data.len().next_multiple_of(size), 0);
        queue.write(to.nsid, at, size as u32, &data)?;
        at += (data.len() / size) as u64;
    }
    queue.flush(to.nsid)?;
    println!("write: {} blocks from {}", at - lba, path.display());
    controller.shutdown()
}

fn conformance(to: &To) -> Result<(), Failure> {
    let wire::Verdict { tried, wrong } = wire::run(&host(&to.way), &target(to), to.nsid)?;
    for line in &wrong {
        println!("{line}");
    }
    println!("nvme conformance: {} of {tried} as they must be", tried - wrong.len());
    if wrong.is_empty() {
        return Ok(());
    }
    let error = Error::Protocol(format!("{} answers are not those of the specifications", wrong.len()));
    Err(Failure { part: Part::Admin, error })
}

fn drive(arguments: &LoadArgs) -> Result<(), Failure> {
    let &LoadArgs { ref to, queues, depth, size, sequential, mix, time } = arguments;
    let mut controller = host(&to.way).open(&target(to))?;
    let mix = match mix {
        Doing::Read => Mix::Read,
        Doing::Write => Mix::Write,
        Doing::Verify => Mix::Verify,
    };
    let load = Load {
        queues,
        depth,
        size,
        random: !sequential,
        mix,
        time: Duration::from_secs(time),
        nsid: to.nsid,
    };
    let report = load::run(&mut controller, &load)?;
    print(&report);
    controller.shutdown()
}

fn print(report: &Report) {
    println!("{} reads, {} writes in {:.2} s", report.reads, report.writes, report.elapsed.as_secs_f64());
    println!("{:.0} IOPS", report.iops());
    let us = |share| report.latency(share).as_secs_f64() * 1e6;
    println!("latency in us: median {:.1}, 99% {:.1}, longest {:.1}", us(0.5), us(0.99), us(1.0));
}
