//! Contexts: the life of a library object, whatever the library.

use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::fault;
use crate::log;
use crate::pe::Pe;
use crate::profile;
use crate::task::Task;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

/// `enum doca_ctx_states`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum CtxState {
    /// Not started, or stopped.
    Idle = 0,
    /// Being started.
    Starting = 1,
    /// Takes tasks.
    Running = 2,
    /// Being stopped: tasks in flight are flushed, and all must be freed.
    Stopping = 3,
}

/// `doca_ctx_state_changed_callback_t`
pub type StateCallback = unsafe extern "C" fn(u64, *const Ctx, u32, u32);

/// What a library does behind its context.
pub trait Context {
    /// The common part.
    fn ctx(&self) -> &Ctx;
    /// Name of the library object, for the log.
    fn name(&self) -> &'static str;
    /// Name of a kind of its tasks, as C functions have it.
    fn kind_name(&self, _kind: u32) -> &'static str {
        "task"
    }
    /// IDLE to RUNNING: allocates what tasks need. On failure nothing has changed.
    fn start(&self) -> Res;
    /// STARTING, whether it may become RUNNING.
    fn is_ready(&self) -> bool {
        true
    }
    /// Whether a program may free a task in flight and its buffers: they go when the flight ends.
    fn frees_in_flight(&self) -> bool {
        false
    }
    /// Whether it may be stopped by its program.
    fn may_stop(&self) -> Res {
        Ok(())
    }
    /// The context has entered a state; the program is told next.
    fn entered(&self, _state: CtxState) {}
    /// RUNNING to STOPPING: ends connections, flushes tasks in flight.
    fn stop(&self);
    /// STOPPING to IDLE: releases what `start` allocated.
    fn stopped(&self);
    /// Whether nothing but freeing of tasks keeps the context from IDLE.
    fn is_drained(&self) -> bool;
    /// Hands a task over. The task is the program's and of this context.
    fn submit(&self, task: &Task, flush: bool) -> Res;
    /// Starts what was submitted without the flush flag.
    fn flush(&self);
    /// Runs at most one callback of the program; tells whether something happened.
    fn step(&self) -> bool;
    /// Whether `step` would find something to do.
    fn has_work(&self) -> bool;
    /// About to sleep: peers write to `wake_fd` when there is work.
    fn arm(&self, wake_fd: i32);
    /// Awake again.
    fn disarm(&self);
    /// When to look again at the latest, in nanoseconds of the monotonic clock.
    fn deadline(&self) -> Option<u64>;
    /// Descriptors that become readable when a peer process ends.
    fn pidfds(&self, each: &mut dyn FnMut(i32));
    /// Whether programs see STARTING on the way to RUNNING: those of libraries that connect to something do.
    fn shows_starting(&self) -> bool {
        true
    }
}

/// The common part of every library object: what `struct doca_ctx *` points to.
#[repr(C)]
pub struct Ctx {
    tag: Tag,
    state: Cell<CtxState>,
    user_data: Cell<u64>,
    callback: Cell<Option<StateCallback>>,
    in_flight: Cell<usize>,
    allocated: Cell<usize>,
    pe: RefCell<Weak<Pe>>,
    this: OnceCell<Weak<dyn Context>>,
    destroyed: Cell<bool>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Ctx {
    const TAG: u32 = u32::from_le_bytes(*b"ctx_");
}

impl Ctx {
    /// An idle context.
    pub fn new() -> Self {
        Ctx {
            tag: Tag::live::<Self>(),
            state: Cell::new(CtxState::Idle),
            user_data: Cell::new(0),
            callback: Cell::new(None),
            in_flight: Cell::new(0),
            allocated: Cell::new(0),
            pe: RefCell::new(Weak::new()),
            this: OnceCell::new(),
            destroyed: Cell::new(false),
        }
    }

    /// Ties the context to the library object that holds it.
    pub fn belong_to(&self, owner: Weak<dyn Context>) {
        let _ = self.this.set(owner);
    }

    /// The library object.
    pub fn owner(&self) -> Res<Rc<dyn Context>> {
        self.this.get().and_then(Weak::upgrade).ok_or(Code::UNEXPECTED)
    }

    /// The state.
    pub fn state(&self) -> CtxState {
        self.state.get()
    }

    /// BAD_STATE unless IDLE: for configuration.
    pub fn require_idle(&self) -> Res {
        self.require(CtxState::Idle)
    }

    /// BAD_STATE unless RUNNING: for tasks and connections.
    pub fn require_running(&self) -> Res {
        self.require(CtxState::Running)
    }

    fn require(&self, state: CtxState) -> Res {
        if self.state.get() == state {
            return Ok(());
        }
        let name = self.owner().map_or("the context", |owner| owner.name());
        log::error!("{name}: this call is for {state:?} and the state is {:?}", self.state.get());
        Err(Code::BAD_STATE)
    }

    /// The program's word, handed to every callback.
    pub fn user_data(&self) -> u64 {
        self.user_data.get()
    }

    /// Sets it.
    pub fn set_user_data(&self, data: u64) {
        self.user_data.set(data);
    }

    /// Sets the program's state callback.
    pub fn set_callback(&self, callback: Option<StateCallback>) {
        self.callback.set(callback);
    }

