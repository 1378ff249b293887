//! The client's part of librdmacm: enough to connect with private data, and to hear of the end.

use crate::Error;
use libc::{c_int, c_void};
use nvme_wire::Layout;
use nvme_wire::cm::{CmReject, RejectStatus};
use std::net::SocketAddrV4;
use std::ptr;
use std::time::{Duration, Instant};

/// `struct rdma_conn_param`.
#[repr(C)]
struct ConnParam {
    private_data: *const u8,
    private_data_len: u8,
    responder_resources: u8,
    initiator_depth: u8,
    flow_control: u8,
    retry_count: u8,
    rnr_retry_count: u8,
    srq: u8,
    qp_num: u32,
}

/// The beginning of `struct rdma_cm_event`.
#[repr(C)]
struct Event {
    id: *mut c_void,
    listen_id: *mut c_void,
    event: c_int,
    status: c_int,
    param: ConnParam,
}

#[link(name = "rdmacm")]
unsafe extern "C" {
    fn rdma_create_event_channel() -> *mut c_int;
    fn rdma_destroy_event_channel(channel: *mut c_int);
    fn rdma_create_id(channel: *mut c_int, id: *mut *mut c_void, context: *mut c_void, space: c_int)
    -> c_int;
    fn rdma_destroy_id(id: *mut c_void) -> c_int;
    fn rdma_resolve_addr(id: *mut c_void, from: *const c_void, to: *const c_void, ms: c_int) -> c_int;
    fn rdma_resolve_route(id: *mut c_void, ms: c_int) -> c_int;
    fn rdma_connect(id: *mut c_void, param: *mut ConnParam) -> c_int;
    fn rdma_get_cm_event(channel: *mut c_int, event: *mut *mut Event) -> c_int;
    fn rdma_ack_cm_event(event: *mut Event) -> c_int;
}

const PS_TCP: c_int = 0x106;
const ADDR_RESOLVED: c_int = 0;
const ROUTE_RESOLVED: c_int = 2;
const CONNECT_RESPONSE: c_int = 5;
const REJECTED: c_int = 8;
const DISCONNECTED: c_int = 10;
/// Status of REJECTED when the program on the other side did it.
const CONSUMER_DEFINED: c_int = 28;
const RESOLVE_MS: c_int = 2000;
/// RDMA Reads that the target may have under way here.
const RESPONDER_RESOURCES: u8 = 16;

/// A channel with one identifier of a client.
pub(crate) struct Client {
    channel: *mut c_int,
    /// Null once it is DOCA's.
    id: *mut c_void,
}

/// What an event carried.
struct Taken {
    event: c_int,
    status: c_int,
    data: Vec<u8>,
}

fn done(call: &'static str, outcome: c_int) -> Result<(), Error> {
    if outcome == 0 { Ok(()) } else { Err(Error::Cm { call, source: std::io::Error::last_os_error() }) }
}

fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: a plain structure, for which zeros are a value.
    let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    (raw.sin_family, raw.sin_port) = (libc::AF_INET as libc::sa_family_t, address.port().to_be());
    raw.sin_addr.s_addr = u32::from(*address.ip()).to_be();
    raw
}

impl Client {
    pub(crate) fn new() -> Result<Self, Error> {
        // SAFETY: the channel is destroyed by `drop`, the out-parameter is a field.
        unsafe {
            let channel = rdma_create_event_channel();
            if channel.is_null() {
                return done("rdma_create_event_channel", -1).map(|()| unreachable!());
            }
            let mut client = Client { channel, id: ptr::null_mut() };
            done("rdma_create_id", rdma_create_id(channel, &mut client.id, ptr::null_mut(), PS_TCP))?;
            Ok(client)
        }
    }

