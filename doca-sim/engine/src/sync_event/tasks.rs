//! Asynchronous mode: a sync event as a context, and its five tasks.

use super::{SyncEvent, Value};
use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx, CtxState};
use crate::fabric::clock;
use crate::fault;
use crate::sleeper;
use crate::task::{Pool, Task, TaskCallback};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// How often the engine looks at a value that a sleeping program waits for.
const LOOK_EVERY: u64 = clock::millis(1);

/// Task kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads the value.
    Get = 0,
    /// Sets it.
    NotifySet = 1,
    /// Adds to it.
    NotifyAdd = 2,
    /// Waits until the masked value is equal.
    WaitEq = 3,
    /// Waits until it is not.
    WaitNeq = 4,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 5;

    fn of(number: u32) -> Kind {
        match number {
            0 => Kind::Get,
            1 => Kind::NotifySet,
            2 => Kind::NotifyAdd,
            3 => Kind::WaitEq,
            _ => Kind::WaitNeq,
        }
    }

    /// Whether tasks of this kind may have to wait.
    fn waits(self) -> bool {
        matches!(self, Kind::WaitEq | Kind::WaitNeq)
    }
}

/// What `doca_sync_event_task_*_set_conf` sets.
#[derive(Clone, Copy)]
pub struct Conf {
    /// Called when a task has ended well.
    pub success: TaskCallback,
    /// Called when it has not.
    pub failure: TaskCallback,
    /// Tasks in the pool.
    pub count: u32,
}

/// What exists between start and stop of the context.
pub struct Queue {
    pools: [Option<Rc<Pool>>; Kind::COUNT],
    waiting: RefCell<VecDeque<*const Task>>,
    done: RefCell<VecDeque<(*const Task, Code)>>,
    wake_fd: Cell<Option<i32>>,
}

impl Queue {
    /// Whether a completion can be delivered.
    fn has_done(&self) -> bool {
        self.done.borrow().front().is_some_and(|(task, _)| !fault::is_held(*task))
    }
}

/// The masks that wait tasks take: zero, or 1, 2, 4 or 8 consecutive bytes of ones.
pub fn is_task_mask(mask: u64) -> bool {
    [1u32, 2, 4, 8].iter().any(|bytes| {
        let ones = u64::MAX >> (64 - 8 * bytes);
        (0..=8 - bytes).any(|shift| ones << (8 * shift) == mask)
    }) || mask == 0
}

impl SyncEvent {
    /// `doca_sync_event_task_*_set_conf`: NOT_PERMITTED unless IDLE.
    pub fn set_conf(&self, kind: Kind, conf: Conf) -> Res {
        self.ctx.require_idle().map_err(|_| Code::NOT_PERMITTED)?;
        if conf.count == 0 || conf.count > crate::task::MAX_TASKS {
            return Err(Code::INVALID_VALUE);
        }
        self.confs[kind as usize].set(Some(conf));
        Ok(())
    }

    /// A task with empty fields. NO_MEMORY when the pool is empty or the kind was not configured.
    pub fn take_task(&self, kind: Kind, user_data: u64) -> Res<*const Task> {
        self.ctx.require_running()?;
        let queue = self.queue()?;
        let pool = queue.pools[kind as usize].as_ref().ok_or(Code::NO_MEMORY)?;
        pool.take(&self.ctx, user_data).map(std::ptr::from_ref)
    }

    fn queue(&self) -> Res<Rc<Queue>> {
        self.queue.borrow().clone().ok_or(Code::BAD_STATE)
    }
}

/// Executes a task if it need not wait; gives its result, or `None`.
fn execute(value: &Value, task: &Task) -> Option<Code> {
    let fields = &task.fields;
    let (first, mask) = (fields.first.get(), fields.second.get());
    let kind = Kind::of(task.kind);
    let result = value.apply(|before| match kind {
        Kind::NotifySet => Some(first),
        Kind::NotifyAdd => Some(before.wrapping_add(first)),
        Kind::Get | Kind::WaitEq | Kind::WaitNeq => None,
    });
    let before = match result {
        Ok(before) => before,
        Err(code) => return Some(code),
    };
    match kind {
        Kind::Get | Kind::NotifyAdd => {
            let cell = fields.pointer.get() as *mut u64;
            if !cell.is_null() {
                // SAFETY: the program keeps the place for the result valid until the task is done.
                unsafe { cell.write_volatile(before) };
            }
            Some(Code::SUCCESS)
        }
        Kind::NotifySet => Some(Code::SUCCESS),
        Kind::WaitEq => (before & mask == first).then_some(Code::SUCCESS),
        Kind::WaitNeq => (before & mask != first).then_some(Code::SUCCESS),
    }
}

