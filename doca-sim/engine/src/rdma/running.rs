//! What exists between start and stop: the context's segment, task pools, connections, events; and progress.

use super::connection::{ConnState, Connection, Origin};
use super::{KINDS, Rdma, cm};
use crate::code::{Code, Res};
use crate::ctx::{Context, CtxState};
use crate::fabric::bits;
use crate::fabric::clock;
use crate::fabric::context::{ContextView, LinkId, LinkState, Sizes};
use crate::fabric::listener::Listener;
use crate::fabric::mailbox::{self, Message};
use crate::fabric::operation::{Outcome, Wait};
use crate::fabric::process::{self, ContextPlace};
use crate::fabric::queue::{self, Head};
use crate::fabric::receives::{self, Received};
use crate::fault;
use crate::log;
use crate::pieces;
use crate::profile;
use crate::strict;
use crate::task::{Pool, Task};
use crate::topology::{self, RdmaTask};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// How often timeouts and the life of peers are looked at.
const CHORES_EVERY: u64 = clock::millis(5);
/// How often a sleeper looks at peers for which the kernel gives no pidfd.
const LOOK_AT_PEERS_EVERY: u64 = clock::millis(100);
/// Connections that are over and whose pointers a program may still hold.
const REMEMBERED: usize = 256;

/// Something to tell the program about a connection.
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Which connection.
    pub connection: Rc<Connection>,
}

/// See [`Event`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A client asks.
    Request,
    /// Up.
    Established,
    /// Could not be made.
    Failure,
    /// Over.
    Disconnection,
}

/// A running instance.
pub struct Running {
    owner: Weak<Rdma>,
    view: Arc<ContextView>,
    place: RefCell<Option<ContextPlace>>,
    pools: [Option<Rc<Pool>>; KINDS],
    connections: RefCell<Vec<Option<Rc<Connection>>>>,
    generations: RefCell<Vec<u32>>,
    over: RefCell<VecDeque<Rc<Connection>>>,
    receive_tasks: Box<[Cell<*const Task>]>,
    receives_posted: Cell<u64>,
    receives_reported: Cell<u64>,
    /// What is to be told to the program.
    pub events: RefCell<VecDeque<Event>>,
    /// Letters that did not fit into a mailbox.
    pub outbox: RefCell<VecDeque<(Arc<ContextView>, Message)>>,
    /// Ports that the program listens on.
    pub listeners: RefCell<Vec<(u16, Listener)>>,
    /// Which link's sends are reported next.
    send_turn: Cell<u32>,
    receives_first: Cell<bool>,
    chores_done: Cell<u64>,
}

impl Running {
    /// Allocates everything that tasks will need.
    pub fn start(rdma: &Rdma) -> Res<Rc<Running>> {
        let properties = &rdma.properties;
        let place = ContextPlace::reserve()?;
        let receives = rdma.conf(RdmaTask::Receive).map_or(1, |conf| conf.count).next_power_of_two();
        let sizes = Sizes {
            conns: properties.max_num_connections.get().into(),
            sends: properties.send_queue_size.get(),
            receives,
            send_pieces: properties.max_send_buf_list_len.get(),
            receive_pieces: properties.recv_buf_list_len.get(),
        };
        let view = Arc::new(ContextView::create(process::local()?.clone(), place.id(), sizes)?);
        let route = properties.route(rdma.device());
        view.describe(properties.permissions.get(), properties.transport.get(), route);
        if let Some(until) = fault::freeze(true) {
            view.freeze(until);
        }
        view.set_open(true);
        place.publish(&view)?;
        let owner: Weak<dyn Context> = rdma.this.clone();
        let pools = std::array::from_fn(|kind| {
            let conf = rdma.confs[kind].get()?;
            Some(Pool::new(&owner, kind as u32, conf.count))
        });
        let conns = sizes.conns as usize;
        Ok(Rc::new(Running {
            owner: rdma.this.clone(),
            view,
            place: RefCell::new(Some(place)),
            pools,
            connections: RefCell::new(Vec::new()),
            generations: RefCell::new(vec![0; conns]),
            over: RefCell::new(VecDeque::new()),
            receive_tasks: (0..receives).map(|_| Cell::new(std::ptr::null())).collect(),
            receives_posted: Cell::new(0),
            receives_reported: Cell::new(0),
            events: RefCell::new(VecDeque::with_capacity(16)),
            outbox: RefCell::new(VecDeque::new()),
            listeners: RefCell::new(Vec::new()),
            send_turn: Cell::new(0),
            receives_first: Cell::new(true),
            chores_done: Cell::new(clock::now()),
        }))
    }

