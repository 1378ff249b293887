//! `doca_version.h`: which release this claims to be.

use crate::entry::Text;
use crate::fault;
use std::ffi::c_char;

crate::entry! {
    /// The release of the public library that asks, or another one on request.
    fn version_runtime(own: Text) -> *const c_char = std::ptr::null(); {
        fault::version().or(own.get().ok()).map_or(std::ptr::null(), |text| text.as_ptr())
    }
}
