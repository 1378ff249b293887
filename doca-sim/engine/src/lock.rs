//! Locking in a library that survives panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose contents are whole between any two statements, so that a panic elsewhere spoils nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
