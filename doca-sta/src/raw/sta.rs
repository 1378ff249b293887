//! `doca_sta`

use doca_common::{Code, Device, DeviceInfo, Error, Result, call};
use doca_sys::doca_sta;
use std::ptr::{self, NonNull};

/// A control context that is only asked: IDLE from its creation to its end.
pub(super) struct Idle {
    sta: NonNull<doca_sta>,
    /// Stays open until the context is destroyed.
    _control: Device,
}

impl Idle {
    /// Opens the device and creates a context on it.
    pub(super) fn new(device: &DeviceInfo) -> Result<Self> {
        let control = device.open()?;
        let mut sta = ptr::null_mut();
        // SAFETY: the device is open, and the out-parameter is a local.
        unsafe { call!(doca_sta_create(control.as_raw(), &mut sta)) }?;
        let sta = NonNull::new(sta).ok_or_else(|| Error::doca("doca_sta_create", Code::UNEXPECTED))?;
        Ok(Idle { sta, _control: control })
    }

    pub(super) fn as_ptr(&self) -> *const doca_sta {
        self.sta.as_ptr()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // SAFETY: made by doca_sta_create, never started, and destroyed once; the device is closed after this.
        if let Err(error) = unsafe { call!(doca_sta_destroy(self.sta.as_ptr())) } {
            log::warn!("{error}: the context stays, and its device open");
        }
    }
}
