//! `libdoca_sta`: storage targets whose data path runs on the adapter.
//!
//! ```text
//! core        what all threads meet in, under one lock
//! handle      numbers by which programs name objects
//! memory      what the program's allocator gives
//! subsystem   subsystems and namespaces
//! backend     back ends: queues in memory that the program has lent
//! io          IO contexts: events and tasks of one thread
//! inbox       what the engine's thread knows of them
//! calls       what an IO thread does with its queue pairs
//! qp          queue pairs, as the units see them
//! wire        their ends of connections
//! nvme        the bytes of commands, answers, descriptors
//! offload     reads and writes, which the units serve
//! token       commands that the program must answer
//! unit        the engine's thread, which does the work of the units
//! stats       counters
//! query       what an instance tells about itself
//! ```
//!
//! This file is the control context, what `struct doca_sta *` points to.

mod backend;
mod calls;
mod core;
mod handle;
mod inbox;
mod io;
mod memory;
mod nvme;
mod offload;
mod qp;
mod query;
mod stats;
mod subsystem;
mod token;
mod unit;
mod wire;

pub(crate) use backend::Maps;
pub(crate) use calls::look;
pub(crate) use core::{Core, Notice, Unit};
pub use handle::Handle;
pub(crate) use handle::Kind;
pub use io::{Callbacks, CommandCallback, IoTask, StaIo, TaskCallback, TransportCallback, TransportError};
pub use memory::{AddressCallback, AllocCallback, Allocator, FreeCallback};
pub use stats::Entry;

use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx, CtxState};
use crate::dev::Dev;
use crate::entry::{Object, Tag};
use crate::fault;
use crate::lock::lock;
use crate::log;
use crate::profile;
use crate::task::{Pool, Task};
use crate::topology::{self, StaCaps};
use core::ControlEvent;
use memory::{Buffer, Staging};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// `doca_sta_event_be_timeout_cb_t`
pub type TimeoutCallback = unsafe extern "C" fn(*const BackEndTimeout, u64);
/// `doca_sta_event_eu_err_cb_t`
pub type UnitCallback = unsafe extern "C" fn(*const UnitError, u64);
/// `doca_sta_event_cqe_notify_cb_t`
pub type NotifyCallback = unsafe extern "C" fn(*const Notified, u64);

/// `struct doca_sta_event_be_timeout`
#[repr(C)]
pub struct BackEndTimeout {
    tag: Tag,
    /// The back end.
    pub end: Handle,
    /// The queue.
    pub queue: Handle,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for BackEndTimeout {
    const TAG: u32 = u32::from_le_bytes(*b"stbt");
}

/// `struct doca_sta_event_eu_err`
#[repr(C)]
pub struct UnitError {
    tag: Tag,
    /// Whether everything is lost.
    pub fatal: bool,
    /// The unit.
    pub unit: Handle,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for UnitError {
    const TAG: u32 = u32::from_le_bytes(*b"stue");
}

/// `struct doca_sta_event_cqe_notify`
#[repr(C)]
pub struct Notified {
    tag: Tag,
    pub(crate) notice: Notice,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Notified {
    const TAG: u32 = u32::from_le_bytes(*b"stcn");
}

/// Kinds of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ControlTask {
    /// Removes a namespace.
    RemoveNamespace = 0,
    /// Ends a queue of a back end.
    DestroyQueue = 1,
}

const KINDS: [(ControlTask, &str, u32); 2] =
    [(ControlTask::RemoveNamespace, "sta_rm_ns", 64), (ControlTask::DestroyQueue, "sta_destroy_queue", 64)];

/// A storage target's control context.
#[repr(C)]
pub struct Sta {
    tag: Tag,
    ctx: Ctx,
    this: Weak<Sta>,
    core: Arc<Core>,
    control: Arc<Dev>,
    /// The devices that queue pairs can be on.
    network: RefCell<Vec<Arc<Dev>>>,
    confs: [Cell<Option<Callbacks>>; 2],
    timeouts: Cell<Option<(TimeoutCallback, u64)>>,
    unit_errors: Cell<Option<(UnitCallback, u64)>>,
    notices: Cell<Option<(NotifyCallback, u64)>>,
    pools: OnceCell<[Rc<Pool>; 2]>,
    /// Whether start has returned.
    started_before: Cell<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Sta {
    const TAG: u32 = u32::from_le_bytes(*b"sta_");
}

impl Sta {
    /// `doca_sta_create`: NOT_SUPPORTED on a device that cannot.
    pub fn new(dev: &Dev) -> Res<Rc<Sta>> {
        let (caps, name) = (&dev.device().sta, &dev.device().ibdev);
        if !caps.supported {
            log::error!("{name} cannot control a storage target");
            return Err(Code::NOT_SUPPORTED);
        }
        if !caps.substrate {
            log::error!(
                "{name}: what storage targets stand on is missing: RDMA and the DPA's runtime (libdoca_rdma, libflexio)"
            );
            return Err(Code::DRIVER);
        }
        let core = Core::new(dev.index(), caps)?;
        let control = dev.hold()?;
        let sta = Rc::new_cyclic(|this: &Weak<Sta>| Sta {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            this: this.clone(),
            core,
            control,
            network: RefCell::new(Vec::new()),
            confs: Default::default(),
            timeouts: Cell::new(None),
            unit_errors: Cell::new(None),
            notices: Cell::new(None),
            pools: OnceCell::new(),
            started_before: Cell::new(false),
            thread: Mutex::new(None),
        });
        let weak: Weak<Sta> = Rc::downgrade(&sta);
        sta.ctx.belong_to(weak);
        sta.core.owner.store(Rc::as_ptr(&sta).expose_provenance(), SeqCst);
        Ok(sta)
    }

