//! Registered memory: the table of regions in each adapter, and copies between processes.
//!
//! A copy pins the region first: it takes a hazard slot in the adapter of the process that owns the memory, looks
//! whether the region is still registered, and only then touches memory. Unregistering withdraws the region and
//! waits until no hazard names it, so memory is never written after its owner took it back.
//!
//! A region can stand for one of another process: memory that came over PCI is registered here as such a *forward*, so
//! that peers of this process reach it as they reach this process's own.

use super::ProcId;
use super::descriptor::ProcessRef;
use super::process::{self, MAX_HAZARDS, MAX_REGIONS, Process};
use super::shm::{Shared, cannot_shrink};
use crate::code::{Code, Res};
use crate::fault;
use crate::lock::lock;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A slot of a process's region table and the generation that makes a stale reference recognisable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionId {
    /// Slot in the region table.
    pub index: u32,
    /// How often the slot has been used.
    pub generation: u32,
}

impl RegionId {
    /// No region: generations begin with 1.
    pub const NONE: RegionId = RegionId { index: u32::MAX, generation: 0 };

    /// As one number for shared memory.
    pub fn bits(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.generation)
    }

    /// From shared memory.
    pub fn from_bits(bits: u64) -> Self {
        RegionId { index: (bits >> 32) as u32, generation: bits as u32 }
    }
}

/// A region in the adapter's table.
#[repr(C)]
pub(super) struct Slot {
    /// Generation, shifted left by one; the low bit is set while the region is registered.
    state: AtomicU64,
    addr: AtomicU64,
    len: AtomicU64,
    /// `DOCA_ACCESS_FLAG_*`, and [`FORWARD`].
    access: AtomicU64,
    /// Of memory: the descriptor of the sealed memfd that the range is a mapping of, plus one (zero for other memory), the
    /// offset there and the inode. Of a forward: see [`Slot::set_forward`].
    rest: [AtomicU64; 4],
}

/// Set in `Slot::access` of a region that stands for one of another process.
const FORWARD: u64 = 1 << 63;

impl Slot {
    fn is_registered(&self, id: RegionId) -> bool {
        self.state.load(SeqCst) == u64::from(id.generation) << 1 | 1
    }

    fn set_file(&self, file: Option<&BackingFile>) {
        let words = file.map_or([0; 3], |file| [file.fd as u64 + 1, file.offset, file.inode]);
        for (word, value) in self.rest.iter().zip(words) {
            word.store(value, SeqCst);
        }
    }

    fn file(&self) -> Option<BackingFile> {
        let [fd, offset, inode, _] = self.rest.each_ref().map(|word| word.load(SeqCst));
        Some(BackingFile { fd: i32::try_from(fd.checked_sub(1)?).ok()?, offset, inode })
    }

    fn set_forward(&self, owner: ProcessRef, region: RegionId) {
        let name = u64::from(owner.pid) | u64::from(owner.salt) << 32;
        for (word, value) in self.rest.iter().zip([name, owner.token[0], owner.token[1], region.bits()]) {
            word.store(value, SeqCst);
        }
    }

    fn forward(&self) -> (ProcessRef, RegionId) {
        let [name, first, second, region] = self.rest.each_ref().map(|word| word.load(SeqCst));
        let owner = ProcessRef { pid: name as u32, salt: (name >> 32) as u16, token: [first, second] };
        (owner, RegionId::from_bits(region))
    }
}

// SAFETY: atomic integers only.
unsafe impl Shared for Slot {}

/// A copy under way.
#[repr(C)]
pub(super) struct Hazard {
    holder: AtomicU64,
    region: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for Hazard {}

/// Why memory cannot be reached; what a NIC would answer with a remote access error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The region was never registered or is not any more.
    Gone,
    /// The range is not inside the region.
    Bounds,
    /// The region lacks this `DOCA_ACCESS_FLAG_*`.
    Access(u32),
    /// The kernel refused: the memory is not mapped, or the process is gone.
    Fault,
}

