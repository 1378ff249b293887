//! `doca_rdma_task_receive`, and what it shares with the kinds that go out on a connection.

use crate::connection::ConnectionId;
use crate::instance::Instance;
use crate::raw::connection::id_of;
use crate::run::{Arrival, Outcome, Run};
use crate::task::ReceiveTask;
use crate::values::Opcode;
use doca_common::raw::context::null;
use doca_common::raw::task::Task;
use doca_common::raw::{as_number, current, number, task};
use doca_common::slot::Token;
use doca_common::{Code, Result, call};
use doca_sys::{doca_buf, doca_data, doca_rdma_task_receive, doca_task};
use std::any::Any;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// What each kind of task does in C.
pub trait Kind {
    /// `set_conf`: how many tasks, and this crate's callbacks.
    fn configure(instance: &Instance, num_tasks: u32) -> Result<()>;
}

/// Records how a task ended. Runs in DOCA's callback.
pub(crate) fn finish(context: doca_data, token: doca_data, outcome: Outcome) {
    current::record(as_number(context), |core, member| {
        if let Some(instance) = (member as &dyn Any).downcast_ref::<Instance>() {
            instance.with_run(|run| {
                if run.finish(Token::from_bits(as_number(token)), outcome) {
                    core.mark();
                }
            });
        }
    });
}

impl Kind for ReceiveTask {
    fn configure(instance: &Instance, num_tasks: u32) -> Result<()> {
        // SAFETY: alive, and the callbacks have the type that DOCA wants.
        unsafe {
            call!(doca_rdma_task_receive_set_conf(
                instance.handle().as_ptr(),
                Some(receive_done),
                Some(receive_failed),
                num_tasks
            ))
        }
    }
}

unsafe extern "C" fn receive_done(task: *mut doca_rdma_task_receive, token: doca_data, context: doca_data) {
    // SAFETY: DOCA passes a live task that succeeded, so its results are there, and the connection is valid in here.
    let outcome = unsafe {
        let opcode = Opcode::from_raw(doca_sys::doca_rdma_task_receive_get_result_opcode(task).0);
        Outcome {
            arrival: if opcode == Opcode::WRITE_WITH_IMM { Arrival::Unknown } else { Arrival::Message },
            code: Code::SUCCESS,
            len: doca_sys::doca_rdma_task_receive_get_result_len(task),
            immediate: if opcode == Opcode::SEND {
                0
            } else {
                doca_sys::doca_rdma_task_receive_get_result_immediate_data(task)
            },
            opcode,
            connection: id_of(doca_sys::doca_rdma_task_receive_get_result_rdma_connection(task))
                .unwrap_or(ConnectionId::UNKNOWN),
        }
    };
    finish(context, token, outcome);
}

unsafe extern "C" fn receive_failed(task: *mut doca_rdma_task_receive, token: doca_data, context: doca_data) {
    // SAFETY: DOCA passes a live task, whose callback this is.
    let code = unsafe { task::status(doca_sys::doca_rdma_task_receive_as_task(task)) };
    finish(context, token, Outcome { arrival: Arrival::Unknown, ..Outcome::failed(code) });
}

impl Run {
    /// Submits a receive whose buffer is in the slab.
    pub(crate) fn submit_receive(&self, token: Token, destination: *mut doca_buf) -> Result<()> {
        // SAFETY: the slot was free, so its task is not in flight; the context runs, so task and handle are alive; the
        // buffer stays in the slab until the callback.
        unsafe {
            let task = match self.tasks().get(token) {
                Some(task) => {
                    doca_sys::doca_rdma_task_receive_set_dst_buf(task.own.as_ptr().cast(), destination);
                    task
                }
                None => self.new_receive(token, destination)?,
            };
            task::submit(task)
        }
    }

    /// The first task of a slot: from DOCA's pool.
    ///
    /// # Safety
    ///
    /// The context runs, and the buffer is null or stays until the callback.
    unsafe fn new_receive(&self, token: Token, destination: *mut doca_buf) -> Result<Task> {
        const CALL: &str = "doca_rdma_task_receive_allocate_init";
        let (rdma, mut task) = (self.instance().handle().as_ptr(), ptr::null_mut());
        // SAFETY: as the caller says, and the out-parameter is a local.
        unsafe {
            call!(doca_rdma_task_receive_allocate_init(
                rdma,
                destination,
                number(token.to_bits()),
                &mut task
            ))?;
            self.keep(token, CALL, task.cast(), doca_sys::doca_rdma_task_receive_as_task(task))
        }
    }

    /// Keeps the first task of a slot.
    pub(crate) fn keep(
        &self,
        token: Token,
        call: &'static str,
        own: *mut c_void,
        common: *mut doca_task,
    ) -> Result<Task> {
        let task = NonNull::new(own).zip(NonNull::new(common));
        let task = task.map(|(own, common)| Task { own, common }).ok_or_else(|| null(call))?;
        self.tasks().put(token, task);
        Ok(task)
    }

    /// Frees the tasks that are not in flight.
    pub(crate) fn free_idle_tasks(&self) {
        let slab = self.slab().borrow();
        // SAFETY: the slab knows what is in flight, and the instance calls this only while its context is alive.
        unsafe { self.tasks().free_idle(|index| slab.is_flying(index)) };
    }
}
