//! The side that asks.

use super::message::{CONTROL, ECHO, LONGEST, Reply, Request, TALK};
use super::{Place, configure};
use crate::Failure;
use doca_common::{Device, Error, Memory, PrivateMemory, ProgressEngine, RemoteEvent, RemoteMemory};
use doca_rdma::{Address, Connection, Queue, Rdma, ReceiveTask, SendImmTask, Task, caps};
use std::time::{Duration, Instant};

/// How long a server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait for something before looking whether the server has gone.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection that is there as long as a command goes on, so that the server knows when its client has gone: what is
/// tried has connections of its own.
pub(crate) struct Presence(Client<SendImmTask>);

impl Presence {
    pub(crate) fn begin(place: &Place, address: &str) -> Result<Self, Failure> {
        Client::connect(place, address, 1).map(Presence)
    }

    pub(crate) fn end(self) -> Result<(), Failure> {
        self.0.leave()
    }
}

/// A connection to a server, with a queue of the kind of task that is tried.
pub(crate) struct Client<T> {
    pub(crate) tasks: Queue<T>,
    pub(crate) connection: Connection,
    pub(crate) receives: Queue<ReceiveTask>,
    pub(crate) device: Device,
    requests: Queue<SendImmTask>,
    /// For requests and what comes back.
    talk: PrivateMemory,
    rdma: Rdma,
    engine: ProgressEngine,
}

/// What comes back: an immediate value and bytes.
pub(crate) type Message = (u32, Vec<u8>);

/// Descriptors of what the server shares.
type Shared = (Vec<u8>, Option<Vec<u8>>);

impl<T: Task> Client<T> {
    /// Connects, with so many tasks of the kind.
    pub(crate) fn connect(place: &Place, address: &str, tasks: u32) -> Result<Self, Failure> {
        let device = place.open(&[caps::RECEIVE, caps::SEND_IMM, T::CAPABILITY])?;
        let engine = ProgressEngine::new()?;
        let mut config = configure(&device)?;
        // A server that is slow to receive is no fault.
        config.set_rnr_retry_count(7)?;
        let receives = config.enable::<ReceiveTask>(1)?;
        // They may be of one kind: the number of the second holds.
        let requests = config.enable::<SendImmTask>(1)?;
        let tasks = config.enable::<T>(tasks)?;
        let starting = config.start(&engine).map_err(Error::from)?;
        let connecting = starting.connect_addr(Address::parse_ip(address, place.port)?)?;
        let connection = connecting.wait_for(PATIENCE).map_err(Error::from)?;
        let rdma = starting.running().map_err(Error::from)?;
        Ok(Client {
            tasks: rdma.queue(tasks)?,
            receives: rdma.queue(receives)?,
            requests: rdma.queue(requests)?,
            talk: Memory::zeroed(TALK + LONGEST)?.private(&device).map_err(Error::from)?,
            connection,
            device,
            rdma,
            engine,
        })
    }

    /// Has the server share memory filled with a pattern, count messages, and send them back if `echo`.
    pub(crate) fn share(&self, bytes: usize, seed: u64, echo: bool) -> Result<RemoteMemory, Failure> {
        let (memory, _) = self.shared(bytes, seed, false, echo)?;
        Ok(RemoteMemory::import(&self.device, memory)?)
    }

    /// Has the server make an event that begins with 0.
    pub(crate) fn event(&self) -> Result<RemoteEvent, Failure> {
        let (_, event) = self.shared(1, 0, true, false)?;
        Ok(RemoteEvent::import(&self.device, event.unwrap_or_default())?)
    }

    /// Has the server count messages, and send them back if `echo`.
    pub(crate) fn count(&self, echo: bool) -> Result<(), Failure> {
        self.shared(1, 0, false, echo).map(drop)
    }

    fn shared(&self, bytes: usize, seed: u64, event: bool, echo: bool) -> Result<Shared, Failure> {
        match self.ask(&Request::Share { bytes, seed, event, echo })? {
            Reply::Shared { memory, event } => Ok((memory, event)),
            other => Err(unexpected(&other)),
        }
    }

    /// Messages and their bytes that arrived at the server.
    pub(crate) fn counted(&self) -> Result<(u64, u64), Failure> {
        match self.ask(&Request::Count)? {
            Reply::Counted { messages, bytes } => Ok((messages, bytes)),
            other => Err(unexpected(&other)),
        }
    }

    /// The value of the event at the server, which is set before if there is something to set.
    pub(crate) fn event_value(&self, set: Option<u64>) -> Result<u64, Failure> {
        match self.ask(&set.map_or(Request::GetEvent, Request::SetEvent))? {
            Reply::Event(value) => Ok(value),
            other => Err(unexpected(&other)),
        }
    }

    /// The first bytes of the shared memory, as the server sees them.
    pub(crate) fn look(&self, bytes: usize) -> Result<Vec<u8>, Failure> {
        let (immediate, message) = self.answered(|| self.send(&Request::Look { bytes }))?;
        match immediate {
            ECHO => Ok(message),
            _ => Err(String::from_utf8_lossy(&message).into()),
        }
    }

    fn ask(&self, request: &Request) -> Result<Reply, Failure> {
        let (immediate, message) = self.answered(|| self.send(request))?;
        match (immediate, serde_json::from_slice(&message)) {
            (CONTROL, Ok(Reply::Refused(why))) => Err(format!("the other side: {why}").into()),
            (CONTROL, Ok(reply)) => Ok(reply),
            _ => Err("the other side answers in another language: is it of another version?".into()),
        }
    }

    fn send(&self, request: &Request) -> Result<(), Failure> {
        let mut buffer = self.talk.take(TALK)?;
        buffer.fill_with(&serde_json::to_vec(request)?)?;
        let mut sent = self.requests.submit(&self.connection, buffer, CONTROL).map_err(Error::from)?;
        sent.wait_for(PATIENCE).map(drop).map_err(|failed| Error::from(failed).into())
    }

    /// Does something to which the server answers with a message, and gives that.
    pub(crate) fn answered(&self, what: impl FnOnce() -> Result<(), Failure>) -> Result<Message, Failure> {
        let mut receive = self.receives.submit(self.talk.take(LONGEST)?).map_err(Error::from)?;
        what()?;
        let deadline = Instant::now() + PATIENCE;
        while !receive.is_done() && Instant::now() < deadline {
            self.attend()?;
        }
        let received = receive.wait_for(Duration::ZERO).map_err(Error::from)?;
        Ok((received.immediate().unwrap_or_default(), received.buffer.to_vec()))
    }

    /// Waits a moment for a message of the server, which must be there for it.
    pub(crate) fn attend(&self) -> Result<(), Failure> {
        if !self.connection.is_connected() {
            return Err("the other side has gone".into());
        }
        self.engine.wait_for(PAUSE)?;
        Ok(())
    }

    /// Disconnects and stops.
    pub(crate) fn leave(self) -> Result<(), Failure> {
        self.connection.disconnect()?;
        self.rdma.stop().wait().map_err(Error::from)?;
        Ok(())
    }
}

fn unexpected(reply: &Reply) -> Failure {
    format!("the other side answers something else: {reply:?}").into()
}
