//! `libdoca_rdma`: what `struct doca_rdma *` points to.
//!
//! ```text
//! mod         the object: device, configuration, callbacks
//! properties  settings and their limits
//! running     what exists between start and stop; progress
//! submit      checks of a task and its way into a queue
//! connection  one connection, by either method
//! cm          RDMA CM: listen, connect, accept, reject, disconnect
//! bridge      connections that a program makes with librdmacm
//! address     `struct doca_rdma_addr`
//! ```

mod address;
mod bridge;
mod cm;
mod connection;
mod properties;
mod running;
mod submit;

pub use address::Addr;
pub use connection::Connection;
pub(crate) use connection::Far;
pub use properties::Properties;

use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::dev::Dev;
use crate::entry::{Object, Tag};
use crate::profile;
use crate::task::{Task, TaskCallback};
use crate::topology::{Device, RdmaTask};
use running::Running;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Task kinds.
pub const KINDS: usize = RdmaTask::ALL.len();

/// What `doca_rdma_task_*_set_conf` sets.
#[derive(Clone, Copy)]
pub struct TaskConf {
    /// Called when a task has ended well.
    pub success: TaskCallback,
    /// Called when it has not.
    pub failure: TaskCallback,
    /// Tasks in the pool.
    pub count: u32,
}

/// `doca_rdma_connection_request_cb_t`
pub type RequestCallback = unsafe extern "C" fn(*const Connection, u64);
/// `doca_rdma_connection_established_cb_t` and its two siblings.
pub type ConnectionCallback = unsafe extern "C" fn(*const Connection, u64, u64);

/// What `doca_rdma_set_connection_state_callbacks` sets.
#[derive(Clone, Copy)]
pub struct CmCallbacks {
    /// A client asks; absent on pure clients.
    pub request: Option<RequestCallback>,
    /// The connection is up.
    pub established: ConnectionCallback,
    /// It could not be made.
    pub failure: ConnectionCallback,
    /// It ended.
    pub disconnection: ConnectionCallback,
}

/// An RDMA instance.
#[repr(C)]
pub struct Rdma {
    tag: Tag,
    ctx: Ctx,
    this: Weak<Rdma>,
    dev: Arc<Dev>,
    /// Settings.
    pub properties: Properties,
    confs: [Cell<Option<TaskConf>>; KINDS],
    cm: Cell<Option<CmCallbacks>>,
    running: RefCell<Option<Rc<Running>>>,
    /// What ran last: programs read freed tasks and dead connections until they destroy or restart the instance.
    retired: RefCell<Option<Rc<Running>>>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Rdma {
    const TAG: u32 = u32::from_le_bytes(*b"rdma");
}

impl Rdma {
    /// `doca_rdma_create`
    pub fn new(dev: &Dev) -> Res<Rc<Rdma>> {
        if !dev.device().rdma.supported {
            crate::log::error!("{} cannot host an RDMA instance", dev.device().ibdev);
            return Err(Code::INITIALIZATION);
        }
        let dev = dev.hold()?;
        let rdma = Rc::new_cyclic(|this| Rdma {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            this: this.clone(),
            properties: Properties::new(dev.device()),
            dev,
            confs: Default::default(),
            cm: Cell::new(None),
            running: RefCell::new(None),
            retired: RefCell::new(None),
        });
        let weak: Weak<Rdma> = Rc::downgrade(&rdma);
        rdma.ctx.belong_to(weak);
        Ok(rdma)
    }

    /// `doca_rdma_destroy`: BAD_STATE unless the context is IDLE.
    pub fn retire(&self) -> Res {
        self.ctx.require_idle()?;
        self.tag.kill();
        self.ctx.retire();
        Ok(())
    }

    /// The simulated device.
    pub fn device(&self) -> &'static Device {
        self.dev.device()
    }

    /// The opened device.
    pub fn dev(&self) -> &Dev {
        &self.dev
    }

    /// Position of the device in the topology.
    pub fn device_index(&self) -> u32 {
        self.dev.index() as u32
    }

    /// `doca_rdma_task_*_set_conf`
    pub fn set_conf(&self, kind: RdmaTask, conf: TaskConf) -> Res {
        self.ctx.require_idle()?;
        if !self.device().rdma.task(kind) {
            crate::log::error!("{} does not support {} tasks", self.device().ibdev, kind.name());
            return Err(Code::NOT_SUPPORTED);
        }
        if conf.count == 0 || conf.count > crate::task::MAX_TASKS {
            return Err(Code::INVALID_VALUE);
        }
        self.confs[kind as usize].set(Some(conf));
        Ok(())
    }

    /// The configuration of a kind, if it has one.
    pub fn conf(&self, kind: RdmaTask) -> Option<TaskConf> {
        self.confs[kind as usize].get()
    }

    /// `doca_rdma_set_connection_state_callbacks`
    pub fn set_cm_callbacks(&self, callbacks: CmCallbacks) -> Res {
        self.ctx.require_idle()?;
        self.cm.set(Some(callbacks));
        Ok(())
    }

    /// `doca_rdma_task_*_allocate_init`, first half: a task with empty fields.
    pub fn take_task(&self, kind: RdmaTask, user_data: u64) -> Res<*const Task> {
        self.ctx.require_running()?;
        let running = self.running()?;
        let pool = running.pool(kind).ok_or_else(|| {
            crate::log::error!("{} tasks were not configured: call set_conf before start", kind.name());
            Code::INVALID_VALUE
        })?;
        pool.take(&self.ctx, user_data).map(std::ptr::from_ref)
    }

    fn running(&self) -> Res<Rc<Running>> {
        self.running.borrow().clone().ok_or(Code::BAD_STATE)
    }

    /// Whether a connection is one of this instance, now or before.
    pub fn owns(&self, connection: &Connection) -> bool {
        std::ptr::eq(connection.owner().as_ptr(), self)
    }
}

impl Context for Rdma {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_rdma"
    }

    fn kind_name(&self, kind: u32) -> &'static str {
        RdmaTask::ALL[kind as usize].name()
    }

    fn start(&self) -> Res {
        self.properties.check_transport(self.device())?;
        self.retired.take();
        let running = Running::start(self)?;
        *self.running.borrow_mut() = Some(running);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        // DC is younger than the releases that wait, and its targets never connect.
        let waits = profile::get().starting_until_connected && self.properties.transport.get() == 0;
        !waits || self.running().is_ok_and(|running| running.is_connected())
    }

    fn stop(&self) {
        if let Ok(running) = self.running() {
            running.stop(self);
        }
    }

    fn stopped(&self) {
        if let Some(running) = self.running.take() {
            running.release();
            *self.retired.borrow_mut() = Some(running);
        }
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn submit(&self, task: &Task, flush: bool) -> Res {
        submit::submit(self, &*self.running()?, task, flush)
    }

    fn flush(&self) {
        if let Ok(running) = self.running() {
            running.flush();
        }
    }

    fn step(&self) -> bool {
        self.running().is_ok_and(|running| running.step(self))
    }

    fn has_work(&self) -> bool {
        self.running().is_ok_and(|running| running.has_work())
    }

    fn arm(&self, wake_fd: i32) {
        if let Ok(running) = self.running() {
            running.view().arm(wake_fd);
        }
    }

    fn disarm(&self) {
        if let Ok(running) = self.running() {
            running.view().disarm();
        }
    }

    fn deadline(&self) -> Option<u64> {
        self.running().ok().and_then(|running| running.deadline(self))
    }

    fn pidfds(&self, each: &mut dyn FnMut(i32)) {
        if let Ok(running) = self.running() {
            running.pidfds(each);
        }
    }
}
