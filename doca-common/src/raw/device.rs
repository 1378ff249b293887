//! `doca_devinfo`, `doca_dev`

use crate::call;
use crate::error::{Code, Error, Result};
use crate::version;
use doca_sys::{doca_dev, doca_devinfo};
use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex};

/// The list of devices at one moment. Its elements live as long as it.
#[derive(Debug)]
pub(crate) struct List {
    first: NonNull<*mut doca_devinfo>,
    len: usize,
}

// SAFETY: the list is never changed after it was made; DOCA's queries on its elements only read, as far as its
// documents and samples show, and destroying it is done once, by the last owner.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    pub(crate) fn new() -> Result<Self> {
        version::require_fit()?;
        let (mut first, mut len) = (ptr::null_mut(), 0);
        // SAFETY: both out-parameters are locals.
        unsafe { call!(doca_devinfo_create_list(&mut first, &mut len)) }?;
        let first =
            NonNull::new(first).ok_or_else(|| Error::doca("doca_devinfo_create_list", Code::UNEXPECTED))?;
        Ok(List { first, len: len as usize })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> *mut doca_devinfo {
        assert!(index < self.len);
        // SAFETY: DOCA gave an array of `len` pointers, and the index was checked.
        unsafe { *self.first.as_ptr().add(index) }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: made by create_list and destroyed once; elements are borrowed from this object only.
        if let Err(error) = unsafe { call!(doca_devinfo_destroy_list(self.first.as_ptr())) } {
            log::warn!("{error}");
        }
    }
}

/// Opening and closing count references inside DOCA, of which no document says that threads may do so at once.
static OPENING: Mutex<()> = Mutex::new(());

/// One reference to an open device.
#[derive(Debug)]
pub(crate) struct Open(NonNull<doca_dev>);

// SAFETY: an open device is only queried and handed to constructors; DOCA's data paths of different engines may
// use one device from several threads, and opening and closing are serialised here.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Open {
    fn new(info: *mut doca_devinfo) -> Result<Self> {
        let mut dev = ptr::null_mut();
        let _guard = OPENING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: `info` is an element of a list that the caller keeps, and the out-parameter is a local.
        unsafe { call!(doca_dev_open(info, &mut dev)) }?;
        NonNull::new(dev).map(Open).ok_or_else(|| Error::doca("doca_dev_open", Code::UNEXPECTED))
    }

    pub(crate) fn as_ptr(&self) -> *mut doca_dev {
        self.0.as_ptr()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _guard = OPENING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: this reference was opened once and is closed once. What depends on the device holds this object.
        if let Err(error) = unsafe { call!(doca_dev_close(self.as_ptr())) } {
            log::warn!("{error}: the device stays open");
        }
    }
}

/// What keeps a `doca_devinfo` alive.
#[derive(Clone, Debug)]
pub(crate) enum Info {
    Listed(Arc<List>, usize),
    Opened(Arc<Open>),
}

impl Info {
    pub(crate) fn as_ptr(&self) -> *mut doca_devinfo {
        match self {
            Info::Listed(list, index) => list.get(*index),
            // SAFETY: the device is open as long as `open` lives, and its description with it.
            Info::Opened(open) => unsafe { doca_sys::doca_dev_as_devinfo(open.as_ptr()) },
        }
    }

    pub(crate) fn open(&self) -> Result<Arc<Open>> {
        match self {
            Info::Listed(..) => Open::new(self.as_ptr()).map(Arc::new),
            Info::Opened(open) => Ok(open.clone()),
        }
    }

    /// A query that fills a text of `N` bytes.
    fn text<const N: usize>(
        &self,
        query: impl FnOnce(*mut doca_devinfo, *mut c_char) -> Result<()>,
    ) -> Result<String> {
        let mut bytes = [0u8; N];
        query(self.as_ptr(), bytes.as_mut_ptr().cast())?;
        let text = CStr::from_bytes_until_nul(&bytes).map(CStr::to_string_lossy);
        Ok(text.unwrap_or_else(|_| String::from_utf8_lossy(&bytes)).into_owned())
    }

    pub(crate) fn pci_address(&self) -> Result<String> {
        const SIZE: usize = doca_sys::DOCA_DEVINFO_PCI_ADDR_SIZE as usize;
        // SAFETY: the description is alive, and the text has the size that the header asks for.
        self.text::<SIZE>(|info, text| unsafe { call!(doca_devinfo_get_pci_addr_str(info, text)) })
    }

