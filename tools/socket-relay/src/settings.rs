//! What a relay is told.

use crate::fault::Fault;
use crate::mux::Role;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// When the host's socket exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenWhen {
    /// While the other relay answers: clients of a dead service get ENOENT or ECONNREFUSED.
    Session,
    /// Always: clients wait for the other relay, for some seconds.
    Always,
}

/// Whether the host makes the DPU try the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeApp {
    /// When a session comes up, and again while it fails.
    Start,
    /// Every minute.
    Periodic,
    /// Never.
    Off,
}

/// Whether bytes of streams go over the fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UseFastPath {
    /// Where both sides can.
    Auto,
    /// Never.
    Off,
    /// There is no session without.
    Require,
}

/// What a relay is told. [`Settings::new`] has the defaults of the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Host: bound here. DPU: connected to.
    pub socket: PathBuf,
    /// Clients at a time.
    pub max_clients: u32,
    /// Bytes that each direction of a client may be ahead of its reader.
    pub window: u32,
    /// Upper bound of all windows together, in bytes.
    pub memory_cap: u64,
    /// Rights of the socket file.
    pub socket_mode: u32,
    /// Group of the socket file.
    pub socket_group: Option<String>,
    /// When the socket exists.
    pub listen_when: ListenWhen,
    /// How long streams may end by themselves after a drain was asked for.
    pub drain_timeout: Duration,
    /// Attempts in a row to reach the DPU; `None`: for ever.
    pub conn_retry: Option<u32>,
    /// Silence after which the peer is asked for a sign of life.
    pub heartbeat: Duration,
    /// Silence after which it counts as dead.
    pub dead_after: Duration,
    /// Whether bytes of streams go over the fast path.
    pub fast_path: UseFastPath,
    /// Whether the application is tried.
    pub probe_app: ProbeApp,
    /// The published limits of NVIDIA's relay: 512 clients, only the host's side ends a connection, and its FIN ends
    /// both directions.
    pub strict_nvidia: bool,
    /// One client until the smoke test passed or the admin socket admits the rest.
    pub hold: bool,
    /// Where to ask a running relay.
    pub admin_socket: Option<PathBuf>,
    /// Allows paths that begin with `@`, which have no permissions.
    pub allow_abstract: bool,
    /// Does not sleep.
    pub busy_poll: bool,
    /// Version of DOCA, for comparison with the other side's.
    pub doca_version: String,
}

/// Clients that NVIDIA's relay takes.
pub const NVIDIA_CLIENTS: u32 = 512;

impl Settings {
    /// The defaults.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Settings {
            socket: socket.into(),
            max_clients: NVIDIA_CLIENTS,
            window: 64 << 10,
            memory_cap: 64 << 20,
            socket_mode: 0o660,
            socket_group: None,
            listen_when: ListenWhen::Session,
            drain_timeout: Duration::from_secs(30),
            conn_retry: None,
            heartbeat: Duration::from_secs(1),
            dead_after: Duration::from_secs(5),
            fast_path: UseFastPath::Auto,
            probe_app: ProbeApp::Start,
            strict_nvidia: false,
            hold: false,
            admin_socket: None,
            allow_abstract: false,
            busy_poll: false,
            doca_version: String::new(),
        }
    }

    /// Bytes of all windows.
    fn windows(&self) -> u64 {
        u64::from(self.max_clients) * u64::from(self.window)
    }

    /// Bytes that windows of busy streams may take in addition.
    pub fn spare(&self) -> u64 {
        self.memory_cap.saturating_sub(self.windows())
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// Which flag to change.
    pub fn check(&self, role: Role) -> Result<(), Fault> {
        let memory = self.windows();
        if self.window == 0 || self.max_clients == 0 {
            return Err(Fault::usage("--window and --max-clients must not be 0"));
        }
        if memory > self.memory_cap {
            return Err(Fault::usage(format!(
                "--max-clients {} times --window {} is {memory} bytes, more than --memory-cap {}: lower one of the \
                 first two or raise the third",
                self.max_clients, self.window, self.memory_cap
            )));
        }
        if self.dead_after <= self.heartbeat {
            return Err(Fault::usage("--dead-after must be longer than --heartbeat"));
        }
        if self.strict_nvidia && self.max_clients > NVIDIA_CLIENTS {
            return Err(Fault::usage(format!("--strict-nvidia allows --max-clients up to {NVIDIA_CLIENTS}")));
        }
        check_path(&self.socket, role == Role::Dpu || self.allow_abstract)?;
        self.admin_socket.as_deref().map_or(Ok(()), |path| check_path(path, false))
    }
}

/// The name of an abstract socket.
pub fn abstract_name(path: &Path) -> Option<&[u8]> {
    path.as_os_str().as_encoded_bytes().strip_prefix(b"@")
}

fn check_path(path: &Path, abstract_allowed: bool) -> Result<(), Fault> {
    const LONGEST: usize = 107;
    let len = path.as_os_str().len();
    if len == 0 || len > LONGEST {
        return Err(Fault::usage(format!(
            "the socket path {} has {len} bytes; 1 to {LONGEST} are possible",
            path.display()
        )));
    }
    if abstract_name(path).is_some() && !abstract_allowed {
        return Err(Fault::usage(format!(
            "{} is an abstract socket, to which everybody may connect: --allow-abstract if that is meant",
            path.display()
        )));
    }
    Ok(())
}
