//! One run of a server or client, from its start until it is idle again: connections and messages. Handles belong to a
//! run, so those of an earlier one are recognised.

use crate::connection::{ConnectionId, ConnectionState, Table};
use crate::control::{Control, Ended};
use crate::event::Event;
use crate::family::Family;
use crate::outbox::Outbox;
use crate::raw::bytes::Bytes;
use crate::raw::connection::Link;
use crate::raw::end::End;
use doca_common::context::{Lifecycle, Member, State};
use doca_common::engine::Core;
use doca_common::slot::Token;
use doca_common::{Code, Device, Error, Kind, Refusal, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

pub(crate) const SEND: &str = "doca_comch_task_send";
pub(crate) const DISCONNECT: &str = "doca_comch_server_disconnect";

/// The state of a run.
pub struct Run {
    control: Rc<Control>,
    outbox: RefCell<Outbox>,
    bytes: Bytes,
    table: RefCell<Table>,
    max_message: usize,
    /// Messages that one connection can have on their way.
    share: u32,
    /// Whether the context got to RUNNING.
    reached: Cell<bool>,
    /// Whether the program wanted the end.
    asked: Cell<bool>,
    /// How the first message that could not be sent ended.
    failure: Cell<Option<Code>>,
    over: Cell<bool>,
}

impl Run {
    pub(crate) fn new(control: &Rc<Control>, max_msg_size: u32) -> Self {
        let tasks = control.send_tasks();
        Run {
            control: control.clone(),
            outbox: RefCell::new(Outbox::new(tasks)),
            bytes: Bytes::new(tasks as usize, max_msg_size as usize),
            table: RefCell::new(Table::default()),
            max_message: max_msg_size as usize,
            share: control.sends_per_connection(),
            reached: Cell::new(false),
            asked: Cell::new(false),
            failure: Cell::new(None),
            over: Cell::new(false),
        }
    }

    pub(crate) fn life(&self) -> &Lifecycle {
        self.control.life()
    }

    pub(crate) fn core(&self) -> Option<&Rc<Core>> {
        self.life().engine()
    }

    pub(crate) fn table(&self) -> &RefCell<Table> {
        &self.table
    }

    pub(crate) fn max_message(&self) -> usize {
        self.max_message
    }

    /// Whether the context went idle after this run, or is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get() || self.life().is_gone()
    }

    pub(crate) fn device(&self) -> &Device {
        self.control.device()
    }

    /// The program wants the end, unless it has come by itself. Producers and consumers go first.
    pub(crate) fn stop_asked(&self) {
        if matches!(self.life().state(), State::Starting | State::Running) {
            self.asked.set(true);
        }
        self.table.borrow().orphan_all();
    }

    /// Refuses unless this run is going on.
    pub(crate) fn require_running(&self, call: &'static str) -> Result<()> {
        if self.over.get() {
            return Err(Error::refused(call, Refusal::Stale));
        }
        self.life().require_running(call)
    }

    /// The connection of a client that runs; it is entered here when it is first asked for.
    pub(crate) fn own_connection(&self) -> Result<ConnectionId> {
        if let Some(id) = self.table.borrow().first() {
            return Ok(id);
        }
        self.require_running("doca_comch_client_get_connection")?;
        let link = self.control.end().own_connection()?;
        self.reached.set(true);
        Ok(self.enter(link))
    }

    /// Enters a connection that is established.
    fn enter(&self, link: Link) -> ConnectionId {
        let family = Family::new(self.control.children());
        let id = self.table.borrow_mut().insert(link, family);
        if let Err(error) = link.address_to(id) {
            // The table finds it by its address all the same.
            log::warn!("{error}");
        }
        id
    }

    /// The entry of a connection that a callback names.
    fn find(&self, link: Link, id: ConnectionId) -> Option<ConnectionId> {
        if let Some(id) = self.table.borrow().find(link, id) {
            return Some(id);
        }
        // A client's messages can come in the step in which it gets to RUNNING.
        let is_own = matches!(self.control.end(), End::Client(_)) && self.life().state() == State::Running;
        if is_own { self.own_connection().ok() } else { None }
    }

    /// Sends a message, in parts.
    pub(crate) fn send(&self, id: ConnectionId, parts: &[&[u8]]) -> Result<()> {
        self.require_running(SEND)?;
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > self.max_message {
            return Err(too_long(len, self.max_message));
        }
        let link = self.table.borrow_mut().take_off(id, self.share)?;
        let taken = self.outbox.borrow_mut().take(id);
        let Some(token) = taken else {
            self.table.borrow_mut().landed(id);
            return Err(Error::refused(SEND, Refusal::Full));
        };
        match self.control.end().send(link, &self.bytes, token, parts) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.outbox.borrow_mut().give(token);
                self.table.borrow_mut().landed(id);
                // DOCA's pool has other sizes than were asked for, or counts tasks longer than this side does.
                Err(match error.code() {
                    Some(Code::NO_MEMORY) => Error::refused(SEND, Refusal::Full),
                    // All arguments were checked: it is the connection that is over, which was not told yet.
                    Some(Code::INVALID_VALUE) => link.counters().err().unwrap_or(error),
                    _ => error,
                })
            }
        }
    }

    /// Records how a message ended; true if something is to be done after progress.
    pub(crate) fn sent(&self, token: Token, code: Code) -> bool {
        let Some(id) = self.outbox.borrow_mut().give(token) else { return false };
        let mut table = self.table.borrow_mut();
        if code != Code::SUCCESS {
            self.failure.set(self.failure.get().or(Some(code)));
            table.failed(id, code);
        }
        table.landed(id)
    }

    /// A message has come; true if somebody waits for it. Runs inside a callback.
    pub(crate) fn received(&self, link: Link, id: ConnectionId, message: &[u8]) -> bool {
        let Some(id) = self.find(link, id) else { return false };
        !self.control.hand_over(id, message) && self.table.borrow_mut().deliver(id, message)
    }

    /// A client has come, or failed to.
    pub(crate) fn connected(&self, link: Option<Link>) {
        match link {
            Some(link) => {
                let id = self.enter(link);
                self.table.borrow_mut().arrive(id);
            }
            None => self.table.borrow_mut().tell(Event::ConnectFailed),
        }
    }

    /// The connection has ended, and is not valid any more.
    pub(crate) fn disconnected(&self, link: Link, id: ConnectionId) {
        let mut table = self.table.borrow_mut();
        if let Some(id) = table.find(link, id) {
            table.ended(id);
        }
    }

    pub(crate) fn consumer_up(&self, link: Link, id: ConnectionId, consumer: u32) {
        if let Some(id) = self.find(link, id) {
            self.table.borrow_mut().consumer_up(id, consumer);
        }
    }

    pub(crate) fn consumer_down(&self, link: Link, id: ConnectionId, consumer: u32) {
        if let Some(id) = self.find(link, id) {
            self.table.borrow_mut().consumer_down(id, consumer);
        }
    }

    /// A server ends a connection: at once, or after progress if DOCA asks for that or a callback is running. The library
    /// does not tell of an end that the server wanted, so it is told here.
    pub(crate) fn disconnect(&self, id: ConnectionId) -> Result<()> {
        self.require_running(DISCONNECT)?;
        let core = self.core().ok_or_else(|| Error::refused(DISCONNECT, Refusal::Stopped))?;
        if !self.table.borrow_mut().begin_disconnect(id)? {
            return Ok(());
        }
        core.mark();
        if core.is_inside() {
            return Ok(());
        }
        match self.pursue_disconnect(id) {
            Err(error) if error.kind() != Kind::Again => {
                self.table.borrow_mut().set_connected(id);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Asks DOCA to end a connection.
    fn pursue_disconnect(&self, id: ConnectionId) -> Result<()> {
        let Some(link) = self.table.borrow().link(id) else { return Ok(()) };
        self.control.end().disconnect(link)?;
        self.table.borrow_mut().ended(id);
        Ok(())
    }

    /// Wakes who waits. Nothing is borrowed while a waker runs.
    fn wake(&self) {
        let awake = self.table.borrow_mut().take_awake();
        for waker in awake {
            waker.wake();
        }
    }

    /// After progress: wakes who waits, and ends connections that are to be ended.
    pub(crate) fn settle(&self) {
        if self.life().state() == State::Running {
            self.reached.set(true);
            if matches!(self.control.end(), End::Client(_))
                && let Err(error) = self.own_connection()
            {
                log::warn!("{error}");
            }
        }
        self.wake();
        if !self.table.borrow_mut().take_dirty() {
            return;
        }
        let is_server = matches!(self.control.end(), End::Server(_));
        let mut index = 0;
        loop {
            let next = self.table.borrow_mut().ending(&mut index, is_server);
            let Some(id) = next else { break };
            if self.life().state() != State::Running {
                continue;
            }
            match self.pursue_disconnect(id) {
                Ok(()) => {}
                Err(error) if matches!(error.code(), Some(Code::AGAIN | Code::IN_USE)) => {
                    self.table.borrow_mut().set_dirty();
                    if let Some(core) = self.core() {
                        core.look_again();
                    }
                }
                Err(error) => {
                    log::warn!("{error}");
                    self.table.borrow_mut().ended(id);
                }
            }
        }
    }

    /// The context is idle: connections are gone, and messages came back. Tells why.
    pub(crate) fn end(&self) -> Ended {
        self.over.set(true);
        self.table.borrow_mut().end();
        self.wake();
        match (self.asked.get(), self.reached.get()) {
            (true, _) => Ended::Stopped,
            (false, false) => Ended::NotReached,
            (false, true) => Ended::Lost(self.failure.get()),
        }
    }

    /// Where a connection is now. It is over as soon as its end leaves RUNNING.
    pub(crate) fn state_of(&self, id: ConnectionId) -> ConnectionState {
        if self.is_over() || self.life().state() != State::Running {
            return ConnectionState::Disconnected;
        }
        self.table.borrow().state(id)
    }
}

#[cold]
fn too_long(len: usize, most: usize) -> Error {
    Error::refused(SEND, Refusal::TooLong).with(format!("{len} bytes, max_msg_size = {most}"))
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("control", &self.control)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
