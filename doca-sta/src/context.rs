//! A control context on its way through its states.

use crate::config::{
    BackEndId, Config, Namespace, NamespaceId, Owner, Subsystem, SubsystemId, plan_back_end, plan_namespace,
};
use crate::event::{Eu, Event};
use crate::instance::{Instance, Phase, QueueEntry, next_channel, require_own};
use crate::io::IoSeed;
use crate::limits::Limits;
use crate::raw::io::IoHandle;
use crate::raw::queue::NvmeQueue;
use crate::stats::Counters;
use doca_common::context::{self, Member, State};
use doca_common::owner::{Stage, deadline};
use doca_common::{Code, Device, Error, Failed, ProgressEngine, Refusal, Result};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A running control context: the target. Dropping it ends the target in the order that DOCA wants, by progress of its
/// engine: IO contexts on their threads, namespaces, queues of disks, disks and subsystems, the context.
///
/// Its engine has to be progressed all the time: what happens to disks is told there.
#[derive(Debug)]
pub struct Sta {
    owner: Owner,
}

/// A control context that is starting.
#[derive(Debug)]
#[must_use = "dropping it stops the context"]
pub struct Starting {
    owner: Owner,
    engine: std::rc::Rc<doca_common::engine::Core>,
}

/// A control context that is stopping.
#[derive(Debug)]
#[must_use = "dropping it destroys the context"]
pub struct Stopping {
    owner: Owner,
}

/// What is left of a context after a transition failed, as C says.
#[derive(Debug)]
#[must_use = "dropping it ends the context"]
pub enum Left {
    /// It is idle: configure or start it.
    Config(Config),
    /// It is starting still.
    Starting(Starting),
    /// It runs.
    Running(Sta),
    /// It is stopping still.
    Stopping(Stopping),
    /// It was destroyed with its engine.
    Consumed,
}

impl Left {
    fn of(owner: Owner) -> Self {
        match (owner.stage(), owner.life().engine().cloned()) {
            (Stage::Gone, _) => Left::Consumed,
            (Stage::Starting, Some(engine)) => Left::Starting(Starting { owner, engine }),
            (Stage::Idle | Stage::Starting, _) => Left::Config(Config { owner }),
            (Stage::Running, _) => Left::Running(Sta { owner }),
            (Stage::Stopping, _) => Left::Stopping(Stopping { owner }),
        }
    }
}

impl Starting {
    pub(crate) fn begin(owner: Owner, engine: &ProgressEngine) -> std::result::Result<Self, Failed<Left>> {
        match owner.start(engine) {
            Ok(()) => Ok(Starting { owner, engine: engine.core().clone() }),
            Err(error) => Err(Failed::new(error, Left::of(owner))),
        }
    }

    /// Progresses until the context runs and DOCA has the whole description.
    ///
    /// # Errors
    ///
    /// `INITIALIZATION` if it fell back to idle, DOCA's for what it does not take of the description; what is left comes
    /// with it.
    pub fn running(self) -> std::result::Result<Sta, Failed<Left>> {
        self.running_by(None)
    }

    /// As [`running`](Self::running), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn running_within(self, time: Duration) -> std::result::Result<Sta, Failed<Left>> {
        self.running_by(deadline(time))
    }

    fn running_by(self, deadline: Option<Instant>) -> std::result::Result<Sta, Failed<Left>> {
        match self.reach(deadline) {
            Ok(()) => Ok(Sta { owner: self.owner }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner))),
        }
    }

    fn reach(&self, deadline: Option<Instant>) -> Result<()> {
        self.owner.until_running(deadline)?;
        match self.owner.apply() {
            // This release wants to be told while the context is idle.
            Err(error) if error.code() == Some(Code::BAD_STATE) && self.owner.is_untold() => {
                log::debug!("{error}: the target is described before the start instead");
                self.owner.request_stop();
                self.owner.until_idle(deadline)?;
                self.owner.apply()?;
                context::restart(self.owner.shared(), &self.engine)?;
                self.owner.until_running(deadline)
            }
            other => other,
        }
    }
}

impl Sta {
    /// Creates an idle context on the device that is to control a target: `doca_sta_create`.
    ///
    /// # Errors
    ///
    /// `NOT_SUPPORTED` if the device cannot control a target, `NO_MEMORY`, `DRIVER`.
    #[doc(alias = "doca_sta_create")]
    pub fn configure(control: &Device) -> Result<Config> {
        Config::new(control)
    }

    /// The device that controls the target.
    pub fn control(&self) -> &Device {
        self.owner.control()
    }

    /// Devices that connections can be on.
    pub fn networks(&self) -> Vec<Device> {
        self.owner.networks.borrow().clone()
    }

    /// What the device allows.
    pub fn limits(&self) -> &Limits {
        self.owner.limits()
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.owner.life().state()
    }

