//! `doca_rdma.h`: the task kinds. Their functions differ in names and fields only, so tables make them.

use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::entry;
use crate::entry::{In, Out};
use crate::rdma::{Connection, Rdma, TaskConf};
use crate::sync_event::RemoteNet;
use crate::task::{Fields, Task, TaskCallback};
use crate::topology::RdmaTask;
use std::ptr::null;

/// An allocated task whose fields the entry fills in.
fn allocate(
    rdma: &In<Rdma>,
    kind: RdmaTask,
    user_data: u64,
    out: &Out<*const Task>,
    fill: impl FnOnce(&Fields) -> Res,
) -> Res {
    let rdma = rdma.get()?;
    out.check()?;
    let task = rdma.take_task(kind, user_data)?;
    // SAFETY: from the pool of a running instance, which `rdma` keeps.
    let task_ref = unsafe { &*task };
    if let Err(code) = fill(&task_ref.fields) {
        task_ref.free();
        return Err(code);
    }
    out.put(task)
}

/// The connection of a send-side task: required, and of this instance.
fn connect(rdma: &In<Rdma>, connection: &In<Connection>, fields: &Fields) -> Res {
    if !rdma.get()?.owns(connection.get()?) {
        return Err(Code::INVALID_VALUE);
    }
    fields.connection.set(connection.raw() as usize);
    Ok(())
}

fn at(buf: &In<Buf>) -> usize {
    buf.raw() as usize
}

/// `set_conf` and `as_task` of each kind.
macro_rules! kinds {
    ($($kind:ident $set_conf:ident $as_task:ident;)*) => {
        entry! { $(
            /// Configures the kind; BAD_STATE unless IDLE.
            fn $set_conf(rdma: In<Rdma>, success: Option<TaskCallback>, failure: Option<TaskCallback>, count: u32) {
                let rdma = rdma.get()?;
                let (Some(success), Some(failure)) = (success, failure) else {
                    return Err(Code::INVALID_VALUE);
                };
                rdma.set_conf(RdmaTask::$kind, TaskConf { success, failure, count })
            }
            /// The same pointer.
            fn $as_task(task: In<Task>) -> *const Task = null(); { task.raw() }
        )* }
    };
}

kinds! {
    Receive doca_rdma_task_receive_set_conf doca_rdma_task_receive_as_task;
    Send doca_rdma_task_send_set_conf doca_rdma_task_send_as_task;
    SendImm doca_rdma_task_send_imm_set_conf doca_rdma_task_send_imm_as_task;
    Read doca_rdma_task_read_set_conf doca_rdma_task_read_as_task;
    Write doca_rdma_task_write_set_conf doca_rdma_task_write_as_task;
    WriteImm doca_rdma_task_write_imm_set_conf doca_rdma_task_write_imm_as_task;
    AtomicCmpSwp doca_rdma_task_atomic_cmp_swp_set_conf doca_rdma_task_atomic_cmp_swp_as_task;
    AtomicFetchAdd doca_rdma_task_atomic_fetch_add_set_conf doca_rdma_task_atomic_fetch_add_as_task;
    RemoteNetSyncEventGet doca_rdma_task_remote_net_sync_event_get_set_conf
        doca_rdma_task_remote_net_sync_event_get_as_task;
    RemoteNetSyncEventNotifySet doca_rdma_task_remote_net_sync_event_notify_set_set_conf
        doca_rdma_task_remote_net_sync_event_notify_set_as_task;
    RemoteNetSyncEventNotifyAdd doca_rdma_task_remote_net_sync_event_notify_add_set_conf
        doca_rdma_task_remote_net_sync_event_notify_add_as_task;
}

/// Setter and getter of a buffer or connection field.
macro_rules! pointers {
    ($($set:ident $get:ident $ty:ty => $field:ident;)*) => {
        entry! { $(
            /// For a task that the program owns.
            fn $set(task: In<Task>, value: In<$ty>) -> () = (); {
                if let Ok(task) = task.get()
                    && task.is_changeable()
                {
                    task.fields.$field.set(value.raw() as usize);
                }
            }
            /// The value set last.
            fn $get(task: In<Task>) -> *const $ty = null(); {
                task.get().map_or(null(), |task| task.fields.$field.get() as *const $ty)
            }
        )* }
    };
}

