//! The beacon over Comch: DPU relays of one function share a name, under which one of them tells which services there
//! are. What fails here is logged at debug level and harms nobody.

use super::setup::start;
use crate::beacon::{NAME, QUESTION, Services};
use crate::mux::Role;
use crate::registry::{Entered, Entry, Registry, Right};
use crate::transport::Absence;
use doca_comch::{Client, Connection, ConnectionId, Ended, Left, Server};
use doca_common::{Device, Error, ProgressEngine, Representor};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Askers that may be connected at a time; the one that came first goes.
const ASKERS: usize = 16;
/// How long one may stay.
const STAY: Duration = Duration::from_secs(10);
/// After the name could not be had though no other relay of this user has it.
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// The full form of a PCI address.
fn full(address: &str) -> String {
    let domain = if address.matches(':').count() == 1 { "0000:" } else { "" };
    format!("{domain}{address}").to_ascii_lowercase()
}

/// A relay's entry in the list of those of this machine.
pub(super) fn entry(role: Role, place: &super::Place, socket: &Path) -> Entry {
    Entry {
        role,
        socket: std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned()),
        service: place.service.clone(),
        device: full(&place.device),
        representor: place.representor.as_deref().map(full),
    }
}

/// DPU: holds the name as soon as no other relay does, and answers.
#[derive(Debug)]
pub(super) struct Lamp {
    end: Left<Server>,
    /// The right to the name, among the relays of this user.
    right: Option<Right>,
    registry: Registry,
    _entered: Entered,
    own: Entry,
    questions: Rc<RefCell<Vec<ConnectionId>>>,
    askers: VecDeque<(Connection, Instant)>,
    longest: usize,
    again: Instant,
    period: Duration,
}

impl Lamp {
    pub(super) fn new(
        device: &Device,
        representor: &Representor,
        registry: Registry,
        own: Entry,
        period: Duration,
    ) -> Result<Lamp, String> {
        let entered = registry.enter(&own).map_err(|error| error.to_string())?;
        let questions = Rc::<RefCell<Vec<ConnectionId>>>::default();
        let asked = Rc::clone(&questions);
        let make = || {
            let mut config = Server::configure(device, representor, NAME)?;
            config.on_message(move |from, message| {
                // Whoever asks more often than it listens is answered less often.
                if message == QUESTION && asked.borrow().len() < ASKERS {
                    asked.borrow_mut().push(from);
                }
            });
            let longest = config.max_msg_size()?;
            Ok((config, longest))
        };
        let (config, longest) = make().map_err(|error: Error| error.to_string())?;
        Ok(Lamp {
            end: Left::Config(config),
            right: None,
            registry,
            _entered: entered,
            own,
            questions,
            askers: VecDeque::new(),
            longest: longest as usize,
            again: Instant::now(),
            period,
        })
    }

    /// Whether this relay is the one that answers.
    pub(super) fn is_lit(&self) -> bool {
        matches!(self.end, Left::Running(_))
    }

    /// After progress.
    pub(super) fn follow(&mut self, engine: &ProgressEngine) {
        self.end = std::mem::replace(&mut self.end, Left::Consumed).now();
        match &self.end {
            Left::Config(_) => self.light(engine),
            Left::Running(_) => self.answer(),
            Left::Starting(_) | Left::Stopping(_) | Left::Consumed => {}
        }
    }

    fn light(&mut self, engine: &ProgressEngine) {
        let now = Instant::now();
        if now < self.again {
            return;
        }
        self.again = now + self.period;
        self.askers.clear();
        let Entry { device, representor, .. } = &self.own;
        let what = format!("{device}-{}", representor.as_deref().unwrap_or_default());
        match self.registry.only_one(&what) {
            Ok(right) => self.right = right,
            Err(error) => log::debug!(target: crate::LOG, "the beacon's lock: {error}"),
        }
        if self.right.is_none() {
            return;
        }
        match start(&mut self.end, engine) {
            Ok(()) => log::debug!(target: crate::LOG, "this relay tells hosts which services there are"),
            Err(error) => {
                self.right = None;
                self.again = now + LONG_PAUSE.max(self.period);
                log::debug!(target: crate::LOG, "the beacon cannot be started: {error}");
            }
        }
    }

