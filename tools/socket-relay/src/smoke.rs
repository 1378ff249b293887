//! The smoke test: one step per layer, from the socket file to an application on the DPU and back.
//!
//! The far end is [`serve_echo`]. Each step that fails names the class of the fault; a round trip that fails names the
//! arrow on which the bytes were last seen.

use crate::fault::{Cause, Class, Exit, Fault};
use crate::frame::Bytes;
use crate::mux::Role;
use crate::registry::Registry;
use crate::transport::Absence;
use doca_tool_output::println;
use nix::errno::Errno;
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How it is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Bytes per round trip.
    pub bytes: usize,
    /// Round trips.
    pub count: u32,
    /// Clients at once.
    pub clients: u32,
    /// For each step.
    pub timeout: Duration,
    /// The last step.
    pub steps: u32,
    /// A socket without the relay, for comparison.
    pub compare: Option<PathBuf>,
}

/// A connection to the echo that begins with this asks for its counts.
const COUNTS: &[u8; 16] = b"DSRELAY-COUNTS-1";

/// What may be wrong where no [`serve_echo`] answers.
const NEEDS_ECHO: &str = " (`doca_socket_relay echo` does not answer at the far end: an echo is needed there, or --steps 4 \
                          with another application)";

/// Bytes that the echo got and gave.
#[derive(Debug, Default)]
struct EchoCounts {
    got: AtomicU64,
    gave: AtomicU64,
}

/// Sends back what comes until `end` returns, on a thread of its own.
///
/// # Errors
/// The socket cannot be bound or accepted from.
pub fn serve_echo(path: &Path, end: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let claim = crate::socket_file::Claim::new(path)?;
    let bound = claim.bind(0o660, None, 4096)?;
    let internal = |e: std::io::Error| Fault::internal(format!("echo: {e}"));
    bound.listener.set_nonblocking(false).map_err(internal)?;
    let listener = bound.listener.try_clone().map_err(internal)?;
    let (tell, told) = mpsc::channel();
    let ended = tell.clone();
    // Whoever comes second is not heard any more.
    thread::spawn(move || {
        end();
        _ = ended.send(Ok(()));
    });
    thread::spawn(move || _ = tell.send(echo_on(&listener, &Arc::default())));
    println!("echo on {}", path.display());
    told.recv().unwrap_or(Ok(())).map_err(internal)
}

fn echo_on(listener: &UnixListener, counts: &Arc<EchoCounts>) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        let counts = Arc::clone(counts);
        // A client that breaks off is its own affair.
        thread::spawn(move || echo_one(stream, &counts));
    }
}

fn echo_one(mut stream: UnixStream, counts: &EchoCounts) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut first = true;
    loop {
        let bytes = match stream.read(&mut buffer) {
            Ok(0) => return stream.shutdown(Shutdown::Write),
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if std::mem::take(&mut first) && buffer[..bytes] == COUNTS[..] {
            let [got, gave] = [&counts.got, &counts.gave].map(|count| count.load(Ordering::SeqCst));
            return writeln!(stream, "{got} {gave}");
        }
        counts.got.fetch_add(bytes as u64, Ordering::SeqCst);
        stream.write_all(&buffer[..bytes])?;
        counts.gave.fetch_add(bytes as u64, Ordering::SeqCst);
    }
}

/// Asks a running relay.
///
/// # Errors
/// Nobody listens there, or nobody answers in time.
pub fn ask(admin: &Path, command: &str, timeout: Duration) -> Result<Value, Fault> {
    let fail =
        |what: String| Fault::new(Exit::NotAsked, Class::Connect, format!("{}: {what}", admin.display()));
    let mut stream = UnixStream::connect(admin).map_err(|e| match e.kind() {
        ErrorKind::NotFound => {
            fail("no relay runs that has this admin socket: not started, or another path".to_owned())
        }
        ErrorKind::ConnectionRefused => {
            fail("a stale admin socket: its relay has ended, and not by itself".to_owned())
        }
        ErrorKind::PermissionDenied => {
            let text = format!("{}: only the user of the relay may ask it ({e})", admin.display());
            Fault::new(Exit::Permission, Class::Permission, text)
        }
        _ => fail(e.to_string()),
    })?;
    let limits = stream.set_read_timeout(Some(timeout)).and_then(|()| writeln!(stream, "{command}"));
    limits.map_err(|e| fail(e.to_string()))?;
    let mut line = String::new();
    BufReader::new(stream)
        .read_line(&mut line)
        .map_err(|e| fail(format!("the relay does not answer: {e}")))?;
    if line.is_empty() {
        return Err(fail("the relay ended, or has too many who ask, before it answered".to_owned()));
    }
    serde_json::from_str(&line).map_err(|e| fail(format!("an answer that is not JSON: {e}")))
}

