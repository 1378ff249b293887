//! Processes: tests in processes of their own, peers that tests start, and the lines that they exchange.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than any single thing takes.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Longer than a test takes, also a long one.
const TEST_LIMIT: Duration = Duration::from_secs(600);

/// A test.
pub struct Test {
    pub name: &'static str,
    pub run: fn(),
    log_level: Option<&'static str>,
    too_long: Option<&'static str>,
}

impl Test {
    pub const fn new(name: &'static str, run: fn()) -> Self {
        Test { name, run, log_level: None, too_long: None }
    }

    /// For tests whose subject are failures: DOCA would write a line for each.
    pub const fn with_log_level(self, level: &'static str) -> Self {
        Test { log_level: Some(level), ..self }
    }

    /// Runs only with `--ignored`.
    pub const fn too_long(self, why: &'static str) -> Self {
        Test { too_long: Some(why), ..self }
    }
}

/// Runs the tests whose names contain one of the arguments.
pub fn run_all(tests: impl Iterator<Item = &'static Test>, args: &[String]) -> ExitCode {
    let (flags, names): (Vec<_>, Vec<_>) = args.iter().partition(|arg| arg.starts_with('-'));
    let has = |wanted: &str| flags.iter().any(|flag| *flag == wanted);
    let chosen = tests.filter(|test| names.is_empty() || names.iter().any(|name| test.name.contains(*name)));
    if has("--list") {
        chosen.for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for test in chosen {
        match test.too_long {
            Some(why) if !has("--ignored") && !has("--include-ignored") => {
                println!("test {} ... ignored, {why}: use --ignored", test.name);
                continue;
            }
            None if has("--ignored") => continue,
            _ => {}
        }
        let started = Instant::now();
        match run_one(test) {
            Ok(()) => println!("test {} ... ok, {:.1} s", test.name, started.elapsed().as_secs_f32()),
            Err(why) => {
                println!("test {} ... FAILED: {why}", test.name);
                failed += 1;
            }
        }
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// In a process of its own: settings are read once per process. Nothing may come out of its standard error.
fn run_one(test: &Test) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = this_program();
    command.args(["test", test.name]).env("DOCA_SIM_DIR", scratch.path().join("network"));
    command.env("DOCA_SIM_QUIET", "1").env_remove("DOCA_SIM_TOPOLOGY");
    command.env_remove("DOCA_LOG_LEVEL_SDK");
    if let Some(level) = test.log_level {
        command.env("DOCA_LOG_LEVEL_SDK", level);
    }
    let mut peer = Peer::spawn(test.name, command);
    while let Ok(line) = peer.lines.recv_timeout(TEST_LIMIT) {
        println!("    {line}");
    }
    let (status, said) = peer.end();
    if status.success() && said.is_empty() { Ok(()) } else { Err(format!("{status}\n{said}")) }
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("a program knows its file"))
}

/// Who lines are exchanged with.
pub trait Talk {
    /// Sends a line.
    fn say(&mut self, line: &str);
    /// The next line; panics when there is none in time.
    fn hear(&mut self) -> String;

    /// Waits for this line.
    fn expect(&mut self, line: &str) {
        assert_eq!(self.hear(), line);
    }
}

/// A process that this one started. It ends with its handle, and with this process.
pub struct Peer {
    name: String,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    /// Its standard error, line by line, and what was taken of it.
    log: Receiver<String>,
    said: String,
    readers: [Option<JoinHandle<()>>; 2],
}

impl Peer {
    /// Starts a peer.
    pub fn start(role: &str, args: &[&str]) -> Peer {
        Peer::start_with(role, args, &[])
    }

    /// Starts a peer with variables of its environment.
    pub fn start_with(role: &str, args: &[&str], variables: &[(&str, &str)]) -> Peer {
        let mut command = this_program();
        command.args(["role", role]).args(args).envs(variables.iter().copied());
        Peer::spawn(role, command)
    }

    fn spawn(name: &str, mut command: Command) -> Peer {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started again");
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (lines, stdout) = lines_of(stdout.expect("piped"));
        let (log, stderr) = lines_of(stderr.expect("piped"));
        let stdin = child.stdin.take().expect("piped");
        let readers = [Some(stdout), Some(stderr)];
        Peer { name: name.to_owned(), child, stdin, lines, log, said: String::new(), readers }
    }

    /// The next line, for which it has this long.
    pub fn hear_for(&mut self, time: Duration) -> String {
        match self.lines.recv_timeout(time) {
            Ok(line) => line,
            Err(why) => {
                let _ = self.child.kill();
                let (status, said) = self.end();
                panic!("{} says nothing ({why}, {status})\n{said}", self.name)
            }
        }
    }

    /// Waits for this line, progressing an engine that the peer needs meanwhile.
    #[cfg(feature = "comch")]
    pub fn expect_eventually(&mut self, line: &str, engine: &doca::ProgressEngine) {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Ok(said) = self.lines.try_recv() {
                return assert_eq!(said, line);
            }
            assert!(Instant::now() < deadline, "{} says nothing", self.name);
            engine.wait_for(Duration::from_millis(1)).unwrap();
        }
    }

    /// Waits for the next line of its standard error.
    pub fn hear_log(&mut self) -> String {
        let line = self.log.recv_timeout(LIMIT).expect("it writes to its standard error");
        let _ = writeln!(self.said, "{line}");
        line
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// SIGKILL. When this returns it is dead.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Waits for its end; gives how it ended, and all of its standard error.
    fn end(&mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + LIMIT;
        // Its output closes when it ends.
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    break;
                }
            }
        }
        let status = self.child.wait().expect("a child can be waited for");
        self.said.extend(self.log.iter().map(|line| line + "\n"));
        (status, std::mem::take(&mut self.said))
    }

    /// Waits for its end, which must be a good one; gives its standard error.
    pub fn finish_with(mut self) -> String {
        let (status, said) = self.end();
        assert!(status.success(), "{}: {status}\n{said}", self.name);
        said
    }

    /// Waits for its end, which must be a good one without complaints.
    pub fn finish(self) {
        let name = self.name.clone();
        assert_eq!(self.finish_with(), "", "standard error of {name}");
    }
}

impl Talk for Peer {
    fn say(&mut self, line: &str) {
        let said = self.stdin.write_all(format!("{line}\n").as_bytes());
        said.unwrap_or_else(|error| panic!("{} does not listen: {error}", self.name));
    }

    fn hear(&mut self) -> String {
        self.hear_for(LIMIT)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The readers come to the end of its output, and close it.
        for reader in &mut self.readers {
            reader.take().map(JoinHandle::join);
        }
    }
}

/// The lines of a pipe as they come, until it closes.
fn lines_of(pipe: impl Read + Send + 'static) -> (Receiver<String>, JoinHandle<()>) {
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    (lines, reader)
}

/// The process that started this one. This one ends with it.
pub struct Parent {
    lines: Receiver<String>,
}

impl Parent {
    pub fn new() -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
            std::process::abort();
        });
        Parent { lines }
    }

    /// What it has said, if anything.
    pub fn said(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }
}

impl Talk for Parent {
    fn say(&mut self, line: &str) {
        println!("{line}");
    }

    fn hear(&mut self) -> String {
        self.lines.recv_timeout(LIMIT).expect("the test says something")
    }
}

/// Bytes as a line.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A line of [`to_hex`].
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