    /// Makes an IO context, to be started on the thread that is to serve its connections: `doca_sta_io_create`. The
    /// target does not end before it.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]; `NO_MEMORY` above [the number](Config::set_io_contexts) that was configured.
    #[doc(alias = "doca_sta_io_create")]
    pub fn io_seed(&self) -> Result<IoSeed> {
        const CALL: &str = "doca_sta_io_create";
        self.owner.life().require_running(CALL)?;
        let family = self.owner.family().clone();
        if family.closing.load(Ordering::Relaxed) {
            return Err(Error::refused(CALL, Refusal::Stopped));
        }
        let io = self.owner.handle().create_io()?;
        family.contexts.fetch_add(1, Ordering::Relaxed);
        Ok(IoSeed::new(IoHandle::new(io), next_channel(), family))
    }

    /// A subsystem, for queue pairs to be bound to.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherContext`] for a name of another target, [`Refusal::Stopped`].
    pub fn subsystem(&self, id: SubsystemId) -> Result<Subsystem> {
        const CALL: &str = "doca_sta_io_qp_add_subsystem";
        require_own(CALL, id.serial, self.owner.channel())?;
        self.owner.life().require_running(CALL)?;
        let objects = self.owner.objects.borrow();
        let entry = objects.subsystem(id);
        let handle = entry.handle.ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let nqn = Arc::from(&*entry.nqn.to_string_lossy());
        Ok(Subsystem { serial: self.owner.family().serial, handle, nqn })
    }

    /// Adds a disk while the target runs; see [`Config::add_back_end`].
    ///
    /// # Errors
    ///
    /// As there; `BAD_STATE` where the release wants all disks before the start.
    pub fn add_back_end(&self, queues: Vec<Box<dyn NvmeQueue>>) -> Result<BackEndId> {
        self.owner.life().require_running("doca_sta_be_create")?;
        let id = plan_back_end(&self.owner, queues)?;
        self.owner.apply().map(|()| id)
    }

    /// Adds a namespace while the target runs; see [`Config::add_namespace`]. Telling initiators is the program's part.
    ///
    /// # Errors
    ///
    /// As there; `BAD_STATE` where the release wants all namespaces before the start.
    pub fn add_namespace(&self, namespace: Namespace) -> Result<NamespaceId> {
        self.owner.life().require_running("doca_sta_subsystem_add_ns")?;
        let id = plan_namespace(&self.owner, namespace)?;
        self.owner.apply().map(|()| id)
    }

    /// Removes a namespace once its commands are done, by progress: `doca_sta_subsystem_task_rm_ns_alloc_init`.
    /// [`Event::NamespaceRemoved`] tells. New commands fail as for a namespace that is not there.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherContext`], [`Refusal::Stale`] if it was removed, [`Refusal::Stopped`].
    #[doc(alias = "doca_sta_subsystem_task_rm_ns_alloc_init")]
    pub fn remove_namespace(&self, id: NamespaceId) -> Result<()> {
        const CALL: &str = "doca_sta_subsystem_task_rm_ns_alloc_init";
        require_own(CALL, id.serial, self.owner.channel())?;
        self.owner.life().require_running(CALL)?;
        if self.owner.objects.borrow().namespaces[id.index].phase != Phase::Live {
            return Err(Error::refused(CALL, Refusal::Stale));
        }
        self.owner.remove_namespace(id.index);
        Ok(())
    }

    /// Whether a namespace is there.
    pub fn has_namespace(&self, id: NamespaceId) -> bool {
        id.serial == self.owner.channel()
            && self.owner.objects.borrow().namespaces[id.index].phase == Phase::Live
    }

    /// Destroys the queues of a disk and then the disk, by progress: `doca_sta_be_destroy_queue_task_alloc_init`.
    /// [`Event::BackEndRemoved`] tells, after the queues were given back.
    ///
    /// # Errors
    ///
    /// [`Refusal::InUse`] while namespaces are on it, [`Refusal::OtherContext`], [`Refusal::Stale`],
    /// [`Refusal::Stopped`].
    #[doc(alias = "doca_sta_be_destroy_queue_task_alloc_init")]
    #[doc(alias = "doca_sta_be_destroy")]
    pub fn remove_back_end(&self, id: BackEndId) -> Result<()> {
        const CALL: &str = "doca_sta_be_destroy_queue_task_alloc_init";
        require_own(CALL, id.serial, self.owner.channel())?;
        self.owner.life().require_running(CALL)?;
        let objects = self.owner.objects.borrow();
        if objects.back_ends[id.index].removed {
            return Err(Error::refused(CALL, Refusal::Stale));
        }
        let used =
            objects.namespaces.iter().filter(|entry| entry.plan.back_end == id && entry.phase != Phase::Gone);
        let used: Vec<_> = used.map(|entry| entry.plan.nsid).collect();
        drop(objects);
        if !used.is_empty() {
            return Err(Error::refused(CALL, Refusal::InUse).with(format!("namespaces {used:?}")));
        }
        self.owner.remove_back_end(id.index);
        Ok(())
    }

    /// Records from now on what happens to disks, namespaces and the adapter's programs. There is one record: a new one
    /// begins empty.
    pub fn events(&self) -> Events {
        self.owner.listen(true);
        Events { instance: self.owner.shared().clone() }
    }

