//! Twins of what DOCA's headers define inline: libraries do not export it, so no linker would find it.

use crate::{DOCA_VERSION_STRING, doca_buf, doca_buf_inventory, doca_buf_inventory_buf_get_by_args};
use crate::{doca_error_t, doca_mmap};
use std::ffi::{c_char, c_void};

/// The version of the headers that this program was built with, as in `3.2.1025`: `doca_version`. The loaded
/// library's is `doca_version_runtime`.
pub const fn doca_version() -> *const c_char {
    DOCA_VERSION_STRING.as_ptr()
}

/// Whether a result is anything but `DOCA_SUCCESS`: `DOCA_IS_ERROR`.
#[allow(non_snake_case, reason = "the C name")]
pub const fn DOCA_IS_ERROR(result: doca_error_t) -> bool {
    result.0 != doca_error_t::DOCA_SUCCESS.0
}

/// Keeps the first error of a sequence: stores `next` in `result` if that is still `DOCA_SUCCESS`.
/// `DOCA_ERROR_PROPAGATE`.
#[allow(non_snake_case, reason = "the C name")]
pub const fn DOCA_ERROR_PROPAGATE(result: &mut doca_error_t, next: doca_error_t) {
    if !DOCA_IS_ERROR(*result) {
        *result = next;
    }
}

/// Takes a buffer over `len` bytes at `addr` that holds no data yet, as destinations are:
/// `doca_buf_inventory_buf_get_by_addr`.
///
/// # Safety
///
/// As for [`doca_buf_inventory_buf_get_by_args`]: the pointers are live objects of DOCA, the inventory and the
/// map are started, `buf` can be written, and no other thread uses inventory or map meanwhile.
pub unsafe fn doca_buf_inventory_buf_get_by_addr(
    inventory: *mut doca_buf_inventory,
    mmap: *mut doca_mmap,
    addr: *mut c_void,
    len: usize,
    buf: *mut *mut doca_buf,
) -> doca_error_t {
    // SAFETY: the caller vouches for the pointers; data of length 0 at `addr` lies in the window [addr, addr+len).
    unsafe { doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr, 0, buf) }
}

/// Takes a buffer over `data_len` bytes at `data` that is full of data, as sources are:
/// `doca_buf_inventory_buf_get_by_data`.
///
/// # Safety
///
/// As for [`doca_buf_inventory_buf_get_by_addr`].
pub unsafe fn doca_buf_inventory_buf_get_by_data(
    inventory: *mut doca_buf_inventory,
    mmap: *mut doca_mmap,
    data: *mut c_void,
    data_len: usize,
    buf: *mut *mut doca_buf,
) -> doca_error_t {
    // SAFETY: the caller vouches for the pointers; the data is the whole window.
    unsafe { doca_buf_inventory_buf_get_by_args(inventory, mmap, data, data_len, data, data_len, buf) }
}