struct Table {
    next: u32,
    free: Vec<RegionId>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { next: 0, free: Vec::new() });

/// Makes `[addr, addr + len)` of this process reachable for RDMA, with `DOCA_ACCESS_FLAG_*` rights.
pub fn register(addr: usize, len: usize, access: u32) -> Res<RegionId> {
    let backing = backing_file(addr, len);
    enter([addr as u64, len as u64, access.into()], |slot| slot.set_file(backing.as_ref()))
}

/// Makes memory of another process reachable through this one: the region that it is there, and its range and rights.
pub fn forward(owner: ProcessRef, region: RegionId, (addr, len): (u64, u64), access: u32) -> Res<RegionId> {
    enter([addr, len, u64::from(access) | FORWARD], |slot| slot.set_forward(owner, region))
}

fn enter([addr, len, access]: [u64; 3], fill: impl FnOnce(&Slot)) -> Res<RegionId> {
    let process = process::local()?;
    let mut table = lock(&TABLE);
    let id = match table.free.pop() {
        Some(id) => RegionId { index: id.index, generation: id.generation.wrapping_add(1) },
        None if (table.next as usize) < MAX_REGIONS => {
            table.next += 1;
            RegionId { index: table.next - 1, generation: 1 }
        }
        None => return Err(Code::NO_MEMORY),
    };
    let slot = &process.regions()[id.index as usize];
    slot.addr.store(addr, SeqCst);
    slot.len.store(len, SeqCst);
    slot.access.store(access, SeqCst);
    fill(slot);
    slot.state.store(u64::from(id.generation) << 1 | 1, SeqCst);
    Ok(id)
}

/// Withdraws a region and waits until no peer is copying from or to it any more.
pub fn unregister(id: RegionId) {
    let Ok(process) = process::local() else { return };
    process.regions()[id.index as usize].state.store(u64::from(id.generation) << 1, SeqCst);
    let used = (process.header().hazards_used.load(SeqCst) as usize).min(MAX_HAZARDS);
    for hazard in &process.hazards()[..used] {
        let mut spins = 0u32;
        while hazard.region.load(SeqCst) == id.bits() {
            let holder = hazard.holder.load(SeqCst);
            if holder == 0 {
                break;
            }
            spins += 1;
            if spins.is_multiple_of(1024) {
                hazard.reap(holder);
            }
            std::thread::yield_now();
        }
    }
    lock(&TABLE).free.push(id);
}

/// The region that a memory key of a process stands for, as `doca_mmap_get_mkey` makes them; one that cannot be reached if
/// the key stands for none.
pub fn by_key(process: &Process, key: u32) -> RegionId {
    let index = (key >> 8).wrapping_sub(1);
    let slot = process.regions().get(index as usize);
    let generation = slot.map_or(0, |slot| (slot.state.load(SeqCst) >> 1) as u32);
    // No region has generation 0.
    let generation = if generation & 0xff == key & 0xff { generation } else { 0 };
    RegionId { index, generation }
}

impl Hazard {
    /// Gives the slot back: for its holder.
    fn release(&self) {
        self.region.store(0, SeqCst);
        self.holder.store(0, SeqCst);
    }

    /// Takes the slot from a holder that has died. Its region is left alone: the slot may have a new holder, which has
    /// written that.
    fn reap(&self, holder: u64) {
        if holder != 0 && !process::lives(ProcId::from_bits(holder)) {
            let _ = self.holder.compare_exchange(holder, 0, SeqCst, SeqCst);
        }
    }
}

/// A stretch of registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Address in the owner's address space.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// The region that covers it.
    pub region: RegionId,
}

/// A piece that may be touched until the pin is dropped.
pub struct Pin<'a> {
    /// Names the region in the table of the process that owns the memory.
    hold: Hold<'a>,
    /// The same for the forward that led there.
    _through: Option<Hold<'a>>,
    place: Place,
    /// Whether every accessor maps the same pages, so that CPU atomics are atomic for all of them.
    pub coherent: bool,
    _mapped: Option<Arc<Mapped>>,
}

