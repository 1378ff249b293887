//! The connections and listeners of a run. No user code and no DOCA callback runs while the table is borrowed.

use super::cm::Decide;
use super::{ConnectionEvent, ConnectionId, ConnectionState};
use crate::raw::address::Addr;
use crate::raw::connection::Link;
use std::collections::VecDeque;
use std::task::Waker;

struct Entry {
    generation: u32,
    used: bool,
    /// The C connection, as long as it is valid.
    link: Option<Link>,
    state: ConnectionState,
    /// Whether a handle, or a listener, has a claim to it.
    held: bool,
    /// The listener that it came by.
    listener: Option<usize>,
    /// Whether RDMA CM made it, and so will tell its end.
    by_cm: bool,
    /// Tasks in flight on it.
    flying: u32,
    address: Option<Addr>,
    wakers: Vec<Waker>,
}

impl Entry {
    fn unused() -> Self {
        Entry {
            generation: 0,
            used: false,
            link: None,
            state: ConnectionState::Disconnected,
            held: false,
            listener: None,
            by_cm: false,
            flying: 0,
            address: None,
            wakers: Vec::new(),
        }
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
    /// To be woken after progress.
    awake: Vec<Waker>,
    /// To be dropped after progress.
    retired: Vec<Addr>,
    /// Ports to be given up after progress.
    closing: Vec<u16>,
    /// What happened, while somebody listens.
    events: Option<VecDeque<ConnectionEvent>>,
    /// Whether something is to be done after progress.
    dirty: bool,
}

impl Table {
    pub(crate) fn new(connections: usize) -> Self {
        Table {
            entries: (0..connections).map(|_| Entry::unused()).collect(),
            listeners: Vec::new(),
            awake: Vec::new(),
            retired: Vec::new(),
            closing: Vec::new(),
            events: None,
            dirty: false,
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
    pub(crate) fn insert(&mut self, state: ConnectionState, link: Option<Link>, by_cm: bool) -> ConnectionId {
        let index = self.entries.iter().position(|entry| !entry.used).unwrap_or_else(|| {
            self.entries.push(Entry::unused());
            self.entries.len() - 1
        });
        let generation = self.entries[index].generation;
        self.entries[index] =
            Entry { generation, used: true, state, link, by_cm, held: true, ..Entry::unused() };
        ConnectionId { index: index as u32, generation }
    }

    /// Forgets an entry.
    pub(crate) fn remove(&mut self, id: ConnectionId) {
        let Some(entry) = self.get_mut(id) else { return };
        entry.used = false;
        entry.link = None;
        entry.generation = entry.generation.wrapping_add(1);
        let address = entry.address.take();
        let wakers = std::mem::take(&mut entry.wakers);
        self.retired.extend(address);
        self.awake.extend(wakers);
        self.dirty = true;
    }

    /// Keeps the address that a connection uses.
    pub(crate) fn keep_address(&mut self, id: ConnectionId, address: Addr) {
        if let Some(entry) = self.get_mut(id) {
            entry.address = Some(address);
        }
    }

    pub(crate) fn state(&self, id: ConnectionId) -> ConnectionState {
        self.get(id).map_or(ConnectionState::Disconnected, |entry| entry.state)
    }

    pub(crate) fn link(&self, id: ConnectionId) -> Option<Link> {
        self.get(id)?.link
    }

    /// Connections that are not over.
    pub(crate) fn live(&self) -> usize {
        self.entries.iter().filter(|entry| entry.used && !entry.state.is_over()).count()
    }

    /// Notes a new state, and who is to be woken.
    pub(crate) fn set_state(&mut self, id: ConnectionId, state: ConnectionState, link: Option<Link>) {
        let Some(entry) = self.get_mut(id) else { return };
        let changed = entry.state != state;
        entry.state = state;
        entry.link = link;
        let wakers = std::mem::take(&mut entry.wakers);
        let address = if state.is_over() { entry.address.take() } else { None };
        self.awake.extend(wakers);
        self.retired.extend(address);
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

    /// Begins or ends the recording of events.
    pub(crate) fn record(&mut self, wanted: bool) {
        self.events = wanted.then(VecDeque::new);
    }

    pub(crate) fn next_event(&mut self) -> Option<ConnectionEvent> {
        self.events.as_mut()?.pop_front()
    }

    /// Nobody has a claim any more.
    pub(crate) fn release(&mut self, id: ConnectionId) {
        if let Some(entry) = self.get_mut(id) {
            entry.held = false;
            self.dirty = true;
        }
    }

    pub(crate) fn watch(&mut self, id: ConnectionId, waker: &Waker) {
        if let Some(entry) = self.get_mut(id)
            && !entry.wakers.iter().any(|known| known.will_wake(waker))
        {
            entry.wakers.push(waker.clone());
        }
    }

    /// A task is going into flight on the connection. Gives the C connection, if tasks can be submitted on it.
    pub(crate) fn take_off(&mut self, id: ConnectionId) -> Option<Link> {
        let entry = self.get_mut(id).filter(|entry| entry.state == ConnectionState::Connected)?;
        entry.flying += 1;
        entry.link
    }

    /// A task on the connection is done; true if that is what its end waits for.
    pub(crate) fn landed(&mut self, id: ConnectionId) -> bool {
        let Some(entry) = self.get_mut(id) else { return false };
        entry.flying = entry.flying.saturating_sub(1);
        let last = entry.flying == 0 && !entry.held;
        self.dirty |= last;
        last
    }

    /// Notes that the program ends a connection; gives what is to be disconnected, if it is not over.
    pub(crate) fn begin_disconnect(&mut self, id: ConnectionId) -> Option<Link> {
        let entry = self.get_mut(id)?;
        if !entry.state.is_open() {
            return None;
        }
        let link = entry.link;
        if entry.by_cm {
            entry.state = ConnectionState::Disconnecting;
        } else {
            self.set_state(id, ConnectionState::Disconnected, None);
        }
        link
    }

    /// The next connection from `index` on that nobody holds and that can be ended now. Those that are over are
    /// forgotten.
    pub(crate) fn abandoned(&mut self, index: &mut usize) -> Option<ConnectionId> {
        while let Some(entry) = self.entries.get(*index) {
            let id = ConnectionId { index: *index as u32, generation: entry.generation };
            let (loose, state, flying) = (entry.used && !entry.held, entry.state, entry.flying);
            if loose && state.is_over() {
                self.remove(id);
            }
            if loose && state.is_open() && flying == 0 {
                // Asked for again by the same index, since disconnecting may have ended it.
                return Some(id);
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

    pub(crate) fn take_retired(&mut self) -> (Vec<Addr>, Vec<u16>) {
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
