//! One event that is a context, and its runs.

use crate::context::{Lifecycle, Member};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::engine::Core;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::task::POOLS;
use crate::raw::event::{Event, Owned};
use crate::raw::task::Kept;
use crate::slot::{After, Slab, Vacant};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The C object and what belongs to it.
pub(crate) struct Instance {
    event: Event,
    life: Lifecycle,
    devices: Vec<Device>,
    /// Tells instances apart, for keys.
    serial: u64,
    /// Configured number of tasks, by pool.
    enabled: Cell<[u32; POOLS]>,
    run: RefCell<Option<Rc<Run>>>,
}

impl Instance {
    pub(crate) fn new(event: Owned, devices: Vec<Device>) -> Result<Rc<Self>> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let (event, ctx) = event.into_context()?;
        Ok(Rc::new(Instance {
            event,
            life: Lifecycle::new(ctx),
            devices,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            enabled: Cell::new([0; POOLS]),
            run: RefCell::new(None),
        }))
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    pub(crate) fn devices(&self) -> &[Device] {
        &self.devices
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn enable(&self, pool: usize, num_tasks: u32) {
        let mut enabled = self.enabled.get();
        enabled[pool] = num_tasks;
        self.enabled.set(enabled);
    }

    /// A run, which begins with the next start.
    pub(crate) fn begin(self: &Rc<Self>) -> Rc<Run> {
        let run = Rc::new(Run {
            instance: self.clone(),
            slab: Slab::new(&self.enabled.get()),
            over: Cell::new(false),
        });
        *self.run.borrow_mut() = Some(run.clone());
        run
    }

    fn run(&self) -> Option<Rc<Run>> {
        self.run.borrow().clone()
    }

    /// Records that a task came back, after `note` has recorded how; true if something is to be done after progress.
    pub(crate) fn finish(&self, address: u64, note: impl FnOnce(&Flight)) -> bool {
        let run = self.run.borrow();
        let Some(after) = run.as_ref().and_then(|run| run.slab.complete(address, note)) else { return false };
        // A task that comes back while the context stops must be freed, or it would never be idle.
        after || !self.life.is_running()
    }

    pub(crate) fn export_net(&self) -> Result<Descriptor> {
        self.life.require_running("doca_sync_event_export_to_remote_net")?;
        self.event.export_net()
    }

    pub(crate) fn export_pci(&self, device: &Device) -> Result<Descriptor> {
        self.life.require_running("doca_sync_event_export_to_remote_pci")?;
        self.event.export_pci(device)
    }
}

impl Member for Instance {
    fn life(&self) -> &Lifecycle {
        &self.life
    }

    fn settle(&self) {
        if let Some(run) = self.run() {
            run.settle();
        }
    }

    fn free_idle_tasks(&self) {
        if let Some(run) = self.run() {
            run.free_idle_tasks();
        }
    }

    fn ended(&self) {
        if let Some(run) = self.run.take() {
            run.over.set(true);
            run.settle();
        }
    }

    fn destroy(&self) -> Result<()> {
        self.event.destroy()
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.life.state())
    }
}

/// What is kept in the slot of a task.
#[derive(Default)]
pub struct Flight {
    /// The C task, made when the slot is first used.
    pub(crate) task: Kept,
    /// Where it puts the value.
    pub(crate) value: Cell<u64>,
    /// How it ended.
    pub(crate) code: Cell<Code>,
}

/// The slab of a run, and a free place in it.
pub(crate) type Flights = Slab<(), Flight>;
pub(crate) type Place<'a> = Vacant<'a, (), Flight>;

/// One run, from its start until the context is idle again.
pub(crate) struct Run {
    instance: Rc<Instance>,
    slab: Flights,
    over: Cell<bool>,
}

impl Run {
    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    pub(crate) fn core(&self) -> Option<&Rc<Core>> {
        self.instance.life.engine()
    }

    pub(crate) fn slab(&self) -> &Flights {
        &self.slab
    }

    /// Whether the context went idle after this run, or is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get() || self.instance.life.is_gone()
    }

    /// Refuses unless this run is going on.
    pub(crate) fn require_running(&self, call: &'static str) -> Result<()> {
        if self.over.get() {
            return Err(Error::refused(call, Refusal::Stale));
        }
        self.instance.life.require_running(call)
    }

    fn settle(&self) {
        while let Some(after) = self.slab.after() {
            if let After::Wake(waker) = after {
                waker.wake();
            }
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("over", &self.over).finish_non_exhaustive()
    }
}
