//! The controllers of a target as a state machine: commands in, answers out. No I/O, no clock, no thread; time is handed
//! in. Whoever carries queues (STA, or a transport of the application) keeps one of these for the whole target.
//!
//! ```text
//! transport                       engine
//! queue is there ── opened ─────> a key
//! command ───────── handle ─────> Outcome: an answer, data first, keep the command, go to the disk, attach the queue
//! queue is gone ─── closed ─────>
//! now and then ──── tick ───────> keep-alive timers
//!                   actions <──── answers to kept commands, queues to be ended
//! ```

use crate::controller::{Controller, Owner};
use crate::model::Model;
use nvme_wire::command::FABRICS;
use nvme_wire::fabrics::{
    Connect, ConnectData, ConnectResult, DYNAMIC_CONTROLLER, Fabrics, FabricsType, InvalidParameter,
    PropertyGet, PropertySet,
};
use nvme_wire::{Cqe, Layout, Nqn, Sqe, Status};
use std::collections::BTreeMap;
use std::time::Duration;

/// Names a queue of an initiator. Keys are not used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct QueueKey(u64);

/// What is to be done about a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// Answer.
    Complete(Cqe),
    /// Send data, and answer.
    Data(Cqe, Vec<u8>),
    /// Fetch the command's data and hand it in again.
    Fetch,
    /// Keep the command: an [`Action::Complete`] will answer it.
    Keep,
    /// Set the queue up for this subsystem and size (0-based), then answer. `None`: no I/O will come.
    Attach {
        /// Place of the subsystem in the model, for an I/O queue.
        subsystem: Option<usize>,
        /// The SQSIZE of the Connect command.
        sqsize: u16,
        /// The answer.
        cqe: Cqe,
    },
    /// Have the disk behind the namespace execute it.
    Disk {
        /// Place of the subsystem in the model.
        subsystem: usize,
        /// The namespace.
        nsid: u32,
    },
}

/// What is to be done about a queue.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Answer the command of this identifier, which was kept.
    Complete {
        /// The queue.
        queue: QueueKey,
        /// The answer, with the identifier in it.
        cqe: Cqe,
    },
    /// End the connection.
    Disconnect {
        /// The queue.
        queue: QueueKey,
        /// Why, for logs.
        why: &'static str,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Queue {
    /// Its number, as the private data of its connection said.
    qid: u16,
    /// Its controller, once it was connected.
    controller: Option<u16>,
}

/// Counters of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EngineCounts {
    /// Connect commands that succeeded.
    pub connects: u64,
    /// Connect commands that were refused.
    pub refused: u64,
    /// Commands that were answered by the engine.
    pub commands: u64,
    /// Controllers that ended because their keep-alive timer expired.
    pub expired: u64,
}

/// The controllers of a target.
#[derive(Debug)]
pub struct Engine {
    pub(crate) model: Model,
    pub(crate) controllers: BTreeMap<u16, Controller>,
    queues: BTreeMap<QueueKey, Queue>,
    pub(crate) actions: Vec<Action>,
    next_key: u64,
    next_controller: u16,
    pub(crate) generation: u64,
    counts: EngineCounts,
}

/// Entries that an admin queue must have room for at least: those of the specification.
const ADMIN_ENTRIES: u16 = 32;

/// An error that tries again would not mend.
pub(crate) fn refuse(sqe: &Sqe, status: Status) -> Outcome {
    Outcome::Complete(Cqe::new(sqe.cid, status.with_dnr()))
}

/// An answer with a result.
pub(crate) fn done(sqe: &Sqe, result: u64) -> Outcome {
    Outcome::Complete(Cqe { result, ..Cqe::new(sqe.cid, Status::SUCCESS) })
}

impl Engine {
    /// An engine without controllers.
    pub fn new(model: Model) -> Self {
        Engine {
            model,
            controllers: BTreeMap::new(),
            queues: BTreeMap::new(),
            actions: Vec::new(),
            next_key: 1,
            next_controller: 1,
            generation: 1,
            counts: EngineCounts::default(),
        }
    }

    /// What is offered.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A connection is there, for the queue of this number: 0 is an admin queue.
    pub fn opened(&mut self, qid: u16) -> QueueKey {
        let key = QueueKey(self.next_key);
        self.next_key += 1;
        self.queues.insert(key, Queue { qid, controller: None });
        key
    }

    /// A connection is gone. With an admin queue its controller goes.
    pub fn closed(&mut self, key: QueueKey) {
        let Some(queue) = self.queues.remove(&key) else { return };
        let Some(id) = queue.controller else { return };
        let Some(controller) = self.controllers.get_mut(&id) else { return };
        if controller.admin == key {
            self.end(id, "the admin queue is gone");
        } else {
            controller.io.retain(|_, own| *own != key);
        }
    }

