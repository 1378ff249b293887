//! A control context that is idle, and the description of its target.
//!
//! The whole target can be described here. DOCA is told when it accepts that: after the start as far as is known, before
//! it if a release answers `BAD_STATE` then.

use crate::context::{Left, Starting};
use crate::instance::{
    BackEndEntry, Instance, NamespaceEntry, Phase, QueueEntry, SubsystemEntry, require_own,
};
use crate::limits::{Limits, room};
use crate::raw::memory::{Allocator, PlainAllocator};
use crate::raw::object::Subs;
use crate::raw::queue::NvmeQueue;
use doca_common::context::Member;
use doca_common::{Device, Error, Failed, ProgressEngine, Refusal, Result};
use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident: $text:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            pub struct $name {
                /// Of which target.
                pub(crate) serial: u16,
                pub(crate) index: usize,
            }

            impl fmt::Display for $name {
                /// By its place among those that were described.
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, "{} {}", $text, self.index)
                }
            }
        )*
    };
}

ids! {
    /// Names a disk of a target.
    BackEndId: "disk";
    /// Names a subsystem of a target.
    SubsystemId: "described subsystem";
    /// Names a namespace of a target.
    NamespaceId: "described namespace";
}

/// A namespace: blocks of a disk, as initiators see them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Whose it is.
    pub subsystem: SubsystemId,
    /// Its number for initiators, from 1.
    pub nsid: u32,
    /// Bytes of a block, those of the disk.
    pub block_size: u32,
    /// The disk.
    pub back_end: BackEndId,
    /// Its number on the disk.
    pub disk_nsid: u32,
}

/// A subsystem that DOCA knows, for queue pairs on any thread.
#[derive(Clone, Debug)]
pub struct Subsystem {
    pub(crate) serial: u64,
    pub(crate) handle: Subs,
    pub(crate) nqn: Arc<str>,
}

impl Subsystem {
    /// Its name.
    pub fn nqn(&self) -> &str {
        &self.nqn
    }
}

/// The program's claim to an instance.
pub(crate) type Owner = doca_common::owner::Owner<Instance>;

/// A control context that is not running. Dropping it destroys it.
pub struct Config {
    pub(crate) owner: Owner,
}

/// Longest name of a subsystem, bytes.
const MOST_NQN: usize = 223;

impl Config {
    pub(crate) fn new(control: &Device) -> Result<Self> {
        Ok(Config { owner: Owner::new(Instance::new(control)?) })
    }

    /// The device that controls the target. Connections are on it only if it was also [added](Config::add_network).
    pub fn control(&self) -> &Device {
        self.owner.control()
    }

    /// What the device allows, asked once.
    pub fn limits(&self) -> &Limits {
        self.owner.limits()
    }

    /// Adds a device that connections can be on: `doca_sta_add_dev`. At least one is needed.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above `sta.devs`, `ALREADY_EXIST`, `NOT_SUPPORTED` if the device lacks the transport.
    #[doc(alias = "doca_sta_add_dev")]
    pub fn add_network(&mut self, device: &Device) -> Result<()> {
        const CALL: &str = "doca_sta_add_dev";
        self.owner.require_idle(CALL)?;
        room(CALL, self.owner.networks.borrow().len(), self.limits().devices, "sta.devs")?;
        self.owner.handle().add_device(device)?;
        self.owner.networks.borrow_mut().push(device.clone());
        Ok(())
    }

    /// Sets how many IO contexts there can be, one for each thread that serves connections; 1 unless set:
    /// `doca_sta_set_max_sta_io`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above `sta.io_threads`, or DOCA's.
    #[doc(alias = "doca_sta_set_max_sta_io")]
    pub fn set_io_contexts(&mut self, most: u16) -> Result<()> {
        const CALL: &str = "doca_sta_set_max_sta_io";
        self.owner.require_idle(CALL)?;
        let limit = self.limits().io_contexts;
        if u64::from(most) > limit {
            let text = format!("{most} exceeds sta.io_threads = {limit}");
            return Err(Error::refused(CALL, Refusal::Capability).with(text));
        }
        self.owner.handle().set_io_contexts(most)
    }