/// Why a step failed.
struct Failed {
    class: Class,
    why: String,
    status: u8,
}

impl Failed {
    fn new(class: Class, why: impl Into<String>) -> Failed {
        Failed { class, why: why.into(), status: 10 + class as u8 }
    }

    fn by(cause: Cause, why: impl Into<String>) -> Failed {
        Failed { status: cause as u8, ..Failed::new(cause.class(), why) }
    }
}

type Step<T = String> = Result<T, Failed>;

/// Runs the steps; the exit status.
pub fn run(socket: &Path, admin: Option<&Path>, options: &Options) -> u8 {
    let smoke = Smoke { socket, admin, options };
    let through = smoke.steps(true);
    let direct = options.compare.as_deref().map(|path| {
        println!("without the relay, on {}:", path.display());
        Smoke { socket: path, admin: None, options }.steps(false)
    });
    match (through, direct) {
        (0, None | Some(0)) => println!("smoke: ok"),
        (0, Some(_)) => println!("smoke: ok through the relay, but not without it"),
        (_, Some(0)) => println!("smoke: failed through the relay, and ok without it"),
        _ => println!("smoke: failed"),
    }
    through
}

struct Smoke<'a> {
    socket: &'a Path,
    admin: Option<&'a Path>,
    options: &'a Options,
}

