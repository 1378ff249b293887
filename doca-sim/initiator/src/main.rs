//! `doca-sim`: the hands-on side of the software SDK. `doca-sim nvme …` is a host for storage targets.
#![forbid(unsafe_code)]

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use doca_sim_initiator::load::{self, Load, Mix, Report};
use doca_sim_initiator::{Controller, Error, Failure, Host, Part, Target, smoke, wire};
use doca_tool_output::println;
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
    /// Read blocks to a file; by default all from the first one to the end.
    Read(Blocks),
    /// Write a file, of whole blocks, to blocks; by default all of it.
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

/// A time that can pass: at least a second, at most a year.
fn seconds() -> RangedU64ValueParser {
    value_parser!(u64).range(1..=365 * 24 * 60 * 60)
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
    #[arg(long, default_value_t = 20, value_parser = seconds())]
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
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
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
    /// This many blocks.
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
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
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(1..))]
    queues: u16,
    /// Commands under way in each.
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u16).range(1..))]
    depth: u16,
    /// Bytes of a command.
    #[arg(long, default_value_t = 4096, value_parser = value_parser!(u32).range(1..))]
    size: u32,
    /// Ascending addresses instead of random ones.
    #[arg(long)]
    sequential: bool,
    /// What to do.
    #[arg(long, value_enum, default_value = "verify")]
    mix: Doing,
    /// Seconds.
    #[arg(long, default_value_t = 5, value_parser = seconds())]
    time: u64,
}

#[derive(Args)]
struct SmokeArgs {
    #[command(flatten)]
    to: To,
    /// Seconds of load.
    #[arg(long, default_value_t = 3, value_parser = seconds())]
    time: u64,
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|told| match told.use_stderr() {
        true => told.exit(),
        false => doca_tool_output::finish(told.print()),
    });
    let Area::Nvme(command) = cli.area;
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

/// What was asked for cannot be.
fn usage(why: String) -> Failure {
    Failure { part: Part::Host, error: Error::Usage(why) }
}

/// A fault of this program's own surroundings.
fn local(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Failure {
    usage(format!("{what}: {error}"))
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

/// Bytes of one command of the copy commands, unless a block is larger.
const CHUNK: u64 = 64 << 10;

/// Bytes of a block of the namespace, and the blocks behind `lba`.
fn room(controller: &mut Controller, to: &To, lba: u64) -> Result<(u32, u64), Failure> {
    let namespace = controller.namespace(to.nsid)?;
    let Some(size) = namespace.block_size() else {
        return Err(usage(format!("the blocks of namespace {} have no size that this host knows", to.nsid)));
    };
    match namespace.nsze.checked_sub(lba) {
        None | Some(0) => Err(usage(format!(
            "block {lba} is behind the end of namespace {}, which has {} blocks",
            to.nsid, namespace.nsze
        ))),
        Some(rest) => Ok((size, rest)),
    }
}

fn read(arguments: &Blocks) -> Result<(), Failure> {
    let Blocks { to, file: path, lba, blocks } = arguments;
    let mut controller = open(to)?;
    let (size, rest) = room(&mut controller, to, *lba)?;
    let blocks = blocks.unwrap_or(rest);
    let mut queue = controller.io_queue(1, 2)?;
    let mut file = File::create(path).map_err(|error| local(path.display(), error))?;
    let mut done = 0;
    while done < blocks {
        let some = (blocks - done).min((CHUNK / u64::from(size)).max(1));
        let mut data = vec![0; some as usize * size as usize];
        queue.read(to.nsid, lba + done, size, &mut data)?;
        file.write_all(&data).map_err(|error| local(path.display(), error))?;
        done += some;
    }
    println!("read: {done} blocks to {}", path.display());
    controller.shutdown()
}

fn write(arguments: &Blocks) -> Result<(), Failure> {
    let Blocks { to, file: path, lba, blocks } = arguments;
    let failed = |error| local(path.display(), error);
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let mut controller = open(to)?;
    let (size, _) = room(&mut controller, to, *lba)?;
    let size = u64::from(size);
    let asked = match blocks {
        Some(blocks) => {
            blocks.checked_mul(size).ok_or_else(|| usage(format!("{blocks} blocks are too many")))?
        }
        None => u64::MAX,
    };
    let whole = |len: u64| match blocks {
        Some(blocks) if len < asked => {
            Err(local(path.display(), format!("{len} bytes are no {blocks} blocks of {size}")))
        }
        _ if len == 0 => Err(local(path.display(), "the file is empty")),
        _ if blocks.is_none() && !len.is_multiple_of(size) => {
            Err(local(path.display(), format!("{len} bytes are no multiple of the block size {size}")))
        }
        _ => Ok(()),
    };
    // What comes through a pipe is known at its end.
    if about.is_file() {
        whole(about.len())?;
    }
    let (mut file, mut len) = (file.take(asked), 0);
    let mut queue = controller.io_queue(1, 2)?;
    loop {
        let mut data = Vec::new();
        (&mut file).take(CHUNK.max(size)).read_to_end(&mut data).map_err(failed)?;
        let before = len;
        len += data.len() as u64;
        if data.is_empty() {
            break;
        }
        if !(data.len() as u64).is_multiple_of(size) {
            whole(len)?;
        }
        queue.write(to.nsid, lba + before / size, size as u32, &data)?;
    }
    whole(len)?;
    queue.flush(to.nsid)?;
    println!("write: {} blocks from {}", len / size, path.display());
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