    /// How many IO contexts there can be: `doca_sta_get_max_sta_io`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_sta_get_max_sta_io")]
    pub fn io_contexts(&self) -> Result<u16> {
        self.owner.life().require_alive("doca_sta_get_max_sta_io")?;
        self.owner.handle().io_contexts()
    }

    /// Sets who gives the memory through which data pass: `doca_sta_mem_allocator_register`. A [`PlainAllocator`] unless
    /// set. DOCA has one allocator for the whole process.
    ///
    /// # Errors
    ///
    /// [`Refusal::InUse`] while another context uses another one, [`Refusal::Taken`] if it was set before, or DOCA's.
    #[doc(alias = "doca_sta_mem_allocator_register")]
    pub fn set_allocator(&mut self, allocator: Arc<dyn Allocator>) -> Result<()> {
        self.owner.require_idle("doca_sta_mem_allocator_register")?;
        self.owner.set_allocator(allocator)
    }

    /// Describes a disk by its queues: `doca_sta_be_create`, `doca_sta_be_add_queue`. They are given back when the target
    /// ends, or the disk is [removed](crate::Sta::remove_back_end).
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above `sta.be` or `sta.qs_per_be`, [`Refusal::OutOfRange`] without a queue.
    #[doc(alias = "doca_sta_be_create")]
    #[doc(alias = "doca_sta_be_add_queue")]
    pub fn add_back_end(&mut self, queues: Vec<Box<dyn NvmeQueue>>) -> Result<BackEndId> {
        self.owner.require_idle("doca_sta_be_create")?;
        plan_back_end(&self.owner, queues)
    }

    /// Describes a subsystem by its name (NQN): `doca_sta_subsystem_create`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] for a name that is none, [`Refusal::Duplicate`] for one that is there,
    /// [`Refusal::Capability`] above `sta.subsys`.
    #[doc(alias = "doca_sta_subsystem_create")]
    #[doc(alias = "doca_sta_subsystem_add_dev")]
    pub fn add_subsystem(&mut self, nqn: &str) -> Result<SubsystemId> {
        const CALL: &str = "doca_sta_subsystem_create";
        self.owner.require_idle(CALL)?;
        if !nqn.starts_with("nqn.") || nqn.len() > MOST_NQN {
            let text = format!("{nqn:?}: a name of at most {MOST_NQN} bytes that begins with nqn.");
            return Err(Error::refused(CALL, Refusal::Malformed).with(text));
        }
        let name = CString::new(nqn)
            .map_err(|error| Error::refused(CALL, Refusal::Malformed).with(error.to_string()))?;
        let mut objects = self.owner.objects.borrow_mut();
        room(CALL, objects.subsystems.len(), self.owner.limits().subsystems, "sta.subsys")?;
        if objects.subsystems.iter().any(|entry| entry.nqn == name) {
            return Err(Error::refused(CALL, Refusal::Duplicate).with(format!("subsystem {nqn}")));
        }
        objects.subsystems.push(SubsystemEntry { nqn: name, handle: None });
        Ok(SubsystemId { serial: self.owner.channel(), index: objects.subsystems.len() - 1 })
    }

    /// Describes a namespace: `doca_sta_subsystem_add_ns`.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] for a number that is none, [`Refusal::Duplicate`] for one that is there,
    /// [`Refusal::Capability`] for a block size that the device does not have or above `sta.ns_per_subs`,
    /// [`Refusal::OtherContext`].
    #[doc(alias = "doca_sta_subsystem_add_ns")]
    pub fn add_namespace(&mut self, namespace: Namespace) -> Result<NamespaceId> {
        self.owner.require_idle("doca_sta_subsystem_add_ns")?;
        plan_namespace(&self.owner, namespace)
    }

