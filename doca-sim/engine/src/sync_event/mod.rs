//! Sync events: 64-bit counters shared between processors, processes and nodes.
//!
//! The value is eight bytes of registered memory, wherever it lives: in a page of the event's own, at an address or in
//! a buffer that the program gives, or in the process that exported the event. So every access takes the same way as
//! an RDMA atomic, and all of them are atomic against each other.

mod tasks;

pub use tasks::{Conf, Kind};

use crate::access;
use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::ctx::{Ctx, CtxState};
use crate::dev::Dev;
use crate::entry::{Object, Tag};
use crate::fabric::descriptor::{EventDescriptor, ProcessRef, Reach};
use crate::fabric::process::{self, Process};
use crate::fabric::region::{self, Piece};
use crate::fabric::shm::Segment;
use crate::log;
use crate::mmap::Backing;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use tasks::Queue;

/// Rights of peers on an event's value.
const RIGHTS: u32 = access::LOCAL_READ_WRITE | access::ANY_RDMA;

/// Where a publisher or subscriber is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// This process.
    Cpu,
    /// The processor across PCI.
    RemotePci,
    /// A node across the network.
    RemoteNet,
}

/// How the program uses the event; decided once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Not decided.
    Open,
    /// `doca_sync_event_start` and the blocking calls.
    Sync,
    /// `doca_sync_event_as_ctx` and tasks.
    Async,
}

/// Where the program wants the value.
enum Place {
    Own,
    Address(usize),
    Piece(Piece),
}

/// The eight bytes, reachable.
struct Value {
    process: Arc<Process>,
    piece: Piece,
    /// Whether the registration is the event's own, to be withdrawn with it.
    registered: bool,
    _page: Option<Segment>,
}

impl Value {
    fn apply(&self, change: impl Fn(u64) -> Option<u64>) -> Res<u64> {
        let pin = region::pin(&self.process, self.piece, 0).map_err(|refusal| {
            log::error!("the sync event's value cannot be reached: {refusal:?}");
            Code::IO_FAILED
        })?;
        pin.update(change).map_err(|_| Code::IO_FAILED)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if self.registered {
            region::unregister(self.piece.region);
        }
    }
}

/// What `struct doca_sync_event *` points to.
#[repr(C)]
pub struct SyncEvent {
    tag: Tag,
    ctx: Ctx,
    this: Weak<SyncEvent>,
    publisher: Cell<Option<Location>>,
    subscriber: Cell<Option<Location>>,
    /// A second publisher or subscriber was declared; told at start.
    ambiguous: Cell<bool>,
    place: RefCell<Place>,
    mode: Cell<Mode>,
    started: Cell<bool>,
    origin: Option<EventDescriptor>,
    devices: RefCell<Vec<Arc<Dev>>>,
    value: RefCell<Option<Rc<Value>>>,
    exports: RefCell<Vec<Box<[u8]>>>,
    confs: [Cell<Option<Conf>>; Kind::COUNT],
    queue: RefCell<Option<Rc<Queue>>>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for SyncEvent {
    const TAG: u32 = u32::from_le_bytes(*b"sevt");
}

impl SyncEvent {
    fn new(origin: Option<EventDescriptor>, device: Option<Arc<Dev>>) -> Rc<SyncEvent> {
        let event = Rc::new_cyclic(|this| SyncEvent {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            this: this.clone(),
            publisher: Cell::new(None),
            subscriber: Cell::new(None),
            ambiguous: Cell::new(false),
            place: RefCell::new(Place::Own),
            mode: Cell::new(Mode::Open),
            started: Cell::new(false),
            origin,
            devices: RefCell::new(device.into_iter().collect()),
            value: RefCell::new(None),
            exports: RefCell::new(Vec::new()),
            confs: Default::default(),
            queue: RefCell::new(None),
        });
        let weak: Weak<SyncEvent> = Rc::downgrade(&event);
        event.ctx.belong_to(weak);
        event
    }

    /// `doca_sync_event_create`
    pub fn create() -> Rc<SyncEvent> {
        Self::new(None, None)
    }

    /// `doca_sync_event_create_from_export`
    pub fn import(dev: &Dev, bytes: &[u8]) -> Res<Rc<SyncEvent>> {
        if !dev.device().mmap.create_from_export_pci {
            return Err(Code::NOT_SUPPORTED);
        }
        let descriptor = decode(bytes, Reach::Pci)?;
        Ok(Self::new(Some(descriptor), Some(dev.hold()?)))
    }

    /// `doca_sync_event_destroy`
    pub fn retire(&self) -> Res {
        let busy = match self.mode.get() {
            Mode::Open => false,
            Mode::Sync => self.started.get(),
            Mode::Async => self.ctx.state() != CtxState::Idle,
        };
        if busy {
            log::error!("a sync event was destroyed before it was stopped");
            return Err(Code::INVALID_VALUE);
        }
        self.tag.kill();
        self.ctx.retire();
        Ok(())
    }

