//! Servers and clients: what `struct doca_comch_server *` and `struct doca_comch_client *` point to.

use super::connection::Connection;
use super::running::Running;
use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::dev::{Dev, DevRep};
use crate::entry::{Object, Tag};
use crate::fabric::channel::{Capacity, End};
use crate::log;
use crate::task::{Task, TaskCallback};
use crate::topology::{self, Device, FuncType, Side};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Messages that a connection holds, unless the program says otherwise.
const DEFAULT_RECV_QUEUE: u32 = 64;

/// `doca_comch_event_msg_recv_cb_t`
pub type MessageCallback = unsafe extern "C" fn(*const Endpoint, *mut u8, u32, *const Connection);
/// `doca_comch_event_connection_status_changed_cb_t`
pub type StatusCallback = unsafe extern "C" fn(*const Endpoint, *const Connection, u8);
/// `doca_comch_event_consumer_cb_t`
pub type ConsumerCallback = unsafe extern "C" fn(*const Endpoint, *const Connection, u32);

/// What `doca_comch_*_task_*_set_conf` sets.
#[derive(Clone, Copy)]
pub struct Conf {
    /// Called when a task has ended well.
    pub success: TaskCallback,
    /// Called when it has not.
    pub failure: TaskCallback,
    /// Tasks in the pool.
    pub count: u32,
}

/// A server or a client.
#[repr(C)]
pub struct Endpoint {
    tag: Tag,
    /// What it is.
    pub end: End,
    ctx: Ctx,
    /// Itself.
    pub this: Weak<Endpoint>,
    dev: Arc<Dev>,
    rep: Option<Arc<DevRep>>,
    /// Name of the server, without NUL.
    pub name: Vec<u8>,
    max_msg_size: Cell<u32>,
    recv_queue_size: Cell<u32>,
    conf: Cell<Option<Conf>>,
    /// Who gets messages.
    pub on_message: Cell<Option<MessageCallback>>,
    /// Who is told of clients that come, and go.
    pub on_status: Cell<Option<[StatusCallback; 2]>>,
    /// Who is told of consumers that come, and go.
    pub on_consumer: Cell<Option<[ConsumerCallback; 2]>>,
    /// Producers and consumers that are alive.
    pub children: Arc<AtomicUsize>,
    running: RefCell<Option<Rc<Running>>>,
    /// What ran last: programs read freed tasks and dead connections until they destroy or restart the object.
    retired: RefCell<Option<Rc<Running>>>,
}

/// A server, as C functions take it.
#[repr(transparent)]
pub struct Server(pub Endpoint);
/// A client, as C functions take it.
#[repr(transparent)]
pub struct Client(pub Endpoint);

// SAFETY: repr(transparent) over a repr(C) that starts with the tag; `Endpoint::new` makes it for the end that it is.
unsafe impl Object for Server {
    const TAG: u32 = u32::from_le_bytes(*b"csrv");
}
// SAFETY: as above.
unsafe impl Object for Client {
    const TAG: u32 = u32::from_le_bytes(*b"ccli");
}

impl Endpoint {
    /// `doca_comch_server_create` with a representor, `doca_comch_client_create` without.
    pub fn new(dev: &Dev, rep: Option<&DevRep>, name: &[u8]) -> Res<Rc<Endpoint>> {
        let caps = &dev.device().comch;
        if name.is_empty() || name.len() >= caps.max_name_len as usize {
            log::error!("names of Comch servers have 1 to {} bytes", caps.max_name_len - 1);
            return Err(Code::INVALID_VALUE);
        }
        if rep.is_some_and(|rep| !std::ptr::eq(rep.info().dev(), dev)) {
            log::error!("the representor was opened through another device than the server's");
            return Err(Code::INVALID_VALUE);
        }
        let (end, tag) = match rep {
            Some(_) => (End::Server, Tag::live::<Server>()),
            None => (End::Client, Tag::live::<Client>()),
        };
        let (dev, rep) = (dev.hold()?, rep.map(DevRep::hold).transpose()?);
        let endpoint = Rc::new_cyclic(|this| Endpoint {
            tag,
            end,
            ctx: Ctx::new(),
            this: this.clone(),
            rep,
            name: name.to_vec(),
            max_msg_size: Cell::new(caps.max_msg_size),
            recv_queue_size: Cell::new(DEFAULT_RECV_QUEUE.min(caps.max_recv_queue_size)),
            dev,
            conf: Cell::new(None),
            on_message: Cell::new(None),
            on_status: Cell::new(None),
            on_consumer: Cell::new(None),
            children: Arc::default(),
            running: RefCell::new(None),
            retired: RefCell::new(None),
        });
        let weak: Weak<Endpoint> = Rc::downgrade(&endpoint);
        endpoint.ctx.belong_to(weak);
        Ok(endpoint)
    }

