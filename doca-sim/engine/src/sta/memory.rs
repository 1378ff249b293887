//! Memory that the program's allocator gives: for data on their way, capsules and answers.
//!
//! The callbacks are the program's code: they are called from its own calls only, and never under a lock.

use crate::access::LOCAL_READ_WRITE;
use crate::code::{Code, Res};
use crate::fabric::region::{self, Piece, RegionId};
use crate::log;
use std::ffi::c_void;

/// `doca_sta_zmalloc_cb_t`
pub type AllocCallback = unsafe extern "C" fn(usize, usize, *mut u64) -> *mut c_void;
/// `doca_sta_free_cb_t`
pub type FreeCallback = unsafe extern "C" fn(*mut c_void);
/// `doca_sta_vtophys_cb_t`
pub type AddressCallback = unsafe extern "C" fn(*const c_void, u32) -> u64;

/// `DOCA_STA_VTOPHYS_ERROR`
const NO_ADDRESS: u64 = u64::MAX;
/// Pages of NVMe.
pub(super) const PAGE: usize = 4096;

/// The program's callbacks.
#[derive(Clone, Copy)]
pub struct Allocator {
    /// Zeroed memory.
    pub alloc: AllocCallback,
    /// Takes it back.
    pub free: FreeCallback,
    /// The address for devices.
    pub vtophys: AddressCallback,
}

/// Memory of the program's allocator, registered for the adapter.
#[derive(Debug)]
pub(super) struct Buffer {
    at: usize,
    len: usize,
    region: RegionId,
    /// The address of each page for devices, if anybody but the adapter needs it.
    pages: Vec<u64>,
}

impl Allocator {
    /// `len` bytes from a page's start on. `mapped` asks for the addresses of its pages.
    pub(super) fn allocate(&self, len: usize, mapped: bool) -> Res<Buffer> {
        let mut address = NO_ADDRESS;
        // SAFETY: the program's own function, with what its type asks for.
        let at = unsafe { (self.alloc)(len, PAGE, &mut address) }.expose_provenance();
        if at == 0 {
            log::error!("the program's allocator has no {len} bytes");
            return Err(Code::NO_MEMORY);
        }
        let made = self.adopt(at, len, mapped);
        if made.is_err() {
            // SAFETY: what the program's function has just given.
            unsafe { (self.free)(std::ptr::with_exposed_provenance_mut(at)) };
        }
        made
    }

    fn adopt(&self, at: usize, len: usize, mapped: bool) -> Res<Buffer> {
        if !at.is_multiple_of(PAGE) {
            log::error!("the program's allocator gave {at:#x}, which is no multiple of the {PAGE} asked for");
            return Err(Code::NO_MEMORY);
        }
        let mut pages = Vec::new();
        for offset in (0..len).step_by(PAGE).filter(|_| mapped) {
            let size = PAGE.min(len - offset) as u32;
            // SAFETY: the program's own function, asked about memory that it gave.
            let page = unsafe { (self.vtophys)(std::ptr::with_exposed_provenance(at + offset), size) };
            if page == NO_ADDRESS || !page.is_multiple_of(PAGE as u64) {
                log::error!("the program's allocator knows no address of {size} bytes at {:#x}", at + offset);
                return Err(Code::NO_MEMORY);
            }
            pages.push(page);
        }
        Ok(Buffer { at, len, region: region::register(at, len, LOCAL_READ_WRITE)?, pages })
    }

    /// Gives it back.
    pub(super) fn release(&self, buffer: Buffer) {
        region::unregister(buffer.region);
        // SAFETY: came from the program's allocator, and nobody uses it any more: it was moved here and its registration,
        // which waits for copies under way, is over.
        unsafe { (self.free)(std::ptr::with_exposed_provenance_mut(buffer.at)) };
    }
}

/// Buffers for the data of commands on their way, in two sizes: most commands need no more than a page.
#[derive(Debug, Default)]
pub(super) struct Staging {
    free: [Vec<Buffer>; 2],
    total: [usize; 2],
}

/// How many there are of each size: half of the small ones keep a disk as busy as its queue is deep, if that has what most
/// programs give it. (Proposed; together less than what unprivileged processes may lock.)
const STAGED: [usize; 2] = [256, 32];

impl Staging {
    /// All of them, the larger ones for commands of up to `max_io_size` bytes.
    pub(super) fn new(allocator: &Allocator, max_io_size: u32) -> Res<Staging> {
        // Behind the data, a page for the list of their pages.
        let large = (max_io_size as usize).next_multiple_of(PAGE) + PAGE;
        let mut staging = Staging { total: STAGED, ..Staging::default() };
        for (size, len) in [PAGE, large].into_iter().enumerate() {
            for _ in 0..STAGED[size] {
                match allocator.allocate(len, true) {
                    Ok(buffer) => staging.free[size].push(buffer),
                    Err(code) => {
                        staging.into_buffers().for_each(|buffer| allocator.release(buffer));
                        return Err(code);
                    }
                }
            }
        }
        Ok(staging)
    }

    fn size_of(len: usize) -> usize {
        usize::from(len > PAGE)
    }

    /// Takes a buffer for so many bytes, if `holds` others of its size are less than half of them: a disk that is silent must
    /// not take all buffers with it.
    pub(super) fn take(
        &mut self,
        len: usize,
        holds: impl FnOnce(&dyn Fn(&Buffer) -> bool) -> usize,
    ) -> Option<Buffer> {
        let size = Self::size_of(len);
        let alike = |buffer: &Buffer| Self::size_of(buffer.len()) == size;
        if holds(&alike) >= (self.total[size] / 2).max(1) {
            return None;
        }
        self.free[size].pop()
    }

    /// Takes one back.
    pub(super) fn put(&mut self, buffer: Buffer) {
        self.free[Self::size_of(buffer.len())].push(buffer);
    }

    /// Those that are free, for giving them back.
    pub(super) fn into_buffers(self) -> impl Iterator<Item = Buffer> {
        self.free.into_iter().flatten()
    }
}

impl Buffer {
    pub(super) fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.at)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A part of it, for the adapter. Inside the buffer, whatever is asked for.
    pub(super) fn piece(&self, offset: usize, len: usize) -> Piece {
        let offset = offset.min(self.len);
        let len = len.min(self.len - offset);
        Piece { addr: (self.at + offset) as u64, len: len as u64, region: self.region }
    }

    /// Copies bytes into it, as far as they fit.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        let offset = offset.min(self.len);
        let len = bytes.len().min(self.len - offset);
        // SAFETY: inside the buffer, which is the library's; programs are lent payloads only between callback and answer,
        // when the library does not write.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address().add(offset), len) };
    }

    /// Copies bytes out of it, as many as there are.
    pub(super) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let piece = self.piece(offset, len);
        let mut bytes = vec![0; piece.len as usize];
        // SAFETY: inside the buffer; `bytes` has room for the piece.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.address().add(offset.min(self.len)),
                bytes.as_mut_ptr(),
                bytes.len(),
            )
        };
        bytes
    }

    /// Fills it with a byte.
    pub(super) fn fill(&self, byte: u8) {
        // SAFETY: the whole buffer, which is the library's.
        unsafe { std::ptr::write_bytes(self.address(), byte, self.len) };
    }

    /// The address of a page for devices.
    pub(super) fn page(&self, index: usize) -> u64 {
        self.pages.get(index).copied().unwrap_or(NO_ADDRESS)
    }
}
