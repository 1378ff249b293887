//! A context on its way through its states.

use crate::address::Address;
use crate::config::Config;
use crate::connection::{Bridging, CmId, Connecting, Decision, Events, Exported, Listener, Request};
use crate::instance::{Owner, getters};
use crate::run::Run;
use crate::task::{Queue, Task};
use doca_common::context::{Member, State};
use doca_common::owner::{Key, Stage, deadline};
use doca_common::{Descriptor, Device, Error, Failed, ProgressEngine, Refusal, Result};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A running RDMA context. Dropping it stops and destroys it, by progress of its engine.
///
/// It can also stop by itself. Its queues and connections then refuse; [`stop`](Rdma::stop) gets back to where it
/// can be configured and started again.
#[derive(Debug)]
pub struct Rdma {
    pub(crate) owner: Owner,
    run: Rc<Run>,
}

/// A context that is starting. It can be connected already, and then works with releases that are RUNNING at once, as
/// DOCA 3 is, and with those that wait for a connection, as DOCA 2.x did. RDMA CM may need RUNNING: what listens, connects
/// or bridges here makes progress if that can lead there.
///
/// ```no_run
/// # use doca_common::ProgressEngine;
/// # fn connect(config: doca_rdma::Config, engine: &ProgressEngine, of_peer: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// let starting = config.start(engine)?;
/// let (exported, descriptor) = starting.export()?;
/// # drop(descriptor);
/// let connection = exported.connect(of_peer)?;
/// let rdma = starting.running()?;
/// # drop((connection, rdma)); Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "dropping it stops the context"]
pub struct Starting {
    owner: Owner,
    run: Rc<Run>,
}

/// A context that is stopping.
#[derive(Debug)]
#[must_use = "dropping it destroys the context"]
pub struct Stopping {
    owner: Owner,
    run: Rc<Run>,
}

/// What is left of a context after a transition failed, as C says.
#[derive(Debug)]
#[must_use = "dropping it ends the context"]
pub enum Left {
    /// It is idle: configure or start it.
    Config(Config),
    /// It is starting still.
    Starting(Starting),
    /// It runs.
    Running(Rdma),
    /// It is stopping still.
    Stopping(Stopping),
    /// It was destroyed with its engine.
    Consumed,
}

impl Left {
    fn of(owner: Owner, run: Rc<Run>) -> Self {
        match owner.stage() {
            Stage::Gone => Left::Consumed,
            Stage::Idle => Left::Config(Config { owner }),
            Stage::Starting => Left::Starting(Starting { owner, run }),
            Stage::Running => Left::Running(Rdma { owner, run }),
            Stage::Stopping => Left::Stopping(Stopping { owner, run }),
        }
    }
}

impl Starting {
    pub(crate) fn begin(owner: Owner, engine: &ProgressEngine) -> std::result::Result<Self, Failed<Left>> {
        let run = Rc::new(Run::new(owner.shared()));
        owner.begin(run.clone());
        match owner.start(engine) {
            Ok(()) => Ok(Starting { owner, run }),
            Err(error) => Err(Failed::new(error, Left::of(owner, run))),
        }
    }

    /// Progresses until the context runs. Connect before: in releases like DOCA 2.x a context that has no connection stays
    /// STARTING, and this never returns. After a second it says so, once, as a warning of the `log` crate.
    ///
    /// # Errors
    ///
    /// `DOCA_ERROR_INITIALIZATION` if it fell back to idle; what is left comes with it.
    pub fn running(self) -> std::result::Result<Rdma, Failed<Left>> {
        self.running_by(None)
    }