impl Smoke<'_> {
    fn steps(&self, relayed: bool) -> u8 {
        type Run<'a> = fn(&Smoke<'a>) -> Step;
        // Number, what, whether it needs the relay.
        let steps: [(u32, &str, bool, Run<'_>); 8] = [
            (1, "the socket is there", false, Self::file),
            (2, "a client can connect", false, Self::connects),
            (3, "the DPU relay answers", true, |smoke| smoke.probe("probe", Class::Terminator)),
            (4, "the DPU relay reaches its application", true, |smoke| {
                smoke.probe("probe-app", Class::Terminator)
            }),
            (5, "one round trip", false, Self::round_trip),
            (6, "many round trips", false, Self::round_trips),
            (7, "many clients, one of which does not read", false, Self::crowd),
            (8, "half-closed", false, Self::half_close),
        ];
        for (number, what, needs_relay, step) in steps {
            if number > self.options.steps || (needs_relay && (!relayed || self.admin.is_none())) {
                continue;
            }
            match step(self) {
                Ok(said) => println!("step {number}: {what}: ok {said}"),
                Err(Failed { class, why, status }) => {
                    println!("step {number}: {what}: FAILED, {class}: {why}");
                    return status;
                }
            }
            if number == 6
                && let Some(admin) = self.admin
                && self.say_admin("status").is_ok_and(|status| status["admitted"] == Value::Bool(false))
            {
                match ask(admin, "admit", self.options.timeout) {
                    Ok(_) => println!("the other clients are let in (--hold)"),
                    Err(fault) => println!("the other clients could not be let in: {fault}"),
                }
            }
        }
        0
    }

    fn file(&self) -> Step {
        if crate::settings::abstract_name(self.socket).is_some() {
            return Ok("(abstract)".to_owned());
        }
        match std::fs::symlink_metadata(self.socket) {
            Ok(meta) if meta.file_type().is_socket() => Ok(String::new()),
            Ok(_) => Err(Failed::new(Class::Bind, "it is not a socket".to_owned())),
            Err(e) if e.kind() == ErrorKind::NotFound => self.absent(),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(Failed::new(Class::Permission, e.to_string()))
            }
            Err(e) => Err(Failed::new(Class::Connect, e.to_string())),
        }
    }

    /// A socket that is not there may be told of by its relay, as soon as that has tried to reach the other side.
    fn absent(&self) -> Step {
        let path = self.socket.display();
        match self.admin.map(crate::local::dial) {
            Some(Ok(_) | Err(Errno::EAGAIN)) => {}
            Some(Err(errno @ (Errno::EACCES | Errno::EPERM))) => {
                let why = format!("{path} does not exist, and its relay may not be asked: {errno}");
                return Err(Failed::new(Class::Permission, why));
            }
            _ => return Err(self.why_no_relay()),
        }
        let until = Instant::now() + self.options.timeout;
        loop {
            let status = self.say_admin("status").map_err(|failed| Failed {
                why: format!("{path} does not exist: {}", failed.why),
                ..failed
            })?;
            if self.socket.exists() {
                return Ok("(it came just now)".to_owned());
            }
            let known = status["last_error"].as_str();
            if known.is_none() && Instant::now() < until {
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            let last = known.unwrap_or("no error so far");
            let (class, last) = Class::split(last).unwrap_or((Class::Connect, last));
            let state = status["session"].as_str().unwrap_or("unknown");
            let why = format!("{path} does not exist, as its relay has no session ({state}): {last}");
            return Err(other_side(&status)
                .map_or_else(|| Failed::new(class, &*why), |cause| Failed::by(cause, &*why)));
        }
    }

    fn why_no_relay(&self) -> Failed {
        let path = self.socket.display();
        let others = Registry::of_this_user().alive().into_iter().filter(|relay| relay.role == Role::Host);
        let others: Vec<String> = others.map(|relay| relay.socket.display().to_string()).collect();
        if others.is_empty() {
            let why = format!("{path} does not exist, and no relay runs for it: not started");
            return Failed::by(Cause::NotStarted, why);
        }
        let why = format!(
            "{path} does not exist, and no relay runs for it: another path? Relays of this user run for {}",
            others.join(", ")
        );
        Failed::by(Cause::OtherPath, why)
    }

    fn connect(&self) -> Step<UnixStream> {
        let stream = crate::local::dial(self.socket).map_err(|errno| {
            let class = match errno {
                Errno::EACCES | Errno::EPERM => Class::Permission,
                _ => Class::Connect,
            };
            match errno {
                Errno::ECONNREFUSED => {
                    Failed::by(Cause::Stale, format!("{errno}: a stale file, on which nobody listens"))
                }
                Errno::EAGAIN => Failed::new(class, format!("{errno}: its queue is full")),
                _ => Failed::new(class, errno.to_string()),
            }
        })?;
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(self.options.timeout)))
            .and_then(|()| stream.set_write_timeout(Some(self.options.timeout)));
        ready.map_err(|e| Failed::new(Class::Connect, e.to_string()))?;
        Ok(stream)
    }

    fn connects(&self) -> Step {
        self.connect().map(|_| String::new())
    }

    fn say_admin(&self, command: &str) -> Step<Value> {
        let Some(admin) = self.admin else {
            return Err(Failed::new(Class::Connect, "there is no admin socket"));
        };
        ask(admin, command, self.options.timeout.max(Duration::from_secs(6))).map_err(|fault| {
            let hint = match fault.exit {
                Exit::NotAsked => "; --socket must be that of a host relay, not of an application",
                _ => "",
            };
            Failed::new(fault.class.unwrap_or(Class::Connect), fault.text + hint)
        })
    }

    fn probe(&self, command: &str, class: Class) -> Step {
        let answer = self.say_admin(command)?;
        if self.say_admin("status")?["role"] == "dpu" {
            let why =
                "this is the DPU relay, and its application's socket; the test begins at the host relay's";
            return Err(Failed::new(Class::Connect, why));
        }
        if answer["ok"] == Value::Bool(true) {
            return Ok(String::new());
        }
        if let Some(errno) = answer["application_error"].as_str() {
            return Err(Failed::by(Cause::Application, format!("its application: {errno}")));
        }
        let why = answer["error"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
        let cause = self.say_admin("status").ok().as_ref().and_then(other_side);
        Err(cause.map_or_else(|| Failed::new(class, &*why), |cause| Failed::by(cause, &*why)))
    }

    /// What both relays have moved.
    fn counts(&self) -> Option<[Bytes; 2]> {
        let answer = self.say_admin("probe").ok()?;
        let side = |name: &str| serde_json::from_value(answer[name].clone()).ok();
        Some([side("ours")?, side("theirs")?])
    }

    /// What the echo has got and given.
    fn echo_counts(&self) -> Option<(u64, u64)> {
        let mut stream = self.connect().ok()?;
        stream.write_all(COUNTS).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        let (got, gave) = line.trim().split_once(' ')?;
        Some((got.parse().ok()?, gave.parse().ok()?))
    }

    fn round_trip(&self) -> Step {
        let mut before = self.counts();
        let echo_before = before.and_then(|_| self.echo_counts());
        // Without an answer its question may be what stands in the way of the rest, and counts.
        if echo_before.is_some() {
            before = self.counts();
        }
        let mut got = 0;
        let mut stream = self.connect()?;
        let outcome = exchange(&mut stream, &pattern(1, self.options.bytes), &mut got).map_err(|why| {
            // What was asked already is not asked again: its question counts.
            let is_echo = echo_before.is_some() || (before.is_none() && self.echo_counts().is_some());
            if is_echo { why } else { why + NEEDS_ECHO }
        });
        let Some(before) = before else {
            return outcome.map(|()| String::new()).map_err(|why| Failed::new(Class::Terminator, why));
        };
        let after = self.counts();
        drop(stream);
        let echo_after = if outcome.is_ok() { self.echo_counts() } else { None };
        let arrows = after.map(|after| arrows(before, after, echo_before.zip(echo_after), got as u64));
        for (name, bytes) in arrows.iter().flatten() {
            println!("    {bytes:>10} bytes  {name}");
        }
        outcome.map(|()| String::new()).map_err(|why| {
            let dark = match &arrows {
                Some(arrows) => dark(arrows).map(|name| format!("; the dark arrow: {name}")),
                None => Some("; the other relay does not answer any more".to_owned()),
            };
            Failed::new(Class::Terminator, why + &dark.unwrap_or_default())
        })
    }

    fn round_trips(&self) -> Step {
        let fail = |why| Failed::new(Class::Below, why);
        let mut stream = self.connect()?;
        let sent = pattern(2, self.options.bytes);
        let mut times = Vec::new();
        for _ in 0..self.options.count {
            let began = Instant::now();
            exchange(&mut stream, &sent, &mut 0).map_err(fail)?;
            times.push(began.elapsed());
        }
        times.sort();
        let at = |share: usize| {
            let index = (times.len() * share / 100).min(times.len().saturating_sub(1));
            times.get(index).copied().unwrap_or_default().as_micros()
        };
        Ok(format!("(microseconds: median {}, 99 % {}, longest {})", at(50), at(99), at(100)))
    }

    fn crowd(&self) -> Step {
        let fail = |why| Failed::new(Class::Below, why);
        // It sends more than all buffers on the way hold, and reads nothing.
        let stalled = self.connect()?;
        let mut writer = stalled.try_clone().map_err(|e| fail(e.to_string()))?;
        let stuck = thread::spawn(move || writer.write_all(&vec![0; 16 << 20]).is_err());
        let outcome = thread::scope(|scope| {
            let clients: Vec<_> = (0..self.options.clients)
                .map(|seed| {
                    scope.spawn(move || {
                        let mut stream = self.connect()?;
                        let sent = pattern(u64::from(seed) + 3, self.options.bytes);
                        for _ in 0..self.options.count {
                            exchange(&mut stream, &sent, &mut 0).map_err(|why| {
                                Failed::new(
                                    Class::Below,
                                    format!("client {seed} beside one that stands still: {why}"),
                                )
                            })?;
                        }
                        Ok(())
                    })
                })
                .collect();
            clients.into_iter().try_for_each(|client| match client.join() {
                Ok(outcome) => outcome,
                Err(_) => Err(fail("a client panicked".to_owned())),
            })
        });
        // Its writer stands in a write, or will meet its time limit.
        _ = stalled.shutdown(Shutdown::Both);
        _ = stuck.join();
        outcome.map(|()| format!("({} clients)", self.options.clients))
    }

    fn half_close(&self) -> Step {
        let fail = |why| Failed::new(Class::Below, why);
        let mut stream = self.connect()?;
        let sent = pattern(99, self.options.bytes);
        let mut got = Vec::new();
        let io = stream
            .write_all(&sent)
            .and_then(|()| stream.shutdown(Shutdown::Write))
            .and_then(|()| stream.read_to_end(&mut got));
        match io {
            Ok(_) if got == sent => Ok(String::new()),
            Ok(_) => Err(fail(format!(
                "{} of {} bytes came back after the end; with --strict-nvidia that is so",
                got.len(),
                sent.len()
            ))),
            Err(e) => Err(fail(e.to_string())),
        }
    }
}

