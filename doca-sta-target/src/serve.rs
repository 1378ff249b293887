//! The thread of one IO context: takes connections and answers commands.

use crate::engine::{Action, Outcome, QueueKey};
use crate::frontend::{Frontend, Told};
use crate::worker::Job;
use doca_common::{Code, Failed, ProgressEngine, Result};
use doca_sta::event::IoEvent;
use doca_sta::{Command, Direction, Io, IoCounts, IoSeed, Qp, QpId, QpState, SqSize, Subsystem};
use nvme_wire::{Cqe, Sqe, Status};
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a thread sleeps without a look at what it was told.
const NAP: Duration = Duration::from_millis(1);

/// How long the end of all queues may take, and the command that a disk executes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Where commands of a namespace are executed: the disk's thread, and the namespace on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) jobs: Sender<Job>,
    pub(crate) disk_nsid: u32,
    pub(crate) block_size: u32,
}

/// Places by subsystem and namespace.
pub(crate) type Places = Arc<Mutex<HashMap<(usize, u32), Place>>>;

/// What a thread is made of.
pub(crate) struct Parts {
    pub(crate) seed: IoSeed,
    pub(crate) frontend: Frontend,
    pub(crate) subsystems: Vec<Subsystem>,
    pub(crate) places: Places,
    pub(crate) inbox: Receiver<Told>,
    pub(crate) own: Sender<Told>,
    pub(crate) counts: Arc<Mutex<IoCounts>>,
}

struct Connection {
    key: QueueKey,
    qp: Qp,
    /// Commands that wait for an event, by their identifiers.
    kept: HashMap<u16, Command>,
    /// Commands that a disk executes.
    executed: HashMap<u64, (u16, Command)>,
}

struct Serving {
    io: Io,
    frontend: Frontend,
    subsystems: Vec<Subsystem>,
    places: Places,
    own: Sender<Told>,
    connections: HashMap<QpId, Connection>,
    by_key: HashMap<QueueKey, QpId>,
    /// Commands that found DOCA without a task.
    again: VecDeque<Again>,
    ticket: u64,
}

/// What is to be tried again.
enum Again {
    Fetch(Command),
    Respond(Command, [u8; 16], bool),
}

/// Serves until it is told to close. `ready` learns whether it began.
pub(crate) fn run(parts: Parts, ready: &Sender<Result<()>>) {
    let Parts { seed, frontend, subsystems, places, inbox, own, counts } = parts;
    let begun = ProgressEngine::new().and_then(|engine| {
        let io = seed.start(&engine)?.running_within(PATIENCE)?;
        Ok((engine, io))
    });
    let (engine, io) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let mut events = io.events();
    let mut serving = Serving {
        io,
        frontend,
        subsystems,
        places,
        own,
        connections: HashMap::new(),
        by_key: HashMap::new(),
        again: VecDeque::new(),
        ticket: 0,
    };
    let _ = ready.send(Ok(()));
    loop {
        let mut closing = false;
        while let Ok(told) = inbox.try_recv() {
            closing |= matches!(told, Told::Close);
            serving.told(told);
        }
        if closing {
            break;
        }
        serving.try_again();
        let nap = if serving.again.is_empty() { NAP } else { Duration::ZERO };
        match serving.io.command_within(nap) {
            Ok(mut next) => {
                while let Some(command) = next {
                    serving.command(command);
                    next = serving.io.command();
                }
            }
            Err(error) => {
                log::error!("{error}: an IO context is given up");
                break;
            }
        }
        for event in &mut events {
            serving.event(event);
        }
        if let Ok(mut own) = counts.lock() {
            *own = serving.io.counts();
        }
    }
    drop(events);
    serving.close();
    drop(engine);
}

impl Serving {
    fn close(self) {
        let Serving { io, frontend, connections, again, .. } = self;
        drop(again);
        for connection in connections.into_values() {
            frontend.closed(connection.key);
            drop(connection);
        }
        if let Err(error) = io.close(PATIENCE) {
            log::error!("{error}: an IO context is leaked");
        }
    }

