//! The connections and listeners of a run. No user code and no DOCA callback runs while the table is borrowed.

use super::cm::Decide;
use super::{ConnectionEvent, ConnectionId, ConnectionState};
use crate::address::Address;
use crate::raw::address::Addr;
use crate::raw::connection::Link;
use crate::run::{Flights, Run};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::task::Waker;

/// Gives the C connection as long as tasks can be submitted on it. The table opens and shuts it.
#[derive(Clone, Default)]
pub(crate) struct Door(Rc<Cell<Option<Link>>>);

impl Door {
    #[inline]
    pub(crate) fn link(&self) -> Option<Link> {
        self.0.get()
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.link().is_some() { "open" } else { "shut" })
    }
}

struct Entry {
    generation: u32,
    used: bool,
    /// The C connection, as long as it is valid.
    link: Option<Link>,
    state: ConnectionState,
    door: Door,
    /// Whether a handle, or a listener, has a claim to it.
    held: bool,
    /// The listener that it came by.
    listener: Option<usize>,
    /// Whether a task failed on it.
    broken: bool,
    /// Tasks in flight on it, counted since nobody holds it.
    flying: Option<usize>,
    wakers: Vec<Waker>,
}

impl Entry {
    fn unused() -> Self {
        Entry {
            generation: 0,
            used: false,
            link: None,
            state: ConnectionState::Disconnected,
            door: Door::default(),
            held: false,
            listener: None,
            broken: false,
            flying: None,
            wakers: Vec::new(),
        }
    }

    fn set(&mut self, state: ConnectionState, link: Option<Link>) {
        (self.state, self.link) = (state, link);
        self.door.0.set(link.filter(|_| state == ConnectionState::Connected));
    }
}

struct Listening {
    port: u16,
    /// Absent while it is being asked.
    decide: Option<Decide>,
    held: bool,
    /// Established and not handed out yet.
    ready: VecDeque<ConnectionId>,
    wakers: Vec<Waker>,
}

/// Connections and listeners.
pub(crate) struct Table {
    entries: Vec<Entry>,
    listeners: Vec<Listening>,
    /// Where peers were looked for. A connection uses its address until it is wound down, of which its own side may never
    /// be told; so addresses stay as long as the run.
    addresses: HashMap<Address, Rc<Addr>>,
    /// To be woken after progress.
    awake: Vec<Waker>,
    /// To be dropped after progress.
    retired: Vec<Rc<Addr>>,
    /// Ports to be given up after progress.
    closing: Vec<u16>,
    /// What happened, while somebody listens.
    events: Option<VecDeque<ConnectionEvent>>,
    /// Which record that is.
    record: u64,
    /// Whether something is to be done after progress.
    dirty: bool,
    /// Where the tasks of the connections are.
    slab: Rc<Flights>,
}

impl Table {
    pub(crate) fn new(connections: usize, slab: Rc<Flights>) -> Self {
        Table {
            entries: (0..connections).map(|_| Entry::unused()).collect(),
            listeners: Vec::new(),
            addresses: HashMap::new(),
            awake: Vec::new(),
            retired: Vec::new(),
            closing: Vec::new(),
            events: None,
            record: 0,
            dirty: false,
            slab,
        }
    }

