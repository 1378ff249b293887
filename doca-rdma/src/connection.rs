//! Connections: by descriptors that the program carries to the peer, by RDMA CM, or taken over from the program's own
//! librdmacm loop.

mod bridge;
mod cm;
mod export;
mod table;

pub use crate::raw::bridge::CmId;
pub use bridge::{Accepted, Bridging};
pub use cm::{Connecting, Decision, Listener, Request};
pub use export::Exported;
pub(crate) use table::{Door, Table};

use crate::raw::connection::Link;
use crate::run::Run;
use doca_common::{Error, Refusal, Result};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Names a connection of one run. It stays unique after the connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionId {
    index: u32,
    generation: u32,
}

impl ConnectionId {
    pub(crate) const UNKNOWN: ConnectionId = ConnectionId { index: u32::MAX, generation: u32::MAX };

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        ConnectionId { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl Default for ConnectionId {
    fn default() -> Self {
        ConnectionId::UNKNOWN
    }
}

/// Where a connection is. It changes by progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Its descriptor was made; the peer's is awaited.
    Exported,
    /// It was taken over from the program's own librdmacm loop, and is not established yet.
    Bridged,
    /// RDMA CM is making it.
    Connecting,
    /// Tasks can be submitted. With descriptors this says that this side is set up; the peer may not be there yet, or not
    /// any more: only RDMA CM tells of the peer's end. Nor does a failed task change it; see [`Connection::is_broken`].
    Connected,
    /// It is over: this side ended it, or the peer did and RDMA CM told so.
    Disconnected,
    /// It could not be made.
    Failed,
}

impl ConnectionState {
    /// Whether the program can end it at once.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, ConnectionState::Exported | ConnectionState::Bridged | ConnectionState::Connected)
    }

    /// Whether nothing will change any more.
    pub fn is_over(self) -> bool {
        matches!(self, ConnectionState::Disconnected | ConnectionState::Failed)
    }
}

/// A connection got into another state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionEvent {
    /// Which one.
    pub connection: ConnectionId,
    /// Where it is now.
    pub state: ConnectionState,
}

/// What happens to the connections of a context, in order, from the moment this was made. Whoever has many
/// connections reads it after progress; for one, [`Connection::state`] and [`Connection::wait_disconnected`] do.
/// Unread events are kept, so read them or drop this.
pub struct Events {
    run: Rc<Run>,
    record: u64,
}

impl Events {
    pub(crate) fn new(run: Rc<Run>) -> Self {
        let record = run.table().borrow_mut().begin_record();
        Events { run, record }
    }
}

impl Iterator for Events {
    type Item = ConnectionEvent;

