//! Memory maps: one range of memory, who may touch it, and how other processes come to know it.
//!
//! A map is shared by the program and by the buffers over it: each buffer holds an [`Arc`], so the number of
//! buffers is the number of holders beside the program, and a buffer never points to a map that is gone.

use crate::access;
use crate::code::{Code, Res};
use crate::dev::Dev;
use crate::entry::{Object, Tag};
use crate::fabric::descriptor::{MemoryDescriptor, Reach};
use crate::fabric::region::{self, RegionId};
use crate::lock::lock;
use crate::profile;
use crate::topology::Device;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, Weak};

/// `doca_mmap_memrange_free_cb_t`
pub type FreeCallback = unsafe extern "C" fn(addr: *mut c_void, len: usize, cookie: *mut c_void);

/// Where the memory of a map is.
#[derive(Clone, Copy, Debug)]
pub enum Backing {
    /// Within this device's own reach, in this process or across PCI; the registration, which is stale unless the map is
    /// started.
    Local(RegionId),
    /// Across the network, in the process that exported it.
    Remote(MemoryDescriptor),
}

/// The rights of a map that sets none: programs that copy between maps of their own set none and write all the same.
const DEFAULT_ACCESS: u32 = access::LOCAL_READ_WRITE;

/// `struct doca_mmap`
#[repr(C)]
#[derive(Debug)]
pub struct Mmap {
    tag: Tag,
    me: Weak<Mmap>,
    origin: Option<MemoryDescriptor>,
    started: AtomicBool,
    thread_safe: AtomicBool,
    addr: AtomicUsize,
    /// Bytes; 0 until the range is set.
    len: AtomicUsize,
    access: AtomicU32,
    /// The devices, as bits by their position in the topology.
    devices: AtomicU64,
    region_index: AtomicU32,
    region_generation: AtomicU32,
    rest: Mutex<Rest>,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for Mmap {
    const TAG: u32 = u32::from_le_bytes(*b"mmap");
}

/// What no data path reads.
#[derive(Debug)]
struct Rest {
    max_devices: u32,
    devices: Vec<Arc<Dev>>,
    user_data: u64,
    free: Option<(FreeCallback, Cookie)>,
    /// Whether the map was started with the callback in place, so that destroying it calls it.
    free_due: bool,
    ever_started: bool,
    exports: Vec<Export>,
}

/// The program's pointer, which we only hand back.
#[derive(Clone, Copy, Debug)]
struct Cookie(*mut c_void);

// SAFETY: the pointer is never followed here; the program gets it back on the thread that destroys the map.
unsafe impl Send for Cookie {}

/// A descriptor that was handed out. It stays where it is until the map stops.
#[derive(Debug)]
struct Export {
    reach: Reach,
    device: u32,
    bytes: Arc<[u8]>,
}

/// What is left to do when a map is gone: telling the program that its memory is free.
#[derive(Debug)]
pub struct Farewell(Option<(FreeCallback, *mut c_void, usize, Cookie)>);

impl Farewell {
    /// Calls the program's callback, if one is due. No lock is held and the map does not exist any more.
    pub fn say(self) {
        if let Some((callback, addr, len, cookie)) = self.0 {
            // SAFETY: doca_mmap_set_free_cb asks for a function that takes these arguments when the map is
            // destroyed, which is now; the map was started with it, so the range is the program's.
            unsafe { callback(addr, len, cookie.0) }
        }
    }
}

fn bit(device: &Device) -> u64 {
    1 << device.index
}

impl Mmap {
    fn hand_out(origin: Option<MemoryDescriptor>, dev: Option<Arc<Dev>>, user_data: u64) -> Arc<Self> {
        let (addr, len, access) = origin.as_ref().map_or((0, 0, DEFAULT_ACCESS), |origin| {
            (origin.addr as usize, origin.len as usize, origin.access)
        });
        let remote = origin.is_some();
        Arc::new_cyclic(|me| Mmap {
            tag: Tag::live::<Self>(),
            me: me.clone(),
            origin,
            started: AtomicBool::new(remote),
            thread_safe: AtomicBool::new(false),
            addr: AtomicUsize::new(addr),
            len: AtomicUsize::new(len),
            access: AtomicU32::new(access),
            devices: AtomicU64::new(dev.as_ref().map_or(0, |dev| bit(dev.device()))),
            region_index: AtomicU32::new(0),
            region_generation: AtomicU32::new(0),
            rest: Mutex::new(Rest {
                max_devices: 1,
                devices: dev.into_iter().collect(),
                user_data,
                free: None,
                free_due: false,
                ever_started: remote,
                exports: Vec::new(),
            }),
        })
    }

