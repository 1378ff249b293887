//! Devices.

use super::doca;
use crate::Error;
use doca_sys::{doca_dev, doca_devinfo};
use std::ffi::CStr;
use std::net::Ipv4Addr;
use std::ptr;

/// An open device, with the address that its connections come from.
pub(crate) struct Device {
    dev: *mut doca_dev,
    pub(crate) address: Ipv4Addr,
}

impl Device {
    /// Opens a device by its ibdev name.
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        let (mut list, mut count) = (ptr::null_mut(), 0);
        // SAFETY: out-parameters are locals; the list is used until it is destroyed, and its entries stand in it.
        unsafe {
            doca!(doca_devinfo_create_list(&mut list, &mut count))?;
            let found = Self::open_of(std::slice::from_raw_parts(list, count as usize), name);
            doca!(doca_devinfo_destroy_list(list))?;
            found
        }
    }

    /// # Safety
    ///
    /// The entries are valid.
    unsafe fn open_of(list: &[*mut doca_devinfo], name: &str) -> Result<Self, Error> {
        for &info in list {
            let (mut ibdev, mut address) = ([0; 64], [0; 4]);
            // SAFETY: valid as the caller says; the buffers are as long as is said, and the name is terminated.
            unsafe {
                if doca!(doca_devinfo_get_ibdev_name(info, ibdev.as_mut_ptr(), 64)).is_err()
                    || CStr::from_ptr(ibdev.as_ptr()).to_bytes() != name.as_bytes()
                {
                    continue;
                }
                doca!(doca_devinfo_get_ipv4_addr(info, address.as_mut_ptr(), 4))?;
                let mut dev = ptr::null_mut();
                doca!(doca_dev_open(info, &mut dev))?;
                return Ok(Device { dev, address: address.into() });
            }
        }
        Err(Error::Usage(format!("there is no device `{name}`")))
    }

    pub(crate) fn as_ptr(&self) -> *mut doca_dev {
        self.dev
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: open, and everything on it is destroyed before.
        unsafe { _ = doca!(doca_dev_close(self.dev)) };
    }
}
