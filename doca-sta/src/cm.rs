//! The RDMA CM listener of a target. DOCA has none for storage: the application listens, and gives requests away.
//!
//! This and the bridge of `doca-rdma` are the only places that use librdmacm, since DOCA's calls take its identifiers.
//!
//! ```text
//! Listener ── next ──> CmEvent::Request(request) ── Io::accept(request, data) ──> Qp    (maybe on another thread)
//!                                                └─ request.reject(data)
//!                      CmEvent::Established(number), CmEvent::Disconnected(number)      (number of that request)
//! ```

use crate::raw::cm::{Channel, CmId, Listening, TakenRequest};
use doca_common::Result;
use std::ffi::c_void;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names a connection in the events of its listener.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CmNumber(u64);

/// Requests that may wait to be taken.
const BACKLOG: i32 = 128;

/// Listens at an address. Dropping it stops listening; connections stay.
#[derive(Debug)]
pub struct Listener {
    listening: Listening,
    address: SocketAddr,
}

/// What came to a listener.
#[derive(Debug)]
#[non_exhaustive]
pub enum CmEvent {
    /// A client wants to connect.
    Request(Request),
    /// The client confirmed the connection.
    Established(CmNumber),
    /// The client has gone, or the connection could not be made.
    Disconnected(CmNumber),
    /// Anything else, by librdmacm's number and status.
    Other {
        /// `enum rdma_cm_event_type`
        kind: i32,
        /// 0, or why.
        status: i32,
    },
}

/// A client that wants to connect. It may cross to the thread of the IO context that takes it. Dropping it turns the
/// client away.
pub struct Request {
    /// There until it is given away.
    id: Option<CmId>,
    number: CmNumber,
    device: Option<String>,
    private_data: Vec<u8>,
    initiator_depth: u8,
    ports: (u16, u16),
}

impl Listener {
    /// Listens: `rdma_listen`.
    ///
    /// # Errors
    ///
    /// The operating system's, with the address: in use, or of no RDMA device.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let listening = Listening::new(address, BACKLOG).map_err(|error| error.with(address.to_string()))?;
        let mut address = address;
        address.set_port(listening.port());
        Ok(Listener { listening, address })
    }

    /// Where it listens; with the port that was chosen, if any was free to choose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next event, if one waits. It is acknowledged already, so whoever ends a queue pair does not wait for it.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn next(&self) -> Result<Option<CmEvent>> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let taken = self.listening.take(|| NUMBER.fetch_add(1, Ordering::Relaxed))?;
        Ok(taken.map(|taken| {
            let number = CmNumber(taken.number);
            match (taken.kind, taken.request) {
                (_, Some(request)) => CmEvent::Request(Request::new(request, number)),
                (ESTABLISHED, None) => CmEvent::Established(number),
                (CONNECT_ERROR | UNREACHABLE | REJECTED | DISCONNECTED | DEVICE_REMOVAL, None)
                    if number.0 != 0 =>
                {
                    CmEvent::Disconnected(number)
                }
                (kind, None) => CmEvent::Other { kind, status: taken.status },
            }
        }))
    }
}

// `enum rdma_cm_event_type`
const CONNECT_ERROR: i32 = 6;
const UNREACHABLE: i32 = 7;
const REJECTED: i32 = 8;
const ESTABLISHED: i32 = 9;
const DISCONNECTED: i32 = 10;
const DEVICE_REMOVAL: i32 = 11;

/// Readable while an event waits.
impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listening.descriptor()
    }
}

impl Request {
    fn new(request: TakenRequest, number: CmNumber) -> Self {
        let TakenRequest { id, device, private_data, initiator_depth, ports } = request;
        Request { id: Some(id), number, device, private_data, initiator_depth, ports }
    }

    /// What later events of the connection say.
    pub fn number(&self) -> CmNumber {
        self.number
    }

    /// The ibdev name of the device that it came to.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// What the client sent along; RDMA CM pads it with zeros.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// RDMA reads that the client serves at a time. Without any, no data can be fetched from it.
    pub fn initiator_depth(&self) -> u8 {
        self.initiator_depth
    }

    /// Ports of this side and of the client.
    pub fn ports(&self) -> (u16, u16) {
        self.ports
    }

    /// Turns the client away with up to 148 bytes: `rdma_reject`.
    pub fn reject(mut self, data: &[u8]) {
        if let Some(id) = self.id.take() {
            id.reject(data);
        }
    }

    /// Gives the identifier away, for a queue pair that is not STA's: `struct rdma_cm_id *`, with the request on it that is to be answered by
    /// librdmacm or by the bridge of `doca-rdma`. Its events keep coming to the listener, under [its number](Request::number).
    ///
    /// Whoever has it answers the request and destroys the identifier, and then drops the channel.
    pub fn into_raw(mut self) -> Option<(*mut c_void, CmChannel)> {
        self.id.take().map(|id| {
            let channel = CmChannel { _channel: id.channel() };
            (id.into_raw(), channel)
        })
    }

    /// The identifier, given away.
    pub(crate) fn into_id(mut self) -> Option<CmId> {
        self.id.take()
    }
}

/// Keeps the event channel that an identifier reports to, after [`Request::into_raw`].
#[derive(Debug)]
pub struct CmChannel {
    _channel: Arc<Channel>,
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            id.reject(&[]);
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} from port {})", self.device.as_deref().unwrap_or("?"), self.ports.1)
    }
}
