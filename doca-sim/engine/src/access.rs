//! `enum doca_access_flag`: who may do what with memory. Reading by local devices is always allowed.

/// Local devices may write too.
pub const LOCAL_READ_WRITE: u32 = 1;
/// An RDMA peer may read.
pub const RDMA_READ: u32 = 2;
/// An RDMA peer may write.
pub const RDMA_WRITE: u32 = 4;
/// An RDMA peer may do atomic operations.
pub const RDMA_ATOMIC: u32 = 8;
/// The other side of the PCI bus may read.
pub const PCI_READ_ONLY: u32 = 16;
/// The other side of the PCI bus may read and write.
pub const PCI_READ_WRITE: u32 = 32;
/// PCI accesses may land out of order.
pub const PCI_RELAXED_ORDERING: u32 = 64;

/// What makes memory exportable for RDMA.
pub const ANY_RDMA: u32 = RDMA_READ | RDMA_WRITE | RDMA_ATOMIC;
/// What makes memory exportable over PCI.
pub const ANY_PCI: u32 = PCI_READ_ONLY | PCI_READ_WRITE;

/// Whether a mask holds known flags only, and not both of the PCI rights, which exclude each other.
pub fn is_valid(mask: u32) -> bool {
    const KNOWN: u32 = LOCAL_READ_WRITE | ANY_RDMA | ANY_PCI | PCI_RELAXED_ORDERING;
    mask & !KNOWN == 0 && mask & ANY_PCI != ANY_PCI
}
