//! One run of a context, from its start until it is idle again: operations, connections, listeners. Handles belong
//! to a run, so those of an earlier one are recognised.

use crate::connection::{ConnectionId, Table};
use crate::instance::Instance;
use crate::values::Opcode;
use doca_common::buffer::{Load, Payload};
use doca_common::context::{Lifecycle, Member};
use doca_common::engine::Core;
use doca_common::raw::task::{Kept, Ready};
use doca_common::slot::{After, Slab, Slot};
use doca_common::{Access, Code, Error, Refusal, RemoteBuffer, RemoteEvent, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

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
#[derive(Default)]
pub enum Target {
    #[default]
    None,
    Memory(RemoteBuffer),
    Event(RemoteEvent),
}

/// What is kept in the slot of a task, beside its local buffer.
#[derive(Default)]
pub struct Flight {
    /// The C task, and what it was last told: its connection, and what stands in its fields.
    pub(crate) task: Kept,
    /// The same, as long as it is a prepared one that may be submitted.
    pub(crate) ready: Ready,
    pub(crate) on: Cell<ConnectionId>,
    pub(crate) told: [Cell<u64>; FIELDS],
    /// What it names at the peer.
    pub(crate) target: Cell<Target>,
    /// How it failed, otherwise success. The rest is there if the task is of a kind that has it, and succeeded.
    pub(crate) code: Cell<Code>,
    /// If it failed: whether another task had failed on its connection before.
    pub(crate) flushed: Cell<bool>,
    pub(crate) len: Cell<u32>,
    pub(crate) immediate: Cell<u32>,
    pub(crate) opcode: Cell<Opcode>,
    /// The connection of a message, by the bits of its name.
    pub(crate) from: Cell<u64>,
}

impl Flight {
    /// Makes it as it was before the task that came back, of which nobody wants to know. Gives the target, to be dropped.
    pub(crate) fn taken(&self) -> Target {
        self.code.set(Code::SUCCESS);
        self.target.take()
    }
}

/// The most fields that a kind of task has.
pub(crate) const FIELDS: usize = 4;

/// The slab of a run, and a place in it.
pub(crate) type Flights = Slab<Load, Flight>;
pub(crate) type Place = Slot<Load, Flight>;

/// The state of a run.
pub(crate) struct Run {
    instance: Rc<Instance>,
    slab: Rc<Flights>,
    table: RefCell<Table>,
    /// Whether a connection that nobody holds waits for its tasks.
    lingering: Cell<bool>,
    over: Cell<bool>,
}

impl Run {
    pub(crate) fn new(instance: &Rc<Instance>) -> Self {
        let connections = instance.handle().max_num_connections().unwrap_or(1);
        let slab = Rc::new(Slab::new(&instance.enabled()));
        Run {
            instance: instance.clone(),
            table: RefCell::new(Table::new(connections.into(), slab.clone())),
            slab,
            lingering: Cell::new(false),
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

    pub(crate) fn slab(&self) -> &Flights {
        &self.slab
    }

    pub(crate) fn lingering(&self) -> &Cell<bool> {
        &self.lingering
    }

    pub(crate) fn table(&self) -> &RefCell<Table> {
        &self.table
    }

    /// Whether the context went idle after this run, or is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get() || self.life().is_gone()
    }

    /// Whether this run is going on.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        !self.over.get() && self.life().is_running()
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
    pub(crate) fn check<P: Payload>(&self, call: &'static str, load: &P, role: Role) -> Result<()> {
        load.try_regions(|region| {
            if region.device() != self.instance.device() {
                return Err(other_device(call));
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
            Role::Source => (load.data_len(), usize::MAX),
            Role::Received => return Ok(()),
            Role::Fetched { len } => (len, load.room()),
            Role::Word => (8, load.first_room()),
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
    #[cold]
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

    /// A task came back for which something is to be done after progress.
    #[cold]
    pub(crate) fn came_back(&self, place: &Place) {
        if self.lingering.get() {
            self.land(place.side());
        }
        self.slab.queue(place);
    }

    /// A task failed, which does not come from ending its connection or the run.
    #[cold]
    pub(crate) fn task_failed(&self, flight: &Flight) {
        let before = self.is_running() && self.table().borrow_mut().task_failed(flight.on.get());
        flight.flushed.set(before);
    }

    /// A task came back while some connection waits for that.
    fn land(&self, flight: &Flight) {
        self.table.borrow_mut().landed(flight.on.get());
    }

    /// Tasks in flight on a connection, of each of which [`came_back`](Self::came_back) is told.
    pub(crate) fn flying_on(&self, connection: ConnectionId) -> usize {
        self.slab.heed(|flight| flight.on.get() == connection)
    }

    /// Prepared tasks may not be submitted any more.
    pub(crate) fn revoke(&self) {
        self.slab.held().for_each(|flight| flight.ready.revoke());
    }

    /// After progress: wakes, drops, and disconnects what nobody holds.
    pub(crate) fn settle(&self) {
        while let Some(after) = self.slab.after() {
            match after {
                After::Wake(waker) => waker.wake(),
                After::Drop { load, side } => drop((side.taken(), load)),
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
fn other_device(call: &'static str) -> Error {
    Error::refused(call, Refusal::OtherDevice)
}

#[cold]
fn not_writable(call: &'static str) -> Error {
    Error::refused(call, Refusal::Permissions)
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
