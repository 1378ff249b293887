//! `doca verify`: whether each kind of RDMA task moves the right bytes between two machines, or two processes.

use crate::peer::{Client, Place, Presence, pattern};
use crate::table::columns;
use crate::{Failure, Outcome};
use doca_common::buffer::Payload;
use doca_common::caps::Capability;
use doca_common::{Buffer, Error, Memory};
use doca_rdma::{
    CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, ReadTask, SendImmTask, SendTask,
    Task, Word, WriteImmTask, WriteTask,
};
use serde::Serialize;

/// Try each kind of DOCA RDMA task between two machines, and compare what arrives
///
/// Run it without an address on one machine, and with the first one's address on the other. Random bytes go there with
/// each kind of task, and are compared with what the other side has, or the other way round. Each row is a connection of its
/// own, so that a failure does not spoil the next.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
    doca verify -d mlx5_0                            doca verify 192.168.1.1 -d mlx5_1

Exit status: 0 all that this device can do works, 1 something does not, 2 the other side was not reached.")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long, requires = "address")]
    json: bool,
}

/// Bytes of each message, write and read: less than a word, more than a packet and odd, and many.
const SIZES: &[usize] = &[1, 4097, 1 << 20];

/// How a kind is tried with so many bytes; tasks that move words take no size.
enum Trial {
    Bytes(fn(&Way<'_>, usize) -> Result<(), Failure>),
    Word(fn(&Way<'_>) -> Result<(), Failure>),
}

/// The kinds, in the order in which they are tried. Receives are tried with the first two.
const TRIALS: &[(Capability, Trial)] = &[
    (SendTask::CAPABILITY, Trial::Bytes(send)),
    (SendImmTask::CAPABILITY, Trial::Bytes(send_imm)),
    (WriteTask::CAPABILITY, Trial::Bytes(write)),
    (WriteImmTask::CAPABILITY, Trial::Bytes(write_imm)),
    (ReadTask::CAPABILITY, Trial::Bytes(read)),
    (CompareSwapTask::CAPABILITY, Trial::Word(compare_swap)),
    (FetchAddTask::CAPABILITY, Trial::Word(fetch_add)),
    (EventGetTask::CAPABILITY, Trial::Word(event_get)),
    (EventSetTask::CAPABILITY, Trial::Word(event_set)),
    (EventAddTask::CAPABILITY, Trial::Word(event_add)),
];

/// How to the other side, and what is sent there.
struct Way<'a> {
    place: &'a Place,
    address: &'a str,
    seed: u64,
}

/// One row.
#[derive(Serialize, Debug)]
struct Finding {
    task: &'static str,
    bytes: usize,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Serialize, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
enum Verdict {
    Works,
    NotSupported,
    Fails(String),
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let Some(address) = args.place.address() else { return args.place.serve() };
    let device = args.place.open(&[SendImmTask::CAPABILITY])?;
    // Whoever is not reached fails no task.
    let presence = Presence::begin(&args.place, address)?;
    let mut findings = Vec::new();
    for (capability, trial) in TRIALS {
        let sizes = if let Trial::Bytes(_) = trial { SIZES } else { &[8] };
        for &bytes in sizes {
            let way = Way { place: &args.place, address, seed: rand(findings.len()) };
            let verdict = match (capability.holds(&device.info()), trial) {
                (false, _) => Verdict::NotSupported,
                (true, Trial::Bytes(tried)) => tried(&way, bytes).into(),
                (true, Trial::Word(tried)) => tried(&way).into(),
            };
            let task = capability.name.trim_start_matches("rdma.");
            findings.push(Finding { task, bytes, verdict });
        }
    }
    presence.end()?;
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&findings)?),
        false => print!("{}", table(&findings)),
    }
    let fails = findings.iter().any(|finding| matches!(finding.verdict, Verdict::Fails(_)));
    Ok(if fails { Outcome::Unmet } else { Outcome::Good })
}

impl From<Result<(), Failure>> for Verdict {
    fn from(result: Result<(), Failure>) -> Self {
        result.map_or_else(|error| Verdict::Fails(error.to_string()), |()| Verdict::Works)
    }
}

fn table(findings: &[Finding]) -> String {
    let mut rows = vec![["task", "bytes", "verdict"].map(str::to_owned).to_vec()];
    rows.extend(findings.iter().map(|finding| {
        let verdict = match &finding.verdict {
            Verdict::Works => "ok".to_owned(),
            Verdict::NotSupported => "not supported by this device".to_owned(),
            Verdict::Fails(why) => format!("FAILED: {why}"),
        };
        vec![finding.task.to_owned(), finding.bytes.to_string(), verdict]
    }));
    columns(&rows)
}

/// A number that differs from run to run and row to row.
fn rand(row: usize) -> u64 {
    use std::hash::BuildHasher;
    std::collections::hash_map::RandomState::new().hash_one(row)
}

impl Way<'_> {
    fn connect<T: Task>(&self) -> Result<Client<T>, Failure> {
        Client::connect(self.place, self.address, 1)
    }

