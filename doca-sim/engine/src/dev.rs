//! Devices and representors: lists of what can be opened, and what is open.
//!
//! A device is open once per process, however often it is opened: every open gives the same pointer, and the
//! last close ends it. Whoever depends on it (memory maps, contexts, representors) holds an [`Arc`] from
//! [`Dev::hold`], which makes that last close fail with IN_USE.

use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::lock::lock;
use crate::topology::{self, Device, Representor, Side, Topology};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// `struct doca_devinfo`: a device that this process can open.
#[repr(C)]
#[derive(Debug)]
pub struct Devinfo {
    tag: Tag,
    device: &'static Device,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for Devinfo {
    const TAG: u32 = u32::from_le_bytes(*b"dinf");
}

impl Devinfo {
    pub(crate) fn new(device: &'static Device) -> Self {
        Devinfo { tag: Tag::live::<Self>(), device }
    }

    /// What the topology says about the device.
    pub fn device(&self) -> &'static Device {
        self.device
    }
}

/// `struct doca_dev`: an open device.
#[repr(C)]
#[derive(Debug)]
pub struct Dev {
    tag: Tag,
    info: Devinfo,
    me: Weak<Dev>,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for Dev {
    const TAG: u32 = u32::from_le_bytes(*b"dev.");
}

impl Dev {
    /// What the topology says about the device.
    pub fn device(&self) -> &'static Device {
        self.info.device
    }

    /// Position of the device in the topology; the same in every process.
    pub fn index(&self) -> usize {
        self.info.device.index
    }

    /// The description of this device; lives as long as it.
    pub fn info(&self) -> &Devinfo {
        &self.info
    }

    /// A dependency on the device: while it lives, the last close fails. INVALID_VALUE if the device is
    /// being closed at this moment.
    pub fn hold(&self) -> Res<Arc<Dev>> {
        self.me.upgrade().ok_or(Code::INVALID_VALUE)
    }
}

struct Opened {
    dev: Arc<Dev>,
    opens: u32,
}

/// The open devices, by their position in the topology.
static OPEN: Mutex<BTreeMap<usize, Opened>> = Mutex::new(BTreeMap::new());

/// Opens a device, or adds a reference to it if it is open.
pub fn open(info: &Devinfo) -> *const Dev {
    let mut open = lock(&OPEN);
    let opened = open.entry(info.device.index).or_insert_with(|| Opened {
        dev: Arc::new_cyclic(|me| Dev {
            tag: Tag::live::<Dev>(),
            info: Devinfo::new(info.device),
            me: me.clone(),
        }),
        opens: 0,
    });
    opened.opens += 1;
    crate::log::trace!("{} opened, {} references", info.device.ibdev, opened.opens);
    Arc::as_ptr(&opened.dev)
}

/// Gives one reference back; the last one ends the device, or is IN_USE while anything depends on it.
pub fn close(dev: &Dev) -> Res {
    let mut open = lock(&OPEN);
    let opened = open.get_mut(&dev.index()).ok_or(Code::INVALID_VALUE)?;
    if opened.opens > 1 {
        opened.opens -= 1;
        return Ok(());
    }
    let dependants = Arc::strong_count(&opened.dev) - 1;
    if dependants > 0 {
        crate::log::error!("{} cannot be closed: {dependants} objects use it", dev.device().ibdev);
        return Err(Code::IN_USE);
    }
    opened.dev.tag.kill();
    opened.dev.info.tag.kill();
    let device = dev.device();
    open.remove(&device.index);
    crate::log::trace!("{} closed", device.ibdev);
    Ok(())
}

/// `struct doca_devinfo_rep`: a function of the other side that can be opened through a device.
#[repr(C)]
#[derive(Debug)]
pub struct DevinfoRep {
    tag: Tag,
    representor: &'static Representor,
    dev: Arc<Dev>,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for DevinfoRep {
    const TAG: u32 = u32::from_le_bytes(*b"rinf");
}

impl DevinfoRep {
    fn new(representor: &'static Representor, dev: Arc<Dev>) -> Self {
        DevinfoRep { tag: Tag::live::<Self>(), representor, dev }
    }

    /// The device through which it is seen.
    pub fn dev(&self) -> &Dev {
        &self.dev
    }

    /// What the topology says about the function.
    pub fn representor(&self) -> &'static Representor {
        self.representor
    }
}

/// `struct doca_dev_rep`: an open representor.
#[repr(C)]
#[derive(Debug)]
pub struct DevRep {
    tag: Tag,
    info: DevinfoRep,
    me: Weak<DevRep>,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for DevRep {
    const TAG: u32 = u32::from_le_bytes(*b"drep");
}

impl DevRep {
    /// The description of this representor; lives as long as it.
    pub fn info(&self) -> &DevinfoRep {
        &self.info
    }

