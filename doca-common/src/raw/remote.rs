//! `doca_mmap` of a peer's memory, and the `doca_buf`s over it. The addresses are the peer's: nothing here can be
//! dereferenced.

use crate::buffer::Named;
use crate::call;
use crate::device::Device;
use crate::error::{Error, Refusal, Result};
use crate::raw::inventory::{Inventories, non_null};
use crate::raw::map::next_serial;
use crate::version;
use doca_sys::{doca_buf, doca_mmap};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard};

/// A peer's memory, imported for one device.
pub(crate) struct RemoteRegion {
    map: NonNull<doca_mmap>,
    /// Where it begins at the peer.
    base: usize,
    len: usize,
    device: Device,
    inventories: Mutex<Inventories>,
}

// SAFETY: an imported map is never changed, and what counts its buffers is called under the mutex only.
unsafe impl Send for RemoteRegion {}
// SAFETY: as above.
unsafe impl Sync for RemoteRegion {}

impl RemoteRegion {
    pub(crate) fn import(device: &Device, descriptor: &[u8]) -> Result<Self> {
        const CALL: &str = "doca_mmap_create_from_export";
        version::require_fit()?;
        if descriptor.is_empty() {
            return Err(Error::refused(CALL, Refusal::Malformed).with("an empty descriptor"));
        }
        let mut map = ptr::null_mut();
        // SAFETY: the device is open, the bytes are only read, and the out-parameter is a local.
        unsafe {
            call!(doca_mmap_create_from_export(
                ptr::null(),
                descriptor.as_ptr().cast(),
                descriptor.len(),
                device.as_raw(),
                &mut map
            ))
        }?;
        let map = non_null(CALL, map)?;
        let mut region = RemoteRegion {
            map,
            base: 0,
            len: 0,
            device: device.clone(),
            inventories: Mutex::new(Inventories::default()),
        };
        let mut base = ptr::null_mut();
        // SAFETY: a live map, and the out-parameters are locals.
        unsafe { call!(doca_mmap_get_memrange(map.as_ptr(), &mut base, &mut region.len)) }?;
        region.base = base.addr();
        Ok(region)
    }

    #[inline]
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn inventories(&self) -> MutexGuard<'_, Inventories> {
        self.inventories.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A buffer over a range, which the caller checked to lie inside.
    pub(crate) fn piece(self: &Arc<Self>, offset: usize, len: usize) -> Result<RemotePiece> {
        let address = ptr::without_provenance_mut(self.base + offset);
        // SAFETY: an imported map is started, and the range lies inside it.
        let buf = unsafe { self.inventories().get(self.map, address, len) }?;
        let window = offset..offset + len;
        Ok(RemotePiece { region: self.clone(), buf, serial: next_serial(), window, offset, len })
    }
}

impl Drop for RemoteRegion {
    fn drop(&mut self) {
        // SAFETY: made by this object and destroyed once; all buffers came back, since each held the region.
        let destroyed = self
            .inventories()
            .destroy()
            .and_then(|()| unsafe { call!(doca_mmap_destroy(self.map.as_ptr())) });
        if let Err(error) = destroyed {
            log::warn!("{error}: imported memory of {} bytes is leaked", self.len);
        }
    }
}

/// A range of a peer's memory with its `doca_buf`.
pub(crate) struct RemotePiece {
    region: Arc<RemoteRegion>,
    buf: NonNull<doca_buf>,
    serial: u64,
    /// What the buffer was made for.
    window: std::ops::Range<usize>,
    /// Where its data begins in the memory.
    offset: usize,
    len: usize,
}

// SAFETY: the buffer is changed through an exclusive reference only, and counted under the region's mutex.
unsafe impl Send for RemotePiece {}
// SAFETY: as above.
unsafe impl Sync for RemotePiece {}

impl RemotePiece {
    #[inline]
    pub(crate) fn region(&self) -> &RemoteRegion {
        &self.region
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn window(&self) -> std::ops::Range<usize> {
        self.window.clone()
    }

    #[inline]
    pub(crate) fn named(&self) -> Named<doca_buf> {
        Named { raw: self.buf.as_ptr(), serial: self.serial }
    }

    /// Moves the data to another part of the window, which the caller checked.
    pub(crate) fn set_range(&mut self, offset: usize, len: usize) -> Result<()> {
        let address = ptr::without_provenance_mut::<std::ffi::c_void>(self.region.base + offset);
        // SAFETY: the buffer is ours, in no task because of the exclusive reference, and the range lies in its window.
        unsafe { call!(doca_buf_set_data(self.buf.as_ptr(), address, len)) }?;
        (self.offset, self.len) = (offset, len);
        Ok(())
    }
}

impl Drop for RemotePiece {
    fn drop(&mut self) {
        let _guard = self.region.inventories();
        let mut before = 0u16;
        // SAFETY: the only reference to the buffer, taken from an inventory that the lock guards.
        if let Err(error) = unsafe { call!(doca_buf_dec_refcount(self.buf.as_ptr(), &mut before)) } {
            log::warn!("{error}: a buffer of imported memory is leaked");
        }
    }
}