    /// The segment.
    pub fn view(&self) -> &Arc<ContextView> {
        &self.view
    }

    /// The tasks of a kind, if it was configured.
    pub fn pool(&self, kind: RdmaTask) -> Option<&Rc<Pool>> {
        self.pools[kind as usize].as_ref()
    }

    /// A new connection in the lowest free slot. FULL when all are taken.
    pub fn new_connection(&self, origin: Origin, state: ConnState) -> Res<Rc<Connection>> {
        let limit = self.view.sizes().conns as usize;
        let mut connections = self.connections.borrow_mut();
        let slot = match connections.iter().position(Option::is_none) {
            Some(slot) => slot,
            None if connections.len() < limit => {
                connections.push(None);
                connections.len() - 1
            }
            None => return Err(Code::FULL),
        };
        let generation = &mut self.generations.borrow_mut()[slot];
        *generation += 1;
        let id = LinkId { index: slot as u32, generation: *generation };
        let link = self.view.link(id.index).ok_or(Code::UNEXPECTED)?;
        link.set_state(LinkState::Free);
        use std::sync::atomic::Ordering::SeqCst;
        link.generation.store(id.generation, SeqCst);
        // RDMA CM resolves addresses, and finds the GIDs that go with them.
        link.by_gid.store((origin == Origin::Export).into(), SeqCst);
        // Positions go on counting: laps of the slot's former user must not look like ours.
        let position = link.tail.load(SeqCst);
        link.head.store(position, SeqCst);
        link.set_state(LinkState::Init);
        let connection =
            Rc::new(Connection::new(self.owner.clone(), id, origin, state, self.view.sizes().sends));
        connection.posted.set(position);
        connection.reported.set(position);
        connections[slot] = Some(connection.clone());
        Ok(connection)
    }

    /// The connection in a slot, if it is still the one that is meant.
    pub fn connection(&self, id: LinkId) -> Option<Rc<Connection>> {
        let found = self.connections.borrow().get(id.index as usize)?.clone()?;
        (found.id() == id).then_some(found)
    }

    /// The `Rc` of a connection that a program named by pointer.
    pub fn find(&self, connection: &Connection) -> Option<Rc<Connection>> {
        let found = self.connection(connection.id())?;
        std::ptr::eq(&*found, connection).then_some(found)
    }

    /// Whether any connection is made.
    pub fn is_connected(&self) -> bool {
        self.connections.borrow().iter().flatten().any(|connection| connection.takes_sends())
    }

