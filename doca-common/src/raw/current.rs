//! Which engine is inside DOCA on this thread: callbacks find their context through it.
//!
//! User data carries numbers, never pointers: a callback that comes when nobody is inside DOCA, or with a number
//! that is not known, finds nothing and does nothing.

use crate::context::Member;
use crate::engine::Core;
use crate::raw::members::MemberId;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

thread_local! {
    static CURRENT: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Runs `call`, during which callbacks belong to `core`.
#[inline]
pub(crate) fn enter<T>(core: &Core, call: impl FnOnce() -> T) -> T {
    struct Leave<'a>(&'a Core, *const Core);
    impl Drop for Leave<'_> {
        #[inline]
        fn drop(&mut self) {
            CURRENT.set(self.1);
            if !self.1.is_null() {
                self.0.outer.set(ptr::null());
            }
        }
    }
    let outer = CURRENT.replace(core);
    if !outer.is_null() {
        core.outer.set(outer);
    }
    let _leave = Leave(core, outer);
    call()
}

/// Whether an engine is inside DOCA on this thread.
#[inline]
pub(crate) fn is_inside() -> bool {
    !CURRENT.get().is_null()
}

/// Whether this engine is inside DOCA: the innermost, or one around it.
#[cold]
pub(crate) fn is_inside_of(core: &Core) -> bool {
    let mut inner = CURRENT.get();
    while !inner.is_null() && !ptr::eq(inner, core) {
        // SAFETY: each was set by a call of `enter` that has not returned yet, whose borrow keeps the engine.
        inner = unsafe { &*inner }.outer.get();
    }
    !inner.is_null()
}

/// Calls `body` with the engine that is inside DOCA and the member that user data names, if it is one of type `M`.
/// For what every task does.
///
/// # Safety
///
/// `body` runs no code of users and calls nothing that adds or removes contexts.
#[inline]
pub unsafe fn record<M: Member>(data: u64, body: impl FnOnce(&Core, &M)) {
    let core = CURRENT.get();
    if core.is_null() {
        return;
    }
    // SAFETY: set by `enter`, whose borrow of the engine lasts until it sets it back.
    let core = unsafe { &*core };
    // SAFETY: the reference lives as long as `body` runs, which adds and removes nothing, as the caller says.
    if let Some(member) = unsafe { core.members().peek(MemberId::from_bits(data)) } {
        body(core, member);
    }
}

/// Calls `body` with the engine that is inside DOCA and the member that user data names. A panic is kept there
/// until progress returned, so nothing unwinds into C.
pub fn member(data: u64, body: impl FnOnce(&Core, &dyn Member)) {
    let core = CURRENT.get();
    if core.is_null() {
        return;
    }
    // SAFETY: set by `enter`, whose borrow of the engine lasts until it sets it back.
    let core = unsafe { &*core };
    let call = AssertUnwindSafe(|| {
        if let Some(member) = core.members().get(MemberId::from_bits(data)) {
            body(core, &*member);
        }
    });
    if let Err(panic) = catch_unwind(call) {
        core.keep(panic);
    }
}

/// Calls `body` with the members of the engine that is inside DOCA until one says that it was meant, for callbacks
/// whose user data is not the context's. It must not run user code, nor add or remove contexts.
pub fn search(mut body: impl FnMut(&Core, &dyn Member) -> bool) {
    let core = CURRENT.get();
    if core.is_null() {
        return;
    }
    // SAFETY: set by `enter`, whose borrow of the engine lasts until it sets it back.
    let core = unsafe { &*core };
    core.members().any(|member| body(core, member));
}
