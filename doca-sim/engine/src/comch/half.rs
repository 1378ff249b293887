//! One end of a connection as producers and consumers see it, which run on threads of their own: what they ask of the
//! control path, and what it has told them.

use crate::code::{Code, Res};
use crate::dev::Dev;
use crate::fabric::bits;
use crate::fabric::context::{ContextId, ContextView};
use crate::fabric::inbox::Inbox;
use crate::fabric::process::Process;
use crate::lock::lock;
use crate::profile;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What the ends tell each other about consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// A consumer starts; its buffers are in that segment. The peer's program is told, whether or not the consumer's
    /// own engine has been progressed since: programs wait for this event before they progress that one.
    Open(u32, ContextId),
    /// The peer has heard of it: it may run.
    Known(u32),
    /// It has stopped.
    Down(u32),
}

impl Note {
    /// As numbers for the channel: kind, consumer, place.
    pub fn encode(self) -> [u64; 3] {
        match self {
            Note::Open(id, place) => [1, id.into(), place.bits()],
            Note::Known(id) => [2, id.into(), 0],
            Note::Down(id) => [3, id.into(), 0],
        }
    }

    /// From the channel.
    pub fn decode([kind, id, place]: [u64; 3]) -> Option<Note> {
        let id = u32::try_from(id).ok()?;
        Some(match kind {
            1 => Note::Open(id, ContextId::from_bits(place)),
            2 => Note::Known(id),
            3 => Note::Down(id),
            _ => return None,
        })
    }
}

/// Producers or consumers of one end.
#[derive(Debug, Default)]
struct Family {
    last_id: u32,
    alive: u32,
}

/// What kind of child a connection has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Child {
    /// Sends.
    Producer,
    /// Receives.
    Consumer,
}

/// See the module.
#[derive(Debug)]
pub struct Half {
    /// This end's device.
    pub dev: Arc<Dev>,
    own: Arc<ContextView>,
    far: Arc<ContextView>,
    /// The connection's place at either end.
    link: u32,
    far_link: u32,
    over: AtomicU32,
    notes: Mutex<VecDeque<Note>>,
    /// This end's consumers, by id.
    consumers: Mutex<BTreeMap<u32, Arc<Inbox>>>,
    /// The peer's.
    remote: Mutex<BTreeMap<u32, Arc<Inbox>>>,
    remote_epoch: AtomicU64,
    families: Mutex<[Family; 2]>,
    /// Children of all connections of the server or client.
    children: Arc<AtomicUsize>,
}

impl Half {
    /// Of a connection that has these places at its ends.
    pub fn new(
        dev: Arc<Dev>,
        [own, far]: [Arc<ContextView>; 2],
        [link, far_link]: [u32; 2],
        children: Arc<AtomicUsize>,
    ) -> Arc<Half> {
        Arc::new(Half {
            dev,
            own,
            far,
            link,
            far_link,
            over: AtomicU32::new(0),
            notes: Mutex::default(),
            consumers: Mutex::default(),
            remote: Mutex::default(),
            remote_epoch: AtomicU64::new(1),
            families: Mutex::default(),
            children,
        })
    }

    /// The peer's process.
    pub fn peer(&self) -> &Arc<Process> {
        self.far.process()
    }

    /// The peer's control path.
    pub fn far(&self) -> &Arc<ContextView> {
        &self.far
    }

