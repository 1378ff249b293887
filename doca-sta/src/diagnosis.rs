//! Why initiators cannot connect: the preconditions in the order in which to rule them out.

use doca_common::version::version;
use doca_common::{Code, DeviceInfo, Error, Kind, Refusal};
use std::fmt;

/// What must hold before an initiator is served, in the order in which to look.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Precondition {
    /// Libraries: `libdoca_sta` and the `libdoca_rdma` under it are of one release.
    Libraries,
    /// The device can control a target.
    Capability,
    /// The process may use the device, and lock memory.
    Privileges,
    /// The target listens where the initiator looks.
    Listener,
    /// Packets of the connections reach the adapter's queue pairs.
    Steering,
    /// The initiator does its part.
    Initiator,
    /// The program answers the commands that the device leaves to it.
    Application,
}

/// What is to be checked for each.
const CHECKS: &[(Precondition, &str)] = &[
    (
        Precondition::Libraries,
        "that doca-sta and doca-rdma are installed, and of one release (doca link-check)",
    ),
    (
        Precondition::Capability,
        "that the control device is a physical function of a BlueField-3 or newer that may run DPA programs (doca caps)",
    ),
    (
        Precondition::Privileges,
        "that the process may use the device: CAP_IPC_LOCK, CAP_SYS_RAWIO, the limit of locked memory, huge pages, and \
         the device nodes of infiniband and vfio",
    ),
    (
        Precondition::Listener,
        "that the target listens at the address and port that the initiator uses, and no other process",
    ),
    (
        Precondition::Steering,
        "that packets of the network device reach the adapter's queue pairs: with DOCA Flow, or another program that owns \
         the steering of the port, add the rules that let RDMA traffic through",
    ),
    (Precondition::Initiator, "the initiator: the NQN, its host NQN, its queue size, and its log"),
    (
        Precondition::Application,
        "that this program takes the commands that are not offloaded, and answers each",
    ),
];

impl Precondition {
    /// What to check.
    pub fn check(self) -> &'static str {
        CHECKS.iter().find(|(own, _)| *own == self).map_or("", |(_, check)| check)
    }

    /// All, in order.
    pub fn all() -> impl Iterator<Item = Precondition> {
        CHECKS.iter().map(|(precondition, _)| *precondition)
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precondition::Libraries => "libraries",
            Precondition::Capability => "capability",
            Precondition::Privileges => "privileges",
            Precondition::Listener => "listener",
            Precondition::Steering => "steering",
            Precondition::Initiator => "initiator",
            Precondition::Application => "application",
        })
    }
}

/// The first precondition that does not hold, and how that was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which one.
    pub precondition: Precondition,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; check {}", self.precondition, self.seen, self.precondition.check())
    }
}

/// How a queue pair stays silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silence {
    /// The initiator did not confirm the connection.
    NotEstablished,
    /// It is connected, but no command came, not even Connect.
    NoCommand,
    /// Commands came, but the application answered none.
    Unanswered,
}

impl Silence {
    /// What it points to.
    pub fn finding(self) -> Finding {
        let (precondition, seen) = match self {
            Silence::NotEstablished => {
                (Precondition::Initiator, "the connection was accepted, and never confirmed")
            }
            Silence::NoCommand => {
                (Precondition::Steering, "RDMA CM connected, and no command came, not even Connect")
            }
            Silence::Unanswered => (Precondition::Application, "commands came, and none was answered"),
        };
        Finding { precondition, seen: seen.to_owned() }
    }
}

/// What a target knows about itself.
#[derive(Debug, Default)]
pub struct Facts<'a> {
    /// Why the target did not start, if it did not.
    pub failure: Option<&'a Error>,
    /// Whether it listens.
    pub listening: bool,
    /// Requests that came.
    pub requests: u64,
    /// Commands that came.
    pub commands: u64,
    /// Connections whose Connect command succeeded.
    pub connected: u64,
}

