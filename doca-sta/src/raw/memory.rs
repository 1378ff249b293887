//! `doca_sta_mem_allocator_register`, and the memory that it gives.
//!
//! The callbacks have no user data, so there is one allocator at a time for the whole process.

use super::sta::Handle;
use doca_common::{Error, Refusal, Result, call};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard};

const REGISTER: &str = "doca_sta_mem_allocator_register";

/// Alignment that DOCA expects at least: a cache line.
const LINE: usize = 64;

/// A piece of memory as the disk sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Where this process finds it.
    pub start: NonNull<u8>,
    /// Where the disk finds it: its IOVA.
    pub iova: u64,
}

/// Gives DOCA the memory through which data passes on its way between network and disk. DOCA calls it from whatever
/// thread calls DOCA.
///
/// # Safety
///
/// [`alloc`](Allocator::alloc) gives `size` zeroed bytes, pinned, aligned to `align`, that nothing else names until
/// they go to [`free`](Allocator::free). Where the disk is said to find a piece, it finds that piece.
pub unsafe trait Allocator: Send + Sync + 'static {
    /// Allocates. `align` is a power of two of at least a cache line.
    fn alloc(&self, size: usize, align: usize) -> Option<Allocation>;

    /// Frees what was allocated, by its first byte.
    ///
    /// # Safety
    ///
    /// `start` came from [`alloc`](Allocator::alloc) of this object and was not freed since.
    unsafe fn free(&self, start: NonNull<u8>);

    /// Where the disk finds `len` bytes, if they are one range to it.
    fn iova_of(&self, start: *const u8, len: usize) -> Option<u64>;
}

/// What is allocated: by first byte, with the layout that frees it.
#[derive(Default)]
struct Pieces(Mutex<BTreeMap<usize, Layout>>);

impl Pieces {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Layout>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether a range lies inside one piece.
    fn contains(&self, start: usize, len: usize) -> bool {
        let pieces = self.lock();
        let found = pieces.range(..=start).next_back();
        found.is_some_and(|(base, layout)| {
            start.checked_add(len).is_some_and(|end| end <= base + layout.size())
        })
    }
}

/// Memory of the heap, which the disk finds at the addresses of this process. For simulated disks, and for devices
/// behind an IOMMU that maps the whole process so.
#[derive(Default)]
pub struct PlainAllocator {
    pieces: Pieces,
}

impl PlainAllocator {
    /// An allocator that has given nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Bytes that DOCA has now.
    pub fn allocated(&self) -> usize {
        self.pieces.lock().values().map(Layout::size).sum()
    }

    /// Whether a range that a disk was given lies inside one piece that DOCA has now.
    pub fn contains(&self, iova: u64, len: usize) -> bool {
        usize::try_from(iova).is_ok_and(|start| self.pieces.contains(start, len))
    }
}

// SAFETY: the global allocator gives zeroed memory that nobody else has; the disk's addresses are the process's.
unsafe impl Allocator for PlainAllocator {
    fn alloc(&self, size: usize, align: usize) -> Option<Allocation> {
        let layout = Layout::from_size_align(size.max(1), align).ok()?;
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        self.pieces.lock().insert(start.as_ptr().addr(), layout);
        Some(Allocation { start, iova: start.as_ptr().addr() as u64 })
    }

    unsafe fn free(&self, start: NonNull<u8>) {
        if let Some(layout) = self.pieces.lock().remove(&start.as_ptr().addr()) {
            // SAFETY: allocated above with this layout, and forgotten now.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }

    fn iova_of(&self, start: *const u8, len: usize) -> Option<u64> {
        self.pieces.contains(start.addr(), len).then(|| start.addr() as u64)
    }
}

impl fmt::Debug for PlainAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainAllocator({} bytes)", self.allocated())
    }
}

/// Huge pages of 2 MiB, which small pieces share, and which the disk finds at the addresses of this process. A driver must
/// map them for its disk: `map` is called with address and length before DOCA has a piece of them, `unmap` after it gave the last one
/// back. With VFIO these are `VFIO_IOMMU_MAP_DMA` and `VFIO_IOMMU_UNMAP_DMA` with IOVA equal to the address.
pub struct HugepageAllocator {
    pieces: Pieces,
    /// Mappings by address.
    mappings: Mutex<BTreeMap<usize, Mapping>>,
    map: Box<dyn Fn(usize, usize) -> bool + Send + Sync>,
    unmap: Box<dyn Fn(usize, usize) + Send + Sync>,
}

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
/// What pieces are multiples of, as disks want it.
const PAGE: usize = 4096;

