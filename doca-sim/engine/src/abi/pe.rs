//! `doca_pe.h`: progress engine, tasks, batches.

use crate::code::{Code, Res};
use crate::ctx::Ctx;
use crate::entry;
use crate::entry::{In, Object, Out, Tag};
use crate::pe::{EventMode, Pe};
use crate::task::Task;
use std::ffi::c_int;
use std::rc::Rc;

/// `struct doca_task_batch`. No library of the simulator allocates one, so no pointer is ever valid.
#[repr(C)]
pub struct Batch {
    tag: Tag,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Batch {
    const TAG: u32 = u32::from_le_bytes(*b"btch");
}

const FLUSH: u32 = 1;
const OPTIMIZE_REPORTS: u32 = 2;

/// The engine as it was handed out: the pointer is that of an `Rc`.
fn shared(pe: &In<Pe>) -> Res<Rc<Pe>> {
    pe.get()?;
    // SAFETY: a live engine, made by `Rc::into_raw` in doca_pe_create; the count is raised for the new owner.
    unsafe {
        Rc::increment_strong_count(pe.raw());
        Ok(Rc::from_raw(pe.raw()))
    }
}

entry! {
    /// An engine without contexts.
    fn doca_pe_create(pe: Out<*const Pe>) {
        pe.check()?;
        pe.put(Rc::into_raw(Rc::new(Pe::new())))
    }

    /// IN_USE while contexts are connected.
    fn doca_pe_destroy(pe: In<Pe>) {
        pe.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_pe_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(pe.raw()) });
        Ok(())
    }

    /// One step; 1 if something happened.
    fn doca_pe_progress(pe: In<Pe>) -> u8 = 0; {
        pe.get().is_ok_and(Pe::progress).into()
    }

    /// The descriptor to sleep on.
    fn doca_pe_get_notification_handle(pe: In<Pe>, handle: Out<c_int>) {
        handle.check()?;
        handle.put(pe.get()?.handle()?)
    }

    /// Arms the descriptor.
    fn doca_pe_request_notification(pe: In<Pe>) {
        pe.get()?.request_notification()
    }

    /// Disarms it. The handle is ignored on Linux.
    fn doca_pe_clear_notification(pe: In<Pe>, handle: c_int) {
        let _ = handle;
        pe.get()?.clear_notification()
    }

    /// Tasks in flight over all contexts.
    fn doca_pe_get_num_inflight_tasks(pe: In<Pe>, count: Out<usize>) {
        count.put(pe.get()?.in_flight())
    }

    /// Connects a context, for good.
    fn doca_pe_connect_ctx(pe: In<Pe>, ctx: In<Ctx>) {
        shared(&pe)?.connect(ctx.get()?)
    }

    /// Which contexts are served while armed.
    fn doca_pe_set_event_mode(pe: In<Pe>, mode: u32) {
        let mode = match mode {
            0 => EventMode::Selective,
            1 => EventMode::All,
            _ => return Err(Code::INVALID_VALUE),
        };
        let pe = pe.get()?;
        if pe.is_dispatching() {
            return Err(Code::INVALID_VALUE);
        }
        pe.set_mode(mode);
        Ok(())
    }

    /// Hands a task over and starts it.
    fn doca_task_submit(task: In<Task>) {
        task.get()?.submit(true)
    }

    /// The same; the simulator always validates.
    fn doca_task_try_submit(task: In<Task>) {
        task.get()?.submit(true)
    }

    /// The same with flags.
    fn doca_task_submit_ex(task: In<Task>, flags: u32) {
        if flags & !(FLUSH | OPTIMIZE_REPORTS) != 0 {
            return Err(Code::INVALID_VALUE);
        }
        task.get()?.submit(flags & FLUSH != 0)
    }

    /// Gives a task back to its pool.
    fn doca_task_free(task: In<Task>) -> () = (); {
        if let Ok(task) = task.get() {
            task.free();
        }
    }

    /// How its last flight ended.
    fn doca_task_get_status(task: In<Task>) {
        match task.get()?.status() {
            Code::SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    /// The program's word.
    fn doca_task_set_user_data(task: In<Task>, data: u64) -> () = (); {
        if let Ok(task) = task.get() {
            task.set_user_data(data);
        }
    }

    /// The program's word.
    fn doca_task_get_user_data(task: In<Task>) -> u64 = 0; {
        task.get().map_or(0, Task::user_data)
    }

    /// The context.
    fn doca_task_get_ctx(task: In<Task>) -> *const Ctx = std::ptr::null(); {
        task.get().and_then(Task::owner).map_or(std::ptr::null(), |owner| std::ptr::from_ref(owner.ctx()))
    }

    /// No library of the simulator allocates batches.
    fn doca_task_batch_submit(batch: In<Batch>) {
        batch.get()?;
        Err(Code::NOT_SUPPORTED)
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_try_submit(batch: In<Batch>) {
        batch.get()?;
        Err(Code::NOT_SUPPORTED)
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_free(batch: In<Batch>) -> () = (); {
        let _ = batch;
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_get_status(batch: In<Batch>) {
        batch.get()?;
        Err(Code::NOT_SUPPORTED)
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_set_user_data(batch: In<Batch>, data: u64) -> () = (); {
        let _ = (batch, data);
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_get_user_data(batch: In<Batch>) -> u64 = 0; {
        let _ = batch;
        0
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_get_ctx(batch: In<Batch>) -> *const Ctx = std::ptr::null(); {
        let _ = batch;
        std::ptr::null()
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_get_ctx_user_data(batch: In<Batch>) -> u64 = 0; {
        let _ = batch;
        0
    }

    /// See `doca_task_batch_submit`.
    fn doca_task_batch_get_tasks_num(batch: In<Batch>) -> u16 = 0; {
        let _ = batch;
        0
    }
}
