//! `doca_task`

use crate::call;
use crate::error::{Code, Result};
use crate::slot::Slot;
use doca_sys::{doca_data, doca_task};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// User data of a C task that points to its slot.
pub fn pointer_to<L, S>(slot: &Slot<L, S>) -> doca_data {
    doca_data { ptr: ptr::from_ref(slot).cast_mut().cast() }
}

/// The slot that user data points to.
///
/// # Safety
///
/// [`pointer_to`] made the data from a slot of these types, whose slab is alive as long as the reference is.
#[inline]
pub unsafe fn slot_of<'a, L, S>(data: doca_data) -> &'a Slot<L, S> {
    // SAFETY: a pointer to a live slot, as the caller says; slots are changed through shared references only.
    unsafe { &*data.ptr.cast::<Slot<L, S>>() }
}

/// A C task that may be submitted again as it is, until that is revoked.
#[derive(Debug, Default)]
pub struct Ready(Cell<Option<NonNull<doca_task>>>);

impl Ready {
    /// From now on the task may be submitted.
    pub fn allow(&self, task: Task) {
        self.0.set(Some(task.common));
    }

    /// It may not any more.
    pub fn revoke(&self) {
        self.0.set(None);
    }

    /// Whether it may.
    pub fn is_allowed(&self) -> bool {
        self.0.get().is_some()
    }

    /// Hands the task to DOCA; `None` if it may not be submitted.
    ///
    /// # Safety
    ///
    /// What was allowed and not revoked is a live task that is not in flight, whose fields are valid and stay so until
    /// its callback.
    #[inline]
    pub unsafe fn submit(&self) -> Option<Result<()>> {
        let task = self.0.get()?;
        // SAFETY: as the caller says.
        Some(unsafe { call!(doca_task_submit(task.as_ptr())) })
    }
}

/// A task in C: the library's own type, and the common one that it converts to.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// `doca_<library>_task_<kind>`
    pub own: NonNull<c_void>,
    /// The same as a `doca_task`.
    pub common: NonNull<doca_task>,
}

/// The C task of a slot, made when the slot is first used and kept for its next uses.
#[derive(Debug, Default)]
pub struct Kept(Cell<Option<Task>>);

impl Kept {
    /// The task, if there is one.
    #[inline]
    pub fn get(&self) -> Option<Task> {
        self.0.get()
    }

    /// Keeps a new task.
    pub fn put(&self, task: Task) {
        self.0.set(Some(task));
    }

    /// Frees the task, if there is one.
    ///
    /// # Safety
    ///
    /// It is not in flight, and its context is alive.
    pub unsafe fn free(&self) {
        if let Some(task) = self.0.take() {
            // SAFETY: a live task that is forgotten here; not in flight, as the caller says.
            unsafe { doca_sys::doca_task_free(task.common.as_ptr()) };
        }
    }
}

/// Hands a task to DOCA. After an error it is still ours.
///
/// # Safety
///
/// A live task that is not in flight, whose fields are valid and stay so until its callback.
#[inline]
pub unsafe fn submit(task: Task) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { call!(doca_task_submit(task.common.as_ptr())) }
}

/// How a task ended.
///
/// # Safety
///
/// A live task, in its callback.
pub unsafe fn status(task: *mut doca_task) -> Code {
    // SAFETY: as the caller says.
    Code::from_raw(unsafe { doca_sys::doca_task_get_status(task) }.0)
}
