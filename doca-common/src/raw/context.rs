//! `doca_ctx`

use crate::call;
use crate::context::State;
use crate::error::{Code, Error, Result};
use crate::raw::members::MemberId;
use crate::raw::{as_number, current, number};
use doca_sys::{doca_ctx, doca_ctx_states, doca_data};
use std::ptr::NonNull;

/// The context face of an object of some library. The library's object owns it.
#[derive(Debug)]
pub struct Ctx(NonNull<doca_ctx>);

impl Ctx {
    /// The context of an object, from the library's `as_ctx`.
    ///
    /// # Safety
    ///
    /// `ctx` is the context of an object that is destroyed only by
    /// [`Member::destroy`](crate::context::Member::destroy), or before it was connected to an engine, and this
    /// object is not used afterwards.
    pub unsafe fn new(ctx: *mut doca_ctx) -> Option<Self> {
        NonNull::new(ctx).map(Ctx)
    }

    /// In C.
    pub fn as_ptr(&self) -> *mut doca_ctx {
        self.0.as_ptr()
    }

    /// Makes callbacks find their way to a member of an engine.
    pub(crate) fn address_to(&self, id: MemberId) -> Result<()> {
        // SAFETY: alive, as `new` demands; the callback has the type that DOCA wants.
        unsafe {
            call!(doca_ctx_set_user_data(self.as_ptr(), number(id.to_bits())))?;
            call!(doca_ctx_set_state_changed_cb(self.as_ptr(), Some(state_changed)))
        }
    }

    /// Starts it; true if that is still going on. Callbacks may run inside.
    pub(crate) fn start(&self) -> Result<bool> {
        // SAFETY: alive, as `new` demands.
        going_on(unsafe { call!(doca_ctx_start(self.as_ptr())) })
    }

    /// Stops it; true if that is still going on. Callbacks may run inside.
    pub(crate) fn stop(&self) -> Result<bool> {
        // SAFETY: alive, as `new` demands.
        going_on(unsafe { call!(doca_ctx_stop(self.as_ptr())) })
    }

    pub(crate) fn state(&self) -> Result<State> {
        let mut state = doca_ctx_states(0);
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_ctx_get_state(self.as_ptr(), &mut state)) }?;
        Ok(State::from_raw(state.0))
    }

    pub(crate) fn in_flight(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_ctx_get_num_inflight_tasks(self.as_ptr(), &mut count)) }.map(|()| count)
    }
}

fn going_on(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.code() == Some(Code::IN_PROGRESS) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Records a transition.
unsafe extern "C" fn state_changed(
    data: doca_data,
    _ctx: *mut doca_ctx,
    _before: doca_ctx_states,
    now: doca_ctx_states,
) {
    current::member(as_number(data), |core, member| {
        let state = State::from_raw(now.0);
        member.life().note(state);
        if state != State::Running {
            member.revoke();
        }
        core.mark();
    });
}

/// An error for a handle that DOCA gave as null.
pub fn null(call: &'static str) -> Error {
    Error::doca(call, Code::UNEXPECTED)
}
