//! `doca_devinfo_rep`, `doca_dev_rep`

use crate::call;
use crate::device::Device;
use crate::error::{Code, Error, Result};
use crate::representor::{Filter, Representor};
use doca_sys::{doca_dev_rep, doca_devinfo_rep, doca_devinfo_rep_filter};
use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex};

/// The list of a device's representors at one moment. Its elements live as long as it.
#[derive(Debug)]
pub(crate) struct List {
    first: NonNull<*mut doca_devinfo_rep>,
    len: usize,
    /// Stays open as long as its list.
    _device: Device,
}

// SAFETY: as for the list of devices: never changed after it was made, queries on its elements only read, and the last
// owner destroys it once.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    pub(crate) fn new(device: &Device, filter: Filter) -> Result<Self> {
        const CALL: &str = "doca_devinfo_rep_create_list";
        let filter = match filter {
            Filter::All => doca_devinfo_rep_filter::DOCA_DEVINFO_REP_FILTER_ALL,
            Filter::Net => doca_devinfo_rep_filter::DOCA_DEVINFO_REP_FILTER_NET,
            Filter::Emulated => doca_devinfo_rep_filter::DOCA_DEVINFO_REP_FILTER_EMULATED,
        };
        let (mut first, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the device is open, and both out-parameters are locals.
        unsafe {
            call!(doca_devinfo_rep_create_list(device.as_raw(), filter.0 as i32, &mut first, &mut len))
        }?;
        let first = NonNull::new(first).ok_or_else(|| Error::doca(CALL, Code::UNEXPECTED))?;
        Ok(List { first, len: len as usize, _device: device.clone() })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: made by create_list and destroyed once; elements are borrowed from this object only.
        if let Err(error) = unsafe { call!(doca_devinfo_rep_destroy_list(self.first.as_ptr())) } {
            log::warn!("{error}");
        }
    }
}

/// An element of a list.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    pub(crate) list: Arc<List>,
    pub(crate) index: usize,
}

impl Info {
    fn as_ptr(&self) -> *mut doca_devinfo_rep {
        assert!(self.index < self.list.len);
        // SAFETY: DOCA gave an array of `len` pointers, and the index was checked.
        unsafe { *self.list.first.as_ptr().add(self.index) }
    }

    /// A query that fills a text of `N` bytes.
    fn text<const N: usize>(
        &self,
        query: impl FnOnce(*mut doca_devinfo_rep, *mut c_char) -> Result<()>,
    ) -> Result<String> {
        let mut bytes = [0u8; N];
        query(self.as_ptr(), bytes.as_mut_ptr().cast())?;
        let text = CStr::from_bytes_until_nul(&bytes).map(CStr::to_string_lossy);
        Ok(text.unwrap_or_else(|_| String::from_utf8_lossy(&bytes)).into_owned())
    }

    pub(crate) fn pci_address(&self) -> Result<String> {
        const SIZE: usize = doca_sys::DOCA_DEVINFO_REP_PCI_ADDR_SIZE as usize;
        // SAFETY: the description is alive, and the text has the size that the header asks for.
        self.text::<SIZE>(|info, text| unsafe { call!(doca_devinfo_rep_get_pci_addr_str(info, text)) })
    }

    pub(crate) fn vuid(&self) -> Result<String> {
        const SIZE: usize = doca_sys::DOCA_DEVINFO_REP_VUID_SIZE as usize;
        // SAFETY: the description is alive, and the size passed is the text's.
        self.text::<SIZE>(|info, text| unsafe { call!(doca_devinfo_rep_get_vuid(info, text, SIZE as u32)) })
    }

    pub(crate) fn open(&self, device: &Device) -> Result<Open> {
        let mut rep = ptr::null_mut();
        let _guard = OPENING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: an element of a list that is alive, and the out-parameter is a local.
        unsafe { call!(doca_dev_rep_open(self.as_ptr(), &mut rep)) }?;
        let rep = NonNull::new(rep).ok_or_else(|| Error::doca("doca_dev_rep_open", Code::UNEXPECTED))?;
        Ok(Open { rep, device: device.clone() })
    }
}

/// No document says that threads may open and close at once.
static OPENING: Mutex<()> = Mutex::new(());

/// One reference to an open representor.
#[derive(Debug)]
pub(crate) struct Open {
    rep: NonNull<doca_dev_rep>,
    /// Closed after the representor.
    device: Device,
}

// SAFETY: as for open devices: only handed to constructors, and opening and closing are serialised here.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Open {
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _guard = OPENING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: opened once and closed once; what depends on the representor holds this object.
        if let Err(error) = unsafe { call!(doca_dev_rep_close(self.rep.as_ptr())) } {
            log::warn!("{error}: the representor stays open");
        }
    }
}

impl Representor {
    /// The representor in C. It stays open as long as this object.
    pub fn as_raw(&self) -> *mut doca_dev_rep {
        self.open.rep.as_ptr()
    }
}
