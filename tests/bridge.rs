//! Connections that this program accepts by its own librdmacm loop and DOCA takes over. The librdmacm is the
//! simulated one; the client is a DOCA context in the same process.

mod support;

use doca::rdma::{
    Accepted, CmId, Config, Connection, ConnectionState, Rdma, ReceiveTask, SendTask, TransportType,
};
use doca::{Code, Memory, PrivateMemory, ProgressEngine, Refusal};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::time::{Duration, Instant};
use support::{LIMIT, address, device, free_port};

/// The beginning of `struct rdma_cm_event`.
#[repr(C)]
struct Event {
    id: *mut c_void,
    listener: *mut c_void,
    kind: c_int,
    status: c_int,
}

const CONNECT_REQUEST: c_int = 4;
const ESTABLISHED: c_int = 9;
const DISCONNECTED: c_int = 10;
const PS_TCP: c_int = 0x106;

/// Functions of librdmacm, which is loaded by its path so that no other one is found.
struct Cm(*mut c_void);

impl Cm {
    fn load() -> Self {
        let dir = std::env::var("DOCA_DIR").expect("DOCA_DIR names the SDK of the simulator");
        let library = format!("lib/{}-linux-gnu/doca-sim-rdmacm/librdmacm.so.1", std::env::consts::ARCH);
        let path = CString::new(format!("{dir}/{library}")).unwrap();
        // SAFETY: a terminated path; the library runs no code that the test process could not run twice.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        // SAFETY: the last error of this thread, a terminated text.
        assert!(!library.is_null(), "{:?}", unsafe { CStr::from_ptr(libc::dlerror()) });
        Cm(library)
    }

    /// A function by its name.
    ///
    /// # Safety
    ///
    /// `F` is the type of the function.
    unsafe fn get<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: a loaded library and a terminated name.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr().cast::<c_char>()) };
        assert!(!address.is_null(), "{name:?}");
        // SAFETY: not null, and `F` is its type as the caller says.
        unsafe { std::mem::transmute_copy(&address) }
    }
}

/// A listener with its channel.
struct Listener {
    cm: Cm,
    channel: *mut c_int,
    id: *mut c_void,
}

type Create = unsafe extern "C" fn(*mut c_int, *mut *mut c_void, *mut c_void, c_int) -> c_int;
type Bind = unsafe extern "C" fn(*mut c_void, *const libc::sockaddr_in) -> c_int;

impl Listener {
    fn new(port: u16) -> Self {
        let ip = device().info().ipv4_address().unwrap().unwrap();
        let cm = Cm::load();
        let mut id = std::ptr::null_mut();
        // SAFETY: the types are those of `rdma/rdma_cma.h`, and all pointers are to live objects.
        unsafe {
            let create_channel: unsafe extern "C" fn() -> *mut c_int = cm.get(c"rdma_create_event_channel");
            let channel = create_channel();
            assert!(!channel.is_null());
            let mut at: libc::sockaddr_in = std::mem::zeroed();
            (at.sin_family, at.sin_port) = (libc::AF_INET as libc::sa_family_t, port.to_be());
            at.sin_addr.s_addr = u32::from(ip).to_be();
            assert_eq!(
                cm.get::<Create>(c"rdma_create_id")(channel, &mut id, std::ptr::null_mut(), PS_TCP),
                0
            );
            assert_eq!(cm.get::<Bind>(c"rdma_bind_addr")(id, &at), 0);
            let listen: unsafe extern "C" fn(*mut c_void, c_int) -> c_int = cm.get(c"rdma_listen");
            assert_eq!(listen(id, 8), 0);
            Listener { cm, channel, id }
        }
    }

