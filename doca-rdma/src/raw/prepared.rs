//! The place of a prepared task: submitting it again, and telling its C task other values.

use crate::run::{Flight, Place, Run};
use crate::task::{
    CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, ReadTask, ReceiveTask,
    SendImmTask, SendTask, WriteImmTask, WriteTask,
};
use doca_common::Result;
use doca_common::buffer::{Load, NamedBuf};
use std::ptr::NonNull;
use std::rc::Rc;

/// A place of a run's slab that is held by one handle.
pub(crate) struct Seat {
    /// Keeps the slab.
    run: Rc<Run>,
    place: NonNull<Place>,
}

impl Seat {
    /// A free place of a pool.
    pub(crate) fn vacant(run: &Rc<Run>, pool: usize) -> Option<Seat> {
        let place = run.slab().vacant(pool)?.hold();
        Some(Seat { run: run.clone(), place: NonNull::from(place) })
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    #[inline]
    pub(crate) fn place(&self) -> &Place {
        // SAFETY: a place of the run's slab, which has its places in one allocation as long as it lives.
        unsafe { self.place.as_ref() }
    }

    #[inline]
    pub(crate) fn flight(&self) -> &Flight {
        self.place().side()
    }

    /// Submits the task as it was set up; `None` if that was revoked. The handle knows that it is not in flight, and
    /// keeps what the fields point to until it came back.
    #[inline]
    pub(crate) fn submit(&self) -> Option<Result<()>> {
        // SAFETY: not in flight, and its fields are valid, as the handle takes care of. It is alive: whoever frees it
        // revokes it before.
        let submitted = unsafe { self.flight().ready.submit() };
        if let Some(Ok(())) = submitted {
            // Completions come by progress only.
            self.place().fly();
        }
        submitted
    }

    /// Whether the connection that the task was set up for takes tasks.
    pub(crate) fn is_connected(&self) -> bool {
        self.run.table().borrow().takes_prepared(self.flight().on.get())
    }

    /// Allows to submit the task again, if it is there still. Its fields are valid.
    pub(crate) fn allow(&self) {
        if let Some(task) = self.flight().task.get() {
            self.flight().ready.allow(task);
        }
    }

    /// Gives the place back, at once or when the task came back, which keeps `load` until then.
    pub(crate) fn leave(&self, load: Load) {
        let (slab, flight) = (self.run.slab(), self.flight());
        if self.place().is_idle() {
            flight.ready.revoke();
            slab.release(self.place());
            drop((flight.taken(), load));
        } else {
            drop(slab.abandon(self.place(), load));
        }
    }
}

/// Kinds of which a prepared task can be given another local buffer.
pub trait Local {
    /// Tells the C task, if there is one still.
    fn name_local(flight: &Flight, buffer: NamedBuf);
}

/// Tells the C task a field. It is not in flight: only a handle of one that is not can do this.
macro_rules! tell {
    ($flight:expr, $at:literal, $value:expr, $set:ident) => {
        if let Some(task) = $flight.task.get() {
            // SAFETY: a kept task is alive, and this one is not in flight.
            $flight.tell($at, $value, |value| unsafe { doca_sys::$set(task.own.as_ptr().cast(), value) });
        }
    };
}

/// Fields that a prepared task can be told: their place in the table of what tasks were told, and what sets them.
macro_rules! fields {
    ($($kind:ident: $at:literal => $set:ident;)*) => {$(
        impl Local for $kind {
            fn name_local(flight: &Flight, buffer: NamedBuf) {
                tell!(flight, $at, buffer, $set);
            }
        }
    )*};
}

fields! {
    SendTask: 0 => doca_rdma_task_send_set_src_buf;
    SendImmTask: 0 => doca_rdma_task_send_imm_set_src_buf;
    ReceiveTask: 0 => doca_rdma_task_receive_set_dst_buf;
    ReadTask: 1 => doca_rdma_task_read_set_dst_buf;
    WriteTask: 0 => doca_rdma_task_write_set_src_buf;
    WriteImmTask: 0 => doca_rdma_task_write_imm_set_src_buf;
    CompareSwapTask: 1 => doca_rdma_task_atomic_cmp_swp_set_result_buf;
    FetchAddTask: 1 => doca_rdma_task_atomic_fetch_add_set_result_buf;
    EventGetTask: 1 => doca_rdma_task_remote_net_sync_event_get_set_dst_buf;
    EventSetTask: 1 => doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf;
    EventAddTask: 1 => doca_rdma_task_remote_net_sync_event_notify_add_set_result_buf;
}

/// Numbers of the tasks that have them.
impl Flight {
    pub(crate) fn tell_send_immediate(&self, immediate: u32) {
        tell!(self, 1, immediate, doca_rdma_task_send_imm_set_immediate_data);
    }

    pub(crate) fn tell_write_immediate(&self, immediate: u32) {
        tell!(self, 2, immediate, doca_rdma_task_write_imm_set_immediate_data);
    }

    pub(crate) fn tell_compare_swap(&self, compare: u64, swap: u64) {
        tell!(self, 2, compare, doca_rdma_task_atomic_cmp_swp_set_cmp_data);
        tell!(self, 3, swap, doca_rdma_task_atomic_cmp_swp_set_swap_data);
    }

    pub(crate) fn tell_fetch_add(&self, add: u64) {
        tell!(self, 2, add, doca_rdma_task_atomic_fetch_add_set_add_data);
    }

    pub(crate) fn tell_event_add(&self, add: u64) {
        tell!(self, 2, add, doca_rdma_task_remote_net_sync_event_notify_add_set_add_data);
    }
}
