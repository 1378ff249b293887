//! `doca_error_get_name`, `doca_error_get_descr`

use crate::error::Code;
use std::ffi::{CStr, c_char};

pub(crate) fn name(code: Code) -> &'static str {
    // SAFETY: takes any number, also one it does not know.
    text(unsafe { doca_sys::doca_error_get_name(doca_sys::doca_error_t(code.as_raw())) })
}

pub(crate) fn description(code: Code) -> &'static str {
    // SAFETY: takes any number, also one it does not know.
    text(unsafe { doca_sys::doca_error_get_descr(doca_sys::doca_error_t(code.as_raw())) })
}

fn text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    // SAFETY: DOCA's strings of errors and versions are terminated and live as long as the process.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}
