//! What the tests share.

#![allow(dead_code, reason = "each test uses a part of it")]

/// Each of these once over the control path and once over the fast path.
#[allow(unused_macros, reason = "each test uses a part of it")]
macro_rules! over_both_paths {
    ($($test:ident,)*) => {
        mod control_path {
            $(#[test]
            fn $test() {
                super::$test(&crate::support::pair::Place::with_fast_path("off"));
            })*
        }

        mod fast_path {
            $(#[test]
            fn $test() {
                super::$test(&crate::support::pair::Place::with_fast_path("require"));
            })*
        }
    };
}

pub mod clients;
pub mod pair;
pub mod pipe;
