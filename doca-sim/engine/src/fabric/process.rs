//! This process's adapter, and attachments to the adapters of other processes.

use super::context::{ContextId, ContextView};
use super::descriptor::ProcessRef;
use super::memory::Memory;
use super::network::{self, Claim, Network};
use super::region;
use super::shm::{Segment, Shared, os};
use super::{ProcId, clock};
use crate::code::{Code, Res};
use crate::fork;
use crate::lock::lock;
use crate::log;
use crate::sleeper::wake;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, Weak};

const MAGIC: u64 = u64::from_le_bytes(*b"docasim\x01");

/// Contexts that can run at once in one process.
pub const MAX_CONTEXTS: usize = 4096;
/// Regions that can be registered at once in one process.
pub const MAX_REGIONS: usize = 65536;
/// Copies that can be under way at once, by all processes, to and from one process.
pub const MAX_HAZARDS: usize = 1024;

/// Wake descriptors of one process that are kept open.
const MAX_WAKERS: usize = 64;

#[repr(C)]
pub(super) struct Header {
    magic: AtomicU64,
    id: AtomicU64,
    token: [AtomicU64; 2],
    /// How many hazard slots have ever been used; the rest need not be scanned.
    pub(super) hazards_used: AtomicU32,
    _reserved: AtomicU32,
    /// Held by the process that performs an RDMA atomic on memory that is not mapped by all.
    atomics: AtomicU64,
}
// SAFETY: atomic integers only.
unsafe impl Shared for Header {}

/// Where a running context's segment is.
#[repr(C)]
struct ContextSlot {
    /// Odd while a context is here.
    generation: AtomicU32,
    fd: AtomicU32,
}
// SAFETY: atomic integers only.
unsafe impl Shared for ContextSlot {}

const CONTEXTS_AT: usize = 4096;
const REGIONS_AT: usize = CONTEXTS_AT + MAX_CONTEXTS * size_of::<ContextSlot>();
const HAZARDS_AT: usize = REGIONS_AT + MAX_REGIONS * size_of::<region::Slot>();
const ADAPTER_LEN: usize = HAZARDS_AT + MAX_HAZARDS * size_of::<region::Hazard>();

/// A process of the fabric: this one, or one that this one has attached to.
#[derive(Debug)]
pub struct Process {
    reference: ProcessRef,
    adapter: Segment,
    memory: Memory,
    /// `None` for this process, which is alive by definition.
    witness: Option<Witness>,
    contexts: Mutex<HashMap<ContextId, Weak<ContextView>>>,
    /// Its wake descriptors, opened when first needed.
    wakers: Mutex<HashMap<(u32, u64), File>>,
}

/// What tells that another process lives.
#[derive(Debug)]
struct Witness {
    file: File,
    pidfd: Option<OwnedFd>,
    dead: AtomicBool,
    checked: AtomicU64,
}

struct Local {
    network: Network,
    process: Arc<Process>,
    contexts: Mutex<Vec<u32>>,
    claim: Mutex<Option<Claim>>,
}

/// Sixteen bytes of this process's own memory that a peer reads through its memory descriptor, to be sure that the
/// descriptor leads to the process that published the adapter and not to a successor.
static TOKEN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static LOCAL: OnceLock<Res<Local>> = OnceLock::new();
static PEERS: Mutex<Option<HashMap<ProcId, Weak<Process>>>> = Mutex::new(None);

/// This process, joining the network at the first call. A forked child is refused: the adapter is its parent's.
pub fn local() -> Res<&'static Arc<Process>> {
    own().map(|own| &own.process)
}

/// The network that this process has joined.
pub fn network() -> Res<&'static Network> {
    own().map(|own| &own.network)
}

fn own() -> Res<&'static Local> {
    fork::require_none()?;
    LOCAL.get_or_init(join).as_ref().map_err(|code| *code)
}