    /// A map to be configured.
    pub fn create() -> Arc<Self> {
        Self::hand_out(None, None, 0)
    }

    /// A started map of memory in another process.
    pub fn import(bytes: &[u8], dev: &Dev, user_data: u64) -> Res<Arc<Self>> {
        let mut origin = MemoryDescriptor::decode(bytes).map_err(|bad| {
            crate::log::error!("not a memory descriptor: {}", bad.0);
            Code::INVALID_VALUE
        })?;
        if !matches!(usize::try_from(origin.len), Ok(len) if fits(origin.addr as usize, len)) {
            crate::log::error!("memory descriptor of an impossible range");
            return Err(Code::INVALID_VALUE);
        }
        let able = match origin.reach {
            Reach::Rdma => dev.device().rdma.supported,
            Reach::Pci => dev.device().mmap.create_from_export_pci,
        };
        if !able {
            crate::log::error!("{} cannot import memory exported for {:?}", dev.device().ibdev, origin.reach);
            return Err(Code::NOT_SUPPORTED);
        }
        if origin.reach == Reach::Rdma {
            return Ok(Self::hand_out(Some(origin), Some(dev.hold()?), user_data));
        }
        // What the exporter allows across PCI is what may be done on this side.
        origin.access &= !access::LOCAL_READ_WRITE;
        if origin.access & access::PCI_READ_WRITE != 0 {
            origin.access |= access::LOCAL_READ_WRITE;
        }
        let map = Self::hand_out(Some(origin), Some(dev.hold()?), user_data);
        let range = (origin.addr, origin.len);
        map.set_region(region::forward(origin.process, origin.region, range, origin.access)?);
        Ok(map)
    }

    /// A map without memory, devices and rights, which is never started.
    pub fn nowhere() -> &'static Mmap {
        static NOWHERE: LazyLock<Arc<Mmap>> = LazyLock::new(Mmap::create);
        &NOWHERE
    }

    /// A share in the map, for a buffer. NOT_PERMITTED while it is being destroyed.
    pub fn share(&self) -> Res<Arc<Mmap>> {
        self.me.upgrade().ok_or(Code::NOT_PERMITTED)
    }

    /// A look at the map that does not keep it, for a pool.
    pub fn watch(&self) -> Weak<Mmap> {
        self.me.clone()
    }

    /// Where the memory is.
    pub fn backing(&self) -> Backing {
        match self.origin {
            Some(origin) if origin.reach == Reach::Rdma => Backing::Remote(origin),
            _ => Backing::Local(self.region()),
        }
    }

    /// `DOCA_ACCESS_FLAG_*`; of a map imported across the network those of the exporter.
    pub fn access(&self) -> u32 {
        self.access.load(Relaxed)
    }

    /// Whether buffers can be taken and tasks may touch the memory.
    pub fn is_started(&self) -> bool {
        self.started.load(Relaxed)
    }

    /// The registration of a local map; its generation is 0 before the first start.
    fn region(&self) -> RegionId {
        RegionId { index: self.region_index.load(Relaxed), generation: self.region_generation.load(Relaxed) }
    }

    fn set_region(&self, region: RegionId) {
        self.region_index.store(region.index, Relaxed);
        self.region_generation.store(region.generation, Relaxed);
    }

    /// Address and length of the range, once it is set. For an imported map, in the exporter's address space.
    pub fn range(&self) -> Option<(usize, usize)> {
        let len = self.len.load(Relaxed);
        (len != 0).then(|| (self.addr.load(Relaxed), len))
    }

    /// Whether `len` bytes at `addr` are inside the range.
    pub fn contains(&self, addr: usize, len: usize) -> bool {
        let size = self.len.load(Relaxed);
        matches!(addr.checked_sub(self.addr.load(Relaxed)), Some(offset) if offset <= size && len <= size - offset)
    }

    /// Whether the map is for this device.
    pub fn has_dev(&self, dev: &Dev) -> bool {
        self.has_device(dev.device())
    }

    /// The same, by what the topology says about it.
    pub fn has_device(&self, device: &Device) -> bool {
        self.devices.load(Relaxed) & bit(device) != 0
    }

    /// Whether the map came from a descriptor.
    pub fn is_imported(&self) -> bool {
        self.origin.is_some()
    }

    /// Whether descriptors of it are out.
    pub fn is_exported(&self) -> bool {
        !lock(&self.rest).exports.is_empty()
    }

    /// Buffers that are out.
    pub fn num_bufs(&self) -> u32 {
        (self.me.strong_count() - 1) as u32
    }

