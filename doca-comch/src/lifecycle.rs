//! What servers, clients, consumers and producers have in common: the way through the states of their context.

use doca_common::context::Member;
use doca_common::owner::{Owner, Stage, deadline};
use doca_common::{Failed, ProgressEngine};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A kind of context, as it is while it runs: [`Server`](crate::Server), [`Client`](crate::Client),
/// [`Consumer`](crate::Consumer), [`Producer`](crate::Producer).
pub trait Context: Sized + 'static {
    #[doc(hidden)]
    type Object: Object;

    #[doc(hidden)]
    fn assemble(owner: Owner<Self::Object>, run: Rc<<Self::Object as Object>::Run>) -> Self;

    #[doc(hidden)]
    fn parts(self) -> (Owner<Self::Object>, Rc<<Self::Object as Object>::Run>);
}

/// The C object of a context, over any number of runs.
pub trait Object: Member + Sized {
    /// One run, from its start until it is idle again.
    type Run: 'static;

    /// Prepares a run.
    fn begin(self: &Rc<Self>) -> doca_common::Result<Rc<Self::Run>>;
}

/// A context that is idle: the only state in which it can be configured. Dropping it destroys it.
pub struct Config<C: Context> {
    pub(crate) owner: Owner<C::Object>,
}

/// A consumer or producer that was created and can be moved to the thread on which it will run. Dropping it destroys it.
#[must_use = "dropping it destroys the object"]
pub struct Seed<C: Context> {
    /// The only reference to the object.
    pub(crate) owner: Owner<C::Object>,
}

impl<C: Context> Seed<C> {
    pub(crate) fn new(object: C::Object) -> Self {
        Seed { owner: Owner::new(Rc::new(object)) }
    }

    /// Stays on this thread from now on, where it can be configured and started.
    pub fn here(self) -> Config<C> {
        Config { owner: self.owner }
    }

    /// Starts it on an engine of this thread as it is; see [`Config::start`].
    ///
    /// # Errors
    ///
    /// As for [`Config::start`].
    pub fn start(self, engine: &ProgressEngine) -> Result<Starting<C>, Failed<Left<C>>> {
        self.here().start(engine)
    }
}

/// A context that is starting.
#[must_use = "dropping it stops the context"]
pub struct Starting<C: Context> {
    owner: Owner<C::Object>,
    run: Rc<<C::Object as Object>::Run>,
}

/// A context that is stopping.
#[must_use = "dropping it destroys the context"]
pub struct Stopping<C: Context> {
    owner: Owner<C::Object>,
    run: Rc<<C::Object as Object>::Run>,
}

/// A context in whatever state it is: what is left after a transition failed, and what event loops keep, which ask
/// [`now`](Left::now) again after progress.
#[must_use = "dropping it ends the context"]
pub enum Left<C: Context> {
    /// It is idle: configure or start it.
    Config(Config<C>),
    /// It is starting still.
    Starting(Starting<C>),
    /// It runs.
    Running(C),
    /// It is stopping still.
    Stopping(Stopping<C>),
    /// It was destroyed with its engine, or a consumer or producer with its connection.
    Consumed,
}

impl<C: Context> Left<C> {
    fn of(owner: Owner<C::Object>, run: Rc<<C::Object as Object>::Run>) -> Self {
        match owner.stage() {
            Stage::Gone => Left::Consumed,
            Stage::Idle => Left::Config(Config { owner }),
            Stage::Starting => Left::Starting(Starting { owner, run }),
            Stage::Running => Left::Running(C::assemble(owner, run)),
            Stage::Stopping => Left::Stopping(Stopping { owner, run }),
        }
    }

    /// The same context in the state that it has by now.
    pub fn now(self) -> Self {
        let (owner, run) = match self {
            Left::Config(_) | Left::Consumed => return self,
            Left::Starting(starting) => (starting.owner, starting.run),
            Left::Running(context) => context.parts(),
            Left::Stopping(stopping) => (stopping.owner, stopping.run),
        };
        Left::of(owner, run)
    }
}

