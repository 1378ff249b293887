//! One run of a context, from its start until it is idle again: operations, connections, listeners. Handles belong
//! to a run, so those of an earlier one are recognised.

use crate::connection::{ConnectionId, Table};
use crate::instance::Instance;
use crate::task::Task;
use crate::values::Opcode;
use doca_common::buffer::Load;
use doca_common::context::{Lifecycle, Member, State};
use doca_common::engine::Core;
use doca_common::raw::task::Tasks;
use doca_common::slot::{After, Slab, Token};
use doca_common::{Access, Code, Error, Refusal, RemoteBuffer, RemoteEvent, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// What a task did to the buffer it had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Nothing: it was a source.
    None,
    /// Filled it from the start.
    Message,
    /// Put 8 bytes at the start.
    Word,
    /// Nobody says.
    Unknown,
}

/// What a task does with its local buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Takes its data.
    Source,
    /// Fills it with a message of a peer.
    Received,
    /// Fills it with this many bytes of a peer.
    Fetched { len: usize },
    /// Fills its first 8 bytes.
    Word,
}

/// What a task names at the peer, and keeps until it is done.
#[derive(Debug, Default)]
pub(crate) enum Target {
    #[default]
    None,
    Memory(#[expect(dead_code, reason = "only kept")] RemoteBuffer),
    Event(#[expect(dead_code, reason = "only kept")] RemoteEvent),
}

/// How a task ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub(crate) arrival: Arrival,
    pub(crate) code: Code,
    pub(crate) len: u32,
    pub(crate) immediate: u32,
    pub(crate) opcode: Opcode,
    pub(crate) connection: ConnectionId,
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome {
            arrival: Arrival::None,
            code: Code::SUCCESS,
            len: 0,
            immediate: 0,
            opcode: Opcode::SEND,
            connection: ConnectionId::UNKNOWN,
        }
    }
}

impl Outcome {
    pub(crate) fn failed(code: Code) -> Self {
        Outcome { code, ..Outcome::default() }
    }
}

/// The state of a run.
pub(crate) struct Run {
    instance: Rc<Instance>,
    slab: RefCell<Slab<Load, Outcome>>,
    tasks: Tasks,
    /// The connection that the task of each slot is on.
    on: Box<[Cell<ConnectionId>]>,
    /// What the task of each slot names at the peer.
    targets: Box<[Cell<Target>]>,
    table: RefCell<Table>,
    over: Cell<bool>,
}

impl Run {
    pub(crate) fn new(instance: &Rc<Instance>) -> Self {
        let slab = Slab::new(&instance.enabled());
        let tasks = Tasks::new(slab.len());
        let on = vec![Cell::new(ConnectionId::UNKNOWN); slab.len()].into_boxed_slice();
        let targets = (0..slab.len()).map(|_| Cell::default()).collect();
        let connections = instance.handle().max_num_connections().unwrap_or(1);
        Run {
            instance: instance.clone(),
            slab: RefCell::new(slab),
            tasks,
            on,
            targets,
            table: RefCell::new(Table::new(connections.into())),
            over: Cell::new(false),
        }
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    pub(crate) fn life(&self) -> &Lifecycle {
        self.instance.life()
    }

    pub(crate) fn core(&self) -> Option<&Rc<Core>> {
        self.life().engine()
    }

    pub(crate) fn slab(&self) -> &RefCell<Slab<Load, Outcome>> {
        &self.slab
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(crate) fn table(&self) -> &RefCell<Table> {
        &self.table
    }

    /// Whether the context went idle after this run, or is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get() || self.life().is_gone()
    }

    /// Refuses unless this run is going on.
    pub(crate) fn require_running(&self, call: &'static str) -> Result<()> {
        if self.over.get() {
            return Err(Error::refused(call, Refusal::Stale));
        }
        self.life().require_running(call)
    }

    /// Refuses unless this run has been started and does not stop: for connections.
    pub(crate) fn require_started(&self, call: &'static str) -> Result<()> {
        if self.over.get() {
            return Err(Error::refused(call, Refusal::Stale));
        }
        self.life().require_started(call)
    }

    /// Refuses a buffer that this context cannot use, as DOCA would not.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, load: &Load, role: Role) -> Result<()> {
        load.try_regions(|region| {
            if region.device() != self.instance.device() {
                return Err(Error::refused(call, Refusal::OtherDevice));
            }
            if role != Role::Source && !region.access().contains(Access::LOCAL_READ_WRITE) {
                return Err(not_writable(call));
            }
            Ok(())
        })?;
        if load.num_buffers() > 1 {
            self.check_chain(call, load.num_buffers(), role)?;
        }
        let (len, room) = match role {
            Role::Source => (load.len(), usize::MAX),
            Role::Received => return Ok(()),
            Role::Fetched { len } => (len, load.capacity()),
            Role::Word => (8, load.first_capacity()),
        };
        if len > room {
            return Err(too_long(call, len, "room in the buffer", room));
        }
        if len > self.instance.max_message() {
            return Err(too_long(call, len, "rdma.max_message_size", self.instance.max_message()));
        }
        Ok(())
    }

