//! An event that is a context, on its way through its states.

use crate::context::{Member, State};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::engine::ProgressEngine;
use crate::error::{Error, Failed, Refusal, Result};
use crate::event::instance::{Instance, Run};
use crate::event::task::{Queue, Task};
use crate::event::{Publisher, Subscriber, devices};
use crate::owner::{Key, Stage, deadline};
use crate::raw::event::Owned;
use crate::{caps::Value, event};
use std::rc::Rc;
use std::time::{Duration, Instant};

type Owner = crate::owner::Owner<Instance>;

type Outcome<T> = std::result::Result<T, Failed<Left>>;

/// An event in asynchronous mode that is not running. Dropping it destroys it.
#[derive(Debug)]
pub struct Config {
    owner: Owner,
}

/// One that is starting.
#[derive(Debug)]
#[must_use = "dropping it stops the event"]
pub struct Starting {
    owner: Owner,
    run: Rc<Run>,
}

/// A running event in asynchronous mode: `doca_sync_event_as_ctx`. Dropping it stops and destroys it, by progress of its
/// engine.
#[derive(Debug)]
pub struct AsyncEvent {
    owner: Owner,
    run: Rc<Run>,
}

/// One that is stopping.
#[derive(Debug)]
#[must_use = "dropping it destroys the event"]
pub struct Stopping {
    owner: Owner,
    run: Rc<Run>,
}

/// What is left of an event after a transition failed, as C says.
#[derive(Debug)]
#[must_use = "dropping it ends the event"]
pub enum Left {
    /// It is idle: configure or start it.
    Config(Config),
    /// It is starting still.
    Starting(Starting),
    /// It runs.
    Running(AsyncEvent),
    /// It is stopping still.
    Stopping(Stopping),
    /// It was destroyed with its engine.
    Consumed,
}

impl Left {
    fn of(owner: Owner, run: Rc<Run>) -> Self {
        match owner.stage() {
            Stage::Gone => Left::Consumed,
            Stage::Idle => Left::Config(Config { owner }),
            Stage::Starting => Left::Starting(Starting { owner, run }),
            Stage::Running => Left::Running(AsyncEvent { owner, run }),
            Stage::Stopping => Left::Stopping(Stopping { owner, run }),
        }
    }
}

impl Config {
    /// Allows `num_tasks` tasks of a kind at a time. The key gives its queue once the event runs. Enabling a kind again
    /// changes the number.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] if a device cannot do it, [`Refusal::OutOfRange`] for no tasks, or DOCA's.
    #[doc(alias = "doca_sync_event_task_get_set_conf")]
    #[doc(alias = "doca_sync_event_task_notify_set_set_conf")]
    #[doc(alias = "doca_sync_event_task_notify_add_set_conf")]
    #[doc(alias = "doca_sync_event_task_wait_eq_set_conf")]
    #[doc(alias = "doca_sync_event_task_wait_neq_set_conf")]
    pub fn enable<T: Task>(&mut self, num_tasks: u32) -> Result<Key<T>> {
        self.owner.require_idle(T::SET_CONF)?;
        if num_tasks == 0 {
            return Err(Error::refused(T::SET_CONF, Refusal::OutOfRange).with("no tasks"));
        }
        let able = event::CAPABILITIES.iter().find(|capability| capability.call == T::CAPABILITY);
        for device in self.owner.devices() {
            if let Some(able) = able
                && able.ask(&device.info())? == Value::Supported(false)
            {
                let text = format!("{} on {}", able.name, device.info());
                return Err(Error::refused(T::SET_CONF, Refusal::Capability).with(text));
            }
        }
        T::configure(self.owner.event(), num_tasks)?;
        self.owner.enable(T::POOL, num_tasks);
        Ok(Key::new(self.owner.serial()))
    }

    /// Starts the event on an engine: `doca_ctx_start`. From the first start on it belongs to that engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherEngine`], [`Refusal::InCallback`], `INVALID_VALUE` for places that DOCA does not take together or a
    /// descriptor whose process is gone, or DOCA's; what is left comes with it.
    #[doc(alias = "doca_ctx_start")]
    pub fn start(self, engine: &ProgressEngine) -> Outcome<Starting> {
        let owner = self.owner;
        let run = owner.shared().begin();
        match owner.start(engine) {
            Ok(()) => Ok(Starting { owner, run }),
            Err(error) => Err(Failed::new(error, Left::of(owner, run))),
        }
    }
}