    /// `doca_sta_destroy`: IN_USE unless the context is IDLE and nothing of it is left.
    pub fn retire(&self) -> Res {
        self.ctx.require_idle().map_err(|_| Code::IN_USE)?;
        {
            let state = self.core.hold();
            let target = &state.target;
            let (subsystems, ends) = (target.subsystems.len(), target.ends.len());
            if target.io_contexts > 0 || subsystems > 0 || ends > 0 {
                log::error!(
                    "doca_sta still has {} IO contexts, {subsystems} subsystems and {ends} back ends",
                    target.io_contexts
                );
                return Err(Code::IN_USE);
            }
        }
        self.core.owner.store(0, SeqCst);
        self.tag.kill();
        self.ctx.retire();
        Ok(())
    }

    /// What threads share of it.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// What the topology says about the control device.
    pub fn caps(&self) -> &'static StaCaps {
        self.core.caps
    }

    /// `doca_sta_add_dev`: a device for queue pairs, which may be the control device.
    pub fn add_dev(&self, dev: &Dev) -> Res {
        self.ctx.require_idle()?;
        let rdma = &dev.device().rdma;
        if !rdma.supported || !rdma.transports.rc {
            log::error!("{} has no reliable connections", dev.device().ibdev);
            return Err(Code::NOT_SUPPORTED);
        }
        let mut network = self.network.borrow_mut();
        if network.iter().any(|added| added.index() == dev.index()) {
            return Err(Code::ALREADY_EXIST);
        }
        let limit = topology::get()?.sta.max_devs;
        if network.len() >= limit as usize {
            log::error!("doca_sta has {limit} devices already");
            return Err(Code::NO_MEMORY);
        }
        network.push(dev.hold()?);
        self.core.hold().target.network.push(dev.index());
        Ok(())
    }

    /// `doca_sta_set_max_sta_io`
    pub fn set_max_sta_io(&self, count: u16) -> Res {
        self.ctx.require_idle()?;
        let limit = topology::get()?.sta.max_io_threads;
        if count == 0 || u32::from(count) > limit {
            log::error!("{count} IO contexts are not from 1 to {limit}");
            return Err(Code::INVALID_VALUE);
        }
        self.core.hold().target.max_sta_io = count;
        Ok(())
    }

    /// `doca_sta_get_max_sta_io`
    pub fn max_sta_io(&self) -> u16 {
        self.core.hold().target.max_sta_io
    }

    /// `doca_sta_mem_allocator_register`
    pub(crate) fn set_allocator(&self, allocator: Allocator) -> Res {
        self.ctx.require_idle()?;
        let known = &mut self.core.hold().target.allocator;
        if known.is_some() {
            return Err(Code::ALREADY_EXIST);
        }
        *known = Some(allocator);
        Ok(())
    }

    /// `doca_sta_*_task_*_set_conf`
    pub(crate) fn set_conf(&self, kind: ControlTask, callbacks: Callbacks) -> Res {
        self.ctx.require_idle()?;
        self.confs[kind as usize].set(Some(callbacks));
        Ok(())
    }

    /// `doca_sta_event_be_timeout_register_cb`
    pub(crate) fn set_timeouts(&self, callback: TimeoutCallback, data: u64) -> Res {
        self.ctx.require_idle()?;
        self.timeouts.set(Some((callback, data)));
        Ok(())
    }

    /// `doca_sta_event_eu_err_register_cb`
    pub(crate) fn set_unit_errors(&self, callback: UnitCallback, data: u64) -> Res {
        self.ctx.require_idle()?;
        self.unit_errors.set(Some((callback, data)));
        Ok(())
    }

