//! The object of a consumer or producer, and its runs.

use crate::connection::{Connection, ConnectionId};
use crate::family::{Child, Family};
use crate::immediate::Immediate;
use crate::lifecycle::{Config, Context, Object, Seed};
use crate::pending::Pending;
use crate::raw::channel::Channel;
use crate::raw::connection::Link;
use doca_common::buffer::{Load, NamedBuf, Payload};
use doca_common::caps::{Capability, Value};
use doca_common::context::{Lifecycle, Member};
use doca_common::engine::Core;
use doca_common::raw::map::Region;
use doca_common::raw::task::Kept;
use doca_common::slot::{After, Slab, Vacant};
use doca_common::{Access, Code, Device, Error, Failed, Refusal, Result, SharedMemory};
use doca_sys::doca_buf;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Tasks that are allowed unless the program says otherwise.
const NUM_TASKS: u32 = 16;

/// What differs between consumers and producers.
pub(crate) struct Traits {
    /// Errors of its tasks name this.
    pub(crate) task: &'static str,
    pub(crate) create: &'static str,
    pub(crate) set_conf: &'static str,
    pub(crate) supported: Capability,
    pub(crate) max_num_tasks: Capability,
    pub(crate) max_buf_size: Capability,
}

/// The C object and what belongs to it.
pub struct Fast {
    channel: Channel,
    traits: &'static Traits,
    life: Lifecycle,
    id: u32,
    connection: ConnectionId,
    /// Taken when the C object is destroyed: its connection waits for that.
    child: RefCell<Option<Child>>,
    family: Arc<Family>,
    device: Device,
    /// Where a consumer's buffers are.
    memory: Option<Arc<Region>>,
    max_buf_size: usize,
    num_tasks: Cell<u32>,
    run: RefCell<Option<Rc<Run>>>,
}