    /// Ends a controller and its queues.
    fn end(&mut self, id: u16, why: &'static str) {
        let Some(controller) = self.controllers.remove(&id) else { return };
        for queue in controller.io.into_values().chain([controller.admin]) {
            if self.queues.contains_key(&queue) {
                self.actions.push(Action::Disconnect { queue, why });
            }
        }
    }

    /// What is to be done since the last time.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Ends controllers whose hosts did not keep them alive. `now` is any steady clock.
    pub fn tick(&mut self, now: Duration) {
        let expired: Vec<u16> =
            self.controllers.iter().filter(|(_, own)| own.is_expired(now)).map(|(id, _)| *id).collect();
        for id in expired {
            self.counts.expired += 1;
            self.end(id, "the host did not keep its controller alive");
        }
    }

    /// What happened so far.
    pub fn counts(&self) -> EngineCounts {
        self.counts
    }

    /// Controllers at the moment.
    pub fn num_controllers(&self) -> usize {
        self.controllers.len()
    }

    /// Adds a namespace, changes it, or takes it away, and tells hosts that asked for it.
    pub fn set_namespace(&mut self, subsystem: usize, nsid: u32, info: Option<crate::NamespaceInfo>) {
        let Some(entry) = self.model.subsystems.get_mut(subsystem) else { return };
        match info {
            Some(info) => entry.namespaces.insert(nsid, info),
            None => entry.namespaces.remove(&nsid),
        };
        let concerned = self.controllers.values_mut().filter(|own| own.owner == Owner::Subsystem(subsystem));
        for controller in concerned {
            controller.namespace_changed(nsid, &mut self.actions);
        }
    }

    /// Takes a command. `data` are its data if they go to the controller and are there. `room` is what the transport can
    /// move.
    pub fn handle(
        &mut self,
        key: QueueKey,
        sqe: &Sqe,
        data: Option<&[u8]>,
        room: usize,
        now: Duration,
    ) -> Outcome {
        let Some(queue) = self.queues.get(&key).copied() else {
            return refuse(sqe, Status::COMMAND_SEQUENCE_ERROR);
        };
        self.counts.commands += 1;
        if sqe.psdt != 1 && sqe.opcode != FABRICS {
            return refuse(sqe, Status::INVALID_FIELD);
        }
        if sqe.fuse != 0 {
            return refuse(sqe, Status::INVALID_FIELD);
        }
        if let Some(status) = crate::sgl::check(sqe, room) {
            return refuse(sqe, status);
        }
        let connecting = sqe.opcode == FABRICS && sqe.get::<Fabrics>().fctype == FabricsType::CONNECT;
        if connecting {
            return self.connect(key, queue, sqe, data, now);
        }
        let Some(id) = queue.controller.filter(|id| self.controllers.contains_key(id)) else {
            return refuse(sqe, Status::COMMAND_SEQUENCE_ERROR);
        };
        if sqe.opcode == FABRICS {
            return self.fabrics(id, queue.qid, sqe);
        }
        if queue.qid == 0 {
            return self.admin(id, sqe, data, now);
        }
        self.io(id, sqe)
    }

    fn io(&mut self, id: u16, sqe: &Sqe) -> Outcome {
        let controller = &self.controllers[&id];
        let Owner::Subsystem(subsystem) = controller.owner else {
            return refuse(sqe, Status::INVALID_OPCODE);
        };
        if !controller.is_ready() {
            return refuse(sqe, Status::COMMAND_SEQUENCE_ERROR);
        }
        if !crate::disk::EXECUTED.contains(&nvme_wire::IoOpcode(sqe.opcode)) {
            return refuse(sqe, Status::INVALID_OPCODE);
        }
        // Flush of all namespaces is an option that is not offered.
        if !self.model.subsystems[subsystem].namespaces.contains_key(&sqe.nsid) {
            return refuse(sqe, Status::INVALID_NAMESPACE);
        }
        Outcome::Disk { subsystem, nsid: sqe.nsid }
    }

    fn fabrics(&mut self, id: u16, qid: u16, sqe: &Sqe) -> Outcome {
        let Some(controller) = self.controllers.get_mut(&id) else {
            return refuse(sqe, Status::COMMAND_SEQUENCE_ERROR);
        };
        match sqe.get::<Fabrics>().fctype {
            FabricsType::PROPERTY_GET if qid == 0 => {
                let get = sqe.get::<PropertyGet>();
                match controller.property(get.offset, get.size == 1, &self.model.capacity) {
                    Some(value) => done(sqe, value),
                    None => invalid(sqe, PropertyGet::offset("offset"), false),
                }
            }
            FabricsType::PROPERTY_SET if qid == 0 => {
                let set = sqe.get::<PropertySet>();
                if !controller.set_property(set.offset, set.size, set.value) {
                    return invalid(sqe, PropertySet::offset("offset"), false);
                }
                if !controller.is_ready() {
                    // A reset ends the I/O queues.
                    for queue in std::mem::take(&mut controller.io).into_values() {
                        self.actions.push(Action::Disconnect { queue, why: "the controller was reset" });
                    }
                }
                done(sqe, 0)
            }
            _ => refuse(sqe, Status::INVALID_OPCODE),
        }
    }

