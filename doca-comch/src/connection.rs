//! Connections of a server or client, and their messages.

mod table;

pub(crate) use table::Table;

use crate::family::Family;
use crate::raw::connection::Link;
use crate::run::{DISCONNECT, Run, SEND};
use doca_common::{Code, Device, Error, Refusal, Result};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Names a connection of one run. It stays unique after the connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionId {
    index: u32,
    /// Never 0, which is what DOCA's connections begin with.
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

/// Where a connection is. It changes by progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Messages can be sent.
    Connected,
    /// The server ends it, but DOCA could not tell the peer yet.
    Disconnecting,
    /// It is over. Messages that came before can be read still.
    Disconnected,
}

/// What a connection's control path has moved so far, seen from this side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Messages sent.
    pub sent_messages: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Messages received.
    pub received_messages: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

/// A consumer of the peer, which producers on the same connection can send to.
#[derive(Clone)]
pub struct RemoteConsumer {
    pub(crate) connection: ConnectionId,
    /// Tells connections apart on any thread.
    pub(crate) family: Arc<Family>,
    pub(crate) id: u32,
    pub(crate) down: Arc<std::sync::atomic::AtomicBool>,
}

impl RemoteConsumer {
    /// Its number, unique on its connection. The peer reads the same from its consumer.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The connection that it is on.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Whether it is there, as far as this side was told.
    pub fn is_up(&self) -> bool {
        !self.down.load(std::sync::atomic::Ordering::Acquire)
    }
}

impl fmt::Debug for RemoteConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteConsumer({}, {})", self.id, if self.is_up() { "up" } else { "down" })
    }
}

/// A connection between a client and its server. Dropping a server's connection ends it, by progress, after the messages
/// that are on their way; dropping a client's changes nothing, since it lives as long as the client runs.
pub struct Connection {
    run: Rc<Run>,
    id: ConnectionId,
}

impl Connection {
    pub(crate) fn new(run: Rc<Run>, id: ConnectionId) -> Self {
        Connection { run, id }
    }

    /// Its name; events and messages say it.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Where it is now.
    pub fn state(&self) -> ConnectionState {
        self.run.state_of(self.id)
    }

    /// Whether messages can be sent.
    pub fn is_connected(&self) -> bool {
        self.state() == ConnectionState::Connected
    }

    /// Bytes of the largest message.
    pub fn max_msg_size(&self) -> usize {
        self.run.max_message()
    }

    /// Sends a message: `doca_comch_{server,client}_task_send_alloc_init`, `doca_task_submit`. Its bytes are copied, so the
    /// call neither waits nor gives anything back; see [`in_flight`](Self::in_flight) and
    /// [`send_failure`](Self::send_failure). Messages arrive whole, in order, once. It may be called in a closure that
    /// takes messages.
    ///
    /// # Errors
    ///
    /// Nothing is sent then. [`Refusal::Full`] or `AGAIN` while too many messages are on their way, which is
    /// [retryable](Error::is_retryable): the peer may not be progressing. [`Refusal::NotConnected`],
    /// [`Refusal::Stopped`], [`Refusal::TooLong`], or DOCA's.
    #[doc(alias = "doca_comch_server_task_send_alloc_init")]
    #[doc(alias = "doca_comch_client_task_send_alloc_init")]
    #[doc(alias = "doca_task_submit")]
    pub fn send(&self, message: &[u8]) -> Result<()> {
        self.run.send(self.id, &[message])
    }

