//! Memory that devices may reach.
//!
//! ```text
//! Memory::zeroed ── private ──> PrivateMemory ── take ──> Buffer        slices, while it is ours
//!        foreign └─ shared ───> SharedMemory  ── take ──> SharedBuffer  copies in and out, cells
//! ```
//!
//! Whether memory is private or shared is decided by its permissions when it is registered, not when a descriptor
//! of it is first exported. A range leaves its memory once: it belongs to one buffer at a time.

use crate::access::{Access, Requirement};
use crate::buffer::{Buffer, SharedBuffer};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{Error, Failed, Refusal, Result};
use crate::raw::map::{Backing, Region};
use crate::raw::memfd::Memfd;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

pub use crate::raw::foreign::{Foreign, Heap};

/// Memory that is not registered yet.
pub struct Memory {
    backing: Backing,
    len: usize,
    /// The flags of what peers were said to do, if anything was said.
    declared: Option<Access>,
}

impl Memory {
    /// Allocates `len` bytes: page-aligned, zeroed, a sealed memfd.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] for no bytes, otherwise the operating system's.
    pub fn zeroed(len: usize) -> Result<Self> {
        Ok(Memory { backing: Backing::Own(Memfd::new(len)?), len, declared: None })
    }

    /// Takes memory of somebody else.
    pub fn foreign(memory: impl Foreign) -> Self {
        Memory { len: memory.len(), backing: Backing::Foreign(Box::new(memory)), declared: None }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true for memory that was allocated here.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Declares that peers will do a kind of task in this memory, of which this is the row in the permission matrix:
    /// [`shared`](Memory::shared) then gives its flags, and logs the `RDMA_*` flags that it was asked for beyond what
    /// was declared. The peer's context must be allowed it too, as by `doca_rdma::Config::allow`.
    ///
    /// ```no_run
    /// # use doca_common::{Access, Device, Memory, SharedMemory, access::requirement};
    /// # fn share(device: &Device) -> doca_common::Result<SharedMemory> {
    /// // `doca_rdma::ReadTask::requirement()` is the same row.
    /// let memory = Memory::zeroed(4096)?.allow(requirement("doca_rdma_task_read"));
    /// Ok(memory.shared(device, Access::empty())?)
    /// # }
    /// ```
    #[must_use = "the memory comes back with the declaration"]
    pub fn allow(mut self, task: impl IntoIterator<Item = &'static Requirement>) -> Self {
        for row in task {
            *self.declared.get_or_insert_default() |= row.peer_memory;
        }
        self
    }

    /// Registers the memory for local use: `doca_mmap_start` with LOCAL_READ_WRITE. Messages can be sent from it and
    /// received into it, but no peer can reach it by itself.
    ///
    /// # Errors
    ///
    /// DOCA's, with the memory: `NOT_PERMITTED` or `DRIVER` are mostly the limit of locked memory.
    #[doc(alias = "doca_mmap_create")]
    #[doc(alias = "doca_mmap_start")]
    pub fn private(self, device: &Device) -> std::result::Result<PrivateMemory, Failed<Memory>> {
        self.register(device, Access::LOCAL_READ_WRITE).map(|region| PrivateMemory { region })
    }

    /// Registers the memory for reading alone: `doca_mmap_start` with LOCAL_READ_ONLY. Messages can be sent from it and
    /// written to peers. Tasks that would fill it are refused: [`Refusal::Permissions`].
    ///
    /// # Errors
    ///
    /// As for [`private`](Memory::private).
    #[doc(alias = "doca_mmap_set_permissions")]
    pub fn read_only(self, device: &Device) -> std::result::Result<PrivateMemory, Failed<Memory>> {
        self.register(device, Access::empty()).map(|region| PrivateMemory { region })
    }

    /// Registers the memory so that others can reach it, as `access` says and what was [declared](Memory::allow) needs:
    /// at least one `RDMA_*` or `PCI_*` flag. Local devices may read and write it too.
    ///
    /// # Errors
    ///
    /// As for [`private`](Memory::private); [`Refusal::Permissions`] if no flag lets anybody in.
    #[doc(alias = "doca_mmap_set_permissions")]
    pub fn shared(
        self,
        device: &Device,
        access: Access,
    ) -> std::result::Result<SharedMemory, Failed<Memory>> {
        let declared = self.declared;
        let access = access | declared.unwrap_or_default();
        if !access.intersects(Access::ANY_REMOTE) {
            let text =
                format!("{access} lets no peer in: use private memory, or add an RDMA_* or PCI_* flag");
            let error = Error::refused("doca_mmap_set_permissions", Refusal::Permissions).with(text);
            return Err(Failed::new(error, self));
        }
        let region = self.register(device, access | Access::LOCAL_READ_WRITE)?;
        log_permissions(&region, declared);
        Ok(SharedMemory { region, one_thread: PhantomData })
    }

    pub(crate) fn into_parts(self) -> (Backing, usize) {
        (self.backing, self.len)
    }

    fn register(self, device: &Device, access: Access) -> std::result::Result<Arc<Region>, Failed<Memory>> {
        let Memory { backing, len, declared } = self;
        Region::register(backing, len, device, access)
            .map(Arc::new)
            .map_err(|(error, backing)| Failed::new(error, Memory { backing, len, declared }))
    }
}

/// Logs what peers may do beyond the declared use. The rows of the matrix are those of RDMA, so flags for PCI are not
/// judged.
fn log_permissions(region: &Region, declared: Option<Access>) {
    let Some(declared) = declared else { return };
    let beyond = (region.access() & Access::ANY_RDMA) - declared;
    if !beyond.is_empty() {
        log::warn!(
            "doca_mmap_set_permissions: peers may do {beyond} in the {} bytes at {:p}, beyond the use that was declared",
            region.len(),
            region.at(0)
        );
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.len)
    }
}

