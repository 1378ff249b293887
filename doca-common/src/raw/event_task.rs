//! `doca_sync_event_task_*`: the tasks of an event that is a context

use crate::call;
use crate::engine::Core;
use crate::error::{Code, Result};
use crate::event::{
    AddTask, Flight, GetTask, Instance, Place, Run, SetTask, WaitEqualTask, WaitNotEqualTask,
};
use crate::raw::context::null;
use crate::raw::event::Event;
use crate::raw::task::{self, Task};
use crate::raw::{as_number, current, number};
use doca_sys::{
    doca_data, doca_sync_event_task_get, doca_sync_event_task_notify_add, doca_sync_event_task_notify_set,
    doca_sync_event_task_wait_eq, doca_sync_event_task_wait_neq, doca_task,
};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// What each kind of task does in C.
pub trait Kind {
    /// What a task is told.
    type Told;

    /// How many tasks there are to be, and this crate's callbacks.
    fn configure(event: &Event, num_tasks: u32) -> Result<()>;

    /// Hands the task of a place to DOCA. The event is a context that runs.
    fn submit(event: &Event, place: &Place<'_>, told: Self::Told) -> Result<()>;
}

/// Kinds with what they are told, their C type and callbacks, how they are configured and made, and how one that was made
/// before is told the same. `$cell` is where the task puts the value.
macro_rules! kinds {
    ($($kind:ident: |$told:pat_param, $cell:ident| $told_type:ty, $task:ident, $done:ident, $failed:ident, $as_task:ident;
       $set_conf:ident; $alloc_init:ident($($first:expr),*); $($set:ident($field:expr)),*;)*) => {
        $(
            impl Kind for $kind {
                type Told = $told_type;

                fn configure(event: &Event, num_tasks: u32) -> Result<()> {
                    // SAFETY: alive, and the callbacks have the type that DOCA wants.
                    unsafe { call!($set_conf(event.as_ptr(), Some($done), Some($failed), num_tasks)) }
                }

                fn submit(event: &Event, place: &Place<'_>, $told: $told_type) -> Result<()> {
                    #[allow(unused_variables, reason = "not every kind of task gives a value")]
                    let $cell = place.side().value.as_ptr();
                    // SAFETY: the place is vacant, so its task is not in flight; the context runs, so task and event are
                    // alive; the cell is part of the slab, which is alive until the context is idle, so after the
                    // callback, and is only reached by way of its `Cell`; the out-parameter is a local.
                    unsafe {
                        if let Some(old) = place.side().task.get() {
                            let own: *mut $task = old.own.as_ptr().cast();
                            $(doca_sys::$set(own, $field);)*
                            return task::submit(old);
                        }
                        let mut new: *mut $task = ptr::null_mut();
                        call!($alloc_init(event.as_ptr(), $($first,)* number(place.address()), &mut new))?;
                        let common = doca_sys::$as_task(new);
                        task::submit(keep(place, stringify!($alloc_init), new.cast(), common)?)
                    }
                }
            }

            unsafe extern "C" fn $done(_task: *mut $task, address: doca_data, context: doca_data) {
                finish(context, address, Code::SUCCESS);
            }

            #[cold]
            unsafe extern "C" fn $failed(task: *mut $task, address: doca_data, context: doca_data) {
                // SAFETY: DOCA passes a live task, whose callback this is.
                let code = unsafe { task::status(doca_sys::$as_task(task)) };
                finish(context, address, code);
            }
        )*
    };
}

kinds! {
    GetTask: |(), cell| (), doca_sync_event_task_get, got, not_got, doca_sync_event_task_get_as_doca_task;
        doca_sync_event_task_get_set_conf;
        doca_sync_event_task_get_alloc_init(cell);
        doca_sync_event_task_get_set_ret_val_ptr(cell);
    SetTask: |value, cell| u64, doca_sync_event_task_notify_set, set, not_set,
        doca_sync_event_task_notify_set_as_doca_task;
        doca_sync_event_task_notify_set_set_conf;
        doca_sync_event_task_notify_set_alloc_init(value);
        doca_sync_event_task_notify_set_set_set_val(value);
    AddTask: |value, cell| u64, doca_sync_event_task_notify_add, added, not_added,
        doca_sync_event_task_notify_add_as_doca_task;
        doca_sync_event_task_notify_add_set_conf;
        doca_sync_event_task_notify_add_alloc_init(value, cell);
        doca_sync_event_task_notify_add_set_inc_val(value),
        doca_sync_event_task_notify_add_set_fetched_val_ptr(cell);
    WaitEqualTask: |(value, mask), cell| (u64, u64), doca_sync_event_task_wait_eq, equal, never_equal,
        doca_sync_event_task_wait_eq_as_doca_task;
        doca_sync_event_task_wait_eq_set_conf;
        doca_sync_event_task_wait_eq_alloc_init(value, mask);
        doca_sync_event_task_wait_eq_set_wait_val(value),
        doca_sync_event_task_wait_eq_set_mask(mask);
    WaitNotEqualTask: |(value, mask), cell| (u64, u64), doca_sync_event_task_wait_neq, not_equal, always_equal,
        doca_sync_event_task_wait_neq_as_doca_task;
        doca_sync_event_task_wait_neq_set_conf;
        doca_sync_event_task_wait_neq_alloc_init(value, mask);
        doca_sync_event_task_wait_neq_set_wait_val(value),
        doca_sync_event_task_wait_neq_set_mask(mask);
}

/// Keeps the first task of a place.
fn keep(place: &Place<'_>, call: &'static str, own: *mut c_void, common: *mut doca_task) -> Result<Task> {
    let task = NonNull::new(own).zip(NonNull::new(common));
    let task = task.map(|(own, common)| Task { own, common }).ok_or_else(|| null(call))?;
    place.side().task.put(task);
    Ok(task)
}

/// Records how a task ended. Runs in DOCA's callback.
fn finish(context: doca_data, address: doca_data, code: Code) {
    let record = |core: &Core, instance: &Instance| {
        if instance.finish(as_number(address), |flight: &Flight| flight.code.set(code)) {
            core.mark();
        }
    };
    // SAFETY: recording runs no code of users, and leaves the contexts of the engine alone.
    unsafe { current::record(as_number(context), record) };
}

impl Run {
    /// Frees the tasks that are not in flight.
    pub(crate) fn free_idle_tasks(&self) {
        for (flight, _) in self.slab().sides().filter(|(_, flying)| !flying) {
            // SAFETY: the slab knows what is in flight, and the instance calls this only while its context is alive.
            unsafe { flight.task.free() };
        }
    }
}
