//! `doca_error.h`: what the codes are called.

use crate::code::{Code, TABLE};
use crate::entry;
use std::ffi::{CStr, c_char};

/// What both functions say about a number that is no code.
const UNRECOGNIZED: &CStr = c"unrecognized error code";

fn row(error: Code) -> (&'static CStr, &'static CStr) {
    usize::try_from(error.0)
        .ok()
        .and_then(|at| TABLE.get(at))
        .copied()
        .unwrap_or((UNRECOGNIZED, UNRECOGNIZED))
}

entry! {
    /// The enumerator's full name.
    fn doca_error_get_name(error: Code) -> *const c_char = UNRECOGNIZED.as_ptr(); {
        row(error).0.as_ptr()
    }

    /// A short description.
    fn doca_error_get_descr(error: Code) -> *const c_char = UNRECOGNIZED.as_ptr(); {
        row(error).1.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(code: u32) -> &'static str {
        row(Code(code)).0.to_str().unwrap()
    }

    #[test]
    fn each_code_stands_at_its_value() {
        assert_eq!(TABLE.len(), 31);
        assert_eq!(name(0), "DOCA_SUCCESS");
        assert_eq!(name(Code::NOT_SUPPORTED.0), "DOCA_ERROR_NOT_SUPPORTED");
        assert_eq!(name(Code::IO_FAILED.0), "DOCA_ERROR_IO_FAILED");
        assert_eq!(name(Code::SKIPPED.0), "DOCA_ERROR_SKIPPED");
        assert_eq!(row(Code::NO_MEMORY).1, c"Memory allocation failure");
    }

    #[test]
    fn other_numbers_have_an_answer_too() {
        for number in [31, 1000, u32::MAX] {
            assert_eq!(row(Code(number)), (UNRECOGNIZED, UNRECOGNIZED));
        }
    }
}
