//! `doca_task`

use crate::call;
use crate::error::{Code, Result};
use crate::raw::number;
use crate::slot::Token;
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

/// The C tasks of a context, one for each slot of its slab, made when a slot is first used.
#[derive(Debug)]
pub struct Tasks(Box<[Cell<Option<Task>>]>);

impl Tasks {
    /// Room for this many.
    pub fn new(len: usize) -> Self {
        Tasks(vec![Cell::new(None); len].into_boxed_slice())
    }

    /// The task of a slot, addressed to this token, if the slot was used before.
    ///
    /// # Safety
    ///
    /// The slot is held: its task is not in flight.
    #[inline]
    pub unsafe fn get(&self, token: Token) -> Option<Task> {
        let task = self.0[token.index as usize].get()?;
        // SAFETY: a live task that is ours, as the caller says.
        unsafe { doca_sys::doca_task_set_user_data(task.common.as_ptr(), number(token.to_bits())) };
        Some(task)
    }

    /// Keeps a new task of a slot.
    pub fn put(&self, token: Token, task: Task) {
        self.0[token.index as usize].set(Some(task));
    }

    /// Frees the tasks that `is_flying` does not hold back.
    ///
    /// # Safety
    ///
    /// `is_flying` tells for every index whether the task is in flight, and the context is alive.
    pub unsafe fn free_idle(&self, is_flying: impl Fn(usize) -> bool) {
        for (index, cell) in self.0.iter().enumerate() {
            if cell.get().is_some()
                && !is_flying(index)
                && let Some(task) = cell.take()
            {
                // SAFETY: a live task, not in flight, and forgotten here.
                unsafe { doca_sys::doca_task_free(task.common.as_ptr()) };
            }
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
