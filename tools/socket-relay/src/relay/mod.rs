//! The loop that joins local sockets, streams and the link.
//!
//! ```text
//! clients --connection--> mux --frames--> transport ==== transport <--frames-- mux <--connection-- application
//! ```
//!
//! One thread sleeps on one epoll descriptor. In each turn everybody gets a bounded share: local sockets, messages of
//! the link, frames to it. Nothing waits for anybody else than its own stream.

mod admin;
mod application;
mod connection;
mod counters;
mod front;
mod handle;
mod link;
mod outgoing;
mod report;

pub use counters::{Counters, RoundTrip};
pub use handle::Handle;
pub use report::Status;

use crate::fault::{Class, Exit, Fault};
use crate::frame::{Features, Reason};
use crate::mux::{Mux, Role};
use crate::settings::{Settings, UseFastPath};
use crate::transport::Transport;
use admin::Admin;
use connection::Connections;
use front::Front;
use handle::Shared;
use link::Link;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use outgoing::Outgoing;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest sleep: what notifications might miss is seen after this at the latest.
const NAP: Duration = Duration::from_millis(10);
/// Messages, and socket operations, per turn.
const SHARE: usize = 64;
/// Turns that do something until the sockets are looked at again.
const ROW: u32 = 4;
/// How long control frames may take to leave at the end.
const FLUSH: Duration = Duration::from_secs(5);

const TOKEN_LINK: u64 = 0;
const TOKEN_WAKE: u64 = 1;
const TOKEN_LISTENER: u64 = 2;
const TOKEN_ADMIN: u64 = 3;
/// Tokens of streams.
const STREAMS: u64 = 1 << 32;
/// Tokens of admin clients.
const ADMINS: u64 = 1 << 33;

/// How a relay ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All streams had ended.
    Drained,
    /// Some were reset.
    Cut(usize),
}

/// A relay that is not running yet.
#[derive(Debug)]
pub struct Relay<T> {
    settings: Settings,
    role: Role,
    transport: T,
    poller: Epoll,
    shared: Arc<Shared>,
    began: Instant,
    instance: [u8; 16],
    link: Link,
    mux: Option<Mux>,
    connections: Connections,
    front: Front,
    admin: Option<Admin>,
    counters: Counters,
    outgoing: Outgoing,
    ending: Option<Ending>,
}

/// A drain that was asked for.
#[derive(Clone, Copy, Debug)]
struct Ending {
    until: Instant,
    cut: usize,
}

impl<T: Transport> Relay<T> {
    /// Checks the settings and claims the socket's path (host) and the admin socket's.
    ///
    /// # Errors
    /// What is wrong with them, or who has the path.
    pub fn new(settings: Settings, transport: T) -> Result<Self, Fault> {
        let role = transport.role();
        settings.check(role)?;
        let able = transport.limits().features.has(Features::FAST_PATH);
        if settings.fast_path == UseFastPath::Require && !able {
            let text = "--fast-path require, but the device has no producers and consumers";
            return Err(Fault::new(Exit::Device, Class::Below, text));
        }
        let internal = |e| Fault::internal(format!("cannot make a descriptor: {e}"));
        let poller = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(internal)?;
        let shared = Shared::new().map_err(internal)?;
        let level = |token| EpollEvent::new(EpollFlags::EPOLLIN, token);
        poller.add(transport.descriptor(), level(TOKEN_LINK)).map_err(internal)?;
        poller.add(&shared.wake, level(TOKEN_WAKE)).map_err(internal)?;
        let front = Front::new(role, &settings)?;
        let admin = match &settings.admin_socket {
            Some(path) => Some(Admin::new(path, &poller)?),
            None => None,
        };
        Ok(Relay {
            role,
            transport,
            poller,
            shared,
            began: Instant::now(),
            instance: new_instance(),
            link: Link::default(),
            mux: None,
            connections: Connections::default(),
            front,
            admin,
            counters: Counters::default(),
            outgoing: Outgoing::new(),
            ending: None,
            settings,
        })
    }

    /// For other threads.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// Serves until [`Handle::drain`], or until something will not go away.
    ///
    /// # Errors
    /// Why it ended.
    pub fn run(mut self) -> Result<Outcome, Fault> {
        let outcome = self.turns();
        // Sockets first, so that nobody waits for a relay that is gone.
        self.front.close(&self.poller);
        self.connections.clear();
        let closed = self.transport.close();
        let outcome = outcome?;
        closed?;
        Ok(outcome)
    }

