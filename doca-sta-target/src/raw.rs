//! What is not safe by nature: queues of disks in the adapter's hands, and memory that disks write to.

use crate::disk::Shared;
use doca_sta::{Allocation, Allocator, Doorbells, NvmeQueue};
use nvme_pci::{DmaBuffer, Mapper, QueueMemory};
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of the block that the adapter maps for doorbells.
const BLOCK: usize = 64;

/// I/O queues of a disk, lent to the adapter.
pub(crate) struct LentQueue {
    disk: Arc<Shared>,
    /// There until they are deleted.
    memory: Option<QueueMemory>,
}

impl LentQueue {
    pub(crate) fn new(disk: Arc<Shared>, memory: QueueMemory) -> Self {
        LentQueue { disk, memory: Some(memory) }
    }

    fn memory(&self) -> &QueueMemory {
        self.memory.as_ref().expect("there until dropped")
    }
}

fn start(buffer: &DmaBuffer) -> NonNull<u8> {
    NonNull::new(buffer.as_ptr()).expect("a mapping is not at 0")
}

// SAFETY: the rings are mappings that this object owns, zeroed when the driver created the queues, to which nothing was
// submitted; the doorbells lie in the BAR, which it keeps. The driver touches neither until it deletes the queues.
unsafe impl NvmeQueue for LentQueue {
    fn entries(&self) -> usize {
        self.memory().entries as usize
    }

    fn submission(&self) -> NonNull<u8> {
        start(&self.memory().sq)
    }

    fn completion(&self) -> NonNull<u8> {
        start(&self.memory().cq)
    }

    fn doorbells(&self) -> Doorbells {
        let (tail, head) = (self.memory().sq_doorbell as usize, self.memory().cq_doorbell as usize);
        let first = tail / BLOCK * BLOCK;
        // Both are in one block unless the controller spreads doorbells widely.
        let len = (head + 4 - first).next_multiple_of(BLOCK);
        // SAFETY: doorbells of queues that the driver created lie inside the BAR.
        let start = unsafe { self.disk.bar.base().add(first) };
        Doorbells {
            start,
            len,
            dmabuf: self.disk.dmabuf.as_ref().map(|fd| (fd.as_raw_fd(), first)),
            submission_tail: (tail - first) as u16,
            completion_head: (head - first) as u16,
        }
    }
}

impl Drop for LentQueue {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take()
            && let Err(error) = self.disk.driver().delete_queue(memory)
        {
            log::warn!("a disk: {error}");
        }
    }
}

/// Memory of the adapter that every disk reaches, at one address: the [allocator](doca_sta::Config::set_allocator) of a target
/// whose back ends are [`Disk`](crate::Disk)s. A [`Target`](crate::Target) has one of its own.
pub struct DiskMemory {
    mappers: Vec<Arc<dyn Mapper>>,
    pieces: Mutex<BTreeMap<usize, Piece>>,
}

struct Piece {
    first: DmaBuffer,
    /// The other disks' addresses, which are the same.
    others: Vec<(usize, u64)>,
}

impl DiskMemory {
    /// For the disks with these mappers; at least one, or nothing is allocated.
    pub fn new(mappers: Vec<Arc<dyn Mapper>>) -> Arc<Self> {
        Arc::new(DiskMemory { mappers, pieces: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Piece>> {
        self.pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn release(&self, piece: Piece) {
        for (mapper, iova) in piece.others {
            self.mappers[mapper].unmap(iova, piece.first.len());
        }
    }
}

impl fmt::Debug for DiskMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DiskMemory({} disks, {} pieces)", self.mappers.len(), self.lock().len())
    }
}

// SAFETY: each piece is a fresh zeroed mapping, which the first disk's mapper made reachable, and the others' at the same
// address, or it is not given out; it stays until it is freed.
unsafe impl Allocator for DiskMemory {
    fn alloc(&self, size: usize, align: usize) -> Option<Allocation> {
        /// Alignment of mappings.
        const PAGE: usize = 4096;
        let (mapper, rest) = self.mappers.split_first()?;
        if align > PAGE {
            return None;
        }
        let first = DmaBuffer::new(size, mapper).map_err(|error| log::warn!("{error}")).ok()?;
        let (at, iova, len) = (start(&first), first.iova(), first.len());
        let mut piece = Piece { first, others: Vec::new() };
        for (index, mapper) in rest.iter().enumerate() {
            // SAFETY: the mapping stays until the piece is released, which unmaps it before.
            match unsafe { mapper.map(at, len) } {
                Ok(own) => piece.others.push((index + 1, own)),
                Err(error) => {
                    log::warn!("a disk cannot reach {len} bytes: {error}");
                    self.release(piece);
                    return None;
                }
            }
        }
        if piece.others.iter().any(|(_, own)| *own != iova) {
            log::warn!("disks would find the adapter's memory at different addresses");
            self.release(piece);
            return None;
        }
        self.lock().insert(at.as_ptr().addr(), piece);
        Some(Allocation { start: at, iova })
    }

    unsafe fn free(&self, start: NonNull<u8>) {
        let piece = self.lock().remove(&start.as_ptr().addr());
        if let Some(piece) = piece {
            self.release(piece);
        }
    }

    fn iova_of(&self, start: *const u8, len: usize) -> Option<u64> {
        let pieces = self.lock();
        let (base, piece) = pieces.range(..=start.addr()).next_back()?;
        let offset = start.addr() - base;
        (offset.checked_add(len)? <= piece.first.len()).then(|| piece.first.iova() + offset as u64)
    }
}
