//! The part of librdmacm that a listener needs. Layouts and numbers are those of `rdma/rdma_cma.h`, which have not
//! changed since its first release.

use doca_common::{Error, Result};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PS_TCP: c_int = 0x0106;

/// `struct rdma_event_channel`
#[repr(C)]
struct EventChannel {
    fd: c_int,
}

/// The beginning of `struct rdma_cm_id`.
#[repr(C)]
struct Id {
    verbs: *mut Verbs,
    channel: *mut EventChannel,
    context: *mut c_void,
}

/// The beginning of `struct ibv_context`.
#[repr(C)]
struct Verbs {
    device: *mut VerbsDevice,
}

/// The beginning of `struct ibv_device`.
#[repr(C)]
struct VerbsDevice {
    ops: [*mut c_void; 2],
    node_type: c_int,
    transport_type: c_int,
    name: [c_char; 64],
}

/// The beginning of `struct rdma_cm_event`, with its connection parameters.
#[repr(C)]
struct RawEvent {
    id: *mut Id,
    listener: *mut Id,
    kind: c_int,
    status: c_int,
    private_data: *const c_void,
    private_data_len: u8,
    responder_resources: u8,
    initiator_depth: u8,
}

#[link(name = "rdmacm")]
unsafe extern "C" {
    fn rdma_create_event_channel() -> *mut EventChannel;
    fn rdma_destroy_event_channel(channel: *mut EventChannel);
    fn rdma_create_id(channel: *mut EventChannel, id: *mut *mut Id, context: *mut c_void, ps: c_int)
    -> c_int;
    fn rdma_destroy_id(id: *mut Id) -> c_int;
    fn rdma_bind_addr(id: *mut Id, address: *mut libc::sockaddr) -> c_int;
    fn rdma_listen(id: *mut Id, backlog: c_int) -> c_int;
    fn rdma_reject(id: *mut Id, private_data: *const c_void, len: u8) -> c_int;
    fn rdma_get_cm_event(channel: *mut EventChannel, event: *mut *mut RawEvent) -> c_int;
    fn rdma_ack_cm_event(event: *mut RawEvent) -> c_int;
    fn rdma_get_src_port(id: *mut Id) -> u16;
    fn rdma_get_dst_port(id: *mut Id) -> u16;
}

/// An event channel. Identifiers that report to it keep it.
#[derive(Debug)]
pub(crate) struct Channel {
    raw: NonNull<EventChannel>,
    /// Whether librdmacm did not take an event back: it would wait for that for ever when an identifier is destroyed.
    is_stuck: AtomicBool,
}

// SAFETY: librdmacm's functions may be called from any thread.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Channel {
    fn new() -> Result<Self> {
        const CALL: &str = "rdma_create_event_channel";
        // SAFETY: takes nothing.
        let channel = NonNull::new(unsafe { rdma_create_event_channel() });
        let channel = channel.ok_or_else(|| Error::system(CALL))?;
        let channel = Channel { raw: channel, is_stuck: AtomicBool::new(false) };
        // SAFETY: an open descriptor; reading events must not block.
        let flags = unsafe { libc::fcntl(channel.fd(), libc::F_GETFL) };
        // SAFETY: as above.
        if flags < 0 || unsafe { libc::fcntl(channel.fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
            return Err(Error::system("fcntl"));
        }
        Ok(channel)
    }

    fn fd(&self) -> RawFd {
        // SAFETY: alive until dropped.
        unsafe { self.raw.as_ref().fd }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if !*self.is_stuck.get_mut() {
            // SAFETY: made above; every identifier that reports to it is gone, since each keeps it.
            unsafe { rdma_destroy_event_channel(self.raw.as_ptr()) };
        }
    }
}

/// An identifier of librdmacm that is ours to end.
#[derive(Debug)]
pub(crate) struct CmId {
    id: NonNull<Id>,
    channel: Arc<Channel>,
}

// SAFETY: librdmacm's functions may be called from any thread.
unsafe impl Send for CmId {}

impl CmId {
    /// The channel, for whoever gives the identifier away.
    pub(crate) fn channel(&self) -> Arc<Channel> {
        self.channel.clone()
    }

    /// Gives it away.
    pub(crate) fn into_raw(self) -> *mut c_void {
        let id = self.id.as_ptr().cast();
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: read once from what is not dropped; the taker of the identifier keeps the channel by a clone.
        drop(unsafe { ptr::read(&this.channel) });
        id
    }

    /// Turns the client away.
    pub(crate) fn reject(self, data: &[u8]) {
        // SAFETY: alive, with a request that nobody answered; the bytes are read before it returns.
        let rejected =
            unsafe { rdma_reject(self.id.as_ptr(), data.as_ptr().cast(), data.len().min(148) as u8) };
        logged("rdma_reject", rejected);
    }

    /// What later events of it say.
    fn set_number(&mut self, number: u64) {
        // SAFETY: alive, and ours: librdmacm does not touch the context.
        unsafe { (*self.id.as_ptr()).context = ptr::without_provenance_mut(number as usize) };
    }

    /// The name of the device that it is bound to.
    fn device(&self) -> Option<String> {
        // SAFETY: alive; the structures of verbs live as long as the identifier, and the name is terminated.
        unsafe {
            let verbs = NonNull::new((*self.id.as_ptr()).verbs)?;
            let device = NonNull::new(verbs.as_ref().device)?;
            let name = CStr::from_ptr(&raw const (*device.as_ptr()).name as *const c_char);
            name.to_str().ok().map(str::to_owned)
        }
    }