    /// What is sent there; the server's memory is filled with the pattern of the seed itself.
    fn sent(&self, bytes: usize) -> Vec<u8> {
        pattern(!self.seed, bytes)
    }

    /// A number that no message of the server has for itself.
    fn immediate(&self) -> u32 {
        self.seed as u32 >> 8
    }
}

/// A local buffer with this in it.
fn buffer<T>(client: &Client<T>, data: &[u8]) -> Result<Buffer, Failure> {
    let memory = Memory::zeroed(data.len())?.private(&client.device).map_err(Error::from)?;
    let mut buffer = memory.take(data.len())?;
    buffer.fill_with(data)?;
    Ok(buffer)
}

fn same(what: &str, found: &[u8], wanted: &[u8]) -> Result<(), Failure> {
    if found.len() != wanted.len() {
        return Err(format!("{what}: {} bytes instead of {}", found.len(), wanted.len()).into());
    }
    match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        None => Ok(()),
        Some(at) => {
            let wrong = found.iter().zip(wanted).filter(|(found, wanted)| found != wanted).count();
            Err(format!("{what}: {wrong} of {} bytes are wrong, the first at {at}", found.len()).into())
        }
    }
}

fn equal<T: PartialEq + std::fmt::LowerHex>(what: &str, found: T, wanted: T) -> Result<(), Failure> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} is {found:#x} instead of {wanted:#x}").into()),
    }
}

fn send(way: &Way<'_>, bytes: usize) -> Result<(), Failure> {
    let client = way.connect::<SendTask>()?;
    client.count(true)?;
    let data = way.sent(bytes);
    let (_, back) = client.answered(|| {
        let mut sent =
            client.tasks.submit(&client.connection, buffer(&client, &data)?).map_err(Error::from)?;
        sent.wait().map_err(Error::from)?;
        Ok(())
    })?;
    same("what came back", &back, &data)?;
    client.leave()
}

fn send_imm(way: &Way<'_>, bytes: usize) -> Result<(), Failure> {
    let client = way.connect::<SendImmTask>()?;
    let data = way.sent(bytes);
    let (immediate, back) = client.answered(|| {
        let buffer = buffer(&client, &data)?;
        let sent = client.tasks.submit(&client.connection, buffer, way.immediate());
        sent.map_err(Error::from)?.wait().map_err(Error::from)?;
        Ok(())
    })?;
    equal("the immediate value", immediate, way.immediate())?;
    same("what came back", &back, &data)?;
    client.leave()
}

fn write(way: &Way<'_>, bytes: usize) -> Result<(), Failure> {
    let client = way.connect::<WriteTask>()?;
    let remote = client.share(bytes, way.seed, false)?.whole()?;
    let data = way.sent(bytes);
    let written = client.tasks.submit(&client.connection, buffer(&client, &data)?, &remote);
    written.map_err(Error::from)?.wait().map_err(Error::from)?;
    same("the other side's memory", &client.look(bytes)?, &data)?;
    client.leave()
}

