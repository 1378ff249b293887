//! Connections by RDMA CM: one side listens on a port, the other connects to its address.

use super::{Connection, ConnectionId, ConnectionState, Hold};
use crate::address::Address;
use crate::raw::connection::Link;
use crate::run::Run;
use doca_common::context::State;
use doca_common::{Code, Error, Failed, Refusal, Result};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Decides about requests.
pub(crate) type Decide = Box<dyn FnMut(&Request) -> Decision>;

/// A peer that wants to connect.
#[derive(Debug)]
pub struct Request {
    port: u16,
    connections: usize,
}

impl Request {
    /// The port that it came to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections the context has already.
    pub fn connections(&self) -> usize {
        self.connections
    }
}

/// What to do with a [`Request`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision(Choice);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Choice {
    Accept(Vec<u8>),
    Reject,
}

impl Decision {
    /// Takes the peer: `doca_rdma_connection_accept`.
    #[doc(alias = "doca_rdma_connection_accept")]
    pub fn accept() -> Self {
        Decision(Choice::Accept(Vec::new()))
    }

    /// Takes the peer and sends it up to 255 bytes. DOCA peers cannot read them, librdmacm programs can.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLong`]
    pub fn accept_with(data: &[u8]) -> Result<Self> {
        if data.len() > usize::from(u8::MAX) {
            let text = format!("{} bytes of private data, 255 at most", data.len());
            return Err(Error::refused("doca_rdma_connection_accept", Refusal::TooLong).with(text));
        }
        Ok(Decision(Choice::Accept(data.to_vec())))
    }

    /// Turns the peer away: `doca_rdma_connection_reject`.
    #[doc(alias = "doca_rdma_connection_reject")]
    pub fn reject() -> Self {
        Decision(Choice::Reject)
    }
}

/// Steps that a context may need to be RUNNING when others of its engine take theirs too.
const STEPS: usize = 256;

impl Run {
    /// RDMA CM serves contexts that are RUNNING. One that gets there by itself needs progress for that at most; one that
    /// waits for its first connection is served while it is STARTING. Inside a callback there is no progress to make.
    pub(super) fn come_up(&self) -> Result<()> {
        let Some(core) = self.core().filter(|core| !core.is_inside()) else { return Ok(()) };
        for _ in 0..STEPS {
            if self.life().state() != State::Starting || !core.progress()? {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn listen(self: &Rc<Self>, port: u16, decide: Decide) -> Result<Listener> {
        const CALL: &str = "doca_rdma_start_listen_to_port";
        self.require_started(CALL)?;
        if port == 0 {
            return Err(Error::refused(CALL, Refusal::OutOfRange).with("port 0"));
        }
        self.come_up()?;
        let index = self.table().borrow_mut().add_listener(port, decide);
        if let Err(error) = self.instance().handle().listen(port) {
            let decide = self.table().borrow_mut().drop_listener(index, false);
            drop(decide);
            return Err(error.with(format!("port {port}")));
        }
        Ok(Listener { run: self.clone(), index, port })
    }

    pub(crate) fn connect_addr(self: &Rc<Self>, address: Address) -> Result<Connecting> {
        self.require_started("doca_rdma_connect_to_addr")?;
        self.come_up()?;
        let known = self.table().borrow().address(&address);
        let c_address = known.map_or_else(|| address.create().map(Rc::new), Ok)?;
        let id = self.table().borrow_mut().insert(ConnectionState::Connecting, None);
        match self.instance().handle().connect_to(&c_address, id.to_bits()) {
            Ok(()) => {
                self.table().borrow_mut().keep_address(address, c_address);
                Ok(Connecting { hold: Hold::new(self.clone(), id), address })
            }
            Err(error) => {
                self.table().borrow_mut().remove(id);
                Err(error.with(address.to_string()))
            }
        }
    }

    /// A peer wants to connect. Sets `decided` once it was accepted or rejected; a panic of the closure leaves it
    /// unset. Runs inside DOCA's callback.
    pub(crate) fn requested(&self, link: Link, decided: &mut bool) {
        let found = self.table().borrow().listener_of(link.port().ok());
        let Some((listener, port)) = found else { return };
        let Some(decide) = self.table().borrow_mut().take_decide(listener) else { return };
        let mut back = PutBack { run: self, listener, decide: Some(decide) };
        let request = Request { port, connections: self.table().borrow().live() };
        let decision = back.decide.as_mut().map_or(Decision::reject(), |decide| decide(&request));
        drop(back);
        *decided = true;
        let done = match decision.0 {
            Choice::Reject => link.reject(),
            Choice::Accept(data) => {
                let id = self.table().borrow_mut().insert(ConnectionState::Connecting, Some(link));
                self.table().borrow_mut().set_listener(id, listener);
                let accepted = link.address_to(id).and_then(|()| link.accept(&data));
                if accepted.is_err() {
                    self.table().borrow_mut().remove(id);
                }
                accepted
            }
        };
        if let Err(error) = done {
            log::warn!("{error}");
        }
    }

    pub(crate) fn established(&self, id: ConnectionId, link: Option<Link>) {
        let mut table = self.table().borrow_mut();
        if table.state(id) == ConnectionState::Connecting {
            table.set_state(id, ConnectionState::Connected, link);
            table.arrive(id);
        }
    }

    pub(crate) fn failed(&self, id: ConnectionId) {
        let mut table = self.table().borrow_mut();
        if table.is_incoming(id) && table.state(id) == ConnectionState::Connecting {
            table.release(id);
        }
        table.set_state(id, ConnectionState::Failed, None);
    }

    pub(crate) fn disconnected(&self, id: ConnectionId) {
        self.table().borrow_mut().set_state(id, ConnectionState::Disconnected, None);
    }
}

/// Puts a closure back where it was, also when it panicked.
struct PutBack<'a> {
    run: &'a Run,
    listener: usize,
    decide: Option<Decide>,
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        if let Some(decide) = self.decide.take() {
            let left = self.run.table().borrow_mut().put_decide(self.listener, decide);
            drop(left);
        }
    }
}

/// A connection that RDMA CM is making. Dropping it gives it up.
#[derive(Debug)]
#[must_use = "dropping it gives the connection up"]
pub struct Connecting {
    hold: Hold,
    address: Address,
}

impl Connecting {
    /// Progresses until the connection is established.
    ///
    /// # Errors
    ///
    /// `CONNECTION_ABORTED` if the peer cannot be reached, rejects, or does not answer in time.
    pub fn wait(self) -> std::result::Result<Connection, Failed<Option<Connecting>>> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too, with the connection that is still being made.
    pub fn wait_for(self, time: Duration) -> std::result::Result<Connection, Failed<Option<Connecting>>> {
        self.wait_by(Instant::now().checked_add(time))
    }

