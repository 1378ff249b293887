//! Permissions of memory and contexts, and which task needs which: the permission matrix as data.

use std::fmt;

bitflags::bitflags! {
    /// Who may do what with memory: `enum doca_access_flag`. Nothing is allowed that is not named.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Access: u32 {
        /// Local devices may write. Reading by a local device is always possible.
        const LOCAL_READ_WRITE = doca_sys::doca_access_flag::DOCA_ACCESS_FLAG_LOCAL_READ_WRITE.0;
        /// Peers may read over RDMA.
        const RDMA_READ = doca_sys::doca_access_flag::DOCA_ACCESS_FLAG_RDMA_READ.0;
        /// Peers may write over RDMA.
        const RDMA_WRITE = doca_sys::doca_access_flag::DOCA_ACCESS_FLAG_RDMA_WRITE.0;
        /// Peers may do RDMA atomics.
        const RDMA_ATOMIC = doca_sys::doca_access_flag::DOCA_ACCESS_FLAG_RDMA_ATOMIC.0;
        /// The processor across PCI may read.
        const PCI_READ_ONLY = doca_sys::doca_access_flag::DOCA_ACCESS_FLAG_PCI_READ_ONLY.0;
        /// The processor across PCI may read and write.
        const PCI_READ_WRITE = doca_sys::doca_access_flag::DOCA_ACCESS_FLAG_PCI_READ_WRITE.0;
        /// Accesses across PCI may be reordered.
        const PCI_RELAXED_ORDERING = doca_sys::doca_access_flag::DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING.0;
    }
}

impl Access {
    /// The flags that let another node in.
    pub const ANY_RDMA: Access = Access::RDMA_READ.union(Access::RDMA_WRITE).union(Access::RDMA_ATOMIC);
    /// The flags that let the processor across PCI in.
    pub const ANY_PCI: Access = Access::PCI_READ_ONLY.union(Access::PCI_READ_WRITE);
    /// The flags that make memory shared: someone else may touch it at any time.
    pub const ANY_REMOTE: Access = Access::ANY_RDMA.union(Access::ANY_PCI);
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("LOCAL_READ_ONLY");
        }
        bitflags::parser::to_writer(self, f)
    }
}

/// What a kind of task needs on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requirement {
    /// Name of the task, as in `doca_rdma_task_<name>`.
    pub task: &'static str,
    /// Flags of the local memory.
    pub local_memory: Access,
    /// Flags of the peer's memory.
    pub peer_memory: Access,
    /// Flags of the peer's context.
    pub peer_context: Access,
}

impl Requirement {
    /// Whether the peer must allow anything.
    pub fn asks_peer(&self) -> bool {
        !(self.peer_memory | self.peer_context).is_empty()
    }
}

/// The row, as errors show it.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = |access: Access| if access.is_empty() { "-".to_owned() } else { access.to_string() };
        write!(
            f,
            "{}: local memory {}, peer's memory {}, peer's context {}",
            self.task,
            flags(self.local_memory),
            flags(self.peer_memory),
            flags(self.peer_context)
        )
    }
}

const fn row(task: &'static str, local: Access, memory: Access, context: Access) -> Requirement {
    Requirement { task, local_memory: local, peer_memory: memory, peer_context: context }
}

const NONE: Access = Access::empty();
const LOCAL: Access = Access::LOCAL_READ_WRITE;

/// The permission matrix of the RDMA tasks. The side that is reached into must allow it twice: for its memory and
/// for its context.
pub const MATRIX: &[Requirement] = &[
    row("receive", LOCAL, NONE, NONE),
    row("send", NONE, LOCAL, NONE),
    row("send_imm", NONE, LOCAL, NONE),
    row("read", LOCAL, LOCAL.union(Access::RDMA_READ), Access::RDMA_READ),
    row("write", NONE, LOCAL.union(Access::RDMA_WRITE), Access::RDMA_WRITE),
    row("write_imm", NONE, LOCAL.union(Access::RDMA_WRITE), Access::RDMA_WRITE),
    row("atomic_cmp_swp", LOCAL, LOCAL.union(Access::RDMA_ATOMIC), Access::RDMA_ATOMIC),
    row("atomic_fetch_add", LOCAL, LOCAL.union(Access::RDMA_ATOMIC), Access::RDMA_ATOMIC),
    // The peer's memory is an event that was exported to remote net.
    row("remote_net_sync_event_get", LOCAL, NONE, Access::RDMA_READ),
    row("remote_net_sync_event_notify_set", NONE, NONE, Access::RDMA_WRITE),
    row("remote_net_sync_event_notify_add", LOCAL, NONE, Access::RDMA_ATOMIC),
];

/// The row of the matrix for a task; the name may begin with `doca_rdma_task_`.
pub fn requirement(task: &str) -> Option<&'static Requirement> {
    let task = task.strip_prefix("doca_rdma_task_").unwrap_or(task);
    MATRIX.iter().find(|row| row.task == task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_by_default() {
        assert_eq!(Access::empty().bits(), 0);
        assert_eq!(Access::empty().to_string(), "LOCAL_READ_ONLY");
        assert_eq!(
            (Access::LOCAL_READ_WRITE | Access::RDMA_READ).to_string(),
            "LOCAL_READ_WRITE | RDMA_READ"
        );
    }
}
