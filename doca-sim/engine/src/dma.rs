//! `libdoca_dma`: copies between local memory and memory across PCI.
//!
//! Tasks wait in one queue and are executed by progress, in order. A task that fails takes the context down, as the
//! real library does: it leaves RUNNING by itself and flushes what is queued.

use crate::access::{LOCAL_READ_WRITE, PCI_READ_WRITE};
use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx, CtxState};
use crate::dev::Dev;
use crate::entry::{Object, Tag};
use crate::fabric::process;
use crate::fabric::region::{self, Piece};
use crate::fault;
use crate::log;
use crate::mmap::{Backing, Mmap};
use crate::sleeper;
use crate::task::{Pool, Task, TaskCallback};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

pub use crate::task::MAX_TASKS;
/// Largest copy, bytes. (Proposed.)
pub const MAX_BUF_SIZE: u64 = 2 << 20;
/// Longest chain. (Proposed.)
pub const MAX_LIST_LEN: u32 = 64;

/// What `doca_dma_task_memcpy_set_conf` sets.
#[derive(Clone, Copy)]
pub struct Conf {
    /// Called when a task has ended well.
    pub success: TaskCallback,
    /// Called when it has not.
    pub failure: TaskCallback,
    /// Tasks in the pool.
    pub count: u32,
}

/// What `struct doca_dma *` points to.
#[repr(C)]
pub struct Dma {
    tag: Tag,
    ctx: Ctx,
    this: Weak<Dma>,
    dev: Arc<Dev>,
    conf: Cell<Option<Conf>>,
    pool: RefCell<Option<Rc<Pool>>>,
    queue: RefCell<VecDeque<*const Task>>,
    wake_fd: Cell<Option<i32>>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Dma {
    const TAG: u32 = u32::from_le_bytes(*b"dma_");
}

impl Dma {
    /// `doca_dma_create`
    pub fn new(dev: &Dev) -> Res<Rc<Dma>> {
        let dev = dev.hold()?;
        let dma = Rc::new_cyclic(|this| Dma {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            this: this.clone(),
            dev,
            conf: Cell::new(None),
            pool: RefCell::new(None),
            queue: RefCell::new(VecDeque::new()),
            wake_fd: Cell::new(None),
        });
        let weak: Weak<Dma> = Rc::downgrade(&dma);
        dma.ctx.belong_to(weak);
        Ok(dma)
    }

    /// `doca_dma_destroy`: IN_USE unless the context is IDLE.
    pub fn retire(&self) -> Res {
        self.ctx.require_idle().map_err(|_| Code::IN_USE)?;
        self.tag.kill();
        self.ctx.retire();
        Ok(())
    }

    /// `doca_dma_task_memcpy_set_conf`
    pub fn set_conf(&self, conf: Conf) -> Res {
        self.ctx.require_idle()?;
        if conf.count == 0 || conf.count > MAX_TASKS {
            return Err(Code::INVALID_VALUE);
        }
        self.conf.set(Some(conf));
        Ok(())
    }

    /// `doca_dma_task_memcpy_alloc_init`, first half.
    pub fn take_task(&self, user_data: u64) -> Res<*const Task> {
        self.ctx.require_running()?;
        let pool = self.pool.borrow().clone().ok_or(Code::NO_MEMORY)?;
        pool.take(&self.ctx, user_data).map(std::ptr::from_ref)
    }

    /// Where a buffer's bytes are, and whether they may be read or written.
    fn place(&self, buf: &Buf, addr: usize, len: usize, write: bool) -> Res<Piece> {
        let mmap: &Mmap = buf.mmap();
        if !mmap.has_dev(&self.dev) {
            log::error!("the buffer's mmap does not have the device of this doca_dma");
            return Err(Code::INVALID_VALUE);
        }
        let (addr, len) = (addr as u64, len as u64);
        let Backing::Local(region) = mmap.backing() else {
            log::error!("a buffer across the network, which doca_dma does not reach");
            return Err(Code::INVALID_VALUE);
        };
        // Who may write from the other side of PCI may write from this one, as a program on hardware counts on.
        if write && mmap.access() & (LOCAL_READ_WRITE | PCI_READ_WRITE) == 0 {
            return Err(Code::NOT_PERMITTED);
        }
        Ok(Piece { addr, len, region })
    }