    fn get(&self, id: ConnectionId) -> Option<&Entry> {
        self.entries.get(id.index as usize).filter(|entry| entry.used && entry.generation == id.generation)
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Entry> {
        self.entries
            .get_mut(id.index as usize)
            .filter(|entry| entry.used && entry.generation == id.generation)
    }

    /// A new entry, held.
    pub(crate) fn insert(&mut self, state: ConnectionState, link: Option<Link>) -> ConnectionId {
        let index = self.entries.iter().position(|entry| !entry.used).unwrap_or_else(|| {
            self.entries.push(Entry::unused());
            self.entries.len() - 1
        });
        let generation = self.entries[index].generation;
        self.entries[index] = Entry { generation, used: true, held: true, ..Entry::unused() };
        self.entries[index].set(state, link);
        ConnectionId { index: index as u32, generation }
    }

    /// Changes an entry. Prepared tasks of a connection on which none can be submitted any more are revoked.
    fn change(&mut self, id: ConnectionId, state: ConnectionState, link: Option<Link>) {
        if let Some(entry) = self.get_mut(id) {
            entry.set(state, link);
            if entry.door.link().is_none() {
                self.revoke(id);
            }
        }
    }

    fn revoke(&self, id: ConnectionId) {
        let own = self.slab.held().filter(|flight| flight.on.get() == id);
        own.for_each(|flight| flight.ready.revoke());
    }

    /// Forgets an entry.
    pub(crate) fn remove(&mut self, id: ConnectionId) {
        self.change(id, ConnectionState::Disconnected, None);
        let Some(entry) = self.get_mut(id) else { return };
        entry.used = false;
        entry.generation = entry.generation.wrapping_add(1);
        let wakers = std::mem::take(&mut entry.wakers);
        self.awake.extend(wakers);
        self.dirty = true;
    }

    /// An address that was used before.
    pub(crate) fn address(&self, address: &Address) -> Option<Rc<Addr>> {
        self.addresses.get(address).cloned()
    }

    /// Keeps an address that a connection uses.
    pub(crate) fn keep_address(&mut self, address: Address, c_address: Rc<Addr>) {
        self.addresses.insert(address, c_address);
    }

    pub(crate) fn state(&self, id: ConnectionId) -> ConnectionState {
        self.get(id).map_or(ConnectionState::Disconnected, |entry| entry.state)
    }

    pub(crate) fn link(&self, id: ConnectionId) -> Option<Link> {
        self.get(id)?.link
    }

    /// Whether prepared tasks may be submitted.
    pub(crate) fn takes_prepared(&self, id: ConnectionId) -> bool {
        self.get(id).is_some_and(|entry| entry.held && entry.door.link().is_some())
    }

    /// What a handle of the connection looks at before each task.
    pub(crate) fn door(&self, id: ConnectionId) -> Door {
        self.get(id).map_or_else(Door::default, |entry| entry.door.clone())
    }

    /// Connections that are not over.
    pub(crate) fn live(&self) -> usize {
        self.entries.iter().filter(|entry| entry.used && !entry.state.is_over()).count()
    }

    /// Notes a new state, and who is to be woken.
    pub(crate) fn set_state(&mut self, id: ConnectionId, state: ConnectionState, link: Option<Link>) {
        let Some(entry) = self.get_mut(id) else { return };
        let changed = entry.state != state;
        self.change(id, state, link);
        let Some(entry) = self.get_mut(id) else { return };
        let wakers = std::mem::take(&mut entry.wakers);
        self.awake.extend(wakers);
        self.dirty = true;
        if changed {
            self.tell(id, state);
        }
    }

    fn tell(&mut self, id: ConnectionId, state: ConnectionState) {
        if let Some(events) = &mut self.events {
            events.push_back(ConnectionEvent { connection: id, state });
        }
    }

    /// Begins a record of events, which ends the one before.
    pub(crate) fn begin_record(&mut self) -> u64 {
        self.record += 1;
        self.events = Some(VecDeque::new());
        self.record
    }

    pub(crate) fn end_record(&mut self, record: u64) {
        if record == self.record {
            self.events = None;
        }
    }

    pub(crate) fn next_event(&mut self, record: u64) -> Option<ConnectionEvent> {
        if record != self.record {
            return None;
        }
        self.events.as_mut()?.pop_front()
    }

    /// Nobody has a claim any more.
    pub(crate) fn release(&mut self, id: ConnectionId) {
        if let Some(entry) = self.get_mut(id) {
            entry.held = false;
            self.dirty = true;
            self.revoke(id);
        }
    }

    pub(crate) fn watch(&mut self, id: ConnectionId, waker: &Waker) {
        if let Some(entry) = self.get_mut(id)
            && !entry.wakers.iter().any(|known| known.will_wake(waker))
        {
            entry.wakers.push(waker.clone());
        }
    }

    /// A task failed. Tells whether another one had before.
    pub(crate) fn task_failed(&mut self, id: ConnectionId) -> bool {
        let connected = |entry: &&mut Entry| entry.state == ConnectionState::Connected;
        self.get_mut(id).filter(connected).is_some_and(|entry| std::mem::replace(&mut entry.broken, true))
    }

    /// Whether a task failed on it.
    pub(crate) fn is_broken(&self, id: ConnectionId) -> bool {
        self.get(id).is_some_and(|entry| entry.broken)
    }

    /// A task came back. Counts where nobody holds the connection, whose end waits for the last.
    pub(crate) fn landed(&mut self, id: ConnectionId) {
        let Some(flying) = self.get_mut(id).and_then(|entry| entry.flying.as_mut()) else { return };
        *flying = flying.saturating_sub(1);
        self.dirty |= *flying == 0;
    }

    /// The C connection of one that the program can end.
    pub(crate) fn open_link(&self, id: ConnectionId) -> Option<Link> {
        self.get(id).filter(|entry| entry.state.is_open())?.link
    }

    /// The program ended a connection. Some releases confirm that to it later, when nobody waits for it any more.
    pub(crate) fn ended(&mut self, id: ConnectionId) {
        if self.get(id).is_some_and(|entry| entry.state.is_open()) {
            self.set_state(id, ConnectionState::Disconnected, None);
        }
    }

    /// The next connection from `index` on that nobody holds and that can be ended now. Those that are over are
    /// forgotten; for those with tasks in flight `run` is to tell when these come back.
    pub(crate) fn abandoned(&mut self, index: &mut usize, run: &Run) -> Option<ConnectionId> {
        while let Some(entry) = self.entries.get_mut(*index) {
            let id = ConnectionId { index: *index as u32, generation: entry.generation };
            if entry.used && !entry.held {
                if entry.state.is_over() {
                    self.remove(id);
                } else if entry.state.is_open() {
                    if *entry.flying.get_or_insert_with(|| run.flying_on(id)) == 0 {
                        // Asked for again by the same index, since disconnecting may have ended it.
                        return Some(id);
                    }
                    run.lingering().set(true);
                }
            }
            *index += 1;
        }
        None
    }

    pub(crate) fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    pub(crate) fn take_awake(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.awake)
    }

