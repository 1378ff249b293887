//! The side that serves: shares memory, counts messages and sends them back, for several clients at a time.

use super::message::{CONTROL, ECHO, LONGEST, MOST_SHARED, Reply, Request, pattern};
use super::{Place, configure};
use crate::Failure;
use doca_common::event::{Publisher, Subscriber};
use doca_common::{
    Access, Buffer, Device, Error, Memory, PrivateMemory, ProgressEngine, SharedMemory, SyncEvent,
};
use doca_rdma::{
    Arrival, CompareSwapTask, Config, Connection, Decision, EventAddTask, EventGetTask, EventSetTask,
    FetchAddTask, InFlight, Listener, Opcode, Pending, Queue, Rdma, ReadTask, ReceiveTask, SendImmTask, Task,
    TaskLeft, WriteImmTask, WriteTask, caps,
};
use std::collections::VecDeque;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::time::Duration;

/// Messages that can arrive before the first was looked at.
const RECEIVES: usize = 64;
/// Messages on their way back.
const SENDS: usize = 4;
/// Clients at a time.
const CLIENTS: u16 = 16;
/// How long to wait for something before looking whether a client has gone.
const PAUSE: Duration = Duration::from_millis(100);

/// One client.
struct Session {
    connection: Connection,
    shared: Option<SharedMemory>,
    event: Option<SyncEvent>,
    echo: bool,
    messages: u64,
    bytes: u64,
}

struct Server {
    device: Device,
    rdma: Rdma,
    listener: Listener,
    receives: VecDeque<InFlight<ReceiveTask, Buffer>>,
    outgoing: Outgoing,
    sessions: Vec<Session>,
    /// Messages that came before RDMA CM told of their connection.
    early: VecDeque<(Arrival, Vec<u8>)>,
    /// What the device lets peers do.
    access: Access,
    engine: ProgressEngine,
}

/// Serves until the first client has gone, or for ever.
pub(super) fn serve(place: &Place) -> Result<(), Failure> {
    let mut server = Server::start(place)?;
    let mut served = false;
    while !(place.once && served && server.sessions.is_empty()) {
        served |= server.turn()?;
    }
    server.rdma.stop().wait().map_err(Error::from)?;
    Ok(())
}

impl Server {
    fn start(place: &Place) -> Result<Self, Failure> {
        let device = place.open(&[caps::RECEIVE, caps::SEND_IMM])?;
        let engine = ProgressEngine::new()?;
        let mut config = configure(&device)?;
        let access = permit(&mut config, &device)?;
        config.set_max_num_connections(CLIENTS)?;
        let receives = config.enable::<ReceiveTask>(RECEIVES as u32)?;
        let sends = config.enable::<SendImmTask>(SENDS as u32)?;
        let starting = config.start(&engine).map_err(Error::from)?;
        let listener = starting.listen(place.port, |request| {
            if request.connections() < usize::from(CLIENTS) { Decision::accept() } else { Decision::reject() }
        })?;
        // Some releases of DOCA run from the first connection on.
        say_where(&device, place.port)?;
        let rdma = starting.running().map_err(Error::from)?;

        let memory = Memory::zeroed(RECEIVES * LONGEST)?.private(&device).map_err(Error::from)?;
        let queue = rdma.queue(receives)?;
        let post = |_| {
            let receive = queue.prepare(memory.take(LONGEST)?).map_err(Error::from)?;
            receive.submit().map_err(Error::from)
        };
        let receives = (0..RECEIVES).map(post).collect::<Result<_, Error>>()?;
        let memory = Memory::zeroed(SENDS * LONGEST)?.private(&device).map_err(Error::from)?;
        let outgoing = Outgoing { queue: rdma.queue(sends)?, memory, flying: VecDeque::new() };
        let (sessions, early) = (Vec::new(), VecDeque::new());
        Ok(Server { device, rdma, listener, receives, outgoing, sessions, early, access, engine })
    }

