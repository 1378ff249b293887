//! The states that every DOCA context goes through, and what drives them. Applications see these states through
//! the types of the libraries; library crates build their contexts on [`Lifecycle`].

use crate::engine::{Core, ProgressEngine};
use crate::error::{Code, Error, Refusal, Result};
use crate::raw::context::Ctx;
use crate::raw::members::MemberId;
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

/// `enum doca_ctx_states`
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum State {
    /// Can be configured, started and destroyed.
    Idle,
    /// On the way to running.
    Starting,
    /// Takes tasks.
    Running,
    /// Gives tasks back, then is idle.
    Stopping,
}

impl State {
    /// From C. What a later release may add is no state to work in, so it counts as stopping.
    pub(crate) fn from_raw(state: u32) -> Self {
        use doca_sys::doca_ctx_states as c;
        match c(state) {
            c::DOCA_CTX_STATE_IDLE => State::Idle,
            c::DOCA_CTX_STATE_STARTING => State::Starting,
            c::DOCA_CTX_STATE_RUNNING => State::Running,
            _ => State::Stopping,
        }
    }
}

/// What the owner of a context wants from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Wish {
    Live,
    Stop,
    Destroy,
}

/// A context as its engine sees it.
pub trait Member: Any {
    /// The common part.
    fn life(&self) -> &Lifecycle;

    /// After progress: wakes who waits, drops what came back unwanted, does what was queued by dropped handles.
    fn settle(&self);

    /// Frees the C tasks that are not in flight.
    fn free_idle_tasks(&self);

    /// The context is not RUNNING any more, or is to stop: what was allowed without a look at its state is revoked. Runs
    /// inside DOCA's callback too, and does no more than that.
    fn revoke(&self) {}

    /// The program wants the run to end.
    fn stop_asked(&self) {}

    /// Why it did not get from STARTING to RUNNING, as far as is known.
    fn not_reached(&self) -> String {
        "the context fell back to IDLE while it was starting".to_owned()
    }

    /// What it may wait for that is STARTING for long.
    fn still_starting(&self) -> &'static str {
        "the log of DOCA may say what it waits for"
    }

    /// Before the context is stopped: ends what must be gone by then, step by step, and tells whether all of it is.
    /// Asked again after progress until it is.
    fn prepare_stop(&self) -> bool {
        true
    }

    /// The context became idle: its run is over.
    fn ended(&self);

    /// Whether what must be gone before the C object is. Asked again after progress until it is.
    fn may_destroy(&self) -> bool {
        true
    }

    /// Destroys the C object, which is idle. On success it is not touched again.
    ///
    /// # Errors
    ///
    /// DOCA's; the object is leaked then.
    fn destroy(&self) -> Result<()>;
}

/// State and belonging of a context.
#[derive(Debug)]
pub struct Lifecycle {
    ctx: Ctx,
    state: Cell<State>,
    wish: Cell<Wish>,
    /// Whether DOCA accepted the stop of this run.
    stopping: Cell<bool>,
    /// Whether the end of this run was not told yet.
    in_run: Cell<bool>,
    /// Whether the C object was destroyed or given up.
    gone: Cell<bool>,
    /// Whether it ended with what it belonged to.
    orphaned: Cell<bool>,
    /// Why DOCA did not stop it.
    failure: RefCell<Option<Error>>,
    engine: OnceCell<Rc<Core>>,
    id: Cell<MemberId>,
    wakers: RefCell<Vec<Waker>>,
}

impl Lifecycle {
    /// The common part of a context that is idle and new.
    pub fn new(ctx: Ctx) -> Self {
        Lifecycle {
            ctx,
            state: Cell::new(State::Idle),
            wish: Cell::new(Wish::Live),
            stopping: Cell::new(false),
            in_run: Cell::new(false),
            gone: Cell::new(false),
            orphaned: Cell::new(false),
            failure: RefCell::new(None),
            engine: OnceCell::new(),
            id: Cell::new(MemberId::NONE),
            wakers: RefCell::new(Vec::new()),
        }
    }

    /// The state, as DOCA's callbacks last told. A context that was given up counts as stopping.
    #[inline]
    pub fn state(&self) -> State {
        self.state.get()
    }

    /// The engine, once it was started on one.
    pub fn engine(&self) -> Option<&Rc<Core>> {
        self.engine.get()
    }