    /// `doca_comch_server_destroy`, `doca_comch_client_destroy`: IN_USE unless IDLE and without children.
    pub fn retire(&self) -> Res {
        self.ctx.require_idle().map_err(|_| Code::IN_USE)?;
        let children = self.children.load(SeqCst);
        if children > 0 {
            log::error!("{} producers and consumers of the {} are alive", children, self.name());
            return Err(Code::IN_USE);
        }
        self.tag.kill();
        self.ctx.retire();
        Ok(())
    }

    /// The opened device.
    pub fn dev(&self) -> &Arc<Dev> {
        &self.dev
    }

    /// The representor of a server.
    pub fn rep(&self) -> Option<&Arc<DevRep>> {
        self.rep.as_ref()
    }

    /// The simulated device.
    pub fn device(&self) -> &'static Device {
        self.dev.device()
    }

    /// What this end can receive.
    pub fn capacity(&self) -> Capacity {
        Capacity { message: self.max_msg_size.get(), depth: self.recv_queue_size.get() }
    }

    /// `doca_comch_*_set_max_msg_size`
    pub fn set_max_msg_size(&self, size: u32) -> Res {
        self.set(&self.max_msg_size, size, self.device().comch.max_msg_size, "message size")
    }

    /// `doca_comch_*_set_recv_queue_size`
    pub fn set_recv_queue_size(&self, size: u32) -> Res {
        self.set(&self.recv_queue_size, size, self.device().comch.max_recv_queue_size, "receive queue size")
    }

    fn set(&self, field: &Cell<u32>, value: u32, most: u32, what: &str) -> Res {
        self.ctx.require_idle()?;
        if value == 0 || value > most {
            log::error!("a {what} of {value} is not from 1 to the device's {most}");
            return Err(Code::INVALID_VALUE);
        }
        field.set(value);
        Ok(())
    }

    /// `doca_comch_*_task_send_set_conf`
    pub fn set_conf(&self, conf: Conf) -> Res {
        self.ctx.require_idle()?;
        let most = self.device().comch.max_send_tasks;
        if conf.count == 0 || conf.count > most {
            log::error!("{} send tasks are not from 1 to the device's {most}", conf.count);
            return Err(Code::INVALID_VALUE);
        }
        self.conf.set(Some(conf));
        Ok(())
    }

    /// What was set.
    pub fn conf(&self) -> Option<Conf> {
        self.conf.get()
    }

    /// What exists while it is not IDLE. BAD_STATE otherwise.
    pub fn running(&self) -> Res<Rc<Running>> {
        self.running.borrow().clone().ok_or(Code::BAD_STATE)
    }

    /// `doca_comch_*_task_send_alloc_init`
    pub fn message(&self, peer: &Connection, bytes: *const u8, len: u32) -> Res<*const Task> {
        self.ctx.require_running()?;
        let running = self.running()?;
        if running.find(peer).is_none() {
            log::error!("{}: a message to a connection that is over, or is another's", self.name());
            return Err(Code::INVALID_VALUE);
        }
        let most = self.max_msg_size.get();
        if len > most || bytes.is_null() && len > 0 {
            log::error!("{}: a message of {len} bytes; the largest has {most}", self.name());
            return Err(Code::INVALID_VALUE);
        }
        let task = running.pool().ok_or(Code::NO_MEMORY)?.take(&self.ctx, 0)?;
        task.fields.connection.set(std::ptr::from_ref(peer).addr());
        task.fields.pointer.set(bytes.addr());
        task.fields.first.set(len.into());
        Ok(task)
    }

    /// `doca_comch_client_get_connection`
    pub fn own_connection(&self) -> Res<Rc<Connection>> {
        self.ctx.require_running()?;
        self.running()?.only().ok_or(Code::BAD_STATE)
    }

    /// `doca_comch_server_disconnect`
    pub fn disconnect(&self, connection: &Connection) -> Res {
        self.ctx.require_running().map_err(|_| Code::INVALID_VALUE)?;
        self.running()?.disconnect(connection)
    }

    /// The host's device that the server's or the client's function is, by its position in the topology.
    pub fn host_function(&self) -> Res<u32> {
        let Some(rep) = &self.rep else { return Ok(self.dev.index() as u32) };
        let wanted = rep.info().representor();
        let host = || {
            topology::get().ok().into_iter().flat_map(|topology| topology.of(Side::Host)).filter(|device| {
                device.pci == wanted.pci
                    && (device.func_type == FuncType::Sf) == (wanted.func_type == FuncType::Sf)
            })
        };
        let exact = host().find(|device| device.vhca_id == wanted.vhca_id);
        exact.or_else(|| host().next()).map(|device| device.index as u32).ok_or_else(|| {
            log::error!(
                "the topology has no host device at {}, which the representor stands for",
                wanted.pci
            );
            Code::INITIALIZATION
        })
    }
}

