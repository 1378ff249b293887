//! Consumers: what `struct doca_comch_consumer *` points to. They run on a thread of their own, with their own engine.

use super::connection::Connection;
use super::endpoint::Conf;
use super::half::{Child, Half};
use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx, CtxState};
use crate::entry::{Object, Tag};
use crate::fabric::clock;
use crate::fabric::context::LinkId;
use crate::fabric::inbox::{Arrival, Fate, Inbox, Shape};
use crate::fabric::operation::Outcome;
use crate::fabric::process::ContextPlace;
use crate::fabric::receives::Received;
use crate::fault;
use crate::log;
use crate::mmap::{Backing, Mmap};
use crate::pieces;
use crate::profile;
use crate::strict;
use crate::task::{Pool, Task};
use crate::topology::Device;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

const PCI_READ_WRITE: u32 = 32;
/// How often the life of producers that are copying is looked at.
const LOOK_EVERY: u64 = clock::millis(20);

/// A consumer.
#[repr(C)]
pub struct Consumer {
    tag: Tag,
    ctx: Ctx,
    this: Weak<Consumer>,
    half: Arc<Half>,
    id: u32,
    mmap: std::sync::Weak<Mmap>,
    immediate: Cell<u32>,
    conf: Cell<Option<Conf>>,
    /// Its engine was armed while it was starting.
    armed_early: Cell<bool>,
    running: RefCell<Option<Rc<Running>>>,
    /// What ran last: programs read freed tasks.
    retired: RefCell<Option<Rc<Running>>>,
}

/// What exists while it is not IDLE.
struct Running {
    inbox: Arc<Inbox>,
    _place: ContextPlace,
    pool: Option<Rc<Pool>>,
    /// Tasks by their entry.
    tasks: Box<[Cell<*const Task>]>,
    /// Immediate data of each task, by its place in the pool.
    immediate: Box<[Cell<u8>]>,
    posted: Cell<u64>,
    reported: Cell<u64>,
    looked: Cell<u64>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Consumer {
    const TAG: u32 = u32::from_le_bytes(*b"cons");
}

impl Consumer {
    /// `doca_comch_consumer_create`
    pub fn new(connection: &Connection, mmap: &Mmap) -> Res<Rc<Consumer>> {
        let half = connection.half()?;
        if half.is_over() {
            log::error!("a consumer on a connection that is over");
            return Err(Code::BAD_STATE);
        }
        if !super::has_fast_path(half.dev.device()) {
            return Err(Code::NOT_PERMITTED);
        }
        if !mmap.is_started() {
            log::error!("the memory map of a consumer is not started; call doca_mmap_start first");
            return Err(Code::INVALID_VALUE);
        }
        let id = half.adopt(Child::Consumer, half.dev.device().comch.max_consumers)?;
        let consumer = Rc::new_cyclic(|this| Consumer {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            this: this.clone(),
            half,
            id,
            mmap: mmap.watch(),
            immediate: Cell::new(0),
            conf: Cell::new(None),
            armed_early: Cell::new(false),
            running: RefCell::new(None),
            retired: RefCell::new(None),
        });
        let weak: Weak<Consumer> = Rc::downgrade(&consumer);
        consumer.ctx.belong_to(weak);
        Ok(consumer)
    }

    /// `doca_comch_consumer_destroy`: IN_USE unless IDLE.
    pub fn retire(&self) -> Res {
        self.ctx.require_idle().map_err(|_| Code::IN_USE)?;
        self.tag.kill();
        self.ctx.retire();
        self.half.release(Child::Consumer);
        Ok(())
    }

    /// Its number on the connection.
    pub fn id(&self) -> u32 {
        self.id
    }

    fn device(&self) -> &'static Device {
        self.half.dev.device()
    }

    /// Most immediate data, bytes.
    pub fn immediate(&self) -> u32 {
        self.immediate.get()
    }

    /// `doca_comch_consumer_set_imm_data_len`
    pub fn set_immediate(&self, len: u32) -> Res {
        self.ctx.require_idle()?;
        let most = self.device().comch.max_imm_data_len;
        if len > most {
            log::error!("{len} bytes of immediate data are more than the device's {most}");
            return Err(Code::INVALID_VALUE);
        }
        self.immediate.set(len);
        Ok(())
    }

    /// `doca_comch_consumer_task_post_recv_set_conf`
    pub fn set_conf(&self, conf: Conf) -> Res {
        self.ctx.require_idle()?;
        let most = self.device().comch.max_num_tasks;
        if conf.count == 0 || conf.count > most {
            log::error!("{} post-receive tasks are not from 1 to the device's {most}", conf.count);
            return Err(Code::INVALID_VALUE);
        }
        self.conf.set(Some(conf));
        Ok(())
    }

