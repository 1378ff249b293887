//! Tasks: what `struct doca_task *` and the typed task pointers of all libraries point to.
//!
//! One type serves all kinds, so a typed pointer and its `as_task` are the same pointer. Tasks live in pools of their
//! context; a freed one keeps its fields until it is allocated again, because programs read them in the callback that
//! freed it.

use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx, CtxState};
use crate::entry::{Object, Tag};
use crate::fault;
use crate::log;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Most tasks of one kind of one context. (Proposed.)
pub const MAX_TASKS: u32 = 65536;

/// Whose a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// In its pool.
    Free,
    /// The program's.
    Owned,
    /// The library's, until its callback.
    InFlight,
}

/// `void (*)(struct doca_*_task *, union doca_data task_user_data, union doca_data ctx_user_data)`
pub type TaskCallback = unsafe extern "C" fn(*const Task, u64, u64);

/// Parameters and results. What a kind does not use stays zero.
#[derive(Default)]
pub struct Fields {
    /// Connection of send-side tasks: a `doca_rdma_connection`.
    pub connection: Cell<usize>,
    /// First buffer: source, or remote target of atomics.
    pub src: Cell<usize>,
    /// Second buffer: destination or result.
    pub dst: Cell<usize>,
    /// A sync event, or the place for a value.
    pub pointer: Cell<usize>,
    /// Immediate data to send.
    pub immediate: Cell<u32>,
    /// Compare or add.
    pub first: Cell<u64>,
    /// Swap.
    pub second: Cell<u64>,
    /// What to send, where it is as short as this.
    pub bytes: Cell<[u8; 16]>,
    /// Bytes moved.
    pub result_len: Cell<u64>,
    /// `doca_rdma_opcode` of a receive.
    pub result_opcode: Cell<u32>,
    /// Immediate data received.
    pub result_immediate: Cell<u32>,
    /// Connection on which a receive came.
    pub result_connection: Cell<usize>,
}

/// A task.
#[repr(C)]
pub struct Task {
    tag: Tag,
    /// Kind within its library.
    pub kind: u32,
    slot: u32,
    state: Cell<TaskState>,
    /// Freed in flight: it goes when the flight ends.
    doomed: Cell<bool>,
    status: Cell<Code>,
    user_data: Cell<u64>,
    owner: Weak<dyn Context>,
    pool: Weak<Pool>,
    /// Parameters and results.
    pub fields: Fields,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Task {
    const TAG: u32 = u32::from_le_bytes(*b"task");
}

impl Task {
    /// The context, or UNEXPECTED when it has been destroyed.
    pub fn owner(&self) -> Res<Rc<dyn Context>> {
        self.owner.upgrade().ok_or(Code::UNEXPECTED)
    }

    /// Position in its pool.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// How its last flight ended.
    pub fn status(&self) -> Code {
        self.status.get()
    }

    /// The program's word.
    pub fn user_data(&self) -> u64 {
        self.user_data.get()
    }

    /// Sets it.
    pub fn set_user_data(&self, data: u64) {
        self.user_data.set(data);
    }

    /// A buffer field. The program keeps buffers valid while tasks name them.
    pub fn buffer(&self, field: &Cell<usize>) -> Option<&Buf> {
        // SAFETY: set from a `struct doca_buf *` that the program promised to keep valid until the task is done.
        unsafe { (field.get() as *const Buf).as_ref() }
    }

    fn each_buffer(&self, act: impl Fn(&Buf)) {
        for field in [&self.fields.src, &self.fields.dst] {
            if let Some(buf) = self.buffer(field) {
                act(buf);
            }
        }
    }

    /// Whether a setter may change the fields. Those of a task in flight are the library's.
    pub fn is_changeable(&self) -> bool {
        let changeable = self.state.get() != TaskState::InFlight;
        if !changeable {
            log::error!("a task in flight cannot be changed");
        }
        changeable
    }

