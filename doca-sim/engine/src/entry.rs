//! The boundary between C and the engine: how a pointer from a program becomes a reference, how a result
//! becomes a code, and how a panic stops here.

use crate::code::{Code, Res};
use crate::fault;
use crate::fork;
use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

/// Marks a live object of one type, so that a pointer to something else, or to something already destroyed
/// and not yet reused, is refused. It is a seat belt, not a proof: C programs own their pointers.
#[repr(transparent)]
#[derive(Debug)]
pub struct Tag(AtomicU32);

impl Tag {
    /// The mark of a live `T`.
    pub fn live<T: Object>() -> Self {
        Tag(AtomicU32::new(T::TAG))
    }

    /// Called by the object's destroy function, before its memory goes.
    pub fn kill(&self) {
        self.0.store(0xdead_0bad, Ordering::Relaxed);
    }
}

/// An object that C programs hold by pointer.
///
/// # Safety
///
/// The type is `#[repr(C)]` and its first field is a [`Tag`] made by `Tag::live::<Self>()`.
pub unsafe trait Object: Sized {
    /// Four bytes that no other object type uses, for example `u32::from_le_bytes(*b"mmap")`.
    const TAG: u32;

    /// Whether a forked child can go on using it.
    const SURVIVES_FORK: bool = false;
}

/// A pointer to an object, as C handed it to an entry. (Same layout as the C pointer.)
///
/// Values of this type come from C only: whoever calls the C function promises that the pointer is NULL or
/// points to an object of this library that is live during the call. That promise is what makes the safe
/// methods below sound.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Object> In<T> {
    /// The object, or INVALID_VALUE for NULL and for a pointer to anything else; BAD_STATE in a forked child.
    pub fn get(&self) -> Res<&T> {
        if self.0.is_null() || !self.0.is_aligned() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not NULL, aligned, and by the promise of the type an object of this library, all of which
        // start with a tag.
        let tag = unsafe { (*self.0.cast::<Tag>()).0.load(Ordering::Relaxed) };
        if tag != T::TAG {
            return Err(Code::INVALID_VALUE);
        }
        if !T::SURVIVES_FORK {
            fork::require_none()?;
        }
        // SAFETY: the tag says that a live `T` is here.
        Ok(unsafe { &*self.0 })
    }

    /// The object, or `None` for NULL; anything else is INVALID_VALUE.
    pub fn optional(&self) -> Res<Option<&T>> {
        if self.0.is_null() { Ok(None) } else { self.get().map(Some) }
    }
}

impl<T> In<T> {
    /// The bare pointer.
    pub fn raw(&self) -> *const T {
        self.0
    }
}

impl In<u64> {
    /// The number (for example a `union doca_data`), or `None` for NULL.
    pub fn value(&self) -> Option<u64> {
        // SAFETY: the C functions that take a number by pointer ask for NULL or for one that can be read.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

impl In<u8> {
    /// Bytes whose number C gave beside the pointer, or INVALID_VALUE for NULL and for none.
    pub fn bytes(&self, len: usize) -> Res<&[u8]> {
        if self.0.is_null() || len == 0 || isize::try_from(len).is_err() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not NULL, and by the C functions that take bytes and their number valid for reading during
        // the call.
        Ok(unsafe { std::slice::from_raw_parts(self.0, len) })
    }
}

/// An out-parameter as C handed it to an entry: NULL or valid for one write of a `T`.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// INVALID_VALUE for NULL. To be called before anything is changed.
    pub fn check(&self) -> Res {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes the result, or INVALID_VALUE for NULL.
    pub fn put(&self, value: T) -> Res {
        self.check()?;
        // SAFETY: not NULL, and by the promise of the type valid for this write.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes the result if the pointer is not NULL.
    pub fn put_if_wanted(&self, value: T) {
        let _ = self.put(value);
    }

    /// Writes an array, or INVALID_VALUE for NULL. The C function's contract says how many elements there is
    /// room for, and `values` holds no more.
    pub fn put_all(&self, values: &[T]) -> Res
    where
        T: Copy,
    {
        self.check()?;
        // SAFETY: not NULL, and by the contract that the caller names valid for these writes; a slice of ours
        // cannot overlap memory that the program has lent for writing.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.0, values.len()) };
        Ok(())
    }

    /// The bare pointer, for arrays.
    pub fn raw(&self) -> *mut T {
        self.0
    }
}

impl Out<c_char> {
    /// Writes a string and its NUL. INVALID_VALUE for NULL, for less room than the constant of the header
    /// (`least`) asks for, and for a string that does not fit.
    pub fn put_text(&self, text: &str, room: u32, least: u32) -> Res {
        if room < least || text.len() >= room as usize {
            return Err(Code::INVALID_VALUE);
        }
        self.check()?;
        let bytes: Vec<c_char> = text.bytes().chain([0]).map(|byte| byte as c_char).collect();
        self.put_all(&bytes)
    }
}

/// A C string as C handed it to an entry: NULL or NUL-terminated.
#[repr(transparent)]
pub struct Text(*const std::ffi::c_char);

impl Text {
    /// The string, or INVALID_VALUE for NULL.
    pub fn get(&self) -> Res<&std::ffi::CStr> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not NULL, and by the promise of the type NUL-terminated and live during the call.
        Ok(unsafe { std::ffi::CStr::from_ptr(self.0) })
    }

    /// The string as UTF-8, or INVALID_VALUE for NULL and for other bytes.
    pub fn utf8(&self) -> Res<&str> {
        self.get()?.to_str().map_err(|_| Code::INVALID_VALUE)
    }
}

/// Runs the body of an entry; a panic is logged and becomes UNEXPECTED instead of unwinding into C.
pub fn boundary(name: &'static str, body: impl FnOnce() -> Res) -> Code {
    let injected = if fault::armed() { fault::call(name) } else { None };
    let code = match injected.map_or_else(|| guard(name, Err(Code::UNEXPECTED), body), Err) {
        Ok(()) => Code::SUCCESS,
        Err(code) => code,
    };
    crate::trace::call(name, Some(code));
    code
}

/// The same for entries that do not return `doca_error_t`. What is to fail gives the fallback, and `errno`.
pub fn boundary_or<T>(name: &'static str, fallback: T, body: impl FnOnce() -> T) -> T {
    let injected = if fault::armed() { fault::system(name) } else { None };
    let value = match injected {
        Some(errno) => {
            // SAFETY: the calling thread's own errno.
            unsafe { *libc::__errno_location() = errno };
            fallback
        }
        None => guard(name, fallback, body),
    };
    crate::trace::call(name, None);
    value
}

fn guard<T>(name: &'static str, fallback: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(panic) => {
            crate::log::error!("{name}: {}", explain(&*panic));
            fallback
        }
    }
}

