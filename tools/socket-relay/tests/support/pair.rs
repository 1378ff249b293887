//! Two relay processes over DOCA Comch, on a network of their own.

use nix::sys::signal::Signal;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub const SOON: Duration = Duration::from_secs(60);

/// Looks again and again until there is an answer: files, descriptors and numbers of other processes tell nobody that they
/// have changed. Between two looks those run whom it waits for.
pub fn eventually<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let until = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "not in time: {what}");
        thread::yield_now();
    }
}

/// Waits until a file is there no more.
pub fn gone(path: &Path) {
    eventually(&format!("{} goes", path.display()), || (!path.exists()).then_some(()));
}

/// Devices of the simulator's default topology.
pub const HOST_DEVICE: &str = "0000:3b:00.0";
pub const DPU_DEVICE: &str = "0000:03:00.0";

pub struct Place {
    pub dir: tempfile::TempDir,
    /// For both relays.
    fast_path: &'static str,
    /// Of the simulator, for all programs here.
    profile: &'static str,
}

impl Place {
    pub fn new() -> Place {
        Place::with_fast_path("auto")
    }

    pub fn with_fast_path(fast_path: &'static str) -> Place {
        Place { dir: tempfile::tempdir().unwrap(), fast_path, profile: "" }
    }

    /// On a network that behaves in another way.
    pub fn with_profile(profile: &'static str) -> Place {
        Place { profile, ..Place::with_fast_path("require") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn client_path(&self) -> PathBuf {
        self.path("client.sock")
    }

    pub fn server_path(&self) -> PathBuf {
        self.path("server.sock")
    }

    /// The program, with this place's network.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doca_socket_relay"));
        command.env("DOCA_SIM_DIR", self.path("network")).env("DOCA_SIM_QUIET", "1");
        // Where relays of this place know of each other.
        command.env("XDG_RUNTIME_DIR", self.path("runtime"));
        if !self.profile.is_empty() {
            command.env("DOCA_SIM_PROFILE", self.profile);
        }
        command
    }

    pub fn host_command(&self) -> Command {
        let mut command = self.program();
        command.arg("-s").arg(self.client_path()).args(["-n", "service", "-p", HOST_DEVICE]);
        command.args(["--fast-path", self.fast_path]);
        command
    }

    pub fn dpu_command(&self) -> Command {
        let mut command = self.program();
        command.env("DOCA_SIM_SIDE", "dpu").arg("-s").arg(self.server_path());
        command.args(["-n", "service", "-p", DPU_DEVICE, "-r", HOST_DEVICE, "--fast-path", self.fast_path]);
        command
    }

    pub fn host(&self, args: &[&str]) -> Process {
        Process::start(self.host_command().args(args), &self.path("host.log"))
    }

    pub fn dpu(&self, args: &[&str]) -> Process {
        Process::start(self.dpu_command().args(args), &self.path("dpu.log"))
    }

    pub fn pair(&self) -> [Process; 2] {
        [self.dpu(&["--probe-app", "off"]), self.host(&["--probe-app", "off"])]
    }

    /// The echo server in the application's place, listening.
    pub fn echo_server(&self) -> Process {
        let mut command = self.program();
        command.args(["echo", "-s"]).arg(self.server_path());
        let server = Process::start(&mut command, &self.path("echo.log"));
        drop(connect(&self.server_path()));
        server
    }

    /// Connects as soon as somebody listens.
    pub fn client(&self) -> UnixStream {
        connect(&self.client_path())
    }

    /// What the admin socket of one relay says.
    pub fn ask(&self, socket: &Path, command: &str) -> serde_json::Value {
        let mut path = socket.as_os_str().to_owned();
        path.push(".admin");
        let mut stream = connect(Path::new(&path));
        writeln!(stream, "{command}").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"))
    }

    /// Whether the bytes of streams took the path that they should, and no other.
    pub fn check_path(&self) {
        for socket in [self.client_path(), self.server_path()] {
            let metrics = self.ask(&socket, "metrics");
            let number = |of: &serde_json::Value| of.as_u64().unwrap();
            let all = [&metrics["bytes"]["link_out"], &metrics["bytes"]["link_in"]].map(number);
            let fast = [&metrics["fast_bytes_out"], &metrics["fast_bytes_in"]].map(number);
            let wanted = if self.fast_path == "off" { [0, 0] } else { all };
            assert!(fast == wanted && all[0] > 0 && all[1] > 0, "{metrics}");
        }
    }

    /// Waits until a number of a relay's metrics is what it should be.
    pub fn wait_for_metric(&self, socket: &Path, name: &str, wanted: u64) {
        eventually(&format!("{name} is {wanted}"), || {
            (self.ask(socket, "metrics")[name] == wanted).then_some(())
        });
    }
}

pub fn connect(path: &Path) -> UnixStream {
    let stream =
        eventually(&format!("somebody listens on {}", path.display()), || UnixStream::connect(path).ok());
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.set_write_timeout(Some(SOON)).unwrap();
    stream
}

/// A process that ends with its owner.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub fn start(command: &mut Command, log: &Path) -> Process {
        let file = File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Process { child, log: log.to_owned() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// SIGKILL, and the end of it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self) {
        self.child.wait().unwrap();
    }

    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    pub fn signal(&self, signal: Signal) {
        let id = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(id, signal).unwrap();
    }

    /// Its exit status, once it ends.
    pub fn status(&mut self) -> Option<i32> {
        eventually("the process ends", || self.child.try_wait().unwrap()).code()
    }

    /// The same, where it has ended already.
    pub fn try_status(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().and_then(|status| status.code())
    }

    /// Memory that is its own, in KiB.
    pub fn memory(&self) -> u64 {
        memory(self.child.id())
    }

    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for one that has ended and been waited for.
        _ = self.child.kill();
        _ = self.child.wait();
        if thread::panicking() {
            eprintln!("{}:\n{}", self.log.display(), self.log());
        }
    }
}

/// Private memory of a process, in KiB.
pub fn memory(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// An application that sends back what comes, and ends when its client does.
pub fn echo(listener: UnixListener) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::Builder::new().stack_size(256 << 10).spawn(move || echo_one(&mut stream)).unwrap();
        }
    });
}

fn echo_one(stream: &mut UnixStream) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) if stream.write_all(&buffer[..bytes]).is_ok() => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            _ => return,
        }
    }
    _ = stream.shutdown(Shutdown::Write);
}

/// Bytes that no other seed gives.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}
