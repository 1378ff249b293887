//! `doca_rdma_task_*` that go out on a connection: ten kinds of one shape, from one table.

use crate::connection::Open;
use crate::instance::Instance;
use crate::raw::task::{Armed, Kind, Told, fail, finish, place_of};
use crate::run::{Flight, Place, Run};
use crate::task::{
    CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, ReadTask, SendImmTask, SendTask,
    WriteImmTask, WriteTask,
};
use doca_common::buffer::{Named, NamedBuf};
use doca_common::raw::task::{self, Task};
use doca_common::{Result, call};
use doca_sys::{doca_data, doca_sync_event_remote_net};
use std::ptr;

/// Configuration, submission and callbacks of each kind. A row has the C type, the functions that configure, take
/// and convert a task and set its connection, then the fields with what sets them, in the order in which taking a
/// task wants them, and at last what tells how much was read.
macro_rules! outgoing {
    ($($kind:ident: $task:ident, $set_conf:ident, $allocate:ident, $as_task:ident, $set_connection:ident,
       $set_up:ident($($at:literal $field:ident: $type:ty => $set:ident),*)$(, $len:ident)?;)*) => {
        $(const _: () = {
            unsafe extern "C" fn done(task: *mut doca_sys::$task, place: doca_data, context: doca_data) {
                // SAFETY: a task of ours, in its callback.
                let at = unsafe { place_of(place) };
                if at.land() {
                    note(at.side(), task);
                } else {
                    // SAFETY: the same.
                    unsafe { heeded(task, place, context) };
                }
            }

            /// A function of its own, which C calls as it calls the one above: that one needs no room of its own then.
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn heeded(task: *mut doca_sys::$task, place: doca_data, context: doca_data) {
                // SAFETY: a task of ours, in its callback.
                unsafe { finish(context, place, |flight| note(flight, task)) };
            }

            /// Notes what the task brought, which succeeded.
            #[inline(always)]
            fn note(flight: &Flight, task: *mut doca_sys::$task) {
                outgoing!(@result flight, task $($len)?);
            }

            unsafe extern "C" fn failed(task: *mut doca_sys::$task, place: doca_data, context: doca_data) {
                // SAFETY: DOCA passes a live task of ours, whose callback this is.
                unsafe { fail(context, place, task::status(doca_sys::$as_task(task))) };
            }

            impl Kind for $kind {
                fn configure(instance: &Instance, num_tasks: u32) -> Result<()> {
                    let rdma = instance.handle().as_ptr();
                    // SAFETY: alive, and the callbacks have the type that DOCA wants.
                    unsafe { call!($set_conf(rdma, Some(done), Some(failed), num_tasks)) }
                }
            }

            impl Run {
                /// Sets up the task of a place. Whoever submits it keeps what the fields point to until the callback.
                #[inline]
                pub(crate) fn $set_up(&self, place: &Place, open: Open, $($field: $type),*) -> Result<Armed> {
                    /// The first task of a place: from DOCA's pool.
                    #[cold]
                    fn take(run: &Run, place: &Place, open: Open, $($field: $type),*) -> Result<Task> {
                        let (rdma, data) = (run.instance().handle().as_ptr(), task::pointer_to(place));
                        let (flight, mut task) = (place.side(), ptr::null_mut());
                        // SAFETY: the context runs, the table has valid connections only, what the fields point to
                        // is alive, and the out-parameter is a local.
                        let task = unsafe {
                            call!($allocate(rdma, open.link.as_ptr(), $($field.raw(),)* data, &mut task))?;
                            flight.keep(stringify!($allocate), task.cast(), doca_sys::$as_task(task))?
                        };
                        flight.on.set(open.id);
                        $(flight.told[$at].set($field.key());)*
                        Ok(task)
                    }
                    let flight = place.side();
                    let task = match flight.task.get() {
                        Some(task) => {
                            let own = task.own.as_ptr().cast();
                            // SAFETY: the place has no task in flight, and one that it has is alive; the table has
                            // valid connections only.
                            unsafe {
                                if flight.on.get() != open.id {
                                    doca_sys::$set_connection(own, open.link.as_ptr());
                                    flight.on.set(open.id);
                                }
                                $(flight.tell($at, $field, |value| doca_sys::$set(own, value));)*
                            }
                            task
                        }
                        None => take(self, place, open, $($field),*)?,
                    };
                    Ok(Armed(task))
                }
            }
        };)*
    };
    (@result $flight:ident, $task:ident) => {{
        let _ = ($flight, $task);
    }};
    (@result $flight:ident, $task:ident $len:ident) => {
        // SAFETY: DOCA passes a live task that succeeded, so its results are there.
        $flight.len.set(unsafe { doca_sys::$len($task) })
    };
}