    /// Whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.over.load(SeqCst) == 1
    }

    /// It is: consumers that are about to start will not.
    pub fn set_over(&self) {
        self.over.store(1, SeqCst);
        for inbox in lock(&self.consumers).values() {
            inbox.ring();
        }
    }

    /// This end's control path has something to do for the fast path.
    pub fn poke(&self) {
        bits::set(self.own.waiting(), self.link);
        self.own.notify();
    }

    /// So has the peer's.
    pub fn poke_far(&self) {
        bits::set(self.far.waiting(), self.far_link);
        self.far.notify();
    }

    /// There is something in the channel for the peer, or room.
    pub fn call(&self) {
        let active = self.far.active();
        if !bits::is_set(active, self.far_link) {
            bits::set(active, self.far_link);
        }
        self.far.notify();
    }

    /// A new child's id. NO_MEMORY beyond the limit.
    pub fn adopt(&self, child: Child, limit: u32) -> Res<u32> {
        let mut families = lock(&self.families);
        let family = &mut families[child as usize];
        if family.alive >= limit {
            crate::log::error!("the connection has {} {child:?}s already", family.alive);
            return Err(Code::NO_MEMORY);
        }
        family.alive += 1;
        family.last_id += 1;
        self.children.fetch_add(1, SeqCst);
        Ok(family.last_id)
    }

    /// A child has been destroyed.
    pub fn release(&self, child: Child) {
        lock(&self.families)[child as usize].alive -= 1;
        self.children.fetch_sub(1, SeqCst);
    }

    /// Whether producers or consumers are alive.
    pub fn has_children(&self) -> bool {
        lock(&self.families).iter().any(|family| family.alive > 0)
    }

    /// Asks the control path to tell the peer.
    pub fn tell(&self, note: Note) {
        lock(&self.notes).push_back(note);
        self.poke();
    }

    /// What the control path was asked to tell.
    pub fn take_note(&self) -> Option<Note> {
        lock(&self.notes).pop_front()
    }

    /// A consumer of this end starts.
    pub fn open(&self, id: u32, inbox: &Arc<Inbox>, place: ContextId) {
        lock(&self.consumers).insert(id, inbox.clone());
        self.tell(Note::Open(id, place));
    }

    /// It has stopped.
    pub fn close(&self, id: u32) {
        if lock(&self.consumers).remove(&id).is_some() {
            self.tell(Note::Down(id));
        }
    }

    /// The peer has heard of it.
    pub fn known(&self, id: u32) {
        if let Some(inbox) = lock(&self.consumers).get(&id) {
            inbox.set_known();
            inbox.ring();
        }
    }

    /// A consumer of this end has posted a buffer, which a producer sees, unless control paths have to tell of it first.
    pub fn posted(&self, inbox: &Inbox) {
        let profile = profile::get();
        if profile.comch_credits_consumer_side || profile.comch_credits_both_sides {
            self.poke();
        } else if inbox.was_starved() {
            self.poke_far();
        }
    }

    /// Passes credits on: the peer is told what this end's consumers have posted, and this end hears what it was told.
    /// The peer's control path is called only where somebody waits for them, or has to hear of them.
    pub fn exchange_credits(&self) {
        let must_hear = profile::get().comch_credits_both_sides;
        let mut news = false;
        for inbox in lock(&self.consumers).values() {
            news |= inbox.advertise() && (must_hear || inbox.was_starved());
        }
        for inbox in lock(&self.remote).values() {
            inbox.hear();
        }
        if news {
            self.poke_far();
        }
    }

    /// A consumer of the peer starts.
    pub fn add_remote(&self, id: u32, inbox: Inbox) {
        inbox.hear();
        lock(&self.remote).insert(id, Arc::new(inbox));
        self.remote_epoch.fetch_add(1, SeqCst);
    }

    /// It has stopped. Whether the program was told of it: one that could not be reached is none to speak of.
    pub fn remove_remote(&self, id: u32) -> bool {
        let found = lock(&self.remote).remove(&id);
        self.remote_epoch.fetch_add(1, SeqCst);
        found.is_some()
    }

    /// Changes whenever the peer's consumers do.
    pub fn remote_epoch(&self) -> u64 {
        self.remote_epoch.load(SeqCst)
    }

    /// A consumer of the peer.
    pub fn remote(&self, id: u32) -> Option<Arc<Inbox>> {
        lock(&self.remote).get(&id).cloned()
    }
}