    /// A made-up memory key for a device. BAD_STATE if not started, NOT_FOUND if the device is not in it.
    pub fn mkey(&self, device: &Device) -> Res<u32> {
        if !self.is_started() {
            return Err(Code::BAD_STATE);
        }
        if !self.has_device(device) {
            return Err(Code::NOT_FOUND);
        }
        // As on the hardware: an index above, a variant in the low byte; imported memory has keys of its own.
        let region = match self.backing() {
            Backing::Local(region) => region,
            Backing::Remote(origin) => RegionId { index: origin.region.index | 1 << 22, ..origin.region },
        };
        Ok((region.index + 1) << 8 | region.generation & 0xff)
    }

    /// Sets the range, once.
    pub fn set_range(&self, addr: usize, len: usize) -> Res {
        if !fits(addr, len) {
            return Err(Code::INVALID_VALUE);
        }
        let _rest = lock(&self.rest);
        self.configurable()?;
        if self.range().is_some() {
            return Err(Code::NOT_PERMITTED);
        }
        self.addr.store(addr, Relaxed);
        self.len.store(len, Relaxed);
        Ok(())
    }

    /// BAD_STATE for a started map.
    fn configurable(&self) -> Res {
        if !self.is_started() {
            return Ok(());
        }
        crate::log::error!("the memory map is started, which is too late to configure it");
        Err(Code::BAD_STATE)
    }

    /// Sets the rights.
    pub fn set_access(&self, mask: u32) -> Res {
        if !access::is_valid(mask) {
            return Err(Code::INVALID_VALUE);
        }
        let _rest = lock(&self.rest);
        self.configurable()?;
        if self.is_imported() {
            return Err(Code::BAD_STATE);
        }
        self.access.store(mask, Relaxed);
        Ok(())
    }

    /// Sets what [`user_data`](Self::user_data) gives back.
    pub fn set_user_data(&self, data: u64) -> Res {
        let mut rest = lock(&self.rest);
        self.configurable()?;
        rest.user_data = data;
        Ok(())
    }

    /// The program's data.
    pub fn user_data(&self) -> u64 {
        lock(&self.rest).user_data
    }

    /// Sets what is called when the map is destroyed, provided that it is started in between.
    pub fn set_free_callback(&self, callback: FreeCallback, cookie: *mut c_void) -> Res {
        let mut rest = lock(&self.rest);
        self.configurable()?;
        rest.free = Some((callback, Cookie(cookie)));
        Ok(())
    }

    /// How many devices can be added.
    pub fn max_devices(&self) -> u32 {
        lock(&self.rest).max_devices
    }

    /// Sets how many devices can be added; only before the first start.
    pub fn set_max_devices(&self, number: u32) -> Res {
        let mut rest = lock(&self.rest);
        if number == 0 || (number as usize) < rest.devices.len() {
            return Err(Code::INVALID_VALUE);
        }
        if rest.ever_started {
            return Err(Code::NOT_PERMITTED);
        }
        rest.max_devices = number;
        Ok(())
    }

    /// NOT_PERMITTED where the set of devices is frozen.
    fn devices_free(&self, rest: &Rest) -> Res {
        let frozen = self.is_started() || self.is_imported() || !rest.exports.is_empty();
        if frozen { Err(Code::NOT_PERMITTED) } else { Ok(()) }
    }

    /// Adds a device, which cannot be closed from then on.
    pub fn add_dev(&self, dev: &Dev) -> Res {
        let mut rest = lock(&self.rest);
        self.devices_free(&rest)?;
        if self.has_dev(dev) {
            return Err(Code::ALREADY_EXIST);
        }
        if rest.devices.len() >= rest.max_devices as usize {
            crate::log::error!(
                "the map takes {} devices, see doca_mmap_set_max_num_devices",
                rest.max_devices
            );
            return Err(Code::NO_MEMORY);
        }
        rest.devices.push(dev.hold()?);
        self.devices.fetch_or(bit(dev.device()), Relaxed);
        Ok(())
    }

    /// Takes a device out.
    pub fn remove_dev(&self, dev: &Dev) -> Res {
        let mut rest = lock(&self.rest);
        self.devices_free(&rest)?;
        if !self.has_dev(dev) {
            return Err(Code::NOT_FOUND);
        }
        rest.devices.retain(|held| held.index() != dev.index());
        self.devices.fetch_and(!bit(dev.device()), Relaxed);
        Ok(())
    }

    /// Makes stopping and destroying independent of buffers.
    pub fn enable_thread_safety(&self) -> Res {
        let _rest = lock(&self.rest);
        let fresh = !self.is_started() || self.is_imported();
        if !fresh || self.num_bufs() > 0 {
            return Err(Code::NOT_PERMITTED);
        }
        self.thread_safe.store(true, Relaxed);
        Ok(())
    }