/// What a panic in an entry means. No cell of an object is borrowed while user code runs, so whoever meets a
/// borrowed one is a second thread.
fn explain(panic: &(dyn Any + Send)) -> &'static str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    if text.contains("already") && text.contains("borrowed") {
        "called while another thread was using the same object; a progress engine, its contexts, connections, \
         tasks and buffers are for one thread at a time"
    } else {
        "internal error of the simulator, please report it"
    }
}

/// Declares entries: `fn doca_x(args) { body }` becomes the exported `sim_doca_x`, whose body is a
/// `Res` (for functions that return `doca_error_t`), or `fn doca_x(args) -> T = fallback { body }`.
#[macro_export]
macro_rules! entry {
    () => {};
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[doc = ""]
        #[doc = "# Safety"]
        #[doc = ""]
        #[doc = "Called through the C function of this name, with what its header asks for."]
        #[unsafe(export_name = concat!("sim_", stringify!($name)))]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::code::Code {
            $crate::entry::boundary(stringify!($name), move || $body)
        }
        $crate::entry!($($rest)*);
    };
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty = $fallback:expr; $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[doc = ""]
        #[doc = "# Safety"]
        #[doc = ""]
        #[doc = "Called through the C function of this name, with what its header asks for."]
        #[unsafe(export_name = concat!("sim_", stringify!($name)))]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            $crate::entry::boundary_or(stringify!($name), $fallback, move || $body)
        }
        $crate::entry!($($rest)*);
    };
}

#[cfg(test)]
mod as_c_does {
    use super::{In, Out, Text};

    impl<T> From<*const T> for In<T> {
        fn from(pointer: *const T) -> Self {
            In(pointer)
        }
    }

    impl<T> From<&mut T> for Out<T> {
        fn from(room: &mut T) -> Self {
            Out(room)
        }
    }

    impl<T> From<*mut T> for Out<T> {
        fn from(room: *mut T) -> Self {
            Out(room)
        }
    }

    impl From<*const std::ffi::c_char> for Text {
        fn from(text: *const std::ffi::c_char) -> Self {
            Text(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::explain;
    use std::cell::RefCell;
    use std::panic::catch_unwind;

    #[test]
    fn a_second_thread_is_told_from_an_internal_error() {
        let explained = |body: fn()| explain(&*catch_unwind(body).expect_err("it panics"));
        let while_written = explained(|| {
            let cell = RefCell::new(0);
            let _first = cell.borrow_mut();
            let _second = cell.borrow();
        });
        let while_read = explained(|| {
            let cell = RefCell::new(0);
            let _first = cell.borrow();
            let _second = cell.borrow_mut();
        });
        for text in [while_written, while_read] {
            assert!(text.contains("another thread"), "{text}");
        }
        assert!(explained(|| panic!("index {} out of bounds", 3)).contains("internal error"));
    }
}