    /// `doca_comch_consumer_task_post_recv_alloc_init`
    pub fn receive(&self, head: &Buf) -> Res<*const Task> {
        self.ctx.require_running()?;
        self.check(head).map_err(|_| Code::INVALID_VALUE)?;
        let pool =
            self.running.borrow().as_ref().and_then(|running| running.pool.clone()).ok_or(Code::NO_MEMORY)?;
        let task = pool.take(&self.ctx, 0)?;
        task.fields.dst.set(std::ptr::from_ref(head).addr());
        Ok(task)
    }

    /// What a buffer must be: of the consumer's map, with the device and the right, in a chain that is not too long.
    fn check(&self, head: &Buf) -> Res {
        let limits = &self.device().comch;
        let refuse = |why: &str| {
            log::error!("consumer {}: {why}", self.id);
            Err(Code::NOT_PERMITTED)
        };
        if pieces::chain(Some(head)).count() > limits.max_buf_list_len as usize {
            return refuse(
                "the chain is longer than the device's doca_comch_consumer_cap_get_max_buf_list_len",
            );
        }
        let mut room = 0;
        for buf in pieces::chain(Some(head)) {
            let mmap = buf.mmap();
            if self.mmap.as_ptr() != std::ptr::from_ref(mmap) {
                return refuse("a buffer of another memory map than the consumer's");
            }
            if matches!(mmap.backing(), Backing::Remote(_)) || !mmap.has_dev(&self.half.dev) {
                return refuse("the buffer's memory map is imported, or lacks the connection's device");
            }
            if mmap.access() & PCI_READ_WRITE == 0 {
                return refuse("the buffer's memory map lacks DOCA_ACCESS_FLAG_PCI_READ_WRITE");
            }
            room += buf.room() as u64;
        }
        if room > limits.max_buf_size.into() {
            return refuse("the buffer is larger than the device's doca_comch_consumer_cap_get_max_buf_size");
        }
        Ok(())
    }

    fn running(&self) -> Res<Rc<Running>> {
        self.running.borrow().clone().ok_or(Code::BAD_STATE)
    }

    /// Where a task's immediate data are; NULL if it has none.
    pub fn immediate_of(&self, task: &Task) -> *const u8 {
        if task.fields.result_immediate.get() == 0 {
            return std::ptr::null();
        }
        let current = self.running.borrow();
        let retired = self.retired.borrow();
        let Some(running) = current.as_ref().or(retired.as_ref()) else { return std::ptr::null() };
        running.immediate_at(task).map_or(std::ptr::null(), |cells| cells.as_ptr().cast())
    }

    fn post(&self, running: &Running, task: &Task) -> Res {
        let head = task.buffer(&task.fields.dst).ok_or(Code::INVALID_VALUE)?;
        self.check(head)?;
        task.fields.result_len.set(0);
        task.fields.result_connection.set(0);
        task.fields.result_immediate.set(0);
        strict::open(task, pieces::rooms(Some(head)));
        let position = running.posted.get();
        running.slot(position).set(task);
        running.posted.set(position + 1);
        running.inbox.post(position, pieces::rooms(Some(head)));
        self.half.posted(&running.inbox);
        Ok(())
    }

    fn report(&self, running: &Running, task: &Task, position: u64, arrival: &Arrival) {
        let Some(conf) = self.conf.get() else { return };
        let injected = fault::failure(task).filter(|_| arrival.fate == Fate::Filled);
        let code = match arrival.fate {
            Fate::Filled => injected.unwrap_or(Code::SUCCESS),
            Fate::Flushed if profile::get().flushed_shutdown => Code::SHUTDOWN,
            Fate::Flushed => Code::IO_FAILED,
            Fate::Broken => Code::CONNECTION_ABORTED,
        };
        let outcome = if arrival.fate == Fate::Filled { Outcome::Success } else { Outcome::Flushed };
        let nobody = LinkId { index: 0, generation: 0 };
        let came = Received { outcome, opcode: 0, length: arrival.length, immediate: 0, link: nobody };
        strict::close(task, &came);
        if code == Code::SUCCESS {
            let fields = &task.fields;
            fields.result_len.set(arrival.length);
            fields.result_connection.set(arrival.producer as usize);
            fields.result_immediate.set(arrival.immediate);
            if arrival.immediate > 0
                && let Some(cells) = running.immediate_at(task)
            {
                let mut bytes = vec![0; arrival.immediate as usize];
                running.inbox.read_immediate(position, &mut bytes);
                for (cell, byte) in cells.iter().zip(bytes) {
                    cell.set(byte);
                }
            }
            pieces::advance(task.buffer(&fields.dst), arrival.length);
        }
        let callback = if code == Code::SUCCESS { conf.success } else { conf.failure };
        task.complete(&self.ctx, code, callback);
    }
}

