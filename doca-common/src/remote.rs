//! Memory of a peer, as RDMA tasks name it. It is no local memory: there are no bytes to look at here, only ranges
//! and cells that a task reads, writes or changes over there.

use crate::buffer::Named;
use crate::device::Device;
use crate::error::{Error, Refusal, Result};
use crate::raw::remote::{RemotePiece, RemoteRegion};
use std::fmt;
use std::sync::Arc;

/// A peer's memory, by the descriptor that the peer exported. Clones share it.
#[derive(Clone)]
pub struct RemoteMemory {
    region: Arc<RemoteRegion>,
}

impl RemoteMemory {
    /// Imports what a peer exported: `doca_mmap_create_from_export`. The descriptor must come over a channel that
    /// can be trusted. That the peer's memory is gone is told by the tasks that try to reach it.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] for no bytes, `INVALID_VALUE` for a damaged or foreign descriptor, `NO_MEMORY`,
    /// `NOT_SUPPORTED`.
    #[doc(alias = "doca_mmap_create_from_export")]
    #[doc(alias = "doca_mmap_get_memrange")]
    pub fn import(device: &Device, descriptor: impl AsRef<[u8]>) -> Result<Self> {
        let region = RemoteRegion::import(device, descriptor.as_ref())?;
        Ok(RemoteMemory { region: Arc::new(region) })
    }

    /// Names `len` bytes at `offset`. Ranges may overlap, unlike those of local memory.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] for no bytes or if part of them is outside, or DOCA's.
    #[doc(alias = "doca_buf_inventory_buf_get_by_args")]
    pub fn range(&self, offset: usize, len: usize) -> Result<RemoteBuffer> {
        require_inside(0, self.len(), offset, len)?;
        self.region.piece(offset, len).map(|piece| RemoteBuffer(Arc::new(piece)))
    }

    /// Names all of it.
    ///
    /// # Errors
    ///
    /// As for [`range`](Self::range).
    pub fn whole(&self) -> Result<RemoteBuffer> {
        self.range(0, self.len())
    }

    /// Names the 8 bytes at `offset`, for atomics.
    ///
    /// # Errors
    ///
    /// [`Refusal::Misaligned`] unless the address at the peer is a multiple of 8, and as for [`range`](Self::range).
    pub fn cell(&self, offset: usize) -> Result<RemoteCell> {
        require_inside(0, self.len(), offset, 8)?;
        if !(self.region.base() + offset).is_multiple_of(8) {
            let text = format!("offset {offset} of memory at {:#x} of the peer", self.region.base());
            return Err(Error::refused(GET, Refusal::Misaligned).with(text));
        }
        self.range(offset, 8).map(RemoteCell)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether the peer exported nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that it was imported for.
    pub fn device(&self) -> &Device {
        self.region.device()
    }
}

impl fmt::Debug for RemoteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteMemory({} bytes)", self.len())
    }
}

const GET: &str = "doca_buf_inventory_buf_get_by_args";

/// A range of a peer's memory. Clones share it, tasks in flight too.
#[derive(Clone)]
pub struct RemoteBuffer(Arc<RemotePiece>);

impl RemoteBuffer {
    /// Bytes in the range.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Offset inside the memory.
    pub fn offset(&self) -> usize {
        self.0.offset()
    }

    /// Names another range of the same memory, within what this was made for: `doca_buf_set_data`. It needs no new
    /// buffer.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`], [`Refusal::InUse`] while clones or tasks in flight share it, or DOCA's.
    #[doc(alias = "doca_buf_set_data")]
    pub fn set_range(&mut self, offset: usize, len: usize) -> Result<()> {
        let window = self.0.window();
        require_inside(window.start, window.end, offset, len)?;
        let piece =
            Arc::get_mut(&mut self.0).ok_or_else(|| Error::refused("doca_buf_set_data", Refusal::InUse))?;
        piece.set_range(offset, len)
    }

    /// The device that the memory was imported for.
    #[inline]
    pub fn device(&self) -> &Device {
        self.0.region().device()
    }

    /// In C, for library crates: its data is the range. A task that has it keeps a clone until it is done.
    #[inline]
    pub fn named(&self) -> Named<doca_sys::doca_buf> {
        self.0.named()
    }
}

impl fmt::Debug for RemoteBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteBuffer({} bytes at {})", self.len(), self.offset())
    }
}

/// Eight aligned bytes of a peer's memory.
#[derive(Clone)]
pub struct RemoteCell(RemoteBuffer);

impl RemoteCell {
    /// The same bytes as a range, for reads and writes.
    #[inline]
    pub fn as_buffer(&self) -> &RemoteBuffer {
        &self.0
    }
}

impl fmt::Debug for RemoteCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteCell({})", self.0.offset())
    }
}

fn require_inside(start: usize, end: usize, offset: usize, len: usize) -> Result<()> {
    let inside = offset >= start && offset.checked_add(len).is_some_and(|last| last <= end);
    if inside && len > 0 {
        return Ok(());
    }
    let text = format!("{len} bytes at {offset}, remote memory from {start} to {end}");
    Err(Error::refused(GET, Refusal::OutOfRange).with(text))
}
