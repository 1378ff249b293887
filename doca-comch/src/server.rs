//! Servers: on a DPU, for the clients of one function of the host.

use crate::connection::{Connection, ConnectionId};
use crate::control::{Control, ControlPath};
use crate::event::Events;
use crate::lifecycle::{self, Config, Context, Stopping};
use crate::run::Run;
use doca_common::context::{Member, State};
use doca_common::owner::Owner;
use doca_common::{Device, Error, Refusal, Representor, Result};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A running server. Dropping it stops and destroys it, by progress of its engine; clients are told.
pub struct Server {
    owner: Owner<Control>,
    run: Rc<Run>,
}

const ACCEPT: &str = "doca_comch_event_connection_status_changed";

impl Server {
    /// Creates an idle server for the clients of one host function, that of the representor:
    /// `doca_comch_server_create`. Names are per function; that one is taken is told at the start.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] for a name that is too long, [`Refusal::Malformed`] for one with a zero byte,
    /// `NOT_PERMITTED`, `NO_MEMORY`, `INITIALIZATION`.
    #[doc(alias = "doca_comch_server_create")]
    pub fn configure(device: &Device, representor: &Representor, name: &str) -> Result<Config<Server>> {
        Ok(Config::of(Control::new(device, Some(representor), name)?))
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.owner.life().state()
    }

    /// The next client, if one is there.
    pub fn try_accept(&self) -> Option<Connection> {
        let id = self.run.table().borrow_mut().next_ready()?;
        Some(Connection::new(self.run.clone(), id))
    }

    /// Progresses until there is a client.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`], [`Refusal::InCallback`], [`Refusal::EngineGone`]
    pub fn wait(&self) -> Result<Connection> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn wait_for(&self, time: Duration) -> Result<Connection> {
        self.wait_by(Instant::now().checked_add(time))
    }

    fn wait_by(&self, deadline: Option<Instant>) -> Result<Connection> {
        let core = self.run.core().ok_or_else(|| Error::refused(ACCEPT, Refusal::Stopped))?;
        let mut connection = None;
        let there = core.wait(ACCEPT, deadline, || {
            connection = self.try_accept();
            connection.is_some() || self.run.require_running(ACCEPT).is_err()
        })?;
        let refusal = if there { Refusal::Stopped } else { Refusal::TimedOut };
        connection.ok_or_else(|| Error::refused(ACCEPT, refusal).with(self.owner.name()))
    }

    /// Resolves to the next client, while something progresses the engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]
    pub async fn accept(&self) -> Result<Connection> {
        poll_fn(|poller| {
            if let Some(connection) = self.try_accept() {
                return Poll::Ready(Ok(connection));
            }
            if self.run.is_over() {
                return Poll::Ready(Err(Error::refused(ACCEPT, Refusal::Stopped)));
            }
            self.run.table().borrow_mut().watch_ready(poller.waker());
            Poll::Pending
        })
        .await
    }

    /// Ends a connection; the client falls back to idle: `doca_comch_server_disconnect`. It is over when this returns, or
    /// after progress if the peer's queue is full or a callback is running. One that is over already is no error.
    ///
    /// # Errors
    ///
    /// [`Refusal::InUse`] while producers or consumers are on it, [`Refusal::Stopped`], or DOCA's.
    #[doc(alias = "doca_comch_server_disconnect")]
    pub fn disconnect(&self, connection: ConnectionId) -> Result<()> {
        self.run.disconnect(connection)
    }

    /// Records from now on what happens to connections. There is one record: a new one begins empty.
    pub fn events(&self) -> Events {
        Events::new(self.run.clone())
    }

    /// Stops the server: `doca_ctx_stop`. Its clients fall back to idle. It waits for the producers and consumers on its
    /// connections to end. Inside a callback it is stopped after progress.
    #[doc(alias = "doca_ctx_stop")]
    pub fn stop(self) -> Stopping<Server> {
        lifecycle::stop(self)
    }
}

impl Context for Server {
    type Object = Control;

    fn assemble(owner: Owner<Control>, run: Rc<Run>) -> Self {
        Server { owner, run }
    }

    fn parts(self) -> (Owner<Control>, Rc<Run>) {
        (self.owner, self.run)
    }
}

impl ControlPath for Server {}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({:?})", &*self.owner)
    }
}
