//! Export descriptors: flat, self-contained, checksummed bytes that another process can import.
//!
//! They are secrets, as the real ones are: whoever holds one can reach the memory or the queue pair.

use super::region::RegionId;

/// A process and the proof that it is still the same one: PIDs are reused, tokens are not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcessRef {
    /// Process id.
    pub pid: u32,
    /// Short random number that, with the pid, names the adapter's file in the network directory.
    pub salt: u16,
    /// 128 random bits that stand in the adapter's header and in the process's memory.
    pub token: [u64; 2],
}

/// Which importing call a memory descriptor is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// `doca_mmap_export_rdma`
    Rdma,
    /// `doca_mmap_export_pci`
    Pci,
}

/// What `doca_mmap_export_*` hands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryDescriptor {
    /// RDMA or PCI.
    pub reach: Reach,
    /// The exporter.
    pub process: ProcessRef,
    /// The region in the exporter's table.
    pub region: RegionId,
    /// Address in the exporter's address space.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// `DOCA_ACCESS_FLAG_*` of the exporting mmap.
    pub access: u32,
    /// Position of the exporting device in the topology.
    pub device: u32,
}

/// Why bytes are not a descriptor; the text is for the SDK log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadDescriptor(pub String);

impl MemoryDescriptor {
    /// The bytes to hand out.
    pub fn encode(&self) -> Vec<u8> {
        todo_encode()
    }

    /// Reads bytes that came from anywhere.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadDescriptor> {
        let _ = bytes;
        Err(BadDescriptor(String::new()))
    }
}

fn todo_encode() -> Vec<u8> {
    Vec::new()
}
