//! What exists between start and stop: the mailbox that peers find, connections, what is to be told; and progress.

use super::connection::{ConnState, Connection, Waiting};
use super::endpoint::Endpoint;
use super::half::Half;
use super::handshake;
use crate::code::{Code, Res};
use crate::ctx::{Context, CtxState};
use crate::fabric::bits;
use crate::fabric::channel::{Channel, End};
use crate::fabric::clock;
use crate::fabric::context::{ContextView, LinkId, Sizes};
use crate::fabric::listener::Listener;
use crate::fabric::mailbox::{self, Message};
use crate::fabric::network::Address;
use crate::fabric::process::{self, ContextPlace};
use crate::fabric::route::Route;
use crate::fault;
use crate::log;
use crate::profile;
use crate::task::{Pool, Task};
use crate::topology;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// How often timeouts and the life of peers are looked at.
const CHORES_EVERY: u64 = clock::millis(5);
/// How often a sleeper looks at what nobody wakes it for.
const LOOK_EVERY: u64 = clock::millis(100);
/// Connections that are over and whose pointers a program may still hold.
const REMEMBERED: usize = 1024;

/// Something to tell the program.
pub enum Event {
    /// A task has ended.
    Done(Rc<Connection>, *const Task, Code),
    /// A client has come, or failed to.
    Connected(Rc<Connection>, bool),
    /// A connection is over.
    Disconnected(Rc<Connection>),
    /// A consumer of the peer has come, or gone.
    Consumer(Rc<Connection>, u32, bool),
    /// The client's only connection is over, or could not be made.
    Fall,
}

impl Event {
    fn connection(&self) -> Option<&Rc<Connection>> {
        match self {
            Event::Done(connection, ..)
            | Event::Connected(connection, _)
            | Event::Disconnected(connection)
            | Event::Consumer(connection, ..) => Some(connection),
            Event::Fall => None,
        }
    }

    fn is_held(&self) -> bool {
        matches!(self, Event::Done(_, task, _) if fault::is_held(*task))
    }
}

/// A client on its way.
#[derive(Default)]
pub struct Attempt {
    /// The server's control path, if there is one of that name.
    pub server: RefCell<Option<Arc<ContextView>>>,
    /// When it gives up; 0 while there is hope.
    pub give_up_at: Cell<u64>,
    /// When it may give up at the earliest.
    pub patience: Cell<u64>,
}

/// A server or client that is not IDLE.
pub struct Running {
    owner: Weak<Endpoint>,
    /// What it is.
    pub end: End,
    view: Arc<ContextView>,
    place: RefCell<Option<ContextPlace>>,
    pool: Option<Rc<Pool>>,
    listener: RefCell<Option<Listener>>,
    /// Of a client.
    pub attempt: Attempt,
    connections: RefCell<Vec<Option<Rc<Connection>>>>,
    generations: RefCell<Vec<u32>>,
    over: RefCell<VecDeque<Rc<Connection>>>,
    events: RefCell<VecDeque<Event>>,
    /// Letters that did not fit into a mailbox.
    outbox: RefCell<VecDeque<(Arc<ContextView>, Message)>>,
    /// Whose messages are being read.
    pub(super) current: Cell<u32>,
    /// How many of them in a row.
    pub(super) burst: Cell<u32>,
    messages_first: Cell<bool>,
    chores_done: Cell<u64>,
}