    fn turns(&mut self) -> Result<Outcome, Fault> {
        self.start()?;
        let mut events = [EpollEvent::empty(); SHARE];
        let mut row = 0;
        loop {
            let now = Instant::now();
            self.counters.turns += 1;
            let mut busy = self.turn_link(now)?;
            busy |= self.turn_clients(now);
            busy |= self.turn_takers();
            busy |= self.turn_frames(now);
            self.turn_admin(now);
            if let Some(outcome) = self.turn_ending(now) {
                return Ok(outcome);
            }
            // What one turn leads to is mostly done in the next, with nothing new to hear of in between.
            row = if busy { row + 1 } else { ROW };
            if row < ROW {
                continue;
            }
            row = 0;
            let mut timeout = EpollTimeout::ZERO;
            if !busy && !self.settings.busy_poll {
                let nap = self.transport.arm().min(NAP);
                timeout = EpollTimeout::try_from(nap).unwrap_or(EpollTimeout::ZERO);
                self.counters.sleeps += u64::from(!nap.is_zero());
            }
            let count = match self.poller.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(nix::errno::Errno::EINTR) => 0,
                Err(errno) => return Err(Fault::internal(format!("epoll: {errno}"))),
            };
            for event in &events[..count] {
                self.wake(event.data(), event.events());
            }
        }
    }

    fn wake(&mut self, token: u64, what: EpollFlags) {
        match token {
            TOKEN_LINK => {}
            TOKEN_WAKE => {
                _ = self.shared.wake.read();
            }
            TOKEN_LISTENER => self.front.ready = true,
            TOKEN_ADMIN | ADMINS.. => {
                if let Some(admin) = &mut self.admin {
                    admin.wake(token, &self.poller);
                }
            }
            _ => {
                let id = u32::try_from(token & u64::from(u32::MAX)).unwrap_or(0);
                if let Some(mux) = &mut self.mux {
                    self.connections.wake(id, what, mux);
                }
            }
        }
    }

    /// Writes what came to the local sockets.
    fn turn_takers(&mut self) -> bool {
        let Some(mux) = &mut self.mux else { return false };
        // The DPU's application may end its direction only where both sides know of half-closed streams.
        let mut wrote = false;
        for _ in 0..SHARE {
            let Some(id) = self.connections.next_taker() else { break };
            self.counters.bytes.local_out += self.connections.write(id, mux, true) as u64;
            wrote = true;
        }
        self.turn_events(Instant::now()) | wrote | self.connections.has_turns()
    }

    /// Follows a drain to its end.
    fn turn_ending(&mut self, now: Instant) -> Option<Outcome> {
        let asked = self.shared.ends.load(Ordering::Relaxed);
        if self.shared.report.swap(false, Ordering::Relaxed) {
            log::info!(target: crate::LOG, "{}", self.report_text(now));
        }
        if asked == 0 {
            return None;
        }
        let mut ending = match self.ending {
            Some(ending) => ending,
            None => {
                log::info!(target: crate::LOG, "draining: {} streams", self.connections.len());
                self.front.close(&self.poller);
                if let Some(mux) = &mut self.mux {
                    mux.go_away();
                }
                Ending { until: now + self.settings.drain_timeout, cut: 0 }
            }
        };
        let open = self.mux.as_ref().map_or(0, Mux::len);
        if open > 0 && (asked > 1 || now >= ending.until) && ending.cut == 0 {
            log::warn!(target: crate::LOG, "resetting {open} streams");
            ending.cut = open;
            ending.until = now + FLUSH;
            for id in self.connections.ids() {
                if let Some(mux) = &mut self.mux {
                    mux.reset(id, Reason::Shutdown, "");
                }
                self.connections.remove(id);
                self.counters.reset(Reason::Shutdown);
            }
        }
        self.ending = Some(ending);
        let flushed = !self.turn_control() && !self.outgoing.held;
        let through = open == 0 && flushed;
        if through || (ending.cut > 0 && now >= ending.until) {
            return Some(if ending.cut == 0 { Outcome::Drained } else { Outcome::Cut(ending.cut) });
        }
        None
    }
}

impl Outcome {
    /// The exit status that tells it.
    pub fn exit(self) -> Exit {
        match self {
            Outcome::Drained => Exit::Ok,
            Outcome::Cut(_) => Exit::Cut,
        }
    }
}

/// Sixteen bytes that nobody else has.
pub(crate) fn new_instance() -> [u8; 16] {
    use std::hash::{BuildHasher, RandomState};
    let word =
        |salt: u32| RandomState::new().hash_one((std::process::id(), salt, Instant::now())).to_le_bytes();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word(0));
    bytes[8..].copy_from_slice(&word(1));
    bytes
}