    /// The next event that was not read yet; more may come after progress.
    fn next(&mut self) -> Option<ConnectionEvent> {
        self.run.table().borrow_mut().next_event(self.record)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.run.table().borrow_mut().end_record(self.record);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

/// The program's claim to a connection: dropping it ends the connection.
pub(crate) struct Hold {
    run: Rc<Run>,
    id: ConnectionId,
}

impl Hold {
    pub(crate) fn new(run: Rc<Run>, id: ConnectionId) -> Self {
        Hold { run, id }
    }

    fn state(&self) -> ConnectionState {
        if self.run.is_over() {
            return ConnectionState::Disconnected;
        }
        self.run.table().borrow().state(self.id)
    }

    /// Progresses until `done`; the caller keeps what it waits for.
    fn wait(
        &self,
        call: &'static str,
        deadline: Option<Instant>,
        done: impl Fn(ConnectionState) -> bool,
    ) -> Result<()> {
        let there = || done(self.state()) || self.run.is_over();
        if there() {
            return Ok(());
        }
        let core = self.run.core().ok_or_else(|| Error::refused(call, Refusal::Stopped))?;
        match core.wait(call, deadline, there)? {
            true => Ok(()),
            false => Err(Error::refused(call, Refusal::TimedOut).with(format!("{:?}", self.state()))),
        }
    }

    /// Resolves when `done`.
    async fn until(&self, done: impl Fn(ConnectionState) -> bool) {
        poll_fn(|poller| {
            if done(self.state()) || self.run.is_over() {
                return Poll::Ready(());
            }
            self.run.table().borrow_mut().watch(self.id, poller.waker());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.run.table().borrow_mut().release(self.id);
        if let Some(core) = self.run.core() {
            core.mark();
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {} ({:?})", self.id.index, self.state())
    }
}

/// A connection that tasks can be submitted on. Dropping it disconnects, by progress, after the tasks that are in
/// flight on it are done.
#[derive(Debug)]
pub struct Connection {
    hold: Hold,
    door: Door,
}

impl Connection {
    pub(crate) fn new(hold: Hold) -> Self {
        let door = hold.run.table().borrow().door(hold.id);
        Connection { hold, door }
    }

    /// Its name; receives say it.
    #[inline]
    pub fn id(&self) -> ConnectionId {
        self.hold.id
    }

    /// DOCA's number of it, which counts from 0: `doca_rdma_connection_get_id`.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`] when it is over, or DOCA's.
    #[doc(alias = "doca_rdma_connection_get_id")]
    pub fn number(&self) -> Result<u32> {
        const CALL: &str = "doca_rdma_connection_get_id";
        self.hold.run.require_started(CALL)?;
        let link = self.hold.run.table().borrow().link(self.hold.id);
        link.ok_or_else(|| Error::refused(CALL, Refusal::NotConnected))?.number()
    }

    /// Where it is now, as far as this side did something, or RDMA CM told.
    pub fn state(&self) -> ConnectionState {
        self.hold.state()
    }

    /// Whether tasks can be submitted on it. They fail if it [is broken](Self::is_broken).
    pub fn is_connected(&self) -> bool {
        self.state() == ConnectionState::Connected
    }

    /// Whether a task failed on it. DOCA reports no state for this: a reliable connection does no more then, and every later
    /// task on it fails, too. Disconnect, and connect anew.
    pub fn is_broken(&self) -> bool {
        self.hold.run.table().borrow().is_broken(self.hold.id)
    }

    /// Ends the connection: `doca_rdma_connection_disconnect`. It is over for this side then, also when RDMA CM winds it
    /// down by progress, and until that is done a new one may find no place: `FULL`. Tasks in flight on it come back as
    /// failures. One that is over already is no error.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_rdma_connection_disconnect")]
    pub fn disconnect(&self) -> Result<()> {
        self.hold.run.disconnect(self.hold.id)
    }

    /// Progresses until the connection is over: this side ended it, its context stopped, or RDMA CM told of the peer's end.
    /// Between contexts that connected by descriptors nobody tells: there the peer's end shows by the next task, which
    /// fails, and this waits for ever.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`], [`Refusal::EngineGone`]
    pub fn wait_disconnected(&self) -> Result<()> {
        self.hold.wait("doca_rdma_connection_disconnect", None, ConnectionState::is_over)
    }

    /// As [`wait_disconnected`](Self::wait_disconnected), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn wait_disconnected_for(&self, time: Duration) -> Result<()> {
        let deadline = Instant::now().checked_add(time);
        self.hold.wait("doca_rdma_connection_disconnect", deadline, ConnectionState::is_over)
    }

    /// Resolves when the connection is over, as for [`wait_disconnected`](Self::wait_disconnected), while something progresses the engine.
    pub async fn disconnected(&self) {
        self.hold.until(ConnectionState::is_over).await;
    }

    /// The C connection, if it is one of `run` and tasks can be submitted on it now.
    #[inline]
    pub(crate) fn open_in(&self, run: &Run) -> Option<Open> {
        if std::ptr::eq(&*self.hold.run, run) && run.is_running() {
            self.door.link().map(|link| Open { link, id: self.hold.id })
        } else {
            None
        }
    }

    /// Why not.
    #[cold]
    pub(crate) fn why_not_open_in(&self, run: &Run) -> Error {
        const CALL: &str = "doca_task_submit";
        if let Err(error) = run.require_running(CALL) {
            return error;
        }
        let refusal = if std::ptr::eq(&*self.hold.run, run) {
            Refusal::NotConnected
        } else if std::ptr::eq(self.hold.run.instance(), run.instance()) {
            Refusal::Stale
        } else {
            Refusal::OtherContext
        };
        Error::refused(CALL, refusal)
    }
}

/// A connection that a task can be submitted on now.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub(crate) link: Link,
    pub(crate) id: ConnectionId,
}

impl Run {
    /// Ends a connection if it is not over.
    pub(crate) fn disconnect(&self, id: ConnectionId) -> Result<()> {
        let Some(link) = self.table().borrow().open_link(id) else { return Ok(()) };
        if !self.is_over() {
            link.disconnect()?;
        }
        self.table().borrow_mut().ended(id);
        if let Some(core) = self.core() {
            core.mark();
        }
        Ok(())
    }

    /// After progress: wakes who waits for a connection, and ends those that nobody holds.
    pub(crate) fn settle_connections(&self) {
        let awake = self.table().borrow_mut().take_awake();
        for waker in awake {
            waker.wake();
        }
        if !self.table().borrow_mut().take_dirty() {
            return;
        }
        let (addresses, ports) = self.table().borrow_mut().take_retired();
        drop(addresses);
        for port in ports {
            if self.require_started("doca_rdma_stop_listen_to_port").is_ok()
                && let Err(error) = self.instance().handle().stop_listening(port)
            {
                log::warn!("{error}: port {port}");
            }
        }
        let mut index = 0;
        self.lingering().set(false);
        loop {
            let next = self.table().borrow_mut().abandoned(&mut index, self);
            let Some(id) = next else { break };
            if let Err(error) = self.disconnect(id) {
                log::debug!("{error}");
                index += 1;
            }
        }
    }

    /// The context is idle, and its connections are gone.
    pub(crate) fn end_connections(&self) {
        self.table().borrow_mut().end();
    }
}
