//! The C target, compiled and run.

use doca_sim_initiator::Target;
use nvme_wire::Nqn;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A running target. Tests of one process share its network, and take turns.
pub struct CTarget {
    child: Child,
    /// Kept, so that it can say its last words.
    _output: BufReader<ChildStdout>,
    _turn: MutexGuard<'static, ()>,
}

fn prefix() -> PathBuf {
    std::env::var_os("DOCA_DIR").expect("DOCA_DIR names the SDK of the simulator").into()
}

fn libraries() -> PathBuf {
    prefix().join(format!("lib/{}-linux-gnu", std::env::consts::ARCH))
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/target.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("target");
        let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(cc);
        command.args([
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-DDOCA_ALLOW_EXPERIMENTAL_API",
            "-pthread",
        ]);
        command.arg("-I").arg(prefix().join("include")).arg("-o").arg(&program).arg(source);
        command.arg("-L").arg(libraries()).arg("-L").arg(libraries().join("doca-sim-rdmacm"));
        command.args(["-ldoca_sta", "-ldoca_rdma", "-ldoca_common", "-lrdmacm"]);
        assert!(command.status().unwrap().success(), "{command:?}");
        program
    })
}

impl CTarget {
    pub fn start() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = format!("{}:{}", libraries().join("doca-sim-rdmacm").display(), libraries().display());
        let mut child = Command::new(program())
            .env("LD_LIBRARY_PATH", path)
            .env("DOCA_SIM_QUIET", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        CTarget { child, _output: output, _turn: turn }
    }

    pub fn target(&self) -> Target {
        let nqn = Nqn::new("nqn.2026-01.org.example:disk").unwrap();
        Target::new("mlx5_1", "192.168.1.1:4420".parse().unwrap(), nqn)
    }

    /// Lets it end by itself; it must have nothing to complain of.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for CTarget {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