    pub(crate) fn take_retired(&mut self) -> (Vec<Rc<Addr>>, Vec<u16>) {
        (std::mem::take(&mut self.retired), std::mem::take(&mut self.closing))
    }

    /// All C connections are gone.
    pub(crate) fn end(&mut self) {
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            let id = ConnectionId { index: index as u32, generation: entry.generation };
            let state = if entry.state.is_over() { entry.state } else { ConnectionState::Disconnected };
            self.set_state(id, state, None);
        }
        for listener in &mut self.listeners {
            self.awake.append(&mut listener.wakers);
        }
        self.retired.extend(self.addresses.drain().map(|(_, c_address)| c_address));
        self.dirty = true;
    }

    pub(crate) fn add_listener(&mut self, port: u16, decide: Decide) -> usize {
        self.listeners.push(Listening {
            port,
            decide: Some(decide),
            held: true,
            ready: VecDeque::new(),
            wakers: Vec::new(),
        });
        self.listeners.len() - 1
    }

    /// Nobody wants the listener's connections any more. Gives its closure, to be dropped elsewhere.
    pub(crate) fn drop_listener(&mut self, listener: usize, listens: bool) -> Option<Decide> {
        let own = self.listeners.get_mut(listener)?;
        own.held = false;
        let (port, ready, decide) = (own.port, std::mem::take(&mut own.ready), own.decide.take());
        if listens {
            self.closing.push(port);
        }
        for id in ready {
            self.release(id);
        }
        self.dirty = true;
        decide
    }

    /// The listener that a request came to: by its port, or the only one.
    pub(crate) fn listener_of(&self, port: Option<u16>) -> Option<(usize, u16)> {
        let mut held = self.listeners.iter().enumerate().filter(|(_, listener)| listener.held);
        match port {
            Some(port) => held.find(|(_, listener)| listener.port == port),
            None => held.next().filter(|_| held.next().is_none()),
        }
        .map(|(index, listener)| (index, listener.port))
    }

    pub(crate) fn take_decide(&mut self, listener: usize) -> Option<Decide> {
        self.listeners.get_mut(listener)?.decide.take()
    }

    /// Puts a closure back, or gives it back if its listener was dropped meanwhile.
    pub(crate) fn put_decide(&mut self, listener: usize, decide: Decide) -> Option<Decide> {
        match self.listeners.get_mut(listener) {
            Some(listener) if listener.held => listener.decide.replace(decide),
            _ => Some(decide),
        }
    }

    pub(crate) fn set_listener(&mut self, id: ConnectionId, listener: usize) {
        if let Some(entry) = self.get_mut(id) {
            entry.listener = Some(listener);
        }
    }

    /// Hands an established connection to its listener, if it came by one.
    pub(crate) fn arrive(&mut self, id: ConnectionId) {
        let Some(index) = self.get(id).and_then(|entry| entry.listener) else { return };
        match self.listeners.get_mut(index) {
            Some(listener) if listener.held => {
                listener.ready.push_back(id);
                self.awake.append(&mut listener.wakers);
            }
            _ => self.release(id),
        }
    }

    /// Whether a listener made the connection, so that no handle waits for it.
    pub(crate) fn is_incoming(&self, id: ConnectionId) -> bool {
        self.get(id).is_some_and(|entry| entry.listener.is_some())
    }

    /// The next connection of a listener.
    pub(crate) fn next_ready(&mut self, listener: usize) -> Option<ConnectionId> {
        self.listeners.get_mut(listener)?.ready.pop_front()
    }

    pub(crate) fn watch_listener(&mut self, listener: usize, waker: &Waker) {
        if let Some(listener) = self.listeners.get_mut(listener)
            && !listener.wakers.iter().any(|known| known.will_wake(waker))
        {
            listener.wakers.push(waker.clone());
        }
    }
}
