//! One `doca_sta`, from its creation to its destruction, with the disks, subsystems and namespaces of its description.

use crate::config::{BackEndId, Namespace, NamespaceId, SubsystemId};
use crate::event::Event;
use crate::io_instance::Family;
use crate::raw::memory::{Allocator, Lease};
use crate::raw::object::{BackEnd, Ns, Subs};
use crate::raw::queue::{Lent, NvmeQueue};
use crate::raw::sta::Handle;
use crate::raw::task::{Ended, Token};
use doca_common::context::{Lifecycle, Member, State};
use doca_common::{Code, Device, Error, Refusal, Result};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::ffi::CString;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// Where an object of the description is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// DOCA was not told yet.
    Planned,
    Live,
    /// A task is to be submitted, when DOCA has one.
    Unwanted,
    /// A task is in flight.
    Removing,
    Gone,
    /// DOCA did not let it go.
    Stuck,
}

pub(crate) struct SubsystemEntry {
    pub(crate) nqn: CString,
    pub(crate) handle: Option<Subs>,
}

pub(crate) struct BackEndEntry {
    pub(crate) handle: Option<BackEnd>,
    pub(crate) removed: bool,
}

pub(crate) struct QueueEntry {
    pub(crate) back_end: usize,
    pub(crate) phase: Phase,
    /// Until DOCA has it.
    pub(crate) planned: Option<Box<dyn NvmeQueue>>,
    pub(crate) lent: Option<Lent>,
}

pub(crate) struct NamespaceEntry {
    pub(crate) plan: Namespace,
    pub(crate) phase: Phase,
    pub(crate) handle: Option<Ns>,
}

/// What is described, and how far DOCA has it.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) subsystems: Vec<SubsystemEntry>,
    pub(crate) back_ends: Vec<BackEndEntry>,
    pub(crate) queues: Vec<QueueEntry>,
    pub(crate) namespaces: Vec<NamespaceEntry>,
}

/// The C object and what belongs to it.
pub struct Instance {
    handle: Handle,
    life: Lifecycle,
    control: Device,
    channel: u16,
    pub(crate) objects: RefCell<Objects>,
    /// Added before the start.
    pub(crate) networks: RefCell<Vec<Device>>,
    /// What IO contexts share with this, from the first start on.
    family: OnceCell<Arc<Family>>,
    limits: crate::Limits,
    lease: RefCell<Option<Lease>>,
    hearing: Cell<bool>,
    events: RefCell<VecDeque<Event>>,
    recording: Cell<bool>,
    /// Queues that DOCA let go, to be given back outside callbacks.
    returned: RefCell<Vec<Lent>>,
}

/// Numbers of contexts in user data.
pub(crate) fn next_channel() -> u16 {
    static CHANNEL: AtomicU16 = AtomicU16::new(1);
    CHANNEL.fetch_add(1, Ordering::Relaxed)
}

