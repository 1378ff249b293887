//! What command-line tools print.
//!
//! [`print!`] and [`println!`] take the place of the standard library's, which panic when standard output takes no more.
//! With these a closed pipe ends the process by SIGPIPE, as it ends other Unix tools, and any other failure (a full
//! disk) with a message and the status of [`fail_with`]. SIGPIPE stays ignored until then, so that sockets do not raise
//! it. A process that has to put something in order before it ends uses [`try_println!`].

#![forbid(unsafe_code)]

use signal_hook::consts::SIGPIPE;
use std::fmt::{self, Arguments};
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU8, Ordering};

static STATUS: AtomicU8 = AtomicU8::new(1);

/// Sets the exit status for output that cannot be written; it is 1 until then. A closed pipe has none: it is a signal.
pub fn fail_with(status: u8) {
    STATUS.store(status, Ordering::Relaxed);
}

/// Standard output takes no more.
#[derive(Debug)]
pub struct Lost(io::Error);

impl Lost {
    /// Ends the process: quietly by SIGPIPE if nobody reads any more, else with a message.
    pub fn end(&self) -> ! {
        if self.0.kind() == ErrorKind::BrokenPipe {
            // It returns only where the signal is blocked.
            _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
        } else {
            // Where standard error is lost too, nobody can be told.
            _ = writeln!(io::stderr(), "error: {self}");
        }
        std::process::exit(STATUS.load(Ordering::Relaxed).into())
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output: {}", self.0)
    }
}

impl std::error::Error for Lost {}

/// Writes to standard output, and does not keep anything back.
///
/// # Errors
/// It takes no more.
pub fn write(text: Arguments<'_>) -> Result<(), Lost> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(Lost)
}

/// Ends the process after a text that was written to standard output by other means: all that was to be done.
pub fn finish(written: io::Result<()>) -> ! {
    match written.and_then(|()| io::stdout().flush()) {
        Ok(()) => std::process::exit(0),
        Err(error) => Lost(error).end(),
    }
}

/// Prints a line, or tells that standard output takes no more: `Result<(), Lost>`.
#[macro_export]
macro_rules! try_println {
    ($($text:tt)*) => { $crate::write(::core::format_args!("{}\n", ::core::format_args!($($text)*))) };
}

/// Prints; ends the process if standard output takes no more.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => {
        if let Err(lost) = $crate::write(::core::format_args!($($text)*)) {
            lost.end()
        }
    };
}

/// Prints a line; ends the process if standard output takes no more.
#[macro_export]
macro_rules! println {
    ($($text:tt)*) => {
        if let Err(lost) = $crate::try_println!($($text)*) {
            lost.end()
        }
    };
}
