//! `doca_rdma_bridge.h`: where DOCA meets verbs.
//!
//! There are no verbs here. A protection domain is a pointer that tells one device from another, and a memory
//! key is a number that tells one map from another; neither means anything to libibverbs.

use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::dev::Dev;
use crate::entry;
use crate::entry::{In, Out};
use crate::mmap::Mmap;
use crate::topology::{self, Device};
use std::ptr;

/// The device that a protection domain stands for.
fn device_of(pd: *const Device) -> Res<Option<&'static Device>> {
    if pd.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    Ok(topology::get()?.devices.iter().find(|device| ptr::eq(*device, pd)))
}

entry! {
    /// The protection domain of an open device: one pointer per device.
    fn doca_rdma_bridge_get_dev_pd(dev: In<Dev>, pd: Out<*const Device>) {
        pd.put(dev.get()?.device())
    }

    /// INVALID_VALUE for a protection domain that came from DOCA; there are no others that could be used here:
    /// NOT_SUPPORTED.
    fn doca_rdma_bridge_open_dev_from_pd(pd: *const Device, dev: Out<*const Dev>) {
        dev.check()?;
        match device_of(pd)? {
            Some(_) => Err(Code::INVALID_VALUE),
            None => Err(Code::NOT_SUPPORTED),
        }
    }

    /// A made-up key of the buffer's memory. INVALID_VALUE if the device has none.
    fn doca_rdma_bridge_get_buf_mkey(buf: In<Buf>, dev: In<Dev>, mkey: Out<u32>) {
        let (buf, dev) = (buf.get()?, dev.get()?);
        mkey.check()?;
        mkey.put(buf.mmap().mkey(dev.device()).map_err(|_| Code::INVALID_VALUE)?)
    }

    /// A made-up key of a map's memory. NOT_FOUND if the device of the protection domain is not in the map.
    fn doca_rdma_bridge_get_mmap_mkey_from_pd(mmap: In<Mmap>, pd: *const Device, mkey: Out<u32>) {
        let mmap = mmap.get()?;
        mkey.check()?;
        mkey.put(mmap.mkey(device_of(pd)?.ok_or(Code::NOT_FOUND)?)?)
    }
}

#[cfg(test)]
mod tests;
