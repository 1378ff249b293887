//! Errors: the call that failed, DOCA's code and words, the layer to look at, and the next thing to check.

mod advice;

use crate::raw;
use std::fmt;

/// What functions of these crates return.
pub type Result<T> = std::result::Result<T, Error>;

/// A `doca_error_t`. Codes of later releases are values like any other.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(u32);

macro_rules! codes {
    ($($name:ident = $c:ident,)*) => {
        impl Code {
            $(
                #[doc = concat!("`", stringify!($c), "`")]
                pub const $name: Code = Code(doca_sys::doca_error_t::$c.0);
            )*
        }
    };
}

codes! {
    SUCCESS = DOCA_SUCCESS,
    UNKNOWN = DOCA_ERROR_UNKNOWN,
    NOT_PERMITTED = DOCA_ERROR_NOT_PERMITTED,
    IN_USE = DOCA_ERROR_IN_USE,
    NOT_SUPPORTED = DOCA_ERROR_NOT_SUPPORTED,
    AGAIN = DOCA_ERROR_AGAIN,
    INVALID_VALUE = DOCA_ERROR_INVALID_VALUE,
    NO_MEMORY = DOCA_ERROR_NO_MEMORY,
    INITIALIZATION = DOCA_ERROR_INITIALIZATION,
    TIME_OUT = DOCA_ERROR_TIME_OUT,
    SHUTDOWN = DOCA_ERROR_SHUTDOWN,
    CONNECTION_RESET = DOCA_ERROR_CONNECTION_RESET,
    CONNECTION_ABORTED = DOCA_ERROR_CONNECTION_ABORTED,
    CONNECTION_INPROGRESS = DOCA_ERROR_CONNECTION_INPROGRESS,
    NOT_CONNECTED = DOCA_ERROR_NOT_CONNECTED,
    NO_LOCK = DOCA_ERROR_NO_LOCK,
    NOT_FOUND = DOCA_ERROR_NOT_FOUND,
    IO_FAILED = DOCA_ERROR_IO_FAILED,
    BAD_STATE = DOCA_ERROR_BAD_STATE,
    UNSUPPORTED_VERSION = DOCA_ERROR_UNSUPPORTED_VERSION,
    OPERATING_SYSTEM = DOCA_ERROR_OPERATING_SYSTEM,
    DRIVER = DOCA_ERROR_DRIVER,
    UNEXPECTED = DOCA_ERROR_UNEXPECTED,
    ALREADY_EXIST = DOCA_ERROR_ALREADY_EXIST,
    FULL = DOCA_ERROR_FULL,
    EMPTY = DOCA_ERROR_EMPTY,
    IN_PROGRESS = DOCA_ERROR_IN_PROGRESS,
    TOO_BIG = DOCA_ERROR_TOO_BIG,
    AUTHENTICATION = DOCA_ERROR_AUTHENTICATION,
    BAD_CONFIG = DOCA_ERROR_BAD_CONFIG,
    SKIPPED = DOCA_ERROR_SKIPPED,
}

impl Code {
    /// The code with this number.
    pub const fn from_raw(number: u32) -> Self {
        Code(number)
    }

    /// The number in C.
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// DOCA's name, as in `DOCA_ERROR_AGAIN`: `doca_error_get_name`.
    #[doc(alias = "doca_error_get_name")]
    pub fn name(self) -> &'static str {
        raw::error::name(self)
    }

    /// DOCA's description, verbatim: `doca_error_get_descr`.
    #[doc(alias = "doca_error_get_descr")]
    pub fn description(self) -> &'static str {
        raw::error::description(self)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What these crates refuse by themselves, before DOCA is asked. What each means stands in one table, with the
/// layer and the next thing to check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// Every task of the queue is in flight.
    Full,
    /// The context left RUNNING, by the program or by itself.
    Stopped,
    /// The handle is of an earlier run or connection.
    Stale,
    /// The engine was dropped.
    EngineGone,
    /// The call is not allowed inside a callback.
    InCallback,
    /// The result was taken before.
    Taken,
    /// The connection is not established on this side, or no longer.
    NotConnected,
    /// The deadline passed. What was waited for goes on.
    TimedOut,
    /// The object is shared with others, or with tasks in flight.
    InUse,
    /// There is one of this name or number already.
    Duplicate,
    /// The object belongs to another context.
    OtherContext,
    /// The object belongs to another engine.
    OtherEngine,
    /// The memory is registered with another device.
    OtherDevice,
    /// A length or number exceeds its limit.
    TooLong,
    /// The number or range is empty, outside of what there is, or taken already.
    OutOfRange,
    /// The address is not aligned.
    Misaligned,
    /// The permissions do not fit.
    Permissions,
    /// The device cannot do this.
    Capability,
    /// No device matches.
    NoDevice,
    /// More than one device matches.
    Ambiguous,
    /// The GID cannot carry RoCE v2 traffic.
    Gid,
    /// Text or bytes cannot be understood.
    Malformed,
    /// The loaded DOCA does not fit the one that was built against.
    Version,
}

