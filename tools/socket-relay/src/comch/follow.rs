//! What server and client did by themselves, and what follows from it.

use super::beacon::Asker;
use super::setup::client;
use super::{Comch, End};
use crate::transport::{Absence, Down};
use doca_comch::{Connection, Ended, Event, Left};

impl Comch {
    /// Follows the context, whatever it did by itself.
    pub(super) fn follow(&mut self) {
        match &mut self.end {
            End::Host(left) => {
                *left = std::mem::replace(left, Left::Consumed).now();
                match left {
                    Left::Running(client) if self.peer.is_none() && self.trying => {
                        match client.connection() {
                            Ok(connection) => {
                                self.events = Some(client.events());
                                self.peer = Some(connection);
                                self.due = Some(None);
                            }
                            Err(error) => log::debug!(target: crate::LOG, "no connection yet: {error}"),
                        }
                    }
                    Left::Config(config) if self.trying => match (&mut self.asker, config.ended()) {
                        (Some(asker), _) => {
                            if let Some(absence) = asker.follow(&self.place.service) {
                                self.asker = None;
                                self.absent(absence);
                            }
                        }
                        (None, Some(Ended::NotReached)) => self.ask(),
                        (None, _) if self.turned_away => self.ask(),
                        (None, Some(Ended::Lost(Some(code)))) => {
                            self.lost(&format!("the connection ended: {code}"));
                        }
                        (None, _) => self.lost("the connection ended"),
                    },
                    Left::Starting(_) if self.trying && self.since.elapsed() >= self.patience => {
                        // A server that is there and stands still keeps its clients waiting.
                        match client(&self.device, &self.place, &self.inbox) {
                            Ok((config, ..)) => {
                                *left = Left::Config(config);
                                self.ask();
                            }
                            Err(fault) => self.gone(&fault.to_string()),
                        }
                    }
                    Left::Stopping(_) if self.trying && self.peer.is_some() => {
                        self.lost("the connection ended");
                    }
                    _ => {}
                }
            }
            End::Dpu(left) => {
                *left = std::mem::replace(left, Left::Consumed).now();
                if let Left::Running(server) = left {
                    if self.events.is_none() {
                        self.events = Some(server.events());
                    }
                    while let Some(connection) = server.try_accept() {
                        if self.peer.is_none() && self.due.is_none() {
                            self.peer = Some(connection);
                            self.due = Some(None);
                        } else if self.newcomer.is_none() {
                            self.newcomer = Some(connection);
                        } else {
                            self.retired.push(connection.id());
                        }
                    }
                    for id in self.retired.drain(..) {
                        if let Err(error) = server.disconnect(id) {
                            log::debug!(target: crate::LOG, "disconnect: {error}");
                        }
                    }
                }
            }
        }
    }

    /// The connection is over. A host on which nothing came over it finds out first whether that was meant.
    fn lost(&mut self, why: &str) {
        if matches!(self.end, End::Dpu(_)) || self.heard {
            return self.gone(why);
        }
        self.turned_away = true;
        self.fast = None;
        self.peer = None;
        self.events = None;
    }

    /// The peer is no more, or was never reached.
    pub(super) fn gone(&mut self, why: &str) {
        self.trying = false;
        self.fast = None;
        self.peer = None;
        self.events = self.events.take().filter(|_| matches!(self.end, End::Dpu(_)));
        let why = self.failed.take().map_or_else(|| why.to_owned(), |first| format!("{why}; {first}"));
        self.due = Some(Some(why.as_str().into()));
    }

    /// The service did not take the client, or did not keep it: is there a relay at all?
    fn ask(&mut self) {
        if !self.asks {
            return self.absent(Absence::Unknown);
        }
        match Asker::new(&self.device, &self.engine, self.patience) {
            Ok(asker) => self.asker = Some(asker),
            Err(error) => {
                log::debug!(target: crate::LOG, "the beacon cannot be asked: {error}");
                self.absent(Absence::Unknown);
            }
        }
    }

    fn absent(&mut self, absence: Absence) {
        self.trying = false;
        let (why, absence) = match (self.turned_away, absence) {
            (false, absence) => ("no server took the client", absence),
            (true, Absence::NotTaken) => ("the server ended the connection", Absence::Taken),
            // There is a server, whatever is known of relays.
            (true, _) => ("the server ended the connection", Absence::Ended),
        };
        let first = self.failed.take().map(|first| format!("; {first}")).unwrap_or_default();
        self.due = Some(Some(Down { why: format!("{why}{first}"), absence }));
    }

    pub(super) fn read_events(&mut self) {
        let mut lost = None;
        for event in self.events.iter_mut().flatten() {
            match event {
                Event::Disconnected(id) if self.peer.as_ref().is_some_and(|peer| peer.id() == id) => {
                    lost = Some("the peer disconnected");
                }
                Event::Disconnected(id) if self.newcomer.as_ref().is_some_and(|one| one.id() == id) => {
                    self.newcomer = None;
                    self.told_newcomer = false;
                    self.kept.clear();
                }
                Event::SendFailed(id, code) if self.peer.as_ref().is_some_and(|peer| peer.id() == id) => {
                    self.failed.get_or_insert(format!("a message could not be sent: {code}"));
                    lost = Some("the peer does not take messages any more");
                }
                Event::ConnectFailed => log::warn!(target: crate::LOG, "a client failed to connect"),
                _ => {}
            }
        }
        if let Some(why) = lost {
            self.leave();
            self.lost(why);
        }
    }

    /// Follows the fast path; without what it carried the session cannot go on.
    pub(super) fn follow_fast(&mut self) -> bool {
        let Some(fast) = &mut self.fast else { return false };
        let any = fast.follow();
        if let Some(why) = fast.take_broken() {
            self.failed.get_or_insert(why);
            self.leave();
            self.gone("the fast path broke");
        }
        any
    }

    /// Ends the connection to the peer, without telling.
    pub(super) fn leave(&mut self) {
        self.fast = None;
        match &mut self.end {
            End::Host(left) => {
                if matches!(left, Left::Running(_)) {
                    *left = match std::mem::replace(left, Left::Consumed) {
                        Left::Running(client) => Left::Stopping(client.stop()),
                        other => other,
                    };
                }
            }
            End::Dpu(_) => self.retired.extend(self.peer.iter().map(Connection::id)),
        }
        self.peer = None;
    }

    /// Lets the context move until there is nothing to do, or enough messages are there.
    pub(super) fn step(&mut self, most: usize) -> bool {
        let mut any = false;
        while self.inbox.borrow().entries.len() < most {
            match self.engine.progress() {
                Ok(true) => any = true,
                Ok(false) => break,
                Err(error) => {
                    log::error!(target: crate::LOG, "{error}");
                    break;
                }
            }
        }
        any
    }
}
