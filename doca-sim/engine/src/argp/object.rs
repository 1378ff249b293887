//! JSON objects for callbacks that take a `struct json_object *`. That type is json-c's, and a program that
//! uses it has json-c loaded; the engine does not link it.

use crate::code::{Code, Res};
use std::ffi::{CStr, c_char, c_int, c_void};

type Parse = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type Put = unsafe extern "C" fn(*mut c_void) -> c_int;

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is NUL-terminated, and only libraries that the process has loaded are searched.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Calls a function with json-c's form of an object. NOT_SUPPORTED where json-c is not loaded.
pub(super) fn lend(text: &CStr, call: impl FnOnce(*mut c_void) -> Res) -> Res {
    let (Some(parse), Some(put)) = (symbol(c"json_tokener_parse"), symbol(c"json_object_put")) else {
        return Err(Code::NOT_SUPPORTED);
    };
    // SAFETY: json-c declares the function of this name with this type.
    let parse: Parse = unsafe { std::mem::transmute(parse) };
    // SAFETY: as above.
    let put: Put = unsafe { std::mem::transmute(put) };
    // SAFETY: the text is NUL-terminated; the result is NULL or an object that is ours to release.
    let object = unsafe { parse(text.as_ptr()) };
    if object.is_null() {
        return Err(Code::IO_FAILED);
    }
    let result = call(object);
    // SAFETY: the one reference that parsing gave.
    unsafe { put(object) };
    result
}
