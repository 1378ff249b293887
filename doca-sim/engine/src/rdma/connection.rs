//! One connection of an RDMA instance, made by either method.

use super::{Addr, Rdma};
use crate::code::Code;
use crate::entry::{Object, Tag};
use crate::fabric::context::{ContextId, ContextView, LinkId, LinkState};
use crate::fabric::descriptor::ProcessRef;
use crate::fabric::mailbox::Control;
use crate::fabric::{clock, process, queue};
use crate::log;
use crate::rdmacm::OwnedId;
use crate::task::Task;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Weak;
use std::sync::Arc;

/// Where a connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnState {
    /// Exported; the peer's descriptor has not come yet.
    Exported,
    /// Connected through descriptors.
    Connected,
    /// CM server: a client asks.
    Requested,
    /// CM server: accepted, the client has not confirmed yet.
    Accepted,
    /// CM client: has asked.
    Connecting,
    /// CM: up.
    Established,
    /// CM: over; the program has not been told yet.
    Ending,
    /// Over.
    Gone,
}

/// Who made the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `doca_rdma_export`
    Export,
    /// `doca_rdma_connect_to_addr`
    Client,
    /// A request that came to a listening port.
    Server,
    /// `doca_rdma_bridge_prepare_connection`
    Bridge,
}

/// The far end, as it introduced itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Far {
    /// Its process.
    pub process: ProcessRef,
    /// Its context.
    pub context: ContextId,
    /// Its end of the connection.
    pub link: LinkId,
    /// Where letters about the connection go.
    pub control: Control,
}

impl Far {
    /// A far end that keeps its connection itself.
    pub fn plain(process: ProcessRef, context: ContextId, link: LinkId) -> Far {
        Far { process, context, link, control: Control { context, link } }
    }
}

/// What `struct doca_rdma_connection *` points to.
#[repr(C)]
pub struct Connection {
    tag: Tag,
    owner: Weak<Rdma>,
    id: LinkId,
    /// Who made it.
    pub origin: Origin,
    state: Cell<ConnState>,
    /// The program's word.
    pub user_data: Cell<u64>,
    far: Cell<Option<Far>>,
    far_view: RefCell<Option<Arc<ContextView>>>,
    /// Where the far end's letters about this connection go, if not here.
    pub own_control: Cell<Option<Control>>,
    /// The program's identifier of a bridged connection, as long as that lasts.
    pub bridged: RefCell<Option<OwnedId>>,
    /// When the far end was last looked for in vain.
    sought: Cell<u64>,
    /// The tasks in the send queue, by position.
    tasks: Box<[Cell<*const Task>]>,
    /// Next position to post.
    pub posted: Cell<u64>,
    /// Next position to report.
    pub reported: Cell<u64>,
    /// Posted without the flush flag.
    pub held: Cell<bool>,
    /// Whether the log said that it is broken.
    pub told_broken: Cell<bool>,
    /// Client: until when a reply is awaited.
    pub deadline: Cell<u64>,
    /// The descriptor handed out by export.
    pub descriptor: OnceCell<Vec<u8>>,
    /// Server: the library's own address. Client: the program's.
    pub own_addr: OnceCell<Box<Addr>>,
    /// See `own_addr`.
    pub program_addr: Cell<*const Addr>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Connection {
    const TAG: u32 = u32::from_le_bytes(*b"conn");
}

impl Connection {
    /// A connection in a slot.
    pub fn new(owner: Weak<Rdma>, id: LinkId, origin: Origin, state: ConnState, sends: u32) -> Self {
        Connection {
            tag: Tag::live::<Self>(),
            owner,
            id,
            origin,
            state: Cell::new(state),
            user_data: Cell::new(0),
            far: Cell::new(None),
            far_view: RefCell::new(None),
            own_control: Cell::new(None),
            bridged: RefCell::new(None),
            sought: Cell::new(0),
            tasks: (0..sends).map(|_| Cell::new(std::ptr::null())).collect(),
            posted: Cell::new(0),
            reported: Cell::new(0),
            held: Cell::new(false),
            told_broken: Cell::new(false),
            deadline: Cell::new(u64::MAX),
            descriptor: OnceCell::new(),
            own_addr: OnceCell::new(),
            program_addr: Cell::new(std::ptr::null()),
        }
    }

