//! Event channels.

use super::event::Pending;
use super::layout::EventChannel;
use super::{Cm, INVALID, Outcome, Public, cm};
use crate::code::{Code, Res};
use crate::fabric::clock;
use crate::fabric::context::{ContextView, LinkId, LinkState, Sizes};
use crate::fabric::mailbox;
use crate::fabric::process::{self, ContextPlace};
use crate::lock::lock;
use crate::log;
use crate::sleeper::{Pipe, Sleeper};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

/// Identifiers that one channel can name to others at once.
const NAMES: u32 = 4096;
/// How often a sleeper looks at peers for which the kernel gives no pidfd, and at letters that did not fit.
const LOOK_AGAIN: u64 = clock::millis(100);

/// What letters come to: a context of the fabric that takes no data.
///
/// An identifier that moves to another channel keeps the mailbox that its peer knows, which both channels then look into.
#[derive(Debug)]
pub(super) struct Mailbox {
    view: Arc<ContextView>,
    pipe: Pipe,
    names: Mutex<Names>,
    _place: ContextPlace,
}

#[derive(Debug)]
struct Names {
    free: Vec<u32>,
    used: u32,
}

impl Mailbox {
    fn new() -> Res<Arc<Mailbox>> {
        let place = ContextPlace::reserve()?;
        let sizes = Sizes { conns: NAMES, sends: 1, receives: 1, send_pieces: 1, receive_pieces: 1 };
        let view = Arc::new(ContextView::create(process::local()?.clone(), place.id(), sizes)?);
        view.set_open(true);
        place.publish(&view)?;
        let pipe = Pipe::new()?;
        let names = Mutex::new(Names { free: Vec::new(), used: 0 });
        Ok(Arc::new(Mailbox { view, pipe, names, _place: place }))
    }

    /// The context.
    pub(super) fn view(&self) -> &ContextView {
        &self.view
    }

    /// A name for an identifier, as what it is to its peer: an end of a connection that is not up yet.
    pub(super) fn name(&self) -> Res<LinkId> {
        let mut names = lock(&self.names);
        let index = match names.free.pop() {
            Some(index) => index,
            None if names.used < NAMES => {
                names.used += 1;
                names.used - 1
            }
            None => return Err(Code::NO_MEMORY),
        };
        let link = self.view.link(index).ok_or(Code::UNEXPECTED)?;
        let generation = link.generation.fetch_add(1, SeqCst) + 1;
        link.set_state(LinkState::Init);
        Ok(LinkId { index, generation })
    }

    /// Nobody has the name any more.
    pub(super) fn forget(&self, name: LinkId) {
        if let Some(link) = self.view.named_link(name) {
            link.set_state(LinkState::Free);
            lock(&self.names).free.push(name.index);
        }
    }
}

/// An event channel.
#[derive(Debug)]
pub(super) struct Channel {
    public: Public<EventChannel>,
    sleeper: Sleeper,
    mailbox: Arc<Mailbox>,
    queue: VecDeque<Pending>,
}

impl Channel {
    /// The structure that the program has.
    pub(super) fn pointer(&self) -> *mut EventChannel {
        self.public.pointer()
    }

    /// What the program polls.
    pub(super) fn fd(&self) -> i32 {
        self.sleeper.fd()
    }

    /// Where its new identifiers get letters.
    pub(super) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }
}

impl Cm {
    /// A new channel.
    pub(super) fn new_channel(&mut self) -> Outcome<*mut EventChannel> {
        log::announce_once();
        let sleeper = Sleeper::new()?;
        let public = Public::new(EventChannel { fd: sleeper.fd() });
        let (pointer, key) = (public.pointer(), public.key());
        let channel = Channel { public, sleeper, mailbox: Mailbox::new()?, queue: VecDeque::new() };
        self.channels.insert(key, channel);
        self.look(key);
        Ok(pointer)
    }

