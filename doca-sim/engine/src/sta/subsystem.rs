//! Subsystems and namespaces: which blocks of which back end hosts know under which number.

use super::core::{Core, State, Target};
use super::handle::{Handle, Kind};
use super::stats::{self, Counters};
use crate::code::{Code, Res};
use crate::log;
use std::collections::BTreeMap;

/// Longest NQN, bytes.
const NQN: usize = 223;

pub(crate) struct Subsystem {
    nqn: String,
    /// Devices whose queue pairs may be bound to it.
    pub(super) devices: Vec<usize>,
    /// By the number that hosts use.
    pub(super) spaces: BTreeMap<u32, Handle>,
    /// Queue pairs bound to it.
    pub(super) qps: u32,
}

pub(crate) struct Namespace {
    pub(super) subsystem: Handle,
    pub(super) number: u32,
    pub(super) block: u32,
    /// Its number on the disk.
    pub(super) on_disk: u32,
    pub(super) end: Handle,
    pub(super) counters: Counters,
    /// Commands that are not answered yet.
    pub(super) in_flight: u32,
    /// The task that waits for the last of them.
    pub(super) removing: Option<usize>,
}

impl Core {
    /// `doca_sta_subsystem_create`
    pub(crate) fn create_subsystem(&self, nqn: &str) -> Res<Handle> {
        let mut state = self.hold();
        let target = &mut state.target;
        target.require_setup()?;
        let plain =
            nqn.starts_with("nqn.") && nqn.len() > 4 && !nqn.chars().any(|c| c.is_control() || c == ' ');
        if !plain || nqn.len() > NQN {
            log::error!("'{nqn}' is no NQN: those start with \"nqn.\" and have at most {NQN} bytes");
            return Err(Code::INVALID_VALUE);
        }
        if target.subsystems.values().any(|known| known.nqn == nqn) {
            return Err(Code::ALREADY_EXIST);
        }
        if target.subsystems.len() >= self.limits.max_subsys as usize {
            log::error!("there are {} subsystems already", self.limits.max_subsys);
            return Err(Code::NO_MEMORY);
        }
        let handle = target.handle(Kind::Subsystem);
        let made = Subsystem { nqn: nqn.to_owned(), devices: Vec::new(), spaces: BTreeMap::new(), qps: 0 };
        target.subsystems.insert(handle, made);
        Ok(handle)
    }

    /// `doca_sta_subsystem_add_dev`
    pub(crate) fn subsystem_add_dev(&self, subsystem: Handle, device: usize) -> Res {
        let mut state = self.hold();
        let target = &mut state.target;
        let known = target.subsystem(subsystem)?;
        let (added, has_spaces) = (known.devices.contains(&device), !known.spaces.is_empty());
        target.require_setup()?;
        if !target.network.contains(&device) {
            log::error!("the device was not added to doca_sta");
            return Err(Code::NOT_FOUND);
        }
        if added {
            return Err(Code::ALREADY_EXIST);
        }
        if has_spaces {
            log::error!("devices are added to a subsystem before its first namespace");
            return Err(Code::BAD_STATE);
        }
        target.subsystem(subsystem)?.devices.push(device);
        Ok(())
    }

    /// `doca_sta_subsystem_destroy`
    pub(crate) fn destroy_subsystem(&self, subsystem: Handle) -> Res {
        let mut state = self.hold();
        let target = &mut state.target;
        let known = target.subsystem(subsystem)?;
        let (spaces, qps) = (known.spaces.len(), known.qps);
        target.require_setup()?;
        if spaces > 0 || qps > 0 {
            log::error!("the subsystem still has {spaces} namespaces and {qps} queue pairs");
            return Err(Code::IN_USE);
        }
        target.subsystems.remove(&subsystem);
        Ok(())
    }

