//! One controller: its properties, timers and events.

use crate::engine::{Action, QueueKey};
use crate::model::Capacity;
use nvme_wire::admin::AsyncEvent;
use nvme_wire::feature::AsyncEvents;
use nvme_wire::property::{Cap, Cc, Csts, Version, offset};
use nvme_wire::{Cqe, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Version of the base specification that controllers follow.
pub(crate) const VERSION: Version = Version { ter: 0, mnr: 3, mjr: 1 };

/// Entries of Asynchronous Event Requests that a host may have outstanding, less one.
pub(crate) const AERL: u8 = 3;

/// What the timer of a host may lag behind.
const GRACE: Duration = Duration::from_millis(200);

/// Whose controller it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Discovery,
    Subsystem(usize),
}

#[derive(Debug)]
pub(crate) struct Controller {
    pub(crate) owner: Owner,
    pub(crate) hostnqn: String,
    pub(crate) hostid: [u8; 16],
    pub(crate) admin: QueueKey,
    /// I/O queues by number.
    pub(crate) io: BTreeMap<u16, QueueKey>,
    /// I/O queues that the host may have.
    pub(crate) granted: u16,
    cc: Cc,
    csts: Csts,
    /// Zero for none.
    pub(crate) kato: Duration,
    alive: Duration,
    pub(crate) events: AsyncEvents,
    /// Requests that wait for an event, by their identifiers.
    pub(crate) waiting: Vec<u16>,
    /// Whether the host was told of changed namespaces and did not read which yet.
    told: bool,
    /// Whether it is to be told as soon as it asks.
    pending: bool,
    pub(crate) changed: BTreeSet<u32>,
}

impl Controller {
    pub(crate) fn new(
        owner: Owner,
        hostnqn: &str,
        hostid: [u8; 16],
        admin: QueueKey,
        kato: u32,
        now: Duration,
    ) -> Self {
        Controller {
            owner,
            hostnqn: hostnqn.to_owned(),
            hostid,
            admin,
            io: BTreeMap::new(),
            granted: 0,
            cc: Cc::default(),
            csts: Csts::default(),
            kato: Duration::from_millis(kato.into()),
            alive: now,
            events: AsyncEvents::default(),
            waiting: Vec::new(),
            told: false,
            pending: false,
            changed: BTreeSet::new(),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.csts.rdy && self.csts.shst == 0
    }

    /// Whether I/O queues can be connected: it is enabled, with the entry sizes that there are.
    pub(crate) fn takes_queues(&self) -> bool {
        self.is_ready() && self.cc.iosqes == 6 && self.cc.iocqes == 4
    }

    pub(crate) fn keep_alive(&mut self, now: Duration) {
        self.alive = now;
    }

    pub(crate) fn is_expired(&self, now: Duration) -> bool {
        !self.kato.is_zero() && now.saturating_sub(self.alive) > self.kato + GRACE
    }

    /// The value of a property, which has 8 bytes if `long`.
    pub(crate) fn property(&self, at: u32, long: bool, capacity: &Capacity) -> Option<u64> {
        match (at, long) {
            (offset::CAP, true) => Some(u64::from(Cap {
                mqes: capacity.queue_entries - 1,
                cqr: true,
                // Half seconds: the longest that a host waits for CSTS.RDY, which is at once here.
                to: 1,
                css: 1,
                ..Cap::default()
            })),
            (offset::VS, false) => Some(u32::from(VERSION).into()),
            (offset::CC, false) => Some(u32::from(self.cc.clone()).into()),
            (offset::CSTS, false) => Some(u32::from(self.csts.clone()).into()),
            _ => None,
        }
    }

    /// Sets a property; false if there is no such one, or it cannot be set so.
    pub(crate) fn set_property(&mut self, at: u32, size: u8, value: u64) -> bool {
        if at != offset::CC || size != 0 {
            return false;
        }
        let cc = Cc::from(value as u32);
        if cc.en && !self.cc.en {
            // Other command sets, page sizes and arbitration are not offered.
            self.csts.cfs = cc.css != 0 || cc.mps != 0 || cc.ams != 0;
            self.csts.rdy = !self.csts.cfs;
            self.csts.shst = 0;
        } else if !cc.en && self.cc.en {
            self.csts = Csts::default();
            self.events = AsyncEvents::default();
        }
        if cc.shn != 0 {
            // Nothing is kept here that would have to be written.
            self.csts.shst = 2;
        }
        self.cc = cc;
        true
    }

    /// A namespace came, went or changed.
    pub(crate) fn namespace_changed(&mut self, nsid: u32, actions: &mut Vec<Action>) {
        self.changed.insert(nsid);
        if self.events.namespace_attributes && !self.told {
            self.pending = true;
            self.notify(actions);
        }
    }

    /// Keeps a request for events; false if there are too many.
    pub(crate) fn wait_for_event(&mut self, cid: u16, actions: &mut Vec<Action>) -> bool {
        if self.waiting.len() > usize::from(AERL) {
            return false;
        }
        self.waiting.push(cid);
        self.notify(actions);
        true
    }

    fn notify(&mut self, actions: &mut Vec<Action>) {
        if self.pending && !self.waiting.is_empty() {
            let cid = self.waiting.remove(0);
            (self.pending, self.told) = (false, true);
            let result = AsyncEvent::NAMESPACE_CHANGED.into();
            let cqe = Cqe { result, ..Cqe::new(cid, Status::SUCCESS) };
            actions.push(Action::Complete { queue: self.admin, cqe });
        }
    }

    /// Which namespaces changed since the host last read that; it may be told again afterwards.
    pub(crate) fn read_changed(&mut self, keep: bool) -> Vec<u32> {
        let changed = self.changed.iter().copied().collect();
        if !keep {
            self.changed.clear();
            self.told = false;
        }
        changed
    }

    /// Answers a request for events that the host aborts; false if there is none.
    pub(crate) fn abort(&mut self, cid: u16, actions: &mut Vec<Action>) -> bool {
        let Some(place) = self.waiting.iter().position(|own| *own == cid) else { return false };
        self.waiting.remove(place);
        actions.push(Action::Complete { queue: self.admin, cqe: Cqe::new(cid, Status::ABORT_REQUESTED) });
        true
    }
}