    /// `doca_task_submit` and its relatives.
    pub fn submit(&self, flush: bool) -> Res {
        match self.state.get() {
            TaskState::Owned => {}
            TaskState::InFlight => {
                log::error!("a task was submitted that is still in flight");
                return Err(Code::BAD_STATE);
            }
            TaskState::Free => {
                log::error!("a task was submitted after it had been freed");
                return Err(Code::INVALID_VALUE);
            }
        }
        let owner = self.owner()?;
        if owner.ctx().state() != CtxState::Running {
            return Err(Code::BAD_STATE);
        }
        if fault::armed() {
            fault::submit(self, owner.kind_name(self.kind))?;
        }
        // In flight before it is handed over: it may be executed within the call.
        self.state.set(TaskState::InFlight);
        let yields = owner.frees_in_flight();
        self.each_buffer(|buf| buf.enter_flight(yields));
        owner.ctx().count_in_flight(1);
        let result = owner.submit(self, flush);
        if let Err(code) = result {
            self.each_buffer(Buf::leave_flight);
            self.state.set(TaskState::Owned);
            owner.ctx().count_in_flight(-1);
            fault::forget(self);
            log::trace!("submit of task {self:p}: {code:?}");
        }
        result
    }

    /// Gives the task back to the program and runs its callback. The context may be gone afterwards.
    pub fn complete(&self, ctx: &Ctx, status: Code, callback: TaskCallback) {
        // SAFETY: the program's own function, with what its type promises.
        self.give_back(ctx, status, |task| unsafe { callback(task, task.user_data.get(), ctx.user_data()) });
    }

    /// The same for callbacks of another type.
    pub fn give_back(&self, ctx: &Ctx, status: Code, call: impl FnOnce(&Task)) {
        self.each_buffer(Buf::leave_flight);
        self.status.set(status);
        self.state.set(TaskState::Owned);
        ctx.count_in_flight(-1);
        fault::forget(self);
        log::trace!("completion of task {self:p}: {status:?}");
        // Only contexts that outlive the call have such tasks.
        let doomed = self.doomed.replace(false);
        call(self);
        if doomed && self.state.get() == TaskState::Owned {
            self.free();
        }
    }

    /// `doca_task_free`
    pub fn free(&self) {
        match self.state.get() {
            TaskState::Owned => {}
            TaskState::InFlight if self.owner().is_ok_and(|owner| owner.frees_in_flight()) => {
                self.doomed.set(true);
                return;
            }
            TaskState::InFlight => {
                log::error!("a task was freed that is still in flight; it stays where it is");
                return;
            }
            TaskState::Free => {
                log::error!("a task was freed twice");
                return;
            }
        }
        self.state.set(TaskState::Free);
        if let Some(pool) = self.pool.upgrade() {
            pool.free.borrow_mut().push(self.slot);
        }
        if let Ok(owner) = self.owner() {
            owner.ctx().count_allocated(-1);
        }
    }
}

/// The tasks of one kind of one context.
pub struct Pool {
    tasks: Box<[Task]>,
    free: RefCell<Vec<u32>>,
}

impl Pool {
    /// `count` free tasks.
    pub fn new(owner: &Weak<dyn Context>, kind: u32, count: u32) -> Rc<Pool> {
        let count = owner.upgrade().map_or(count, |owner| fault::pool(owner.kind_name(kind), count));
        Rc::new_cyclic(|pool| Pool {
            tasks: (0..count)
                .map(|slot| Task {
                    tag: Tag::live::<Task>(),
                    kind,
                    slot,
                    state: Cell::new(TaskState::Free),
                    doomed: Cell::new(false),
                    status: Cell::new(Code::SUCCESS),
                    user_data: Cell::new(0),
                    owner: owner.clone(),
                    pool: pool.clone(),
                    fields: Fields::default(),
                })
                .collect(),
            // The last in the list is taken first: slot 0.
            free: RefCell::new((0..count).rev().collect()),
        })
    }

    /// Takes a task, its fields zeroed. NO_MEMORY when all are taken.
    pub fn take(&self, ctx: &Ctx, user_data: u64) -> Res<&Task> {
        let slot = self.free.borrow_mut().pop().ok_or(Code::NO_MEMORY)?;
        let task = &self.tasks[slot as usize];
        let fields = &task.fields;
        for field in
            [&fields.connection, &fields.src, &fields.dst, &fields.pointer, &fields.result_connection]
        {
            field.set(0);
        }
        for field in [&fields.first, &fields.second, &fields.result_len] {
            field.set(0);
        }
        for field in [&fields.immediate, &fields.result_opcode, &fields.result_immediate] {
            field.set(0);
        }
        fields.bytes.set([0; 16]);
        task.user_data.set(user_data);
        task.status.set(Code::SUCCESS);
        task.state.set(TaskState::Owned);
        ctx.count_allocated(1);
        Ok(task)
    }
}
