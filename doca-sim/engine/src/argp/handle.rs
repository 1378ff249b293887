//! The handles of parameters and commands: drafts that a program fills in, until the parser takes them.

use crate::code::{Code, Res};
use crate::entry::{In, Object, Tag};
use crate::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a handle can hold.
pub trait Draft: Clone + Default + Send + 'static {
    /// The mark of handles of this type.
    const TAG: u32;
}

/// `struct doca_argp_param` or `struct doca_argp_cmd`.
#[repr(C)]
pub struct Handle<T> {
    tag: Tag,
    taken: AtomicBool,
    draft: Mutex<T>,
}

// SAFETY: `repr(C)`, and the tag comes first.
unsafe impl<T: Draft> Object for Handle<T> {
    const TAG: u32 = T::TAG;
}

impl<T: Draft> Handle<T> {
    /// A new one, owned by the program.
    pub(super) fn create() -> *const Self {
        let handle = Handle {
            tag: Tag::live::<Self>(),
            taken: AtomicBool::new(false),
            draft: Mutex::new(T::default()),
        };
        Box::into_raw(Box::new(handle))
    }

    /// Changes a draft. BAD_STATE once the parser has taken it.
    pub(super) fn edit<R>(&self, change: impl FnOnce(&mut T) -> R) -> Res<R> {
        if self.taken.load(Ordering::Relaxed) {
            return Err(Code::BAD_STATE);
        }
        Ok(change(&mut lock(&self.draft)))
    }
}

/// A handle that the parser owns. It stays valid for the program to name, and goes with this.
pub(super) struct Taken<T: Draft>(*const Handle<T>);

// SAFETY: a handle is made of atomics and a mutex over something `Send`, and this is its only owner.
unsafe impl<T: Draft> Send for Taken<T> {}

impl<T: Draft> Taken<T> {
    /// Takes a handle from the program. BAD_STATE if that has happened before.
    pub(super) fn take(handle: &In<Handle<T>>) -> Res<Self> {
        if handle.get()?.taken.swap(true, Ordering::Relaxed) {
            return Err(Code::BAD_STATE);
        }
        Ok(Taken(handle.raw()))
    }

    /// What the program has declared.
    pub(super) fn draft(&self) -> T {
        // SAFETY: the handle was live when it was taken, and only dropping this ends it.
        lock(&unsafe { &*self.0 }.draft).clone()
    }
}

impl<T: Draft> Drop for Taken<T> {
    fn drop(&mut self) {
        // SAFETY: made by `Handle::create` and taken once, so nothing else frees it; the program has given it
        // away and may not use it after the parser has gone.
        let handle = unsafe { Box::from_raw(self.0.cast_mut()) };
        handle.tag.kill();
    }
}