/// Memory that only this program and its devices use.
#[derive(Clone)]
pub struct PrivateMemory {
    region: Arc<Region>,
}

impl PrivateMemory {
    /// Takes `len` bytes out, wherever there is room. The buffer is full of data: its length is `len`.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] if there is no such room left.
    #[doc(alias = "doca_buf_inventory_buf_get_by_args")]
    pub fn take(&self, len: usize) -> Result<Buffer> {
        self.region.take(None, len).map(|piece| Buffer { piece: Box::new(piece) })
    }

    /// Takes `len` bytes out at `offset`.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] if part of them is outside or taken.
    pub fn take_at(&self, offset: usize, len: usize) -> Result<Buffer> {
        self.region.take(Some(offset), len).map(|piece| Buffer { piece: Box::new(piece) })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for PrivateMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateMemory({} bytes)", self.len())
    }
}

/// Memory that peers may read or change at any time, as its permissions say. There are no references into it,
/// only copies and [`Cell`]s. To add to a cell atomically against a peer, use RDMA atomics on a loopback
/// connection: the device's atomics and the CPU's do not see each other.
pub struct SharedMemory {
    pub(crate) region: Arc<Region>,
    /// Two threads must not copy at once.
    one_thread: PhantomData<std::cell::Cell<()>>,
}

impl SharedMemory {
    /// Makes the descriptor that a peer needs: `doca_mmap_export_rdma`. Whoever has it can do what the permissions
    /// say, so send it over a secure channel. It goes stale when this memory and all
    /// buffers of it are dropped.
    ///
    /// # Errors
    ///
    /// `NOT_PERMITTED` if there is no `RDMA_*` flag, `NO_MEMORY`, `NOT_SUPPORTED`, `DRIVER`.
    #[doc(alias = "doca_mmap_export_rdma")]
    pub fn export(&self) -> Result<Descriptor> {
        self.region.export_rdma()
    }

    /// Takes `len` bytes out, as [`PrivateMemory::take`] does.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] if there is no such room left.
    pub fn take(&self, len: usize) -> Result<SharedBuffer> {
        self.region.take(None, len).map(|piece| SharedBuffer { piece: Box::new(piece) })
    }

    /// Takes `len` bytes out at `offset`.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] if part of them is outside or taken.
    pub fn take_at(&self, offset: usize, len: usize) -> Result<SharedBuffer> {
        self.region.take(Some(offset), len).map(|piece| SharedBuffer { piece: Box::new(piece) })
    }

    /// Copies bytes out. A peer may be changing them meanwhile.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] if part of the range is outside, or belongs to a buffer.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        self.own(offset, to.len())?;
        self.copy_out(offset, to);
        Ok(())
    }

    /// Copies bytes in. A peer may be reading or changing them meanwhile.
    ///
    /// # Errors
    ///
    /// As for [`read`](SharedMemory::read).
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        self.own(offset, from.len())?;
        self.copy_in(offset, from);
        Ok(())
    }

    /// The 8 bytes at `offset` as a number that changes in one piece.
    ///
    /// # Errors
    ///
    /// [`Refusal::Misaligned`] unless `offset` is a multiple of 8, else as for [`read`](SharedMemory::read).
    pub fn cell(&self, offset: usize) -> Result<Cell<'_>> {
        self.own(offset, 8)?;
        let at = self.region.at(offset);
        if !at.as_ptr().addr().is_multiple_of(8) {
            let text = format!("offset {offset}");
            return Err(Error::refused("cell", Refusal::Misaligned).with(text));
        }
        Ok(Cell { at, memory: PhantomData })
    }

    fn own(&self, offset: usize, len: usize) -> Result<()> {
        if self.region.is_free(offset, len) {
            return Ok(());
        }
        let text = format!("{len} bytes at {offset} of {}", self.region.len());
        Err(Error::refused("shared memory", Refusal::OutOfRange).with(text))
    }

    /// The registered range, for library crates.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// What peers may do.
    pub fn access(&self) -> Access {
        self.region.access()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} bytes, {})", self.len(), self.access())
    }
}

