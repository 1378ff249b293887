//! IO contexts: what one thread of the program hears of its queue pairs, and what it asks for them.

use super::core::Core;
use super::handle::Handle;
use super::inbox::{Io, IoEvent, SMALL};
use super::memory::{Allocator, Buffer};
use super::nvme::Status;
use super::qp::{Job, Qp, QpState};
use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::entry::{Object, Tag};
use crate::fault;
use crate::log;
use crate::profile;
use crate::task::{Pool, Task};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};

/// `doca_sta_task_completion_cb_t`
pub type TaskCallback = unsafe extern "C" fn(*const Task, u64);

/// Both callbacks of a kind of tasks.
#[derive(Clone, Copy)]
pub struct Callbacks {
    /// A task has ended well.
    pub success: TaskCallback,
    /// A task has not.
    pub failure: TaskCallback,
}

impl Callbacks {
    /// Gives a task back to the program.
    pub(super) fn call(self, ctx: &Ctx, task: usize, code: Code) {
        // SAFETY: submitted and not yet told of: its pool, which the context holds, keeps it.
        let Some(task) = (unsafe { (task as *const Task).as_ref() }) else { return };
        let code = fault::failure(task).unwrap_or(code);
        let callback = if code == Code::SUCCESS { self.success } else { self.failure };
        // SAFETY: the program's own function, with what its type promises.
        task.give_back(ctx, code, |task| unsafe { callback(task, task.user_data()) });
    }
}

/// `doca_sta_io_non_offload_cb_t`
pub type CommandCallback = unsafe extern "C" fn(Handle, u64, *const u8, *mut u8, u32, bool, u64);
/// `doca_sta_event_transport_err_cb_t`
pub type TransportCallback = unsafe extern "C" fn(*const TransportError, u64);

/// `struct doca_sta_event_transport_err`
#[repr(C)]
pub struct TransportError {
    pub(super) tag: Tag,
    /// The queue pair.
    pub qp: Handle,
    /// What it was doing.
    pub operation: u32,
    /// What the adapter says.
    pub syndrome: u32,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for TransportError {
    const TAG: u32 = u32::from_le_bytes(*b"sttr");
}

/// What the program is told of a command.
struct Lent {
    user_data: u64,
    command: *const u8,
    payload: *mut u8,
    len: u32,
    valid: bool,
}

/// Kinds of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum IoTask {
    /// Ends a queue pair.
    Disconnect = 0,
    /// Fetches the data of a command.
    Read = 1,
    /// Answers with data.
    WriteSend = 2,
    /// Answers.
    Send = 3,
}

const KINDS: [(IoTask, &str, u32); 4] = [
    (IoTask::Disconnect, "sta_disconnect", 64),
    (IoTask::Read, "sta_rdma_read", 4096),
    (IoTask::WriteSend, "sta_rdma_write_send", 4096),
    (IoTask::Send, "sta_rdma_send", 4096),
];