pointers! {
    doca_rdma_task_receive_set_dst_buf doca_rdma_task_receive_get_dst_buf Buf => dst;
    doca_rdma_task_send_set_src_buf doca_rdma_task_send_get_src_buf Buf => src;
    doca_rdma_task_send_set_rdma_connection doca_rdma_task_send_get_rdma_connection Connection => connection;
    doca_rdma_task_send_imm_set_src_buf doca_rdma_task_send_imm_get_src_buf Buf => src;
    doca_rdma_task_send_imm_set_rdma_connection doca_rdma_task_send_imm_get_rdma_connection Connection => connection;
    doca_rdma_task_read_set_src_buf doca_rdma_task_read_get_src_buf Buf => src;
    doca_rdma_task_read_set_dst_buf doca_rdma_task_read_get_dst_buf Buf => dst;
    doca_rdma_task_read_set_rdma_connection doca_rdma_task_read_get_rdma_connection Connection => connection;
    doca_rdma_task_write_set_src_buf doca_rdma_task_write_get_src_buf Buf => src;
    doca_rdma_task_write_set_dst_buf doca_rdma_task_write_get_dst_buf Buf => dst;
    doca_rdma_task_write_set_rdma_connection doca_rdma_task_write_get_rdma_connection Connection => connection;
    doca_rdma_task_write_imm_set_src_buf doca_rdma_task_write_imm_get_src_buf Buf => src;
    doca_rdma_task_write_imm_set_dst_buf doca_rdma_task_write_imm_get_dst_buf Buf => dst;
    doca_rdma_task_write_imm_set_rdma_connection doca_rdma_task_write_imm_get_rdma_connection
        Connection => connection;
    doca_rdma_task_atomic_cmp_swp_set_dst_buf doca_rdma_task_atomic_cmp_swp_get_dst_buf Buf => src;
    doca_rdma_task_atomic_cmp_swp_set_result_buf doca_rdma_task_atomic_cmp_swp_get_result_buf Buf => dst;
    doca_rdma_task_atomic_cmp_swp_set_rdma_connection doca_rdma_task_atomic_cmp_swp_get_rdma_connection
        Connection => connection;
    doca_rdma_task_atomic_fetch_add_set_dst_buf doca_rdma_task_atomic_fetch_add_get_dst_buf Buf => src;
    doca_rdma_task_atomic_fetch_add_set_result_buf doca_rdma_task_atomic_fetch_add_get_result_buf Buf => dst;
    doca_rdma_task_atomic_fetch_add_set_rdma_connection doca_rdma_task_atomic_fetch_add_get_rdma_connection
        Connection => connection;
    doca_rdma_task_remote_net_sync_event_get_set_sync_event
        doca_rdma_task_remote_net_sync_event_get_get_sync_event RemoteNet => pointer;
    doca_rdma_task_remote_net_sync_event_get_set_dst_buf
        doca_rdma_task_remote_net_sync_event_get_get_dst_buf Buf => dst;
    doca_rdma_task_remote_net_sync_event_get_set_rdma_connection
        doca_rdma_task_remote_net_sync_event_get_get_rdma_connection Connection => connection;
    doca_rdma_task_remote_net_sync_event_notify_set_set_sync_event
        doca_rdma_task_remote_net_sync_event_notify_set_get_sync_event RemoteNet => pointer;
    doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf
        doca_rdma_task_remote_net_sync_event_notify_set_get_src_buf Buf => src;
    doca_rdma_task_remote_net_sync_event_notify_set_set_rdma_connection
        doca_rdma_task_remote_net_sync_event_notify_set_get_rdma_connection Connection => connection;
    doca_rdma_task_remote_net_sync_event_notify_add_set_sync_event
        doca_rdma_task_remote_net_sync_event_notify_add_get_sync_event RemoteNet => pointer;
    doca_rdma_task_remote_net_sync_event_notify_add_set_result_buf
        doca_rdma_task_remote_net_sync_event_notify_add_get_result_buf Buf => dst;
    doca_rdma_task_remote_net_sync_event_notify_add_set_rdma_connection
        doca_rdma_task_remote_net_sync_event_notify_add_get_rdma_connection Connection => connection;
}

/// Setter and getter of a number.
macro_rules! numbers {
    ($($set:ident $get:ident $ty:ty => $field:ident;)*) => {
        entry! { $(
            /// For a task that the program owns.
            fn $set(task: In<Task>, value: $ty) -> () = (); {
                if let Ok(task) = task.get()
                    && task.is_changeable()
                {
                    task.fields.$field.set(value);
                }
            }
            /// The value set last.
            fn $get(task: In<Task>) -> $ty = 0; { task.get().map_or(0, |task| task.fields.$field.get()) }
        )* }
    };
}

numbers! {
    doca_rdma_task_send_imm_set_immediate_data doca_rdma_task_send_imm_get_immediate_data u32 => immediate;
    doca_rdma_task_write_imm_set_immediate_data doca_rdma_task_write_imm_get_immediate_data u32 => immediate;
    doca_rdma_task_atomic_cmp_swp_set_cmp_data doca_rdma_task_atomic_cmp_swp_get_cmp_data u64 => first;
    doca_rdma_task_atomic_cmp_swp_set_swap_data doca_rdma_task_atomic_cmp_swp_get_swap_data u64 => second;
    doca_rdma_task_atomic_fetch_add_set_add_data doca_rdma_task_atomic_fetch_add_get_add_data u64 => first;
    doca_rdma_task_remote_net_sync_event_notify_add_set_add_data
        doca_rdma_task_remote_net_sync_event_notify_add_get_add_data u64 => first;
}