/// What the host relay knows of the other side, if it has no session.
fn other_side(status: &Value) -> Option<Cause> {
    match status["other_side"].as_str()? {
        Absence::NOBODY => Some(Cause::Silent),
        Absence::NOT_SERVED => Some(Cause::OtherService),
        Absence::TAKEN => Some(Cause::Taken),
        _ => None,
    }
}

/// Each arrow in the order in which bytes pass, and how many were seen on it.
fn arrows(
    before: [Bytes; 2],
    after: [Bytes; 2],
    echo: Option<((u64, u64), (u64, u64))>,
    got: u64,
) -> Vec<(&'static str, u64)> {
    let delta = |side: usize, field: fn(&Bytes) -> u64| field(&after[side]) - field(&before[side]);
    let mut all = vec![
        ("client -> host relay", delta(0, |b| b.local_in)),
        ("host relay -> link", delta(0, |b| b.link_out)),
        ("link -> DPU relay", delta(1, |b| b.link_in)),
        ("DPU relay -> application", delta(1, |b| b.local_out)),
    ];
    if let Some((before, after)) = echo {
        all.push(("application has read", after.0 - before.0));
        all.push(("application has written", after.1 - before.1));
    }
    all.extend([
        ("application -> DPU relay", delta(1, |b| b.local_in)),
        ("DPU relay -> link", delta(1, |b| b.link_out)),
        ("link -> host relay", delta(0, |b| b.link_in)),
        ("host relay -> client", delta(0, |b| b.local_out)),
        ("client has read", got),
    ]);
    all
}