    /// Starts the context on an engine: `doca_ctx_start`. From the first start on it belongs to that engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] without a device for connections; [`Refusal::OtherEngine`], [`Refusal::InCallback`], or
    /// DOCA's; what is left comes with it.
    #[doc(alias = "doca_ctx_start")]
    pub fn start(self, engine: &ProgressEngine) -> std::result::Result<Starting, Failed<Left>> {
        match self.prepare() {
            Ok(()) => Starting::begin(self.owner, engine),
            Err(error) => Err(Failed::new(error, Left::Config(self))),
        }
    }

    fn prepare(&self) -> Result<()> {
        if self.owner.networks.borrow().is_empty() {
            let text =
                "no device was added for connections; the control device counts only if it is added, too";
            return Err(Error::refused("doca_sta_add_dev", Refusal::OutOfRange).with(text));
        }
        if !self.owner.has_allocator() {
            self.owner.set_allocator(PlainAllocator::new())?;
        }
        self.owner.hear()
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Config({})", self.owner.control().info())
    }
}

pub(crate) fn plan_back_end(owner: &Instance, queues: Vec<Box<dyn NvmeQueue>>) -> Result<BackEndId> {
    let limits = owner.limits();
    let mut objects = owner.objects.borrow_mut();
    let live = objects.back_ends.iter().filter(|entry| !entry.removed).count();
    room("doca_sta_be_create", live, limits.back_ends, "sta.be")?;
    if queues.is_empty() {
        return Err(
            Error::refused("doca_sta_be_add_queue", Refusal::OutOfRange).with("a disk without queues")
        );
    }
    if queues.len() as u64 > limits.queues_per_back_end {
        let text = format!("{} queues, sta.qs_per_be = {}", queues.len(), limits.queues_per_back_end);
        return Err(Error::refused("doca_sta_be_add_queue", Refusal::Capability).with(text));
    }
    let index = objects.back_ends.len();
    objects.back_ends.push(BackEndEntry { handle: None, removed: false });
    objects.queues.extend(queues.into_iter().map(|queue| QueueEntry {
        back_end: index,
        phase: Phase::Planned,
        planned: Some(queue),
        lent: None,
    }));
    Ok(BackEndId { serial: owner.channel(), index })
}

pub(crate) fn plan_namespace(owner: &Instance, namespace: Namespace) -> Result<NamespaceId> {
    const CALL: &str = "doca_sta_subsystem_add_ns";
    require_own(CALL, namespace.subsystem.serial, owner.channel())?;
    require_own(CALL, namespace.back_end.serial, owner.channel())?;
    let Namespace { nsid, block_size, .. } = namespace;
    if nsid == 0 || nsid == u32::MAX {
        let text = format!("namespace {nsid}, which hosts cannot ask for: numbers are 1 to {}", u32::MAX - 1);
        return Err(Error::refused(CALL, Refusal::OutOfRange).with(text));
    }
    if !crate::caps::is_block_size_supported(&owner.control().info(), block_size)? {
        return Err(Error::refused(CALL, Refusal::Capability).with(format!("blocks of {block_size} bytes")));
    }
    let mut objects = owner.objects.borrow_mut();
    if objects.back_ends[namespace.back_end.index].removed {
        return Err(Error::refused(CALL, Refusal::Stale).with("the disk was removed"));
    }
    let there =
        |entry: &&NamespaceEntry| entry.plan.subsystem == namespace.subsystem && entry.phase != Phase::Gone;
    let siblings: Vec<_> = objects.namespaces.iter().filter(there).collect();
    room(CALL, siblings.len(), owner.limits().namespaces, "sta.ns_per_subs")?;
    if siblings.iter().any(|entry| entry.plan.nsid == nsid) {
        return Err(Error::refused(CALL, Refusal::Duplicate).with(format!("namespace {nsid}")));
    }
    objects.namespaces.push(NamespaceEntry { plan: namespace, phase: Phase::Planned, handle: None });
    Ok(NamespaceId { serial: owner.channel(), index: objects.namespaces.len() - 1 })
}