/// Where the bytes are for this process.
#[derive(Clone, Copy)]
enum Place {
    Here(usize),
    There(u64),
}

/// A hazard slot, taken in a process's table until this is dropped.
struct Hold<'a> {
    process: Owner<'a>,
    hazard: usize,
}

/// The process whose table it is.
enum Owner<'a> {
    Known(&'a Process),
    Found(Arc<Process>),
}

impl Hold<'_> {
    fn process(&self) -> &Process {
        match &self.process {
            Owner::Known(process) => process,
            Owner::Found(process) => process,
        }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.process().hazards()[self.hazard].release();
    }
}

/// Pins a piece of a process's memory for an access that needs the rights in `access`.
pub fn pin(process: &Process, piece: Piece, access: u32) -> Result<Pin<'_>, Refusal> {
    let slot = process.regions().get(piece.region.index as usize).ok_or(Refusal::Gone)?;
    let hold = take_hazard(Owner::Known(process), piece.region)?;
    fault::point();
    // The owner may write here at any moment: what is read once is checked and used.
    let (offset, forward) = check(slot, piece, access)?;
    if !forward {
        return Ok(reach(hold, slot, piece, offset));
    }
    let (owner, region) = slot.forward();
    let owner = process::attach(owner).map_err(|_| Refusal::Gone)?;
    let target = Piece { region, ..piece };
    let inner = take_hazard(Owner::Found(owner.clone()), region)?;
    let slot = owner.regions().get(region.index as usize).ok_or(Refusal::Gone)?;
    // The rights are those that the forward was given. It does not lead to another one.
    match check(slot, target, 0)? {
        (offset, false) => Ok(Pin { _through: Some(hold), ..reach(inner, slot, target, offset) }),
        (_, true) => Err(Refusal::Gone),
    }
}

/// Whether the piece is inside a registered region with these rights: its offset, and whether the region is a forward.
fn check(slot: &Slot, piece: Piece, access: u32) -> Result<(u64, bool), Refusal> {
    if !slot.is_registered(piece.region) {
        return Err(Refusal::Gone);
    }
    let (addr, len) = (slot.addr.load(SeqCst), slot.len.load(SeqCst));
    let offset = piece.addr.checked_sub(addr).ok_or(Refusal::Bounds)?;
    if offset.checked_add(piece.len).is_none_or(|end| end > len) {
        return Err(Refusal::Bounds);
    }
    let granted = slot.access.load(SeqCst);
    match access & !(granted as u32) {
        0 => Ok((offset, granted & FORWARD != 0)),
        missing => Err(Refusal::Access(missing)),
    }
}

/// Where this process finds a piece that has been checked.
fn reach<'a>(hold: Hold<'a>, slot: &Slot, piece: Piece, offset: u64) -> Pin<'a> {
    let process = hold.process();
    let mut pin = (Place::There(piece.addr), false, None);
    if process.is_local() {
        pin = (Place::Here(piece.addr as usize), slot.file().is_some(), None);
    } else if let Some(file) = slot.file()
        && let Some(mapped) = process.memory().map(process, piece.region, (file, slot.len.load(SeqCst)))
        && let Some(at) = mapped.at(offset, piece.len)
    {
        pin = (Place::Here(at), true, Some(mapped));
    }
    let (place, coherent, _mapped) = pin;
    Pin { hold, _through: None, place, coherent, _mapped }
}