    pub(crate) fn ibdev_name(&self) -> Result<String> {
        const SIZE: usize = doca_sys::DOCA_DEVINFO_IBDEV_NAME_SIZE as usize;
        // SAFETY: the description is alive, and the size passed is the text's.
        self.text::<SIZE>(|info, text| unsafe { call!(doca_devinfo_get_ibdev_name(info, text, SIZE as u32)) })
    }

    pub(crate) fn iface_name(&self) -> Result<String> {
        const SIZE: usize = doca_sys::DOCA_DEVINFO_IFACE_NAME_SIZE as usize;
        // SAFETY: the description is alive, and the size passed is the text's.
        self.text::<SIZE>(|info, text| unsafe { call!(doca_devinfo_get_iface_name(info, text, SIZE as u32)) })
    }

    pub(crate) fn ipv4(&self) -> Result<[u8; 4]> {
        let mut bytes = [0; 4];
        // SAFETY: the description is alive, and the size passed is the array's.
        unsafe { call!(doca_devinfo_get_ipv4_addr(self.as_ptr(), bytes.as_mut_ptr(), 4)) }.map(|()| bytes)
    }

    pub(crate) fn ipv6(&self) -> Result<[u8; 16]> {
        let mut bytes = [0; 16];
        // SAFETY: the description is alive, and the size passed is the array's.
        unsafe { call!(doca_devinfo_get_ipv6_addr(self.as_ptr(), bytes.as_mut_ptr(), 16)) }.map(|()| bytes)
    }

    pub(crate) fn mac(&self) -> Result<[u8; 6]> {
        let mut bytes = [0; 6];
        // SAFETY: the description is alive, and the size passed is the array's.
        unsafe { call!(doca_devinfo_get_mac_addr(self.as_ptr(), bytes.as_mut_ptr(), 6)) }.map(|()| bytes)
    }

    pub(crate) fn lid(&self) -> Result<u16> {
        let mut lid = 0;
        // SAFETY: the description is alive and the out-parameter is a local.
        unsafe { call!(doca_devinfo_get_lid(self.as_ptr(), &mut lid)) }.map(|()| lid)
    }

    pub(crate) fn active_rate(&self) -> Result<u64> {
        let mut rate = 0;
        // SAFETY: the description is alive and the out-parameter is a local.
        unsafe { call!(doca_devinfo_get_active_rate(self.as_ptr(), &mut rate)) }.map(|()| rate)
    }

    pub(crate) fn num_completion_vectors(&self) -> Result<u32> {
        let mut count = 0;
        // SAFETY: the description is alive and the out-parameter is a local.
        unsafe { call!(doca_ctx_cap_get_num_completion_vectors(self.as_ptr(), &mut count)) }.map(|()| count)
    }

    pub(crate) fn vhca_id(&self) -> Result<u16> {
        let mut id = 0;
        // SAFETY: the description is alive and the out-parameter is a local.
        unsafe { call!(doca_devinfo_get_vhca_id(self.as_ptr(), &mut id)) }.map(|()| id)
    }
}

/// A capability query of libdoca_common that answers by a `uint8_t`.
macro_rules! flags {
    ($($name:ident = $function:ident;)*) => {
        impl Info {
            $(
                pub(crate) fn $name(&self) -> Result<bool> {
                    let mut yes = 0u8;
                    // SAFETY: the description is alive and the out-parameter is a local.
                    unsafe { call!($function(self.as_ptr(), &mut yes)) }.map(|()| yes != 0)
                }
            )*
        }
    };
}

flags! {
    hotplug_manager = doca_devinfo_cap_is_hotplug_manager_supported;
    notification_moderation = doca_devinfo_cap_is_notification_moderation_supported;
    resource_reclaim = doca_devinfo_cap_is_accelerate_resource_reclaim_supported;
    rep_filter_all = doca_devinfo_rep_cap_is_filter_all_supported;
    rep_filter_net = doca_devinfo_rep_cap_is_filter_net_supported;
    rep_filter_emulated = doca_devinfo_rep_cap_is_filter_emulated_supported;
    mmap_export_pci = doca_mmap_cap_is_export_pci_supported;
    mmap_import_pci = doca_mmap_cap_is_create_from_export_pci_supported;
}

impl crate::device::DeviceInfo {
    /// The description in C. It lives as long as this object.
    pub fn as_raw(&self) -> *mut doca_devinfo {
        self.info.as_ptr()
    }
}

impl crate::device::Device {
    /// The device in C. It stays open as long as this object.
    pub fn as_raw(&self) -> *mut doca_dev {
        self.open.as_ptr()
    }
}
