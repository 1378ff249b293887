//! Producers: what `struct doca_comch_producer *` points to. They run on a thread of their own, with their own engine.
//!
//! A send is executed within submit, which is what lets it say AGAIN: the copy goes from the program's memory to the
//! buffer that the consumer has posted. Its completion waits for progress.

use super::connection::Connection;
use super::endpoint::Conf;
use super::half::{Child, Half};
use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx, CtxState};
use crate::entry::{Object, Tag};
use crate::fabric::clock;
use crate::fabric::inbox::{Claim, Credit, Inbox, Unclaimed};
use crate::fabric::process::{self, Process};
use crate::fabric::region::{self, Piece, Refusal};
use crate::fault;
use crate::log;
use crate::pieces;
use crate::profile;
use crate::strict;
use crate::task::{Pool, Task};
use crate::topology::{self, Device};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

const PCI_READ_ONLY: u32 = 16;
const PCI_READ_WRITE: u32 = 32;

/// A producer.
#[repr(C)]
pub struct Producer {
    tag: Tag,
    ctx: Ctx,
    this: Weak<Producer>,
    half: Arc<Half>,
    id: u32,
    conf: Cell<Option<Conf>>,
    pool: RefCell<Option<Rc<Pool>>>,
    /// Immediate data of each task, by its place in the pool.
    immediate: RefCell<Box<[u8]>>,
    /// Tasks that are to be called back, in order: with which code, and from when on.
    ended: RefCell<VecDeque<(*const Task, Code, u64)>>,
    /// The consumer that was sent to last, and when it was looked up.
    last: RefCell<Option<(u32, u64, Arc<Inbox>)>>,
    wake_fd: Cell<Option<i32>>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Producer {
    const TAG: u32 = u32::from_le_bytes(*b"prod");
}

impl Producer {
    /// `doca_comch_producer_create`
    pub fn new(connection: &Connection) -> Res<Rc<Producer>> {
        let half = connection.half()?;
        if half.is_over() {
            log::error!("a producer on a connection that is over");
            return Err(Code::BAD_STATE);
        }
        if !super::has_fast_path(half.dev.device()) {
            return Err(Code::NOT_PERMITTED);
        }
        let id = half.adopt(Child::Producer, half.dev.device().comch.max_producers)?;
        let producer = Rc::new_cyclic(|this| Producer {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            this: this.clone(),
            half,
            id,
            conf: Cell::new(None),
            pool: RefCell::new(None),
            immediate: RefCell::default(),
            ended: RefCell::default(),
            last: RefCell::new(None),
            wake_fd: Cell::new(None),
        });
        let weak: Weak<Producer> = Rc::downgrade(&producer);
        producer.ctx.belong_to(weak);
        Ok(producer)
    }

    /// `doca_comch_producer_destroy`: IN_USE unless IDLE.
    pub fn retire(&self) -> Res {
        self.ctx.require_idle().map_err(|_| Code::IN_USE)?;
        self.tag.kill();
        self.ctx.retire();
        self.half.release(Child::Producer);
        Ok(())
    }

    /// Its number on the connection.
    pub fn id(&self) -> u32 {
        self.id
    }

    fn device(&self) -> &'static Device {
        self.half.dev.device()
    }

    /// `doca_comch_producer_task_send_set_conf`
    pub fn set_conf(&self, conf: Conf) -> Res {
        self.ctx.require_idle()?;
        let most = self.device().comch.max_num_tasks;
        if conf.count == 0 || conf.count > most {
            log::error!("{} send tasks are not from 1 to the device's {most}", conf.count);
            return Err(Code::INVALID_VALUE);
        }
        self.conf.set(Some(conf));
        Ok(())
    }

    /// `doca_comch_producer_task_send_alloc_init`
    pub fn send(&self, head: Option<&Buf>, immediate: &[u8], consumer: u32) -> Res<*const Task> {
        self.ctx.require_running()?;
        self.check(head, immediate.len()).map_err(|_| Code::INVALID_VALUE)?;
        let pool = self.pool.borrow().clone().ok_or(Code::NO_MEMORY)?;
        let task = pool.take(&self.ctx, 0)?;
        task.fields.src.set(head.map_or(0, |buf| std::ptr::from_ref(buf).addr()));
        task.fields.immediate.set(consumer);
        self.set_immediate(task, immediate);
        Ok(task)
    }