/// Where to look first. Rule out what is lower before what is higher.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Layer {
    /// Devices, permissions of the user, limits, installed packages.
    Environment,
    /// Headers and modules.
    Build,
    /// Symbols and sonames.
    Link,
    /// The process as it runs: peer, network, load.
    Runtime,
    /// The program's own use of DOCA.
    Program,
    /// Firmware, kernel, device configuration.
    Driver,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Environment => "environment",
            Layer::Build => "build",
            Layer::Link => "link",
            Layer::Runtime => "runtime",
            Layer::Program => "program",
            Layer::Driver => "driver",
        })
    }
}

/// Conditions that programs branch on, whoever reported them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Busy for the moment: progress, then retry.
    Again,
    /// A queue or table is full: progress, then retry.
    Full,
    /// Not allowed for this object or by its permissions.
    NotPermitted,
    /// Device, mode or build cannot do it.
    NotSupported,
    /// No connection, or it broke.
    Disconnected,
    /// A deadline passed.
    TimedOut,
    /// Wrong state, or a handle whose object is gone.
    BadState,
    /// Nothing matches.
    NotFound,
    /// An argument is wrong.
    Invalid,
    /// Data could not be moved.
    Io,
    /// The operating system refused.
    System,
    /// Anything else; see [`Error::code`].
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Doca(Code),
    /// With this code, because of something before it.
    Flushed(Code),
    Refused(Refusal),
    System(i32),
}

/// Why a call failed.
///
/// ```
/// use doca_common::{Code, Error, Kind, Refusal};
///
/// let error = Error::refused("doca_task_submit", Refusal::Full);
/// assert_eq!(error.kind(), Kind::Full);
/// assert!(error.is_retryable());
/// assert_eq!(error.code(), None);
/// assert_eq!(Error::doca("doca_dev_open", Code::from_raw(4711)).code().unwrap().as_raw(), 4711);
/// ```
pub struct Error {
    call: &'static str,
    cause: Cause,
    context: Option<Box<str>>,
}

impl Error {
    /// What DOCA answered to `call`.
    #[cold]
    pub fn doca(call: &'static str, code: Code) -> Self {
        Error { call, cause: Cause::Doca(code), context: None }
    }

    /// How a task of the kind `call` came back that shared the fate of an earlier one.
    #[cold]
    pub fn flushed(call: &'static str, code: Code) -> Self {
        let context = "an earlier task on the connection failed, which breaks it";
        Error { call, cause: Cause::Flushed(code), context: Some(context.into()) }
    }

    /// What was refused before `call`.
    #[cold]
    pub fn refused(call: &'static str, refusal: Refusal) -> Self {
        Error { call, cause: Cause::Refused(refusal), context: None }
    }

    /// What the operating system answered to `call`, from `errno`.
    pub fn system(call: &'static str) -> Self {
        let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Error { call, cause: Cause::System(number), context: None }
    }

    /// What the operating system answered to `call`, as an error of the standard library.
    pub fn io(call: &'static str, error: &std::io::Error) -> Self {
        Error { call, cause: Cause::System(error.raw_os_error().unwrap_or(0)), context: None }
    }