    /// Counters of each execution unit: `doca_sta_get_eu_stats`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`], or DOCA's.
    #[doc(alias = "doca_sta_get_eu_stats")]
    pub fn eu_counters(&self) -> Result<Vec<(Eu, Counters)>> {
        self.owner.life().require_running("doca_sta_get_eu_stats")?;
        self.owner.handle().unit_counters()
    }

    /// How many queue pairs each unit that takes commands serves: `doca_sta_get_eu_connect_qp_stats`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`], or DOCA's.
    #[doc(alias = "doca_sta_get_eu_connect_qp_stats")]
    pub fn eu_connections(&self) -> Result<Vec<(Eu, u16)>> {
        self.owner.life().require_running("doca_sta_get_eu_connect_qp_stats")?;
        self.owner.handle().unit_connections()
    }

    /// The state of each execution unit, by DOCA's number: `doca_sta_get_eu_state`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`], or DOCA's.
    #[cfg(doca_has_sta_eu_state)]
    #[doc(alias = "doca_sta_get_eu_state")]
    pub fn eu_states(&self) -> Result<Vec<(Eu, u32)>> {
        self.owner.life().require_running("doca_sta_get_eu_state")?;
        self.owner.handle().unit_states()
    }

    /// Sets the counters of all execution units to 0: `doca_sta_eu_reset_stats_type`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`], or DOCA's.
    #[doc(alias = "doca_sta_eu_reset_stats_type")]
    pub fn reset_eu_counters(&self) -> Result<()> {
        self.owner.life().require_running("doca_sta_eu_reset_stats_type")?;
        self.owner.handle().reset_counters()
    }

    /// Counters of a namespace: `doca_sta_get_ns_stats`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stale`] if it is gone, [`Refusal::Stopped`], or DOCA's.
    #[doc(alias = "doca_sta_get_ns_stats")]
    pub fn namespace_counters(&self, id: NamespaceId) -> Result<Counters> {
        const CALL: &str = "doca_sta_get_ns_stats";
        require_own(CALL, id.serial, self.owner.channel())?;
        self.owner.life().require_running(CALL)?;
        let objects = self.owner.objects.borrow();
        let entry = &objects.namespaces[id.index];
        let subsystem = objects.subsystem(entry.plan.subsystem).handle;
        match (subsystem, entry.handle) {
            (Some(subsystem), Some(handle)) => self.owner.handle().namespace_counters(subsystem, handle),
            _ => Err(Error::refused(CALL, Refusal::Stale)),
        }
    }

    /// Counters of each queue of a disk: `doca_sta_get_be_queue_stats`.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherContext`], [`Refusal::Stopped`], or DOCA's.
    #[doc(alias = "doca_sta_get_be_queue_stats")]
    pub fn back_end_counters(&self, id: BackEndId) -> Result<Vec<Counters>> {
        const CALL: &str = "doca_sta_get_be_queue_stats";
        require_own(CALL, id.serial, self.owner.channel())?;
        self.owner.life().require_running(CALL)?;
        let objects = self.owner.objects.borrow();
        let Some(handle) = objects.back_ends[id.index].handle else { return Ok(Vec::new()) };
        // DOCA may have let those go that are on their way out.
        let is_own = |entry: &&QueueEntry| entry.back_end == id.index && entry.phase == Phase::Live;
        let queues = objects.queues.iter().filter(is_own);
        let lent = queues.filter_map(|entry| entry.lent.as_ref());
        lent.map(|lent| self.owner.handle().queue_counters(handle, lent)).collect()
    }

    /// Ends the target: waits for IO contexts to be closed on their threads, then removes namespaces, queues, disks and
    /// subsystems, and stops the context.
    #[doc(alias = "doca_ctx_stop")]
    pub fn stop(self) -> Stopping {
        self.owner.request_stop();
        Stopping { owner: self.owner }
    }
}

impl Stopping {
    /// Progresses until the context is idle. Its description is used up by then: the queues were given back.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop, [`Refusal::InCallback`], [`Refusal::EngineGone`]; what is left comes with it.
    pub fn wait(self) -> std::result::Result<(), Failed<Left>> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too, with how many IO contexts are left.
    pub fn wait_for(self, time: Duration) -> std::result::Result<(), Failed<Left>> {
        self.wait_by(deadline(time))
    }

    fn wait_by(self, deadline: Option<Instant>) -> std::result::Result<(), Failed<Left>> {
        match self.owner.until_idle(deadline) {
            Ok(()) => Ok(()),
            Err(error) => {
                let left = self.owner.family().contexts.load(Ordering::Relaxed);
                let text = format!("{left} IO contexts are not closed");
                Err(Failed::new(error.with(text), Left::of(self.owner)))
            }
        }
    }
}

/// What happens to a target, in order, from the moment this was made. Unread events are kept, so read them or drop
/// this.
pub struct Events {
    instance: Rc<Instance>,
}

impl Iterator for Events {
    type Item = Event;

    /// The next event that was not read yet; more may come after progress.
    fn next(&mut self) -> Option<Event> {
        self.instance.next_event()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.instance.listen(false);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