    /// A dependency on the representor: while it lives, closing it fails.
    pub fn hold(&self) -> Res<Arc<DevRep>> {
        self.me.upgrade().ok_or(Code::INVALID_VALUE)
    }
}

/// The open representors.
static OPEN_REPS: Mutex<Vec<Arc<DevRep>>> = Mutex::new(Vec::new());

/// Opens a representor. Each open is an object of its own.
pub fn open_rep(info: &DevinfoRep) -> *const DevRep {
    let rep = Arc::new_cyclic(|me| DevRep {
        tag: Tag::live::<DevRep>(),
        info: DevinfoRep::new(info.representor, info.dev.clone()),
        me: me.clone(),
    });
    let pointer = Arc::as_ptr(&rep);
    lock(&OPEN_REPS).push(rep);
    pointer
}

/// Closes a representor; IN_USE while anything depends on it.
pub fn close_rep(rep: &DevRep) -> Res {
    let mut open = lock(&OPEN_REPS);
    let position = open.iter().position(|other| std::ptr::eq(&**other, rep)).ok_or(Code::INVALID_VALUE)?;
    if Arc::strong_count(&open[position]) > 1 {
        crate::log::error!("representor {} cannot be closed: it is in use", rep.info.representor.vuid);
        return Err(Code::IN_USE);
    }
    let rep = open.swap_remove(position);
    rep.tag.kill();
    rep.info.tag.kill();
    Ok(())
}

/// An array of pointers as C gets it, ended by a NULL that C is not told about, and what they point to.
struct List<T> {
    array: Arc<[AtomicPtr<T>]>,
    elements: Vec<Arc<T>>,
}

/// The lists of one kind that programs hold.
pub struct Lists<T>(Mutex<Vec<List<T>>>);

/// Lists of [`doca_devinfo_create_list`](crate::abi::dev::doca_devinfo_create_list).
pub static DEVINFO_LISTS: Lists<Devinfo> = Lists(Mutex::new(Vec::new()));
/// Lists of [`doca_devinfo_rep_create_list`](crate::abi::dev::doca_devinfo_rep_create_list).
pub static REP_LISTS: Lists<DevinfoRep> = Lists(Mutex::new(Vec::new()));

/// The parts that a list's end marks as dead.
pub trait Mortal {
    /// Makes the pointers that C still has useless.
    fn kill(&self);
}

impl Mortal for Devinfo {
    fn kill(&self) {
        self.tag.kill();
    }
}

impl Mortal for DevinfoRep {
    fn kill(&self) {
        self.tag.kill();
    }
}

impl<T: Mortal> Lists<T> {
    /// Hands out a list: the array and the number of its elements.
    fn add(&self, elements: impl Iterator<Item = T>) -> (*mut *mut T, u32) {
        let elements: Vec<Arc<T>> = elements.map(Arc::new).collect();
        let pointers = elements.iter().map(|element| Arc::as_ptr(element).cast_mut());
        let array: Arc<[AtomicPtr<T>]> = pointers.chain([std::ptr::null_mut()]).map(AtomicPtr::new).collect();
        let (pointer, count) = (Arc::as_ptr(&array), elements.len() as u32);
        lock(&self.0).push(List { array, elements });
        (pointer.cast_mut().cast(), count)
    }

    /// Takes a list back. INVALID_VALUE if it is none of ours, IN_USE if the program changed its elements.
    pub fn remove(&self, array: *const *mut T) -> Res {
        let mut lists = lock(&self.0);
        let found = lists.iter().position(|list| std::ptr::addr_eq(Arc::as_ptr(&list.array), array));
        let position = found.ok_or(Code::INVALID_VALUE)?;
        let list = &lists[position];
        let intact = list
            .array
            .iter()
            .zip(&list.elements)
            .all(|(slot, element)| std::ptr::eq(slot.load(Ordering::Relaxed), Arc::as_ptr(element)));
        if !intact {
            return Err(Code::IN_USE);
        }
        for element in lists.swap_remove(position).elements {
            element.kill();
        }
        Ok(())
    }
}

/// Hands out a list of the devices on this process's side.
pub fn list() -> Res<(*mut *mut Devinfo, u32)> {
    Ok(list_of(topology::get()?, topology::side()?))
}

fn list_of(topology: &'static Topology, side: Side) -> (*mut *mut Devinfo, u32) {
    DEVINFO_LISTS.add(topology.of(side).map(Devinfo::new))
}

/// `enum doca_devinfo_rep_filter`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepFilter {
    /// Everything
    All = 0,
    /// Network functions
    Net = 2,
    /// Emulated devices
    Emulated = 4,
}

impl RepFilter {
    /// The filter that C named; NET and EMULATED exclude each other, so there are no combinations.
    pub fn from_c(filter: i32) -> Res<Self> {
        [RepFilter::All, RepFilter::Net, RepFilter::Emulated]
            .into_iter()
            .find(|known| *known as i32 == filter)
            .ok_or(Code::INVALID_VALUE)
    }

    /// Whether representors of the device can be listed by this filter.
    pub fn supported(self, device: &Device) -> bool {
        let filters = &device.representor_filters;
        match self {
            RepFilter::All => filters.all,
            RepFilter::Net => filters.net,
            RepFilter::Emulated => filters.emulated,
        }
    }

    fn takes(self, representor: &Representor) -> bool {
        match self {
            RepFilter::All => true,
            RepFilter::Net => !representor.emulated,
            RepFilter::Emulated => representor.emulated,
        }
    }
}

/// Hands out a list of a device's representors. NOT_SUPPORTED if the device cannot filter like that.
pub fn list_reps(dev: &Dev, filter: RepFilter) -> Res<(*mut *mut DevinfoRep, u32)> {
    if !filter.supported(dev.device()) {
        if topology::side()? == Side::Host {
            let ibdev = &dev.device().ibdev;
            crate::log::warning!(
                "doca_devinfo_rep_create_list: {ibdev} represents nothing: this process is on the host; with \
                 DOCA_SIM_SIDE=dpu it is on the DPU"
            );
        }
        return Err(Code::NOT_SUPPORTED);
    }
    let dev = dev.hold()?;
    let representors = dev.device().representors.iter().filter(|representor| filter.takes(representor));
    Ok(REP_LISTS.add(representors.map(|representor| DevinfoRep::new(representor, dev.clone()))))
}
