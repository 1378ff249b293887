//! `doca_rdma_task_receive`, and what it shares with the kinds that go out on a connection.

use crate::connection::ConnectionId;
use crate::instance::Instance;
use crate::raw::connection::id_of;
use crate::run::{Flight, Place, Run};
use crate::task::ReceiveTask;
use crate::values::Opcode;
use doca_common::buffer::{Named, NamedBuf};
use doca_common::engine::Core;
use doca_common::raw::context::null;
use doca_common::raw::task::Task;
use doca_common::raw::{as_number, current, number, task};
use doca_common::{Code, Result, call};
use doca_sys::{doca_data, doca_rdma_task_receive, doca_task};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// What each kind of task does in C.
pub trait Kind {
    /// `set_conf`: how many tasks, and this crate's callbacks.
    fn configure(instance: &Instance, num_tasks: u32) -> Result<()>;
}

/// Records that a task came back, after `note` has recorded how. Runs in DOCA's callback.
#[inline]
pub(crate) fn finish(context: doca_data, address: doca_data, note: impl FnOnce(&Flight)) {
    let record = |core: &Core, instance: &Instance| {
        // SAFETY: recording neither begins nor ends a run.
        let run = unsafe { instance.current() };
        if run.is_some_and(|run| run.finish(as_number(address), note)) {
            core.mark();
        }
    };
    // SAFETY: recording runs no code of users, and leaves the contexts of the engine alone.
    unsafe { current::record(as_number(context), record) };
}

/// Records that a task failed.
#[cold]
pub(crate) fn fail(context: doca_data, address: doca_data, code: Code) {
    finish(context, address, |flight| flight.code.set(code));
}

impl Instance {
    /// The run that is going on, for callbacks of its tasks.
    ///
    /// # Safety
    ///
    /// No run begins or ends as long as the reference lives.
    #[inline]
    unsafe fn current(&self) -> Option<&Run> {
        // SAFETY: nobody changes it as long as the reference lives, as the caller says.
        unsafe { self.run_cell().try_borrow_unguarded() }.ok()?.as_deref()
    }
}

/// What a field of a C task is told: what the C function wants, and what tells values apart.
pub(crate) trait Told: Copy {
    type Raw;
    fn raw(self) -> Self::Raw;
    fn key(self) -> u64;
}

impl<T> Told for Named<T> {
    type Raw = *mut T;

    #[inline]
    fn raw(self) -> *mut T {
        self.raw
    }

    #[inline]
    fn key(self) -> u64 {
        self.serial
    }
}

macro_rules! told {
    ($($number:ty),*) => {
        $(impl Told for $number {
            type Raw = $number;

            #[inline]
            fn raw(self) -> $number {
                self
            }

            #[inline]
            fn key(self) -> u64 {
                self.into()
            }
        })*
    };
}

told!(u32, u64);

impl Flight {
    /// Tells the C task a field, unless it was told the same the last time.
    #[inline]
    pub(crate) fn tell<T: Told>(&self, at: usize, value: T, set: impl FnOnce(T::Raw)) {
        if self.told[at].get() != value.key() {
            set(value.raw());
            self.told[at].set(value.key());
        }
    }

    /// Keeps the first task of a slot. Its fields are told by whoever made it.
    pub(crate) fn keep(&self, call: &'static str, own: *mut c_void, common: *mut doca_task) -> Result<Task> {
        let task = NonNull::new(own).zip(NonNull::new(common));
        let task = task.map(|(own, common)| Task { own, common }).ok_or_else(|| null(call))?;
        self.task.put(task);
        Ok(task)
    }
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

unsafe extern "C" fn receive_done(task: *mut doca_rdma_task_receive, address: doca_data, context: doca_data) {
    // SAFETY: DOCA passes a live task that succeeded, so its results are there, and the connection is valid in here.
    finish(context, address, |flight| unsafe {
        let opcode = Opcode::from_raw(doca_sys::doca_rdma_task_receive_get_result_opcode(task).0);
        flight.code.set(Code::SUCCESS);
        flight.opcode.set(opcode);
        flight.len.set(doca_sys::doca_rdma_task_receive_get_result_len(task));
        if opcode != Opcode::SEND {
            flight.immediate.set(doca_sys::doca_rdma_task_receive_get_result_immediate_data(task));
        }
        let connection = doca_sys::doca_rdma_task_receive_get_result_rdma_connection(task);
        flight.from.set(id_of(connection).unwrap_or(ConnectionId::UNKNOWN));
    });
}

unsafe extern "C" fn receive_failed(
    task: *mut doca_rdma_task_receive,
    address: doca_data,
    context: doca_data,
) {
    // SAFETY: DOCA passes a live task, whose callback this is.
    let code = unsafe { task::status(doca_sys::doca_rdma_task_receive_as_task(task)) };
    fail(context, address, code);
}

impl Run {
    /// Submits the receive of a place, whose buffer goes into the slab then.
    #[inline]
    pub(crate) fn submit_receive(&self, place: &Place<'_>, destination: NamedBuf) -> Result<()> {
        let flight = place.side();
        // SAFETY: the place is vacant, so its task is not in flight; the context runs, so task and handle are alive; the
        // buffer stays in the slab until the callback.
        unsafe {
            let task = match flight.task.get() {
                Some(task) => {
                    let own = task.own.as_ptr().cast();
                    flight.tell(0, destination, |buf| {
                        doca_sys::doca_rdma_task_receive_set_dst_buf(own, buf);
                    });
                    task
                }
                None => self.new_receive(place, destination)?,
            };
            task::submit(task)
        }
    }

    /// The first task of a place: from DOCA's pool.
    ///
    /// # Safety
    ///
    /// The context runs, and the buffer is null or stays until the callback.
    #[cold]
    unsafe fn new_receive(&self, place: &Place<'_>, destination: NamedBuf) -> Result<Task> {
        const CALL: &str = "doca_rdma_task_receive_allocate_init";
        let (rdma, mut task) = (self.instance().handle().as_ptr(), ptr::null_mut());
        // SAFETY: as the caller says, and the out-parameter is a local.
        let task = unsafe {
            let data = number(place.address());
            call!(doca_rdma_task_receive_allocate_init(rdma, destination.raw, data, &mut task))?;
            place.side().keep(CALL, task.cast(), doca_sys::doca_rdma_task_receive_as_task(task))?
        };
        place.side().told[0].set(destination.key());
        Ok(task)
    }

    /// Frees the tasks that are not in flight.
    pub(crate) fn free_idle_tasks(&self) {
        for (flight, _) in self.slab().sides().filter(|(_, flying)| !flying) {
            // SAFETY: the slab knows what is in flight, and the instance calls this only while its context is alive.
            unsafe { flight.task.free() };
        }
    }
}