    /// `doca_sta_event_cqe_notify_register_cb`
    pub(crate) fn set_notices(&self, callback: NotifyCallback, data: u64) -> Res {
        self.ctx.require_idle()?;
        self.notices.set(Some((callback, data)));
        self.core.hold().target.notifies = true;
        Ok(())
    }

    /// Memory for the data of commands, and the thread that serves them.
    fn set_up(&self, allocator: Allocator) -> Res {
        let staging = Staging::new(&allocator, self.core.limits.max_io_size)?;
        {
            let target = &mut self.core.hold().target;
            target.staging = staging;
            (target.ready, target.ending, target.broken) = (false, false, false);
        }
        match unit::start(&self.core) {
            Ok(thread) => {
                *lock(&self.thread) = Some(thread);
                // Programs count the steps of progress that the way to RUNNING takes, and the thread may be slow to begin.
                while !self.core.hold().target.ready {
                    std::thread::yield_now();
                }
                Ok(())
            }
            Err(error) => {
                log::error!("no thread for the execution units: {error}");
                self.tear_down();
                Err(Code::OPERATING_SYSTEM)
            }
        }
    }

    fn tear_down(&self) {
        self.core.hold().target.ending = true;
        self.core.kick();
        if let Some(thread) = lock(&self.thread).take() {
            // It holds nothing but the lock, and not for long.
            let _ = thread.join();
        }
        let (buffers, allocator) = {
            let target = &mut self.core.hold().target;
            let mut buffers: Vec<Buffer> = std::mem::take(&mut target.staging).into_buffers().collect();
            buffers.append(&mut target.lost);
            // Commands at silent disks, which nobody answers any more.
            buffers.extend(target.commands.values_mut().filter_map(|command| command.buffer.take()));
            target.inbox.clear();
            (buffers, target.allocator)
        };
        if let Some(allocator) = allocator {
            buffers.into_iter().for_each(|buffer| allocator.release(buffer));
        }
    }

    fn task(&self, kind: ControlTask, user_data: u64) -> Res<&Task> {
        self.ctx.require_running()?;
        self.pools.get().ok_or(Code::BAD_STATE)?[kind as usize].take(&self.ctx, user_data)
    }

    /// `doca_sta_subsystem_task_rm_ns_alloc_init`
    fn removal_task(&self, subsystem: Handle, space: Handle, user_data: u64) -> Res<*const Task> {
        self.core.hold().target.namespace(subsystem, space)?;
        let task = self.task(ControlTask::RemoveNamespace, user_data)?;
        task.fields.first.set(subsystem.bits());
        task.fields.second.set(space.bits());
        Ok(task)
    }

    /// `doca_sta_be_destroy_queue_task_alloc_init`
    fn destruction_task(&self, queue: Handle, user_data: u64) -> Res<*const Task> {
        if !self.core.hold().target.queues.contains_key(&queue) {
            return Err(Code::INVALID_VALUE);
        }
        let task = self.task(ControlTask::DestroyQueue, user_data)?;
        task.fields.first.set(queue.bits());
        Ok(task)
    }

    fn begin(&self, task: &Task) -> Res {
        let address = std::ptr::from_ref(task).expose_provenance();
        let [first, second] =
            [&task.fields.first, &task.fields.second].map(|field| Handle::from_bits(field.get()));
        let target = &mut self.core.hold().target;
        let waiting = match task.kind {
            kind if kind == ControlTask::RemoveNamespace as u32 => {
                &mut target.namespace(first, second)?.removing
            }
            _ => &mut target.queues.get_mut(&first).ok_or(Code::INVALID_VALUE)?.destroying,
        };
        if waiting.is_some() {
            log::error!("another task does that already");
            return Err(Code::BAD_STATE);
        }
        *waiting = Some(address);
        Ok(())
    }