    /// Ends a channel; identifiers of it hear nothing more.
    pub(super) fn end_channel(&mut self, key: usize) {
        // Letters that came too late are answered.
        self.look(key);
        let left = self.ids.values().filter(|id| id.channel == key).count();
        if left > 0 {
            log::error!(
                "rdma_destroy_event_channel: {left} identifiers of the channel have not been destroyed"
            );
        }
        self.channels.remove(&key);
    }

    /// Queues an event and wakes who waits for it.
    pub(super) fn report(&mut self, channel: usize, pending: Pending) {
        if let Some(channel) = self.channels.get_mut(&channel) {
            log::trace!("rdma_cm: {:?}, status {}", pending.kind, pending.status);
            channel.queue.push_back(pending);
            channel.sleeper.wake();
        }
    }

    /// The next event of a channel.
    pub(super) fn pop(&mut self, channel: usize) -> Option<Pending> {
        let channel = self.channels.get_mut(&channel)?;
        let pending = channel.queue.pop_front();
        if channel.queue.is_empty() {
            channel.sleeper.calm();
        }
        pending
    }

    /// Takes the events that fit out of a channel's queue.
    pub(super) fn take_events(&mut self, channel: usize, fits: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let Some(channel) = self.channels.get_mut(&channel) else { return Vec::new() };
        let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut channel.queue).into_iter().partition(fits);
        channel.queue = kept.into();
        if channel.queue.is_empty() {
            channel.sleeper.calm();
        }
        taken
    }

    /// Looks at everything that can give a channel events, and at when to look again.
    pub(super) fn look(&mut self, key: usize) {
        self.send_again();
        let Some(channel) = self.channels.get(&key) else { return };
        channel.sleeper.clear();
        let mut mailboxes = vec![channel.mailbox.clone()];
        for id in self.ids.values().filter(|id| id.channel == key) {
            if !mailboxes.iter().any(|known| Arc::ptr_eq(known, &id.mailbox)) {
                mailboxes.push(id.mailbox.clone());
            }
        }
        for mailbox in &mailboxes {
            // In this order: what comes after the letters were taken wakes again.
            mailbox.pipe.drain();
            mailbox.view.arm(mailbox.pipe.writer());
            while let Some(letter) = mailbox::take(&mailbox.view) {
                self.receive(mailbox, letter);
            }
        }
        self.look_after_peers(key);
        let Some(channel) = self.channels.get(&key) else { return };
        for mailbox in &mailboxes {
            channel.sleeper.watch(mailbox.pipe.reader());
        }
        if !channel.queue.is_empty() {
            channel.sleeper.wake();
        }
        self.watch(key);
    }

    /// Brings what a channel sleeps on up to date with its identifiers.
    pub(super) fn watch(&self, key: usize) {
        let Some(channel) = self.channels.get(&key) else { return };
        let again = clock::now() + LOOK_AGAIN;
        let mut deadline = (!self.outbox.is_empty()).then_some(again);
        for id in self.ids.values().filter(|id| id.channel == key) {
            let Some((peer, until)) = id.waits_for() else { continue };
            let watched = peer.process().pidfd().inspect(|fd| channel.sleeper.watch(*fd)).is_some();
            let unwatched = (!watched && !peer.process().is_local()).then_some(again);
            deadline = deadline.into_iter().chain(unwatched).chain(until).min();
        }
        if channel.sleeper.set_deadline(deadline).is_err() {
            log::warning!("rdma_cm: timeouts will be noticed late");
        }
    }
}

/// `rdma_create_event_channel`
pub fn create() -> Outcome<*mut EventChannel> {
    cm().new_channel()
}

/// `rdma_destroy_event_channel`
pub fn destroy(channel: *mut EventChannel) -> Outcome {
    let mut cm = cm();
    let key = channel.addr();
    cm.channels.get(&key).ok_or(INVALID)?;
    cm.end_channel(key);
    Ok(())
}
