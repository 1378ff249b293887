//! The twins of inline functions do what the headers' own would.

use doca_sys::{
    DOCA_ERROR_PROPAGATE, DOCA_IS_ERROR, doca_buf, doca_buf_inventory, doca_buf_inventory_buf_get_by_addr,
    doca_buf_inventory_buf_get_by_data, doca_error_t, doca_mmap, doca_version,
};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr;

/// What the exported function was called with: window address and length, data address and length.
type Call = (usize, usize, usize, usize);

thread_local! {
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
}

/// Stands in the way of the library's function of that name: a program's own symbols come before a library's.
#[unsafe(no_mangle)]
extern "C" fn doca_buf_inventory_buf_get_by_args(
    _inventory: *mut doca_buf_inventory,
    _mmap: *mut doca_mmap,
    addr: *mut c_void,
    len: usize,
    data: *mut c_void,
    data_len: usize,
    _buf: *mut *mut doca_buf,
) -> doca_error_t {
    CALL.set(Some((addr as usize, len, data as usize, data_len)));
    doca_error_t::DOCA_ERROR_NO_MEMORY
}

#[test]
fn a_buffer_by_address_is_a_window_without_data() {
    let addr = ptr::without_provenance_mut(0x1000);
    // SAFETY: the stand-in above looks at no pointer.
    let result = unsafe {
        doca_buf_inventory_buf_get_by_addr(ptr::null_mut(), ptr::null_mut(), addr, 64, ptr::null_mut())
    };
    assert_eq!(result, doca_error_t::DOCA_ERROR_NO_MEMORY);
    assert_eq!(CALL.get(), Some((0x1000, 64, 0x1000, 0)));
}

#[test]
fn a_buffer_by_data_is_full() {
    let data = ptr::without_provenance_mut(0x2000);
    // SAFETY: the stand-in above looks at no pointer.
    let result = unsafe {
        doca_buf_inventory_buf_get_by_data(ptr::null_mut(), ptr::null_mut(), data, 16, ptr::null_mut())
    };
    assert_eq!(result, doca_error_t::DOCA_ERROR_NO_MEMORY);
    assert_eq!(CALL.get(), Some((0x2000, 16, 0x2000, 16)));
}

#[test]
fn the_version_is_that_of_the_headers() {
    // SAFETY: the string is a constant of the bindings.
    let version = unsafe { CStr::from_ptr(doca_version()) }.to_str().unwrap();
    assert!(version.starts_with("3."), "{version}");
    // The module and the header may be of different builds, but not of different releases.
    let release = |text: &str| text.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(release(version), release(doca_sys::built::VERSION_FULL));
    assert_eq!(release(version), release(doca_sys::built::VERSION));
}

#[test]
fn the_first_error_stays() {
    let mut result = doca_error_t::DOCA_SUCCESS;
    assert!(!DOCA_IS_ERROR(result));
    DOCA_ERROR_PROPAGATE(&mut result, doca_error_t::DOCA_SUCCESS);
    assert_eq!(result, doca_error_t::DOCA_SUCCESS);
    DOCA_ERROR_PROPAGATE(&mut result, doca_error_t::DOCA_ERROR_AGAIN);
    DOCA_ERROR_PROPAGATE(&mut result, doca_error_t::DOCA_ERROR_FULL);
    assert_eq!(result, doca_error_t::DOCA_ERROR_AGAIN);
    assert!(DOCA_IS_ERROR(result));
}