    fn deliver(&self, event: &ControlEvent) -> bool {
        match *event {
            ControlEvent::Done { task, code } => {
                // SAFETY: submitted and not yet told of: its pool, which the context holds, keeps it.
                let kind = unsafe { (task as *const Task).as_ref() }.map_or(0, |task| task.kind);
                if let Some(callbacks) = self.confs.get(kind as usize).and_then(Cell::get) {
                    callbacks.call(&self.ctx, task, code);
                }
                true
            }
            ControlEvent::BackEndTimeout { end, queue } => {
                let Some((callback, data)) = self.timeouts.get() else { return false };
                let event = BackEndTimeout { tag: Tag::live::<BackEndTimeout>(), end, queue };
                // SAFETY: the program's own function; the event lives during the call.
                unsafe { callback(&event, data) };
                event.tag.kill();
                true
            }
            ControlEvent::UnitError { fatal, unit } => {
                let Some((callback, data)) = self.unit_errors.get() else { return false };
                let event = UnitError { tag: Tag::live::<UnitError>(), fatal, unit };
                // SAFETY: as above.
                unsafe { callback(&event, data) };
                event.tag.kill();
                true
            }
            ControlEvent::Notify(notice) => {
                let Some((callback, data)) = self.notices.get() else { return false };
                let event = Notified { tag: Tag::live::<Notified>(), notice };
                // SAFETY: as above.
                unsafe { callback(&event, data) };
                event.tag.kill();
                true
            }
        }
    }
}

/// The control context of an instance.
fn owner(core: &Core) -> Res<&Sta> {
    let address = core.owner.load(SeqCst);
    // SAFETY: the address of an instance as long as that has not been destroyed. Functions that need the control context are
    // for its thread, which also destroys it.
    unsafe { std::ptr::with_exposed_provenance::<Sta>(address).as_ref() }.ok_or(Code::INVALID_VALUE)
}

/// `doca_sta_subsystem_task_rm_ns_alloc_init`
pub(crate) fn removal_task(subsystem: Handle, space: Handle, user_data: u64) -> Res<*const Task> {
    let core = subsystem.core(Kind::Subsystem)?;
    owner(&core)?.removal_task(subsystem, space, user_data)
}

/// `doca_sta_be_destroy_queue_task_alloc_init`
pub(crate) fn destruction_task(queue: Handle, user_data: u64) -> Res<*const Task> {
    let core = queue.core(Kind::Queue)?;
    owner(&core)?.destruction_task(queue, user_data)
}

impl Context for Sta {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_sta"
    }

    fn kind_name(&self, kind: u32) -> &'static str {
        KINDS.iter().find(|(known, ..)| *known as u32 == kind).map_or("task", |(_, name, _)| name)
    }

    fn start(&self) -> Res {
        if self.network.borrow().is_empty() {
            log::error!("doca_sta has no device for queue pairs; call doca_sta_add_dev before start");
            return Err(Code::INVALID_VALUE);
        }
        let allocator = self.core.hold().target.allocator;
        let (Some(allocator), true) = (allocator, self.confs.iter().all(|conf| conf.get().is_some())) else {
            log::error!(
                "doca_sta cannot start without doca_sta_mem_allocator_register, \
                 doca_sta_subsystem_task_rm_ns_set_conf and doca_sta_be_task_destroy_queue_set_conf"
            );
            return Err(Code::INITIALIZATION);
        };
        if !self.caps().permitted {
            log::error!(
                "{}: this process may not run code on the DPA; run it as root, in a privileged container",
                self.control.device().ibdev
            );
            return Err(Code::NOT_PERMITTED);
        }
        self.set_up(allocator)?;
        let owner: Weak<dyn Context> = self.this.clone();
        let _ = self.pools.set(KINDS.map(|(kind, _, count)| Pool::new(&owner, kind as u32, count)));
        self.started_before.set(profile::get().sta_start_at_once);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.started_before.replace(true)
    }

    fn may_stop(&self) -> Res {
        let running = self.core.hold().target.ios.len();
        if running > 0 {
            log::error!("{running} IO contexts of doca_sta still run");
            return Err(Code::IN_USE);
        }
        Ok(())
    }

    fn entered(&self, state: CtxState) {
        self.core.hold().target.phase = state;
    }

    fn stop(&self) {}

    fn stopped(&self) {
        self.tear_down();
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn submit(&self, task: &Task, _flush: bool) -> Res {
        if fault::will_fail(task) {
            let event = ControlEvent::Done {
                task: std::ptr::from_ref(task).expose_provenance(),
                code: Code::IO_FAILED,
            };
            self.core.hold().target.tell(event);
            return Ok(());
        }
        self.begin(task)?;
        self.core.kick();
        Ok(())
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        loop {
            let event = self.core.hold().target.next_event();
            match event {
                None => return false,
                Some(event) if self.deliver(&event) => return true,
                Some(_) => {}
            }
        }
    }

    fn has_work(&self) -> bool {
        self.core.hold().target.has_event()
    }

    fn arm(&self, wake_fd: i32) {
        self.core.hold().target.wake = Some(wake_fd);
    }

    fn disarm(&self) {
        self.core.hold().target.wake = None;
    }

    fn deadline(&self) -> Option<u64> {
        fault::next_due()
    }

    fn pidfds(&self, _each: &mut dyn FnMut(i32)) {}
}
