//! One record as one line of text.

use super::Level;
use std::fmt::{Arguments, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// A message and where it comes from.
pub(super) struct Record<'a> {
    pub(super) level: Level,
    pub(super) file: &'a str,
    pub(super) line: i64,
    pub(super) function: &'a str,
    pub(super) text: Arguments<'a>,
}

impl Record<'_> {
    /// `[HH:MM:SS:usec][thread id][DOCA][LVL][file:line][function] text` and a line end.
    pub(super) fn to_line(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (hour, minute, second) = local_time(now.as_secs());
        let Record { level, line, function, text, .. } = self;
        let file = self.file.rsplit('/').next().unwrap_or_default();
        let (micros, tag) = (now.subsec_micros(), level.tag());
        // SAFETY: asks the kernel for the number of this thread; there is nothing to get wrong.
        let thread = unsafe { libc::gettid() };
        let mut out = String::with_capacity(160);
        // Writing to a String cannot fail.
        _ = write!(
            out,
            "[{hour:02}:{minute:02}:{second:02}:{micros:06}][{thread}][DOCA][{tag}][{file}:{line}]"
        );
        _ = write!(out, "[{function}] {text}");
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out
    }
}

/// Hour, minute and second where the machine is.
fn local_time(seconds: u64) -> (i32, i32, i32) {
    let seconds = libc::time_t::try_from(seconds).unwrap_or_default();
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call; the function fills the structure, and zeroes, which are
    // a value of every field, stay if it fails.
    let parts = unsafe {
        libc::localtime_r(&seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    (parts.tm_hour, parts.tm_min, parts.tm_sec)
}
