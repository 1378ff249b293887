//! The C calls, and what the sister crates need to make theirs. Not for applications: the functions here are
//! safe only in the hands of crates that keep the rules written at them.

pub(crate) mod bytes;
pub mod context;
pub mod current;
pub mod device;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod event_task;
pub mod foreign;
pub(crate) mod inventory;
pub(crate) mod log;
pub mod map;
pub(crate) mod members;
pub(crate) mod memfd;
pub(crate) mod pe;
pub(crate) mod remote;
pub(crate) mod representor;
pub mod task;
pub(crate) mod version;

use crate::error::{Code, Error, Result};

/// Turns what a C function returned into a result.
#[inline]
pub fn check(call: &'static str, code: doca_sys::doca_error_t) -> Result<()> {
    match Code::from_raw(code.0) {
        Code::SUCCESS => Ok(()),
        code => Err(Error::doca(call, code)),
    }
}

/// Calls a function of `doca_sys` that returns `doca_error_t`, and names it in the error. For use inside an
/// `unsafe` block.
#[macro_export]
#[doc(hidden)]
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $crate::raw::check(stringify!($function), doca_sys::$function($($argument),*))
    };
}

/// Eight bytes of user data that hold a number.
#[inline]
pub fn number(value: u64) -> doca_sys::doca_data {
    doca_sys::doca_data { u64_: value }
}

/// The number in user data.
#[inline]
pub fn as_number(data: doca_sys::doca_data) -> u64 {
    // SAFETY: any eight bytes are a u64, and both members of the union have eight.
    unsafe { data.u64_ }
}