    /// The identifier of the next event, which must be of this kind, and come while the engine is progressed.
    fn take(&self, engine: &ProgressEngine, wanted: c_int) -> *mut c_void {
        let deadline = Instant::now() + LIMIT;
        // SAFETY: a channel begins with its descriptor; the types are those of `rdma/rdma_cma.h`.
        unsafe {
            let mut poll = libc::pollfd { fd: *self.channel, events: libc::POLLIN, revents: 0 };
            while libc::poll(&mut poll, 1, 1) != 1 {
                assert!(Instant::now() < deadline, "no event {wanted}");
                engine.progress().unwrap();
            }
            let get: unsafe extern "C" fn(*mut c_int, *mut *mut Event) -> c_int =
                self.cm.get(c"rdma_get_cm_event");
            let acknowledge: unsafe extern "C" fn(*mut Event) -> c_int = self.cm.get(c"rdma_ack_cm_event");
            let mut event = std::ptr::null_mut();
            assert_eq!(get(self.channel, &mut event), 0);
            let Event { id, kind, status, listener: _ } = event.read();
            assert_eq!(acknowledge(event), 0);
            assert_eq!((kind, status), (wanted, 0));
            id
        }
    }

    /// The next request, for DOCA.
    fn request(&self, engine: &ProgressEngine) -> CmId {
        let id = self.take(engine, CONNECT_REQUEST);
        // SAFETY: it came with a request, nobody has answered it, and its channel lives on.
        unsafe { CmId::from_raw(id) }.unwrap()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: made by `new` and destroyed once; the types are those of `rdma/rdma_cma.h`.
        unsafe {
            let destroy_id: unsafe extern "C" fn(*mut c_void) -> c_int = self.cm.get(c"rdma_destroy_id");
            let destroy_channel: unsafe extern "C" fn(*mut c_int) =
                self.cm.get(c"rdma_destroy_event_channel");
            destroy_id(self.id);
            destroy_channel(self.channel);
        }
    }
}

fn configure() -> Config {
    let mut config = Rdma::configure(&device()).unwrap();
    config.set_gid_roce_v2().unwrap();
    config.set_max_num_connections(2).unwrap();
    config
}

/// A server that listens by librdmacm, and a client that listens by nothing. Each has a connection with itself, and room
/// for one more.
struct Peers {
    server: Rdma,
    client: Rdma,
    _own: [Connection; 2],
    sends: [doca::rdma::Queue<SendTask>; 2],
    receives: [doca::rdma::Queue<ReceiveTask>; 2],
    memory: PrivateMemory,
    listener: Listener,
    port: u16,
    engine: ProgressEngine,
}

impl Peers {
    fn new() -> Self {
        let port = free_port();
        let engine = ProgressEngine::new().unwrap();
        let memory = Memory::zeroed(4096).unwrap().private(&device()).unwrap();
        let [(server, own, server_sends, server_receives), (client, clients_own, sends, receives)] = [(); 2]
            .map(|()| {
                let mut config = configure();
                let (sends, receives) = (config.enable(2).unwrap(), config.enable(2).unwrap());
                let (rdma, own) = support::alone(config.start(&engine).unwrap());
                let (sends, receives) = (rdma.queue(sends).unwrap(), rdma.queue(receives).unwrap());
                (rdma, own, sends, receives)
            });
        Peers {
            server,
            client,
            _own: [own, clients_own],
            sends: [server_sends, sends],
            receives: [server_receives, receives],
            memory,
            listener: Listener::new(port),
            port,
            engine,
        }
    }

    /// Both ends of a connection.
    fn connect(&self) -> (Connection, Connection) {
        let connecting = self.client.connect_addr(address(self.port)).unwrap();
        let bridging = self.server.bridge(self.listener.request(&self.engine)).unwrap();
        let accepted: Accepted = bridging.accept(b"welcome").unwrap();
        let there = connecting.wait_for(LIMIT).unwrap();
        self.listener.take(&self.engine, ESTABLISHED);
        (accepted.established().unwrap(), there)
    }
}