    /// The instance.
    pub fn owner(&self) -> &Weak<Rdma> {
        &self.owner
    }

    /// Slot and generation.
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// Where it is in its life.
    pub fn state(&self) -> ConnState {
        self.state.get()
    }

    /// Changes that.
    pub fn set_state(&self, state: ConnState) {
        log::trace!("connection {}: {:?} -> {state:?}", self.id.index, self.state.get());
        self.state.set(state);
    }

    /// Whether send-side tasks may be submitted.
    pub fn takes_sends(&self) -> bool {
        matches!(self.state.get(), ConnState::Connected | ConnState::Established)
    }

    /// Whether it was made by RDMA CM, and is looked after by the instance.
    pub fn is_cm(&self) -> bool {
        matches!(self.origin, Origin::Client | Origin::Server)
    }

    /// Whether all its tasks have been called back.
    pub fn is_drained(&self) -> bool {
        self.posted.get() == self.reported.get()
    }

    /// The task at a position of the send queue.
    pub fn task_at(&self, position: u64) -> &Cell<*const Task> {
        &self.tasks[position as usize & (self.tasks.len() - 1)]
    }

    /// Whether the send queue is full.
    pub fn is_full(&self) -> bool {
        self.posted.get() - self.reported.get() >= self.tasks.len() as u64
    }

    /// Learns who is at the far end.
    pub fn set_far(&self, far: Far) {
        let known = self.far.replace(Some(far));
        // Requests go to the mailbox of a listener; the connection itself may be kept in another context.
        if known.is_none_or(|known| (known.process, known.context) != (far.process, far.context)) {
            self.far_view.take();
            self.sought.set(0);
        }
    }

    /// Who is at the far end.
    pub fn far(&self) -> Option<Far> {
        self.far.get()
    }

    /// The far end's context, attached to at the first call that finds it.
    pub fn far_view(&self) -> Option<Arc<ContextView>> {
        if let Some(view) = &*self.far_view.borrow() {
            return Some(view.clone());
        }
        let far = self.far.get()?;
        let now = clock::now();
        if now.saturating_sub(self.sought.get()) < clock::millis(10) {
            return None;
        }
        self.sought.set(now);
        let view = process::attach(far.process).and_then(|process| process.context(far.context)).ok()?;
        *self.far_view.borrow_mut() = Some(view.clone());
        Some(view)
    }

    /// The mailbox that letters to the far end go to.
    pub fn far_mailbox(&self) -> Option<Arc<ContextView>> {
        let far = self.far.get()?;
        if far.control.context == far.context {
            return self.far_view();
        }
        process::attach(far.process).and_then(|process| process.context(far.control.context)).ok()
    }

    /// Whether the far end's process is known to have ended.
    pub fn far_is_dead(&self) -> bool {
        match &*self.far_view.borrow() {
            Some(view) => !view.process().is_alive(),
            None => false,
        }
    }

    /// Executes what can be executed of this side's send queue.
    pub fn pump(&self, own: &ContextView) {
        let far = self.far_view();
        queue::pump(own, self.id.index, far.as_deref());
    }

    /// Executes what can be executed of the far side's send queue: for when this side has become able to answer.
    pub fn pump_far(&self, own: &ContextView) {
        if let (Some(view), Some(far)) = (self.far_view(), self.far.get()) {
            queue::pump(&view, far.link.index, Some(own));
        }
    }

    /// Breaks the link; queued tasks are flushed.
    pub fn break_link(&self, own: &ContextView) {
        if let Some(link) = own.link(self.id.index)
            && link.state() != LinkState::Free
        {
            link.set_state(LinkState::Error);
        }
        queue::pump(own, self.id.index, None);
    }

    /// Forgets the address, and ends a bridged connection's identifier: the connection is over.
    pub fn let_go(&self) {
        drop(self.bridged.take());
        // SAFETY: the program keeps the address until its connections are over, and this one is not yet.
        if let Some(addr) = unsafe { self.program_addr.replace(std::ptr::null()).as_ref() } {
            addr.count_user(-1);
        }
    }

    /// The code of a call that needs a connection which can still be used.
    pub fn require_alive(&self) -> Result<(), Code> {
        if self.state.get() == ConnState::Gone { Err(Code::BAD_STATE) } else { Ok(()) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tag.kill();
    }
}