    fn answer(&mut self) {
        let Left::Running(server) = &self.end else { return };
        while let Some(connection) = server.try_accept() {
            self.askers.push_back((connection, Instant::now()));
            if self.askers.len() > ASKERS {
                self.askers.pop_front();
            }
        }
        if self.askers.is_empty() {
            return;
        }
        let questions = std::mem::take(&mut *self.questions.borrow_mut());
        if !questions.is_empty() {
            let answer = Services::encode(&self.services(), self.longest);
            for from in questions {
                let Some((asker, _)) = self.askers.iter().find(|(asker, _)| asker.id() == from) else {
                    continue;
                };
                if let Err(error) = asker.send(&answer) {
                    log::debug!(target: crate::LOG, "a question for services is not answered: {error}");
                }
            }
        }
        self.askers.retain(|(asker, since)| asker.is_connected() && since.elapsed() < STAY);
    }

    /// Names of the services of this function that are alive.
    fn services(&self) -> Vec<String> {
        let all = self.registry.alive().into_iter();
        let here = |entry: &Entry| {
            (entry.role, &entry.device, &entry.representor)
                == (Role::Dpu, &self.own.device, &self.own.representor)
        };
        let mut names: Vec<String> = all.filter(here).map(|entry| entry.service).collect();
        names.dedup();
        names
    }
}

/// How many questions there are in this process.
static ASKING: AtomicUsize = AtomicUsize::new(0);

/// Whether a beacon is being asked. That there is none is no news then: what the SDK logs of it is for debugging.
pub fn is_asking() -> bool {
    ASKING.load(Ordering::Relaxed) > 0
}

#[derive(Debug)]
struct Asking;

impl Asking {
    fn new() -> Asking {
        ASKING.fetch_add(1, Ordering::Relaxed);
        Asking
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Host: one question.
#[derive(Debug)]
pub(super) struct Asker {
    client: Left<Client>,
    connection: Option<Connection>,
    answer: Rc<RefCell<Option<Vec<u8>>>>,
    until: Instant,
    /// As long as the client.
    _asking: Asking,
}

impl Asker {
    pub(super) fn new(device: &Device, engine: &ProgressEngine, patience: Duration) -> Result<Asker, Error> {
        let asking = Asking::new();
        let mut config = Client::configure(device, NAME)?;
        let answer = Rc::<RefCell<Option<Vec<u8>>>>::default();
        let said = Rc::clone(&answer);
        config.on_message(move |_, message| {
            said.borrow_mut().get_or_insert_with(|| message.to_vec());
        });
        let client = Left::Starting(config.start(engine).map_err(|failed| failed.error)?);
        Ok(Asker { client, connection: None, answer, until: Instant::now() + patience, _asking: asking })
    }

    /// After progress: what is known of `service`, as soon as it is.
    pub(super) fn follow(&mut self, service: &str) -> Option<Absence> {
        if let Some(answer) = self.answer.take() {
            return Some(match Services::decode(&answer) {
                Ok(services) if services.names.iter().any(|name| name == service) => Absence::NotTaken,
                Ok(services) => Absence::NotServed(services),
                Err(what) => {
                    log::debug!(target: crate::LOG, "the beacon's answer: {what}");
                    Absence::Unknown
                }
            });
        }
        self.client = std::mem::replace(&mut self.client, Left::Consumed).now();
        match &self.client {
            Left::Running(client) if self.connection.is_none() => {
                let asked = client.connection().and_then(|connection| {
                    connection.send(QUESTION)?;
                    Ok(connection)
                });
                match asked {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => log::debug!(target: crate::LOG, "the beacon is not asked: {error}"),
                }
            }
            Left::Config(config) => {
                // It has gone between connection and answer: the next attempt will tell.
                let never_there = config.ended() == Some(Ended::NotReached);
                return Some(if never_there { Absence::Nobody } else { Absence::Unknown });
            }
            _ => {}
        }
        (Instant::now() >= self.until).then_some(Absence::Nobody)
    }
}