/// Whether a device can host servers.
pub fn serves(device: &Device) -> bool {
    device.comch.supported && device.side == Side::Dpu
}

/// Whether a device can host clients.
pub fn connects(device: &Device) -> bool {
    device.comch.supported && device.side == Side::Host
}

impl Context for Endpoint {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        match self.end {
            End::Server => "doca_comch_server",
            End::Client => "doca_comch_client",
        }
    }

    fn kind_name(&self, _kind: u32) -> &'static str {
        "comch_send"
    }

    fn shows_starting(&self) -> bool {
        self.end == End::Client
    }

    fn start(&self) -> Res {
        let able = match self.end {
            End::Server => serves(self.device()),
            End::Client => connects(self.device()),
        };
        if !able {
            log::error!(
                "{}: servers run on devices of the DPU's side, clients on the host's, and {} is on the {}'s; see \
                 DOCA_SIM_SIDE",
                self.name(),
                self.device().ibdev,
                self.device().side,
            );
            return Err(Code::NOT_SUPPORTED);
        }
        self.retired.take();
        let running = Running::start(self)?;
        *self.running.borrow_mut() = Some(running);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.end == End::Server || self.running().is_ok_and(|running| running.only().is_some())
    }

    fn may_stop(&self) -> Res {
        if self.running().is_ok_and(|running| running.has_children()) {
            log::error!(
                "{}: stop with producers or consumers on a connection; destroy them first",
                self.name()
            );
            return Err(Code::IN_USE);
        }
        Ok(())
    }

    fn stop(&self) {
        if let Ok(running) = self.running() {
            running.stop();
        }
    }

    fn stopped(&self) {
        if let Some(running) = self.running.take() {
            running.release();
            *self.retired.borrow_mut() = Some(running);
        }
    }

    fn is_drained(&self) -> bool {
        self.running().map_or(true, |running| running.is_drained())
    }

    fn submit(&self, task: &Task, _flush: bool) -> Res {
        self.running()?.send(self, task)
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        self.running().is_ok_and(|running| running.step(self))
    }

    fn has_work(&self) -> bool {
        self.running().is_ok_and(|running| running.has_work(self))
    }

    fn arm(&self, wake_fd: i32) {
        if let Ok(running) = self.running() {
            running.view().arm(wake_fd);
        }
    }

    fn disarm(&self) {
        if let Ok(running) = self.running() {
            running.view().disarm();
        }
    }

    fn deadline(&self) -> Option<u64> {
        self.running().ok().and_then(|running| running.deadline(self))
    }

    fn pidfds(&self, each: &mut dyn FnMut(i32)) {
        if let Ok(running) = self.running() {
            running.pidfds(each);
        }
    }
}