/// Where bytes stay: the first arrow that carried none, or fewer than the one before it. A relay reads less where its own
/// way out is stuck; then it is that.
fn dark(arrows: &[(&'static str, u64)]) -> Option<&'static str> {
    let before = arrows.iter().map(|(_, bytes)| *bytes);
    let before = std::iter::once(1).chain(before);
    let first = arrows.iter().zip(before).position(|((_, bytes), before)| *bytes < before)?;
    let (name, bytes) = arrows[first];
    let behind =
        arrows.get(first + 1).filter(|(_, behind)| bytes > 0 && *behind == 0 && name.ends_with("relay"));
    Some(behind.map_or(name, |(name, _)| *name))
}

/// Sends and reads at once, so that any number of bytes fits; counts what came.
fn exchange(stream: &mut UnixStream, sent: &[u8], got: &mut usize) -> Result<(), String> {
    let mut writer = stream.try_clone().map_err(|e| e.to_string())?;
    thread::scope(|scope| {
        // Small ones need no helper.
        let helper = if sent.len() <= 4096 {
            writer.write_all(sent).map_err(|e| format!("cannot send: {e}"))?;
            None
        } else {
            Some(scope.spawn(move || writer.write_all(sent)))
        };
        let mut back = vec![0; sent.len()];
        while *got < back.len() {
            match stream.read(&mut back[*got..]) {
                Ok(0) => return Err(format!("the stream ended after {got} of {} bytes", sent.len())),
                Ok(bytes) => *got += bytes,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("{got} of {} bytes came back: {e}", sent.len())),
            }
        }
        if let Some(helper) = helper
            && !matches!(helper.join(), Ok(Ok(())))
        {
            return Err("cannot send".to_owned());
        }
        if back == sent { Ok(()) } else { Err("other bytes came back than were sent".to_owned()) }
    })
}

fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}