    /// Adds which values were involved.
    #[must_use]
    pub fn with(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into().into_boxed_str());
        self
    }

    /// The C function that failed, or would have been called.
    pub fn call(&self) -> &'static str {
        self.call
    }

    /// DOCA's code, if DOCA was asked.
    pub fn code(&self) -> Option<Code> {
        match self.cause {
            Cause::Doca(code) | Cause::Flushed(code) => Some(code),
            _ => None,
        }
    }

    /// The local rule that refused, if one did.
    pub fn refusal(&self) -> Option<Refusal> {
        match self.cause {
            Cause::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The error of the operating system, if it was one.
    pub fn os_error(&self) -> Option<std::io::Error> {
        match self.cause {
            Cause::System(number) => Some(std::io::Error::from_raw_os_error(number)),
            _ => None,
        }
    }

    /// Values that were involved.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// DOCA's own description of its code, or what the refused rule says.
    pub fn description(&self) -> String {
        match self.cause {
            Cause::Doca(code) | Cause::Flushed(code) => code.description().to_owned(),
            Cause::Refused(refusal) => advice::of_refusal(refusal).0.to_owned(),
            Cause::System(number) => std::io::Error::from_raw_os_error(number).to_string(),
        }
    }

    /// The layer that the error points to.
    pub fn layer(&self) -> Layer {
        self.advice().0
    }

    /// What to check next.
    pub fn next_check(&self) -> &'static str {
        self.advice().1
    }

    /// Whether the same call may succeed after some progress.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind(), Kind::Again | Kind::Full)
    }

    /// The condition, whoever reported it.
    pub fn kind(&self) -> Kind {
        match self.cause {
            Cause::Doca(code) | Cause::Flushed(code) => advice::kind_of_code(code),
            Cause::Refused(refusal) => advice::of_refusal(refusal).3,
            Cause::System(_) => Kind::System,
        }
    }

    fn advice(&self) -> (Layer, &'static str) {
        match self.cause {
            Cause::Doca(code) => advice::of_code(self.call, code),
            Cause::Flushed(_) => (Layer::Runtime, "the first failure on the connection, then connect anew"),
            Cause::Refused(refusal) => {
                let (_, layer, check, _) = advice::of_refusal(refusal);
                (layer, check)
            }
            Cause::System(libc::EADDRINUSE | libc::EADDRNOTAVAIL) => {
                (Layer::Environment, "that a device has the address, and no other process listens there")
            }
            Cause::System(_) => (Layer::Environment, "limits of the process (ulimit -l, free memory)"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.call)?;
        match self.cause {
            Cause::Doca(code) | Cause::Flushed(code) => {
                write!(f, "{} ({})", code.name(), code.description())?
            }
            _ => f.write_str(&self.description())?,
        }
        if let Some(context) = &self.context {
            write!(f, ": {context}")?;
        }
        let (layer, check) = self.advice();
        write!(f, " [{layer}; check: {check}]")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// An error, and what was handed to the call that failed.
///
/// `?` turns it into the [`Error`] alone; the value is dropped then.
pub struct Failed<T> {
    /// Why.
    pub error: Error,
    /// What was passed in, or what is left of it.
    pub value: T,
}

impl<T> Failed<T> {
    /// Puts both together.
    pub fn new(error: Error, value: T) -> Self {
        Failed { error, value }
    }

    /// Takes both apart.
    pub fn into_parts(self) -> (Error, T) {
        (self.error, self.value)
    }

    /// The same error with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Failed<U> {
        Failed { error: self.error, value: change(self.value) }
    }
}

impl<T> From<Failed<T>> for Error {
    fn from(failed: Failed<T>) -> Self {
        failed.error
    }
}

impl<T> fmt::Display for Failed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T> fmt::Debug for Failed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<T> std::error::Error for Failed<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_small_and_crosses_threads() {
        fn crosses<T: Send + Sync>() {}
        crosses::<Error>();
        assert!(size_of::<Error>() < 64);
    }

    #[test]
    fn only_again_and_full_advise_a_retry() {
        for number in 0..64 {
            let code = Code::from_raw(number);
            let retry = Error::doca("doca_task_submit", code).is_retryable();
            assert_eq!(retry, code == Code::AGAIN || code == Code::FULL, "{code:?}");
        }
    }

    #[test]
    fn a_context_that_does_not_come_up_is_no_matter_of_hugepages_first() {
        let check = |call| Error::doca(call, Code::INITIALIZATION).next_check();
        assert!(check("doca_ctx_start").starts_with("what the error or DOCA's log names"));
        assert!(!check("doca_comch_client_create").contains("the error"));
    }

    #[test]
    fn says_call_code_description_layer_and_check() {
        let text = Error::doca("doca_mmap_export_rdma", Code::NOT_PERMITTED).with("window").to_string();
        for part in ["doca_mmap_export_rdma", "DOCA_ERROR_NOT_PERMITTED", "window", "program", "RDMA_*"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains(Code::NOT_PERMITTED.description()));
    }
}