    fn connection(&mut self, key: QueueKey) -> Option<&mut Connection> {
        let id = self.by_key.get(&key)?;
        self.connections.get_mut(id)
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Accept { request, queue, answer } => match self.io.accept(request, &answer) {
                Ok(qp) => {
                    self.by_key.insert(queue, qp.id());
                    let (kept, executed) = (HashMap::new(), HashMap::new());
                    self.connections.insert(qp.id(), Connection { key: queue, qp, kept, executed });
                }
                Err(error) => {
                    log::warn!("a connection was not accepted: {error}");
                    self.frontend.closed(queue);
                }
            },
            Told::Established(queue) => {
                if let Some(connection) = self.connection(queue)
                    && let Err(error) = connection.qp.established()
                {
                    log::warn!("{error}");
                    connection.qp.disconnect();
                }
            }
            Told::Gone(queue) => {
                if let Some(connection) = self.connection(queue) {
                    connection.qp.disconnect();
                }
            }
            Told::Action(Action::Complete { queue, cqe }) => {
                let kept = self.connection(queue).and_then(|connection| connection.kept.remove(&cqe.cid));
                if let Some(command) = kept {
                    self.respond(command, cqe, false);
                }
            }
            Told::Action(Action::Disconnect { queue, why }) => {
                if let Some(connection) = self.connection(queue) {
                    log::info!("{} is disconnected: {why}", connection.qp.id());
                    connection.qp.disconnect();
                }
            }
            Told::Executed { queue, ticket, status } => {
                let executed =
                    self.connection(queue).and_then(|connection| connection.executed.remove(&ticket));
                if let Some((cid, command)) = executed {
                    self.respond(command, Cqe::new(cid, status), false);
                }
            }
            Told::Close => {}
        }
    }

    fn event(&mut self, event: IoEvent) {
        match event {
            IoEvent::Qp { qp, state: QpState::Disconnected } => {
                if let Some(connection) = self.connections.remove(&qp) {
                    self.by_key.remove(&connection.key);
                    self.frontend.closed(connection.key);
                }
            }
            IoEvent::Transport(error) => log::warn!("{error}"),
            _ => {}
        }
    }

    fn command(&mut self, command: Command) {
        let Some(key) = self.connections.get(&command.qp()).map(|connection| connection.key) else { return };
        let sqe = Sqe::parse(command.sqe());
        let room = if command.needs_fetch() || command.direction() == Direction::ToHost {
            command.room()
        } else {
            usize::MAX
        };
        match self.frontend.handle(key, &sqe, command.data(), room) {
            Outcome::Complete(cqe) => self.respond(command, cqe, false),
            Outcome::Data(cqe, bytes) => self.send(command, cqe, &bytes),
            Outcome::Fetch => self.fetch(command),
            Outcome::Keep => {
                if let Some(connection) = self.connections.get_mut(&command.qp()) {
                    connection.kept.insert(sqe.cid, command);
                }
            }
            Outcome::Attach { subsystem, sqsize, cqe } => self.attach(command, subsystem, sqsize, cqe),
            Outcome::Disk { subsystem, nsid } => self.execute(command, sqe, key, (subsystem, nsid)),
        }
    }

    fn send(&mut self, mut command: Command, cqe: Cqe, bytes: &[u8]) {
        let data = command.data_mut();
        let Some(place) = data.get_mut(..bytes.len()) else {
            let status = Status::SGL_LENGTH_INVALID.with_dnr();
            return self.respond(command, Cqe::new(cqe.cid, status), false);
        };
        place.copy_from_slice(bytes);
        self.respond(command, cqe, true);
    }

    fn attach(&mut self, command: Command, subsystem: Option<usize>, sqsize: u16, cqe: Cqe) {
        let Some(connection) = self.connections.get(&command.qp()) else { return };
        let bound = match subsystem {
            Some(index) => connection.qp.bind(&self.subsystems[index]),
            None => Ok(()),
        };
        match bound.and_then(|()| connection.qp.set_sq_size(SqSize::from_connect(sqsize))) {
            Ok(()) => self.respond(command, cqe, false),
            Err(error) => {
                log::warn!("{error}: {} cannot be used", command.qp());
                let status = Status::INTERNAL_ERROR;
                let qp = command.qp();
                self.respond(command, Cqe::new(cqe.cid, status), false);
                if let Some(connection) = self.connections.get(&qp) {
                    connection.qp.disconnect();
                }
            }
        }
    }

    fn execute(&mut self, command: Command, sqe: Sqe, key: QueueKey, at: (usize, u32)) {
        if command.needs_fetch() {
            return self.fetch(command);
        }
        let cid = sqe.cid;
        let place = self.places.lock().ok().and_then(|places| places.get(&at).cloned());
        let Some(place) = place else {
            return self.respond(command, Cqe::new(cid, Status::INVALID_NAMESPACE.with_dnr()), false);
        };
        self.ticket += 1;
        let job = Job {
            nsid: place.disk_nsid,
            block_size: place.block_size,
            command: sqe,
            data: command.data().map_or(Vec::new(), <[u8]>::to_vec),
            queue: key,
            ticket: self.ticket,
            answer: self.own.clone(),
        };
        if place.jobs.send(job).is_err() {
            return self.respond(command, Cqe::new(cid, Status::INTERNAL_ERROR), false);
        }
        if let Some(connection) = self.connections.get_mut(&command.qp()) {
            connection.executed.insert(self.ticket, (cid, command));
        }
    }

    fn fetch(&mut self, command: Command) {
        let cid = u16::from_le_bytes([command.sqe()[2], command.sqe()[3]]);
        if !command.needs_fetch() {
            return self.respond(command, Cqe::new(cid, Status::INVALID_FIELD.with_dnr()), false);
        }
        if let Err(failed) = command.fetch() {
            self.failed(failed, Again::Fetch);
        }
    }

    fn respond(&mut self, command: Command, cqe: Cqe, with_data: bool) {
        self.respond_with(command, cqe.to_bytes(), with_data);
    }

    fn respond_with(&mut self, command: Command, completion: [u8; 16], with_data: bool) {
        let answered =
            if with_data { command.respond_with_data(completion) } else { command.respond(completion) };
        if let Err(failed) = answered {
            self.failed(failed, |command| Again::Respond(command, completion, with_data));
        }
    }

    /// A command could not go on: later if DOCA had no task, else its queue pair is over.
    fn failed(&mut self, failed: Failed<Command>, again: impl FnOnce(Command) -> Again) {
        let Failed { error, value: command, .. } = failed;
        if error.code() == Some(Code::NO_MEMORY) {
            self.again.push_back(again(command));
        } else if command.is_open() {
            log::warn!("{error}");
            if let Some(connection) = self.connections.get(&command.qp()) {
                connection.qp.disconnect();
            }
        }
    }

    fn try_again(&mut self) {
        for again in std::mem::take(&mut self.again) {
            match again {
                Again::Fetch(command) => self.fetch(command),
                Again::Respond(command, completion, with_data) => {
                    self.respond_with(command, completion, with_data)
                }
            }
        }
    }
}
