//! Queues of a disk, as memory that DOCA takes over.

use doca_common::memory::Foreign;
use doca_common::raw::map::{Region, register};
use doca_common::{Access, Device, Error, Memory, Refusal, Result, call};
use doca_sys::{doca_sta_be_handle, doca_sta_be_q_handle};
use std::ffi::c_int;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

const ADD: &str = "doca_sta_be_add_queue";

/// Bytes of a submission queue entry.
pub const SQE: usize = 64;
/// Bytes of a completion queue entry.
pub const CQE: usize = 16;
/// Alignment of doorbells, bytes, and the length of memory that is enough for a pair of them.
pub const DOORBELLS: usize = 64;

/// Where the doorbells of a queue are.
#[derive(Clone, Copy, Debug)]
pub struct Doorbells {
    /// First byte of a block that is aligned to 64 bytes.
    pub start: NonNull<u8>,
    /// Bytes of the block.
    pub len: usize,
    /// The dma-buf of the disk's BAR and the offset of the block inside it, for a disk on PCI.
    pub dmabuf: Option<(c_int, usize)>,
    /// Offset of the submission queue's tail, bytes, a multiple of 4.
    pub submission_tail: u16,
    /// Offset of the completion queue's head, bytes, a multiple of 4.
    pub completion_head: u16,
}

/// A pair of I/O queues that a driver created on its disk, with interrupts off, and gives to DOCA. Dropping it
/// deletes them on the disk.
///
/// # Safety
///
/// The three ranges are allocated, initialised and stay where they are until the object is dropped; all answers stay
/// the same. From the moment that the object was given away, only the disk touches them beside DOCA. Nothing was
/// submitted yet: both indices are 0, and the completion queue is zeroed.
pub unsafe trait NvmeQueue: Send + 'static {
    /// Entries of either queue: a power of two.
    fn entries(&self) -> usize;

    /// First of the submission queue's entries of 64 bytes.
    fn submission(&self) -> NonNull<u8>;

    /// First of the completion queue's entries of 16 bytes.
    fn completion(&self) -> NonNull<u8>;

    /// The doorbells.
    fn doorbells(&self) -> Doorbells;
}

/// A queue whose parts are registered.
struct Shared(Box<dyn NvmeQueue>);

// SAFETY: the queue is Send, and asked nothing until its last part is unregistered: the parts only keep it.
unsafe impl Sync for Shared {}

/// A part of a queue, to be registered.
struct Part {
    start: NonNull<u8>,
    len: usize,
    dmabuf: Option<(c_int, usize)>,
    /// Stays as long as the registration, also one that DOCA refuses to end.
    _queue: Arc<Shared>,
}

// SAFETY: an address that this process makes no use of, and a queue that is Send.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

// SAFETY: it keeps the queue that it is a part of, and nothing of this process but the disk touches
// the bytes, as `NvmeQueue` demands. The region is never divided into buffers, so nothing here reads them either.
unsafe impl Foreign for Part {
    fn base(&self) -> NonNull<u8> {
        self.start
    }

    fn len(&self) -> usize {
        self.len
    }

    fn dmabuf(&self) -> Option<(c_int, usize)> {
        self.dmabuf
    }
}

/// Refuses what DOCA would, and what it might not notice.
fn check(queue: &dyn NvmeQueue) -> Result<()> {
    let bad = |refusal, text: String| Err(Error::refused(ADD, refusal).with(text));
    let (entries, bells) = (queue.entries(), queue.doorbells());
    if !(2..=1 << 16).contains(&entries) || !entries.is_power_of_two() {
        return bad(Refusal::OutOfRange, format!("{entries} entries: a power of two from 2 to 65536"));
    }
    if !bells.start.as_ptr().addr().is_multiple_of(DOORBELLS) {
        return bad(Refusal::Misaligned, format!("doorbells at {:?}: a multiple of 64", bells.start));
    }
    for (name, offset) in [("submission", bells.submission_tail), ("completion", bells.completion_head)] {
        if !offset.is_multiple_of(4) || usize::from(offset) + 4 > bells.len {
            return bad(Refusal::OutOfRange, format!("{name} doorbell at {offset} of {} bytes", bells.len));
        }
    }
    if bells.submission_tail == bells.completion_head {
        return bad(Refusal::OutOfRange, format!("both doorbells at {}", bells.completion_head));
    }
    Ok(())
}

/// A queue that DOCA has.
pub(crate) struct Lent {
    pub(crate) handle: NonNull<doca_sta_be_q_handle>,
    parts: [Region; 3],
    queue: Arc<Shared>,
}

impl Lent {
    /// Registers a queue and gives it to a back end. After an error it is deleted.
    ///
    /// # Safety
    ///
    /// The back end is alive.
    pub(crate) unsafe fn add(
        back_end: NonNull<doca_sta_be_handle>,
        queue: Box<dyn NvmeQueue>,
        control: &Device,
    ) -> Result<Self> {
        check(&*queue)?;
        let (entries, bells) = (queue.entries(), queue.doorbells());
        let (submission, completion) = (queue.submission(), queue.completion());
        let queue = Arc::new(Shared(queue));
        let part = |start, len, dmabuf, access| {
            let part = Part { start, len, dmabuf, _queue: queue.clone() };
            register(Memory::foreign(part), control, Access::LOCAL_READ_WRITE | access)
        };
        // Without the flag, mappings of a BAR were seen to be refused.
        let ordering = if bells.dmabuf.is_some() { Access::PCI_RELAXED_ORDERING } else { Access::empty() };
        let parts = [
            part(submission, entries * SQE, None, Access::empty())?,
            part(completion, entries * CQE, None, Access::empty())?,
            part(bells.start, bells.len, bells.dmabuf, ordering)?,
        ];
        let mut handle = ptr::null_mut();
        // SAFETY: the back end is alive, as the caller says; the maps are started and kept until the queue was
        // destroyed; the out-parameter is a local.
        unsafe {
            call!(doca_sta_be_add_queue(
                back_end.as_ptr(),
                parts[0].as_raw(),
                parts[2].as_raw(),
                bells.submission_tail,
                parts[1].as_raw(),
                parts[2].as_raw(),
                bells.completion_head,
                &mut handle
            ))
        }?;
        let handle = NonNull::new(handle).ok_or_else(|| doca_common::raw::context::null(ADD))?;
        Ok(Lent { handle, parts, queue })
    }

    /// Takes the queue back, which DOCA destroyed, and deletes it on the disk.
    pub(crate) fn give_back(self) {
        let Lent { parts, queue, .. } = self;
        drop(parts);
        let Some(Shared(queue)) = Arc::into_inner(queue) else {
            log::warn!("{ADD}: a queue stays on its disk, since part of it is registered still");
            return;
        };
        // SAFETY: DOCA has let go; the disk posts nothing without commands. Drivers that poll the queue while they
        // delete it must not find completions of commands that they never sent.
        unsafe { ptr::write_bytes(queue.completion().as_ptr(), 0, queue.entries() * CQE) };
        drop(queue);
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({:?})", self.handle)
    }
}