/// Huge pages in a row.
struct Mapping {
    len: usize,
    /// Bytes that were given out. None is given out twice: what comes back may hold anything.
    used: usize,
    /// Pieces that DOCA has.
    pieces: usize,
}

impl HugepageAllocator {
    /// An allocator whose pieces are mapped for the disk by these functions.
    pub fn new(
        map: impl Fn(usize, usize) -> bool + Send + Sync + 'static,
        unmap: impl Fn(usize, usize) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (pieces, mappings) = (Pieces::default(), Mutex::default());
        Arc::new(HugepageAllocator { pieces, mappings, map: Box::new(map), unmap: Box::new(unmap) })
    }

    /// Bytes that DOCA has now, in whole pages of 4096 bytes.
    pub fn allocated(&self) -> usize {
        self.pieces.lock().values().map(Layout::size).sum()
    }

    /// Huge pages that are in use now.
    pub fn pages(&self) -> usize {
        self.mappings().values().map(|mapping| mapping.len / HUGE).sum()
    }

    fn mappings(&self) -> MutexGuard<'_, BTreeMap<usize, Mapping>> {
        self.mappings.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// New huge pages, at least that many bytes, which the disk finds.
    fn map(&self, size: usize) -> Option<(NonNull<u8>, usize)> {
        let size = size.checked_next_multiple_of(HUGE)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_HUGETLB
            | libc::MAP_HUGE_2MB
            | libc::MAP_POPULATE;
        // SAFETY: a new mapping, wherever the kernel likes.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            log::warn!(
                "{REGISTER}: {} huge pages of 2 MiB: {}; see /proc/sys/vm/nr_hugepages",
                size / HUGE,
                std::io::Error::last_os_error()
            );
            return None;
        }
        let start = NonNull::new(start.cast::<u8>())?;
        if !(self.map)(start.as_ptr().addr(), size) {
            // SAFETY: mapped above, and told to nobody.
            unsafe { libc::munmap(start.as_ptr().cast(), size) };
            return None;
        }
        Some((start, size))
    }
}

// SAFETY: pieces of fresh anonymous mappings, which are zeroed and nobody else's, and given out once; `map` made the disk find
// them where they are, until all of a mapping came back.
unsafe impl Allocator for HugepageAllocator {
    fn alloc(&self, size: usize, align: usize) -> Option<Allocation> {
        if align > HUGE {
            return None;
        }
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let mut mappings = self.mappings();
        let room = mappings.iter_mut().find_map(|(base, mapping)| {
            let at = mapping.used.next_multiple_of(align.max(PAGE));
            (at + size <= mapping.len).then_some((*base + at, mapping, at + size))
        });
        let start = match room {
            Some((start, mapping, used)) => {
                (mapping.used, mapping.pieces) = (used, mapping.pieces + 1);
                NonNull::new(ptr::with_exposed_provenance_mut(start))?
            }
            None => {
                let (start, len) = self.map(size)?;
                let base = start.as_ptr().expose_provenance();
                mappings.insert(base, Mapping { len, used: size, pieces: 1 });
                start
            }
        };
        let layout = Layout::from_size_align(size, PAGE).ok()?;
        self.pieces.lock().insert(start.as_ptr().addr(), layout);
        Some(Allocation { start, iova: start.as_ptr().addr() as u64 })
    }

    unsafe fn free(&self, start: NonNull<u8>) {
        let start = start.as_ptr().addr();
        if self.pieces.lock().remove(&start).is_none() {
            return;
        }
        let mut mappings = self.mappings();
        let Some((base, mapping)) = mappings.range_mut(..=start).next_back() else { return };
        mapping.pieces -= 1;
        if mapping.pieces == 0 {
            let (base, len) = (*base, mapping.len);
            mappings.remove(&base);
            (self.unmap)(base, len);
            // SAFETY: mapped with this length; the last piece of it has come back, and it is forgotten now.
            unsafe { libc::munmap(ptr::with_exposed_provenance_mut(base), len) };
        }
    }

    fn iova_of(&self, start: *const u8, len: usize) -> Option<u64> {
        self.pieces.contains(start.addr(), len).then(|| start.addr() as u64)
    }
}

