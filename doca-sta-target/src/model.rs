//! What a target offers: subsystems and their namespaces, as initiators see them.

use nvme_wire::Nqn;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A namespace as initiators see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamespaceInfo {
    /// Blocks.
    pub blocks: u64,
    /// Bytes of a block: a power of two.
    pub block_size: u32,
    /// Globally unique identifier, so that hosts know it again.
    pub nguid: [u8; 16],
}

/// A subsystem as initiators see it.
#[derive(Clone, Debug)]
pub struct SubsystemInfo {
    /// Its name.
    pub nqn: Nqn,
    /// Serial number: at most 20 printable characters.
    pub serial: String,
    /// Model: at most 40 printable characters.
    pub model: String,
    /// Hosts that may connect, by name; all if there is no list.
    pub hosts: Option<Vec<String>>,
    /// Namespaces by number.
    pub namespaces: BTreeMap<u32, NamespaceInfo>,
}

/// What the device allows, as the engine tells initiators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Entries of a queue.
    pub queue_entries: u16,
    /// I/O queues of one controller.
    pub io_queues: u16,
    /// Bytes of data of one command.
    pub io_size: u32,
    /// Bytes of a command capsule on I/O queues.
    pub capsule: u32,
    /// Controllers at a time.
    pub controllers: u16,
}

/// Everything that is offered.
#[derive(Clone, Debug)]
pub struct Model {
    /// The subsystems.
    pub subsystems: Vec<SubsystemInfo>,
    /// Where the target listens, for the discovery log.
    pub addresses: Vec<SocketAddr>,
    /// What the device allows.
    pub capacity: Capacity,
}

impl Model {
    /// The subsystem of a name.
    pub(crate) fn find(&self, nqn: &str) -> Option<usize> {
        self.subsystems.iter().position(|subsystem| subsystem.nqn.as_str() == nqn)
    }
}