fn join() -> Res<Local> {
    let network = Network::open()?;
    let mut random = [0u8; 18];
    // SAFETY: writes at most the buffer's length.
    if unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) } != random.len() as isize {
        return Err(os("getrandom"));
    }
    let word = |at: usize| u64::from_le_bytes(random[at..at + 8].try_into().unwrap_or_default());
    let token = [word(0), word(8)];
    let salt = u16::from_le_bytes([random[16], random[17]]);
    let reference = ProcessRef { pid: std::process::id(), salt, token };

    let adapter = Segment::create(c"doca-sim-adapter", ADAPTER_LEN)?;
    let header = adapter.at::<Header>(0).ok_or(Code::UNEXPECTED)?;
    header.magic.store(MAGIC, SeqCst);
    header.id.store(reference.id().bits(), SeqCst);
    for i in 0..2 {
        header.token[i].store(token[i], SeqCst);
        TOKEN[i].store(token[i], SeqCst);
    }

    // Peers may read and write this process's registered memory, which Yama would otherwise reserve for parents.
    // SAFETY: plain system call; EINVAL where Yama is absent is fine.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    fork::watch();
    // SAFETY: the handler only touches statics.
    unsafe { libc::atexit(at_exit) };

    let published = format!(
        "{} {} {:x} {:x} {}\n",
        adapter.fd(),
        TOKEN.as_ptr() as usize,
        token[0],
        token[1],
        env!("CARGO_PKG_VERSION")
    );
    let claim = network.publish_adapter(reference.id(), &published)?;
    crate::log::debug!("joined the network as process {} ({:#x})", reference.pid, salt);
    let process = Process {
        reference,
        adapter,
        memory: Memory::Own,
        witness: None,
        contexts: Mutex::new(HashMap::new()),
        wakers: Mutex::new(HashMap::new()),
    };
    Ok(Local {
        network,
        process: Arc::new(process),
        contexts: Mutex::new(vec![0; MAX_CONTEXTS]),
        claim: Mutex::new(Some(claim)),
    })
}

extern "C" fn at_exit() {
    if let Some(Ok(own)) = LOCAL.get() {
        lock(&own.claim).take();
    }
}

/// Attaches to a process, or gives the attachment that exists. NOT_FOUND if it is gone or is not who it was.
pub fn attach(who: ProcessRef) -> Res<Arc<Process>> {
    let own = own()?;
    if who == own.process.reference {
        return Ok(own.process.clone());
    }
    let mut peers = lock(&PEERS);
    let peers = peers.get_or_insert_default();
    if let Some(known) = peers.get(&who.id()).and_then(Weak::upgrade) {
        return if known.reference == who { Ok(known) } else { Err(Code::NOT_FOUND) };
    }
    let process = Arc::new(Process::open(&own.network, who)?);
    peers.retain(|_, weak| weak.strong_count() > 0);
    peers.insert(who.id(), Arc::downgrade(&process));
    Ok(process)
}

/// Whether a process that claimed something still lives.
pub fn lives(id: ProcId) -> bool {
    let Ok(own) = own() else { return false };
    if id == own.process.id() {
        return true;
    }
    network::read_published(&own.network.adapter_path(id)).is_ok()
}