impl fmt::Debug for HugepageAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HugepageAllocator({} bytes, {} huge pages)", self.allocated(), self.pages())
    }
}

/// The allocator of the process, and how many contexts use it.
static CURRENT: Mutex<Option<(Arc<dyn Allocator>, usize)>> = Mutex::new(None);

fn current() -> MutexGuard<'static, Option<(Arc<dyn Allocator>, usize)>> {
    CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A context's claim to the allocator of the process.
#[derive(Debug)]
pub(crate) struct Lease(());

impl Lease {
    /// Makes it the allocator of the process, unless another one is in use.
    pub(crate) fn new(allocator: Arc<dyn Allocator>) -> Result<Self> {
        let mut current = current();
        match &mut *current {
            Some((own, users)) if Arc::ptr_eq(own, &allocator) => *users += 1,
            Some(_) => {
                let text = "DOCA has one allocator for the process, and another context uses another one";
                return Err(Error::refused(REGISTER, Refusal::InUse).with(text));
            }
            None => *current = Some((allocator, 1)),
        }
        Ok(Lease(()))
    }

    /// Tells DOCA. The instance keeps the lease until the object was destroyed, or for ever.
    pub(crate) fn register(&self, sta: &Handle) -> Result<()> {
        // SAFETY: alive, and the callbacks have the types that DOCA wants.
        unsafe {
            call!(doca_sta_mem_allocator_register(sta.as_ptr(), Some(alloc), Some(free), Some(vtophys)))
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut current = current();
        let gone = match &mut *current {
            Some((_, users)) => {
                *users -= 1;
                *users == 0
            }
            None => false,
        };
        let last = if gone { current.take() } else { None };
        drop(current);
        drop(last);
    }
}

/// Runs `body` with the allocator of the process. A panic there counts as a failure: it must not unwind into C.
fn with<T>(body: impl FnOnce(&dyn Allocator) -> Option<T>) -> Option<T> {
    let allocator = current().as_ref().map(|(allocator, _)| allocator.clone())?;
    catch_unwind(AssertUnwindSafe(|| body(&*allocator))).ok().flatten()
}

unsafe extern "C" fn alloc(size: usize, align: usize, iova: *mut u64) -> *mut c_void {
    let align = align.max(LINE);
    let Some(piece) =
        with(|allocator| align.is_power_of_two().then(|| allocator.alloc(size, align)).flatten())
    else {
        return ptr::null_mut();
    };
    if !iova.is_null() {
        // SAFETY: not null, and DOCA wants the address there.
        unsafe { iova.write(piece.iova) };
    }
    piece.start.as_ptr().cast()
}

unsafe extern "C" fn free(start: *mut c_void) {
    let _ = with(|allocator| {
        let start = NonNull::new(start.cast())?;
        // SAFETY: DOCA gives back what it got from `alloc` above, once.
        unsafe { allocator.free(start) };
        Some(())
    });
}

unsafe extern "C" fn vtophys(start: *const c_void, len: u32) -> u64 {
    with(|allocator| allocator.iova_of(start.cast(), len as usize)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_zeroed_aligned_and_found_as_long_as_they_are_out() {
        let plain = PlainAllocator::new();
        let piece = plain.alloc(8192, 4096).unwrap();
        assert!(piece.iova.is_multiple_of(4096));
        // SAFETY: 8192 bytes that were just allocated.
        let bytes = unsafe { std::slice::from_raw_parts(piece.start.as_ptr(), 8192) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        assert!(plain.contains(piece.iova + 4096, 4096));
        assert!(!plain.contains(piece.iova + 4096, 4097), "beyond the end");
        assert!(!plain.contains(piece.iova - 1, 2), "before the start");
        assert_eq!(plain.iova_of(piece.start.as_ptr(), 8192), Some(piece.iova));
        assert_eq!(plain.allocated(), 8192);
        // SAFETY: allocated above.
        unsafe { plain.free(piece.start) };
        assert!(!plain.contains(piece.iova, 1) && plain.allocated() == 0);
    }

    #[test]
    fn one_allocator_at_a_time_for_the_process() {
        let (one, other) = (PlainAllocator::new(), PlainAllocator::new());
        let (first, second) = (Lease::new(one.clone()).unwrap(), Lease::new(one).unwrap());
        assert_eq!(Lease::new(other.clone()).unwrap_err().refusal(), Some(Refusal::InUse));
        drop((first, second));
        drop(Lease::new(other).unwrap());
    }
}