/// Eight aligned bytes of shared memory. A peer's write of 8 aligned bytes, and its RDMA atomics, change it in one
/// piece; so do loads and stores here.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'memory> {
    pub(crate) at: NonNull<u8>,
    memory: PhantomData<&'memory SharedMemory>,
}

/// The ranges of a memory that nobody took, by offset. Neighbours are always merged.
#[derive(Debug)]
pub(crate) struct Ranges {
    free: Vec<(usize, usize)>,
    end: usize,
}

/// Ranges begin at multiples of this, so that any of them can hold cells and atomic results.
const GRAIN: usize = 8;

impl Ranges {
    pub(crate) fn new(len: usize) -> Self {
        Ranges { free: vec![(0, len)], end: len }
    }

    /// Takes the first range that is long enough.
    pub(crate) fn take(&mut self, len: usize) -> Option<usize> {
        let fits =
            |&(offset, room): &(usize, usize)| len > 0 && Self::skip(offset).saturating_add(len) <= room;
        let (offset, _) = *self.free.iter().find(|range| fits(range))?;
        let start = offset + Self::skip(offset);
        self.take_at(start, len).then_some(start)
    }

    fn skip(offset: usize) -> usize {
        offset.next_multiple_of(GRAIN) - offset
    }

    /// Takes a certain range; false if part of it is taken or outside.
    pub(crate) fn take_at(&mut self, offset: usize, len: usize) -> bool {
        let Some((index, end)) = self.find(offset, len) else { return false };
        if len == 0 {
            return false;
        }
        let (start, room) = self.free[index];
        let (before, after) = (offset - start, start + room - end);
        match (before > 0, after > 0) {
            (false, false) => {
                self.free.remove(index);
            }
            (true, false) => self.free[index] = (start, before),
            (false, true) => self.free[index] = (end, after),
            (true, true) => {
                self.free[index] = (start, before);
                self.free.insert(index + 1, (end, after));
            }
        }
        true
    }

    /// Gives a range back.
    pub(crate) fn give(&mut self, offset: usize, len: usize) {
        debug_assert!(offset + len <= self.end);
        let index = self.free.partition_point(|&(start, _)| start < offset);
        self.free.insert(index, (offset, len));
        if index + 1 < self.free.len() && self.free[index].0 + self.free[index].1 == self.free[index + 1].0 {
            self.free[index].1 += self.free.remove(index + 1).1;
        }
        if index > 0 && self.free[index - 1].0 + self.free[index - 1].1 == self.free[index].0 {
            self.free[index - 1].1 += self.free.remove(index).1;
        }
    }

    /// Whether the whole range is free.
    pub(crate) fn contains(&self, offset: usize, len: usize) -> bool {
        (len == 0 && offset <= self.end) || self.find(offset, len).is_some()
    }

    /// Free bytes in all.
    pub(crate) fn free(&self) -> usize {
        self.free.iter().map(|(_, len)| len).sum()
    }

    fn find(&self, offset: usize, len: usize) -> Option<(usize, usize)> {
        let end = offset.checked_add(len)?;
        let index = self.free.partition_point(|&(start, _)| start <= offset).checked_sub(1)?;
        let (start, room) = self.free[index];
        (end <= start + room).then_some((index, end))
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn ranges_leave_once_and_merge_when_they_return() {
        let mut ranges = Ranges::new(100);
        let a = ranges.take(10).unwrap();
        let b = ranges.take(20).unwrap();
        assert_eq!((a, b), (0, 16));
        assert!(!ranges.take_at(30, 10), "overlaps b");
        assert!(ranges.take_at(90, 10));
        assert!(!ranges.take_at(99, 2), "beyond the end");
        assert_eq!(ranges.take(usize::MAX), None);
        assert_eq!(ranges.take(0), None);
        ranges.give(b, 20);
        ranges.give(90, 10);
        ranges.give(a, 10);
        assert_eq!(ranges.free, [(0, 100)]);
    }

    #[test]
    fn random_use_never_overlaps() {
        let (mut ranges, mut taken, mut seed) = (Ranges::new(1000), Vec::<(usize, usize)>::new(), 7u64);
        for _ in 0..5000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (offset, len) = ((seed >> 33) as usize % 1100, (seed >> 50) as usize % 60 + 1);
            if seed >> 63 == 0 && !taken.is_empty() {
                let (offset, len) = taken.swap_remove(offset % taken.len());
                ranges.give(offset, len);
            } else if let Some(offset) = if seed & 1024 == 0 {
                ranges.take(len)
            } else {
                ranges.take_at(offset, len).then_some(offset)
            } {
                assert!(offset + len <= 1000);
                assert!(taken.iter().all(|&(o, l)| offset + len <= o || o + l <= offset));
                taken.push((offset, len));
            }
            let in_use: usize = taken.iter().map(|(_, len)| len).sum();
            assert_eq!(ranges.free() + in_use, 1000);
        }
    }
}