impl Process {
    fn open(network: &Network, who: ProcessRef) -> Res<Process> {
        let (text, file) = network::read_published(&network.adapter_path(who.id()))?;
        let gone = || {
            crate::log::debug!("process {} is not the one that the descriptor names", who.pid);
            Code::NOT_FOUND
        };
        let mut words = text.split_ascii_whitespace();
        let fd: u32 = words.next().and_then(|w| w.parse().ok()).ok_or_else(gone)?;
        let token_at: u64 = words.next().and_then(|w| w.parse().ok()).ok_or_else(gone)?;

        let adapter = Segment::open(format!("/proc/{}/fd/{fd}", who.pid).as_ref())?;
        let header = adapter.at::<Header>(0).ok_or_else(gone)?;
        let same = adapter.size() >= ADAPTER_LEN
            && header.magic.load(SeqCst) == MAGIC
            && header.id.load(SeqCst) == who.id().bits()
            && (0..2).all(|i| header.token[i].load(SeqCst) == who.token[i]);
        if !same {
            return Err(gone());
        }

        let memory = Memory::open(who.pid)?;
        let mut seen = [0u8; 16];
        memory.read(token_at, &mut seen)?;
        let expected: Vec<u8> = who.token.iter().flat_map(|w| w.to_ne_bytes()).collect();
        if seen[..] != expected[..] {
            return Err(gone());
        }
        // SAFETY: plain system call; a failure (old kernel, valgrind) leaves us with the record lock alone.
        let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, who.pid as libc::pid_t, 0) };
        // SAFETY: a new descriptor that nobody else owns.
        let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd as i32) });
        crate::log::debug!("attached to process {}", who.pid);
        Ok(Process {
            reference: who,
            adapter,
            memory,
            witness: Some(Witness {
                file,
                pidfd,
                dead: AtomicBool::new(false),
                checked: AtomicU64::new(clock::now()),
            }),
            contexts: Mutex::new(HashMap::new()),
            wakers: Mutex::new(HashMap::new()),
        })
    }

    /// Its name in descriptors.
    pub fn reference(&self) -> ProcessRef {
        self.reference
    }

    /// Its name in lock words.
    pub fn id(&self) -> ProcId {
        self.reference.id()
    }

    /// How to reach its memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether it is this process.
    pub fn is_local(&self) -> bool {
        self.witness.is_none()
    }

    /// A descriptor that becomes readable when the process ends, where the kernel offers one.
    pub fn pidfd(&self) -> Option<i32> {
        self.witness.as_ref()?.pidfd.as_ref().map(|fd| fd.as_raw_fd())
    }

    /// Whether it lives, asked of the kernel at most every few milliseconds.
    pub fn is_alive(&self) -> bool {
        let Some(witness) = &self.witness else { return true };
        if witness.dead.load(SeqCst) {
            return false;
        }
        let now = clock::now();
        if now.saturating_sub(witness.checked.load(SeqCst)) < clock::millis(5) {
            return true;
        }
        witness.checked.store(now, SeqCst);
        self.is_alive_now()
    }

    /// The same at this very moment, which takes a system call.
    pub fn is_alive_now(&self) -> bool {
        let Some(witness) = &self.witness else { return true };
        if witness.dead.load(SeqCst) {
            return false;
        }
        if network::is_locked(&witness.file) {
            return true;
        }
        witness.dead.store(true, SeqCst);
        crate::log::debug!("process {} is gone", self.reference.pid);
        false
    }

    pub(super) fn header(&self) -> &Header {
        self.adapter.at(0).expect("an adapter is as long as its layout")
    }

    pub(super) fn regions(&self) -> &[region::Slot] {
        self.adapter.array(REGIONS_AT, MAX_REGIONS).expect("an adapter is as long as its layout")
    }

    pub(super) fn hazards(&self) -> &[region::Hazard] {
        self.adapter.array(HAZARDS_AT, MAX_HAZARDS).expect("an adapter is as long as its layout")
    }

    /// Serializes RDMA atomics on this process's unshared memory. Survives a holder that dies.
    pub(super) fn lock_atomics(&self) -> impl Drop + '_ {
        struct Held<'a>(&'a AtomicU64);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.store(0, SeqCst);
            }
        }
        let word = &self.header().atomics;
        // Two threads of one process must exclude each other too, and only one of them can hold this.
        static ME: AtomicU64 = AtomicU64::new(0);
        let me = match ME.load(SeqCst) {
            0 => local().map_or(1, |p| p.id().bits()),
            known => known,
        };
        ME.store(me, SeqCst);
        let mut spins = 0u32;
        while let Err(holder) = word.compare_exchange(0, me, SeqCst, SeqCst) {
            spins += 1;
            if spins.is_multiple_of(1024) && !lives(ProcId::from_bits(holder)) {
                let _ = word.compare_exchange(holder, 0, SeqCst, SeqCst);
            }
            std::thread::yield_now();
        }
        Held(word)
    }

    fn context_slots(&self) -> &[ContextSlot] {
        self.adapter.array(CONTEXTS_AT, MAX_CONTEXTS).expect("an adapter is as long as its layout")
    }

    /// Writes a byte to one of its wake descriptors, an end of that pipe.
    pub(super) fn wake(&self, fd: u32, pipe: u64) {
        if self.is_local() {
            return wake(fd as i32);
        }
        let mut wakers = lock(&self.wakers);
        if let Some(file) = wakers.get(&(fd, pipe)) {
            return wake(file.as_raw_fd());
        }
        // Opened for reading, too: writing to a pipe that nobody reads is death by SIGPIPE, and its owner may have died.
        let path = format!("/proc/{}/fd/{fd}", self.reference.pid);
        let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
        let ours = |file: &File| file.metadata().is_ok_and(|meta| meta.ino() == pipe);
        let Some(file) = opened.ok().filter(ours) else {
            log::debug!("process {} cannot be woken", self.reference.pid);
            return;
        };
        wake(file.as_raw_fd());
        if wakers.len() >= MAX_WAKERS {
            wakers.clear();
        }
        wakers.insert((fd, pipe), file);
    }

    /// A segment that the process has published, by name.
    pub fn published(&self, id: ContextId) -> Res<Segment> {
        let slot = self.context_slots().get(id.index as usize).ok_or(Code::NOT_FOUND)?;
        if slot.generation.load(SeqCst) != id.generation {
            return Err(Code::NOT_FOUND);
        }
        let fd = slot.fd.load(SeqCst);
        Segment::open(format!("/proc/{}/fd/{fd}", self.reference.pid).as_ref())
    }

    /// A running context of this process, by name.
    pub fn context(self: &Arc<Self>, id: ContextId) -> Res<Arc<ContextView>> {
        let mut contexts = lock(&self.contexts);
        if let Some(view) = contexts.get(&id).and_then(Weak::upgrade) {
            return Ok(view);
        }
        if self.is_local() {
            return Err(Code::NOT_FOUND);
        }
        let segment = self.published(id)?;
        let view = Arc::new(ContextView::attach(self.clone(), id, segment)?);
        contexts.retain(|_, weak| weak.strong_count() > 0);
        contexts.insert(id, Arc::downgrade(&view));
        Ok(view)
    }
}

