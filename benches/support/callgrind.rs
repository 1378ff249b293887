//! Runs this very program under callgrind and reads what it counted.

use std::collections::HashMap;
use std::process::{Command, Stdio};

/// Instructions, by where they were executed, and allocations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// In the program itself: neither in DOCA's libraries nor in the system's.
    pub ours: f64,
    /// Everywhere.
    pub all: f64,
    /// Calls of the allocator's entry points, whoever made them.
    pub allocations: f64,
}

impl Counts {
    /// The difference of two runs.
    pub fn less(self, other: &Counts) -> Counts {
        Counts {
            ours: self.ours - other.ours,
            all: self.all - other.all,
            allocations: self.allocations - other.allocations,
        }
    }

    /// For each of so many.
    pub fn each(self, number: f64) -> Counts {
        Counts { ours: self.ours / number, all: self.all / number, allocations: self.allocations / number }
    }
}

/// Runs this program with `args` and counts.
pub fn run(args: &[&str]) -> Counts {
    let program = std::env::current_exe().expect("this program has a path");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("callgrind.out");
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(&program)
        .args(args)
        .env("DOCA_SIM_QUIET", "1")
        .stdout(Stdio::null())
        .status()
        .expect("valgrind can be started");
    assert!(status.success(), "{args:?} failed under callgrind");
    let text = std::fs::read_to_string(&out).expect("callgrind wrote its counts");
    let own = program.file_name().expect("a program has a name").to_string_lossy().into_owned();
    read(&text, &own)
}

const ALLOCATOR: &[&str] = &["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"];

/// Sums callgrind's format: the object and function that are current hold for the cost lines that follow; a cost line
/// behind `calls=` belongs to the callee and is counted there.
fn read(text: &str, own: &str) -> Counts {
    let mut names: HashMap<String, String> = HashMap::new();
    let (mut object, mut callee) = (String::new(), String::new());
    let mut called = false;
    let mut counts = Counts::default();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = named(&mut names, "ob", name);
        } else if let Some(name) = line.strip_prefix("fn=") {
            named(&mut names, "fn", name);
        } else if let Some(name) = line.strip_prefix("cob=") {
            named(&mut names, "ob", name);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = named(&mut names, "fn", name);
        } else if let Some(calls) = line.strip_prefix("calls=") {
            called = true;
            if ALLOCATOR.contains(&callee.as_str()) {
                counts.allocations += calls.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost: f64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0.0);
            if std::mem::take(&mut called) {
                continue;
            }
            counts.all += cost;
            if object.ends_with(own) {
                counts.ours += cost;
            }
        }
    }
    counts
}

/// Callgrind writes a name once, as `(7) name`, and then `(7)`.
fn named(names: &mut HashMap<String, String>, space: &str, written: &str) -> String {
    let (id, name) = written.split_once(')').unwrap_or((written, ""));
    let key = format!("{space}{id}");
    if !name.trim().is_empty() {
        names.insert(key.clone(), name.trim().to_owned());
    }
    names.get(&key).cloned().unwrap_or_default()
}