outgoing! {
    SendTask: doca_rdma_task_send,
        doca_rdma_task_send_set_conf, doca_rdma_task_send_allocate_init,
        doca_rdma_task_send_as_task, doca_rdma_task_send_set_rdma_connection,
        set_up_send(0 source: NamedBuf => doca_rdma_task_send_set_src_buf);
    SendImmTask: doca_rdma_task_send_imm,
        doca_rdma_task_send_imm_set_conf, doca_rdma_task_send_imm_allocate_init,
        doca_rdma_task_send_imm_as_task, doca_rdma_task_send_imm_set_rdma_connection,
        set_up_send_imm(
            0 source: NamedBuf => doca_rdma_task_send_imm_set_src_buf,
            1 immediate: u32 => doca_rdma_task_send_imm_set_immediate_data
        );
    ReadTask: doca_rdma_task_read,
        doca_rdma_task_read_set_conf, doca_rdma_task_read_allocate_init,
        doca_rdma_task_read_as_task, doca_rdma_task_read_set_rdma_connection,
        set_up_read(
            0 source: NamedBuf => doca_rdma_task_read_set_src_buf,
            1 destination: NamedBuf => doca_rdma_task_read_set_dst_buf
        ),
        doca_rdma_task_read_get_result_len;
    WriteTask: doca_rdma_task_write,
        doca_rdma_task_write_set_conf, doca_rdma_task_write_allocate_init,
        doca_rdma_task_write_as_task, doca_rdma_task_write_set_rdma_connection,
        set_up_write(
            0 source: NamedBuf => doca_rdma_task_write_set_src_buf,
            1 destination: NamedBuf => doca_rdma_task_write_set_dst_buf
        );
    WriteImmTask: doca_rdma_task_write_imm,
        doca_rdma_task_write_imm_set_conf, doca_rdma_task_write_imm_allocate_init,
        doca_rdma_task_write_imm_as_task, doca_rdma_task_write_imm_set_rdma_connection,
        set_up_write_imm(
            0 source: NamedBuf => doca_rdma_task_write_imm_set_src_buf,
            1 destination: NamedBuf => doca_rdma_task_write_imm_set_dst_buf,
            2 immediate: u32 => doca_rdma_task_write_imm_set_immediate_data
        );
    CompareSwapTask: doca_rdma_task_atomic_cmp_swp,
        doca_rdma_task_atomic_cmp_swp_set_conf, doca_rdma_task_atomic_cmp_swp_allocate_init,
        doca_rdma_task_atomic_cmp_swp_as_task, doca_rdma_task_atomic_cmp_swp_set_rdma_connection,
        set_up_compare_swap(
            0 cell: NamedBuf => doca_rdma_task_atomic_cmp_swp_set_dst_buf,
            1 result: NamedBuf => doca_rdma_task_atomic_cmp_swp_set_result_buf,
            2 compare: u64 => doca_rdma_task_atomic_cmp_swp_set_cmp_data,
            3 swap: u64 => doca_rdma_task_atomic_cmp_swp_set_swap_data
        );
    FetchAddTask: doca_rdma_task_atomic_fetch_add,
        doca_rdma_task_atomic_fetch_add_set_conf, doca_rdma_task_atomic_fetch_add_allocate_init,
        doca_rdma_task_atomic_fetch_add_as_task, doca_rdma_task_atomic_fetch_add_set_rdma_connection,
        set_up_fetch_add(
            0 cell: NamedBuf => doca_rdma_task_atomic_fetch_add_set_dst_buf,
            1 result: NamedBuf => doca_rdma_task_atomic_fetch_add_set_result_buf,
            2 add: u64 => doca_rdma_task_atomic_fetch_add_set_add_data
        );
    EventGetTask: doca_rdma_task_remote_net_sync_event_get,
        doca_rdma_task_remote_net_sync_event_get_set_conf,
        doca_rdma_task_remote_net_sync_event_get_allocate_init,
        doca_rdma_task_remote_net_sync_event_get_as_task,
        doca_rdma_task_remote_net_sync_event_get_set_rdma_connection,
        set_up_event_get(
            0 event: Named<doca_sync_event_remote_net> => doca_rdma_task_remote_net_sync_event_get_set_sync_event,
            1 destination: NamedBuf => doca_rdma_task_remote_net_sync_event_get_set_dst_buf
        ),
        doca_rdma_task_remote_net_sync_event_get_get_result_len;
    EventSetTask: doca_rdma_task_remote_net_sync_event_notify_set,
        doca_rdma_task_remote_net_sync_event_notify_set_set_conf,
        doca_rdma_task_remote_net_sync_event_notify_set_allocate_init,
        doca_rdma_task_remote_net_sync_event_notify_set_as_task,
        doca_rdma_task_remote_net_sync_event_notify_set_set_rdma_connection,
        set_up_event_set(
            0 event: Named<doca_sync_event_remote_net> =>
                doca_rdma_task_remote_net_sync_event_notify_set_set_sync_event,
            1 source: NamedBuf => doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf
        );
    EventAddTask: doca_rdma_task_remote_net_sync_event_notify_add,
        doca_rdma_task_remote_net_sync_event_notify_add_set_conf,
        doca_rdma_task_remote_net_sync_event_notify_add_allocate_init,
        doca_rdma_task_remote_net_sync_event_notify_add_as_task,
        doca_rdma_task_remote_net_sync_event_notify_add_set_rdma_connection,
        set_up_event_add(
            0 event: Named<doca_sync_event_remote_net> =>
                doca_rdma_task_remote_net_sync_event_notify_add_set_sync_event,
            1 result: NamedBuf => doca_rdma_task_remote_net_sync_event_notify_add_set_result_buf,
            2 add: u64 => doca_rdma_task_remote_net_sync_event_notify_add_set_add_data
        );
}
