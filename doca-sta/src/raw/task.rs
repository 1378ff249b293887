//! `doca_sta_producer_task_send`: the one type of task that all operations share. Each is taken from DOCA when it is
//! submitted, and freed in its callback.

use crate::instance::Instance;
use crate::io_instance::IoInstance;
use doca_common::raw::{as_number, current, number, task};
use doca_common::{Code, Result, call};
use doca_sys::{doca_data, doca_error_t, doca_sta_producer_task_send};
use std::any::Any;
use std::ptr::{self, NonNull};

/// How often a task is submitted while another thread submits to the same execution unit, which takes it moments.
const TRIES: u32 = 1 << 20;

/// Names one operation of one context in a task's user data. A context has a number of its own, since what such a
/// task belongs to cannot be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    /// The context.
    pub(crate) channel: u16,
    /// What it is about.
    pub(crate) index: u32,
    /// Of which use of the place.
    pub(crate) generation: u32,
}

const INDEX_BITS: u32 = 24;
const MASK: u32 = (1 << INDEX_BITS) - 1;

impl Token {
    fn to_data(self) -> doca_data {
        let (index, generation) = (u64::from(self.index & MASK), u64::from(self.generation & MASK));
        number(u64::from(self.channel) << 48 | generation << INDEX_BITS | index)
    }

    fn from_data(data: doca_data) -> Self {
        let bits = as_number(data);
        Token {
            channel: (bits >> 48) as u16,
            index: bits as u32 & MASK,
            generation: (bits >> INDEX_BITS) as u32 & MASK,
        }
    }

    /// Whether this is the generation that was meant, of which the user data has the lower part.
    pub(crate) fn is_generation(self, generation: u32) -> bool {
        self.generation & MASK == generation & MASK
    }
}

/// Takes a task from DOCA by `allocate` and submits it. After an error nothing is in flight.
///
/// # Safety
///
/// `allocate` is one of DOCA's `*_alloc_init` with live arguments, whose task ends in one of the callbacks below.
pub(crate) unsafe fn submit(
    call: &'static str,
    token: Token,
    allocate: impl FnOnce(doca_data, *mut *mut doca_sta_producer_task_send) -> doca_error_t,
) -> Result<()> {
    let mut own = ptr::null_mut();
    doca_common::raw::check(call, allocate(token.to_data(), &mut own))?;
    // SAFETY: DOCA just made it.
    let common = unsafe { doca_sys::doca_sta_producer_send_task_as_task(own) };
    let Some(common) = NonNull::new(common) else {
        return Err(doca_common::raw::context::null("doca_sta_producer_send_task_as_task"));
    };
    let mut tries = TRIES;
    loop {
        // SAFETY: a live task that is not in flight, whose arguments stay as the caller says.
        match unsafe { call!(doca_task_submit(common.as_ptr())) } {
            Ok(()) => return Ok(()),
            Err(error) if error.code() == Some(Code::AGAIN) && tries > 0 => {
                tries -= 1;
                std::hint::spin_loop();
            }
            Err(error) => {
                // SAFETY: it was not taken, so it is ours, and forgotten here.
                unsafe { doca_sys::doca_task_free(common.as_ptr()) };
                return Err(error.with(call));
            }
        }
    }
}

/// How a task of which kind ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    RemoveNamespace,
    DestroyQueue,
    Disconnect,
    Fetch,
    Respond,
}

/// Frees the task and tells its context.
fn finish(own: *mut doca_sta_producer_task_send, data: doca_data, what: Ended, failed: bool) {
    // SAFETY: DOCA passes a live task, whose callback this is. It is not used after it was freed.
    let code = unsafe {
        let common = doca_sys::doca_sta_producer_send_task_as_task(own);
        let code = if failed { task::status(common) } else { Code::SUCCESS };
        doca_sys::doca_task_free(common);
        code
    };
    let token = Token::from_data(data);
    current::search(|core, member| {
        let member = member as &dyn Any;
        let found = if let Some(control) = member.downcast_ref::<Instance>() {
            control.channel() == token.channel && {
                control.task_ended(what, token, code);
                true
            }
        } else if let Some(io) = member.downcast_ref::<IoInstance>() {
            io.channel() == token.channel && {
                io.task_ended(what, token, code);
                true
            }
        } else {
            false
        };
        if found {
            core.mark();
        }
        found
    });
}

macro_rules! callbacks {
    ($($done:ident, $failed:ident: $what:ident;)*) => {
        $(
            pub(crate) unsafe extern "C" fn $done(task: *mut doca_sta_producer_task_send, data: doca_data) {
                finish(task, data, Ended::$what, false);
            }

            pub(crate) unsafe extern "C" fn $failed(task: *mut doca_sta_producer_task_send, data: doca_data) {
                finish(task, data, Ended::$what, true);
            }
        )*
    };
}

callbacks! {
    namespace_removed, namespace_stays: RemoveNamespace;
    queue_destroyed, queue_stays: DestroyQueue;
    disconnected, not_disconnected: Disconnect;
    fetched, not_fetched: Fetch;
    responded, not_responded: Respond;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_user_data() {
        let token = Token { channel: 0xFFFE, index: 0xAB_CDEF, generation: 0x0103_0003 };
        let back = Token::from_data(token.to_data());
        assert_eq!((back.channel, back.index), (token.channel, token.index));
        assert!(back.is_generation(token.generation));
        assert!(!back.is_generation(token.generation + 1));
    }
}