impl Context for SyncEvent {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_sync_event"
    }

    fn kind_name(&self, kind: u32) -> &'static str {
        match Kind::of(kind) {
            Kind::Get => "sync_event_get",
            Kind::NotifySet => "sync_event_notify_set",
            Kind::NotifyAdd => "sync_event_notify_add",
            Kind::WaitEq => "sync_event_wait_eq",
            Kind::WaitNeq => "sync_event_wait_neq",
        }
    }

    fn start(&self) -> Res {
        self.open()?;
        let owner: Weak<dyn Context> = self.this.clone();
        let pools = std::array::from_fn(|kind| {
            self.confs[kind].get().map(|conf| Pool::new(&owner, kind as u32, conf.count))
        });
        *self.queue.borrow_mut() = Some(Rc::new(Queue {
            pools,
            waiting: RefCell::default(),
            done: RefCell::default(),
            wake_fd: Cell::new(None),
        }));
        Ok(())
    }

    fn stop(&self) {
        let Ok(queue) = self.queue() else { return };
        let flushed = queue.waiting.take();
        queue.done.borrow_mut().extend(flushed.into_iter().map(|task| (task, Code::SHUTDOWN)));
    }

    fn stopped(&self) {
        self.close();
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn submit(&self, task: &Task, _flush: bool) -> Res {
        let kind = Kind::of(task.kind);
        if kind.waits() && !is_task_mask(task.fields.second.get()) {
            return Err(Code::INVALID_VALUE);
        }
        if kind == Kind::Get && task.fields.pointer.get() == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let queue = self.queue()?;
        let result = match fault::failure(task) {
            Some(code) => Some(code),
            None => execute(&*self.value()?, task),
        };
        match result {
            Some(code) => queue.done.borrow_mut().push_back((task, code)),
            None => queue.waiting.borrow_mut().push_back(task),
        }
        if let Some(fd) = queue.wake_fd.get() {
            sleeper::wake(fd);
        }
        Ok(())
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        let Ok(queue) = self.queue() else { return false };
        if self.ctx.state() == CtxState::Running
            && let Ok(value) = self.value()
        {
            queue.waiting.borrow_mut().retain(|task| {
                // SAFETY: submitted and not yet done: its pool, which the queue holds, keeps it.
                match execute(&value, unsafe { &**task }) {
                    Some(code) => {
                        queue.done.borrow_mut().push_back((*task, code));
                        false
                    }
                    None => true,
                }
            });
        }
        if !queue.has_done() {
            return false;
        }
        let Some((task, code)) = queue.done.borrow_mut().pop_front() else { return false };
        // SAFETY: as above.
        let task = unsafe { &*task };
        let Some(conf) = self.confs[task.kind as usize].get() else { return true };
        let callback = if code == Code::SUCCESS { conf.success } else { conf.failure };
        task.complete(&self.ctx, code, callback);
        true
    }

    fn has_work(&self) -> bool {
        self.queue().is_ok_and(|queue| queue.has_done())
    }

    fn arm(&self, wake_fd: i32) {
        if let Ok(queue) = self.queue() {
            queue.wake_fd.set(Some(wake_fd));
        }
    }

    fn disarm(&self) {
        if let Ok(queue) = self.queue() {
            queue.wake_fd.set(None);
        }
    }

    fn deadline(&self) -> Option<u64> {
        let waiting = self.queue().is_ok_and(|queue| !queue.waiting.borrow().is_empty());
        let look = waiting.then(|| clock::now() + LOOK_EVERY);
        look.into_iter().chain(fault::next_due()).min()
    }

    fn pidfds(&self, _each: &mut dyn FnMut(i32)) {}
}

#[cfg(test)]
mod tests {
    use super::is_task_mask;

    #[test]
    fn wait_tasks_take_runs_of_whole_bytes() {
        for mask in [0, 0xff, 0xff00, 0xffff, 0xffff_0000, u64::MAX, 0xffff_ffff, 0xff << 56, 0xff_ff00] {
            assert!(is_task_mask(mask), "{mask:#x}");
        }
        for mask in [1, 0xff_ffff, 0xf0, 0xff00ff, 0x1_ff] {
            assert!(!is_task_mask(mask), "{mask:#x}");
        }
    }
}