/// The first precondition that does not hold. `None` if an initiator was served, or the program's own description of the
/// target was refused before DOCA was asked.
pub fn diagnose(facts: &Facts<'_>) -> Option<Finding> {
    let found = |precondition, seen: &str| Some(Finding { precondition, seen: seen.to_owned() });
    if let Some(finding) = libraries() {
        return Some(finding);
    }
    if let Some(error) = facts.failure {
        return of_failure(error);
    }
    if !facts.listening {
        return found(Precondition::Listener, "nothing listens");
    }
    if facts.requests == 0 {
        return found(Precondition::Listener, "no initiator asked to connect");
    }
    if facts.commands == 0 {
        return found(Precondition::Steering, "RDMA CM connected, and no command came, not even Connect");
    }
    if facts.connected == 0 {
        return found(Precondition::Initiator, "every Connect command was refused");
    }
    None
}

/// Whether built and loaded libraries are of one release.
fn libraries() -> Option<Finding> {
    doca_common::version::require_fit().err().map(|error| Finding {
        precondition: Precondition::Libraries,
        seen: format!("{error} ({:?})", version()),
    })
}

/// What an error at creation or start points to.
fn of_failure(error: &Error) -> Option<Finding> {
    let precondition = match (error.kind(), error.code()) {
        // The program gave something twice, or a name that no device has.
        (_, Some(Code::ALREADY_EXIST)) => return None,
        _ if error.refusal() == Some(Refusal::NoDevice) => return None,
        (_, Some(Code::INITIALIZATION | Code::UNSUPPORTED_VERSION | Code::DRIVER)) => Precondition::Libraries,
        (Kind::NotSupported | Kind::NotFound, _) => Precondition::Capability,
        (Kind::NotPermitted | Kind::System, _) | (_, Some(Code::NO_MEMORY | Code::OPERATING_SYSTEM)) => {
            Precondition::Privileges
        }
        (_, Some(_)) => Precondition::Capability,
        (_, None) => return None,
    };
    Some(Finding { precondition, seen: error.to_string() })
}

/// Checks what can be checked before a target is built: libraries, the device's capability, and whether this process
/// may use it.
pub fn check_device(device: &DeviceInfo) -> Option<Finding> {
    if let Some(finding) = libraries() {
        return Some(finding);
    }
    of_failure(&crate::limits::Limits::of(device).err()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_fails_is_named() {
        let named = |facts: Facts<'_>| diagnose(&facts).map(|finding| finding.precondition);
        let refused = Error::doca("doca_sta_create", Code::NOT_SUPPORTED);
        assert_eq!(
            named(Facts { failure: Some(&refused), ..Facts::default() }),
            Some(Precondition::Capability)
        );
        let refused = Error::doca("doca_ctx_start", Code::NOT_PERMITTED);
        assert_eq!(
            named(Facts { failure: Some(&refused), ..Facts::default() }),
            Some(Precondition::Privileges)
        );
        let refused = Error::refused("doca_sta_subsystem_add_ns", Refusal::OutOfRange);
        assert_eq!(named(Facts { failure: Some(&refused), ..Facts::default() }), None);
        let twice = Error::doca("doca_sta_add_dev", Code::ALREADY_EXIST);
        assert_eq!(named(Facts { failure: Some(&twice), ..Facts::default() }), None);
        let unknown = Error::refused("doca_dev_open", Refusal::NoDevice);
        assert_eq!(named(Facts { failure: Some(&unknown), ..Facts::default() }), None);
        assert_eq!(named(Facts::default()), Some(Precondition::Listener));
        let listening = Facts { listening: true, ..Facts::default() };
        assert_eq!(named(Facts { requests: 2, ..listening }), Some(Precondition::Steering));
        let listening = Facts { listening: true, requests: 2, commands: 2, ..Facts::default() };
        assert_eq!(named(listening), Some(Precondition::Initiator));
        let served = Facts { listening: true, requests: 2, commands: 2, connected: 1, ..Facts::default() };
        assert_eq!(named(served), None);
        assert!(Silence::NoCommand.finding().to_string().contains("DOCA Flow"));
    }

    #[test]
    fn every_precondition_has_its_check_in_order() {
        let all: Vec<_> = Precondition::all().collect();
        assert!(all.is_sorted() && all.len() == Precondition::Application as usize + 1);
        assert!(all.iter().all(|precondition| !precondition.check().is_empty()));
    }
}