entry! {
    /// A receive into `dst`, which may be NULL.
    fn doca_rdma_task_receive_allocate_init(
        rdma: In<Rdma>, dst: In<Buf>, user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::Receive, user_data, &task, |fields| {
            fields.dst.set(at(&dst));
            Ok(())
        })
    }

    /// A message from `src`, which may be NULL.
    fn doca_rdma_task_send_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, src: In<Buf>, user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::Send, user_data, &task, |fields| {
            fields.src.set(at(&src));
            connect(&rdma, &connection, fields)
        })
    }

    /// A message with immediate data.
    fn doca_rdma_task_send_imm_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, src: In<Buf>, immediate: u32, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::SendImm, user_data, &task, |fields| {
            fields.src.set(at(&src));
            fields.immediate.set(immediate);
            connect(&rdma, &connection, fields)
        })
    }

    /// From remote `src` into local `dst`.
    fn doca_rdma_task_read_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, src: In<Buf>, dst: In<Buf>, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::Read, user_data, &task, |fields| {
            fields.src.set(at(&src));
            fields.dst.set(at(&dst));
            connect(&rdma, &connection, fields)
        })
    }

    /// From local `src` into remote `dst`.
    fn doca_rdma_task_write_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, src: In<Buf>, dst: In<Buf>, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::Write, user_data, &task, |fields| {
            fields.src.set(at(&src));
            fields.dst.set(at(&dst));
            connect(&rdma, &connection, fields)
        })
    }

    /// The same, and the peer is told.
    fn doca_rdma_task_write_imm_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, src: In<Buf>, dst: In<Buf>, immediate: u32, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::WriteImm, user_data, &task, |fields| {
            fields.src.set(at(&src));
            fields.dst.set(at(&dst));
            fields.immediate.set(immediate);
            connect(&rdma, &connection, fields)
        })
    }

    /// Compare and swap at remote `dst`; the value before goes to local `result`.
    fn doca_rdma_task_atomic_cmp_swp_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, dst: In<Buf>, result: In<Buf>, compare: u64, swap: u64,
        user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::AtomicCmpSwp, user_data, &task, |fields| {
            fields.src.set(at(&dst));
            fields.dst.set(at(&result));
            fields.first.set(compare);
            fields.second.set(swap);
            connect(&rdma, &connection, fields)
        })
    }

    /// Add at remote `dst`; the value before goes to local `result`.
    fn doca_rdma_task_atomic_fetch_add_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, dst: In<Buf>, result: In<Buf>, add: u64, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::AtomicFetchAdd, user_data, &task, |fields| {
            fields.src.set(at(&dst));
            fields.dst.set(at(&result));
            fields.first.set(add);
            connect(&rdma, &connection, fields)
        })
    }

    /// Reads the peer's `event` into `dst`.
    fn doca_rdma_task_remote_net_sync_event_get_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, event: In<RemoteNet>, dst: In<Buf>, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::RemoteNetSyncEventGet, user_data, &task, |fields| {
            fields.pointer.set(event.raw() as usize);
            fields.dst.set(at(&dst));
            connect(&rdma, &connection, fields)
        })
    }

    /// Sets the peer's `event` from `src`.
    fn doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, event: In<RemoteNet>, src: In<Buf>, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::RemoteNetSyncEventNotifySet, user_data, &task, |fields| {
            fields.pointer.set(event.raw() as usize);
            fields.src.set(at(&src));
            connect(&rdma, &connection, fields)
        })
    }

    /// Adds to the peer's `event`; the value before goes to local `result`.
    fn doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(
        rdma: In<Rdma>, connection: In<Connection>, event: In<RemoteNet>, result: In<Buf>, add: u64, user_data: u64,
        task: Out<*const Task>,
    ) {
        allocate(&rdma, RdmaTask::RemoteNetSyncEventNotifyAdd, user_data, &task, |fields| {
            fields.pointer.set(event.raw() as usize);
            fields.dst.set(at(&result));
            fields.first.set(add);
            connect(&rdma, &connection, fields)
        })
    }

    /// Bytes of the value: 8.
    fn doca_rdma_task_remote_net_sync_event_get_get_result_len(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.result_len.get() as u32)
    }

    /// What consumed the receive.
    fn doca_rdma_task_receive_get_result_opcode(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.result_opcode.get())
    }

    /// Bytes received.
    fn doca_rdma_task_receive_get_result_len(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.result_len.get() as u32)
    }

    /// Immediate data, bits as the sender gave them.
    fn doca_rdma_task_receive_get_result_immediate_data(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.result_immediate.get())
    }

    /// The connection on which the message came.
    fn doca_rdma_task_receive_get_result_rdma_connection(task: In<Task>) -> *const Connection = null(); {
        task.get().map_or(null(), |task| task.fields.result_connection.get() as *const Connection)
    }

    /// Bytes read.
    fn doca_rdma_task_read_get_result_len(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.result_len.get() as u32)
    }
}