    /// `doca_sta_subsystem_add_ns`
    pub(crate) fn add_namespace(
        &self,
        subsystem: Handle,
        number: u32,
        block: u32,
        on_disk: u32,
        end: Handle,
    ) -> Res<Handle> {
        let mut state = self.hold();
        let target = &mut state.target;
        target.subsystem(subsystem)?;
        target.ends.get(&end).ok_or(Code::INVALID_VALUE)?;
        target.require_setup()?;
        if [0, u32::MAX].contains(&number) || [0, u32::MAX].contains(&on_disk) {
            log::error!("a namespace cannot have the numbers {number} and {on_disk}");
            return Err(Code::INVALID_VALUE);
        }
        if !self.limits.logical_block_sizes.0.contains(&block) {
            log::error!("blocks of {block} bytes are not supported");
            return Err(Code::NOT_SUPPORTED);
        }
        if target.subsystem(subsystem)?.spaces.contains_key(&number) {
            return Err(Code::ALREADY_EXIST);
        }
        if !target.queues.values().any(|queue| queue.end == end) {
            log::error!("the back end of the namespace has no queue yet");
            return Err(Code::BAD_STATE);
        }
        if target.subsystem(subsystem)?.spaces.len() >= self.limits.max_ns_per_subs as usize {
            log::error!("the subsystem has {} namespaces already", self.limits.max_ns_per_subs);
            return Err(Code::NO_MEMORY);
        }
        let handle = target.handle(Kind::Namespace);
        let counters = Counters::new(stats::space::NAMES);
        let made =
            Namespace { subsystem, number, block, on_disk, end, counters, in_flight: 0, removing: None };
        target.spaces.insert(handle, made);
        target.subsystem(subsystem)?.spaces.insert(number, handle);
        Ok(handle)
    }

    /// `doca_sta_subsystem_rm_ns`: at once, or IN_USE while commands are not answered yet.
    pub(crate) fn remove_namespace(&self, subsystem: Handle, space: Handle) -> Res {
        let mut state = self.hold();
        let target = &mut state.target;
        target.require_setup()?;
        let known = target.namespace(subsystem, space)?;
        if known.in_flight > 0 || known.removing.is_some() {
            log::error!("{} commands of the namespace are not answered yet", known.in_flight);
            return Err(Code::IN_USE);
        }
        target.drop_namespace(space);
        Ok(())
    }
}

impl Target {
    /// INVALID_VALUE if there is no such subsystem.
    pub(super) fn subsystem(&mut self, handle: Handle) -> Res<&mut Subsystem> {
        self.subsystems.get_mut(&handle).ok_or(Code::INVALID_VALUE)
    }

    /// INVALID_VALUE if the subsystem has no such namespace.
    pub(crate) fn namespace(&mut self, subsystem: Handle, space: Handle) -> Res<&mut Namespace> {
        self.spaces.get_mut(&space).filter(|known| known.subsystem == subsystem).ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn drop_namespace(&mut self, space: Handle) {
        if let Some(gone) = self.spaces.remove(&space)
            && let Some(subsystem) = self.subsystems.get_mut(&gone.subsystem)
        {
            subsystem.spaces.remove(&gone.number);
        }
    }
}

impl State {
    /// Removes namespaces whose last command is answered, or whose disk answers no more. Tells whether it did.
    pub(super) fn finish_removals(&mut self) -> bool {
        let waiting: Vec<Handle> = self
            .target
            .spaces
            .iter()
            .filter(|(_, space)| space.removing.is_some())
            .map(|(h, _)| *h)
            .collect();
        let mut done = false;
        for space in waiting {
            self.abandon(|command| command.space == space);
            let Some(known) = self.target.spaces.get_mut(&space).filter(|known| known.in_flight == 0) else {
                continue;
            };
            let task = known.removing.take();
            self.target.drop_namespace(space);
            if let Some(task) = task {
                self.target.tell(super::core::ControlEvent::Done { task, code: Code::SUCCESS });
            }
            done = true;
        }
        done
    }
}
