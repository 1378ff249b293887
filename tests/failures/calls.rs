//! One run of a scene in a process of its own, and what it said.

use crate::scenes::{self, Scene};
use crate::table;
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
#[derive(Clone)]
pub struct Case {
    pub scene: &'static Scene,
    pub function: String,
    pub nth: usize,
    pub code: String,
    pub profile: String,
}

impl Case {
    /// A scene in which nothing fails.
    pub fn of(scene: &'static Scene) -> Self {
        Case { scene, function: String::new(), nth: 0, code: String::new(), profile: String::new() }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.scene.name)?;
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

/// What came of it.
pub struct Run {
    pub status: ExitStatus,
    /// The error that ended the scene.
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
        let mut command = command(case.scene);
        if !case.function.is_empty() {
            let rule = format!("{}call={}:{}:{}", case.scene.fails, case.function, case.nth, case.code);
            command.env("DOCA_SIM_FAULTS", rule);
        }
        if !case.profile.is_empty() {
            command.env("DOCA_SIM_PROFILE", &case.profile);
        }
        if table::leaks(&case.function) {
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

/// A scene in this binary, with no other setting than the network's.
fn command(scene: &Scene) -> Command {
    let mut command = scenes::process("scene", scene.name, scene.side);
    for variable in ["PROFILE", "TRACE", "TOPOLOGY", "STRICT"] {
        command.env_remove(format!("DOCA_SIM_{variable}"));
    }
    command.env("DOCA_SIM_FAULTS", scene.fails).stdin(Stdio::null());
    command
}

/// What a scene calls when nothing fails, and how often: functions that can fail.
pub fn traced(scene: &Scene) -> BTreeMap<String, usize> {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let run = Run::by(command(scene).env("DOCA_SIM_TRACE", trace.path()));
    let well = run.ended && run.status.success() && run.value.is_none();
    assert!(well, "{}: {}\n{run}", scene.name, run.status);
    let mut functions = BTreeMap::new();
    for line in std::fs::read_to_string(trace.path()).unwrap().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let is_fallible = fields[2] != "-" || table::RDMACM.iter().any(|(name, _)| *name == fields[1]);
        if is_fallible {
            *functions.entry(fields[1].to_owned()).or_insert(0) += 1;
        }
    }
    functions
}

/// The codes that DOCA's headers document for each function, and those of librdmacm that the crates call.
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
    let codes = |codes: &str| codes.split(' ').map(str::to_owned).collect();
    documented.extend(table::RDMACM.iter().map(|(name, all)| ((*name).to_owned(), codes(all))));
    documented
}

/// The C functions that the sources of crates name.
pub fn made_by(crates: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for directory in crates {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory).join("src"), &mut names);
    }
    // The table of advice knows functions of other libraries too.
    if crates.contains(&"doca-common") {
        names.retain(|name| !name.starts_with("doca_comch_") && !name.starts_with("doca_sta_"));
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
    // Tests are the end of a file, and name what they like.
    let code = text
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .map(str::trim)
        .filter(|line| !line.starts_with("//") && !line.starts_with("#["));
    let words = code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    names.extend(
        words.filter(|word| word.starts_with("doca_") || word.starts_with("rdma_")).map(str::to_owned),
    );
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