    /// All connections. What is done with one may end it, or make others.
    fn each_connection(&self) -> impl Iterator<Item = Rc<Connection>> + '_ {
        (0..).map_while(|slot| self.connections.borrow().get(slot).cloned()).flatten()
    }

    /// Gives the slot of a connection that is over back, once its tasks have been called back.
    fn retire_connection(&self, connection: &Rc<Connection>) {
        if connection.state() != ConnState::Gone || !connection.is_drained() {
            return;
        }
        let index = connection.id().index;
        if let Some(link) = self.view.link(index) {
            link.set_state(LinkState::Free);
        }
        let mut connections = self.connections.borrow_mut();
        if connections[index as usize].as_ref().is_some_and(|held| Rc::ptr_eq(held, connection)) {
            connections[index as usize] = None;
            let mut over = self.over.borrow_mut();
            over.push_back(connection.clone());
            if over.len() > REMEMBERED {
                over.pop_front();
            }
        }
    }

    /// The connection is over and the program knows.
    pub fn end_connection(&self, connection: &Rc<Connection>) {
        connection.set_state(ConnState::Gone);
        connection.let_go();
        connection.break_link(&self.view);
        self.retire_connection(connection);
    }

    /// Queues an event.
    pub fn tell(&self, kind: EventKind, connection: &Rc<Connection>) {
        self.events.borrow_mut().push_back(Event { kind, connection: connection.clone() });
        // The program may be about to sleep on the engine that delivers this.
        self.view.notify();
    }

    /// Puts a receive task into the pool that all connections share.
    pub fn post_receive(&self, task: &Task, pieces: impl Iterator<Item = crate::fabric::region::Piece>) {
        let position = self.receives_posted.get();
        self.receive_slot(position).set(task);
        self.receives_posted.set(position + 1);
        receives::post(&self.view, position, pieces);
        receives::serve_waiting(&self.view, |index| {
            let connection = self.connections.borrow().get(index as usize)?.clone()?;
            let far = connection.far()?;
            Some((connection.far_view()?, far.link.index))
        });
    }

    fn receive_slot(&self, position: u64) -> &Cell<*const Task> {
        &self.receive_tasks[position as usize & (self.receive_tasks.len() - 1)]
    }

    /// Starts what was submitted without the flush flag.
    pub fn flush(&self) {
        for connection in self.each_connection() {
            if connection.held.replace(false) {
                connection.pump(&self.view);
            }
        }
    }

    /// The instance stops: no more work from peers, connections end, tasks are flushed.
    pub fn stop(&self, rdma: &Rdma) {
        self.listeners.borrow_mut().clear();
        for connection in self.each_connection() {
            cm::farewell(self, &connection);
            self.end_connection(&connection);
        }
        // Letters that came too late are answered.
        while let Some(message) = mailbox::take(&self.view) {
            cm::receive(rdma, self, message);
        }
        self.events.borrow_mut().clear();
        self.flush_all();
    }

    fn flush_all(&self) {
        self.view.set_open(false);
        receives::flush(&self.view, self.receives_reported.get());
        for connection in self.each_connection() {
            connection.break_link(&self.view);
        }
    }

    /// The instance is idle: nothing of it can be reached any more.
    pub fn release(&self) {
        self.flush_all();
        for connection in self.each_connection() {
            connection.set_state(ConnState::Gone);
            connection.let_go();
        }
        self.place.take();
        self.outbox.borrow_mut().clear();
    }

    /// At most one callback.
    pub fn step(&self, rdma: &Rdma) -> bool {
        while let Some(message) = mailbox::take(&self.view) {
            cm::receive(rdma, self, message);
        }
        if self.step_event(rdma) {
            return true;
        }
        let receives_first = fault::shuffle(2).map_or(self.receives_first.get(), |chance| chance == 0);
        self.receives_first.set(!receives_first);
        let order: [fn(&Self, &Rdma) -> bool; 2] = if receives_first {
            [Self::step_receive, Self::step_send]
        } else {
            [Self::step_send, Self::step_receive]
        };
        if order.iter().any(|step| step(self, rdma)) {
            return true;
        }
        self.chores(rdma);
        self.step_event(rdma)
    }

    fn step_event(&self, rdma: &Rdma) -> bool {
        let Some(Event { kind, connection }) = self.events.borrow_mut().pop_front() else { return false };
        cm::deliver(rdma, self, kind, &connection);
        true
    }

    fn step_receive(&self, rdma: &Rdma) -> bool {
        let position = self.receives_reported.get();
        if position >= self.receives_posted.get() {
            return false;
        }
        let Some(result) = self.received(position) else { return false };
        self.receives_reported.set(position + 1);
        let task = self.receive_slot(position).replace(std::ptr::null());
        // SAFETY: put there by `post_receive`; tasks live as long as their pool, which this holds.
        let Some(task) = (unsafe { task.as_ref() }) else { return true };
        strict::close(task, &result);
        let injected = fault::failure(task).filter(|_| result.outcome == Outcome::Success);
        let outcome = if injected.is_some() { Outcome::Injected } else { result.outcome };
        if injected.is_some()
            && let Some(connection) = self.connection(result.link)
        {
            connection.break_link(&self.view);
        }
        let status = injected.unwrap_or(code_of(outcome));
        self.fill(task, &result, status);
        self.call_back(rdma, task, RdmaTask::Receive, status);
        fail_context(rdma, outcome);
        true
    }

    /// The result of a receive that can be reported.
    fn received(&self, position: u64) -> Option<Received> {
        receives::received(&self.view, position)
            .filter(|_| !fault::is_held(self.receive_slot(position).get()))
    }

    /// Writes the results of a receive into the task, and what arrived into its buffers' lengths.
    fn fill(&self, task: &Task, result: &Received, status: Code) {
        let fields = &task.fields;
        fields.result_opcode.set(result.opcode);
        fields.result_immediate.set(result.immediate);
        fields.result_len.set(result.length);
        // A message may be told after the end of its connection, whose slot may have a new user.
        let over = || self.over.borrow().iter().find(|connection| connection.id() == result.link).cloned();
        let connection = self.connection(result.link).or_else(over);
        fields.result_connection.set(connection.map_or(0, |c| Rc::as_ptr(&c) as usize));
        if status == Code::SUCCESS {
            pieces::advance(task.buffer(&fields.dst), result.placed());
        }
    }

    fn step_send(&self, rdma: &Rdma) -> bool {
        let turn = fault::shuffle(self.view.sizes().conns).unwrap_or(self.send_turn.get());
        for index in bits::each(self.view.active(), turn) {
            bits::clear(self.view.active(), index);
            let Some(connection) = self.connections.borrow().get(index as usize).cloned().flatten() else {
                continue;
            };
            let position = connection.reported.get();
            if position >= connection.posted.get() {
                continue;
            }
            if fault::is_held(connection.task_at(position).get()) {
                bits::set(self.view.active(), index);
                continue;
            }
            let Some(outcome) = queue::sent(&self.view, index, position) else { continue };
            connection.reported.set(position + 1);
            // There may be more behind it.
            bits::set(self.view.active(), index);
            self.send_turn.set((index + 1) % self.view.sizes().conns);
            let task = connection.task_at(position).replace(std::ptr::null());
            self.retire_connection(&connection);
            // SAFETY: put there by `submit`; tasks live as long as their pool, which this holds.
            let Some(task) = (unsafe { task.as_ref() }) else { return true };
            let injected = fault::failure(task).filter(|_| outcome == Outcome::Injected);
            let status = injected.unwrap_or(code_of(outcome));
            let kind = RdmaTask::ALL[task.kind as usize];
            strict::give_back(task, kind.name());
            if status == Code::SUCCESS {
                super::submit::finish(task, kind);
            } else if outcome != Outcome::Flushed {
                log::warning!("{} task on connection {index} failed: {outcome:?}", kind.name());
            } else if connection.takes_sends() && !connection.told_broken.replace(true) {
                log::warning!(
                    "{} task on connection {index} flushed, as all later ones: an earlier failure, here or at the \
                     peer, broke the connection; disconnect and connect anew",
                    kind.name()
                );
            }
            self.call_back(rdma, task, kind, status);
            fail_context(rdma, outcome);
            return true;
        }
        false
    }

    fn call_back(&self, rdma: &Rdma, task: &Task, kind: RdmaTask, status: Code) {
        let Some(conf) = rdma.conf(kind) else { return };
        let callback = if status == Code::SUCCESS { conf.success } else { conf.failure };
        task.complete(rdma.ctx(), status, callback);
    }

    /// Timeouts, dead peers, mail that did not fit. Rarely, and only when there is nothing better to do.
    fn chores(&self, rdma: &Rdma) {
        let now = clock::now();
        let stopping = rdma.ctx().state() == CtxState::Stopping;
        if !stopping && now.saturating_sub(self.chores_done.get()) < CHORES_EVERY {
            return;
        }
        self.chores_done.set(now);
        if stopping {
            // A peer that was executing when the context stopped may have put an entry back.
            self.flush_all();
        }
        let mut outbox = self.outbox.borrow_mut();
        while let Some((view, message)) = outbox.pop_front() {
            if mailbox::post(&view, &message) == Err(Code::AGAIN) && view.process().is_alive() {
                outbox.push_front((view, message));
                break;
            }
        }
        drop(outbox);
        receives::reap(&self.view, self.receives_reported.get());
        for connection in self.each_connection() {
            self.look_after(rdma, &connection, now);
            self.retire_connection(&connection);
        }
    }

    fn look_after(&self, rdma: &Rdma, connection: &Rc<Connection>, now: u64) {
        if connection.is_cm() && connection.far_is_dead() {
            cm::peer_died(self, connection);
        }
        if connection.state() == ConnState::Connecting && now >= connection.deadline.get() {
            cm::give_up(self, connection, "no answer in time");
        }
        if connection.is_drained() {
            return;
        }
        connection.pump(&self.view);
        let index = connection.id().index;
        match queue::head(&self.view, index) {
            Head::Orphaned => queue::fail_head(&self.view, index, Outcome::Abandoned),
            Head::Waiting(wait, since) => {
                if let Some(patience) = patience(rdma, wait)
                    && now >= since.saturating_add(patience)
                {
                    let outcome = match wait {
                        Wait::Peer => Outcome::Unreachable,
                        Wait::Receive => Outcome::ReceiverNotReady,
                    };
                    if wait == Wait::Peer {
                        self.explain_silence(rdma, connection);
                    }
                    queue::fail_head(&self.view, index, outcome);
                }
            }
            Head::Idle | Head::Moving => {}
        }
        // If the link has broken, the rest is flushed.
        connection.pump(&self.view);
    }

    /// Says why a peer does not answer, as far as that can be known here.
    fn explain_silence(&self, rdma: &Rdma, connection: &Connection) {
        let index = connection.id().index;
        let (Some(far), Some(link)) = (connection.far_view(), self.view.link(index)) else { return };
        if let Some((here, there)) = queue::unreachable(&self.view, link, &far) {
            log::error!(
                "connection {index}: the peer cannot be reached with these GIDs: index {} of {} is {here}, the \
                 peer's is {there}; see doca_rdma_set_gid_index on both sides",
                rdma.properties.gid_index.get(),
                rdma.device().ibdev,
            );
        }
    }

    /// Whether `step` would find something.
    pub fn has_work(&self) -> bool {
        mailbox::has_mail(&self.view)
            || !self.events.borrow().is_empty()
            || self.received(self.receives_reported.get()).is_some()
            || bits::each(self.view.active(), 0).any(|index| {
                let connections = self.connections.borrow();
                let Some(Some(connection)) = connections.get(index as usize) else { return false };
                let position = connection.reported.get();
                position < connection.posted.get()
                    && queue::sent(&self.view, index, position).is_some()
                    && !fault::is_held(connection.task_at(position).get())
            })
    }

    /// When a timeout falls due, or a look at the peers.
    pub fn deadline(&self, rdma: &Rdma) -> Option<u64> {
        let now = clock::now();
        let unwatched = |c: &Rc<Connection>| {
            c.far_view().is_some_and(|view| {
                !view.process().is_local() && view.process().pidfd().is_none() && view.process().is_alive()
            })
        };
        let mut times = Vec::new();
        for connection in self.each_connection() {
            if connection.state() == ConnState::Connecting {
                times.push(connection.deadline.get());
            }
            if unwatched(&connection) {
                times.push(now + LOOK_AT_PEERS_EVERY);
            }
            // Known to be dead, and so no longer watched, but not looked after yet.
            let orphaned = matches!(queue::head(&self.view, connection.id().index), Head::Orphaned);
            if orphaned
                || connection.is_cm() && connection.state() != ConnState::Gone && connection.far_is_dead()
            {
                times.push(self.chores_done.get() + CHORES_EVERY);
            }
            if let Head::Waiting(wait, since) = queue::head(&self.view, connection.id().index)
                && let Some(patience) = patience(rdma, wait)
            {
                times.push(since.saturating_add(patience).max(now + clock::millis(1)));
                times.extend(connection.far_view().and_then(|view| view.frozen_until()));
            }
        }
        if !self.outbox.borrow().is_empty() {
            times.push(now + CHORES_EVERY);
        }
        times.extend(fault::next_due());
        times.extend(self.view.frozen_until());
        times.into_iter().min()
    }

    /// Descriptors that tell of a peer's end.
    pub fn pidfds(&self, each: &mut dyn FnMut(i32)) {
        for connection in self.each_connection() {
            if let Some(view) = connection.far_view()
                && view.process().is_alive()
                && let Some(fd) = view.process().pidfd()
            {
                each(fd);
            }
        }
    }
}

/// How long the head of a send queue may wait; `None` is for ever.
fn patience(rdma: &Rdma, wait: Wait) -> Option<u64> {
    let timeouts = topology::get().map(|topology| topology.timeouts).ok()?;
    match (wait, rdma.properties.rnr_retry_count.get()) {
        (Wait::Peer, _) => Some(clock::millis(timeouts.transport_timeout_ms.into())),
        (Wait::Receive, 7) => None,
        (Wait::Receive, count) => Some(clock::millis(u64::from(timeouts.rnr_step_ms) * u64::from(count))),
    }
}

/// The reading in which a failed task takes its context down.
fn fail_context(rdma: &Rdma, outcome: Outcome) {
    if !matches!(outcome, Outcome::Success | Outcome::Flushed) && profile::get().failed_task_stops_context {
        rdma.ctx().fall(rdma);
    }
}

/// What a program sees of an outcome.
fn code_of(outcome: Outcome) -> Code {
    match outcome {
        Outcome::Success => Code::SUCCESS,
        Outcome::Flushed if profile::get().flushed_shutdown => Code::SHUTDOWN,
        Outcome::Refused if !profile::get().refused_io_failed => Code::NOT_PERMITTED,
        _ => Code::IO_FAILED,
    }
}