    /// What a message must be: buffers of local memory, or immediate data, or both.
    fn check(&self, head: Option<&Buf>, immediate: usize) -> Res {
        let limits = &self.device().comch;
        let refuse = |why: &str| {
            log::error!("producer {}: {why}", self.id);
            Err(Code::NOT_PERMITTED)
        };
        if immediate > limits.max_imm_data_len as usize {
            return refuse(
                "more immediate data than the device's doca_comch_consumer_cap_get_max_imm_data_len",
            );
        }
        if head.is_none() && immediate == 0 {
            return refuse("a message has a buffer, or immediate data");
        }
        if pieces::chain(head).count() > limits.max_buf_list_len as usize {
            return refuse(
                "the chain is longer than the device's doca_comch_producer_cap_get_max_buf_list_len",
            );
        }
        if pieces::data_len(head) > limits.max_buf_size.into() {
            return refuse("the buffer is larger than the device's doca_comch_producer_cap_get_max_buf_size");
        }
        for buf in pieces::chain(head) {
            if !buf.mmap().has_dev(&self.half.dev) {
                return refuse("the buffer's memory map lacks the connection's device");
            }
            if buf.mmap().access() & (PCI_READ_ONLY | PCI_READ_WRITE) == 0 {
                return refuse("the buffer's memory map lacks DOCA_ACCESS_FLAG_PCI_READ_ONLY");
            }
        }
        Ok(())
    }

    /// The place of a task's immediate data.
    pub fn immediate_of(&self, task: &Task) -> *mut u8 {
        if task.fields.second.get() == 0 {
            return std::ptr::null_mut();
        }
        let most = self.device().comch.max_imm_data_len as usize;
        let mut room = self.immediate.borrow_mut();
        room.get_mut(task.slot() as usize * most..).map_or(std::ptr::null_mut(), |bytes| bytes.as_mut_ptr())
    }

    /// Copies immediate data into a task; too many bytes are refused by submit.
    pub fn set_immediate(&self, task: &Task, bytes: &[u8]) {
        let most = self.device().comch.max_imm_data_len as usize;
        let at = task.slot() as usize * most;
        if let Some(room) = self.immediate.borrow_mut().get_mut(at..at + bytes.len().min(most)) {
            room.copy_from_slice(&bytes[..room.len()]);
        }
        task.fields.second.set(bytes.len() as u64);
    }

    fn target(&self, consumer: u32) -> Option<Arc<Inbox>> {
        let epoch = self.half.remote_epoch();
        if let Some((id, looked_up, inbox)) = &*self.last.borrow()
            && (*id, *looked_up) == (consumer, epoch)
        {
            return Some(inbox.clone());
        }
        let inbox = self.half.remote(consumer)?;
        *self.last.borrow_mut() = Some((consumer, epoch, inbox.clone()));
        Some(inbox)
    }

    fn end(&self, task: &Task, code: Code, at: u64) {
        self.ended.borrow_mut().push_back((task, code, at));
        if let Some(fd) = self.wake_fd.get() {
            // SAFETY: the engine's own pipe, open as long as the context is armed.
            unsafe { libc::write(fd, [1u8].as_ptr().cast(), 1) };
        }
    }

    fn execute(&self, task: &Task) -> Res {
        let head = task.buffer(&task.fields.src);
        let immediate = task.fields.second.get() as usize;
        self.check(head, immediate)?;
        if self.half.is_over() {
            return Err(Code::NOT_CONNECTED);
        }
        let consumer = task.fields.immediate.get();
        let Some(inbox) = self.target(consumer) else {
            log::error!("producer {}: the peer has no consumer {consumer}", self.id);
            return Err(Code::NOT_FOUND);
        };
        if immediate > inbox.shape().immediate as usize {
            log::error!(
                "producer {}: {immediate} bytes of immediate data; consumer {consumer} takes {}, see \
                 doca_comch_consumer_set_imm_data_len",
                self.id,
                inbox.shape().immediate
            );
            return Err(Code::INVALID_VALUE);
        }
        if let Some(code) = fault::will_fail(task).then(|| fault::failure(task)).flatten() {
            self.end(task, code, 0);
            return Ok(());
        }
        if !inbox.process().is_alive() {
            let patience = topology::get().map_or(0, |topology| topology.timeouts.comch_death_ms);
            self.end(task, Code::CONNECTION_ABORTED, clock::now() + clock::millis(patience.into()));
            return Ok(());
        }
        let length = pieces::data_len(head);
        let claim = match inbox.claim(length, credit()) {
            Ok(claim) => claim,
            Err(Unclaimed::Empty) => return Err(Code::AGAIN),
            Err(Unclaimed::Closed) => return Err(Code::NOT_FOUND),
            Err(Unclaimed::Small) => {
                log::error!("producer {}: {length} bytes to a buffer with less room", self.id);
                self.end(task, Code::IO_FAILED, 0);
                return Ok(());
            }
        };
        strict::lend(task, pieces::data(head));
        match self.copy(head, &claim, inbox.process()) {
            Ok(()) => {
                let most = self.device().comch.max_imm_data_len as usize;
                let room = self.immediate.borrow();
                let at = task.slot() as usize * most;
                claim.filled(length, self.id, room.get(at..at + immediate).unwrap_or_default());
                drop(room);
                self.end(task, Code::SUCCESS, 0);
            }
            Err(refusal) => {
                log::error!("producer {}: memory cannot be reached: {refusal:?}", self.id);
                claim.broken();
                self.end(task, Code::IO_FAILED, 0);
            }
        }
        Ok(())
    }

