//! Which engines are inside DOCA on this thread: callbacks find their context through them.
//!
//! User data of contexts carries numbers, never pointers: a callback that comes when nobody is inside DOCA, or with a
//! number that is not known, finds nothing and does nothing.

use crate::context::Member;
use crate::engine::Core;
use crate::raw::members::MemberId;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

thread_local! {
    /// The engines of this thread, each of which knows the next.
    static FIRST: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Makes callbacks find an engine.
pub(crate) fn register(core: &Rc<Core>) {
    core.next.set(FIRST.replace(Rc::as_ptr(core)));
}

/// The engine goes.
pub(crate) fn unregister(core: &Core) {
    if ptr::eq(FIRST.get(), core) {
        FIRST.set(core.next.get());
    } else if let Some(before) = engines().find(|other| ptr::eq(other.next.get(), core)) {
        before.next.set(core.next.get());
    }
}

/// The engines of this thread. None may come or go meanwhile.
fn engines<'a>() -> impl Iterator<Item = &'a Core> {
    let mut next = FIRST.get();
    std::iter::from_fn(move || {
        // SAFETY: registered, so alive: an engine leaves the list before it goes, which does not happen meanwhile.
        let core = unsafe { next.as_ref() }?;
        next = core.next.get();
        Some(core)
    })
}

/// Those that are inside DOCA. They stay as long as they are: whoever entered DOCA has them borrowed.
#[inline]
fn inside<'a>() -> impl Iterator<Item = &'a Core> {
    engines().filter(|core| core.is_inside())
}

/// Whether an engine is inside DOCA on this thread.
pub(crate) fn is_inside() -> bool {
    inside().next().is_some()
}

/// Calls `body` with the engine that is inside DOCA and the member that user data names, if it is one of type `M`.
/// For what every task does.
///
/// # Safety
///
/// `body` runs no code of users and calls nothing that adds or removes contexts.
#[inline]
pub unsafe fn record<M: Member>(data: u64, body: impl FnOnce(&Core, &M)) {
    let id = MemberId::from_bits(data);
    for core in inside() {
        // SAFETY: the reference lives as long as `body` runs, which adds and removes nothing, as the caller says.
        if let Some(member) = unsafe { core.members().peek(id) } {
            return body(core, member);
        }
    }
}

/// Calls `body` with the engine that is inside DOCA and the member that user data names. A panic is kept there
/// until progress returned, so nothing unwinds into C.
pub fn member(data: u64, body: impl FnOnce(&Core, &dyn Member)) {
    let id = MemberId::from_bits(data);
    let Some((core, member)) = inside().find_map(|core| Some((core, core.members().get(id)?))) else {
        return;
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(core, &*member))) {
        core.keep(panic);
    }
}

/// Calls `body` with the members of the engines that are inside DOCA until one says that it was meant, for callbacks
/// whose user data is not the context's. It must not run user code, nor add or remove contexts.
pub fn search(mut body: impl FnMut(&Core, &dyn Member) -> bool) {
    inside().any(|core| core.members().any(|member| body(core, member)));
}
