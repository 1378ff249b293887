//! `doca_mmap`, and the `doca_buf`s over it: registered memory and its pieces.

use crate::access::Access;
use crate::buffer::NamedBuf;
use crate::call;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{Code, Error, Refusal, Result};
use crate::memory::{Foreign, Ranges};
use crate::raw::inventory::{Inventories, non_null};
use crate::raw::memfd::Memfd;
use crate::version;
use doca_sys::{doca_buf, doca_mmap};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Who owns the bytes.
pub(crate) enum Backing {
    Own(Memfd),
    Foreign(Box<dyn Foreign>),
}

impl Backing {
    fn base(&self) -> NonNull<u8> {
        match self {
            Backing::Own(memfd) => memfd.base(),
            Backing::Foreign(foreign) => foreign.base(),
        }
    }
}

/// One range registered with one device. It is unregistered when the last piece of it is gone.
pub struct Region {
    map: NonNull<doca_mmap>,
    base: NonNull<u8>,
    len: usize,
    access: Access,
    device: Device,
    pool: Mutex<Pool>,
    /// Freed only after DOCA let go of the range.
    backing: ManuallyDrop<Backing>,
}

struct Pool {
    ranges: Ranges,
    inventories: Inventories,
}

// SAFETY: the map has thread safety enabled, its inventories are used under the mutex only, and the bytes are
// reached through pieces, which do not overlap.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Registers memory. The memory comes back if that fails.
    pub(crate) fn register(
        backing: Backing,
        len: usize,
        device: &Device,
        access: Access,
    ) -> std::result::Result<Self, (Error, Backing)> {
        let map = match create_map(&backing, len, device, access) {
            Ok(map) => map,
            Err(error) => return Err((error, backing)),
        };
        Ok(Region {
            map,
            base: backing.base(),
            len,
            access,
            device: device.clone(),
            pool: Mutex::new(Pool { ranges: Ranges::new(len), inventories: Inventories::default() }),
            backing: ManuallyDrop::new(backing),
        })
    }

    /// In C.
    pub fn as_raw(&self) -> *mut doca_mmap {
        self.map.as_ptr()
    }

    /// The device it is registered with.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What is allowed on it.
    #[inline]
    pub fn access(&self) -> Access {
        self.access
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes a range out, anywhere or at an offset.
    pub(crate) fn take(self: &Arc<Self>, at: Option<usize>, len: usize) -> Result<Piece> {
        let mut pool = self.pool();
        let offset = match at {
            Some(offset) => pool.ranges.take_at(offset, len).then_some(offset),
            None => pool.ranges.take(len),
        };
        let offset = offset.ok_or_else(|| {
            let place = at.map_or(String::new(), |offset| format!(" at {offset}"));
            let text = format!("{len} bytes{place} of {} ({} free)", self.len, pool.ranges.free());
            Error::refused("doca_buf_inventory_buf_get_by_args", Refusal::OutOfRange).with(text)
        })?;
        // SAFETY: the map is started, and the range lies inside it.
        match unsafe { pool.inventories.get(self.map, self.at(offset).as_ptr(), len) } {
            Ok(buf) => {
                let serial = next_serial();
                Ok(Piece { region: self.clone(), buf, serial, offset, capacity: len, len, set: len })
            }
            Err(error) => {
                pool.ranges.give(offset, len);
                Err(error)
            }
        }
    }

    /// Whether nobody took any part of the range.
    pub(crate) fn is_free(&self, offset: usize, len: usize) -> bool {
        self.pool().ranges.contains(offset, len)
    }

    /// The address of a byte inside the region.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.len);
        // SAFETY: the region is one allocation of `len` bytes and the offset lies inside or at its end.
        unsafe { self.base.add(offset) }
    }

    /// Makes the descriptor by which peers reach the region over RDMA.
    pub(crate) fn export_rdma(&self) -> Result<Descriptor> {
        let (mut bytes, mut len) = (ptr::null(), 0);
        // SAFETY: a started map and an open device, and the out-parameters are locals.
        unsafe {
            call!(doca_mmap_export_rdma(self.map.as_ptr(), self.device.as_raw(), &mut bytes, &mut len))
        }?;
        if bytes.is_null() {
            return Err(Error::doca("doca_mmap_export_rdma", Code::UNEXPECTED));
        }
        // SAFETY: DOCA keeps `len` bytes there until the map is stopped; they are copied now.
        Ok(Descriptor::from(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) }))
    }

    fn unregister(&self) -> Result<()> {
        // All its buffers came back, since each held the region.
        self.pool().inventories.destroy()?;
        // SAFETY: made by this region and destroyed once; no buffer points into it.
        unsafe { call!(doca_mmap_destroy(self.map.as_ptr())) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.unregister() {
            // SAFETY: not taken before, and nobody reaches the bytes any more.
            Ok(()) => unsafe { ManuallyDrop::drop(&mut self.backing) },
            Err(error) => {
                log::warn!("{error}: {} bytes stay allocated, the device may still reach them", self.len)
            }
        }
    }
}

/// Registers memory for a sister crate, which hands it to DOCA in one piece: no part of it ever becomes a buffer.
///
/// # Errors
///
/// DOCA's.
pub fn register(memory: crate::Memory, device: &Device, access: Access) -> Result<Region> {
    let (backing, len) = memory.into_parts();
    Region::register(backing, len, device, access).map_err(|(error, _)| error)
}

