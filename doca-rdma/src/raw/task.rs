//! `doca_rdma_task_receive`, and what it shares with the kinds that go out on a connection.

use crate::connection::ConnectionId;
use crate::instance::Instance;
use crate::raw::connection::name_of;
use crate::run::{Flight, Place, Run};
use crate::task::ReceiveTask;
use crate::values::Opcode;
use doca_common::buffer::{Named, NamedBuf};
use doca_common::engine::Core;
use doca_common::raw::context::null;
use doca_common::raw::task::Task;
use doca_common::raw::{as_number, current, task};
use doca_common::{Code, Result, call};
use doca_sys::{doca_data, doca_rdma_task_receive, doca_task};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// What each kind of task does in C.
pub trait Kind {
    /// `set_conf`: how many tasks, and this crate's callbacks.
    fn configure(instance: &Instance, num_tasks: u32) -> Result<()>;
}

/// Records that a task came back well, after `note` has recorded what it brought. Runs in DOCA's callback.
///
/// # Safety
///
/// `place` is the user data of a task of this crate, which is in flight until now.
#[inline]
pub(crate) unsafe fn finish(context: doca_data, place: doca_data, note: impl FnOnce(&Flight)) {
    // SAFETY: as the caller says.
    if unsafe { place_of(place) }.complete(note) {
        came_back(place, context);
    }
}

/// Records that a task failed.
///
/// # Safety
///
/// As for [`finish`].
#[cold]
pub(crate) unsafe fn fail(context: doca_data, place: doca_data, code: Code) {
    // SAFETY: as the caller says.
    let task = unsafe { place_of(place) };
    let record = |_: &Core, instance: &Instance| {
        if let Some(run) = instance.run() {
            run.task_failed(task.side());
        }
    };
    // SAFETY: recording runs no code of users, and leaves the contexts of the engine alone.
    unsafe { current::record(as_number(context), record) };
    if task.fail(|flight| flight.code.set(code)) {
        came_back(place, context);
    }
}

/// The place that a task points to.
///
/// # Safety
///
/// As for [`finish`].
#[inline]
pub(crate) unsafe fn place_of<'a>(place: doca_data) -> &'a Place {
    // SAFETY: tasks point to their places. The run that owns the slab is kept by its instance until the context is idle,
    // which it is only when no task is in flight; a context that cannot be stopped is leaked with its run.
    unsafe { task::slot_of(place) }
}

/// Something is to be done after progress. It is a C function, which does not unwind, so callbacks can end with it.
#[cold]
#[inline(never)]
extern "C" fn came_back(place: doca_data, context: doca_data) {
    // SAFETY: callers were given it by DOCA.
    let place = unsafe { place_of(place) };
    let record = |core: &Core, instance: &Instance| {
        if let Some(run) = instance.run() {
            run.came_back(place);
        }
        core.mark();
    };
    // SAFETY: recording runs no code of users, and leaves the contexts of the engine alone.
    unsafe { current::record(as_number(context), record) };
}

/// A C task whose fields are set, to be submitted.
pub(crate) struct Armed(pub(super) Task);

impl Armed {
    /// Hands it to DOCA.
    #[inline]
    pub(crate) fn submit(self) -> Result<()> {
        // SAFETY: made for a place that has no task in flight, in a context that runs; whoever made it keeps what the
        // fields point to until the callback.
        unsafe { task::submit(self.0) }
    }

    /// Allows to submit it as it is until that is revoked.
    pub(crate) fn allow(self, flight: &Flight) {
        flight.ready.allow(self.0);
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

unsafe extern "C" fn receive_done(task: *mut doca_rdma_task_receive, place: doca_data, context: doca_data) {
    // SAFETY: a task of ours that succeeded, in its callback.
    unsafe {
        let at = place_of(place);
        if at.land() {
            note(at.side(), task);
        } else {
            receive_heeded(task, place, context);
        }
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn receive_heeded(task: *mut doca_rdma_task_receive, place: doca_data, context: doca_data) {
    // SAFETY: a task of ours that succeeded, in its callback.
    unsafe { finish(context, place, |flight| note(flight, task)) };
}

/// Notes what is known of a message.
///
/// # Safety
///
/// A task that succeeded, in its callback: its results are there, and the connection is valid.
#[inline(always)]
unsafe fn note(flight: &Flight, task: *mut doca_rdma_task_receive) {
    // SAFETY: as the caller says.
    unsafe {
        let opcode = Opcode::from_raw(doca_sys::doca_rdma_task_receive_get_result_opcode(task).0);
        flight.opcode.set(opcode);
        flight.len.set(doca_sys::doca_rdma_task_receive_get_result_len(task));
        if opcode != Opcode::SEND {
            flight.immediate.set(doca_sys::doca_rdma_task_receive_get_result_immediate_data(task));
        }
        let connection = doca_sys::doca_rdma_task_receive_get_result_rdma_connection(task);
        flight.from.set(name_of(connection).unwrap_or(ConnectionId::UNKNOWN.to_bits()));
    }
}

unsafe extern "C" fn receive_failed(task: *mut doca_rdma_task_receive, place: doca_data, context: doca_data) {
    // SAFETY: DOCA passes a live task of ours, whose callback this is.
    unsafe { fail(context, place, task::status(doca_sys::doca_rdma_task_receive_as_task(task))) };
}

impl Run {
    /// Sets up the receive of a place. Whoever submits it keeps the buffer until the callback.
    #[inline]
    pub(crate) fn set_up_receive(&self, place: &Place, destination: NamedBuf) -> Result<Armed> {
        let flight = place.side();
        match flight.task.get() {
            Some(task) => {
                let own = task.own.as_ptr().cast();
                // SAFETY: the place has no task in flight, and one that it has is alive.
                flight.tell(0, destination, |buf| unsafe {
                    doca_sys::doca_rdma_task_receive_set_dst_buf(own, buf);
                });
                Ok(Armed(task))
            }
            None => self.new_receive(place, destination).map(Armed),
        }
    }

    /// The first task of a place: from DOCA's pool.
    #[cold]
    fn new_receive(&self, place: &Place, destination: NamedBuf) -> Result<Task> {
        const CALL: &str = "doca_rdma_task_receive_allocate_init";
        let (rdma, mut task) = (self.instance().handle().as_ptr(), ptr::null_mut());
        // SAFETY: the context runs, as callers made sure; the buffer is null or alive; the out-parameter is a local.
        let task = unsafe {
            let data = task::pointer_to(place);
            call!(doca_rdma_task_receive_allocate_init(rdma, destination.raw, data, &mut task))?;
            place.side().keep(CALL, task.cast(), doca_sys::doca_rdma_task_receive_as_task(task))?
        };
        place.side().told[0].set(destination.key());
        Ok(task)
    }

    /// Frees the tasks that are not in flight.
    pub(crate) fn free_idle_tasks(&self) {
        for (flight, _) in self.slab().sides().filter(|(_, flying)| !flying) {
            flight.ready.revoke();
            // SAFETY: the slab knows what is in flight, and the instance calls this only while its context is alive.
            unsafe { flight.task.free() };
        }
    }
}
