//! The far end of streams: the application on the DPU, connected to and tried out.

use super::link::State;
use super::{Relay, STREAMS};
use crate::fault::Class;
use crate::frame::{ProbeKind, Reason};
use crate::local::dial;
use crate::mux::Role;
use crate::settings::ProbeApp;
use crate::transport::Transport;
use nix::errno::Errno;
use std::time::{Duration, Instant};

/// How long the host waits for the DPU to connect to its application.
const OPENING: Duration = Duration::from_secs(10);
/// How often a failing or periodically tried application is tried.
const PROBE_PAUSE: Duration = Duration::from_secs(60);

impl<T: Transport> Relay<T> {
    /// What the application said when it was tried.
    pub(super) fn application_is(&mut self, errno: u32, now: Instant) {
        let socket = self.settings.socket.display();
        if errno == 0 {
            if self.link.application_fails {
                log::info!(target: crate::LOG, "the application answers again");
                self.link.last_error = None;
            }
        } else {
            let errno = Errno::from_raw(i32::try_from(errno).unwrap_or(0));
            log::error!(
                target: crate::LOG,
                "{}: the DPU relay answers, but its application does not: {errno} (the client's socket is {socket})",
                Class::Terminator
            );
            self.link.last_error = Some(format!("{}: the application: {errno}", Class::Terminator));
        }
        self.link.application_fails = errno != 0;
        let again = errno != 0 || self.settings.probe_app == ProbeApp::Periodic;
        self.link.next_probe = again.then(|| now + PROBE_PAUSE);
        self.front.session_up(&self.settings, &self.poller);
    }

    pub(super) fn turn_probe(&mut self, now: Instant) {
        if self.link.next_probe.is_none_or(|at| now < at) || !matches!(self.link.state, State::Up(_)) {
            return;
        }
        self.link.next_probe = None;
        self.link.own_probe = self.probe(ProbeKind::Application);
    }

    /// Asks the other relay; the answer comes with this number.
    pub(super) fn probe(&mut self, kind: ProbeKind) -> Option<u64> {
        let mux = self.mux.as_mut().filter(|mux| mux.agreed().is_some())?;
        self.link.probe_nonce += 1;
        mux.probe(self.link.probe_nonce, kind);
        Some(self.link.probe_nonce)
    }

    pub(super) fn answer(&mut self, nonce: u64, kind: ProbeKind) {
        let errno = match kind {
            ProbeKind::Application if self.role == Role::Dpu => {
                dial(&self.settings.socket).err().filter(|errno| *errno != Errno::EAGAIN)
            }
            _ => None,
        };
        let errno = errno.map_or(0, |errno| (errno as i32).cast_unsigned());
        if let Some(mux) = &mut self.mux {
            mux.answer_probe(nonce, errno, self.counters.bytes);
        }
    }

    pub(super) fn dial(&mut self, id: u32, now: Instant, until: Instant) {
        let Some(mux) = self.mux.as_mut().filter(|mux| mux.is_open(id)) else { return };
        if self.ending.is_some() {
            mux.reset(id, Reason::Shutdown, "");
            return;
        }
        let (reason, errno) = match dial(&self.settings.socket) {
            Ok(socket) => match self.connections.add(&self.poller, STREAMS | u64::from(id), id, socket) {
                Ok(()) => {
                    mux.accept(id);
                    self.connections.accept(id);
                    self.counters.clients += 1;
                    self.counters.peak = self.counters.peak.max(self.connections.len());
                    return;
                }
                Err(errno) => (Reason::Internal, errno),
            },
            Err(Errno::EAGAIN) if now < until => {
                self.link.dialing.push((id, until));
                return;
            }
            Err(Errno::EAGAIN) => (Reason::Timeout, Errno::EAGAIN),
            Err(Errno::ENOENT | Errno::ENOTDIR) => (Reason::NoPath, Errno::ENOENT),
            Err(errno @ (Errno::EACCES | Errno::EPERM)) => (Reason::Permission, errno),
            Err(errno @ (Errno::EMFILE | Errno::ENFILE)) => (Reason::Limit, errno),
            Err(errno) => (Reason::Refused, errno),
        };
        mux.reset(id, reason, errno.desc());
        self.counters.reset(reason);
        let class = if reason == Reason::Permission { Class::Permission } else { Class::Terminator };
        let path = self.settings.socket.display();
        let text = format!("{class}: stream {id}: the application at {path} cannot be reached: {errno}");
        self.front.complain(&text);
    }

    /// Tries those again whose queue was full.
    pub(super) fn turn_dialing(&mut self, now: Instant) {
        for (id, until) in std::mem::take(&mut self.link.dialing) {
            self.dial(id, now, until);
        }
    }

    pub(super) fn turn_opening(&mut self, now: Instant) {
        let Some(before) = now.checked_sub(OPENING) else { return };
        if self.role != Role::Host || !self.counters.turns.is_multiple_of(64) {
            return;
        }
        for id in self.connections.waiting_since(before) {
            if let Some(mux) = &mut self.mux {
                mux.reset(id, Reason::Timeout, "");
            }
            self.closed(id, Some((Reason::Timeout, "the DPU relay did not answer".to_owned())));
        }
    }
}
