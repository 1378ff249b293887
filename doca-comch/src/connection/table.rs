//! The connections of a run. No user code and no call of DOCA runs while the table is borrowed.

use super::{ConnectionId, ConnectionState, RemoteConsumer};
use crate::event::Event;
use crate::family::Family;
use crate::raw::connection::Link;
use crate::run::{DISCONNECT, SEND};
use doca_common::{Code, Error, Refusal, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

struct Entry {
    generation: u32,
    used: bool,
    /// The C connection, as long as it is valid.
    link: Option<Link>,
    state: ConnectionState,
    /// Whether a handle, or the queue of those to be accepted, has a claim to it.
    held: bool,
    /// Messages on their way.
    flying: u32,
    /// How the first message that could not be sent ended.
    failure: Option<Code>,
    inbox: Inbox,
    /// The peer's consumers.
    consumers: Vec<RemoteConsumer>,
    /// Producers and consumers of this side.
    family: Arc<Family>,
    wakers: Vec<Waker>,
}

/// Messages that came and were not read, one after the other in one ring that is reused.
#[derive(Default)]
struct Inbox {
    bytes: VecDeque<u8>,
    lengths: VecDeque<usize>,
}

impl Inbox {
    fn push(&mut self, message: &[u8]) {
        self.bytes.extend(message);
        self.lengths.push_back(message.len());
    }

    fn pop(&mut self, message: &mut Vec<u8>) -> bool {
        let Some(len) = self.lengths.pop_front() else { return false };
        message.clear();
        message.extend(self.bytes.drain(..len));
        true
    }
}

impl Entry {
    fn new(generation: u32, link: Link, family: Arc<Family>) -> Self {
        Entry {
            generation,
            used: true,
            link: Some(link),
            state: ConnectionState::Connected,
            held: true,
            flying: 0,
            failure: None,
            inbox: Inbox::default(),
            consumers: Vec::new(),
            family,
            wakers: Vec::new(),
        }
    }
}

/// Connections, those that wait to be accepted, and what happened.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    /// Established and not handed out yet.
    ready: VecDeque<ConnectionId>,
    /// Who waits for one of them.
    acceptors: Vec<Waker>,
    /// To be woken after progress.
    awake: Vec<Waker>,
    /// What happened, while somebody listens.
    events: Option<VecDeque<Event>>,
    /// Whether connections may have to be ended or forgotten after progress.
    dirty: bool,
}

