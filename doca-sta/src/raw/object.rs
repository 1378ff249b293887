//! Back ends, subsystems and namespaces.

use doca_common::raw::context::null;
use doca_common::{Device, Result, call};
use doca_sys::{doca_sta, doca_sta_be_handle, doca_sta_ns_handle, doca_sta_subs_handle};
use std::ffi::CStr;
use std::ptr::{self, NonNull};

/// A back end in C. It is destroyed by its context, which knows what it still has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BackEnd(pub(crate) NonNull<doca_sta_be_handle>);

impl BackEnd {
    /// # Safety
    ///
    /// The context is alive.
    pub(crate) unsafe fn create(sta: *mut doca_sta) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: as the caller says, and the out-parameter is a local.
        unsafe { call!(doca_sta_be_create(sta, &mut handle)) }?;
        NonNull::new(handle).map(BackEnd).ok_or_else(|| null("doca_sta_be_create"))
    }

    /// # Safety
    ///
    /// Alive; not used again after a success.
    pub(crate) unsafe fn destroy(self) -> Result<()> {
        // SAFETY: as the caller says.
        unsafe { call!(doca_sta_be_destroy(self.0.as_ptr())) }
    }
}

/// A subsystem in C, as [`BackEnd`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Subs(pub(crate) NonNull<doca_sta_subs_handle>);

// SAFETY: DOCA's handle of an object of the control context, which IO contexts on other threads name to bind their
// queue pairs; nothing is done through it but that.
unsafe impl Send for Subs {}
// SAFETY: as above.
unsafe impl Sync for Subs {}

/// A namespace in C, as [`BackEnd`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ns(pub(crate) NonNull<doca_sta_ns_handle>);

impl Subs {
    /// # Safety
    ///
    /// The context is alive.
    pub(crate) unsafe fn create(sta: *mut doca_sta, nqn: &CStr) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: as the caller says; the name is terminated, and the out-parameter is a local.
        unsafe { call!(doca_sta_subsystem_create(sta, nqn.as_ptr(), &mut handle)) }?;
        NonNull::new(handle).map(Subs).ok_or_else(|| null("doca_sta_subsystem_create"))
    }

    /// # Safety
    ///
    /// Alive, and the device was added to the context.
    pub(crate) unsafe fn add_device(self, device: &Device) -> Result<()> {
        // SAFETY: as the caller says; the device is open.
        unsafe { call!(doca_sta_subsystem_add_dev(self.0.as_ptr(), device.as_raw())) }
    }

    /// # Safety
    ///
    /// Both are alive.
    pub(crate) unsafe fn add_namespace(
        self,
        nsid: u32,
        block_size: u32,
        disk_nsid: u32,
        back_end: BackEnd,
    ) -> Result<Ns> {
        let mut handle = ptr::null_mut();
        // SAFETY: as the caller says, and the out-parameter is a local.
        unsafe {
            call!(doca_sta_subsystem_add_ns(
                self.0.as_ptr(),
                nsid,
                block_size,
                disk_nsid,
                back_end.0.as_ptr(),
                &mut handle
            ))
        }?;
        NonNull::new(handle).map(Ns).ok_or_else(|| null("doca_sta_subsystem_add_ns"))
    }

    /// # Safety
    ///
    /// Alive; not used again after a success.
    pub(crate) unsafe fn destroy(self) -> Result<()> {
        // SAFETY: as the caller says.
        unsafe { call!(doca_sta_subsystem_destroy(self.0.as_ptr())) }
    }
}