impl Starting {
    /// Progresses until the event runs.
    ///
    /// # Errors
    ///
    /// `DOCA_ERROR_INITIALIZATION` if it fell back to idle; what is left comes with it.
    pub fn running(self) -> Outcome<AsyncEvent> {
        self.running_by(None)
    }

    /// As [`running`](Self::running), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn running_within(self, time: Duration) -> Outcome<AsyncEvent> {
        self.running_by(deadline(time))
    }

    fn running_by(self, deadline: Option<Instant>) -> Outcome<AsyncEvent> {
        match self.owner.until_running(deadline) {
            Ok(()) => Ok(AsyncEvent { owner: self.owner, run: self.run }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }
}

impl AsyncEvent {
    /// Creates an idle event: `doca_sync_event_create`, `doca_sync_event_as_ctx`.
    ///
    /// # Errors
    ///
    /// `NO_MEMORY`. Places that DOCA does not take together are refused at the start.
    #[doc(alias = "doca_sync_event_create")]
    #[doc(alias = "doca_sync_event_as_ctx")]
    pub fn configure(publisher: Publisher<'_>, subscriber: Subscriber<'_>) -> Result<Config> {
        let event = Owned::new(publisher, subscriber)?;
        Ok(Config { owner: Owner::new(Instance::new(event, devices(publisher, subscriber))?) })
    }

    /// Imports the event of the processor across PCI, in whatever mode it is there: `doca_sync_event_create_from_export`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] for no bytes, `INVALID_VALUE`, `NOT_SUPPORTED`, `NO_MEMORY`.
    #[doc(alias = "doca_sync_event_create_from_export")]
    pub fn import(device: &Device, descriptor: impl AsRef<[u8]>) -> Result<Config> {
        let event = Owned::import(device, descriptor.as_ref())?;
        Ok(Config { owner: Owner::new(Instance::new(event, vec![device.clone()])?) })
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.owner.life().state()
    }

    /// The queue of a kind of task that was enabled.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherContext`] for a key of another event, [`Refusal::Stopped`].
    pub fn queue<T: Task>(&self, key: Key<T>) -> Result<Queue<T>> {
        if !key.is_of(self.owner.serial()) {
            return Err(Error::refused(T::SUBMIT, Refusal::OtherContext));
        }
        self.owner.life().require_running(T::SUBMIT)?;
        Ok(Queue::new(self.run.clone()))
    }

    /// Makes the descriptor for a peer; see [`SyncEvent::export_net`](crate::SyncEvent::export_net).
    ///
    /// # Errors
    ///
    /// As there, and [`Refusal::Stopped`].
    #[doc(alias = "doca_sync_event_export_to_remote_net")]
    pub fn export_net(&self) -> Result<Descriptor> {
        self.owner.export_net()
    }

    /// Makes the descriptor for the processor across PCI; see [`SyncEvent::export_pci`](crate::SyncEvent::export_pci).
    ///
    /// # Errors
    ///
    /// As there, and [`Refusal::Stopped`].
    #[doc(alias = "doca_sync_event_export_to_remote_pci")]
    pub fn export_pci(&self, device: &Device) -> Result<Descriptor> {
        self.owner.export_pci(device)
    }

    /// Stops the event: `doca_ctx_stop`. Waits in flight come back as failures. Inside a callback it is stopped after
    /// progress.
    #[doc(alias = "doca_ctx_stop")]
    pub fn stop(self) -> Stopping {
        self.owner.request_stop();
        Stopping { owner: self.owner, run: self.run }
    }
}

impl Stopping {
    /// Progresses until the event is idle.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop, [`Refusal::InCallback`], [`Refusal::EngineGone`]; what is left comes with it.
    pub fn wait(self) -> Outcome<Config> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too, with state and number of tasks as C tells them.
    pub fn wait_for(self, time: Duration) -> Outcome<Config> {
        self.wait_by(deadline(time))
    }

    fn wait_by(self, deadline: Option<Instant>) -> Outcome<Config> {
        match self.owner.until_idle(deadline) {
            Ok(()) => Ok(Config { owner: self.owner }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }

    /// Resolves when the event is idle, while something else progresses the engine.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop; [`Refusal::EngineGone`], nothing is left then.
    pub async fn stopped(self) -> Outcome<Config> {
        match self.owner.idle().await {
            Ok(()) => Ok(Config { owner: self.owner }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }
}
