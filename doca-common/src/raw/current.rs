//! Which engine is inside DOCA on this thread: callbacks find their context through it.
//!
//! User data carries numbers, never pointers: a callback that comes when nobody is inside DOCA, or with a number
//! that is not known, finds nothing and does nothing.

use crate::context::Member;
use crate::engine::{Core, MemberId};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

thread_local! {
    static CURRENT: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Runs `call`, during which callbacks belong to `core`.
#[inline]
pub(crate) fn enter<T>(core: &Core, call: impl FnOnce() -> T) -> T {
    struct Leave(*const Core);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _leave = Leave(CURRENT.replace(core));
    call()
}

/// Whether an engine is inside DOCA on this thread.
pub(crate) fn is_inside() -> bool {
    !CURRENT.get().is_null()
}

/// Calls `body` with the engine that is inside DOCA and the member that user data names. For what every task does:
/// it must not run user code, so there is no panic to be kept.
#[inline]
pub fn record(data: u64, body: impl FnOnce(&Core, &dyn Member)) {
    let core = CURRENT.get();
    if core.is_null() {
        return;
    }
    // SAFETY: set by `enter`, whose borrow of the engine lasts until it sets it back.
    let core = unsafe { &*core };
    core.with_member(MemberId::from_bits(data), |member| body(core, member));
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
        if let Some(member) = core.member(MemberId::from_bits(data)) {
            body(core, &*member);
        }
    });
    if let Err(panic) = catch_unwind(call) {
        core.keep(panic);
    }
}