    /// Refuses a chain that is longer than the context was configured for.
    fn check_chain(&self, call: &'static str, len: usize, role: Role) -> Result<()> {
        let handle = self.instance.handle();
        let (name, most) = match role {
            Role::Received => ("receive_buf_list_len", handle.receive_buf_list_len()?),
            _ => ("max_send_buf_list_len", handle.max_send_buf_list_len()?),
        };
        if len <= most as usize {
            return Ok(());
        }
        Err(Error::refused(call, Refusal::TooLong).with(format!("a chain of {len} buffers, {name} = {most}")))
    }

    /// Keeps what a task names at the peer.
    #[inline]
    pub(crate) fn aim(&self, token: Token, target: Target) {
        self.targets[token.index as usize].set(target);
    }

    /// The task of a slot is done with what it named at the peer, if its kind does that. Not for callbacks.
    #[inline]
    pub(crate) fn forget_target<T: Task>(&self, token: Token) {
        if T::TARGETED {
            drop(self.targets[token.index as usize].take());
        }
    }

    /// Notes which connection the task of a slot is on.
    pub(crate) fn set_on(&self, token: Token, connection: ConnectionId) {
        self.on[token.index as usize].set(connection);
    }

    /// The task of a slot is not in flight any more; true if its connection waits for that.
    pub(crate) fn land(&self, token: Token) -> bool {
        let connection = self.on[token.index as usize].replace(ConnectionId::UNKNOWN);
        connection != ConnectionId::UNKNOWN && self.table.borrow_mut().landed(connection)
    }

    /// Records how a task ended; true if something is to be done after progress.
    pub(crate) fn finish(&self, token: Token, outcome: Outcome) -> bool {
        let note = |load: &mut Load| match outcome.arrival {
            Arrival::None => {}
            Arrival::Message => load.filled(outcome.len as usize),
            Arrival::Word => {
                load.filled(8);
                load.disturbed();
            }
            Arrival::Unknown => load.disturbed(),
        };
        let Some(after) = self.slab.borrow_mut().complete(token, outcome, note) else { return false };
        // A task that comes back while the context stops must be freed, or it would never be idle.
        self.land(token) | after | (self.life().state() != State::Running)
    }

    /// After progress: wakes, drops, and disconnects what nobody holds.
    pub(crate) fn settle(&self) {
        loop {
            let next = self.slab.borrow_mut().after();
            match next {
                Some(After::Wake(waker)) => waker.wake(),
                Some(After::Drop { index, load }) => {
                    drop(self.targets[index as usize].take());
                    drop(load);
                }
                None => break,
            }
        }
        self.settle_connections();
    }

    /// The context is idle: connections are gone, and tasks came back.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.end_connections();
        self.settle();
    }
}

#[cold]
fn not_writable(call: &'static str) -> Error {
    let text = "the local memory lacks LOCAL_READ_WRITE (first column of the permission matrix)";
    Error::refused(call, Refusal::Permissions).with(text)
}

#[cold]
fn too_long(call: &'static str, len: usize, limit: &str, most: usize) -> Error {
    Error::refused(call, Refusal::TooLong).with(format!("{len} bytes, {limit} = {most}"))
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("instance", &self.instance)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