fn write_imm(way: &Way<'_>, bytes: usize) -> Result<(), Failure> {
    let client = way.connect::<WriteImmTask>()?;
    let remote = client.share(bytes, way.seed, false)?.whole()?;
    let data = way.sent(bytes);
    let (immediate, back) = client.answered(|| {
        let buffer = buffer(&client, &data)?;
        let written = client.tasks.submit(&client.connection, buffer, &remote, way.immediate());
        written.map_err(Error::from)?.wait().map_err(Error::from)?;
        Ok(())
    })?;
    equal("the immediate value", immediate, way.immediate())?;
    same("the other side's memory", &back, &data)?;
    client.leave()
}

fn read(way: &Way<'_>, bytes: usize) -> Result<(), Failure> {
    let client = way.connect::<ReadTask>()?;
    let remote = client.share(bytes, way.seed, false)?.whole()?;
    let read = client.tasks.submit(&client.connection, &remote, buffer(&client, &vec![0; bytes])?);
    let read = read.map_err(Error::from)?.wait().map_err(Error::from)?;
    same("what was read", &read.buffer, &pattern(way.seed, bytes))?;
    client.leave()
}

/// The first number in the pattern of the server, in its byte order.
fn word(bytes: &[u8]) -> Result<u64, Failure> {
    Ok(u64::from_ne_bytes(bytes.try_into()?))
}

/// What a task over a word brought.
fn value<P: Payload>(done: Result<Word<P>, doca_common::Failed<Option<P>>>) -> Result<u64, Failure> {
    Ok(done.map_err(Error::from)?.value)
}

fn compare_swap(way: &Way<'_>) -> Result<(), Failure> {
    let client = way.connect::<CompareSwapTask>()?;
    let cell = client.share(8, way.seed, false)?.cell(0)?;
    let (first, new) = (word(&pattern(way.seed, 8))?, word(&way.sent(8))?);
    // Neither the first comparison nor what follows it may change anything.
    for (compare, after) in [(!first, first), (first, new)] {
        let swap = client.tasks.submit(&client.connection, &cell, buffer(&client, &[0; 8])?, compare, new);
        equal("the value before", value(swap.map_err(Error::from)?.wait())?, first)?;
        equal("the value afterwards", word(&client.look(8)?)?, after)?;
    }
    client.leave()
}

fn fetch_add(way: &Way<'_>) -> Result<(), Failure> {
    let client = way.connect::<FetchAddTask>()?;
    let cell = client.share(8, way.seed, false)?.cell(0)?;
    let (first, more) = (word(&pattern(way.seed, 8))?, word(&way.sent(8))?);
    let add = client.tasks.submit(&client.connection, &cell, buffer(&client, &[0; 8])?, more);
    equal("the value before", value(add.map_err(Error::from)?.wait())?, first)?;
    equal("the value afterwards", word(&client.look(8)?)?, first.wrapping_add(more))?;
    client.leave()
}

fn event_get(way: &Way<'_>) -> Result<(), Failure> {
    let client = way.connect::<EventGetTask>()?;
    let event = client.event()?;
    client.event_value(Some(way.seed))?;
    let get = client.tasks.submit(&client.connection, &event, buffer(&client, &[0; 8])?);
    equal("the value of the event", value(get.map_err(Error::from)?.wait())?, way.seed)?;
    client.leave()
}

fn event_set(way: &Way<'_>) -> Result<(), Failure> {
    let client = way.connect::<EventSetTask>()?;
    let event = client.event()?;
    let set = client.tasks.submit(&client.connection, &event, buffer(&client, &way.seed.to_ne_bytes())?);
    set.map_err(Error::from)?.wait().map_err(Error::from)?;
    equal("the value of the event", client.event_value(None)?, way.seed)?;
    client.leave()
}

fn event_add(way: &Way<'_>) -> Result<(), Failure> {
    let client = way.connect::<EventAddTask>()?;
    let event = client.event()?;
    client.event_value(Some(way.seed))?;
    let add = client.tasks.submit(&client.connection, &event, buffer(&client, &[0; 8])?, way.seed);
    equal("the value before", value(add.map_err(Error::from)?.wait())?, way.seed)?;
    equal("the value afterwards", client.event_value(None)?, way.seed.wrapping_add(way.seed))?;
    client.leave()
}