    /// Connects, and gives what the target sent with its answer. The connection waits to be established.
    pub(crate) fn connect(
        &mut self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        data: &[u8],
        limit: Duration,
    ) -> Result<Vec<u8>, Error> {
        let (from, to) = (sockaddr(from), sockaddr(to));
        let mut param = ConnParam {
            private_data: data.as_ptr(),
            private_data_len: u8::try_from(data.len())
                .map_err(|_| Error::Usage("private data have at most 255 bytes".into()))?,
            responder_resources: RESPONDER_RESOURCES,
            initiator_depth: 0,
            flow_control: 0,
            retry_count: 7,
            rnr_retry_count: 7,
            srq: 0,
            qp_num: 0,
        };
        let until = Instant::now() + limit;
        // SAFETY: the identifier is ours, addresses and parameters are locals that are copied.
        unsafe {
            let (from, to) = (ptr::from_ref(&from).cast(), ptr::from_ref(&to).cast());
            done("rdma_resolve_addr", rdma_resolve_addr(self.id, from, to, RESOLVE_MS))?;
            self.expect(ADDR_RESOLVED, "ADDR_RESOLVED", until)?;
            done("rdma_resolve_route", rdma_resolve_route(self.id, RESOLVE_MS))?;
            self.expect(ROUTE_RESOLVED, "ROUTE_RESOLVED", until)?;
            done("rdma_connect", rdma_connect(self.id, &mut param))?;
        }
        self.expect(CONNECT_RESPONSE, "CONNECT_RESPONSE", until)
    }

    /// The identifier, which whoever gets it destroys.
    pub(crate) fn give(&mut self) -> *mut c_void {
        std::mem::replace(&mut self.id, ptr::null_mut())
    }

    /// Whether the connection's end was told.
    pub(crate) fn disconnected(&self) -> Result<bool, Error> {
        while let Some(taken) = self.take(Instant::now())? {
            if taken.event == DISCONNECTED {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn expect(&self, event: c_int, wanted: &'static str, until: Instant) -> Result<Vec<u8>, Error> {
        let start = Instant::now();
        let Some(taken) = self.take(until)? else {
            return Err(Error::Timeout { what: wanted.to_owned(), after: start.elapsed() });
        };
        match taken.event {
            got if got == event => Ok(taken.data),
            REJECTED if taken.status == CONSUMER_DEFINED => {
                let reject = CmReject::read(&taken.data).unwrap_or_default();
                Err(Error::Rejected(RejectStatus(reject.status.0)))
            }
            REJECTED => Err(Error::Refused(taken.status)),
            got => Err(Error::Event { wanted, event: got, status: taken.status }),
        }
    }

    fn take(&self, until: Instant) -> Result<Option<Taken>, Error> {
        // SAFETY: a channel begins with its descriptor, and lives as long as `self`; an event is read before it is
        // acknowledged, and its private data have the length that it says.
        unsafe {
            let mut poll = libc::pollfd { fd: *self.channel, events: libc::POLLIN, revents: 0 };
            let left = until.saturating_duration_since(Instant::now()).as_millis().min(i32::MAX as u128);
            match libc::poll(&mut poll, 1, left as c_int) {
                0 => return Ok(None),
                1 => {}
                _ => return done("poll", -1).map(|()| None),
            }
            let mut event = ptr::null_mut();
            done("rdma_get_cm_event", rdma_get_cm_event(self.channel, &mut event))?;
            let Event { event: kind, status, ref param, .. } = *event;
            let data = match param.private_data.is_null() {
                true => Vec::new(),
                false => {
                    std::slice::from_raw_parts(param.private_data, param.private_data_len.into()).to_vec()
                }
            };
            done("rdma_ack_cm_event", rdma_ack_cm_event(event))?;
            Ok(Some(Taken { event: kind, status, data }))
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: made by `new`; every event that was taken is acknowledged.
        unsafe {
            if !self.id.is_null() {
                rdma_destroy_id(self.id);
            }
            rdma_destroy_event_channel(self.channel);
        }
    }
}