/// What `struct doca_sta_io *` points to.
#[repr(C)]
pub struct StaIo {
    tag: Tag,
    ctx: Ctx,
    this: Weak<StaIo>,
    core: Arc<Core>,
    index: u32,
    disconnect: Cell<Option<Callbacks>>,
    answers: Cell<Option<Callbacks>>,
    reads: Cell<Option<Callbacks>>,
    commands: Cell<Option<(CommandCallback, u64)>>,
    errors: Cell<Option<(TransportCallback, u64)>>,
    pools: OnceCell<[Rc<Pool>; 4]>,
    allocator: Cell<Option<Allocator>>,
    started_before: Cell<bool>,
    /// The thread that progresses it, once it has.
    thread: AtomicI32,
    submits: AtomicU32,
    stopping: RefCell<Vec<Buffer>>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for StaIo {
    const TAG: u32 = u32::from_le_bytes(*b"staI");
}

fn this_thread() -> i32 {
    // SAFETY: plain system call.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

impl StaIo {
    /// `doca_sta_io_create`
    pub(crate) fn new(core: &Arc<Core>) -> Res<Rc<StaIo>> {
        let mut state = core.hold();
        let target = &mut state.target;
        target.require_running()?;
        if target.io_contexts >= target.max_sta_io {
            log::error!("there are {} IO contexts already, see doca_sta_set_max_sta_io", target.max_sta_io);
            return Err(Code::NO_MEMORY);
        }
        target.io_contexts += 1;
        target.next_io += 1;
        let index = target.next_io;
        drop(state);
        let io = Rc::new_cyclic(|this: &Weak<StaIo>| StaIo {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            this: this.clone(),
            core: core.clone(),
            index,
            disconnect: Cell::new(None),
            answers: Cell::new(None),
            reads: Cell::new(None),
            commands: Cell::new(None),
            errors: Cell::new(None),
            pools: OnceCell::new(),
            allocator: Cell::new(None),
            started_before: Cell::new(false),
            thread: AtomicI32::new(0),
            submits: AtomicU32::new(0),
            stopping: RefCell::new(Vec::new()),
        });
        let weak: Weak<StaIo> = Rc::downgrade(&io);
        io.ctx.belong_to(weak);
        Ok(io)
    }

    /// `doca_sta_io_destroy`
    pub(crate) fn retire(&self) -> Res {
        self.ctx.require_idle()?;
        self.tag.kill();
        self.ctx.retire();
        self.core.hold().target.io_contexts -= 1;
        Ok(())
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Which IO context of its instance it is.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn set_disconnect(&self, callbacks: Callbacks) -> Res {
        self.ctx.require_idle()?;
        self.disconnect.set(Some(callbacks));
        Ok(())
    }

    pub(crate) fn set_answers(&self, callbacks: Callbacks) -> Res {
        self.ctx.require_idle()?;
        self.answers.set(Some(callbacks));
        Ok(())
    }

    pub(crate) fn set_reads(&self, callbacks: Callbacks) -> Res {
        self.ctx.require_idle()?;
        self.reads.set(Some(callbacks));
        Ok(())
    }

    pub(crate) fn set_commands(&self, callback: CommandCallback, data: u64) -> Res {
        self.ctx.require_idle()?;
        self.commands.set(Some((callback, data)));
        Ok(())
    }

    pub(crate) fn set_errors(&self, callback: TransportCallback, data: u64) -> Res {
        self.ctx.require_idle()?;
        self.errors.set(Some((callback, data)));
        Ok(())
    }

    /// BAD_STATE unless it runs; in strict mode NOT_PERMITTED on other threads than the one that progresses it.
    pub(super) fn require_mine(&self) -> Res {
        let thread = self.thread.load(Relaxed);
        if profile::get().strict && thread != 0 && thread != this_thread() {
            log::error!("queue pairs are for the thread that progresses their IO context");
            return Err(Code::NOT_PERMITTED);
        }
        self.ctx.require_running()
    }

    fn pool(&self, kind: IoTask) -> Res<&Rc<Pool>> {
        self.pools.get().map(|pools| &pools[kind as usize]).ok_or(Code::BAD_STATE)
    }

    /// `doca_sta_io_task_disconnect_alloc_init`
    pub(crate) fn disconnect_task(&self, qp: Handle, user_data: u64) -> Res<*const Task> {
        self.require_mine()?;
        self.own(&mut self.core.hold().qps, qp)?;
        let task = self.pool(IoTask::Disconnect)?.take(&self.ctx, user_data)?;
        task.fields.first.set(qp.bits());
        Ok(task)
    }

    /// The three `doca_sta_io_task_non_offload_*_alloc_init`.
    pub(crate) fn command_task(
        &self,
        kind: IoTask,
        qp: Handle,
        token: Handle,
        completion: [u8; 16],
        user_data: u64,
    ) -> Res<*const Task> {
        self.require_mine()?;
        {
            let mut state = self.core.hold();
            let qp = self.own(&mut state.qps, qp)?;
            if qp.state != QpState::Connected && qp.state != QpState::Failed {
                log::error!("the queue pair is {:?}: nothing of it is answered", qp.state);
                return Err(Code::BAD_STATE);
            }
            check_token(qp, kind, token)?;
        }
        let task = self.pool(kind)?.take(&self.ctx, user_data)?;
        task.fields.first.set(qp.bits());
        task.fields.second.set(token.bits());
        task.fields.bytes.set(completion);
        Ok(task)
    }

    /// A queue pair of this context. INVALID_VALUE if there is none, NOT_PERMITTED if it is another context's.
    pub(super) fn own<'a>(
        &self,
        qps: &'a mut std::collections::BTreeMap<Handle, Qp>,
        qp: Handle,
    ) -> Res<&'a mut Qp> {
        let qp = qps.get_mut(&qp).ok_or(Code::INVALID_VALUE)?;
        if qp.io != self.index {
            log::error!("the queue pair belongs to another IO context");
            return Err(Code::NOT_PERMITTED);
        }
        Ok(qp)
    }

    /// Calls the program for a command; `false` if the command is over by now.
    fn hand_over(&self, qp: Handle, token: Handle) -> bool {
        let Some((callback, registered)) = self.commands.get() else { return false };
        let Some(lent) = self.lend(qp, token, registered) else { return false };
        // SAFETY: the program's own function; command and payload stay until the command is over.
        unsafe {
            callback(qp, lent.user_data, lent.command, lent.payload, lent.len, lent.valid, token.bits());
        }
        true
    }

    fn lend(&self, qp: Handle, token: Handle, registered: u64) -> Option<Lent> {
        let buffer = {
            let mut state = self.core.hold();
            let wants = state.qps.get(&qp)?.tokens.get(&token)?.wants();
            let large = (self.core.limits.max_io_size as usize).next_multiple_of(SMALL);
            let wants = if wants <= SMALL { SMALL } else { large };
            let known = state.target.ios.get_mut(&self.index)?.payload(wants);
            drop(state);
            match (known, self.allocator.get()) {
                (Some(buffer), _) => Ok(buffer),
                (None, Some(allocator)) => allocator.allocate(wants, false),
                (None, None) => Err(Code::NO_MEMORY),
            }
        };
        let mut state = self.core.hold();
        let state = &mut *state;
        let known = state.qps.get_mut(&qp).filter(|qp| qp.tokens.contains_key(&token));
        match (known, buffer) {
            (Some(known), Ok(buffer)) => {
                let user_data = known.user_data.unwrap_or(registered);
                let command = known.tokens.get_mut(&token)?;
                let (payload, len, valid) = command.lend(buffer);
                Some(Lent { user_data, command: command.command_pointer(), payload, len, valid })
            }
            (Some(known), Err(_)) => {
                log::error!("a command is answered with an error: there is no memory for its data");
                let over = known.tokens.remove(&token)?;
                known.refuse(&mut state.target, over.command(), Status::INTERNAL);
                None
            }
            (None, buffer) => {
                state.target.ios.get_mut(&self.index)?.put_payload(buffer.ok()?);
                None
            }
        }
    }

    /// A command is over: its loan ends.
    fn end_token(&self, qp: Handle, token: Handle) {
        let mut state = self.core.hold();
        let state = &mut *state;
        let Some(mut token) = state.qps.get_mut(&qp).and_then(|qp| qp.tokens.remove(&token)) else { return };
        if let (Some(buffer), Some(io)) = (token.take_payload(), state.target.ios.get_mut(&self.index)) {
            io.put_payload(buffer);
        }
    }

    /// A queue pair is disconnected when the program is told.
    fn conclude_disconnect(&self, task: usize) {
        // SAFETY: as in `Callbacks::call`.
        let Some(task) = (unsafe { (task as *const Task).as_ref() }) else { return };
        if task.kind != IoTask::Disconnect as u32 || fault::will_fail(task) {
            return;
        }
        if let Some(qp) = self.core.hold().qps.get_mut(&Handle::from_bits(task.fields.first.get())) {
            qp.state = QpState::Disconnected;
        }
    }

    fn callbacks(&self, task: usize) -> Option<Callbacks> {
        // SAFETY: as in `Callbacks::call`.
        let task = unsafe { (task as *const Task).as_ref() }?;
        match task.kind {
            kind if kind == IoTask::Disconnect as u32 => self.disconnect.get(),
            kind if kind == IoTask::Read as u32 => self.reads.get(),
            _ => self.answers.get(),
        }
    }
}

/// INVALID_VALUE unless the command can be answered, or its data fetched.
fn check_token(qp: &Qp, kind: IoTask, token: Handle) -> Res {
    let known = qp.tokens.get(&token).filter(|token| match kind {
        IoTask::Read => token.is_readable(),
        IoTask::WriteSend => token.is_answerable(true),
        _ => token.is_answerable(false),
    });
    if known.is_none() {
        log::error!(
            "non_offload_user_data names no command of this queue pair to which that can be done: it is unknown, \
             answered already, or has no such data"
        );
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

impl Context for StaIo {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_sta_io"
    }

    fn kind_name(&self, kind: u32) -> &'static str {
        KINDS.iter().find(|(known, ..)| *known as u32 == kind).map_or("task", |(_, name, _)| name)
    }

    fn start(&self) -> Res {
        let set = self.disconnect.get().is_some()
            && self.answers.get().is_some()
            && self.reads.get().is_some()
            && self.commands.get().is_some();
        let allocator = {
            let state = self.core.hold();
            state.target.require_running()?;
            state.target.allocator
        };
        let (true, Some(allocator)) = (set, allocator) else {
            log::error!(
                "doca_sta_io cannot start without the callbacks of disconnect, rdma_read, rdma_write_send and \
                 commands that are not offloaded"
            );
            return Err(Code::INITIALIZATION);
        };
        let io = Io::set_up(&self.core, allocator)?;
        self.allocator.set(Some(allocator));
        let owner: Weak<dyn Context> = self.this.clone();
        let _ = self.pools.set(KINDS.map(|(kind, _, count)| Pool::new(&owner, kind as u32, count)));
        self.core.hold().target.ios.insert(self.index, io);
        self.core.kick();
        self.started_before.set(profile::get().sta_start_at_once);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.started_before.replace(true)
    }

    fn may_stop(&self) -> Res {
        let left = self.core.hold().qps.values().filter(|qp| qp.io == self.index).count();
        if left > 0 {
            log::error!("doca_sta_io still has {left} queue pairs");
            return Err(Code::IN_USE);
        }
        Ok(())
    }

    fn stop(&self) {
        let io = self.core.hold().target.ios.remove(&self.index);
        if let Some(io) = io {
            io.view.set_open(false);
            *self.stopping.borrow_mut() = io.buffers();
        }
    }

    fn stopped(&self) {
        let Some(allocator) = self.allocator.take() else { return };
        for buffer in self.stopping.take() {
            allocator.release(buffer);
        }
        self.thread.store(0, Relaxed);
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn submit(&self, task: &Task, _flush: bool) -> Res {
        self.require_mine()?;
        let count = self.submits.fetch_add(1, Relaxed);
        if profile::get().sta_again_contention && count % 3 == 2 {
            return Err(Code::AGAIN);
        }
        let kind = KINDS.iter().find(|(kind, ..)| *kind as u32 == task.kind).ok_or(Code::UNEXPECTED)?.0;
        let token = Handle::from_bits(task.fields.second.get());
        let address = std::ptr::from_ref(task).expose_provenance();
        let mut held = self.core.hold();
        let state = &mut *held;
        let qp = self.own(&mut state.qps, Handle::from_bits(task.fields.first.get()))?;
        if kind == IoTask::Disconnect {
            if !matches!(qp.state, QpState::Accepted | QpState::Connected | QpState::Failed) {
                log::error!("a queue pair that is {:?} cannot be disconnected", qp.state);
                return Err(Code::BAD_STATE);
            }
            if fault::will_fail(task) {
                // It stays as it is, and can be asked again.
                qp.tell(
                    &mut state.target,
                    IoEvent::Done { task: address, code: Code::IO_FAILED, over: None },
                );
                return Ok(());
            }
            qp.begin_disconnect(address);
        } else {
            if !matches!(qp.state, QpState::Connected | QpState::Failed) {
                return Err(Code::BAD_STATE);
            }
            if profile::get().sta_again_budget && qp.jobs.len() >= BUDGET {
                return Err(Code::AGAIN);
            }
            check_token(qp, kind, token)?;
            let Some(known) = qp.tokens.get_mut(&token) else { return Err(Code::INVALID_VALUE) };
            let job = match kind {
                _ if fault::will_fail(task) => {
                    known.begin_answer();
                    Job::Fail { task: address, token }
                }
                IoTask::Read => {
                    known.begin_read();
                    Job::Read { task: address, token }
                }
                _ => {
                    known.begin_answer();
                    let data = kind == IoTask::WriteSend;
                    Job::Respond { task: address, token, completion: task.fields.bytes.get(), data }
                }
            };
            qp.jobs.push_back(job);
        }
        drop(held);
        self.core.kick();
        Ok(())
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        if self.thread.load(Relaxed) == 0 {
            self.thread.store(this_thread(), Relaxed);
        }
        loop {
            let event = {
                let mut state = self.core.hold();
                state.target.ios.get_mut(&self.index).and_then(Io::next_event)
            };
            match event {
                None => return false,
                Some(IoEvent::Command { qp, token }) => {
                    if self.hand_over(qp, token) {
                        return true;
                    }
                }
                Some(IoEvent::Done { task, code, over }) => {
                    self.conclude_disconnect(task);
                    if let Some(callbacks) = self.callbacks(task) {
                        callbacks.call(&self.ctx, task, code);
                    }
                    if let Some((qp, token)) = over {
                        self.end_token(qp, token);
                    }
                    return true;
                }
                Some(IoEvent::TransportError { qp, operation, syndrome }) => {
                    let Some((callback, data)) = self.errors.get() else { continue };
                    let event =
                        TransportError { tag: Tag::live::<TransportError>(), qp, operation, syndrome };
                    // SAFETY: the program's own function; the event lives during the call.
                    unsafe { callback(&event, data) };
                    event.tag.kill();
                    return true;
                }
            }
        }
    }

    fn has_work(&self) -> bool {
        self.core.hold().target.ios.get(&self.index).is_some_and(Io::has_event)
    }

    fn arm(&self, wake_fd: i32) {
        if let Some(io) = self.core.hold().target.ios.get_mut(&self.index) {
            io.wake = Some(wake_fd);
        }
    }

    fn disarm(&self) {
        if let Some(io) = self.core.hold().target.ios.get_mut(&self.index) {
            io.wake = None;
        }
    }

    fn deadline(&self) -> Option<u64> {
        fault::next_due()
    }

    fn pidfds(&self, _each: &mut dyn FnMut(i32)) {}
}

/// Tasks that a unit takes from one queue pair before it has looked at them, in the profile that counts them.
const BUDGET: usize = 4;