impl Running {
    /// Allocates everything that tasks will need; a server takes its name, a client asks for a connection.
    pub fn start(endpoint: &Endpoint) -> Res<Rc<Running>> {
        let conns = match endpoint.end {
            End::Server => endpoint.device().comch.max_clients,
            End::Client => 1,
        };
        let place = ContextPlace::reserve()?;
        let sizes = Sizes { conns, sends: 1, receives: 1, send_pieces: 1, receive_pieces: 1 };
        let view = Arc::new(ContextView::create(process::local()?.clone(), place.id(), sizes)?);
        view.describe(0, 0, Route::NOWHERE);
        view.set_open(true);
        place.publish(&view)?;
        let at = Address::Name(endpoint.host_function()?, endpoint.name.clone());
        let listener = match endpoint.end {
            End::Client => None,
            End::Server => Some(Listener::claim(at.clone(), view.id()).map_err(|code| {
                if code == Code::IN_USE {
                    log::error!("doca_comch_server: another server has this name on that representor");
                }
                Code::INITIALIZATION
            })?),
        };
        let owner: Weak<dyn Context> = endpoint.this.clone();
        let running = Rc::new(Running {
            owner: endpoint.this.clone(),
            end: endpoint.end,
            view,
            place: RefCell::new(Some(place)),
            pool: endpoint.conf().map(|conf| Pool::new(&owner, 0, conf.count)),
            listener: RefCell::new(listener),
            attempt: Attempt::default(),
            connections: RefCell::new(vec![None; conns as usize]),
            generations: RefCell::new(vec![0; conns as usize]),
            over: RefCell::new(VecDeque::new()),
            events: RefCell::new(VecDeque::with_capacity(16)),
            outbox: RefCell::new(VecDeque::new()),
            current: Cell::new(0),
            burst: Cell::new(0),
            messages_first: Cell::new(true),
            chores_done: Cell::new(clock::now()),
        });
        if endpoint.end == End::Client {
            handshake::ask(endpoint, &running, &at)?;
        }
        Ok(running)
    }

    /// The control path's segment: mailbox, and bits for connections.
    pub fn view(&self) -> &Arc<ContextView> {
        &self.view
    }

    /// The tasks, if they were configured.
    pub fn pool(&self) -> Option<&Rc<Pool>> {
        self.pool.as_ref()
    }

    /// The connection in a place.
    pub fn at(&self, index: u32) -> Option<Rc<Connection>> {
        self.connections.borrow().get(index as usize)?.clone()
    }

    /// A client's connection, once it is made.
    pub fn only(&self) -> Option<Rc<Connection>> {
        self.at(0)
    }

    /// The `Rc` of a connection that a program named by pointer, if both ends are there.
    pub fn find(&self, connection: &Connection) -> Option<Rc<Connection>> {
        let found = self.at(connection.id.index)?;
        (std::ptr::eq(&*found, connection) && found.state() == ConnState::Up).then_some(found)
    }

    /// The `Rc` of a connection that a program named by pointer, from when it was made until its end was told.
    fn known(&self, connection: &Connection) -> Option<Rc<Connection>> {
        let found = self.at(connection.id.index)?;
        (std::ptr::eq(&*found, connection) && found.state() != ConnState::Connecting).then_some(found)
    }