fn take_hazard(process: Owner<'_>, region: RegionId) -> Result<Hold<'_>, Refusal> {
    let me = process::local().map_err(|_| Refusal::Fault)?.id().bits();
    let mut hold = Hold { process, hazard: 0 };
    hold.hazard = claim_hazard(hold.process(), me, region);
    Ok(hold)
}

fn claim_hazard(process: &Process, me: u64, region: RegionId) -> usize {
    let mut tries = 0u32;
    loop {
        for (index, hazard) in process.hazards().iter().enumerate() {
            if hazard.holder.compare_exchange(0, me, SeqCst, SeqCst).is_ok() {
                if process.header().hazards_used.load(SeqCst) <= index as u32 {
                    process.header().hazards_used.fetch_max(index as u32 + 1, SeqCst);
                }
                hazard.region.store(region.bits(), SeqCst);
                return index;
            }
        }
        // All slots taken: some holders may be dead.
        tries += 1;
        if tries.is_multiple_of(64) {
            for hazard in process.hazards() {
                hazard.reap(hazard.holder.load(SeqCst));
            }
        }
        std::thread::yield_now();
    }
}

impl Pin<'_> {
    /// Copies bytes of this process's own memory.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Refusal> {
        let Place::Here(from) = self.place else { return Err(Refusal::Fault) };
        // SAFETY: as in `copy_to`; `into` is our own.
        unsafe {
            libc::memmove(
                into.as_mut_ptr().cast(),
                (from + offset as usize) as *const libc::c_void,
                into.len(),
            )
        };
        Ok(())
    }

    /// Changes bytes of this process's own memory.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), Refusal> {
        let Place::Here(into) = self.place else { return Err(Refusal::Fault) };
        // SAFETY: as in `copy_to`; `from` is our own.
        unsafe {
            libc::memmove((into + offset as usize) as *mut libc::c_void, from.as_ptr().cast(), from.len())
        };
        Ok(())
    }

    /// Copies `len` bytes from one pinned piece to another, at these offsets.
    pub fn copy_to(&self, offset: u64, to: &Pin<'_>, to_offset: u64, len: usize) -> Result<(), Refusal> {
        match (self.place, to.place) {
            (Place::Here(from), Place::Here(into)) => {
                // SAFETY: both ranges are registered and pinned: the owner has promised that they stay mapped while
                // registered, and the pins keep them registered. `memmove` is opaque to the compiler, as it must
                // be: other processes may change the bytes meanwhile, which tears data but nothing else.
                unsafe {
                    libc::memmove(
                        (into + to_offset as usize) as *mut libc::c_void,
                        (from + offset as usize) as *const libc::c_void,
                        len,
                    )
                };
                Ok(())
            }
            (Place::Here(from), Place::There(into)) => {
                to.hold.process().memory().transfer(from + offset as usize, into + to_offset, len, Way::Out)
            }
            (Place::There(from), Place::Here(into)) => {
                self.hold.process().memory().transfer(into + to_offset as usize, from + offset, len, Way::In)
            }
            (Place::There(from), Place::There(into)) => {
                let mut done = 0;
                let mut bounce = [0u8; 16 * 1024];
                while done < len {
                    let step = bounce.len().min(len - done);
                    let chunk = &mut bounce[..step];
                    self.hold
                        .process()
                        .memory()
                        .read(from + offset + done as u64, chunk)
                        .map_err(|_| Refusal::Fault)?;
                    let here = chunk.as_ptr() as usize;
                    to.hold.process().memory().transfer(
                        here,
                        into + to_offset + done as u64,
                        step,
                        Way::Out,
                    )?;
                    done += step;
                }
                Ok(())
            }
        }
    }

    /// Applies `change` to the aligned 8 bytes at the start of the piece and gives the value before. Atomic against
    /// every other call of this function on that memory; where the pages are shared, against the CPU too.
    pub fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, Refusal> {
        if self.coherent
            && let Place::Here(at) = self.place
        {
            // SAFETY: pinned, 8-byte aligned (the caller checked), and shared by mapping, so all accesses of
            // others that can race are atomic ones of this function or of programs that chose to.
            let cell = unsafe { &*(at as *const AtomicU64) };
            return Ok(cell.fetch_update(SeqCst, SeqCst, &change).unwrap_or_else(|before| before));
        }
        let _serial = self.hold.process().lock_atomics();
        match self.place {
            Place::Here(at) => {
                // SAFETY: pinned and aligned; RDMA atomics to this memory are serialized by the adapter's lock.
                let cell = unsafe { &*(at as *const AtomicU64) };
                let before = cell.load(SeqCst);
                if let Some(after) = change(before) {
                    cell.store(after, SeqCst);
                }
                Ok(before)
            }
            Place::There(at) => {
                let mut bytes = [0u8; 8];
                self.hold.process().memory().read(at, &mut bytes).map_err(|_| Refusal::Fault)?;
                let before = u64::from_ne_bytes(bytes);
                if let Some(after) = change(before) {
                    let bytes = after.to_ne_bytes();
                    self.hold.process().memory().transfer(bytes.as_ptr() as usize, at, 8, Way::Out)?;
                }
                Ok(before)
            }
        }
    }

    /// Writes a number to the first 8 bytes of the piece.
    pub fn put(&self, value: u64) -> Result<(), Refusal> {
        let bytes = value.to_ne_bytes();
        match self.place {
            Place::Here(at) => {
                // SAFETY: pinned, at least 8 bytes long; unaligned is fine for memmove.
                unsafe { libc::memmove(at as *mut libc::c_void, bytes.as_ptr().cast(), 8) };
                Ok(())
            }
            Place::There(at) => {
                self.hold.process().memory().transfer(bytes.as_ptr() as usize, at, 8, Way::Out)
            }
        }
    }
}

