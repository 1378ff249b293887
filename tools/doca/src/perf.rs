//! `doca perf`: throughput and latency of RDMA tasks between two machines, or two processes.

use crate::peer::{Client, LONGEST, Place, Presence};
use crate::table::columns;
use crate::{Failure, Outcome};
use clap::ValueEnum;
use doca_common::buffer::Payload;
use doca_common::{Buffer, Error, Memory, RemoteMemory};
use doca_rdma::{FetchAddTask, InFlight, Prepared, ReadTask, SendTask, Task, WriteTask};
use serde::Serialize;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Measure throughput and latency of DOCA RDMA between two machines
///
/// Run it without an address on one machine, and with the first one's address on the other. All bytes go through
/// libdoca_rdma. One machine can be both, with two devices or one.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Figures: tasks that were done, their bytes, seconds; with --latency, microseconds from the submission of one task to its
completion, nothing else being in flight. A ping is a message that the other side sends back.

    doca perf -d mlx5_0                              doca perf 192.168.1.1 -d mlx5_1 --size 4K,64K,1M write read

Exit status: 0 all was measured, 1 messages got lost, 2 something failed.")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// What to measure; else all of it
    #[arg(requires = "address")]
    operations: Vec<Operation>,
    /// Bytes of each task, K and M meaning KiB and MiB; several, separated by commas. Atomics have 8
    #[arg(short, long, default_value = "64K", value_delimiter = ',', value_parser = size, requires = "address")]
    size: Vec<usize>,
    /// Tasks in flight
    #[arg(short, long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..), requires = "address")]
    in_flight: u32,
    /// One task at a time, and how long each takes
    #[arg(short, long, conflicts_with = "in_flight", requires = "address")]
    latency: bool,
    /// Seconds for each figure
    #[arg(short = 't', long, default_value_t = 2.0, value_parser = seconds, requires = "address")]
    seconds: f64,
    /// Tasks for each figure, instead of seconds
    #[arg(short = 'n', long, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..), requires = "address")]
    count: Option<u64>,
    /// Print JSON
    #[arg(long, requires = "address")]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
enum Operation {
    /// Messages to receives of the other side
    Send,
    /// Writes to its memory
    Write,
    /// Reads from its memory
    Read,
    /// Atomic additions to its memory
    FetchAdd,
    /// Messages that it sends back
    Ping,
}

impl Operation {
    /// As on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// One row.
#[derive(Serialize, Debug)]
struct Figure {
    operation: Operation,
    /// Of each task.
    bytes: usize,
    in_flight: u32,
    tasks: u64,
    seconds: f64,
    /// Microseconds.
    latency: Option<Latency>,
    /// Messages that were sent and did not arrive.
    lost: u64,
}

/// Microseconds.
#[derive(Serialize, Debug)]
struct Latency {
    min: f64,
    median: f64,
    percentile_99: f64,
    max: f64,
}

fn size(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.to_ascii_uppercase().strip_suffix(['K', 'M']) {
        Some(digits) if text.ends_with(['k', 'K']) => (digits.to_owned(), 1 << 10),
        Some(digits) => (digits.to_owned(), 1 << 20),
        None => (text.to_owned(), 1),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| format!("{text:?} is no size, such as 4096, 64K or 1M"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&number: &f64| Duration::try_from_secs_f64(number).is_ok());
    number.filter(|&number| number > 0.0).ok_or_else(|| format!("{text:?} is no time, such as 0.5 or 10"))
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let Some(address) = args.place.address() else { return args.place.serve() };
    let all = Operation::value_variants().to_vec();
    let operations = if args.operations.is_empty() { all } else { args.operations.clone() };
    let presence = Presence::begin(&args.place, address)?;
    let mut figures = Vec::new();
    for operation in operations {
        let sizes = if operation == Operation::FetchAdd { &[8][..] } else { &args.size };
        for &size in sizes {
            let figure = args.measure(address, operation, size);
            figures.push(figure.map_err(|error| format!("{} of {size} bytes: {error}", operation.name()))?);
        }
    }
    presence.end()?;
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&figures)?),
        false => print!("{}", table(&figures, args.latency)),
    }
    let lost: u64 = figures.iter().map(|figure| figure.lost).sum();
    if lost > 0 {
        eprintln!("{lost} messages did not arrive");
    }
    Ok(if lost == 0 { Outcome::Good } else { Outcome::Unmet })
}