    fn connect(
        &mut self,
        key: QueueKey,
        queue: Queue,
        sqe: &Sqe,
        data: Option<&[u8]>,
        now: Duration,
    ) -> Outcome {
        let outcome = self.try_connect(key, queue, sqe, data, now);
        match &outcome {
            Outcome::Attach { .. } => self.counts.connects += 1,
            Outcome::Fetch => {}
            _ => self.counts.refused += 1,
        }
        outcome
    }

    fn try_connect(
        &mut self,
        key: QueueKey,
        queue: Queue,
        sqe: &Sqe,
        data: Option<&[u8]>,
        now: Duration,
    ) -> Outcome {
        if queue.controller.is_some() {
            return refuse(sqe, Status::COMMAND_SEQUENCE_ERROR);
        }
        if sqe.sgl().len().is_none_or(|len| (len as usize) < ConnectData::LEN) {
            return refuse(sqe, Status::INVALID_FIELD);
        }
        let Some(data) = data else { return Outcome::Fetch };
        let Ok(data) = ConnectData::read(data) else { return refuse(sqe, Status::INVALID_FIELD) };
        let connect = sqe.get::<Connect>();
        let (in_command, in_data) = (
            |field| invalid(sqe, Connect::offset(field), false),
            |field| invalid(sqe, ConnectData::offset(field), true),
        );
        if connect.recfmt != 0 {
            return refuse(sqe, Status::CONNECT_INCOMPATIBLE_FORMAT);
        }
        if connect.qid != queue.qid {
            return in_command("qid");
        }
        if connect.sqsize == 0 || connect.sqsize >= self.model.capacity.queue_entries.max(ADMIN_ENTRIES) {
            return in_command("sqsize");
        }
        let Ok(hostnqn) = data.hostnqn.text() else { return in_data("hostnqn") };
        let Ok(subnqn) = data.subnqn.text() else { return in_data("subnqn") };
        let owner = if subnqn == Nqn::DISCOVERY {
            Some(Owner::Discovery)
        } else {
            self.model.find(subnqn).map(Owner::Subsystem)
        };
        let Some(owner) = owner else { return in_data("subnqn") };
        if let Owner::Subsystem(index) = owner
            && let Some(hosts) = &self.model.subsystems[index].hosts
            && !hosts.iter().any(|host| host == hostnqn)
        {
            return refuse(sqe, Status::CONNECT_INVALID_HOST);
        }
        let id = if connect.qid == 0 {
            if data.cntlid != DYNAMIC_CONTROLLER {
                return in_data("cntlid");
            }
            let Some(id) = self.free_controller() else {
                return refuse(sqe, Status::CONNECT_CONTROLLER_BUSY);
            };
            let controller = Controller::new(owner, hostnqn, data.hostid, key, connect.kato, now);
            self.controllers.insert(id, controller);
            id
        } else {
            let Some(controller) = self.controllers.get_mut(&data.cntlid) else { return in_data("cntlid") };
            if controller.owner != owner || controller.hostnqn != hostnqn || controller.hostid != data.hostid
            {
                return in_data("cntlid");
            }
            let taken = controller.io.contains_key(&connect.qid);
            let fits = matches!(owner, Owner::Subsystem(_)) && connect.qid <= controller.granted;
            if taken || !fits || !controller.takes_queues() {
                return in_command("qid");
            }
            controller.io.insert(connect.qid, key);
            data.cntlid
        };
        self.queues.insert(key, Queue { controller: Some(id), ..queue });
        let subsystem = match owner {
            Owner::Subsystem(index) if connect.qid > 0 => Some(index),
            _ => None,
        };
        let result = ConnectResult { cntlid: id, ..ConnectResult::default() }.into();
        let cqe = Cqe { result, ..Cqe::new(sqe.cid, Status::SUCCESS) };
        Outcome::Attach { subsystem, sqsize: connect.sqsize, cqe }
    }

    /// A number that no controller has, the oldest first.
    fn free_controller(&mut self) -> Option<u16> {
        /// The last number that a dynamic controller may have.
        const LAST: u16 = 0xFFEF;
        if self.controllers.len() >= usize::from(self.model.capacity.controllers) {
            return None;
        }
        loop {
            let id = self.next_controller;
            self.next_controller = if id >= LAST { 1 } else { id + 1 };
            if !self.controllers.contains_key(&id) {
                return Some(id);
            }
        }
    }
}

/// Invalid Parameters, with the place.
fn invalid(sqe: &Sqe, ipo: Option<u16>, in_data: bool) -> Outcome {
    let result = InvalidParameter { ipo: ipo.unwrap_or(0), in_data }.into();
    Outcome::Complete(Cqe { result, ..Cqe::new(sqe.cid, Status::CONNECT_INVALID_PARAMETERS.with_dnr()) })
}
