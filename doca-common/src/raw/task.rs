//! `doca_task`

use crate::call;
use crate::error::{Code, Result};
use doca_sys::doca_task;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;

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