impl Running {
    fn slot(&self, position: u64) -> &Cell<*const Task> {
        &self.tasks[position as usize & (self.tasks.len() - 1)]
    }

    fn immediate_at(&self, task: &Task) -> Option<&[Cell<u8>]> {
        let len = self.inbox.shape().immediate as usize;
        let at = task.slot() as usize * len;
        self.immediate.get(at..at + len)
    }

    /// The next entry, if it can be reported.
    fn arrival(&self) -> Option<Arrival> {
        let position = self.reported.get();
        if position >= self.posted.get() || fault::is_held(self.slot(position).get()) {
            return None;
        }
        self.inbox.arrival(position)
    }

    fn is_waiting(&self) -> bool {
        self.reported.get() < self.posted.get()
    }
}

impl Context for Consumer {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_comch_consumer"
    }

    fn kind_name(&self, _kind: u32) -> &'static str {
        "comch_post_recv"
    }

    /// NVIDIA's secure_channel does, before it stops the consumer.
    fn frees_in_flight(&self) -> bool {
        true
    }

    fn start(&self) -> Res {
        if self.half.is_over() {
            log::error!("doca_comch_consumer: start on a connection that is over");
            return Err(Code::NOT_CONNECTED);
        }
        self.retired.take();
        self.armed_early.set(false);
        let count = self.conf.get().map_or(1, |conf| conf.count);
        let shape = Shape {
            entries: count.next_power_of_two(),
            pieces: self.device().comch.max_buf_list_len,
            immediate: self.immediate.get(),
        };
        let inbox = Arc::new(Inbox::create(shape)?);
        let place = ContextPlace::reserve()?;
        place.show(inbox.fd())?;
        let owner: Weak<dyn Context> = self.this.clone();
        self.half.open(self.id, &inbox, place.id());
        *self.running.borrow_mut() = Some(Rc::new(Running {
            _place: place,
            pool: self.conf.get().map(|conf| Pool::new(&owner, 0, conf.count)),
            tasks: (0..shape.entries).map(|_| Cell::new(std::ptr::null())).collect(),
            immediate: (0..count * shape.immediate).map(|_| Cell::new(0)).collect(),
            inbox,
            posted: Cell::new(0),
            reported: Cell::new(0),
            looked: Cell::new(0),
        }));
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let lost = self.armed_early.get() && profile::get().comch_lost_consumer_start;
        !lost && self.running().is_ok_and(|running| running.inbox.is_known())
    }

    fn stop(&self) {
        self.half.close(self.id);
        if let Ok(running) = self.running() {
            running.inbox.close(running.reported.get());
        }
    }

    fn stopped(&self) {
        *self.retired.borrow_mut() = self.running.take();
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn submit(&self, task: &Task, _flush: bool) -> Res {
        self.post(&*self.running()?, task)
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        let Ok(running) = self.running() else { return false };
        if self.ctx.state() == CtxState::Starting && self.half.is_over() {
            self.ctx.fall(self);
            return true;
        }
        let Some(arrival) = running.arrival() else {
            let now = clock::now();
            if running.is_waiting() && now.saturating_sub(running.looked.get()) >= LOOK_EVERY {
                running.looked.set(now);
                if running.inbox.is_being_filled(running.reported.get()) {
                    running.inbox.reap(running.reported.get());
                }
            }
            return false;
        };
        let position = running.reported.get();
        running.reported.set(position + 1);
        let task = running.slot(position).replace(std::ptr::null());
        // SAFETY: put there by `post`; tasks live as long as their pool, which `running` holds.
        if let Some(task) = unsafe { task.as_ref() } {
            self.report(&running, task, position, &arrival);
        }
        true
    }

    fn has_work(&self) -> bool {
        if self.ctx.state() == CtxState::Starting {
            return self.half.is_over();
        }
        self.running().is_ok_and(|running| running.arrival().is_some())
    }

    fn arm(&self, wake_fd: i32) {
        if self.ctx.state() == CtxState::Starting {
            self.armed_early.set(true);
        }
        if let Ok(running) = self.running() {
            running.inbox.bell().arm(wake_fd);
        }
    }

    fn disarm(&self) {
        if let Ok(running) = self.running() {
            running.inbox.bell().disarm();
        }
    }

    fn deadline(&self) -> Option<u64> {
        let filling = self.running().is_ok_and(|running| {
            running.is_waiting() && running.inbox.is_being_filled(running.reported.get())
        });
        fault::next_due().into_iter().chain(filling.then(|| clock::now() + LOOK_EVERY)).min()
    }

    fn pidfds(&self, _each: &mut dyn FnMut(i32)) {}
}
