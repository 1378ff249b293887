//! What runs in the processes: scenes, in one call of which a failure is put, and their partners, in which nothing fails.

use crate::{bridge, comch, rdma, target};
use doca::{Error, Refusal, Result};
use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything takes that goes well.
pub const LIMIT: Duration = Duration::from_secs(10);

/// Where a process runs: the value of a variable of the simulator.
pub const SIDE: &str = "DOCA_SIM_SIDE";
const HOST: &str = "host";
const DPU: &str = "dpu";

/// Gets what fails without ending a scene.
pub type Told<'a> = &'a mut dyn FnMut(&str);

/// Everything of some crates once, in safe Rust: what it calls in DOCA is what the faults strike.
pub struct Scene {
    pub name: &'static str,
    pub side: &'static str,
    pub run: fn(Told<'_>) -> Result<()>,
    /// The directories of the crates whose calls are struck here. Those of others are if no scene before calls them.
    pub crates: &'static [&'static str],
    /// What fails in it besides, so that it is told of that.
    pub fails: &'static str,
    /// How profiles begin that change nothing here.
    pub indifferent: &'static [&'static str],
}

/// All scenes.
pub const SCENES: &[Scene] = &[
    Scene {
        name: "rdma",
        side: HOST,
        run: rdma::run,
        crates: &["doca-common", "doca-rdma"],
        fails: "",
        indifferent: &["sta-", "comch-"],
    },
    Scene {
        name: "representors",
        side: DPU,
        run: rdma::run_on_dpu,
        crates: &[],
        fails: "",
        indifferent: &["sta-", "comch-"],
    },
    Scene {
        name: "comch client",
        side: HOST,
        run: comch::client,
        crates: &["doca-comch"],
        fails: "",
        indifferent: &["sta-"],
    },
    Scene {
        name: "comch server",
        side: DPU,
        run: comch::server,
        crates: &["doca-comch"],
        fails: "",
        indifferent: &["sta-"],
    },
    Scene {
        name: "bridge",
        side: HOST,
        run: bridge::run,
        crates: &[],
        fails: "",
        indifferent: &["sta-", "comch-"],
    },
    Scene {
        name: "storage target",
        side: HOST,
        run: target::run,
        crates: &["doca-sta"],
        fails: "unit=1:recoverable;",
        indifferent: &["comch-"],
    },
];

/// Who is at the other end of a scene, until `over`.
type Role = fn(over: &dyn Fn() -> bool) -> Result<()>;

const PARTNERS: &[(&str, &str, Role)] =
    &[("server", DPU, comch::be_server), ("client", HOST, comch::be_client)];

/// The variable that tells a process what it is.
pub const ROLE: &str = "DOCA_TEST_ROLE";

/// What a process is that one of the tests started.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// This test binary again, for one of its tests that is something else there.
pub fn process(test: &str, role: &str, side: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(SIDE, side).env("DOCA_SIM_QUIET", "1");
    command
}

/// The process at the other end. It lives no longer than its handle, nor than this process.
pub struct Partner {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What a partner says when it can be met.
const READY: &str = "ready";

impl Partner {
    /// Starts it in the network of this process, and waits until it can be met.
    pub fn start(name: &str) -> Self {
        Self::start_with(name, |command| command)
    }

    fn start_with(name: &str, change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let (_, side, _) = PARTNERS.iter().find(|(known, ..)| *known == name).expect("a partner");
        let mut command = process("partner", name, side);
        change(&mut command);
        command.env_remove("DOCA_SIM_FAULTS").env_remove("DOCA_SIM_TRACE");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let said = lines.by_ref().map_while(|line| line.ok()).find(|line| line.ends_with(READY));
        assert!(said.is_some(), "the partner ends before its time");
        Partner { child, lines }
    }

    /// Lets it go, and waits for its end.
    fn end(&mut self) -> std::io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        self.lines.by_ref().for_each(drop);
        self.child.wait()
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Starts each partner in a network of its own, and lets it go.
pub fn start_partners() {
    for (name, ..) in PARTNERS {
        let network = tempfile::tempdir().unwrap();
        let mut partner = Partner::start_with(name, |command| command.env("DOCA_SIM_DIR", network.path()));
        assert!(partner.end().unwrap().success(), "the {name}");
        let left: Vec<_> = std::fs::read_dir(network.path()).unwrap().collect();
        assert!(left.is_empty(), "the {name} leaves {left:?}");
    }
}

/// The partner's process.
pub fn be_partner(name: &str) {
    let over = Arc::new(AtomicBool::new(false));
    let setter = over.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        setter.store(true, Ordering::Relaxed);
    });
    let (_, _, run) = PARTNERS.iter().find(|(known, ..)| *known == name).expect("a partner");
    if let Err(error) = run(&|| over.load(Ordering::Relaxed)) {
        eprintln!("the {name}: {error}");
    }
}

/// A partner can be met now.
pub fn say_ready() {
    println!("{READY}");
}

/// What a scene itself demands.
pub fn expect(held: bool) -> Result<()> {
    match held {
        true => Ok(()),
        false => Err(Error::refused("scenario", Refusal::Malformed)),
    }
}

/// Progresses until `take` gives something.
pub fn until<T>(engine: &doca::ProgressEngine, mut take: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = take()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(Error::refused("scenario", Refusal::TimedOut));
        }
        engine.progress()?;
        std::thread::yield_now();
    }
}