    /// As [`send`](Self::send), with a message in parts that follow each other.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub fn send_parts(&self, parts: &[&[u8]]) -> Result<()> {
        self.run.send(self.id, parts)
    }

    /// Messages that are on their way to the peer.
    pub fn in_flight(&self) -> u32 {
        self.run.table().borrow().in_flight(self.id)
    }

    /// What DOCA said of the first message that could not be sent. With a peer that was killed this can be long after,
    /// `CONNECTION_ABORTED` mostly.
    pub fn send_failure(&self) -> Option<Code> {
        self.run.table().borrow().failure(self.id)
    }

    /// Progresses until no message is on its way. What was sent is in the peer's receive queue then; whether its program
    /// has seen it is another matter.
    ///
    /// # Errors
    ///
    /// What DOCA said of the first message that could not be sent, [`Refusal::InCallback`], [`Refusal::EngineGone`].
    pub fn wait_sent(&self) -> Result<()> {
        self.wait_sent_by(None)
    }

    /// As [`wait_sent`](Self::wait_sent), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn wait_sent_for(&self, time: Duration) -> Result<()> {
        self.wait_sent_by(Instant::now().checked_add(time))
    }

    fn wait_sent_by(&self, deadline: Option<Instant>) -> Result<()> {
        self.wait(SEND, deadline, || self.in_flight() == 0)?;
        self.check_sent()
    }

    /// Resolves when no message is on its way, while something progresses the engine.
    ///
    /// # Errors
    ///
    /// What DOCA said of the first message that could not be sent.
    pub async fn sent(&self) -> Result<()> {
        self.until(|| self.in_flight() == 0).await;
        self.check_sent()
    }

    fn check_sent(&self) -> Result<()> {
        self.send_failure().map_or(Ok(()), |code| Err(Error::doca(SEND, code)))
    }

    /// Takes the next message, if one has come: its bytes replace those of `message`. True if there was one. Unread
    /// messages are kept in memory, however many: whoever cannot keep up lets the peer wait by not progressing.
    pub fn try_receive(&self, message: &mut Vec<u8>) -> bool {
        self.run.table().borrow_mut().next_message(self.id, message)
    }

    /// Progresses until there is a message.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`] when the connection is over and all messages were read, [`Refusal::InCallback`],
    /// [`Refusal::EngineGone`].
    pub fn receive(&self) -> Result<Vec<u8>> {
        self.receive_by(None)
    }

    /// As [`receive`](Self::receive), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn receive_for(&self, time: Duration) -> Result<Vec<u8>> {
        self.receive_by(Instant::now().checked_add(time))
    }

    fn receive_by(&self, deadline: Option<Instant>) -> Result<Vec<u8>> {
        let mut message = Vec::new();
        let mut there = false;
        self.wait(RECEIVE, deadline, || {
            there = there || self.try_receive(&mut message);
            there || self.state() == ConnectionState::Disconnected
        })?;
        if there { Ok(message) } else { Err(Error::refused(RECEIVE, Refusal::NotConnected)) }
    }

    /// Resolves to the next message, while something progresses the engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`] when the connection is over and all messages were read.
    pub async fn message(&self) -> Result<Vec<u8>> {
        let mut message = Vec::new();
        let mut there = false;
        self.until(|| {
            there = there || self.try_receive(&mut message);
            there || self.state() == ConnectionState::Disconnected
        })
        .await;
        if there { Ok(message) } else { Err(Error::refused(RECEIVE, Refusal::NotConnected)) }
    }

    /// What the control path has moved so far: `doca_comch_connection_update_info`. It fails on a connection that DOCA
    /// knows to be broken, and so is a probe; but a peer that was killed may not be noticed before a message to it fails.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`], [`Refusal::Stopped`], `CONNECTION_INPROGRESS`, `CONNECTION_ABORTED`.
    #[doc(alias = "doca_comch_connection_update_info")]
    #[doc(alias = "doca_comch_connection_get_counter")]
    pub fn counters(&self) -> Result<Counters> {
        const CALL: &str = "doca_comch_connection_update_info";
        self.run.require_running(CALL)?;
        let link = self.run.table().borrow().link(self.id);
        link.ok_or_else(|| Error::refused(CALL, Refusal::NotConnected))?.counters()
    }

    /// The consumers that the peer has on this connection now, in the order in which they came.
    pub fn consumers(&self) -> Vec<RemoteConsumer> {
        self.run.table().borrow().consumers(self.id).to_vec()
    }

    /// The peer's consumer of this number, which the peer told by a message. One that this side was not told of yet is
    /// taken to be there.
    pub fn consumer(&self, id: u32) -> Result<RemoteConsumer> {
        let table = self.run.table().borrow();
        let family = table.family(self.id).ok_or_else(|| Error::refused(SEND, Refusal::NotConnected))?;
        let known = table.consumers(self.id).iter().find(|consumer| consumer.id == id);
        Ok(known.cloned().unwrap_or(RemoteConsumer { connection: self.id, family, id, down: Arc::default() }))
    }

    /// Progresses until the peer has a consumer on this connection that it did not have before, or has one now if
    /// `known` is empty.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`], [`Refusal::NotConnected`], [`Refusal::InCallback`], [`Refusal::EngineGone`].
    pub fn wait_consumer_for(&self, known: &[RemoteConsumer], time: Duration) -> Result<RemoteConsumer> {
        const CALL: &str = "doca_comch_event_consumer";
        let is_new = |consumer: &RemoteConsumer| known.iter().all(|old| old.id != consumer.id);
        let find = || self.run.table().borrow().consumers(self.id).iter().find(|c| is_new(c)).cloned();
        self.wait(CALL, Instant::now().checked_add(time), || {
            find().is_some() || self.state() == ConnectionState::Disconnected
        })?;
        find().ok_or_else(|| Error::refused(CALL, Refusal::NotConnected))
    }

    /// What a producer or consumer on the connection needs of it.
    pub(crate) fn require_for_child(&self, call: &'static str) -> Result<(Device, Arc<Family>, Link)> {
        self.run.require_running(call)?;
        let table = self.run.table().borrow();
        let is_open = table.state(self.id) == ConnectionState::Connected;
        let parts = table.family(self.id).zip(table.link(self.id)).filter(|_| is_open);
        let (family, link) = parts.ok_or_else(|| Error::refused(call, Refusal::NotConnected))?;
        Ok((self.run.device().clone(), family, link))
    }

    /// Progresses until the connection is over, because of either side.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`], [`Refusal::EngineGone`]
    pub fn wait_disconnected(&self) -> Result<()> {
        self.wait(DISCONNECT, None, || self.state() == ConnectionState::Disconnected)
    }

    /// As [`wait_disconnected`](Self::wait_disconnected), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn wait_disconnected_for(&self, time: Duration) -> Result<()> {
        let deadline = Instant::now().checked_add(time);
        self.wait(DISCONNECT, deadline, || self.state() == ConnectionState::Disconnected)
    }

    /// Resolves when the connection is over, while something progresses the engine.
    pub async fn disconnected(&self) {
        self.until(|| self.state() == ConnectionState::Disconnected).await;
    }

    fn wait(
        &self,
        call: &'static str,
        deadline: Option<Instant>,
        mut done: impl FnMut() -> bool,
    ) -> Result<()> {
        if done() {
            return Ok(());
        }
        let core = self.run.core().ok_or_else(|| Error::refused(call, Refusal::Stopped))?;
        match core.wait(call, deadline, || done() || self.run.is_over())? {
            true => {
                // The end of the run may have brought the rest.
                done();
                Ok(())
            }
            false => Err(Error::refused(call, Refusal::TimedOut).with(format!("{:?}", self.state()))),
        }
    }

    async fn until(&self, mut done: impl FnMut() -> bool) {
        poll_fn(|poller| {
            if done() || self.run.is_over() {
                return Poll::Ready(());
            }
            self.run.table().borrow_mut().watch(self.id, poller.waker());
            Poll::Pending
        })
        .await;
    }
}

const RECEIVE: &str = "doca_comch_event_msg_recv";

impl Drop for Connection {
    fn drop(&mut self) {
        self.run.table().borrow_mut().release(self.id);
        if let Some(core) = self.run.core() {
            core.mark();
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {} ({:?})", self.id.index, self.state())
    }
}