/// How this process reaches another one's memory, or its own.
#[derive(Debug)]
pub enum Memory {
    /// It is this process.
    Own,
    /// `/proc/PID/mem`, which is bound to the address space: it cannot lead to a later process with the same pid.
    Other {
        /// The descriptor.
        file: File,
        /// Mappings of that process's shared regions.
        mapped: Mutex<HashMap<RegionId, Arc<Mapped>>>,
    },
}

/// A shared region of another process, mapped here.
#[derive(Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    len: u64,
    mapping: (usize, usize),
}
// SAFETY: a plain address range; accessed by memmove and atomics only.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// The address here of a stretch of the region, if what was mapped covers it.
    fn at(&self, offset: u64, len: u64) -> Option<usize> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| self.base.as_ptr() as usize + offset as usize)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own mapping; pins that point into it hold an Arc of it.
        unsafe { libc::munmap(self.mapping.0 as *mut libc::c_void, self.mapping.1) };
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    In,
    Out,
}

impl Memory {
    /// Opens another process's memory.
    pub fn open(pid: u32) -> Res<Memory> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).map_err(|e| {
            crate::log::error!(
                "cannot reach the memory of process {pid}: {e}. Both processes must belong to the same user and be \
                 in the same PID namespace, and kernel.yama.ptrace_scope must be 0 or 1"
            );
            Code::NOT_PERMITTED
        })?;
        Ok(Memory::Other { file, mapped: Mutex::new(HashMap::new()) })
    }

    /// Reads from the other process, outside any region. (For proofs of identity.)
    pub fn read(&self, addr: u64, into: &mut [u8]) -> Res {
        match self {
            Memory::Own => Err(Code::UNEXPECTED),
            Memory::Other { file, .. } => file.read_exact_at(into, addr).map_err(|_| Code::NOT_FOUND),
        }
    }

    /// Moves bytes between this process (`here`, pinned or on our stack) and the other one (`there`).
    fn transfer(&self, here: usize, there: u64, len: usize, way: Way) -> Result<(), Refusal> {
        let Memory::Other { file, .. } = self else { return Err(Refusal::Fault) };
        let mut done = 0usize;
        while done < len {
            let (ptr, at) = ((here + done) as *mut libc::c_void, (there + done as u64) as libc::off_t);
            // SAFETY: `here` is pinned or local for the whole length; the kernel checks the other side.
            let moved = unsafe {
                match way {
                    Way::In => libc::pread(file.as_raw_fd(), ptr, len - done, at),
                    Way::Out => libc::pwrite(file.as_raw_fd(), ptr, len - done, at),
                }
            };
            match moved {
                n if n > 0 => done += n as usize,
                -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
                _ => return Err(Refusal::Fault),
            }
        }
        Ok(())
    }

    /// Maps a shared region of the other process, or finds the mapping.
    fn map(&self, process: &Process, id: RegionId, (file, len): (BackingFile, u64)) -> Option<Arc<Mapped>> {
        let Memory::Other { mapped, .. } = self else { return None };
        let mut mapped = lock(mapped);
        if let Some(known) = mapped.get(&id) {
            return Some(known.clone());
        }
        let BackingFile { fd, offset, inode } = file;
        let path = format!("/proc/{}/fd/{fd}", process.reference().pid);
        let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        let meta = file.metadata().ok()?;
        let fits = offset.checked_add(len).is_some_and(|end| end <= meta.len());
        if !cannot_shrink(file.as_raw_fd()) || !fits || meta.ino() != inode {
            return None;
        }
        let skip = offset % 4096;
        let length = usize::try_from(len + skip).ok()?;
        // SAFETY: a new shared mapping of a file that cannot shrink below it.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                (offset - skip) as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new((base as usize + skip as usize) as *mut u8)?;
        let entry = Arc::new(Mapped { base: start, len, mapping: (base as usize, length) });
        let regions = process.regions();
        mapped.retain(|id, _| regions[id.index as usize].is_registered(*id));
        mapped.insert(id, entry.clone());
        Some(entry)
    }
}