    fn wait_by(
        self,
        deadline: Option<Instant>,
    ) -> std::result::Result<Connection, Failed<Option<Connecting>>> {
        match self.hold.wait(CONNECT, deadline, |state| state != ConnectionState::Connecting) {
            Ok(()) => self.finish(),
            Err(error) => Err(Failed::new(error, Some(self))),
        }
    }

    /// Resolves when the connection is established, while something progresses the engine.
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait).
    pub async fn established(self) -> std::result::Result<Connection, Failed<Option<Connecting>>> {
        self.hold.until(|state| state != ConnectionState::Connecting).await;
        self.finish()
    }

    fn finish(self) -> std::result::Result<Connection, Failed<Option<Connecting>>> {
        if self.hold.run.is_over() {
            return Err(Failed::new(Error::refused(CONNECT, Refusal::Stopped), None));
        }
        match self.hold.state() {
            ConnectionState::Connected => Ok(Connection::new(self.hold)),
            _ => {
                let text = self.address.to_string();
                Err(Failed::new(Error::doca(CONNECT, Code::CONNECTION_ABORTED).with(text), None))
            }
        }
    }
}

const CONNECT: &str = "doca_rdma_connect_to_addr";
const LISTEN: &str = "doca_rdma_start_listen_to_port";

/// Listens on a port, and gives the connections that were accepted and established. Dropping it stops listening;
/// connections that it gave stay.
#[must_use = "dropping it stops listening"]
pub struct Listener {
    run: Rc<Run>,
    index: usize,
    port: u16,
}

impl Listener {
    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next connection, if one is there.
    pub fn try_accept(&self) -> Option<Connection> {
        let id = self.run.table().borrow_mut().next_ready(self.index)?;
        Some(Connection::new(Hold::new(self.run.clone(), id)))
    }

    /// Progresses until there is a connection.
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
        self.run.require_started(LISTEN)?;
        let core = self.run.core().ok_or_else(|| Error::refused(LISTEN, Refusal::Stopped))?;
        let mut connection = None;
        let there = core.wait(LISTEN, deadline, || {
            connection = self.try_accept();
            connection.is_some() || self.run.life().require_started(LISTEN).is_err()
        })?;
        let refusal = if there { Refusal::Stopped } else { Refusal::TimedOut };
        connection.ok_or_else(|| Error::refused(LISTEN, refusal).with(format!("port {}", self.port)))
    }

    /// Resolves to the next connection, while something progresses the engine.
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
                return Poll::Ready(Err(Error::refused(LISTEN, Refusal::Stopped)));
            }
            self.run.table().borrow_mut().watch_listener(self.index, poller.waker());
            Poll::Pending
        })
        .await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let decide = self.run.table().borrow_mut().drop_listener(self.index, !self.run.is_over());
        drop(decide);
        if let Some(core) = self.run.core() {
            core.mark();
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener(port {})", self.port)
    }
}
