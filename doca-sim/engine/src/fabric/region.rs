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
use super::memory::{BackingFile, Mapped, Unreached, Way, backing_file};
use super::process::{self, MAX_HAZARDS, MAX_REGIONS, Process};
use super::shm::Shared;
use crate::code::{Code, Res};
use crate::fault;
use crate::lock::lock;
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

impl From<Unreached> for Refusal {
    fn from(Unreached: Unreached) -> Self {
        Refusal::Fault
    }
}

struct Table {
    next: u32,
    free: Vec<RegionId>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { next: 0, free: Vec::new() });

/// Makes `[addr, addr + len)` of this process reachable for RDMA, with `DOCA_ACCESS_FLAG_*` rights. An adapter has the
/// operating system pin it, which cannot pin more than there is.
pub fn register(addr: usize, len: usize, access: u32) -> Res<RegionId> {
    let there_is = physical_memory();
    if there_is.is_some_and(|bytes| len > bytes) {
        crate::log::error!("{len} bytes cannot be pinned: the machine has {}", there_is.unwrap_or_default());
        return Err(Code::NO_MEMORY);
    }
    let backing = backing_file(addr, len);
    enter([addr as u64, len as u64, access.into()], |slot| slot.set_file(backing.as_ref()))
}

/// Bytes of memory of the machine, if that can be told.
fn physical_memory() -> Option<usize> {
    // SAFETY: asks for a constant of the system.
    let ask = |name| usize::try_from(unsafe { libc::sysconf(name) }).ok();
    ask(libc::_SC_PHYS_PAGES)?.checked_mul(ask(libc::_SC_PAGESIZE)?)
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
        && let Some(mapped) = process.memory().map(
            process.reference().pid,
            piece.region.bits(),
            (file, slot.len.load(SeqCst)),
            |other| is_registered(process, RegionId::from_bits(other)),
        )
        && let Some(at) = mapped.at(offset, piece.len)
    {
        pin = (Place::Here(at), true, Some(mapped));
    }
    let (place, coherent, _mapped) = pin;
    Pin { hold, _through: None, place, coherent, _mapped }
}

fn is_registered(process: &Process, id: RegionId) -> bool {
    process.regions().get(id.index as usize).is_some_and(|slot| slot.is_registered(id))
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
                let memory = to.hold.process().memory();
                Ok(memory.transfer(from + offset as usize, into + to_offset, len, Way::Out)?)
            }
            (Place::There(from), Place::Here(into)) => {
                let memory = self.hold.process().memory();
                Ok(memory.transfer(into + to_offset as usize, from + offset, len, Way::In)?)
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
                Ok(self.hold.process().memory().transfer(bytes.as_ptr() as usize, at, 8, Way::Out)?)
            }
        }
    }
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
}