    /// Whether the C object is not to be touched any more.
    pub fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Refuses unless the context runs.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]
    #[inline]
    pub fn require_running(&self, call: &'static str) -> Result<()> {
        if self.is_running() { Ok(()) } else { Err(Error::refused(call, Refusal::Stopped)) }
    }

    /// Whether tasks can be submitted.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.state.get() == State::Running
    }

    /// Refuses unless the context was started and does not stop.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]
    pub fn require_started(&self, call: &'static str) -> Result<()> {
        if matches!(self.state.get(), State::Starting | State::Running) && !self.gone.get() {
            return Ok(());
        }
        Err(Error::refused(call, Refusal::Stopped))
    }

    /// Refuses unless the context can be configured.
    ///
    /// # Errors
    ///
    /// Those of [`require_alive`](Self::require_alive), [`Refusal::Stale`] if it is not idle.
    pub fn require_idle(&self, call: &'static str) -> Result<()> {
        self.require_alive(call)?;
        match self.state() {
            State::Idle => Ok(()),
            state => Err(Error::refused(call, Refusal::Stale).with(format!("state {state:?}"))),
        }
    }

    /// Refuses unless there is a C object to ask.
    ///
    /// # Errors
    ///
    /// [`Refusal::EngineGone`] if it was destroyed with its engine, [`Refusal::NotConnected`] with its connection.
    pub fn require_alive(&self, call: &'static str) -> Result<()> {
        match (self.gone.get(), self.orphaned.get()) {
            (false, _) => Ok(()),
            (true, false) => Err(Error::refused(call, Refusal::EngineGone)),
            (true, true) => {
                Err(Error::refused(call, Refusal::NotConnected).with("it was destroyed with its connection"))
            }
        }
    }

    pub(crate) fn note(&self, state: State) {
        self.state.set(state);
        match (state, self.engine.get()) {
            (State::Idle, _) => self.stopping.set(false),
            (State::Stopping, Some(core)) => core.look_again(),
            _ => {}
        }
    }

    /// Reads the state back, for libraries that tell a transition late.
    fn refresh(&self) {
        if let Ok(state) = self.ctx.state() {
            self.note(state);
        }
    }

    /// What C says is left, for errors.
    pub fn left(&self) -> String {
        if self.gone.get() {
            return "the context is gone".to_owned();
        }
        let tasks = self.ctx.in_flight().map_or("?".to_owned(), |count| count.to_string());
        format!("state {:?}, {tasks} tasks in flight", self.ctx.state().unwrap_or(self.state.get()))
    }

    /// Wants the context to stop. It is done at once if possible, else by progress.
    pub fn request_stop(&self, member: &dyn Member) {
        self.failure.take();
        self.wish_for(Wish::Stop, member);
    }

    /// Wants the context to be stopped and destroyed, by progress.
    pub fn request_destroy(&self, member: &dyn Member) {
        match self.engine.get() {
            Some(core) => {
                self.raise(Wish::Destroy);
                core.mark();
            }
            None => self.destroy_now(member),
        }
    }

    /// As [`request_destroy`](Self::request_destroy), because the connection that it belonged to is over.
    pub fn request_orphan(&self, member: &dyn Member) {
        if !self.gone.get() {
            self.orphaned.set(true);
        }
        self.request_destroy(member);
    }

    fn wish_for(&self, wish: Wish, member: &dyn Member) {
        self.raise(wish);
        if let Some(core) = self.engine.get() {
            core.mark();
            if !core.is_inside() {
                self.pursue(core, member);
            }
        }
    }

    fn raise(&self, wish: Wish) {
        if self.wish.get() < wish {
            self.wish.set(wish);
        }
    }

    fn destroy_now(&self, member: &dyn Member) {
        if self.gone.replace(true) {
            return;
        }
        if let Err(error) = member.destroy() {
            log::warn!("{error}: the context is leaked");
        }
    }

    /// Takes the next step towards what is wanted. Outside callbacks only.
    pub(crate) fn pursue(&self, core: &Core, member: &dyn Member) {
        if self.gone.get() {
            return;
        }
        if self.state.get() == State::Stopping {
            core.look_again();
            member.free_idle_tasks();
        }
        if self.wish.get() != Wish::Live
            && matches!(self.state.get(), State::Starting | State::Running)
            && !self.stopping.get()
            && (member.prepare_stop() || {
                core.look_again();
                false
            })
        {
            member.revoke();
            member.free_idle_tasks();
            match core.inside(|| self.ctx.stop()) {
                Ok(_) => {
                    self.stopping.set(true);
                    self.refresh();
                }
                // NVIDIA's storage applications take these as "progress and try again".
                Err(error) if matches!(error.code(), Some(Code::AGAIN | Code::IN_USE)) => core.look_again(),
                Err(error) => self.refused_to_stop(error),
            }
            if self.state.get() == State::Stopping {
                member.free_idle_tasks();
            }
        }
        if self.state.get() == State::Idle && self.in_run.replace(false) {
            member.ended();
        }
        for waker in self.wakers.take() {
            waker.wake();
        }
        if self.wish.get() == Wish::Destroy && self.state.get() == State::Idle {
            if member.may_destroy() {
                self.destroy_now(member);
            } else {
                core.look_again();
            }
        }
    }

    /// DOCA did not stop the context: whoever waits for that is told, and may ask again.
    fn refused_to_stop(&self, error: Error) {
        self.refresh();
        if self.wish.get() == Wish::Stop {
            self.wish.set(Wish::Live);
            *self.failure.borrow_mut() = Some(error);
        } else {
            log::debug!("{error}");
        }
    }

    /// Why DOCA did not stop it, once.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }

    /// Whether DOCA refused to stop it, which was not told yet.
    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Gives the C object up: the engine goes and it could not be stopped.
    pub(crate) fn give_up(&self) {
        self.gone.set(true);
        self.state.set(State::Stopping);
        for waker in self.wakers.take() {
            waker.wake();
        }
    }

    /// Whether the context is idle and the end of its run was dealt with.
    pub fn is_idle(&self) -> bool {
        self.state.get() == State::Idle && !self.in_run.get()
    }

    /// Wants to be woken by the next transition.
    pub fn watch(&self, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

/// Starts a context on an engine, which from then on is its engine for good.
///
/// # Errors
///
/// [`Refusal::OtherEngine`], [`Refusal::InCallback`], those of [`Lifecycle::require_alive`] and of `doca_ctx_start`. The
/// context is idle then.
pub fn start<M: Member>(member: &Rc<M>, engine: &ProgressEngine) -> Result<()> {
    restart(member, engine.core())
}

/// As [`start`], by the inside of the engine, which whoever started it before has.
///
/// # Errors
///
/// As there.
pub fn restart<M: Member>(member: &Rc<M>, core: &Rc<Core>) -> Result<()> {
    const CALL: &str = "doca_ctx_start";
    let life = member.life();
    life.require_alive(CALL)?;
    core.require_outside(CALL)?;
    match life.engine.get() {
        Some(own) if !Rc::ptr_eq(own, core) => return Err(Error::refused(CALL, Refusal::OtherEngine)),
        Some(_) => {}
        None => {
            let id = core.members().adopt(member.clone());
            life.id.set(id);
            if let Err(error) = life.ctx.address_to(id).and_then(|()| core.connect(&life.ctx)) {
                core.members().expel(id);
                return Err(error);
            }
            let _ = life.engine.set(core.clone());
        }
    }
    life.wish.set(Wish::Live);
    life.stopping.set(false);
    let started = core.inside(|| life.ctx.start());
    life.refresh();
    life.in_run.set(life.state.get() != State::Idle);
    core.mark();
    started.map(|_| ())
}

/// Progresses until the context is in one of these states, or the deadline passed.
///
/// # Errors
///
/// [`Refusal::TimedOut`] with what is left, [`Refusal::InCallback`], those of [`Lifecycle::require_alive`].
pub fn wait_for(
    call: &'static str,
    life: &Lifecycle,
    states: &[State],
    deadline: Option<Instant>,
) -> Result<()> {
    life.require_alive(call)?;
    let Some(core) = life.engine.get() else { return Ok(()) };
    let there = || match life.state.get() {
        _ if life.gone.get() || life.has_failed() => true,
        State::Idle => states.contains(&State::Idle) && life.is_idle(),
        state => states.contains(&state),
    };
    if core.wait(call, deadline, there)? {
        life.require_alive(call)?;
        return life.take_failure().map_or(Ok(()), |error| Err(error.with(life.left())));
    }
    Err(Error::refused(call, Refusal::TimedOut).with(life.left()))
}
