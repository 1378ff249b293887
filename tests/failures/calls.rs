//! One run of the scenario in a process of its own, and what it said.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// In front of what the scenario says; the test harness prints too.
const MARK: &str = "report: ";

/// Seconds until a process counts as hanging. What cannot be stopped is waited for by design; see
/// [`doca::engine::PATIENCE`].
const HANGS: u32 = 30;

/// Which call fails, with which code, under which profile. Without a function: none.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub function: String,
    pub nth: usize,
    pub code: String,
    /// Where the scenario runs: on the host, unless it says so.
    pub side: Side,
    pub profile: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function.is_empty() {
            true => f.write_str("no failure")?,
            false => write!(f, "{}, call {}: {}", self.function, self.nth, self.code)?,
        }
        if self.profile.is_empty() { Ok(()) } else { write!(f, " (profile {})", self.profile) }
    }
}

pub enum Verdict {
    Right,
    Wrong(String),
}

/// Where a process runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Side {
    #[default]
    Host,
    Dpu,
}

const SIDE: &str = "DOCA_SIM_SIDE";

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Host => "host",
            Side::Dpu => "dpu",
        }
    }
}

/// Whether this process is on a DPU.
pub fn is_dpu() -> bool {
    std::env::var(SIDE).is_ok_and(|side| side == Side::Dpu.name())
}

/// How often a scenario calls a function, and on which side.
pub struct Calls {
    pub count: usize,
    pub side: Side,
}

/// What came of it.
pub struct Run {
    pub status: ExitStatus,
    /// The error that ended the scenario.
    pub value: Option<String>,
    /// Everything that was said, that error too.
    pub lines: Vec<String>,
    pub ended: bool,
    /// Names of files that are left in the network's directory.
    pub left: Vec<String>,
    /// What the process wrote to standard error: DOCA's own lines among it.
    pub stderr: String,
}

impl Run {
    pub fn of(case: &Case) -> Self {
        let mut command = command(case.side);
        if !case.function.is_empty() {
            let rule = format!("call={}:{}:{}", case.function, case.nth, case.code);
            command.env("DOCA_SIM_FAULTS", rule);
        }
        if !case.profile.is_empty() {
            command.env("DOCA_SIM_PROFILE", &case.profile);
        }
        if crate::table::leaks(&case.function) {
            command.env("ASAN_OPTIONS", "detect_leaks=0");
        }
        Self::by(&mut command)
    }

    fn by(command: &mut Command) -> Self {
        let network = tempfile::tempdir().unwrap();
        let output = command.env("DOCA_SIM_DIR", network.path()).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> =
            stdout.lines().filter_map(|line| line.split_once(MARK)).map(|(_, text)| text).collect();
        let value = lines.iter().find_map(|line| line.strip_prefix("value "));
        let left = std::fs::read_dir(network.path()).unwrap();
        Run {
            status: output.status,
            value: value.map(str::to_owned),
            ended: lines.contains(&"end "),
            lines: lines.into_iter().map(str::to_owned).collect(),
            left: left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Whether the process was still there when its time was over.
    pub fn hung(&self) -> bool {
        self.status.signal() == Some(libc::SIGALRM)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines.iter().map(String::as_str).chain(self.stderr.lines());
        lines.into_iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

/// The scenario of a side in this binary, with no other setting than the network's.
fn command(side: Side) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "scenario", "--ignored", "--nocapture", "--test-threads=1"]);
    for variable in ["FAULTS", "PROFILE", "TRACE", "TOPOLOGY", "STRICT"] {
        command.env_remove(format!("DOCA_SIM_{variable}"));
    }
    command.env("DOCA_SIM_QUIET", "1").env(SIDE, side.name()).stdin(Stdio::null());
    command
}

/// What the scenarios call when nothing fails, and how often: functions that can fail. What both call is the host's.
pub fn traced() -> BTreeMap<String, Calls> {
    let mut functions = traced_on(Side::Dpu);
    functions.extend(traced_on(Side::Host));
    functions
}

fn traced_on(side: Side) -> BTreeMap<String, Calls> {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let run = Run::by(command(side).env("DOCA_SIM_TRACE", trace.path()));
    assert!(run.ended && run.status.success() && run.value.is_none(), "{}\n{run}", run.status);
    let mut functions = BTreeMap::new();
    for line in std::fs::read_to_string(trace.path()).unwrap().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields[2] != "-" {
            functions.entry(fields[1].to_owned()).or_insert(Calls { count: 0, side }).count += 1;
        }
    }
    functions
}

/// The codes that DOCA's headers document for each function.
pub fn documented() -> BTreeMap<String, Vec<String>> {
    let mut documented = BTreeMap::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/abi")).unwrap() {
        for line in std::fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if let ["fn", name, "doca_error_t", _, _, codes, ..] = fields[..] {
                documented.insert(name.to_owned(), codes.split(' ').map(str::to_owned).collect());
            }
        }
    }
    documented
}

/// The C functions that the sources of the safe crates name.
pub fn made_by_the_crates() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for dir in ["doca-common/src", "doca-rdma/src"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir), &mut names);
    }
    names
}

fn collect(path: &Path, names: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), names);
        }
        return;
    }
    let text = std::fs::read_to_string(path).unwrap();
    let code = text.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with("#["));
    for word in code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')) {
        // The table of advice knows functions of other libraries too.
        let ours = !word.starts_with("doca_comch_") && !word.starts_with("doca_sta_");
        if word.starts_with("doca_") && ours {
            names.insert(word.to_owned());
        }
    }
}

/// The names in the table of profiles.
pub fn profiles() -> Vec<String> {
    let text = include_str!("../../doca-sim/PROFILES.md");
    let row = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let names: Vec<String> = text.lines().filter_map(row).collect();
    assert!(!names.is_empty());
    names
}

/// A line for the process that started this one.
pub fn tell(what: &str, text: &str) {
    println!("{MARK}{what} {}", text.replace('\n', " "));
}

/// Ends this process by a signal when its time is over.
pub fn limit_this_process() {
    // SAFETY: sets a timer of this process, whose signal has no handler.
    unsafe { libc::alarm(HANGS) };
}

/// Tells what these crates log, and writes what DOCA logs to standard error.
pub fn log_lines() {
    struct Lines;

    impl log::Log for Lines {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            match record.target() {
                "doca" => eprintln!("{}", record.args()),
                _ => tell("log", &record.args().to_string()),
            }
        }

        fn flush(&self) {}
    }

    log::set_logger(&Lines).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
}