struct BackingFile {
    fd: i32,
    offset: u64,
    inode: u64,
}

/// The sealed memfd of which the range is a shared mapping, if it is one and the program still holds it.
fn backing_file(addr: usize, len: usize) -> Option<BackingFile> {
    if !addr.is_multiple_of(4096) {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let (offset, inode) = maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        if addr < start || addr >= end || addr + len > end {
            return None;
        }
        let shared = words.next()? == "rw-s";
        let offset = u64::from_str_radix(words.next()?, 16).ok()?;
        let _device = words.next()?;
        let inode: u64 = words.next()?.parse().ok()?;
        let memfd = words.next()?.starts_with("/memfd:");
        (shared && memfd).then_some((offset + (addr - start) as u64, inode))
    })?;
    std::fs::read_dir("/proc/self/fd").ok()?.flatten().find_map(|entry| {
        let fd: i32 = entry.file_name().to_str()?.parse().ok()?;
        // SAFETY: all-zero is a valid `stat`.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: writes to a local; a descriptor that is closed meanwhile gives an error.
        if unsafe { libc::fstat(fd, &mut stat) } != 0 || stat.st_ino != inode {
            return None;
        }
        cannot_shrink(fd).then_some(BackingFile { fd, offset, inode })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_taken_from_the_dead_keeps_what_its_next_holder_wrote() {
        let (dead, next, region) = (ProcId::new(1, 1).bits(), ProcId::new(2, 2).bits(), 7);
        let hazard = Hazard { holder: AtomicU64::new(dead), region: AtomicU64::new(3) };
        hazard.reap(dead);
        assert_eq!(hazard.holder.load(SeqCst), 0);
        // Whoever saw the same dead holder comes late: the slot has been taken anew.
        hazard.holder.store(next, SeqCst);
        hazard.region.store(region, SeqCst);
        hazard.reap(dead);
        assert_eq!((hazard.holder.load(SeqCst), hazard.region.load(SeqCst)), (next, region));
    }

    #[test]
    fn nothing_beyond_what_was_mapped_is_reached() {
        let mapped = Mapped { base: NonNull::<u64>::dangling().cast(), len: 4096, mapping: (0, 0) };
        let base = mapped.base.as_ptr() as usize;
        assert_eq!(mapped.at(0, 4096), Some(base));
        assert_eq!(mapped.at(4096, 0), Some(base + 4096));
        for (offset, len) in [(0, 4097), (4095, 2), (u64::MAX, 2)] {
            assert_eq!(mapped.at(offset, len), None, "{offset} {len}");
        }
    }
}
