//! What a program has of a context: its claim to it, and the way through its states that every library's types go.

use crate::context::{self, Member, State};
use crate::engine::ProgressEngine;
use crate::error::{Code, Error, Refusal, Result};
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

const START: &str = "doca_ctx_start";
const STOP: &str = "doca_ctx_stop";
/// A wait for RUNNING that lasts this long is worth a word.
const LONG: Duration = Duration::from_secs(1);

/// The program's claim to a context: dropping it ends the context.
pub struct Owner<M: Member>(Rc<M>);

/// Where a context stands, as its owner sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Idle, and all of its last run dealt with.
    Idle,
    /// On the way to running.
    Starting,
    /// Takes tasks.
    Running,
    /// On the way to being idle.
    Stopping,
    /// Destroyed with its engine.
    Gone,
}

impl<M: Member> Owner<M> {
    /// The only owner of a context.
    pub fn new(member: Rc<M>) -> Self {
        Owner(member)
    }

    /// The context.
    pub fn shared(&self) -> &Rc<M> {
        &self.0
    }

    /// Where the context stands.
    pub fn stage(&self) -> Stage {
        let life = self.life();
        match life.state() {
            _ if life.is_gone() => Stage::Gone,
            State::Idle if life.is_idle() => Stage::Idle,
            State::Starting => Stage::Starting,
            State::Running => Stage::Running,
            State::Idle | State::Stopping => Stage::Stopping,
        }
    }

    /// Refuses unless the context can be configured.
    ///
    /// # Errors
    ///
    /// Those of [`Lifecycle::require_idle`](context::Lifecycle::require_idle).
    pub fn require_idle(&self, call: &'static str) -> Result<()> {
        self.life().require_idle(call)
    }

    /// Starts it: [`context::start`]. One that stays idle has ended.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start(&self, engine: &ProgressEngine) -> Result<()> {
        let started = context::start(&self.0, engine);
        if started.is_err() && self.life().state() == State::Idle {
            self.ended();
        }
        started
    }

    /// Progresses until it runs. If that lasts, the log says once what it may wait for.
    ///
    /// # Errors
    ///
    /// `INITIALIZATION` if it fell back to idle, and those of [`context::wait_for`].
    pub fn until_running(&self, deadline: Option<Instant>) -> Result<()> {
        let wait = |until| context::wait_for(START, self.life(), &[State::Running, State::Idle], until);
        let worth_a_word = crate::owner::deadline(LONG).filter(|word| deadline.is_none_or(|end| *word < end));
        match wait(worth_a_word.or(deadline)) {
            Err(error) if worth_a_word.is_some() && error.refusal() == Some(Refusal::TimedOut) => {
                log::warn!("{START}: STARTING for {LONG:?}: {}", self.still_starting());
                wait(deadline)?;
            }
            waited => waited?,
        }
        match self.life().is_running() {
            true => Ok(()),
            false => Err(Error::doca(START, Code::INITIALIZATION).with(self.not_reached())),
        }
    }

    /// Wants it to stop, at once if possible, else by progress.
    pub fn request_stop(&self) {
        self.stop_asked();
        self.life().request_stop(&*self.0);
    }

    /// Progresses until it is idle.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop, and those of [`context::wait_for`].
    pub fn until_idle(&self, deadline: Option<Instant>) -> Result<()> {
        context::wait_for(STOP, self.life(), &[State::Idle], deadline)
    }

    /// Resolves when it is idle, while something else progresses the engine.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop; [`EngineGone`](crate::Refusal::EngineGone).
    pub async fn idle(&self) -> Result<()> {
        let life = self.life();
        poll_fn(|poller| {
            if life.is_gone() || life.is_idle() {
                return Poll::Ready(life.require_alive(STOP));
            }
            if let Some(error) = life.take_failure() {
                return Poll::Ready(Err(error));
            }
            life.watch(poller.waker());
            Poll::Pending
        })
        .await
    }
}

/// Says that a kind of task was enabled; the context that enabled it gives the queue for it.
pub struct Key<T> {
    context: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// The key of a context, by its serial number.
    #[doc(hidden)]
    pub fn new(context: u64) -> Self {
        Key { context, kind: PhantomData }
    }

    /// Whether it is of this context.
    #[doc(hidden)]
    pub fn is_of(&self, context: u64) -> bool {
        self.context == context
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", std::any::type_name::<T>())
    }
}

/// The moment at which `time` from now has passed; never, if that cannot be told.
pub fn deadline(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

impl<M: Member> Deref for Owner<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M: Member> Drop for Owner<M> {
    fn drop(&mut self) {
        self.stop_asked();
        self.life().request_destroy(&*self.0);
    }
}

impl<M: Member + fmt::Debug> fmt::Debug for Owner<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