    /// Copies the data of the source chain behind the data of the destination chain.
    fn execute(&self, task: &Task) -> Res {
        let (src, dst) = (task.buffer(&task.fields.src), task.buffer(&task.fields.dst));
        let (Some(src), Some(dst)) = (src, dst) else { return Err(Code::INVALID_VALUE) };
        let length: usize = src.elements().map(Buf::data_len).sum();
        let room: usize = dst.elements().map(Buf::room).sum();
        if length == 0 || length as u64 > MAX_BUF_SIZE || length > room {
            log::error!("a copy of {length} bytes into {room}");
            return Err(Code::INVALID_VALUE);
        }
        let mut target = dst.elements().filter(|buf| buf.room() > 0);
        let mut into: Option<&Buf> = None;
        for from in src.elements() {
            let mut done = 0;
            while done < from.data_len() {
                let to = match into.filter(|buf| buf.room() > 0) {
                    Some(buf) => buf,
                    None => target.next().ok_or(Code::INVALID_VALUE)?,
                };
                into = Some(to);
                let step = to.room().min(from.data_len() - done);
                self.copy(from, from.data() + done, to, to.data() + to.data_len(), step)?;
                to.set_data_len(to.data_len() + step)?;
                done += step;
            }
        }
        Ok(())
    }

    fn copy(&self, from: &Buf, source: usize, to: &Buf, target: usize, len: usize) -> Res {
        let process = process::local()?;
        let source = self.place(from, source, len, false)?;
        let target = self.place(to, target, len, true)?;
        let failed = |refusal| {
            log::error!("DMA: memory cannot be reached: {refusal:?}");
            Code::IO_FAILED
        };
        let source = region::pin(process, source, 0).map_err(failed)?;
        let target = region::pin(process, target, 0).map_err(failed)?;
        source.copy_to(0, &target, 0, len).map_err(failed)
    }

    fn call_back(&self, task: &Task, code: Code) {
        let Some(conf) = self.conf.get() else { return };
        let callback = if code == Code::SUCCESS { conf.success } else { conf.failure };
        task.complete(&self.ctx, code, callback);
    }
}

impl Context for Dma {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_dma"
    }

    fn shows_starting(&self) -> bool {
        false
    }

    fn start(&self) -> Res {
        let owner: Weak<dyn Context> = self.this.clone();
        *self.pool.borrow_mut() = self.conf.get().map(|conf| Pool::new(&owner, 0, conf.count));
        let count = self.conf.get().map_or(0, |conf| conf.count as usize);
        self.queue.borrow_mut().reserve(count);
        Ok(())
    }

    fn kind_name(&self, _kind: u32) -> &'static str {
        "memcpy"
    }

    /// The queue is flushed by progress: in STOPPING no task is executed.
    fn stop(&self) {}

    fn stopped(&self) {}

    fn is_drained(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    fn submit(&self, task: &Task, _flush: bool) -> Res {
        for field in [&task.fields.src, &task.fields.dst] {
            let buf = task.buffer(field).ok_or(Code::INVALID_VALUE)?;
            if buf.list_len() > MAX_LIST_LEN {
                log::error!("a chain of {} buffers, at most {MAX_LIST_LEN} are supported", buf.list_len());
                return Err(Code::INVALID_VALUE);
            }
        }
        self.queue.borrow_mut().push_back(task);
        if let Some(fd) = self.wake_fd.get() {
            sleeper::wake(fd);
        }
        Ok(())
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        if !self.has_work() {
            return false;
        }
        let Some(task) = self.queue.borrow_mut().pop_front() else { return false };
        // SAFETY: submitted and not yet done: its pool, which the context holds, keeps it.
        let task = unsafe { &*task };
        if self.ctx.state() == CtxState::Stopping {
            self.call_back(task, Code::SHUTDOWN);
            return true;
        }
        let result = match fault::failure(task) {
            Some(code) => Err(code),
            None => self.execute(task).map_err(|code| match code {
                Code::NOT_PERMITTED => code,
                _ => Code::IO_FAILED,
            }),
        };
        self.call_back(task, result.err().unwrap_or(Code::SUCCESS));
        if result.is_err() {
            self.ctx.fall(self);
        }
        true
    }

    fn has_work(&self) -> bool {
        self.queue.borrow().front().is_some_and(|task| !fault::is_held(*task))
    }

    fn arm(&self, wake_fd: i32) {
        self.wake_fd.set(Some(wake_fd));
    }

    fn disarm(&self) {
        self.wake_fd.set(None);
    }

    fn deadline(&self) -> Option<u64> {
        fault::next_due()
    }

    fn pidfds(&self, _each: &mut dyn FnMut(i32)) {}
}
