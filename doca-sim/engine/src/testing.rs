//! For unit tests: calling entries as C does, and a device to work with.

use crate::abi::dev::*;
use crate::code::Code;
use crate::dev::{Dev, Devinfo};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls an entry; arguments become what its parameters are: `&mut x` an out-parameter, a pointer a handle.
macro_rules! call {
    ($entry:ident($($arg:expr),* $(,)?)) => {{
        #[allow(clippy::useless_conversion, reason = "some arguments are what they should become")]
        // SAFETY: tests pass NULL, live objects, and room of the size that the header asks for.
        unsafe { $entry($(From::from($arg)),*) }
    }};
}
pub(crate) use call;

/// Calls entries that must succeed.
macro_rules! ok {
    ($($entry:ident($($arg:expr),* $(,)?);)+) => {
        $(assert_eq!($crate::testing::call!($entry($($arg),*)), $crate::code::Code::SUCCESS, stringify!($entry));)+
    };
}
pub(crate) use ok;

/// Calls entries that must fail, each with its code.
macro_rules! fails {
    ($($code:ident $entry:ident($($arg:expr),* $(,)?);)+) => {
        $(assert_eq!($crate::testing::call!($entry($($arg),*)), $crate::code::Code::$code, stringify!($entry ($($arg),*)));)+
    };
}
pub(crate) use fails;

/// The host's two devices, opened; one test at a time has them.
pub(crate) struct Devices {
    pub(crate) first: *const Dev,
    pub(crate) second: *const Dev,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Devices {
    pub(crate) fn open() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let list = List::new();
        let (mut first, mut second) = (ptr::null(), ptr::null());
        ok! {
            doca_dev_open(list.get(0), &mut first);
            doca_dev_open(list.get(1), &mut second);
        }
        Devices { first, second, _alone: alone }
    }

    /// Closes both, which fails if a test left anything behind.
    pub(crate) fn close(self) {
        ok! {
            doca_dev_close(self.first);
            doca_dev_close(self.second);
        }
    }
}

/// A list of devices, destroyed on drop.
pub(crate) struct List {
    pub(crate) array: *mut *mut Devinfo,
    pub(crate) count: u32,
}

impl List {
    pub(crate) fn new() -> Self {
        let (mut array, mut count) = (ptr::null_mut(), 0);
        ok!(doca_devinfo_create_list(&mut array, &mut count););
        List { array, count }
    }

    pub(crate) fn get(&self, index: u32) -> *const Devinfo {
        assert!(index < self.count);
        // SAFETY: the array has `count` elements.
        unsafe { *self.array.add(index as usize) }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        assert_eq!(call!(doca_devinfo_destroy_list(self.array.cast_const())), Code::SUCCESS);
    }
}
