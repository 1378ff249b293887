//! `doca_rdma_task_*` that go out on a connection: ten kinds of one shape, from one table.

use crate::instance::Instance;
use crate::raw::connection::Link;
use crate::raw::task::{Kind, finish};
use crate::run::{Arrival, Outcome, Run};
use crate::task::{
    CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, ReadTask, SendImmTask, SendTask,
    WriteImmTask, WriteTask,
};
use doca_common::raw::task::Task;
use doca_common::raw::{number, task};
use doca_common::slot::Token;
use doca_common::{Result, call};
use doca_sys::{doca_buf, doca_data, doca_sync_event_remote_net};
use std::ptr;

/// Configuration, submission and callbacks of each kind. A row has the C type, the functions that configure, take
/// and convert a task and set its connection, then the fields with what sets them, in the order in which taking a
/// task wants them, and at last what a success leaves in the local buffer.
macro_rules! outgoing {
    ($($kind:ident: $task:ident, $set_conf:ident, $allocate:ident, $as_task:ident, $set_connection:ident,
       $submit:ident($($field:ident: $type:ty => $set:ident),*), $($left:ident)+;)*) => {
        $(const _: () = {
            unsafe extern "C" fn done(task: *mut doca_sys::$task, token: doca_data, context: doca_data) {
                finish(context, token, outgoing!(@outcome task $($left)+));
            }

            unsafe extern "C" fn failed(task: *mut doca_sys::$task, token: doca_data, context: doca_data) {
                // SAFETY: DOCA passes a live task, whose callback this is.
                let code = unsafe { task::status(doca_sys::$as_task(task)) };
                finish(context, token, Outcome { arrival: outgoing!(@lost $($left)+), ..Outcome::failed(code) });
            }

            impl Kind for $kind {
                fn configure(instance: &Instance, num_tasks: u32) -> Result<()> {
                    let rdma = instance.handle().as_ptr();
                    // SAFETY: alive, and the callbacks have the type that DOCA wants.
                    unsafe { call!($set_conf(rdma, Some(done), Some(failed), num_tasks)) }
                }
            }

            impl Run {
                /// Submits a task whose local buffer is in the slab, and whose target is kept beside it.
                #[inline]
                pub(crate) fn $submit(&self, token: Token, link: Link, $($field: $type),*) -> Result<()> {
                    /// The first task of a slot: from DOCA's pool.
                    #[cold]
                    fn take(run: &Run, token: Token, link: Link, $($field: $type),*) -> Result<Task> {
                        let (rdma, data) = (run.instance().handle().as_ptr(), number(token.to_bits()));
                        let mut task = ptr::null_mut();
                        // SAFETY: the context runs, the table has valid connections only, what the fields point to
                        // stays until the callback, and the out-parameter is a local.
                        unsafe {
                            call!($allocate(rdma, link.as_ptr(), $($field,)* data, &mut task))?;
                            run.keep(token, stringify!($allocate), task.cast(), doca_sys::$as_task(task))
                        }
                    }
                    // SAFETY: the slot was free, so its task is not in flight; the context runs, so task and handle
                    // are alive; the table has valid connections only; what the fields point to stays until the
                    // callback.
                    unsafe {
                        let task = match self.tasks().get(token) {
                            Some(task) => {
                                let own = task.own.as_ptr().cast();
                                doca_sys::$set_connection(own, link.as_ptr());
                                $(doca_sys::$set(own, $field);)*
                                task
                            }
                            None => take(self, token, link, $($field),*)?,
                        };
                        task::submit(task)
                    }
                }
            }
        };)*
    };
    (@outcome $task:ident unchanged) => {{
        let _ = $task;
        Outcome::default()
    }};
    (@outcome $task:ident word) => {{
        let _ = $task;
        Outcome { arrival: Arrival::Word, ..Outcome::default() }
    }};
    (@outcome $task:ident filled $len:ident) => {
        // SAFETY: DOCA passes a live task that succeeded, so its results are there.
        Outcome { arrival: Arrival::Message, len: unsafe { doca_sys::$len($task) }, ..Outcome::default() }
    };
    (@lost unchanged) => { Arrival::None };
    (@lost $($left:ident)+) => { Arrival::Unknown };
}

