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
    /// All of them.
    pub const ALL: [Class; 7] = [
        Class::Installation,
        Class::Bind,
        Class::Connect,
        Class::Terminator,
        Class::Permission,
        Class::Version,
        Class::Below,
    ];

    /// The class that a [`Fault`]'s text begins with, and the rest.
    pub fn split(text: &str) -> Option<(Class, &str)> {
        Class::ALL.into_iter().find_map(|class| Some((class, text.strip_prefix(&format!("{class}: "))?)))
    }

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
    /// A DPU relay answers, but does not serve `--cc-name`, within `--conn-retry`.
    NotServed = 9,
    /// There is no running relay to be asked (`--status`, `--ask`).
    NotAsked = 10,
    /// The relay that was asked could not do it (`--ask`).
    SaidNo = 11,
    /// The DPU relay serves another host relay, within `--conn-retry`.
    Taken = 12,
}

impl Exit {
    /// All of them, with a few words for people.
    pub const ALL: [(Exit, &str); 13] = [
        (Exit::Ok, "all is well"),
        (Exit::Usage, "command line or configuration"),
        (Exit::Bind, "the socket could not be bound"),
        (Exit::Device, "device or representor"),
        (Exit::NoSession, "no session within --conn-retry: no DPU relay answers"),
        (Exit::Permission, "rights are missing"),
        (Exit::Partner, "the partner speaks another protocol"),
        (Exit::Cut, "streams were cut when a drain timed out"),
        (Exit::Internal, "the relay itself"),
        (
            Exit::NotServed,
            "no session within --conn-retry: a DPU relay answers, but does not serve --cc-name",
        ),
        (Exit::NotAsked, "--status, --ask: there is no relay to be asked"),
        (Exit::SaidNo, "--ask: the relay could not do what it was asked for"),
        (Exit::Taken, "no session within --conn-retry: the DPU relay serves another host relay"),
    ];
}

/// Exit statuses of the smoke test where it knows more than a class. `--help` prints [`Cause::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cause {
    /// There is no socket, and no relay on this machine.
    NotStarted = 21,
    /// There is no socket, but there are relays for other ones.
    OtherPath = 22,
    /// Nobody listens on the socket.
    Stale = 23,
    /// No relay answers on the other side.
    Silent = 24,
    /// One does, but not for this service.
    OtherService = 25,
    /// The DPU relay does not get through to its application.
    Application = 26,
    /// The DPU relay serves another host relay.
    Taken = 27,
}

impl Cause {
    /// All of them, with a few words for people.
    pub const ALL: [(Cause, &str); 7] = [
        (Cause::NotStarted, "no relay runs"),
        (Cause::OtherPath, "relays run for other sockets"),
        (Cause::Stale, "a stale socket"),
        (Cause::Silent, "no DPU relay answers"),
        (Cause::OtherService, "it serves another --cc-name"),
        (Cause::Application, "its application is down"),
        (Cause::Taken, "it serves another host relay"),
    ];

    /// Its layer.
    pub const fn class(self) -> Class {
        match self {
            Cause::NotStarted | Cause::OtherPath | Cause::Stale => Class::Connect,
            Cause::Silent | Cause::OtherService | Cause::Application | Cause::Taken => Class::Terminator,
        }
    }
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