    fn copy(&self, head: Option<&Buf>, claim: &Claim<'_>, to: &Process) -> Result<(), Refusal> {
        let mut targets = claim.pieces().filter(|piece| piece.len > 0);
        let mut target: Option<Piece> = None;
        let process = process::local().map_err(|_| Refusal::Fault)?;
        for mut source in pieces::data(head) {
            while source.len > 0 {
                let into = match target.filter(|piece| piece.len > 0) {
                    Some(piece) => piece,
                    None => targets.next().ok_or(Refusal::Bounds)?,
                };
                let step = source.len.min(into.len);
                let from_pin = region::pin(process, Piece { len: step, ..source }, 0)?;
                let into_pin = region::pin(to, Piece { len: step, ..into }, PCI_READ_WRITE)?;
                from_pin.copy_to(0, &into_pin, 0, step as usize)?;
                fault::point();
                source = Piece { addr: source.addr + step, len: source.len - step, ..source };
                target = Some(Piece { addr: into.addr + step, len: into.len - step, ..into });
            }
        }
        Ok(())
    }

    fn front(&self) -> Option<(*const Task, Code)> {
        let (task, code, at) = *self.ended.borrow().front()?;
        let flushed = self.ctx.state() == CtxState::Stopping;
        let due = flushed || (at == 0 || clock::now() >= at) && !fault::is_held(task);
        due.then_some((task, code))
    }
}

/// Real producers are seen to send from within a callback of their control path, and real consumers to receive while nobody
/// progresses theirs: neither is needed.
fn credit() -> Credit {
    let profile = profile::get();
    match (profile.comch_credits_consumer_side, profile.comch_credits_both_sides) {
        (_, true) => Credit::Heard,
        (true, _) => Credit::Advertised,
        _ => Credit::Posted,
    }
}

impl Context for Producer {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_comch_producer"
    }

    fn kind_name(&self, _kind: u32) -> &'static str {
        "comch_producer_send"
    }

    fn shows_starting(&self) -> bool {
        false
    }

    fn start(&self) -> Res {
        if self.half.is_over() {
            log::error!("doca_comch_producer: start on a connection that is over");
            return Err(Code::NOT_CONNECTED);
        }
        let owner: Weak<dyn Context> = self.this.clone();
        let count = self.conf.get().map_or(0, |conf| conf.count);
        *self.pool.borrow_mut() = self.conf.get().map(|conf| Pool::new(&owner, 0, conf.count));
        *self.immediate.borrow_mut() =
            vec![0; (count * self.device().comch.max_imm_data_len) as usize].into();
        self.ended.borrow_mut().reserve(count as usize);
        Ok(())
    }

    /// What has ended is told by progress.
    fn stop(&self) {}

    fn stopped(&self) {
        self.last.take();
    }

    fn is_drained(&self) -> bool {
        self.ended.borrow().is_empty()
    }

    fn submit(&self, task: &Task, _flush: bool) -> Res {
        self.execute(task)
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        let Some((task, code)) = self.front() else { return false };
        self.ended.borrow_mut().pop_front();
        // SAFETY: submitted and not yet done: its pool, which the context holds, keeps it.
        let task = unsafe { &*task };
        strict::give_back(task, "comch_producer_send");
        if let Some(conf) = self.conf.get() {
            let callback = if code == Code::SUCCESS { conf.success } else { conf.failure };
            task.complete(&self.ctx, code, callback);
        }
        true
    }

    fn has_work(&self) -> bool {
        self.front().is_some()
    }

    fn arm(&self, wake_fd: i32) {
        self.wake_fd.set(Some(wake_fd));
    }

    fn disarm(&self) {
        self.wake_fd.set(None);
    }

    fn deadline(&self) -> Option<u64> {
        let front = self.ended.borrow().front().map(|(_, _, at)| *at).filter(|at| *at > clock::now());
        front.into_iter().chain(fault::next_due()).min()
    }

    fn pidfds(&self, _each: &mut dyn FnMut(i32)) {}
}