    /// Registers the range.
    pub fn start(&self) -> Res {
        let mut rest = lock(&self.rest);
        if self.is_imported() || !rest.exports.is_empty() {
            return Err(Code::NOT_PERMITTED);
        }
        self.configurable()?;
        let (addr, len) = self.range().ok_or(Code::INVALID_VALUE)?;
        let region = region::register(addr, len, self.access())?;
        self.set_region(region);
        rest.ever_started = true;
        rest.free_due = rest.free.is_some();
        self.started.store(true, Relaxed);
        crate::log::trace!("map of {len} bytes at {addr:#x} started, rights {:#x}", self.access());
        Ok(())
    }

    /// Withdraws the range: descriptors and whatever was imported from them are void.
    pub fn stop(&self) -> Res {
        self.check_unused()?;
        if profile::get().exported_mmap_not_stoppable && (self.is_exported() || self.is_imported()) {
            return Err(Code::NOT_PERMITTED);
        }
        if !self.is_started() {
            return Err(Code::BAD_STATE);
        }
        self.withdraw();
        Ok(())
    }

    /// NOT_PERMITTED while buffers are out. With thread safety they are not counted, as in DOCA.
    fn check_unused(&self) -> Res {
        if self.thread_safe.load(Relaxed) || self.num_bufs() == 0 {
            return Ok(());
        }
        crate::log::error!("{} buffers of the map are still out", self.num_bufs());
        Err(Code::NOT_PERMITTED)
    }

    fn withdraw(&self) {
        let mut rest = lock(&self.rest);
        if self.is_started()
            && let Backing::Local(region) = self.backing()
        {
            region::unregister(region);
        }
        if self.started.swap(false, Relaxed) {
            crate::log::trace!("map of {:#x?} stopped", self.range());
        }
        rest.exports.clear();
    }

    /// Ends the map's life as an object of the program. What remains is to drop the program's share, and then
    /// to say farewell.
    pub fn retire(&self) -> Res<Farewell> {
        self.check_unused()?;
        self.tag.kill();
        self.withdraw();
        let mut rest = lock(&self.rest);
        rest.devices.clear();
        let due = rest.free.take().filter(|_| rest.free_due);
        let range = self.range();
        Ok(Farewell(due.zip(range).map(|((callback, cookie), (addr, len))| {
            (callback, std::ptr::with_exposed_provenance_mut(addr), len, cookie)
        })))
    }

    /// A descriptor for other processes; the bytes stay where they are until the map stops.
    pub fn export(&self, reach: Reach, dev: &Dev) -> Res<(*const u8, usize)> {
        let needed = match reach {
            Reach::Rdma => access::ANY_RDMA,
            Reach::Pci => access::ANY_PCI,
        };
        let mut rest = lock(&self.rest);
        if !self.is_started() || self.access() & needed == 0 {
            crate::log::error!("only started maps with rights for {reach:?} can be exported for it");
            return Err(Code::NOT_PERMITTED);
        }
        // Memory that came over PCI can be offered to RDMA peers; nothing else can be passed on.
        if matches!(&self.origin, Some(origin) if (origin.reach, reach) != (Reach::Pci, Reach::Rdma)) {
            return Err(Code::NOT_PERMITTED);
        }
        if !self.has_dev(dev) {
            return Err(Code::NOT_FOUND);
        }
        let able = match reach {
            Reach::Rdma => dev.device().rdma.supported,
            Reach::Pci => dev.device().mmap.export_pci,
        };
        if !able {
            return Err(Code::NOT_SUPPORTED);
        }
        let device = dev.index() as u32;
        if let Some(export) =
            rest.exports.iter().find(|export| (export.reach, export.device) == (reach, device))
        {
            return Ok((export.bytes.as_ptr(), export.bytes.len()));
        }
        let bytes: Arc<[u8]> = self.describe(reach, device)?.encode().into();
        let place = (bytes.as_ptr(), bytes.len());
        rest.exports.push(Export { reach, device, bytes });
        Ok(place)
    }

    fn describe(&self, reach: Reach, device: u32) -> Res<MemoryDescriptor> {
        let (addr, len) = self.range().ok_or(Code::BAD_STATE)?;
        let Backing::Local(region) = self.backing() else { return Err(Code::NOT_PERMITTED) };
        Ok(MemoryDescriptor {
            reach,
            process: crate::fabric::local_process()?,
            region,
            addr: addr as u64,
            len: len as u64,
            access: self.access(),
            device,
        })
    }
}

/// Whether a range exists: not at 0, not empty, not beyond the address space.
fn fits(addr: usize, len: usize) -> bool {
    addr != 0 && len != 0 && addr.checked_add(len).is_some()
}
