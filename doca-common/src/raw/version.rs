//! `doca_version_runtime`

use std::ffi::CStr;

/// The version text of the loaded library.
pub(crate) fn loaded() -> String {
    // SAFETY: no argument, no precondition.
    let text = unsafe { doca_sys::doca_version_runtime() };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and DOCA's version text is a terminated static string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