fn create_map(backing: &Backing, len: usize, device: &Device, access: Access) -> Result<NonNull<doca_mmap>> {
    version::require_fit()?;
    let mut map = ptr::null_mut();
    // SAFETY: the out-parameter is a local.
    unsafe { call!(doca_mmap_create(&mut map)) }?;
    let map = non_null("doca_mmap_create", map)?;
    match start_map(map, backing, len, device, access) {
        Ok(()) => Ok(map),
        Err(error) => {
            // SAFETY: a live map without buffers. That it may fail changes nothing: it was never started.
            let _ = unsafe { call!(doca_mmap_destroy(map.as_ptr())) };
            Err(error)
        }
    }
}

fn start_map(
    map: NonNull<doca_mmap>,
    backing: &Backing,
    len: usize,
    device: &Device,
    access: Access,
) -> Result<()> {
    let (map, base) = (map.as_ptr(), backing.base().as_ptr().cast());
    let dmabuf = match backing {
        Backing::Foreign(foreign) => foreign.dmabuf(),
        Backing::Own(_) => None,
    };
    // SAFETY: a map that is being configured, an open device that the region will keep, and a range that the
    // backing keeps allocated and in place until the map is destroyed.
    unsafe {
        match dmabuf {
            Some((fd, offset)) => call!(doca_mmap_set_dmabuf_memrange(map, fd, base, offset, len))?,
            None => call!(doca_mmap_set_memrange(map, base, len))?,
        }
        call!(doca_mmap_set_permissions(map, access.bits()))?;
        call!(doca_mmap_add_dev(map, device.as_raw()))?;
        // Pieces are taken and given back on any thread while tasks of others use the map.
        call!(doca_mmap_enable_thread_safety(map))?;
        call!(doca_mmap_start(map))
    }
}

/// A number that no other buffer of the process has, and that is not 0.
pub(crate) fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A range that left its memory, with its `doca_buf`. Dropping it gives the range back.
pub(crate) struct Piece {
    region: Arc<Region>,
    buf: NonNull<doca_buf>,
    serial: u64,
    offset: usize,
    capacity: usize,
    /// Length of the data, at most the capacity.
    len: usize,
    /// Length of the data as C has it, to save a call when nothing changed.
    set: usize,
}

// SAFETY: the piece owns its range and its buffer; inventory and map are guarded by the region.
unsafe impl Send for Piece {}
// SAFETY: through a shared reference bytes can only be read, and the buffer is not touched.
unsafe impl Sync for Piece {}

impl Piece {
    /// What it is a piece of.
    #[inline]
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Offset inside the memory.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Size of the range.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Length of the data.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Changes the length of the data; more than fits is cut.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.capacity);
    }

    /// The buffer in C, ready to be sent: its data is the piece's data.
    #[inline]
    pub(crate) fn as_source(&mut self) -> Result<NamedBuf> {
        if self.set != self.len {
            self.tell(self.len)?;
        }
        Ok(self.as_is())
    }

    /// The buffer in C as it was last made ready.
    #[inline]
    pub(crate) fn as_is(&self) -> NamedBuf {
        NamedBuf { raw: self.buf.as_ptr(), serial: self.serial }
    }

    /// The buffer in C, ready to be filled: it has no data.
    #[inline]
    pub(crate) fn as_destination(&mut self) -> Result<NamedBuf> {
        if self.set != 0 {
            // SAFETY: the buffer is ours and not in flight.
            unsafe { call!(doca_buf_reset_data_len(self.buf.as_ptr())) }?;
            self.set = 0;
        }
        Ok(self.as_is())
    }

    /// Notes how much the device wrote from the start. DOCA set the same length in its buffer.
    #[inline]
    pub(crate) fn filled(&mut self, len: usize) {
        self.len = len.min(self.capacity);
        self.set = self.len;
    }

    /// Links another buffer, and what is linked to it, behind the chain that this one heads.
    pub(crate) fn link(&self, next: &Piece) -> Result<()> {
        // SAFETY: both buffers are ours, heads, and not in flight.
        unsafe { call!(doca_buf_chain_list(self.buf.as_ptr(), next.buf.as_ptr())) }
    }

    /// Takes the last buffer off the chain that this one heads.
    pub(crate) fn unlink(&self, last: &Piece) -> Result<()> {
        // SAFETY: both buffers are ours and not in flight; the second was linked behind the first.
        unsafe { call!(doca_buf_unchain_list(self.buf.as_ptr(), last.buf.as_ptr())) }
    }

    /// Notes that the data in C may have any length.
    #[inline]
    pub(crate) fn disturbed(&mut self) {
        self.set = usize::MAX;
    }

    fn tell(&mut self, len: usize) -> Result<()> {
        // SAFETY: the buffer is ours and not in flight, and the data lies in its window.
        unsafe { call!(doca_buf_set_data(self.buf.as_ptr(), self.start().as_ptr().cast(), len)) }?;
        self.set = len;
        Ok(())
    }

    /// The first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.region.at(self.offset)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut pool = self.region.pool();
        let mut before = 0u16;
        // SAFETY: the only reference to the buffer, taken from an inventory that the lock guards.
        match unsafe { call!(doca_buf_dec_refcount(self.buf.as_ptr(), &mut before)) } {
            Ok(()) => pool.ranges.give(self.offset, self.capacity),
            Err(error) => log::warn!("{error}: {} bytes stay taken", self.capacity),
        }
    }
}
