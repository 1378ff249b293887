//! The host's listener, and complaints that would otherwise fill the log.

use super::{Relay, STREAMS, TOKEN_LISTENER};
use crate::fault::Fault;
use crate::frame::Reason;
use crate::local;
use crate::mux::Role;
use crate::settings::{ListenWhen, Settings};
use crate::socket_file::{Bound, Claim};
use crate::transport::Transport;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Clients that the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;
/// How long clients wait for a session, where the socket exists without one.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a complaint of the same beginning is logged.
const QUIET: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Front {
    bound: Option<Bound>,
    /// Longer than the socket.
    claim: Option<Claim>,
    /// Whether clients may be waiting.
    pub(super) ready: bool,
    /// Clients that came before the session.
    waiting: Vec<(UnixStream, Instant)>,
    /// Whether all clients are let in.
    pub(super) admitted: bool,
    /// After a lack of descriptors.
    pause: Option<Instant>,
    complained: Option<(String, Instant, u64)>,
    /// Why the socket could not be bound.
    pub(super) bind_error: Option<Fault>,
}

impl Front {
    pub(super) fn new(role: Role, settings: &Settings) -> Result<Self, Fault> {
        let claim = match role {
            Role::Host => Some(Claim::new(&settings.socket)?),
            Role::Dpu => None,
        };
        Ok(Front {
            claim,
            bound: None,
            ready: false,
            waiting: Vec::new(),
            admitted: !settings.hold,
            pause: None,
            complained: None,
            bind_error: None,
        })
    }

    /// Binds, if the socket is to exist without a session; else tries whether it could.
    pub(super) fn start(&mut self, settings: &Settings, poller: &Epoll) -> Result<(), Fault> {
        match (settings.listen_when, &self.claim) {
            (ListenWhen::Session, Some(claim)) => {
                claim.try_bind(settings.socket_mode, settings.socket_group.as_deref())
            }
            _ => self.bind(settings, poller),
        }
    }

    fn bind(&mut self, settings: &Settings, poller: &Epoll) -> Result<(), Fault> {
        let Some(claim) = self.claim.as_ref().filter(|_| self.bound.is_none()) else { return Ok(()) };
        let bound = claim.bind(settings.socket_mode, settings.socket_group.as_deref(), BACKLOG)?;
        let edge = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TOKEN_LISTENER);
        poller
            .add(&bound.listener, edge)
            .map_err(|e| Fault::internal(format!("cannot watch the listener: {e}")))?;
        self.bound = Some(bound);
        self.ready = true;
        Ok(())
    }

    /// Removes the socket; clients that were not accepted are reset by the kernel.
    pub(super) fn unbind(&mut self, poller: &Epoll) {
        if let Some(bound) = self.bound.take() {
            // It is in the set; dropping it takes it out anyway.
            _ = poller.delete(&bound.listener);
        }
        self.ready = false;
    }

    pub(super) fn close(&mut self, poller: &Epoll) {
        self.unbind(poller);
        self.waiting.clear();
        self.claim = None;
    }

    pub(super) fn session_up(&mut self, settings: &Settings, poller: &Epoll) {
        let already = self.bound.is_some();
        match self.bind(settings, poller) {
            Ok(()) if already => self.ready = true,
            Ok(()) if self.claim.is_some() => {
                log::info!(target: crate::LOG, "listening on {}", settings.socket.display());
            }
            Ok(()) => {}
            Err(fault) => {
                log::error!(target: crate::LOG, "{fault}");
                self.bind_error = Some(fault);
            }
        }
    }

    pub(super) fn session_lost(&mut self, settings: &Settings, poller: &Epoll) {
        if settings.listen_when == ListenWhen::Session {
            self.unbind(poller);
        }
    }

    pub(super) fn is_listening(&self) -> bool {
        self.bound.is_some()
    }

    /// Logs a failure that many clients may meet at once.
    pub(super) fn complain(&mut self, text: &str) {
        let now = Instant::now();
        let kind = text.split(": stream").next().unwrap_or(text);
        if let Some((last, at, left_out)) = &mut self.complained
            && last == kind
            && now.saturating_duration_since(*at) < QUIET
        {
            *left_out += 1;
            return;
        }
        let left_out = self.complained.take().map_or(0, |(_, _, count)| count);
        if left_out > 0 {
            log::warn!(target: crate::LOG, "{left_out} more of the last kind");
        }
        log::warn!(target: crate::LOG, "{text}");
        self.complained = Some((kind.to_owned(), now, 0));
    }
}

impl<T: Transport> Relay<T> {
    /// Takes clients in. Whether there may be more.
    pub(super) fn turn_clients(&mut self, now: Instant) -> bool {
        let up = self.is_serving();
        if up {
            for (socket, _) in std::mem::take(&mut self.front.waiting) {
                self.client(socket, now);
            }
        } else {
            self.front.waiting.retain(|(_, since)| now.saturating_duration_since(*since) < PATIENCE);
        }
        if self.front.pause.is_some_and(|until| now < until) {
            return false;
        }
        self.front.pause = None;
        for _ in 0..super::SHARE {
            if !self.front.ready || (!self.front.admitted && self.connections.len() > 0) {
                return false;
            }
            let Some(bound) = &self.front.bound else { return false };
            match local::accept(&bound.listener) {
                Ok(socket) if up => self.client(socket, now),
                Ok(socket) => self.front.waiting.push((socket, now)),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.front.ready = false,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.front.complain(&format!("cannot accept clients: {error}"));
                        self.front.pause = Some(now + Duration::from_millis(100));
                        return false;
                    }
                },
            }
        }
        true
    }

    fn client(&mut self, socket: UnixStream, now: Instant) {
        let identity = local::identity(&socket);
        let Some(mux) = &mut self.mux else { return };
        let Some(id) = mux.open(identity, now) else {
            self.counters.refused += 1;
            let text = format!("a client was turned away: there are {} already", mux.len());
            self.front.complain(&text);
            if mux.out_of_ids() {
                // Streams are numbered once; a new session begins again.
                self.transport.disconnect();
            }
            return;
        };
        if let Err(errno) = self.connections.add(&self.poller, STREAMS | u64::from(id), id, socket) {
            mux.reset(id, Reason::Internal, errno.desc());
            return;
        }
        self.counters.clients += 1;
        self.counters.peak = self.counters.peak.max(self.connections.len());
        log::debug!(target: crate::LOG, "stream {id}: process {} of user {}", identity.pid, identity.uid);
    }
}