impl Table {
    fn get(&self, id: ConnectionId) -> Option<&Entry> {
        self.entries.get(id.index as usize).filter(|entry| entry.used && entry.generation == id.generation)
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Entry> {
        self.entries
            .get_mut(id.index as usize)
            .filter(|entry| entry.used && entry.generation == id.generation)
    }

    fn ids(&self) -> impl Iterator<Item = (ConnectionId, &Entry)> {
        let id = |(index, entry): (usize, &Entry)| ConnectionId {
            index: index as u32,
            generation: entry.generation,
        };
        self.entries.iter().enumerate().map(move |pair| (id(pair), pair.1)).filter(|(_, entry)| entry.used)
    }

    /// A new entry, connected and held.
    pub(crate) fn insert(&mut self, link: Link, family: Arc<Family>) -> ConnectionId {
        let free = self.entries.iter().position(|entry| !entry.used);
        let index = free.unwrap_or(self.entries.len());
        let generation = match free {
            Some(index) => self.entries[index].generation.wrapping_add(1).max(1),
            None => 1,
        };
        let entry = Entry::new(generation, link, family);
        match free {
            Some(index) => self.entries[index] = entry,
            None => self.entries.push(entry),
        }
        let id = ConnectionId { index: index as u32, generation };
        self.tell(Event::Connected(id));
        id
    }

    /// The connection that C means: by the name that it has, else by its address.
    pub(crate) fn find(&self, link: Link, id: ConnectionId) -> Option<ConnectionId> {
        if self.link(id) == Some(link) {
            return Some(id);
        }
        self.ids().find(|(_, entry)| entry.link == Some(link)).map(|(id, _)| id)
    }

    /// The only connection of a client.
    pub(crate) fn first(&self) -> Option<ConnectionId> {
        self.ids().next().map(|(id, _)| id)
    }

    pub(crate) fn state(&self, id: ConnectionId) -> ConnectionState {
        self.get(id).map_or(ConnectionState::Disconnected, |entry| entry.state)
    }

    pub(crate) fn link(&self, id: ConnectionId) -> Option<Link> {
        self.get(id)?.link
    }

    pub(crate) fn family(&self, id: ConnectionId) -> Option<Arc<Family>> {
        self.get(id).map(|entry| entry.family.clone())
    }

    /// Producers and consumers are to end: their server or client stops.
    pub(crate) fn orphan_all(&self) {
        self.ids().for_each(|(_, entry)| entry.family.orphan());
    }

    /// A message goes on its way. Gives the C connection, if one more may.
    pub(crate) fn take_off(&mut self, id: ConnectionId, share: u32) -> Result<Link> {
        let entry = self.get_mut(id).filter(|entry| entry.state == ConnectionState::Connected);
        let connected = entry.and_then(|entry| entry.link.map(|link| (entry, link)));
        let (entry, link) = connected.ok_or_else(|| Error::refused(SEND, Refusal::NotConnected))?;
        if entry.flying >= share {
            return Err(Error::refused(SEND, Refusal::Full));
        }
        entry.flying += 1;
        Ok(link)
    }

    /// A message is not on its way any more; true if something waits for that.
    pub(crate) fn landed(&mut self, id: ConnectionId) -> bool {
        let Some(entry) = self.get_mut(id) else { return false };
        entry.flying = entry.flying.saturating_sub(1);
        if entry.flying > 0 {
            return false;
        }
        let loose = !entry.held;
        self.dirty |= loose;
        self.rouse(id) | loose
    }

    /// A message could not be sent.
    pub(crate) fn failed(&mut self, id: ConnectionId, code: Code) {
        if let Some(entry) = self.get_mut(id) {
            entry.failure = entry.failure.or(Some(code));
            self.tell(Event::SendFailed(id, code));
        }
    }

    pub(crate) fn in_flight(&self, id: ConnectionId) -> u32 {
        self.get(id).map_or(0, |entry| entry.flying)
    }

    pub(crate) fn failure(&self, id: ConnectionId) -> Option<Code> {
        self.get(id)?.failure
    }

    /// Keeps a message; true if somebody waits.
    pub(crate) fn deliver(&mut self, id: ConnectionId, message: &[u8]) -> bool {
        let Some(entry) = self.get_mut(id) else { return false };
        entry.inbox.push(message);
        self.rouse(id)
    }

    pub(crate) fn next_message(&mut self, id: ConnectionId, message: &mut Vec<u8>) -> bool {
        self.get_mut(id).is_some_and(|entry| entry.inbox.pop(message))
    }

    /// Whoever waits for the connection is to be woken; true if somebody does.
    fn rouse(&mut self, id: ConnectionId) -> bool {
        let Some(entry) = self.get_mut(id) else { return false };
        if entry.wakers.is_empty() {
            return false;
        }
        let mut wakers = std::mem::take(&mut entry.wakers);
        self.awake.append(&mut wakers);
        true
    }

    pub(crate) fn watch(&mut self, id: ConnectionId, waker: &Waker) {
        if let Some(entry) = self.get_mut(id)
            && !entry.wakers.iter().any(|known| known.will_wake(waker))
        {
            entry.wakers.push(waker.clone());
        }
    }

    /// A client waits to be accepted.
    pub(crate) fn arrive(&mut self, id: ConnectionId) {
        self.ready.push_back(id);
        self.awake.append(&mut self.acceptors);
    }

    /// The next client to be accepted.
    pub(crate) fn next_ready(&mut self) -> Option<ConnectionId> {
        self.ready.pop_front()
    }

    pub(crate) fn watch_ready(&mut self, waker: &Waker) {
        if !self.acceptors.iter().any(|known| known.will_wake(waker)) {
            self.acceptors.push(waker.clone());
        }
    }

    /// The peer has a new consumer.
    pub(crate) fn consumer_up(&mut self, id: ConnectionId, consumer: u32) {
        let Some(entry) = self.get_mut(id) else { return };
        let family = entry.family.clone();
        let remote = RemoteConsumer { connection: id, family, id: consumer, down: Arc::default() };
        entry.consumers.push(remote.clone());
        self.rouse(id);
        self.tell(Event::ConsumerUp(remote));
    }

    /// A consumer of the peer is gone.
    pub(crate) fn consumer_down(&mut self, id: ConnectionId, consumer: u32) {
        let Some(entry) = self.get_mut(id) else { return };
        let Some(index) = entry.consumers.iter().position(|known| known.id == consumer) else { return };
        let remote = entry.consumers.remove(index);
        remote.down.store(true, Ordering::Release);
        self.rouse(id);
        self.tell(Event::ConsumerDown(remote));
    }

    pub(crate) fn consumers(&self, id: ConnectionId) -> &[RemoteConsumer] {
        self.get(id).map_or(&[], |entry| &entry.consumers)
    }

    /// Notes that a server ends a connection; false if it is over, or ending, already.
    pub(crate) fn begin_disconnect(&mut self, id: ConnectionId) -> Result<bool> {
        let Some(entry) = self.get_mut(id) else { return Ok(false) };
        if entry.state != ConnectionState::Connected {
            return Ok(false);
        }
        let children = entry.family.len();
        if children > 0 {
            let text = format!("{children} producers and consumers are on the connection");
            return Err(Error::refused(DISCONNECT, Refusal::InUse).with(text));
        }
        entry.state = ConnectionState::Disconnecting;
        self.dirty = true;
        Ok(true)
    }

    /// DOCA did not end it.
    pub(crate) fn set_connected(&mut self, id: ConnectionId) {
        if let Some(entry) = self.get_mut(id) {
            entry.state = ConnectionState::Connected;
        }
    }

    /// The connection is over.
    pub(crate) fn ended(&mut self, id: ConnectionId) {
        let Some(entry) = self.get_mut(id) else { return };
        if entry.state == ConnectionState::Disconnected {
            return;
        }
        entry.state = ConnectionState::Disconnected;
        entry.link = None;
        entry.family.orphan();
        for consumer in entry.consumers.drain(..) {
            consumer.down.store(true, Ordering::Release);
        }
        self.dirty = true;
        self.rouse(id);
        self.tell(Event::Disconnected(id));
    }

    /// Nobody has a claim any more.
    pub(crate) fn release(&mut self, id: ConnectionId) {
        if let Some(entry) = self.get_mut(id) {
            entry.held = false;
            self.dirty = true;
        }
    }

    /// The next connection from `index` on that DOCA is to be asked to end: a server's that nobody holds and nothing is
    /// on, or whose end was asked for before. Those that are over and not held are forgotten.
    pub(crate) fn ending(&mut self, index: &mut usize, is_server: bool) -> Option<ConnectionId> {
        while let Some(entry) = self.entries.get_mut(*index) {
            let id = ConnectionId { index: *index as u32, generation: entry.generation };
            *index += 1;
            if !entry.used {
                continue;
            }
            match entry.state {
                ConnectionState::Disconnected => entry.used = entry.held,
                ConnectionState::Disconnecting => return Some(id),
                ConnectionState::Connected => {
                    if is_server && !entry.held && entry.flying == 0 && entry.family.len() == 0 {
                        entry.state = ConnectionState::Disconnecting;
                        return Some(id);
                    }
                }
            }
        }
        None
    }

    pub(crate) fn set_dirty(&mut self) {
        self.dirty = true;
    }

    pub(crate) fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    pub(crate) fn take_awake(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.awake)
    }

    /// All C connections are gone, and messages came back.
    pub(crate) fn end(&mut self) {
        let ids: Vec<ConnectionId> = self.ids().map(|(id, _)| id).collect();
        for id in ids {
            self.ended(id);
        }
        self.awake.append(&mut self.acceptors);
    }

    /// Begins or ends the recording of events.
    pub(crate) fn record(&mut self, wanted: bool) {
        self.events = wanted.then(VecDeque::new);
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop_front()
    }

    pub(crate) fn tell(&mut self, event: Event) {
        if let Some(events) = &mut self.events {
            events.push_back(event);
        }
    }
}