    /// As [`running`](Self::running), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn running_within(self, time: Duration) -> std::result::Result<Rdma, Failed<Left>> {
        self.running_by(deadline(time))
    }

    fn running_by(self, deadline: Option<Instant>) -> std::result::Result<Rdma, Failed<Left>> {
        match self.owner.until_running(deadline) {
            Ok(()) => Ok(Rdma { owner: self.owner, run: self.run }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }
}

/// The ways to connect. DOCA may be RUNNING once it is started, or be STARTING until it is connected.
macro_rules! ways_to_connect {
    ($started:ty) => {
        impl $started {
            /// Opens a connection for a peer that gets its descriptor by some other channel: `doca_rdma_export`. Whoever has
            /// the descriptor can take the peer's place: send it over a secure channel, and trust only such a one for the
            /// peer's.
            ///
            /// # Errors
            ///
            /// [`Refusal::Stopped`], `FULL` if all connections are in use, `CONNECTION_ABORTED`.
            #[doc(alias = "doca_rdma_export")]
            pub fn export(&self) -> Result<(Exported, Descriptor)> {
                self.run.export()
            }

            /// Takes over a connection request of the program's own librdmacm loop: `doca_rdma_bridge_prepare_connection`. DOCA
            /// has the identifier afterwards, also when it fails.
            ///
            /// # Errors
            ///
            /// [`Refusal::Stopped`] or [`Refusal::Stale`] with the identifier: DOCA was not asked. Without it: `FULL`, `NOT_SUPPORTED`,
            /// `CONNECTION_ABORTED` if the client has gone, `INVALID_VALUE` for a request that came to another device.
            #[doc(alias = "doca_rdma_bridge_prepare_connection")]
            pub fn bridge(&self, id: CmId) -> std::result::Result<Bridging, Failed<Option<CmId>>> {
                self.run.bridge(id)
            }

            /// Connects to a peer that listens: `doca_rdma_connect_to_addr`.
            ///
            /// # Errors
            ///
            /// [`Refusal::Stopped`], `INVALID_VALUE` for an address that DOCA does not take, `CONNECTION_ABORTED`, `FULL` if all
            /// connections are in use.
            /// That the peer cannot be reached or rejects is told later.
            #[doc(alias = "doca_rdma_connect_to_addr")]
            pub fn connect_addr(&self, address: impl Into<Address>) -> Result<Connecting> {
                self.run.connect_addr(address.into())
            }

            /// Listens on a port: `doca_rdma_start_listen_to_port`. `decide` is asked about each peer, inside progress: there
            /// it may look, count and queue, but progressing, waiting and stopping are refused.
            ///
            /// A context has room for one connection unless
            /// [`set_max_num_connections`](crate::Config::set_max_num_connections) made more before start; peers beyond that are
            /// turned away unasked, and DOCA's log says so here.
            ///
            /// # Errors
            ///
            /// [`Refusal::Stopped`], [`Refusal::OutOfRange`] for port 0, `CONNECTION_ABORTED` if the port is taken,
            /// `NOT_SUPPORTED`.
            #[doc(alias = "doca_rdma_start_listen_to_port")]
            pub fn listen(
                &self,
                port: u16,
                decide: impl FnMut(&Request) -> Decision + 'static,
            ) -> Result<Listener> {
                self.run.listen(port, Box::new(decide))
            }

            /// Records from now on what happens to connections. There is one record: a new one begins empty.
            pub fn events(&self) -> Events {
                Events::new(self.run.clone())
            }
        }
    };
}

ways_to_connect!(Starting);
ways_to_connect!(Rdma);

getters!(Rdma);

impl Rdma {
    /// Creates an idle context on a device: `doca_rdma_create`.
    ///
    /// # Errors
    ///
    /// `NO_MEMORY`, `INITIALIZATION` if the device cannot host RDMA.
    #[doc(alias = "doca_rdma_create")]
    pub fn configure(device: &Device) -> Result<Config> {
        Config::new(device)
    }

    /// The device that was given.
    pub fn device(&self) -> &Device {
        self.owner.device()
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.owner.life().state()
    }

    /// The queue of a kind of task that was enabled.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherContext`] for a key of another context, [`Refusal::Stopped`].
    pub fn queue<T: Task>(&self, key: Key<T>) -> Result<Queue<T>> {
        if !key.is_of(self.owner.serial()) {
            return Err(Error::refused(T::SUBMIT, Refusal::OtherContext));
        }
        self.owner.life().require_running(T::SUBMIT)?;
        Ok(Queue::new(self.run.clone()))
    }

    /// Stops the context: `doca_ctx_stop`. Tasks in flight come back as failures, connections end. Inside a callback
    /// it is stopped after progress.
    #[doc(alias = "doca_ctx_stop")]
    pub fn stop(self) -> Stopping {
        self.owner.request_stop();
        Stopping { owner: self.owner, run: self.run }
    }
}

impl Stopping {
    /// Progresses until the context is idle.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop, [`Refusal::InCallback`], [`Refusal::EngineGone`]; what is left comes with it.
    pub fn wait(self) -> std::result::Result<Config, Failed<Left>> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too, with state and number of tasks as C tells them.
    pub fn wait_for(self, time: Duration) -> std::result::Result<Config, Failed<Left>> {
        self.wait_by(deadline(time))
    }

    fn wait_by(self, deadline: Option<Instant>) -> std::result::Result<Config, Failed<Left>> {
        match self.owner.until_idle(deadline) {
            Ok(()) => Ok(Config { owner: self.owner }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }

    /// Resolves when the context is idle, while something else progresses the engine.
    ///
    /// # Errors
    ///
    /// DOCA's if it refused to stop; [`Refusal::EngineGone`], nothing is left then.
    pub async fn stopped(self) -> std::result::Result<Config, Failed<Left>> {
        match self.owner.idle().await {
            Ok(()) => Ok(Config { owner: self.owner }),
            Err(error) => Err(Failed::new(error, Left::of(self.owner, self.run))),
        }
    }
}
