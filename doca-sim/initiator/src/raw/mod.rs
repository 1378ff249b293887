//! C functions: librdmacm makes the connection, DOCA carries the messages.

mod cm;
mod device;
mod link;
mod memory;

pub(crate) use link::{Layout, Link};

use crate::Error;
use doca_sys::doca_error_t;
use std::ffi::CStr;

/// Anything but SUCCESS as an error that names the function.
fn check(call: &'static str, code: doca_error_t) -> Result<(), Error> {
    if code == doca_error_t::DOCA_SUCCESS { Ok(()) } else { Err(Error::Doca { call, name: name(code) }) }
}

/// The name of an error code.
fn name(code: doca_error_t) -> String {
    // SAFETY: takes any number, and gives a static text.
    let text = unsafe { CStr::from_ptr(doca_sys::doca_error_get_name(code)) };
    text.to_string_lossy().into_owned()
}

macro_rules! doca {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $crate::raw::check(stringify!($function), doca_sys::$function($($argument),*))
    };
}
use doca;