#[test]
fn a_bridged_connection_carries_messages_both_ways() {
    let peers = Peers::new();
    let (here, there) = peers.connect();
    assert_eq!((here.state(), there.state()), (ConnectionState::Connected, ConnectionState::Connected));
    for (from, to, on, by) in [(0, 1, &here, &there), (1, 0, &there, &here)] {
        let mut receive = peers.receives[to].submit(peers.memory.take(8).unwrap()).unwrap();
        let mut message = peers.memory.take(8).unwrap();
        message.fill(from as u8 + 1);
        peers.sends[from].submit(on, message).unwrap().wait_for(LIMIT).unwrap();
        let received = receive.wait_for(LIMIT).unwrap();
        assert_eq!((received.connection(), received.buffer[7]), (by.id(), from as u8 + 1));
    }
    // The channel tells about the end, and the program tells DOCA.
    there.disconnect().unwrap();
    peers.listener.take(&peers.engine, DISCONNECTED);
    here.disconnect().unwrap();
    assert_eq!((here.state(), there.state()), (ConnectionState::Disconnected, ConnectionState::Disconnected));
    drop((here, there));
    // Once it is wound down, its place is free again.
    while peers.engine.progress().unwrap() {}
    let (here, there) = peers.connect();
    here.disconnect().unwrap();
    there.wait_disconnected_for(LIMIT).unwrap();
}

#[test]
fn a_request_that_is_dropped_rejects_the_client() {
    let peers = Peers::new();
    let connecting = peers.client.connect_addr(address(peers.port)).unwrap();
    let bridging = peers.server.bridge(peers.listener.request(&peers.engine)).unwrap();
    let failed = bridging.accept(&[0; 256]).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::TooLong));
    drop(failed.value);
    assert!(connecting.wait_for(LIMIT).is_err());
    // What was dropped later ends too.
    let connecting = peers.client.connect_addr(address(peers.port)).unwrap();
    let accepted = peers.server.bridge(peers.listener.request(&peers.engine)).unwrap().accept(b"").unwrap();
    let there = connecting.wait_for(LIMIT).unwrap();
    drop(accepted);
    there.wait_disconnected_for(LIMIT).unwrap();
}

#[test]
fn what_doca_refuses_is_consumed_and_what_it_was_not_asked_comes_back() {
    let peers = Peers::new();
    let (_here, _there) = peers.connect();
    let connecting = peers.client.connect_addr(address(peers.port));
    assert_eq!(connecting.unwrap_err().code(), Some(Code::FULL), "the client has two connections");
    let engine = ProgressEngine::new().unwrap();
    let other = configure().start(&engine).unwrap();
    let connecting = other.connect_addr(address(peers.port)).unwrap();
    let failed = peers.server.bridge(peers.listener.request(&engine)).unwrap_err();
    assert_eq!((failed.error.code(), failed.value.is_none()), (Some(Code::FULL), true));
    assert!(connecting.wait_for(LIMIT).is_err(), "the client is told");

    // Nor does RDMA CM connect over DC.
    let mut dynamic = configure();
    dynamic.set_transport_type(TransportType::DC).unwrap();
    let dynamic = dynamic.start(&engine).unwrap().running_within(LIMIT).unwrap();
    let connecting = other.connect_addr(address(peers.port)).unwrap();
    let failed = dynamic.bridge(peers.listener.request(&engine)).unwrap_err();
    assert_eq!((failed.error.code(), failed.value.is_none()), (Some(Code::NOT_SUPPORTED), true));
    assert!(connecting.wait_for(LIMIT).is_err(), "the client is told");

    let connecting = other.connect_addr(address(peers.port)).unwrap();
    let request = peers.listener.request(&engine);
    let Peers { server, listener, engine: servers, .. } = peers;
    // A context that was stopped with its engine asks DOCA nothing.
    drop(servers);
    let failed = server.bridge(request).unwrap_err();
    assert_eq!(failed.error.refusal(), Some(Refusal::Stale));
    let id = failed.value.expect("the identifier is the program's still").into_raw();
    // SAFETY: the types are those of `rdma/rdma_cma.h`; the request was not answered, and is destroyed once.
    unsafe {
        let reject: unsafe extern "C" fn(*mut c_void, *const c_void, u8) -> c_int =
            listener.cm.get(c"rdma_reject");
        let destroy: unsafe extern "C" fn(*mut c_void) -> c_int = listener.cm.get(c"rdma_destroy_id");
        assert_eq!((reject(id, std::ptr::null(), 0), destroy(id)), (0, 0));
    }
    assert!(connecting.wait_for(Duration::from_secs(10)).is_err());
}