    fn ports(&self) -> (u16, u16) {
        // SAFETY: alive.
        unsafe {
            (
                u16::from_be(rdma_get_src_port(self.id.as_ptr())),
                u16::from_be(rdma_get_dst_port(self.id.as_ptr())),
            )
        }
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        if self.channel.is_stuck.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: ours, and its events were acknowledged when they were taken.
        logged("rdma_destroy_id", unsafe { rdma_destroy_id(self.id.as_ptr()) });
    }
}

/// What came to a channel.
pub(crate) struct Taken {
    /// `enum rdma_cm_event_type`
    pub(crate) kind: c_int,
    pub(crate) status: c_int,
    /// The number of the identifier, but for a request.
    pub(crate) number: u64,
    pub(crate) request: Option<TakenRequest>,
}

/// What came with a request.
pub(crate) struct TakenRequest {
    pub(crate) id: CmId,
    pub(crate) device: Option<String>,
    pub(crate) private_data: Vec<u8>,
    /// RDMA reads that the peer serves at a time.
    pub(crate) initiator_depth: u8,
    pub(crate) ports: (u16, u16),
}

/// A listening identifier, with its channel.
#[derive(Debug)]
pub(crate) struct Listening {
    id: CmId,
}

pub(crate) const CONNECT_REQUEST: c_int = 4;

/// Fails as librdmacm's functions do.
fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::system(call)) }
}

/// The same where nobody can be given a value; whether it went well.
fn logged(call: &'static str, code: c_int) -> bool {
    check(call, code).map_err(|error| log::warn!("{error}")).is_ok()
}

impl Listening {
    pub(crate) fn new(address: SocketAddr, backlog: c_int) -> Result<Self> {
        let channel = Arc::new(Channel::new()?);
        let mut id = ptr::null_mut();
        // SAFETY: a live channel, and the out-parameter is a local.
        check("rdma_create_id", unsafe {
            rdma_create_id(channel.raw.as_ptr(), &mut id, ptr::null_mut(), PS_TCP)
        })?;
        let id = NonNull::new(id).ok_or_else(|| Error::system("rdma_create_id"))?;
        let id = CmId { id, channel };
        // SAFETY: alive; an address of its family, which is copied.
        unsafe {
            match address {
                SocketAddr::V4(address) => {
                    let mut at: libc::sockaddr_in = std::mem::zeroed();
                    at.sin_family = libc::AF_INET as libc::sa_family_t;
                    at.sin_port = address.port().to_be();
                    at.sin_addr.s_addr = u32::from(*address.ip()).to_be();
                    check("rdma_bind_addr", rdma_bind_addr(id.id.as_ptr(), (&raw mut at).cast()))?;
                }
                SocketAddr::V6(address) => {
                    let mut at: libc::sockaddr_in6 = std::mem::zeroed();
                    at.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                    at.sin6_port = address.port().to_be();
                    at.sin6_addr.s6_addr = address.ip().octets();
                    at.sin6_scope_id = address.scope_id();
                    check("rdma_bind_addr", rdma_bind_addr(id.id.as_ptr(), (&raw mut at).cast()))?;
                }
            }
            check("rdma_listen", rdma_listen(id.id.as_ptr(), backlog))?;
        }
        Ok(Listening { id })
    }

    pub(crate) fn port(&self) -> u16 {
        self.id.ports().0
    }

    /// A copy of the channel's descriptor, readable while an event waits.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: open as long as the channel, which this keeps.
        unsafe { BorrowedFd::borrow_raw(self.id.channel.fd()) }
    }

    /// The next event if one waits. It is acknowledged before this returns; `number` names the identifier of a request
    /// from then on.
    pub(crate) fn take(&self, number: impl FnOnce() -> u64) -> Result<Option<Taken>> {
        let mut event = ptr::null_mut();
        // SAFETY: a live channel, and the out-parameter is a local.
        let taken = unsafe { rdma_get_cm_event(self.id.channel.raw.as_ptr(), &mut event) };
        if let Err(error) = check("rdma_get_cm_event", taken) {
            return match error.os_error().map(|error| error.kind()) {
                Some(io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: an event that was not acknowledged yet, so it and its private data are valid; its identifier lives
        // until destroyed, which waits for the acknowledgement. That of a request is new and ours.
        let taken = unsafe {
            let raw = &*event;
            let request = (raw.kind == CONNECT_REQUEST).then(|| NonNull::new(raw.id)).flatten().map(|id| {
                let mut id = CmId { id, channel: self.id.channel.clone() };
                id.set_number(number());
                let private_data = if raw.private_data.is_null() {
                    Vec::new()
                } else {
                    std::slice::from_raw_parts(raw.private_data.cast::<u8>(), raw.private_data_len.into())
                        .to_vec()
                };
                let (device, ports) = (id.device(), id.ports());
                TakenRequest { id, device, private_data, initiator_depth: raw.initiator_depth, ports }
            });
            let number = if raw.id.is_null() { 0 } else { (*raw.id).context.addr() as u64 };
            Taken { kind: raw.kind, status: raw.status, number, request }
        };
        // SAFETY: taken above, once.
        if !logged("rdma_ack_cm_event", unsafe { rdma_ack_cm_event(event) }) {
            self.id.channel.is_stuck.store(true, Ordering::Relaxed);
        }
        Ok(Some(taken))
    }
}