impl Instance {
    pub(crate) fn new(control: &Device) -> Result<Rc<Self>> {
        let limits = crate::Limits::of(&control.info())?;
        let handle = Handle::new(control)?;
        match handle.context() {
            Ok(ctx) => Ok(Rc::new(Instance {
                handle,
                life: Lifecycle::new(ctx),
                control: control.clone(),
                channel: next_channel(),
                objects: RefCell::default(),
                networks: RefCell::default(),
                family: OnceCell::new(),
                limits,
                lease: RefCell::default(),
                hearing: Cell::new(false),
                events: RefCell::default(),
                recording: Cell::new(false),
                returned: RefCell::default(),
            })),
            Err(error) => {
                if let Err(error) = handle.destroy() {
                    log::warn!("{error}");
                }
                Err(error)
            }
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn channel(&self) -> u16 {
        self.channel
    }

    pub(crate) fn control(&self) -> &Device {
        &self.control
    }

    pub(crate) fn limits(&self) -> &crate::Limits {
        &self.limits
    }

    pub(crate) fn family(&self) -> &Arc<Family> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        self.family.get_or_init(|| {
            Arc::new(Family {
                serial: SERIAL.fetch_add(1, Ordering::Relaxed),
                limits: self.limits,
                networks: self.networks.borrow().clone(),
                qps: AtomicUsize::new(0),
                contexts: AtomicUsize::new(0),
                closing: false.into(),
            })
        })
    }

    /// Makes an allocator DOCA's. Once for the whole life of the object.
    pub(crate) fn set_allocator(&self, allocator: Arc<dyn Allocator>) -> Result<()> {
        if self.lease.borrow().is_some() {
            let text = "the allocator was set before";
            return Err(Error::refused("doca_sta_mem_allocator_register", Refusal::Taken).with(text));
        }
        let lease = Lease::new(allocator)?;
        lease.register(&self.handle)?;
        *self.lease.borrow_mut() = Some(lease);
        Ok(())
    }

    pub(crate) fn has_allocator(&self) -> bool {
        self.lease.borrow().is_some()
    }

    /// Tells DOCA of tasks and callbacks, before the first start.
    pub(crate) fn hear(&self) -> Result<()> {
        if !self.hearing.replace(true) {
            self.handle.enable_tasks()?;
            self.handle.hear(self.channel)?;
        }
        Ok(())
    }

    pub(crate) fn record(&self, event: Event) {
        if self.recording.get() {
            self.events.borrow_mut().push_back(event);
        } else {
            log::debug!("{event:?}");
        }
    }

    pub(crate) fn listen(&self, recording: bool) {
        self.recording.set(recording);
        self.events.borrow_mut().clear();
    }

    pub(crate) fn next_event(&self) -> Option<Event> {
        self.events.borrow_mut().pop_front()
    }

    /// The back end with this handle.
    pub(crate) fn back_end_of(&self, handle: BackEnd) -> Option<BackEndId> {
        let place = self.objects.borrow().back_ends.iter().position(|entry| entry.handle == Some(handle))?;
        Some(BackEndId { serial: self.channel, index: place })
    }

    /// Tells DOCA what it does not know yet of the description, in the order that it wants.
    pub(crate) fn apply(&self) -> Result<()> {
        let mut objects = self.objects.borrow_mut();
        let Objects { subsystems, back_ends, queues, namespaces } = &mut *objects;
        for entry in subsystems.iter_mut().filter(|entry| entry.handle.is_none()) {
            let name = entry.nqn.to_string_lossy().into_owned();
            let handle = self.handle.create_subsystem(&entry.nqn).map_err(|error| error.with(&*name))?;
            entry.handle = Some(handle);
            for device in &*self.networks.borrow() {
                // All devices, since an initiator may come by any of them; none can be added after a namespace.
                self.handle.add_to_subsystem(handle, device).map_err(|error| error.with(&*name))?;
            }
        }
        for entry in back_ends.iter_mut().filter(|entry| entry.handle.is_none() && !entry.removed) {
            entry.handle = Some(self.handle.create_back_end()?);
        }
        for entry in queues.iter_mut().filter(|entry| entry.phase == Phase::Planned) {
            let Some(handle) = back_ends[entry.back_end].handle else { continue };
            let Some(queue) = entry.planned.take() else { continue };
            entry.phase = Phase::Gone;
            let lent = self.handle.add_queue(handle, queue, &self.control);
            entry.lent = Some(lent.map_err(|error| error.with(format!("back end {}", entry.back_end)))?);
            entry.phase = Phase::Live;
        }
        for entry in namespaces.iter_mut().filter(|entry| entry.phase == Phase::Planned) {
            let plan = &entry.plan;
            let subsystem = subsystems[plan.subsystem.index].handle;
            let back_end = back_ends[plan.back_end.index].handle;
            let (Some(subsystem), Some(back_end)) = (subsystem, back_end) else { continue };
            entry.phase = Phase::Gone;
            let added = self.handle.add_namespace(subsystem, plan, back_end);
            entry.handle = Some(added.map_err(|error| error.with(format!("namespace {}", plan.nsid)))?);
            entry.phase = Phase::Live;
        }
        Ok(())
    }

    /// Whether DOCA was told nothing of the description yet.
    pub(crate) fn is_untold(&self) -> bool {
        let objects = self.objects.borrow();
        objects.subsystems.iter().all(|entry| entry.handle.is_none())
            && objects.back_ends.iter().all(|entry| entry.handle.is_none())
    }

    /// Wants a namespace to go.
    pub(crate) fn remove_namespace(&self, index: usize) {
        if let Some(entry) = self.objects.borrow_mut().namespaces.get_mut(index)
            && entry.phase == Phase::Live
        {
            entry.phase = Phase::Unwanted;
        }
        self.advance();
    }

    /// Wants the queues of a back end to go, and then the back end.
    pub(crate) fn remove_back_end(&self, index: usize) {
        let mut objects = self.objects.borrow_mut();
        objects.back_ends[index].removed = true;
        for entry in objects.queues.iter_mut().filter(|entry| entry.back_end == index) {
            if entry.phase == Phase::Live {
                entry.phase = Phase::Unwanted;
            }
        }
        drop(objects);
        self.advance();
    }

    /// Submits the tasks that are wanted, and destroys what is empty; outside callbacks. Marks the engine if DOCA has no
    /// task left.
    fn advance(&self) {
        let lent = self.returned.take();
        for queue in lent {
            queue.give_back();
        }
        if self.life.is_gone() || self.life.state() != State::Running {
            return;
        }
        let mut again = false;
        let mut stuck = Vec::new();
        let mut objects = self.objects.borrow_mut();
        let Objects { subsystems, back_ends, queues, namespaces } = &mut *objects;
        let mut submitted = |phase: &mut Phase, outcome: Result<()>| match outcome {
            Ok(()) => *phase = Phase::Removing,
            Err(error) if matches!(error.code(), Some(Code::NO_MEMORY | Code::AGAIN)) => again = true,
            Err(error) => {
                log::warn!("{error}");
                *phase = Phase::Stuck;
                stuck.push(Event::Stuck {
                    call: error.call(),
                    code: error.code().unwrap_or(Code::UNEXPECTED),
                });
            }
        };
        let token = |index: usize| Token { channel: self.channel, index: index as u32, generation: 0 };
        for (index, entry) in namespaces.iter_mut().enumerate() {
            let subsystem = subsystems[entry.plan.subsystem.index].handle;
            if entry.phase == Phase::Unwanted
                && let (Some(subsystem), Some(handle)) = (subsystem, entry.handle)
            {
                submitted(&mut entry.phase, self.handle.remove_namespace(subsystem, handle, token(index)));
            }
        }
        for (index, entry) in queues.iter_mut().enumerate() {
            if entry.phase == Phase::Unwanted
                && let Some(lent) = &entry.lent
            {
                submitted(&mut entry.phase, self.handle.destroy_queue(lent, token(index)));
            }
        }
        for (index, entry) in back_ends.iter_mut().enumerate().filter(|(_, entry)| entry.removed) {
            let empty =
                queues.iter().filter(|queue| queue.back_end == index).all(|queue| queue.phase == Phase::Gone);
            if empty && entry.handle.is_some_and(|handle| self.handle.destroy_back_end(handle)) {
                entry.handle = None;
                let id = BackEndId { serial: self.channel, index };
                stuck.push(Event::BackEndRemoved(id));
            }
        }
        drop(objects);
        for event in stuck {
            self.record(event);
        }
        if again && let Some(core) = self.life.engine() {
            core.mark();
        }
    }

    /// A task is done. Runs in DOCA's callback.
    pub(crate) fn task_ended(&self, what: Ended, token: Token, code: Code) {
        let index = token.index as usize;
        let mut objects = self.objects.borrow_mut();
        let (call, phase) = match what {
            Ended::RemoveNamespace => {
                let Some(entry) = objects.namespaces.get_mut(index) else { return };
                ("doca_sta_subsystem_task_rm_ns", &mut entry.phase)
            }
            Ended::DestroyQueue => {
                let Some(entry) = objects.queues.get_mut(index) else { return };
                ("doca_sta_be_task_destroy_queue", &mut entry.phase)
            }
            _ => return,
        };
        if code != Code::SUCCESS {
            *phase = Phase::Stuck;
            drop(objects);
            log::warn!("{call}: {code}: it stays until the target ends");
            self.record(Event::Stuck { call, code });
            return;
        }
        *phase = Phase::Gone;
        if what == Ended::DestroyQueue {
            if let Some(lent) = objects.queues[index].lent.take() {
                self.returned.borrow_mut().push(lent);
            }
        } else {
            objects.namespaces[index].handle = None;
            drop(objects);
            self.record(Event::NamespaceRemoved(NamespaceId { serial: self.channel, index }));
        }
    }

    /// Wants all namespaces to go, then all queues; tells whether they are.
    fn empty(&self) -> bool {
        let mut waiting = false;
        let unwant = |phase: &mut Phase| match phase {
            Phase::Live => {
                *phase = Phase::Unwanted;
                true
            }
            Phase::Unwanted | Phase::Removing => true,
            _ => false,
        };
        let mut objects = self.objects.borrow_mut();
        for entry in &mut objects.namespaces {
            waiting |= unwant(&mut entry.phase);
        }
        if !waiting {
            for entry in &mut objects.queues {
                waiting |= unwant(&mut entry.phase);
            }
        }
        drop(objects);
        self.advance();
        !waiting
    }

    /// Destroys back ends and subsystems, as far as DOCA lets.
    fn destroy_objects(&self) {
        let mut objects = self.objects.borrow_mut();
        for entry in &mut objects.back_ends {
            if entry.handle.is_some_and(|handle| self.handle.destroy_back_end(handle)) {
                entry.handle = None;
            }
        }
        for entry in &mut objects.subsystems {
            if entry.handle.is_some_and(|handle| self.handle.destroy_subsystem(handle)) {
                entry.handle = None;
            }
        }
    }
}

impl Member for Instance {
    fn life(&self) -> &Lifecycle {
        &self.life
    }