impl Args {
    fn in_flight(&self, operation: Operation) -> u32 {
        if self.latency || operation == Operation::Ping { 1 } else { self.in_flight }
    }

    fn measure(&self, address: &str, operation: Operation, size: usize) -> Result<Figure, Failure> {
        let depth = self.in_flight(operation);
        if matches!(operation, Operation::Send | Operation::Ping) && size > LONGEST {
            let most = format!("messages have {LONGEST} bytes at most; writes and reads can have more");
            return Err(most.into());
        }
        let (run, lost) = match operation {
            Operation::Send => {
                let client = Client::<SendTask>::connect(&self.place, address, depth)?;
                client.count(false)?;
                let tasks = tasks(&client, depth, size, |_, buffer| {
                    Ok(client.tasks.prepare(&client.connection, buffer)?)
                })?;
                let run = self.flow(tasks)?;
                let (arrived, _) = client.counted()?;
                client.leave()?;
                let lost = run.tasks.saturating_sub(arrived);
                (run, lost)
            }
            Operation::Write => {
                self.one_sided::<WriteTask>(address, depth, size, |client, remote, at, buffer| {
                    Ok(client.tasks.prepare(&client.connection, buffer, &remote.range(at, size)?)?)
                })?
            }
            Operation::Read => {
                self.one_sided::<ReadTask>(address, depth, size, |client, remote, at, buffer| {
                    Ok(client.tasks.prepare(&client.connection, &remote.range(at, size)?, buffer)?)
                })?
            }
            Operation::FetchAdd => {
                self.one_sided::<FetchAddTask>(address, depth, size, |client, remote, at, buffer| {
                    Ok(client.tasks.prepare(&client.connection, &remote.cell(at)?, buffer, 1)?)
                })?
            }
            Operation::Ping => {
                let client = Client::<SendTask>::connect(&self.place, address, depth)?;
                client.count(true)?;
                let run = self.ping(&client, size)?;
                client.leave()?;
                (run, 0)
            }
        };
        Ok(run.figure(operation, size, depth, lost))
    }

    /// Tasks that reach into the server's memory, each into a part of its own, which `prepare` gets the beginning of. No
    /// task is lost: each is told of by itself.
    fn one_sided<T: Task>(
        &self,
        address: &str,
        depth: u32,
        size: usize,
        prepare: impl Fn(&Client<T>, &RemoteMemory, usize, Buffer) -> doca_common::Result<Prepared<T, Buffer>>,
    ) -> Result<(Run, u64), Failure> {
        let client = Client::<T>::connect(&self.place, address, depth)?;
        let remote = client.share(size.saturating_mul(depth as usize), 0, false)?;
        let tasks =
            tasks(&client, depth, size, |index, buffer| prepare(&client, &remote, index * size, buffer))?;
        let run = self.flow(tasks)?;
        client.leave()?;
        Ok((run, 0))
    }

    /// Keeps all tasks in flight until the figure has its tasks or its time.
    fn flow<T: Task, P: Payload>(&self, tasks: Vec<Prepared<T, P>>) -> Result<Run, Failure> {
        let mut run = Run::begin();
        let mut flying = VecDeque::with_capacity(tasks.len());
        let mut idle = tasks.into_iter();
        let mut submitted = 0;
        loop {
            let task = match idle.next() {
                Some(task) => task,
                None => {
                    let Some((sent, task)): Option<(_, InFlight<T, P>)> = flying.pop_front() else { break };
                    let task = task.wait().map_err(Error::from)?;
                    run.done(sent);
                    task
                }
            };
            if self.goes_on(submitted, &run) {
                submitted += 1;
                flying.push_back((self.stamp(), task.submit().map_err(Error::from)?));
            }
        }
        Ok(run.end())
    }

    /// Sends messages and waits for each to come back.
    fn ping(&self, client: &Client<SendTask>, size: usize) -> Result<Run, Failure> {
        let memory = Memory::zeroed(2 * size)?.private(&client.device).map_err(Error::from)?;
        let mut send = client.tasks.prepare(&client.connection, memory.take(size)?).map_err(Error::from)?;
        let mut receive = client.receives.prepare(memory.take(size)?).map_err(Error::from)?;
        let mut run = Run::begin();
        while self.goes_on(run.tasks, &run) {
            let sent = self.stamp();
            let answer = receive.submit().map_err(Error::from)?;
            send = send.submit().map_err(Error::from)?.wait().map_err(Error::from)?;
            while !answer.is_done() {
                client.attend()?;
            }
            receive = answer.wait().map_err(Error::from)?;
            run.done(sent);
        }
        Ok(run.end())
    }

