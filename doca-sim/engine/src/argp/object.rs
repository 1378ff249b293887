//! JSON objects for callbacks that take a `struct json_object *`. That type is json-c's, and a program that
//! uses it has json-c loaded; the engine does not link it.

use crate::code::{Code, Res};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

/// The two functions of json-c that are needed.
struct JsonC {
    parse: Parse,
    put: Put,
}

/// `json_tokener_parse`: NULL, or an object with one reference.
type Parse = unsafe extern "C" fn(*const c_char) -> *mut c_void;
/// `json_object_put`: gives a reference back.
type Put = unsafe extern "C" fn(*mut c_void) -> c_int;

impl JsonC {
    /// Those of the library that the process has loaded.
    fn loaded() -> Option<Self> {
        let symbol = |name: &CStr| {
            // SAFETY: the name is NUL-terminated, and only libraries that are loaded already are searched.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let (parse, put) = (symbol(c"json_tokener_parse")?, symbol(c"json_object_put")?);
        // SAFETY: json-c declares the functions of these names with these types.
        let (parse, put) =
            unsafe { (transmute::<*mut c_void, Parse>(parse), transmute::<*mut c_void, Put>(put)) };
        Some(JsonC { parse, put })
    }

    fn lend(&self, text: &CStr, call: impl FnOnce(*mut c_void) -> Res) -> Res {
        // SAFETY: the text is NUL-terminated.
        let object = unsafe { (self.parse)(text.as_ptr()) };
        if object.is_null() {
            return Err(Code::IO_FAILED);
        }
        let result = call(object);
        // SAFETY: gives back the one reference that parsing gave.
        unsafe { (self.put)(object) };
        result
    }
}

/// Calls a function with json-c's form of an object. NOT_SUPPORTED where json-c is not loaded.
pub(super) fn lend(text: &CStr, call: impl FnOnce(*mut c_void) -> Res) -> Res {
    JsonC::loaded().ok_or(Code::NOT_SUPPORTED)?.lend(text, call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static LIVE: Cell<i32> = const { Cell::new(0) };
    }

    /// Stands for json-c: an "object" is the text that was parsed.
    const FAKE: JsonC = JsonC { parse, put };

    unsafe extern "C" fn parse(text: *const c_char) -> *mut c_void {
        // SAFETY: `lend` passes a NUL-terminated text.
        if unsafe { *text } != b'{'.cast_signed() {
            return std::ptr::null_mut();
        }
        LIVE.set(LIVE.get() + 1);
        text.cast_mut().cast()
    }

    unsafe extern "C" fn put(_: *mut c_void) -> c_int {
        LIVE.set(LIVE.get() - 1);
        1
    }

    #[test]
    fn an_object_is_lent_and_released() {
        let text = c"{\"a\": 1}";
        for result in [Ok(()), Err(Code::NOT_FOUND)] {
            let lent = FAKE.lend(text, |object| {
                assert_eq!((object.cast_const().cast(), LIVE.get()), (text.as_ptr(), 1));
                result
            });
            assert_eq!((lent, LIVE.get()), (result, 0));
        }
        assert_eq!(FAKE.lend(c"no object", |_| Ok(())), Err(Code::IO_FAILED));
    }
}