    fn settle(&self) {
        self.advance();
    }

    fn free_idle_tasks(&self) {}

    fn prepare_stop(&self) -> bool {
        if let Some(family) = self.family.get() {
            family.closing.store(true, Ordering::Relaxed);
            // IO contexts go first, on their threads.
            if family.contexts.load(Ordering::Acquire) > 0 {
                return false;
            }
        }
        if self.life.state() == State::Running && !self.empty() {
            return false;
        }
        self.destroy_objects();
        true
    }

    fn ended(&self) {
        // Releases that set objects up before the start may want to destroy them after the stop.
        self.destroy_objects();
        for queue in self.returned.take() {
            queue.give_back();
        }
    }

    fn destroy(&self) -> Result<()> {
        self.destroy_objects();
        self.handle.destroy()?;
        *self.lease.borrow_mut() = None;
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // What DOCA has still is not ours to free.
        if self.lease.get_mut().is_some() {
            std::mem::forget(self.lease.take());
        }
        let objects = self.objects.get_mut();
        for queue in &mut objects.queues {
            std::mem::forget(queue.lent.take());
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({}, {:?})", self.control.info(), self.life.state())
    }
}

/// Refuses the name of an object of another target, or of none.
pub(crate) fn require_own(call: &'static str, serial: u16, own: u16) -> Result<()> {
    if serial == own { Ok(()) } else { Err(Error::refused(call, Refusal::OtherContext)) }
}

impl Objects {
    /// The place of a subsystem.
    pub(crate) fn subsystem(&self, id: SubsystemId) -> &SubsystemEntry {
        &self.subsystems[id.index]
    }
}