    /// Takes what is there, or waits a moment. Whether a client came.
    fn turn(&mut self) -> Result<bool, Failure> {
        let came = self.accept();
        for (arrival, message) in std::mem::take(&mut self.early) {
            self.answer(&arrival, &message);
        }
        while self.receives.front().is_some_and(InFlight::is_done) {
            self.take()?;
        }
        self.sessions.retain(|session| session.connection.is_connected());
        self.engine.wait_for(PAUSE)?;
        Ok(came)
    }

    fn accept(&mut self) -> bool {
        let before = self.sessions.len();
        self.sessions.extend(std::iter::from_fn(|| self.listener.try_accept()).map(|connection| Session {
            connection,
            shared: None,
            event: None,
            echo: false,
            messages: 0,
            bytes: 0,
        }));
        self.sessions.len() > before
    }

    /// Takes the message that came first, and posts its receive again.
    fn take(&mut self) -> Result<(), Failure> {
        let Some(receive) = self.receives.pop_front() else { return Ok(()) };
        let receive = match receive.wait().map_err(doca_common::Failed::into_parts) {
            Ok(receive) => {
                if let Some(arrival) = receive.arrival() {
                    self.answer(&arrival, receive.data());
                }
                receive
            }
            Err((error, TaskLeft::Prepared(receive))) => {
                say(format_args!("a receive failed: {error}"));
                receive
            }
            Err((error, TaskLeft::InFlight(_))) => return Err(error.into()),
        };
        self.receives.push_back(receive.submit().map_err(Error::from)?);
        Ok(())
    }

    /// Does what a message asks for. A client that cannot be answered is let go.
    fn answer(&mut self, arrival: &Arrival, message: &[u8]) {
        let by_id = |session: &Session| session.connection.id() == arrival.connection();
        let Some(index) = self.sessions.iter().position(by_id) else {
            // Those of clients that left before they were let in must not pile up.
            if self.early.len() == RECEIVES {
                self.early.pop_front();
            }
            self.early.push_back((*arrival, message.to_vec()));
            return;
        };
        let session = &mut self.sessions[index];
        if let Err(error) = session.answer(arrival, message, &self.device, self.access, &mut self.outgoing) {
            say(format_args!("a client is let go: {error}"));
            drop(self.sessions.swap_remove(index));
        }
    }
}

fn say_where(device: &Device, port: u16) -> Result<(), Failure> {
    let info = device.info();
    let address =
        info.ipv4_address()?.map_or_else(|| "its address".to_owned(), |address| address.to_string());
    say(format_args!("serving on {info}; name {address} and port {port} on the other side"));
    Ok(())
}

/// For whoever looks; the server goes on if nobody does.
fn say(text: Arguments<'_>) {
    _ = writeln!(io::stderr(), "{text}");
}

/// Permits all that the device can do. What memory must permit for it.
fn permit(config: &mut Config, device: &Device) -> doca_common::Result<Access> {
    let mut access = Access::LOCAL_READ_WRITE;
    macro_rules! permit {
        ($($task:ty),+) => {$(
            if <$task>::CAPABILITY.holds(&device.info()) {
                config.allow::<$task>()?;
                access |= <$task>::requirement().map_or(Access::empty(), |row| row.peer_memory);
            }
        )+};
    }
    permit!(ReadTask, WriteTask, WriteImmTask, CompareSwapTask, FetchAddTask);
    permit!(EventGetTask, EventSetTask, EventAddTask);
    Ok(access)
}