    /// For configuration calls: not started, not imported.
    fn require_open(&self) -> Res {
        if self.is_started() { Err(Code::BAD_STATE) } else { self.require_own() }
    }

    fn require_own(&self) -> Res {
        if self.origin.is_some() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn is_started(&self) -> bool {
        self.value.borrow().is_some()
    }

    /// `doca_sync_event_add_publisher_location_*`
    pub fn add_publisher(&self, location: Location, dev: Option<&Dev>) -> Res {
        self.declare(&self.publisher, location, dev)
    }

    /// `doca_sync_event_add_subscriber_location_*`
    pub fn add_subscriber(&self, location: Location, dev: Option<&Dev>) -> Res {
        self.declare(&self.subscriber, location, dev)
    }

    fn declare(&self, role: &Cell<Option<Location>>, location: Location, dev: Option<&Dev>) -> Res {
        if self.is_started() {
            return Err(Code::INVALID_VALUE);
        }
        self.require_own()?;
        if let Some(dev) = dev {
            self.devices.borrow_mut().push(dev.hold()?);
        }
        if role.replace(Some(location)).is_some() {
            self.ambiguous.set(true);
        }
        Ok(())
    }

    /// `doca_sync_event_set_addr`
    pub fn set_addr(&self, addr: usize) -> Res {
        if addr == 0 || !addr.is_multiple_of(8) {
            return Err(Code::INVALID_VALUE);
        }
        self.require_open()?;
        *self.place.borrow_mut() = Place::Address(addr);
        Ok(())
    }

    /// `doca_sync_event_set_doca_buf`
    pub fn set_buf(&self, buf: &Buf) -> Res {
        self.require_open()?;
        let mmap = buf.mmap();
        let Backing::Local(region) = mmap.backing() else { return Err(Code::NOT_PERMITTED) };
        if buf.data_len() != 8 || buf.list_len() != 1 || mmap.access() & RIGHTS != RIGHTS {
            log::error!("a sync event's buffer needs 8 bytes of data, no list, and local and RDMA rights");
            return Err(Code::NOT_PERMITTED);
        }
        if !buf.data().is_multiple_of(8) {
            return Err(Code::INVALID_VALUE);
        }
        *self.place.borrow_mut() = Place::Piece(Piece { addr: buf.data() as u64, len: 8, region });
        Ok(())
    }

    /// Makes the value reachable. INVALID_VALUE for missing or repeated locations.
    fn open(&self) -> Res {
        let value = match &self.origin {
            Some(origin) => Value {
                process: process::attach(origin.process).map_err(|_| {
                    log::error!("the process that exported the sync event is gone");
                    Code::INVALID_VALUE
                })?,
                piece: origin.piece(),
                registered: false,
                _page: None,
            },
            None => self.open_own()?,
        };
        *self.value.borrow_mut() = Some(Rc::new(value));
        Ok(())
    }

    fn open_own(&self) -> Res<Value> {
        let complete = self.publisher.get().is_some() && self.subscriber.get().is_some();
        if !complete || self.ambiguous.get() {
            log::error!("a sync event needs one publisher location and one subscriber location");
            return Err(Code::INVALID_VALUE);
        }
        let process = process::local()?.clone();
        let register = |addr: usize| {
            let region = region::register(addr, 8, RIGHTS)?;
            Ok::<_, Code>(Piece { addr: addr as u64, len: 8, region })
        };
        Ok(match &*self.place.borrow() {
            Place::Own => {
                let page = Segment::create(c"doca-sim-event", 8)?;
                let addr = page.address(0, 8).ok_or(Code::UNEXPECTED)?;
                Value { process, piece: register(addr)?, registered: true, _page: Some(page) }
            }
            Place::Address(addr) => Value { process, piece: register(*addr)?, registered: true, _page: None },
            Place::Piece(piece) => Value { process, piece: *piece, registered: false, _page: None },
        })
    }

    /// `doca_sync_event_start`
    pub fn start(&self) -> Res {
        if self.mode.get() == Mode::Async || self.started.get() {
            return Err(Code::INVALID_VALUE);
        }
        self.open()?;
        self.mode.set(Mode::Sync);
        self.started.set(true);
        Ok(())
    }

    /// `doca_sync_event_stop`
    pub fn stop(&self) -> Res {
        if !self.started.replace(false) {
            return Err(Code::INVALID_VALUE);
        }
        self.close();
        Ok(())
    }

    fn close(&self) {
        self.value.take();
        self.exports.borrow_mut().clear();
    }

    /// `doca_sync_event_as_ctx`: `None` once the event has been started the other way.
    pub fn as_ctx(&self) -> Option<&Ctx> {
        if self.mode.get() == Mode::Sync {
            return None;
        }
        self.mode.set(Mode::Async);
        Some(&self.ctx)
    }

    fn value(&self) -> Res<Rc<Value>> {
        self.value.borrow().clone().ok_or(Code::INVALID_VALUE)
    }

    /// For the blocking calls: started in sync mode.
    fn sync_value(&self) -> Res<Rc<Value>> {
        if self.started.get() { self.value() } else { Err(Code::INVALID_VALUE) }
    }

    /// `doca_sync_event_get`
    pub fn get(&self) -> Res<u64> {
        self.sync_value()?.apply(|_| None)
    }

    /// `doca_sync_event_update_set`
    pub fn set(&self, value: u64) -> Res {
        self.sync_value()?.apply(|_| Some(value)).map(drop)
    }

    /// `doca_sync_event_update_add`; gives the value before.
    pub fn add(&self, value: u64) -> Res<u64> {
        self.sync_value()?.apply(|before| Some(before.wrapping_add(value)))
    }

    /// `doca_sync_event_wait_*`: until the masked value satisfies the condition.
    pub fn wait(&self, mask: u64, yields: bool, condition: impl Fn(u64) -> bool) -> Res {
        let value = self.sync_value()?;
        let mut polls = 0u32;
        while !condition(value.apply(|_| None)? & mask) {
            polls = polls.saturating_add(1);
            // A simulated peer may need this very processor.
            if yields || polls > 1000 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// `doca_sync_event_export_to_remote_pci`
    pub fn export_pci(&self, dev: &Dev) -> Res<(*const u8, usize)> {
        let reachable =
            |role: &Cell<Option<Location>>| matches!(role.get(), Some(Location::Cpu | Location::RemotePci));
        self.require_own()?;
        if !reachable(&self.publisher) || !reachable(&self.subscriber) || !dev.device().mmap.export_pci {
            return Err(Code::NOT_SUPPORTED);
        }
        self.export(Reach::Pci)
    }

    /// `doca_sync_event_export_to_remote_net`
    pub fn export_net(&self) -> Res<(*const u8, usize)> {
        self.require_own()?;
        let able = self.devices.borrow().iter().all(|dev| dev.device().rdma.supported);
        if self.publisher.get() != Some(Location::RemoteNet) || !able {
            log::error!(
                "only events with a publisher on the network and devices with RDMA are exported for it"
            );
            return Err(Code::NOT_SUPPORTED);
        }
        self.export(Reach::Rdma)
    }

    fn export(&self, reach: Reach) -> Res<(*const u8, usize)> {
        let value = self.value()?;
        let process = process::local()?.reference();
        let descriptor =
            EventDescriptor { reach, process, region: value.piece.region, addr: value.piece.addr };
        let bytes = descriptor.encode().into_boxed_slice();
        let place = (bytes.as_ptr(), bytes.len());
        // A descriptor stays where it is until the event stops.
        self.exports.borrow_mut().push(bytes);
        Ok(place)
    }
}

fn decode(bytes: &[u8], reach: Reach) -> Res<EventDescriptor> {
    let descriptor = EventDescriptor::decode(bytes).map_err(|bad| {
        log::error!("not a sync event descriptor: {}", bad.0);
        Code::INVALID_VALUE
    })?;
    if descriptor.reach != reach {
        log::error!("the sync event was exported for the other kind of peer");
        return Err(Code::INVALID_VALUE);
    }
    Ok(descriptor)
}

/// What `struct doca_sync_event_remote_net *` points to.
#[repr(C)]
pub struct RemoteNet {
    tag: Tag,
    descriptor: EventDescriptor,
    dev: Arc<Dev>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for RemoteNet {
    const TAG: u32 = u32::from_le_bytes(*b"sern");
}

impl RemoteNet {
    /// `doca_sync_event_remote_net_create_from_export`
    pub fn import(dev: &Dev, bytes: &[u8]) -> Res<RemoteNet> {
        if !dev.device().rdma.supported {
            log::error!("{} has no RDMA to reach sync events of the network with", dev.device().ibdev);
            return Err(Code::NOT_SUPPORTED);
        }
        let descriptor = decode(bytes, Reach::Rdma)?;
        Ok(RemoteNet { tag: Tag::live::<Self>(), descriptor, dev: dev.hold()? })
    }

    /// `doca_sync_event_remote_net_destroy`
    pub fn retire(&self) {
        self.tag.kill();
    }

    /// The value's place at the exporter.
    pub fn piece(&self) -> Piece {
        self.descriptor.piece()
    }

    /// The exporter.
    pub fn owner(&self) -> ProcessRef {
        self.descriptor.process
    }

    /// Whether it was imported for this device.
    pub fn has_dev(&self, dev: &Dev) -> bool {
        std::ptr::eq(&*self.dev, dev)
    }
}
