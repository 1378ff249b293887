//! `doca_log_backend` of the SDK family

use crate::call;
use crate::error::Result;
use crate::version;
use std::ffi::{CStr, c_char};
use std::panic::catch_unwind;
use std::ptr;

/// Longest message that is passed on; DOCA cuts the rest.
const CAPACITY: usize = 4096;

/// Sends the SDK's messages to `crate::log::forward`, from this level on. Backends live as long as the process, and
/// so does the buffer.
pub(crate) fn route(level: u32) -> Result<()> {
    version::require_fit()?;
    let buffer = Box::into_raw(vec![0u8; CAPACITY].into_boxed_slice());
    let mut backend = ptr::null_mut();
    // SAFETY: DOCA alone writes the buffer, which lives for ever once there is a backend; the handler has the type that
    // DOCA wants.
    let created = unsafe {
        call!(doca_log_backend_create_with_buf_sdk(buffer.cast(), buffer.len(), Some(flush), &mut backend))
    };
    if let Err(error) = created {
        // SAFETY: from a box above, and no backend has it.
        drop(unsafe { Box::from_raw(buffer) });
        return Err(error);
    }
    // SAFETY: a live backend.
    unsafe { call!(doca_log_backend_set_sdk_level(backend, level)) }
}

/// Passes one message on. Runs on whatever thread logs; a panic of the program's logger ends here.
unsafe extern "C" fn flush(text: *mut c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: DOCA passes its buffer with one terminated message, and writes the next only after this returned.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let _ = catch_unwind(|| crate::log::forward(&text));
}