impl Fast {
    pub(crate) fn new(
        connection: &Connection,
        memory: Option<&SharedMemory>,
        traits: &'static Traits,
    ) -> Result<Self> {
        let (device, family, link): (Device, _, Link) = connection.require_for_child(traits.create)?;
        if traits.supported.ask(&device.info())? == Value::Supported(false) {
            let text = format!("{} on {}", traits.supported.name, device.info());
            return Err(Error::refused(traits.create, Refusal::Capability).with(text));
        }
        let channel = match memory {
            Some(memory) => {
                check_region(traits.create, memory.region(), &device, Access::PCI_READ_WRITE)?;
                Channel::consumer(link, memory.region())?
            }
            None => Channel::producer(link)?,
        };
        let made = channel.context().and_then(|ctx| {
            channel.set_num_tasks(NUM_TASKS)?;
            Ok((ctx, channel.id()?))
        });
        let (ctx, id) = match made {
            Ok(made) => made,
            Err(error) => {
                if let Err(error) = channel.destroy() {
                    log::warn!("{error}");
                }
                return Err(error);
            }
        };
        let max_buf_size = match traits.max_buf_size.ask(&device.info()) {
            Ok(Value::Number(size)) => usize::try_from(size).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        Ok(Fast {
            channel,
            traits,
            life: Lifecycle::new(ctx),
            id,
            connection: connection.id(),
            child: RefCell::new(Some(Child::of(Arc::clone(&family)))),
            family,
            device,
            memory: memory.map(|memory| memory.region().clone()),
            max_buf_size,
            num_tasks: Cell::new(NUM_TASKS),
            run: RefCell::new(None),
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn connection(&self) -> ConnectionId {
        self.connection
    }

    pub(crate) fn family(&self) -> &Arc<Family> {
        &self.family
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel
    }

    pub(crate) fn set_num_tasks(&self, count: u32) -> Result<()> {
        let call = self.traits.set_conf;
        self.life.require_idle(call)?;
        if count == 0 {
            return Err(Error::refused(call, Refusal::OutOfRange).with("no tasks"));
        }
        self.traits.max_num_tasks.require_at_most(&self.device.info(), call, count)?;
        self.channel.set_num_tasks(count)?;
        self.num_tasks.set(count);
        Ok(())
    }

    /// Calls `body` with the run that is going on. It must not end or begin a run.
    pub(crate) fn with_run(&self, body: impl FnOnce(&Rc<Run>)) {
        if let Some(run) = &*self.run.borrow() {
            body(run);
        }
    }

    fn run(&self) -> Option<Rc<Run>> {
        self.run.borrow().clone()
    }
}

/// Refuses memory of another device, or with too few permissions.
fn check_region(call: &'static str, region: &Region, device: &Device, any: Access) -> Result<()> {
    if region.device() != device {
        return Err(Error::refused(call, Refusal::OtherDevice));
    }
    if !region.access().intersects(any) {
        let text = format!("the memory has {}, not {any}", region.access());
        return Err(Error::refused(call, Refusal::Permissions).with(text));
    }
    Ok(())
}

impl Object for Fast {
    type Run = Run;

    fn begin(self: &Rc<Self>) -> Result<Rc<Run>> {
        self.life.require_idle("doca_ctx_start")?;
        let run = Rc::new(Run::new(self));
        *self.run.borrow_mut() = Some(run.clone());
        Ok(run)
    }
}

impl Member for Fast {
    fn life(&self) -> &Lifecycle {
        &self.life
    }

    fn not_reached(&self) -> String {
        "the peer's control path did not answer, or the connection is over".to_owned()
    }

    fn settle(&self) {
        if let Some(run) = self.run() {
            run.settle();
        }
        if self.family.is_orphaned() {
            self.life.request_orphan(self);
        }
    }

    fn free_idle_tasks(&self) {
        if let Some(run) = self.run() {
            run.free_idle_tasks();
        }
    }

    fn ended(&self) {
        if let Some(run) = self.run.take() {
            run.end();
        }
    }

    fn destroy(&self) -> Result<()> {
        self.channel.destroy()?;
        self.child.take();
        // The connection may wait for this, on the same engine.
        if let Some(core) = self.life.engine() {
            core.mark();
        }
        Ok(())
    }
}

impl fmt::Debug for Fast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, {:?}", self.id, self.device.info(), self.life.state())
    }
}

/// What consumers and producers have in common.
pub trait FastPath: Context<Object = Fast> {
    /// What a success gives.
    type Output<P>;

    #[doc(hidden)]
    fn output<P: Payload>(payload: P, flight: &Flight) -> Self::Output<P>;
}

impl<C: FastPath> Seed<C> {
    /// Its number on the connection: `doca_comch_{consumer,producer}_get_id`.
    #[doc(alias = "doca_comch_consumer_get_id")]
    #[doc(alias = "doca_comch_producer_get_id")]
    pub fn id(&self) -> u32 {
        self.owner.id
    }
}

impl<C: FastPath> Config<C> {
    /// Its number on the connection: `doca_comch_{consumer,producer}_get_id`.
    pub fn id(&self) -> u32 {
        self.owner.id
    }

    /// Sets how many tasks it can have in flight: `doca_comch_{consumer_task_post_recv,producer_task_send}_set_conf`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above the device's limit, [`Refusal::OutOfRange`] for none, or DOCA's.
    #[doc(alias = "doca_comch_consumer_task_post_recv_set_conf")]
    #[doc(alias = "doca_comch_producer_task_send_set_conf")]
    pub fn set_num_tasks(&mut self, tasks: u32) -> Result<()> {
        self.owner.set_num_tasks(tasks)
    }
}

/// What is kept in the slot of a task, beside its buffer.
#[derive(Default)]
pub struct Flight {
    /// The C task, made when the slot is first used.
    pub(crate) task: Kept,
    /// How it ended.
    pub(crate) code: Cell<Code>,
    /// Of a message that came: its length in the buffer, who sent it, and what came beside it.
    pub(crate) len: Cell<usize>,
    pub(crate) producer: Cell<u32>,
    pub(crate) immediate: Cell<Immediate>,
}

/// The slab of a run, and a free place in it.
pub(crate) type Flights = Slab<Load, Flight>;
pub(crate) type Place<'a> = Vacant<'a, Load, Flight>;

/// One run of a consumer or producer.
pub struct Run {
    fast: Rc<Fast>,
    slab: Flights,
    over: Cell<bool>,
}

impl Run {
    fn new(fast: &Rc<Fast>) -> Self {
        Run { fast: fast.clone(), slab: Slab::new(&[fast.num_tasks.get()]), over: Cell::new(false) }
    }

    pub(crate) fn fast(&self) -> &Rc<Fast> {
        &self.fast
    }

    pub(crate) fn core(&self) -> Option<&Rc<Core>> {
        self.fast.life.engine()
    }

    pub(crate) fn slab(&self) -> &Flights {
        &self.slab
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.get() || self.fast.life.is_gone()
    }

    /// Refuses unless this run is going on and its connection is there.
    pub(crate) fn require_running(&self) -> Result<()> {
        let call = self.task_name();
        if self.over.get() {
            return Err(Error::refused(call, Refusal::Stale));
        }
        if self.fast.family.is_orphaned() {
            if let Some(core) = self.core() {
                core.mark();
            }
            return Err(Error::refused(call, Refusal::NotConnected));
        }
        self.fast.life.require_running(call)
    }

    /// Refuses a buffer that this context cannot use, of this many bytes.
    pub(crate) fn check<P: Payload>(&self, payload: &P, len: usize) -> Result<()> {
        let call = self.task_name();
        payload.try_regions(|region| match &self.fast.memory {
            Some(memory) if !std::ptr::eq(region, &**memory) => {
                let text = "a buffer of other memory than the consumer's";
                Err(Error::refused(call, Refusal::OtherContext).with(text))
            }
            Some(_) => Ok(()),
            None => check_region(call, region, &self.fast.device, Access::ANY_PCI),
        })?;
        if len > self.fast.max_buf_size {
            let limit = self.fast.traits.max_buf_size.name;
            let text = format!("{len} bytes, {limit} = {}", self.fast.max_buf_size);
            return Err(Error::refused(call, Refusal::TooLong).with(text));
        }
        Ok(())
    }

    /// Submits a task with a payload: `ready` checks it and makes it ready, `submit` hands the task over. The payload
    /// goes into the slab when DOCA has taken the task: completions come by progress only.
    pub(crate) fn launch<C: FastPath, P: Payload>(
        self: &Rc<Self>,
        mut payload: P,
        ready: impl FnOnce(&Run, &mut P) -> Result<NamedBuf>,
        submit: impl FnOnce(&Run, &Place<'_>, *mut doca_buf) -> Result<()>,
    ) -> std::result::Result<Pending<C, P>, Failed<P>> {
        let buffer = match self.require_running().and_then(|()| ready(self, &mut payload)) {
            Ok(buffer) => buffer.raw,
            Err(error) => return Err(Failed::new(error, payload)),
        };
        let Some(place) = self.slab.vacant(0) else {
            return Err(Failed::new(Error::refused(self.task_name(), Refusal::Full), payload));
        };
        if let Err(error) = submit(self, &place, buffer) {
            return Err(Failed::new(full_if_no_memory(error), payload));
        }
        let token = place.launch(payload.into_load());
        Ok(Pending::new(self.clone(), token))
    }

    /// The name of its tasks in errors.
    pub(crate) fn task_name(&self) -> &'static str {
        self.fast.traits.task
    }

    /// Records that a task came back, after `note` has recorded how; true if something is to be done after progress.
    pub(crate) fn finish(&self, address: u64, note: impl FnOnce(&Flight)) -> bool {
        let Some(after) = self.slab.complete(address, note) else { return false };
        // A task that comes back while the context stops must be freed, or it would never be idle.
        after | !self.fast.life.is_running()
    }

    fn settle(&self) {
        while let Some(after) = self.slab.after() {
            match after {
                After::Wake(waker) => waker.wake(),
                After::Drop { load, .. } => drop(load),
            }
        }
    }

    fn end(&self) {
        self.over.set(true);
        self.settle();
    }
}

/// DOCA's pool has other sizes than were asked for.
fn full_if_no_memory(error: Error) -> Error {
    match error.code() {
        Some(Code::NO_MEMORY) => Error::refused(error.call(), Refusal::Full),
        _ => error,
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("fast", &self.fast).field("over", &self.over).finish_non_exhaustive()
    }
}
