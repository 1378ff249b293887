//! What `struct doca_comch_connection *` points to.
//!
//! The control path's thread has all of it; threads of producers and consumers read the half only.

use super::endpoint::Endpoint;
use super::half::{Half, Note};
use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::fabric::channel::{Channel, Life};
use crate::fabric::context::LinkId;
use crate::fabric::process::ContextPlace;
use crate::lock::lock;
use crate::task::Task;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// `enum doca_comch_counter`, from 0 on.
pub const COUNTERS: usize = 4;

/// Kinds of records in the channel.
pub const MESSAGE: u32 = 1;
/// See [`Note`].
pub const NOTE: u32 = 2;

/// Where a connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnState {
    /// The server has answered; the client has not come yet.
    Connecting,
    /// Both are there.
    Up,
    /// Over, or never made.
    Over,
}

/// What waits for room at the peer.
pub enum Waiting {
    /// A message, and since when it waits.
    Message(*const Task, Box<[u8]>, u64),
    /// About a consumer.
    Note(Note),
}

/// What a connection has until its end was told: descriptors and shared memory.
pub struct Parts {
    /// For producers and consumers.
    pub half: Arc<Half>,
    /// For messages.
    pub channel: Channel,
}

/// A connection. Programs may look at one that is over, which then is little more than this.
#[repr(C)]
pub struct Connection {
    tag: Tag,
    owner: Weak<Endpoint>,
    /// Its place, and what tells it from others that had the place.
    pub id: LinkId,
    parts: RefCell<Option<Rc<Parts>>>,
    /// The half once more, for threads of producers and consumers.
    half: Mutex<Option<Arc<Half>>>,
    /// By which the client finds the channel, until it has.
    pub place: RefCell<Option<ContextPlace>>,
    state: Cell<ConnState>,
    user_data: AtomicU64,
    /// Whether the program knows of it: before that, it gets no messages.
    pub announced: Cell<bool>,
    /// Consumers that came or went without the program's knowing yet: it hears of them before it gets what came later.
    pub news: Cell<u32>,
    /// In order.
    pub waiting: RefCell<VecDeque<Waiting>>,
    counters: [Cell<u64>; COUNTERS],
    shown: [Cell<u64>; COUNTERS],
    /// Since when the peer is known to be dead, in nanoseconds; 0 while it is not.
    pub dead_since: Cell<u64>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Connection {
    const TAG: u32 = u32::from_le_bytes(*b"ccon");
}

impl Connection {
    /// One that is being made, or without parts one that cannot be.
    pub fn new(owner: Weak<Endpoint>, id: LinkId, parts: Option<(Arc<Half>, Channel)>) -> Connection {
        let state = if parts.is_some() { ConnState::Connecting } else { ConnState::Over };
        Connection {
            tag: Tag::live::<Self>(),
            owner,
            id,
            half: Mutex::new(parts.as_ref().map(|(half, _)| half.clone())),
            parts: RefCell::new(parts.map(|(half, channel)| Rc::new(Parts { half, channel }))),
            place: RefCell::new(None),
            state: Cell::new(state),
            user_data: AtomicU64::new(0),
            announced: Cell::new(false),
            news: Cell::new(0),
            waiting: RefCell::new(VecDeque::new()),
            counters: Default::default(),
            shown: Default::default(),
            dead_since: Cell::new(0),
        }
    }

    /// The server or client.
    pub fn owner(&self) -> &Weak<Endpoint> {
        &self.owner
    }

    /// The part for producers and consumers. BAD_STATE for a connection that was never made, or whose end was told.
    pub fn half(&self) -> Res<Arc<Half>> {
        lock(&self.half).clone().ok_or(Code::BAD_STATE)
    }

    /// The parts of a connection that was made, and whose end was not told.
    pub fn parts(&self) -> Option<Rc<Parts>> {
        self.parts.borrow().clone()
    }

    /// Its end was told, or will not be: lets the parts go. Who uses them further up the stack keeps them so long.
    pub fn let_go(&self) {
        lock(&self.half).take();
        self.parts.take();
    }

    /// Where it is in its life.
    pub fn state(&self) -> ConnState {
        self.state.get()
    }

    /// Both ends are there.
    pub fn set_up(&self) {
        self.state.set(ConnState::Up);
        self.place.take();
        if let Some(parts) = self.parts() {
            parts.channel.hide();
        }
    }

    /// This end leaves, and tells the peer.
    pub fn close(&self) {
        self.state.set(ConnState::Over);
        self.place.take();
        if let Some(parts) = self.parts() {
            parts.half.set_over();
            parts.channel.set_life(Life::Closed);
            parts.half.call();
        }
    }

    /// The program's word.
    pub fn user_data(&self) -> u64 {
        self.user_data.load(SeqCst)
    }

    /// Sets it.
    pub fn set_user_data(&self, data: u64) {
        self.user_data.store(data, SeqCst);
    }

    /// Counts a message of so many bytes sent.
    pub fn count_sent(&self, len: u32) {
        self.count(0, len);
    }

    /// Counts a message of so many bytes received.
    pub fn count_received(&self, len: u32) {
        self.count(2, len);
    }

    fn count(&self, first: usize, len: u32) {
        self.counters[first].set(self.counters[first].get() + 1);
        self.counters[first + 1].set(self.counters[first + 1].get() + u64::from(len));
    }

    /// Takes the counters down.
    pub fn update_info(&self) -> Res {
        match self.state.get() {
            ConnState::Connecting => Err(Code::CONNECTION_INPROGRESS),
            ConnState::Over => Err(Code::CONNECTION_ABORTED),
            ConnState::Up => {
                for (shown, counter) in self.shown.iter().zip(&self.counters) {
                    shown.set(counter.get());
                }
                Ok(())
            }
        }
    }

    /// A counter as it was taken down, by its number in C.
    pub fn counter(&self, number: u32) -> Res<u64> {
        let index = (number as usize).checked_sub(1).ok_or(Code::INVALID_VALUE)?;
        self.shown.get(index).map(Cell::get).ok_or(Code::INVALID_VALUE)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tag.kill();
    }
}