    /// Tasks submitted and not yet called back.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Counts a task in or out of flight.
    pub fn count_in_flight(&self, change: isize) {
        self.in_flight.set(self.in_flight.get().wrapping_add_signed(change));
        if let Some(pe) = self.pe() {
            pe.count_in_flight(change);
        }
    }

    /// Counts a task allocated or freed.
    pub fn count_allocated(&self, change: isize) {
        self.allocated.set(self.allocated.get().wrapping_add_signed(change));
    }

    /// The progress engine.
    pub fn pe(&self) -> Option<Rc<Pe>> {
        self.pe.borrow().upgrade()
    }

    /// Connects the context to a progress engine, for good.
    pub fn set_pe(&self, pe: &Rc<Pe>) -> Res {
        self.require_idle()?;
        if self.pe().is_some() {
            return Err(Code::NOT_PERMITTED);
        }
        *self.pe.borrow_mut() = Rc::downgrade(pe);
        Ok(())
    }

    /// Called when the library object is destroyed: the pointer is dead, the engine forgets the context.
    pub fn retire(&self) {
        self.tag.kill();
        self.destroyed.set(true);
        if let Some(pe) = self.pe() {
            pe.disconnect(self);
        }
    }

    /// Whether the program has destroyed the object; asked after every callback.
    pub fn is_destroyed(&self) -> bool {
        self.destroyed.get()
    }

    fn change(&self, owner: &dyn Context, next: CtxState) {
        let previous = self.state.replace(next);
        owner.entered(next);
        log::trace!("{} {:p}: {previous:?} -> {next:?}", owner.name(), self);
        if let Some(callback) = self.callback.get() {
            // SAFETY: the program's own function, with what its type promises.
            unsafe { callback(self.user_data.get(), self, previous as u32, next as u32) };
        }
    }

    /// `doca_ctx_start`
    pub fn start(&self) -> Res {
        let owner = self.owner()?;
        self.require_idle()?;
        if self.pe().is_none() {
            log::error!("{}: start without a progress engine; call doca_pe_connect_ctx first", owner.name());
            return Err(Code::NOT_CONNECTED);
        }
        fault::start(owner.name())?;
        owner.start()?;
        let later = profile::get().callbacks_in_progress || !owner.is_ready();
        if !later && !owner.shows_starting() {
            self.change(&*owner, CtxState::Running);
            return Ok(());
        }
        self.change(&*owner, CtxState::Starting);
        // The callback may have stopped it again.
        match self.state.get() {
            CtxState::Starting if later => return Err(Code::IN_PROGRESS),
            CtxState::Starting => self.change(&*owner, CtxState::Running),
            _ => {}
        }
        Ok(())
    }

    /// `doca_ctx_stop`
    pub fn stop(&self) -> Res {
        let owner = self.owner()?;
        match self.state.get() {
            // The sync event and DMA samples stop twice and take anything but success for a failure.
            CtxState::Idle if profile::get().stop_idle_bad_state => return Err(Code::BAD_STATE),
            CtxState::Idle => return Ok(()),
            CtxState::Stopping => return Err(Code::IN_PROGRESS),
            CtxState::Starting | CtxState::Running => owner.may_stop()?,
        }
        self.change(&*owner, CtxState::Stopping);
        owner.stop();
        let in_callback = self.pe().is_some_and(|pe| pe.is_dispatching());
        if !in_callback && self.finish_stop(&*owner) { Ok(()) } else { Err(Code::IN_PROGRESS) }
    }

    /// To STOPPING without a stop call: a library whose tasks are fatal when they fail, or whose peer does not answer.
    pub fn fall(&self, owner: &dyn Context) {
        if !self.is_destroyed() && matches!(self.state.get(), CtxState::Starting | CtxState::Running) {
            self.change(owner, CtxState::Stopping);
            owner.stop();
        }
    }

    /// STOPPING to IDLE if nothing is left; tells whether that happened.
    fn finish_stop(&self, owner: &dyn Context) -> bool {
        let left = self.in_flight.get() > 0 || self.allocated.get() > 0 || !owner.is_drained();
        if self.state.get() != CtxState::Stopping || left {
            return false;
        }
        owner.stopped();
        self.change(owner, CtxState::Idle);
        true
    }

    /// One step of progress; tells whether something happened.
    pub fn progress(&self, owner: &dyn Context) -> bool {
        if self.state.get() == CtxState::Idle {
            return false;
        }
        if self.state.get() == CtxState::Starting && owner.is_ready() {
            self.change(owner, CtxState::Running);
            return true;
        }
        owner.step() || self.finish_stop(owner)
    }

    /// Whether `progress` would find something to do.
    pub fn has_work(&self, owner: &dyn Context) -> bool {
        match self.state.get() {
            CtxState::Idle => false,
            CtxState::Stopping => {
                owner.has_work()
                    || self.in_flight.get() == 0 && self.allocated.get() == 0 && owner.is_drained()
            }
            CtxState::Starting => owner.is_ready() || owner.has_work(),
            CtxState::Running => owner.has_work(),
        }
    }
}

impl Default for Ctx {
    fn default() -> Self {
        Self::new()
    }
}