impl Session {
    fn answer(
        &mut self,
        arrival: &Arrival,
        message: &[u8],
        device: &Device,
        access: Access,
        outgoing: &mut Outgoing,
    ) -> Result<(), Failure> {
        let (immediate, bytes) = match (arrival.opcode(), arrival.immediate()) {
            (Opcode::WRITE_WITH_IMM, Some(immediate)) => (immediate, self.look(arrival.message_len())?),
            (_, Some(CONTROL)) => match serde_json::from_slice(message) {
                Ok(Request::Look { bytes }) => (ECHO, self.look(bytes)?),
                Ok(request) => (CONTROL, serde_json::to_vec(&self.reply(request, device, access))?),
                Err(error) => return Err(format!("it speaks another language: {error}").into()),
            },
            (_, Some(immediate)) => (immediate, message.to_vec()),
            (_, None) => {
                self.messages += 1;
                self.bytes += message.len() as u64;
                if !self.echo {
                    return Ok(());
                }
                (ECHO, message.to_vec())
            }
        };
        Ok(outgoing.send(&self.connection, immediate, &bytes)?)
    }

    /// The first bytes of what is shared.
    fn look(&self, len: usize) -> Result<Vec<u8>, Failure> {
        let shared = self.shared.as_ref().ok_or("it writes before anything is shared")?;
        let mut bytes = vec![0; len.min(LONGEST)];
        shared.read(0, &mut bytes)?;
        Ok(bytes)
    }

    fn reply(&mut self, request: Request, device: &Device, access: Access) -> Reply {
        let done = match request {
            Request::Share { bytes, seed, event, echo } => {
                self.share(device, access, bytes, seed, event, echo)
            }
            Request::Count => Ok(Reply::Counted { messages: self.messages, bytes: self.bytes }),
            Request::SetEvent(value) => {
                self.event().and_then(|event| Ok(event.set(value).map(|()| Reply::Event(value))?))
            }
            Request::GetEvent => self.event().and_then(|event| Ok(Reply::Event(event.get()?))),
            Request::Look { .. } => Err("bytes are no reply".into()),
        };
        done.unwrap_or_else(|error| Reply::Refused(error.to_string()))
    }

    fn event(&self) -> Result<&SyncEvent, Failure> {
        Ok(self.event.as_ref().ok_or("there is no event")?)
    }

    fn share(
        &mut self,
        device: &Device,
        access: Access,
        bytes: usize,
        seed: u64,
        event: bool,
        echo: bool,
    ) -> Result<Reply, Failure> {
        if !(1..=MOST_SHARED).contains(&bytes) {
            return Err(format!("{bytes} bytes, 1 to {MOST_SHARED} can be shared").into());
        }
        let shared = Memory::zeroed(bytes)?.shared(device, access).map_err(Error::from)?;
        shared.write(0, &pattern(seed, bytes))?;
        // Memory of a device that lets peers do nothing has no descriptor.
        let memory = match access.intersects(Access::ANY_RDMA) {
            true => shared.export()?.as_bytes().to_vec(),
            false => Vec::new(),
        };
        let event = match event {
            true => Some(SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(device))?),
            false => None,
        };
        let descriptor = event.as_ref().map(SyncEvent::export_net).transpose()?;
        (self.shared, self.event, self.echo) = (Some(shared), event, echo);
        (self.messages, self.bytes) = (0, 0);
        Ok(Reply::Shared { memory, event: descriptor.map(|descriptor| descriptor.as_bytes().to_vec()) })
    }
}

/// Messages on their way to clients.
struct Outgoing {
    queue: Queue<SendImmTask>,
    memory: PrivateMemory,
    flying: VecDeque<Pending<SendImmTask, Buffer>>,
}

impl Outgoing {
    fn send(&mut self, connection: &Connection, immediate: u32, bytes: &[u8]) -> doca_common::Result<()> {
        while self.flying.len() >= SENDS || self.flying.front().is_some_and(Pending::is_done) {
            // One that failed is noticed by its connection.
            if let Some(mut oldest) = self.flying.pop_front() {
                drop(oldest.wait());
            }
        }
        let mut buffer = self.memory.take(LONGEST)?;
        buffer.fill_with(bytes)?;
        self.flying.push_back(self.queue.submit(connection, buffer, immediate).map_err(Error::from)?);
        Ok(())
    }
}