/// A place in this process's table of contexts; gives it back when dropped.
#[derive(Debug)]
pub struct ContextPlace {
    id: ContextId,
}

impl ContextPlace {
    /// Reserves a place and its name.
    pub fn reserve() -> Res<ContextPlace> {
        let mut used = lock(&own()?.contexts);
        let index = used.iter().position(|generation| generation % 2 == 0).ok_or(Code::NO_MEMORY)?;
        used[index] += 1;
        Ok(ContextPlace { id: ContextId { index: index as u32, generation: used[index] } })
    }

    /// Its name.
    pub fn id(&self) -> ContextId {
        self.id
    }

    /// Lets peers find a segment.
    pub fn show(&self, fd: i32) -> Res {
        let slot = &own()?.process.context_slots()[self.id.index as usize];
        slot.fd.store(fd as u32, SeqCst);
        slot.generation.store(self.id.generation, SeqCst);
        Ok(())
    }

    /// Lets peers find the context.
    pub fn publish(&self, view: &Arc<ContextView>) -> Res {
        self.show(view.fd())?;
        let own = own()?;
        lock(&own.process.contexts).insert(self.id, Arc::downgrade(view));
        Ok(())
    }
}

impl Drop for ContextPlace {
    fn drop(&mut self) {
        let Ok(own) = own() else { return };
        let slot = &own.process.context_slots()[self.id.index as usize];
        slot.generation.store(self.id.generation + 1, SeqCst);
        lock(&own.process.contexts).remove(&self.id);
        lock(&own.contexts)[self.id.index as usize] += 1;
    }
}