impl<C: Context> Config<C> {
    /// Starts the context on an engine: `doca_ctx_start`. From the first start on it belongs to that engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherEngine`](doca_common::Refusal::OtherEngine),
    /// [`Refusal::InCallback`](doca_common::Refusal::InCallback), or DOCA's; what is left comes with it.
    #[doc(alias = "doca_ctx_start")]
    #[doc(alias = "doca_pe_connect_ctx")]
    pub fn start(self, engine: &ProgressEngine) -> Result<Starting<C>, Failed<Left<C>>> {
        let owner = self.owner;
        let run = match owner.shared().begin() {
            Ok(run) => run,
            Err(error) => return Err(Failed::new(error, Left::Config(Config { owner }))),
        };
        match owner.start(engine) {
            Ok(()) => Ok(Starting { owner, run }),
            Err(error) => Err(Failed::new(error, Left::of(owner, run))),
        }
    }
}

impl<C: Context> Starting<C> {
    /// Progresses until the context runs.
    ///
    /// # Errors
    ///
    /// `DOCA_ERROR_INITIALIZATION` if it fell back to idle, [`Refusal::NotConnected`](doca_common::Refusal::NotConnected) if
    /// its connection ended and it was destroyed; what is left comes with it.
    pub fn running(self) -> Result<C, Failed<Left<C>>> {
        self.running_by(None)
    }

    /// As [`running`](Self::running), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`](doca_common::Refusal::TimedOut) too.
    pub fn running_within(self, time: Duration) -> Result<C, Failed<Left<C>>> {
        self.running_by(deadline(time))
    }

    fn running_by(self, deadline: Option<Instant>) -> Result<C, Failed<Left<C>>> {
        match self.owner.until_running(deadline) {
            Ok(()) => Ok(C::assemble(self.owner, self.run)),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }

    /// The context in the state that it has by now: how an event loop asks whether it runs.
    pub fn now(self) -> Left<C> {
        Left::of(self.owner, self.run)
    }
}

/// Stops a running context.
pub(crate) fn stop<C: Context>(context: C) -> Stopping<C> {
    let (owner, run) = context.parts();
    owner.request_stop();
    Stopping { owner, run }
}

impl<C: Context> Stopping<C> {
    /// Progresses until the context is idle.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop, [`Refusal::InCallback`](doca_common::Refusal::InCallback),
    /// [`Refusal::EngineGone`](doca_common::Refusal::EngineGone),
    /// [`Refusal::NotConnected`](doca_common::Refusal::NotConnected) if its connection ended and it was destroyed; what is
    /// left comes with it.
    pub fn wait(self) -> Result<Config<C>, Failed<Left<C>>> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`](doca_common::Refusal::TimedOut) too, with state and number of tasks as C tells them.
    pub fn wait_for(self, time: Duration) -> Result<Config<C>, Failed<Left<C>>> {
        self.wait_by(deadline(time))
    }

    fn wait_by(self, deadline: Option<Instant>) -> Result<Config<C>, Failed<Left<C>>> {
        match self.owner.until_idle(deadline) {
            Ok(()) => Ok(Config { owner: self.owner }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }

    /// Resolves when the context is idle, while something else progresses the engine.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop; [`Refusal::EngineGone`](doca_common::Refusal::EngineGone), nothing is left then.
    pub async fn stopped(self) -> Result<Config<C>, Failed<Left<C>>> {
        match self.owner.idle().await {
            Ok(()) => Ok(Config { owner: self.owner }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }

    /// The context in the state that it has by now: how an event loop asks whether it is idle.
    pub fn now(self) -> Left<C> {
        Left::of(self.owner, self.run)
    }
}

macro_rules! debug {
    ($($type:ident)*) => {
        $(impl<C: Context> fmt::Debug for $type<C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($type), self.owner.life().state())
            }
        })*
    };
}

debug!(Seed Config Starting Stopping);

impl<C: Context> fmt::Debug for Left<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Left::Config(_) => "Left::Config",
            Left::Starting(_) => "Left::Starting",
            Left::Running(_) => "Left::Running",
            Left::Stopping(_) => "Left::Stopping",
            Left::Consumed => "Left::Consumed",
        })
    }
}