    fn goes_on(&self, submitted: u64, run: &Run) -> bool {
        match self.count {
            Some(count) => submitted < count,
            None => run.began.elapsed().as_secs_f64() < self.seconds,
        }
    }

    fn stamp(&self) -> Option<Instant> {
        self.latency.then(Instant::now)
    }
}

/// So many tasks that were prepared, each with a buffer of its own.
fn tasks<T: Task>(
    client: &Client<T>,
    depth: u32,
    size: usize,
    prepare: impl Fn(usize, Buffer) -> doca_common::Result<Prepared<T, Buffer>>,
) -> Result<Vec<Prepared<T, Buffer>>, Failure> {
    let memory = Memory::zeroed(size * depth as usize)?.private(&client.device).map_err(Error::from)?;
    (0..depth as usize).map(|index| Ok(prepare(index, memory.take(size)?)?)).collect()
}

/// Tasks that were done, and how long it took.
struct Run {
    began: Instant,
    took: Duration,
    tasks: u64,
    /// Of each task, if it is measured.
    times: Vec<Duration>,
}

impl Run {
    fn begin() -> Self {
        Run { began: Instant::now(), took: Duration::ZERO, tasks: 0, times: Vec::new() }
    }

    fn done(&mut self, sent: Option<Instant>) {
        self.tasks += 1;
        self.times.extend(sent.map(|sent| sent.elapsed()));
    }

    fn end(mut self) -> Self {
        self.took = self.began.elapsed();
        self.times.sort_unstable();
        self
    }

    fn figure(self, operation: Operation, bytes: usize, in_flight: u32, lost: u64) -> Figure {
        let at = |part: usize| self.times[(self.times.len() - 1) * part / 100].as_secs_f64() * 1e6;
        let latency = (!self.times.is_empty()).then(|| Latency {
            min: at(0),
            median: at(50),
            percentile_99: at(99),
            max: at(100),
        });
        let seconds = self.took.as_secs_f64();
        Figure { operation, bytes, in_flight, tasks: self.tasks, seconds, latency, lost }
    }
}

impl Figure {
    fn heading(latency: bool) -> Vec<String> {
        let common = ["operation", "bytes", "in flight", "tasks", "seconds"];
        let rest: &[_] = if latency { &["min", "median", "99 %", "max"] } else { &["tasks/s", "GB/s"] };
        common.iter().chain(rest).map(ToString::to_string).collect()
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![
            self.operation.name(),
            self.bytes.to_string(),
            self.in_flight.to_string(),
            self.tasks.to_string(),
            format!("{:.2}", self.seconds),
        ];
        match &self.latency {
            Some(Latency { min, median, percentile_99, max }) => {
                row.extend([min, median, percentile_99, max].map(|micros| format!("{micros:.2}")));
            }
            None => {
                let rate = self.tasks as f64 / self.seconds;
                row.extend([format!("{rate:.0}"), format!("{:.3}", rate * self.bytes as f64 / 1e9)]);
            }
        }
        row
    }
}

fn table(figures: &[Figure], latency: bool) -> String {
    let rows: Vec<_> =
        std::iter::once(Figure::heading(latency)).chain(figures.iter().map(Figure::row)).collect();
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("1", 1), ("64K", 65536), ("2k", 2048), ("3M", 3 << 20), ("1m", 1 << 20)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "0", "K", "-1", "1G", "4 K", "99999999999999999999", "9999999999999999999M"] {
            assert!(size(text).unwrap_err().contains("no size"), "{text}");
        }
    }

    #[test]
    fn times_are_positive_and_finite() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for text in ["0", "-1", "inf", "NaN", "x", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_figure_knows_its_percentiles() {
        let mut run = Run::begin();
        run.times = (1..=101).map(Duration::from_micros).collect();
        let latency = run.end().figure(Operation::Ping, 1, 1, 0).latency.unwrap();
        let all = [latency.min, latency.median, latency.percentile_99, latency.max].map(f64::round);
        assert_eq!(all, [1.0, 51.0, 100.0, 101.0]);
    }
}
