//! The progress engine: polls contexts, runs the program's callbacks, sleeps on a descriptor.

use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::entry::{Object, Tag};
use crate::fault;
use crate::log;
use crate::profile;
use crate::sleeper::Sleeper;
use crate::watchdog::Pulse;
use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

/// `enum doca_pe_event_mode`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventMode {
    /// While armed, only contexts that raised an event are served. The notification must be cleared.
    Selective,
    /// Every context is served always.
    All,
}

/// What `struct doca_pe *` points to.
#[repr(C)]
pub struct Pe {
    tag: Tag,
    contexts: RefCell<Vec<Rc<dyn Context>>>,
    /// Which context is served next.
    turn: Cell<usize>,
    dispatching: Cell<bool>,
    mode: Cell<EventMode>,
    armed: Cell<bool>,
    in_flight: Cell<usize>,
    sleeper: OnceCell<Sleeper>,
    pulse: Arc<Pulse>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Pe {
    const TAG: u32 = u32::from_le_bytes(*b"pe__");
}

impl Pe {
    /// An engine without contexts.
    pub fn new() -> Self {
        Pe {
            tag: Tag::live::<Self>(),
            contexts: RefCell::new(Vec::new()),
            turn: Cell::new(0),
            dispatching: Cell::new(false),
            mode: Cell::new(EventMode::Selective),
            armed: Cell::new(false),
            in_flight: Cell::new(0),
            sleeper: OnceCell::new(),
            pulse: Arc::new(Pulse::default()),
        }
    }

    /// `doca_pe_destroy`: refuses while contexts are connected.
    pub fn retire(&self) -> Res {
        if !self.contexts.borrow().is_empty() || self.dispatching.get() {
            return Err(Code::IN_USE);
        }
        self.tag.kill();
        Ok(())
    }

    /// `doca_pe_connect_ctx`
    pub fn connect(self: &Rc<Self>, ctx: &Ctx) -> Res {
        let owner = ctx.owner()?;
        ctx.set_pe(self)?;
        self.contexts.borrow_mut().push(owner);
        Ok(())
    }

    /// Forgets a context that is being destroyed.
    pub fn disconnect(&self, ctx: &Ctx) {
        self.contexts.borrow_mut().retain(|owner| !std::ptr::eq(owner.ctx(), ctx));
    }

    /// Whether a callback is running.
    pub fn is_dispatching(&self) -> bool {
        self.dispatching.get()
    }

    /// Tasks in flight over all contexts.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Counts tasks in or out of flight, for the program and for the watchdog.
    pub fn count_in_flight(&self, change: isize) {
        self.in_flight.set(self.in_flight.get().wrapping_add_signed(change));
        self.pulse.set_in_flight(self.in_flight.get());
    }

    /// `doca_pe_progress`: one step of the next context that has something to do.
    pub fn progress(&self) -> bool {
        if self.dispatching.get() {
            log::error!(
                "doca_pe_progress was called from a callback of the same engine; it does nothing there"
            );
            return false;
        }
        self.pulse.beat();
        if self.waits_for_event() {
            return false;
        }
        // A callback may connect or destroy contexts, so each is taken out by index and kept alive by its Rc.
        let count = self.contexts.borrow().len();
        if let Some(turn) = fault::shuffle(count as u32) {
            self.turn.set(turn as usize);
        }
        for offset in 0..count {
            let index = (self.turn.get() + offset) % count;
            let Some(owner) = self.contexts.borrow().get(index).cloned() else { break };
            let _guard = Dispatching::enter(&self.dispatching);
            if owner.ctx().progress(&*owner) {
                self.turn.set(index + 1);
                return true;
            }
        }
        false
    }

    /// The quirk of selective mode: between request and event, nothing is served.
    fn waits_for_event(&self) -> bool {
        profile::get().selective_quirk
            && self.armed.get()
            && self.mode.get() == EventMode::Selective
            && self.sleeper.get().is_some_and(|sleeper| !sleeper.has_fired())
    }

    /// `doca_pe_set_event_mode`
    pub fn set_mode(&self, mode: EventMode) {
        self.mode.set(mode);
    }

    fn sleeper(&self) -> Res<&Sleeper> {
        if self.sleeper.get().is_none() {
            let _ = self.sleeper.set(Sleeper::new()?);
        }
        self.sleeper.get().ok_or(Code::UNEXPECTED)
    }

    /// `doca_pe_get_notification_handle`
    pub fn handle(&self) -> Res<i32> {
        Ok(self.sleeper()?.fd())
    }

    /// `doca_pe_request_notification`: from now on the handle becomes readable when there is work.
    pub fn request_notification(&self) -> Res {
        let sleeper = self.sleeper()?;
        if self.mode.get() == EventMode::All {
            sleeper.clear();
        }
        self.armed.set(true);
        self.pulse.arm(sleeper.as_fd());
        let contexts = self.contexts.borrow();
        let mut deadline: Option<u64> = None;
        for owner in contexts.iter() {
            owner.arm(sleeper.wake_fd());
            owner.pidfds(&mut |fd| sleeper.watch(fd));
            deadline = deadline.into_iter().chain(owner.deadline()).min();
        }
        // Work that came before the contexts were armed would wake nobody.
        if contexts.iter().any(|owner| owner.ctx().has_work(&**owner)) {
            sleeper.wake();
        }
        sleeper.set_deadline(deadline)
    }

    /// `doca_pe_clear_notification`
    pub fn clear_notification(&self) -> Res {
        self.sleeper()?.clear();
        self.armed.set(false);
        self.pulse.disarm();
        for owner in self.contexts.borrow().iter() {
            owner.disarm();
        }
        Ok(())
    }
}

impl Default for Pe {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Pe {
    fn drop(&mut self) {
        self.pulse.end();
    }
}

/// Marks that a callback may be running, until dropped.
struct Dispatching<'a>(&'a Cell<bool>);

impl<'a> Dispatching<'a> {
    fn enter(flag: &'a Cell<bool>) -> Self {
        flag.set(true);
        Dispatching(flag)
    }
}

impl Drop for Dispatching<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
