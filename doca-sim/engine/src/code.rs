//! `doca_error_t`: the codes, their names and their descriptions.

/// A `doca_error_t`. Any value may arrive from a program, so this is a number and not an enum.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u32);

/// What engine functions return.
pub type Res<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($value:literal $name:ident $text:literal;)*) => {
        #[allow(dead_code, reason = "all of doca_error.h, though the engine gives some of them only on request")]
        impl Code {
            $(#[doc = concat!("`DOCA_ERROR_", stringify!($name), "`")] pub const $name: Code = Code($value);)*
        }

        /// Name and description of each code, NUL-terminated, in the order of their values.
        pub(crate) const TABLE: &[(&std::ffi::CStr, &std::ffi::CStr)] = &[
            (c"DOCA_SUCCESS", c"Success"),
            $((
                // The literal ends in the NUL that concat! put there and holds no other.
                match std::ffi::CStr::from_bytes_with_nul(
                    concat!("DOCA_ERROR_", stringify!($name), "\0").as_bytes()) { Ok(s) => s, Err(_) => c"" },
                match std::ffi::CStr::from_bytes_with_nul(
                    concat!($text, "\0").as_bytes()) { Ok(s) => s, Err(_) => c"" },
            ),)*
        ];
    };
}

/// The name in the header, for messages; the number where it has none.
impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match TABLE.get(self.0 as usize) {
            Some((name, _)) => f.write_str(&name.to_string_lossy()),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Code {
    /// `DOCA_SUCCESS`
    pub const SUCCESS: Code = Code(0);
}

codes! {
    1 UNKNOWN "Unclassified failure";
    2 NOT_PERMITTED "Operation not permitted";
    3 IN_USE "Resource is still in use";
    4 NOT_SUPPORTED "Operation not supported";
    5 AGAIN "Resource temporarily unavailable, try again";
    6 INVALID_VALUE "Invalid argument";
    7 NO_MEMORY "Memory allocation failure";
    8 INITIALIZATION "Resource could not be set up";
    9 TIME_OUT "Deadline passed";
    10 SHUTDOWN "Object is being torn down";
    11 CONNECTION_RESET "Connection reset by the peer";
    12 CONNECTION_ABORTED "Connection aborted";
    13 CONNECTION_INPROGRESS "Connection still being made";
    14 NOT_CONNECTED "Not connected";
    15 NO_LOCK "Lock could not be taken";
    16 NOT_FOUND "Nothing matches";
    17 IO_FAILED "Input/Output Operation Failed";
    18 BAD_STATE "Call not allowed in this state";
    19 UNSUPPORTED_VERSION "Version not supported";
    20 OPERATING_SYSTEM "Operating system call failed";
    21 DRIVER "DOCA Driver call failure";
    22 UNEXPECTED "Unexpected internal condition";
    23 ALREADY_EXIST "Already exists";
    24 FULL "Container is full";
    25 EMPTY "Container is empty";
    26 IN_PROGRESS "Operation is in progress";
    27 TOO_BIG "Limit exceeded";
    28 AUTHENTICATION "Authentication failed";
    29 BAD_CONFIG "Invalid configuration";
    30 SKIPPED "Earlier output was dropped";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_names() {
        assert_eq!(format!("{:?} {:?}", Code::IN_USE, Code(31)), "DOCA_ERROR_IN_USE 31");
    }
}
