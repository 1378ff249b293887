//! Memory that is registered with a device, and buffers in it.

use super::device::Device;
use super::doca;
use crate::Error;
use doca_sys::{doca_access_flag, doca_buf, doca_buf_inventory, doca_mmap};
use std::ptr::{self, NonNull};

/// What the target may do with the data, and DOCA with the messages.
pub(crate) const ACCESS: u32 = doca_access_flag::DOCA_ACCESS_FLAG_LOCAL_READ_WRITE.0
    | doca_access_flag::DOCA_ACCESS_FLAG_RDMA_READ.0
    | doca_access_flag::DOCA_ACCESS_FLAG_RDMA_WRITE.0;

/// Zeroed pages with their key. The target reads and writes them whenever a command allows it, so only copies are made.
pub(crate) struct Memory {
    start: NonNull<u8>,
    len: usize,
    map: *mut doca_mmap,
    inventory: *mut doca_buf_inventory,
    pub(crate) key: u32,
}

impl Memory {
    pub(crate) fn new(len: usize, num_bufs: usize, device: &Device) -> Result<Self, Error> {
        // SAFETY: a new private mapping, of nothing that exists.
        let start = unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0)
        };
        let start = match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => start,
            _ => return Err(Error::Usage(format!("there are no {len} bytes of memory"))),
        };
        let mut memory = Memory { start, len, map: ptr::null_mut(), inventory: ptr::null_mut(), key: 0 };
        // SAFETY: out-parameters are fields; the memory and the device outlive the map, which `drop` destroys.
        unsafe {
            doca!(doca_mmap_create(&mut memory.map))?;
            doca!(doca_mmap_add_dev(memory.map, device.as_ptr()))?;
            doca!(doca_mmap_set_permissions(memory.map, ACCESS))?;
            doca!(doca_mmap_set_memrange(memory.map, start.as_ptr().cast(), len))?;
            doca!(doca_mmap_start(memory.map))?;
            // Not doca_mmap_get_mkey, which came with 3.1.
            let mut domain = ptr::null_mut();
            doca!(doca_rdma_bridge_get_dev_pd(device.as_ptr(), &mut domain))?;
            doca!(doca_rdma_bridge_get_mmap_mkey_from_pd(memory.map, domain, &mut memory.key))?;
            doca!(doca_buf_inventory_create(num_bufs, &mut memory.inventory))?;
            doca!(doca_buf_inventory_start(memory.inventory))?;
        }
        Ok(memory)
    }

    /// The address by which the target names a place.
    pub(crate) fn address(&self, at: usize) -> u64 {
        self.start.as_ptr() as u64 + at as u64
    }

    /// The descriptor by which a peer imports it.
    pub(crate) fn export(&self, device: &Device) -> Result<Vec<u8>, Error> {
        let (mut descriptor, mut len) = (ptr::null(), 0);
        // SAFETY: a started map of this device; out-parameters are locals; the descriptor is the map's and is copied at once.
        unsafe {
            doca!(doca_mmap_export_rdma(self.map, device.as_ptr(), &mut descriptor, &mut len))?;
            Ok(std::slice::from_raw_parts(descriptor.cast::<u8>(), len).to_vec())
        }
    }

    fn place(&self, at: usize, len: usize) -> *mut u8 {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} bytes at {at} of {}",
            self.len
        );
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// A buffer of these bytes, all of them data.
    pub(crate) fn buf(&self, at: usize, len: usize) -> Result<*mut doca_buf, Error> {
        let (mut buf, place) = (ptr::null_mut(), self.place(at, len).cast());
        // SAFETY: within the memory of the map; the out-parameter is a local.
        unsafe {
            doca!(doca_buf_inventory_buf_get_by_args(
                self.inventory,
                self.map,
                place,
                len,
                place,
                len,
                &mut buf
            ))?;
        }
        Ok(buf)
    }

    pub(crate) fn read(&self, at: usize, to: &mut [u8]) {
        // SAFETY: in range; what the target writes meanwhile may be seen or not.
        unsafe { ptr::copy_nonoverlapping(self.place(at, to.len()), to.as_mut_ptr(), to.len()) };
    }

    pub(crate) fn write(&self, at: usize, from: &[u8]) {
        // SAFETY: in range; a slice of others cannot be in this mapping.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.place(at, from.len()), from.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made by `new` and not destroyed yet; when DOCA still uses the memory it stays.
        unsafe {
            if !self.inventory.is_null() {
                _ = doca!(doca_buf_inventory_destroy(self.inventory));
            }
            if self.map.is_null() || doca!(doca_mmap_destroy(self.map)).is_ok() {
                libc::munmap(self.start.as_ptr().cast(), self.len);
            }
        }
    }
}