outgoing! {
    SendTask: doca_rdma_task_send,
        doca_rdma_task_send_set_conf, doca_rdma_task_send_allocate_init,
        doca_rdma_task_send_as_task, doca_rdma_task_send_set_rdma_connection,
        submit_send(source: *mut doca_buf => doca_rdma_task_send_set_src_buf),
        unchanged;
    SendImmTask: doca_rdma_task_send_imm,
        doca_rdma_task_send_imm_set_conf, doca_rdma_task_send_imm_allocate_init,
        doca_rdma_task_send_imm_as_task, doca_rdma_task_send_imm_set_rdma_connection,
        submit_send_imm(
            source: *mut doca_buf => doca_rdma_task_send_imm_set_src_buf,
            immediate: u32 => doca_rdma_task_send_imm_set_immediate_data
        ),
        unchanged;
    ReadTask: doca_rdma_task_read,
        doca_rdma_task_read_set_conf, doca_rdma_task_read_allocate_init,
        doca_rdma_task_read_as_task, doca_rdma_task_read_set_rdma_connection,
        submit_read(
            source: *mut doca_buf => doca_rdma_task_read_set_src_buf,
            destination: *mut doca_buf => doca_rdma_task_read_set_dst_buf
        ),
        filled doca_rdma_task_read_get_result_len;
    WriteTask: doca_rdma_task_write,
        doca_rdma_task_write_set_conf, doca_rdma_task_write_allocate_init,
        doca_rdma_task_write_as_task, doca_rdma_task_write_set_rdma_connection,
        submit_write(
            source: *mut doca_buf => doca_rdma_task_write_set_src_buf,
            destination: *mut doca_buf => doca_rdma_task_write_set_dst_buf
        ),
        unchanged;
    WriteImmTask: doca_rdma_task_write_imm,
        doca_rdma_task_write_imm_set_conf, doca_rdma_task_write_imm_allocate_init,
        doca_rdma_task_write_imm_as_task, doca_rdma_task_write_imm_set_rdma_connection,
        submit_write_imm(
            source: *mut doca_buf => doca_rdma_task_write_imm_set_src_buf,
            destination: *mut doca_buf => doca_rdma_task_write_imm_set_dst_buf,
            immediate: u32 => doca_rdma_task_write_imm_set_immediate_data
        ),
        unchanged;
    CompareSwapTask: doca_rdma_task_atomic_cmp_swp,
        doca_rdma_task_atomic_cmp_swp_set_conf, doca_rdma_task_atomic_cmp_swp_allocate_init,
        doca_rdma_task_atomic_cmp_swp_as_task, doca_rdma_task_atomic_cmp_swp_set_rdma_connection,
        submit_compare_swap(
            cell: *mut doca_buf => doca_rdma_task_atomic_cmp_swp_set_dst_buf,
            result: *mut doca_buf => doca_rdma_task_atomic_cmp_swp_set_result_buf,
            compare: u64 => doca_rdma_task_atomic_cmp_swp_set_cmp_data,
            swap: u64 => doca_rdma_task_atomic_cmp_swp_set_swap_data
        ),
        word;
    FetchAddTask: doca_rdma_task_atomic_fetch_add,
        doca_rdma_task_atomic_fetch_add_set_conf, doca_rdma_task_atomic_fetch_add_allocate_init,
        doca_rdma_task_atomic_fetch_add_as_task, doca_rdma_task_atomic_fetch_add_set_rdma_connection,
        submit_fetch_add(
            cell: *mut doca_buf => doca_rdma_task_atomic_fetch_add_set_dst_buf,
            result: *mut doca_buf => doca_rdma_task_atomic_fetch_add_set_result_buf,
            add: u64 => doca_rdma_task_atomic_fetch_add_set_add_data
        ),
        word;
    EventGetTask: doca_rdma_task_remote_net_sync_event_get,
        doca_rdma_task_remote_net_sync_event_get_set_conf,
        doca_rdma_task_remote_net_sync_event_get_allocate_init,
        doca_rdma_task_remote_net_sync_event_get_as_task,
        doca_rdma_task_remote_net_sync_event_get_set_rdma_connection,
        submit_event_get(
            event: *mut doca_sync_event_remote_net => doca_rdma_task_remote_net_sync_event_get_set_sync_event,
            destination: *mut doca_buf => doca_rdma_task_remote_net_sync_event_get_set_dst_buf
        ),
        filled doca_rdma_task_remote_net_sync_event_get_get_result_len;
    EventSetTask: doca_rdma_task_remote_net_sync_event_notify_set,
        doca_rdma_task_remote_net_sync_event_notify_set_set_conf,
        doca_rdma_task_remote_net_sync_event_notify_set_allocate_init,
        doca_rdma_task_remote_net_sync_event_notify_set_as_task,
        doca_rdma_task_remote_net_sync_event_notify_set_set_rdma_connection,
        submit_event_set(
            event: *mut doca_sync_event_remote_net =>
                doca_rdma_task_remote_net_sync_event_notify_set_set_sync_event,
            source: *mut doca_buf => doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf
        ),
        unchanged;
    EventAddTask: doca_rdma_task_remote_net_sync_event_notify_add,
        doca_rdma_task_remote_net_sync_event_notify_add_set_conf,
        doca_rdma_task_remote_net_sync_event_notify_add_allocate_init,
        doca_rdma_task_remote_net_sync_event_notify_add_as_task,
        doca_rdma_task_remote_net_sync_event_notify_add_set_rdma_connection,
        submit_event_add(
            event: *mut doca_sync_event_remote_net =>
                doca_rdma_task_remote_net_sync_event_notify_add_set_sync_event,
            result: *mut doca_buf => doca_rdma_task_remote_net_sync_event_notify_add_set_result_buf,
            add: u64 => doca_rdma_task_remote_net_sync_event_notify_add_set_add_data
        ),
        word;
}
