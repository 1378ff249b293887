//! What can go wrong, in the seven classes of NVIDIA's guide, and the exit status of each.

use std::fmt;

/// Where to look first. The numbers are those of the guide's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[repr(u8)]
pub enum Class {
    /// The tool is not installed.
    Installation = 1,
    /// The relay cannot bind its socket.
    Bind = 2,
    /// The host's application cannot connect to the relay.
    Connect = 3,
    /// The other side is not reached: wrong service name, relay or application down.
    Terminator = 4,
    /// Rights are missing.
    Permission = 5,
    /// The two sides differ.
    Version = 6,
    /// Device, driver, firmware.
    Below = 7,
}

impl Class {
    /// A few words for people.
    pub const fn text(self) -> &'static str {
        match self {
            Class::Installation => "tool not installed",
            Class::Bind => "relay not bound",
            Class::Connect => "host application cannot connect",
            Class::Terminator => "DPU end not reachable",
            Class::Permission => "permission",
            Class::Version => "version",
            Class::Below => "below the relay",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "class {} ({})", *self as u8, self.text())
    }
}

/// Exit statuses of the relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Ok = 0,
    /// Command line or configuration.
    Usage = 1,
    /// The socket could not be bound.
    Bind = 2,
    /// Device or representor.
    Device = 3,
    /// No session within `--conn-retry`.
    NoSession = 4,
    /// Rights are missing.
    Permission = 5,
    /// The partner speaks another protocol or version.
    Partner = 6,
    /// Streams were cut when the drain timed out.
    Cut = 7,
    /// The relay itself.
    Internal = 8,
}

/// Why the relay ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Exit status.
    pub exit: Exit,
    /// Layer, where there is one.
    pub class: Option<Class>,
    /// What happened and what to check.
    pub text: String,
}

impl Fault {
    /// Of a layer.
    pub fn new(exit: Exit, class: Class, text: impl Into<String>) -> Self {
        Fault { exit, class: Some(class), text: text.into() }
    }

    /// Of the command line.
    pub fn usage(text: impl Into<String>) -> Self {
        Fault { exit: Exit::Usage, class: None, text: text.into() }
    }

    /// Of this program or machine.
    pub fn internal(text: impl Into<String>) -> Self {
        Fault { exit: Exit::Internal, class: None, text: text.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Some(class) => write!(f, "{class}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for Fault {}