    fn each(&self) -> impl Iterator<Item = Rc<Connection>> + '_ {
        (0..).map_while(|slot| self.connections.borrow().get(slot).cloned()).flatten()
    }

    /// Whether a connection has producers or consumers.
    pub fn has_children(&self) -> bool {
        self.each().any(|connection| connection.parts().is_some_and(|parts| parts.half.has_children()))
    }

    /// A place for a connection. FULL when all are taken.
    pub fn reserve(&self) -> Res<LinkId> {
        let index = self.connections.borrow().iter().position(Option::is_none).ok_or(Code::FULL)?;
        let generation = &mut self.generations.borrow_mut()[index];
        *generation += 1;
        Ok(LinkId { index: index as u32, generation: *generation })
    }

    /// Puts a connection into its place.
    pub fn install(&self, id: LinkId, half: Arc<Half>, channel: Channel) -> Rc<Connection> {
        let connection = Rc::new(Connection::new(self.owner.clone(), id, Some((half, channel))));
        self.connections.borrow_mut()[id.index as usize] = Some(connection.clone());
        connection
    }

    /// A connection that could not be made, to tell the program of.
    pub fn stillborn(&self, id: LinkId) -> Rc<Connection> {
        Rc::new(Connection::new(self.owner.clone(), id, None))
    }

    /// Queues an event.
    pub fn tell(&self, event: Event) {
        self.events.borrow_mut().push_back(event);
        // The program may be about to sleep on the engine that delivers this.
        self.view.notify();
    }

    /// Sends a letter, now or when there is room for it.
    pub fn post(&self, to: &Arc<ContextView>, message: Message) {
        if mailbox::post(to, &message) == Err(Code::AGAIN) {
            self.outbox.borrow_mut().push_back((to.clone(), message));
        }
    }

    /// A connection is over, whose program knows or will not be told: its place can be taken.
    fn forget(&self, connection: &Rc<Connection>) {
        connection.close();
        connection.let_go();
        {
            let mut connections = self.connections.borrow_mut();
            // One that could not be made has no place.
            if let Some(place) = connections.get_mut(connection.id.index as usize)
                && place.as_ref().is_some_and(|held| Rc::ptr_eq(held, connection))
            {
                *place = None;
            }
        }
        let mut over = self.over.borrow_mut();
        over.push_back(connection.clone());
        if over.len() > REMEMBERED {
            over.pop_front();
        }
    }

    /// A connection has ended without a call of this side's program: tasks that wait fail with that code.
    pub fn lose(&self, connection: &Rc<Connection>, code: Code) {
        if connection.state() == ConnState::Over {
            return;
        }
        let was_up = connection.state() == ConnState::Up;
        connection.close();
        self.fail_waiting(connection, code);
        match self.end {
            End::Client => self.tell(Event::Fall),
            End::Server if was_up => self.tell(Event::Disconnected(connection.clone())),
            End::Server => self.tell(Event::Connected(connection.clone(), false)),
        }
    }

    fn fail_waiting(&self, connection: &Rc<Connection>, code: Code) {
        for waiting in connection.waiting.take() {
            if let Waiting::Message(task, ..) = waiting {
                self.tell(Event::Done(connection.clone(), task, code));
            }
        }
    }

    /// `doca_comch_server_disconnect`
    pub fn disconnect(&self, connection: &Connection) -> Res {
        // It may have broken: as long as the program was not told, that is as good as one that it ends itself.
        let connection = self.known(connection).ok_or(Code::INVALID_VALUE)?;
        if connection.half()?.has_children() {
            log::error!("doca_comch_server: disconnect with producers or consumers on the connection");
            return Err(Code::IN_USE);
        }
        if !connection.waiting.borrow().is_empty() {
            return Err(Code::AGAIN);
        }
        self.forget(&connection);
        // What is left to tell of it are tasks that have ended.
        self.events.borrow_mut().retain(|event| {
            matches!(event, Event::Done(..))
                || !event.connection().is_some_and(|other| Rc::ptr_eq(other, &connection))
        });
        if profile::get().comch_disconnect_told {
            self.tell(Event::Disconnected(connection));
        }
        Ok(())
    }

    /// The program stops it, or it falls: connections end, tasks that wait are flushed.
    pub fn stop(&self) {
        self.listener.take();
        self.view.set_open(false);
        self.outbox.borrow_mut().clear();
        self.events.borrow_mut().retain(|event| matches!(event, Event::Done(..)));
        let code = if profile::get().flushed_shutdown { Code::SHUTDOWN } else { Code::IO_FAILED };
        for connection in self.each() {
            self.fail_waiting(&connection, code);
            connection.close();
        }
    }

    /// Whether all tasks have been called back.
    pub fn is_drained(&self) -> bool {
        self.events.borrow().is_empty()
    }

    /// It is IDLE: nothing of it can be reached any more.
    pub fn release(&self) {
        for connection in self.each() {
            self.forget(&connection);
        }
        self.place.take();
        self.attempt.server.take();
    }

    /// At most one callback.
    pub fn step(&self, endpoint: &Endpoint) -> bool {
        while let Some(message) = mailbox::take(&self.view) {
            handshake::receive(endpoint, self, message);
        }
        self.serve_fast_path();
        let messages_first = fault::shuffle(2).map_or(self.messages_first.get(), |chance| chance == 0);
        self.messages_first.set(!messages_first);
        let order: [fn(&Self, &Endpoint) -> bool; 2] = if messages_first {
            [Self::step_message, Self::step_event]
        } else {
            [Self::step_event, Self::step_message]
        };
        if order.iter().any(|step| step(self, endpoint)) {
            return true;
        }
        self.chores(endpoint);
        self.step_event(endpoint)
    }

    /// The first event that is not held back, nor behind one of its connection that is.
    fn next_event(&self) -> Option<usize> {
        let events = self.events.borrow();
        if !fault::armed() {
            return (!events.is_empty()).then_some(0);
        }
        let mut held: Vec<*const Connection> = Vec::new();
        events.iter().position(|event| {
            let connection = event.connection().map_or(std::ptr::null(), Rc::as_ptr);
            if held.contains(&connection) {
                return false;
            }
            if event.is_held() {
                held.push(connection);
                return false;
            }
            true
        })
    }

    fn step_event(&self, endpoint: &Endpoint) -> bool {
        let Some(event) = self.next_event().and_then(|at| self.events.borrow_mut().remove(at)) else {
            return false;
        };
        let from: *const Endpoint = endpoint;
        match event {
            Event::Done(_, task, code) => {
                // SAFETY: submitted and not yet done: its pool, which this holds, keeps it.
                let task = unsafe { &*task };
                if let Some(conf) = endpoint.conf() {
                    let callback = if code == Code::SUCCESS { conf.success } else { conf.failure };
                    task.complete(endpoint.ctx(), code, callback);
                }
            }
            Event::Connected(connection, fine) => {
                log::trace!("doca_comch_server: client {} connected: {fine}", connection.id.index);
                if let Some([connected, _]) = endpoint.on_status.get() {
                    // SAFETY: the program's own function, with what its type promises.
                    unsafe { connected(from, &*connection, fine.into()) };
                }
                if fine {
                    connection.announced.set(true);
                    bits::set(self.view.active(), connection.id.index);
                } else {
                    self.forget(&connection);
                }
            }
            Event::Disconnected(connection) => {
                log::trace!("doca_comch_server: client {} is gone", connection.id.index);
                if let Some([_, disconnected]) = endpoint.on_status.get() {
                    // SAFETY: the program's own function, with what its type promises.
                    unsafe { disconnected(from, &*connection, 1) };
                }
                self.forget(&connection);
            }
            Event::Consumer(connection, id, come) => {
                if let Some(callbacks) = endpoint.on_consumer.get() {
                    // SAFETY: the program's own function, with what its type promises.
                    unsafe { callbacks[usize::from(!come)](from, &*connection, id) };
                }
                connection.news.update(|news| news - 1);
                bits::set(self.view.active(), connection.id.index);
            }
            Event::Fall => endpoint.ctx().fall(endpoint),
        }
        true
    }

    /// Timeouts, dead peers, mail that did not fit. Rarely, and only when there is nothing better to do.
    fn chores(&self, endpoint: &Endpoint) {
        let now = clock::now();
        if now.saturating_sub(self.chores_done.get()) < CHORES_EVERY {
            return;
        }
        self.chores_done.set(now);
        let mut outbox = self.outbox.borrow_mut();
        while let Some((view, message)) = outbox.pop_front() {
            if mailbox::post(&view, &message) == Err(Code::AGAIN) && view.process().is_alive() {
                outbox.push_front((view, message));
                break;
            }
        }
        drop(outbox);
        if endpoint.ctx().state() == CtxState::Starting {
            handshake::look_after(endpoint, self, now);
        }
        for connection in self.each() {
            self.look_after(&connection, now);
        }
    }

    /// Notices, or not yet, that a peer has died.
    fn look_after(&self, connection: &Rc<Connection>, now: u64) {
        let Some(parts) = connection.parts() else { return };
        let half = &parts.half;
        match connection.state() {
            ConnState::Over => {}
            ConnState::Connecting => {
                if !half.peer().is_alive() || !half.far().is_open() {
                    self.lose(connection, Code::CONNECTION_ABORTED);
                }
            }
            ConnState::Up => {
                if wants_peer(connection)
                    && !half.peer().is_alive()
                    && connection.dead_since.replace(connection.dead_since.get().max(1)) == 0
                {
                    connection.dead_since.set(now);
                }
                if end_of_patience(connection).is_some_and(|end| now >= end) {
                    log::debug!("connection {}: the peer has died", connection.id.index);
                    self.lose(connection, Code::CONNECTION_ABORTED);
                }
            }
        }
    }

    /// Whether `step` would find something.
    pub fn has_work(&self, endpoint: &Endpoint) -> bool {
        let any = |bitmap| bits::each(bitmap, 0).next().is_some();
        if mailbox::has_mail(&self.view) || self.next_event().is_some() {
            return true;
        }
        endpoint.ctx().state() == CtxState::Running
            && (any(self.view.active()) || any(self.view.waiting()) || self.has_current())
    }

    fn has_current(&self) -> bool {
        let Some(connection) = self.at(self.current.get()) else { return false };
        connection.parts().is_some_and(|parts| parts.channel.has_incoming())
    }

    /// When a timeout falls due, or a look at the peers.
    pub fn deadline(&self, endpoint: &Endpoint) -> Option<u64> {
        let now = clock::now();
        let mut times: Vec<u64> = fault::next_due().into_iter().collect();
        if endpoint.ctx().state() == CtxState::Starting {
            let end = Some(self.attempt.give_up_at.get()).filter(|at| *at != 0);
            times.push(end.unwrap_or(now + LOOK_EVERY));
        }
        if !self.outbox.borrow().is_empty() {
            times.push(now + CHORES_EVERY);
        }
        for connection in self.each() {
            let Some(parts) = connection.parts() else { continue };
            let half = &parts.half;
            match connection.state() {
                ConnState::Over => {}
                ConnState::Connecting => times.push(now + LOOK_EVERY),
                ConnState::Up => {
                    times.extend(end_of_patience(&connection).map(|end| end.max(now + clock::millis(1))));
                    let unnoticed = connection.dead_since.get() == 0 && wants_peer(&connection);
                    if unnoticed && !half.peer().is_alive() {
                        times.push(self.chores_done.get() + CHORES_EVERY);
                    } else if unnoticed && half.peer().pidfd().is_none() && !half.peer().is_local() {
                        times.push(now + LOOK_EVERY);
                    }
                }
            }
        }
        times.into_iter().min()
    }

    /// Descriptors that tell of a peer's end.
    pub fn pidfds(&self, each: &mut dyn FnMut(i32)) {
        if let Some(server) = &*self.attempt.server.borrow()
            && self.only().is_none()
            && let Some(fd) = server.process().pidfd()
        {
            each(fd);
        }
        for connection in self.each() {
            if let Some(parts) = connection.parts()
                && wants_peer(&connection)
                && parts.half.peer().is_alive()
                && let Some(fd) = parts.half.peer().pidfd()
            {
                each(fd);
            }
        }
    }
}

/// Whether it matters to a connection that its peer lives: without a send, a death goes unnoticed.
fn wants_peer(connection: &Connection) -> bool {
    let profile = profile::get();
    connection.state() == ConnState::Connecting
        || profile.comch_death_prompt
        || profile.comch_death_late
        || !connection.waiting.borrow().is_empty()
}

/// When a peer's death is to be noticed, of a peer that has died.
fn end_of_patience(connection: &Connection) -> Option<u64> {
    let dead = Some(connection.dead_since.get()).filter(|since| *since != 0)?;
    if profile::get().comch_death_prompt {
        return Some(dead);
    }
    let patience = topology::get().map_or(0, |topology| topology.timeouts.comch_death_ms);
    let patience = clock::millis(patience.into());
    if profile::get().comch_death_late {
        return Some(dead + patience);
    }
    let since = connection.waiting.borrow().iter().find_map(|waiting| match waiting {
        Waiting::Message(_, _, since) => Some(*since),
        Waiting::Note(_) => None,
    })?;
    Some(dead.max(since) + patience)
}
