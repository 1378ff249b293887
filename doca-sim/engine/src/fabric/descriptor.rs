//! Export descriptors: flat, self-contained, checksummed bytes that another process can import.
//!
//! They are secrets, as the real ones are: whoever holds one can reach the memory or the queue pair.
//!
//! ```text
//! 0  magic "DSIM"   4  format   6  kind   8  length of all   12  CRC-32 of the rest   16  fields, little-endian
//! ```

use super::context::{ContextId, LinkId};
use super::region::{Piece, RegionId};

/// A process and the proof that it is still the same one: PIDs are reused, tokens are not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcessRef {
    /// Process id.
    pub pid: u32,
    /// Short random number that, with the pid, names the adapter's file in the network directory.
    pub salt: u16,
    /// 128 random bits that stand in the adapter's header and in the process's memory: what makes a descriptor a secret.
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

/// What `doca_rdma_export` hands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionDescriptor {
    /// The exporter.
    pub process: ProcessRef,
    /// Its context.
    pub context: ContextId,
    /// Its end of the connection.
    pub link: LinkId,
    /// `doca_rdma_transport_type`
    pub transport: u32,
}

/// What `doca_sync_event_export_*` hands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventDescriptor {
    /// Across PCI or across the network.
    pub reach: Reach,
    /// The exporter.
    pub process: ProcessRef,
    /// The region that holds the value.
    pub region: RegionId,
    /// The value's address in the exporter's address space.
    pub addr: u64,
}

/// Why bytes are not a descriptor; the text is for the SDK log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadDescriptor(pub String);

const MAGIC: [u8; 4] = *b"DSIM";
const FORMAT: u16 = 2;
const HEAD: usize = 16;

/// Kinds of descriptors.
const KINDS: [(u16, &str); 5] = [
    (1, "RDMA memory descriptor"),
    (2, "PCI memory descriptor"),
    (3, "connection descriptor"),
    (4, "network sync event descriptor"),
    (5, "PCI sync event descriptor"),
];

fn seal(kind: u16, fields: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + fields.len());
    bytes.extend(MAGIC);
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(((HEAD + fields.len()) as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(fields);
    let sum = checksum(&bytes);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Over everything but the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..12]);
    hasher.update(&bytes[HEAD..]);
    hasher.finalize()
}

/// Opens a descriptor; gives its kind and a reader of its fields.
fn unseal(bytes: &[u8]) -> Result<(u16, Fields<'_>), BadDescriptor> {
    let bad = |why: String| Err(BadDescriptor(why));
    if bytes.len() < HEAD {
        return bad(format!("length: {} bytes are fewer than the {HEAD} of a head", bytes.len()));
    }
    if bytes[..4] != MAGIC {
        return bad("magic: these bytes are not from this SDK".into());
    }
    let format = u16::from_le_bytes([bytes[4], bytes[5]]);
    if format != FORMAT {
        return bad(format!("format: version {format}, this SDK reads {FORMAT}"));
    }
    let length = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    if length < HEAD || length > bytes.len() {
        return bad(format!("length: {length} bytes announced, {} given", bytes.len()));
    }
    // Programs pass the whole message or file that a descriptor came in; what follows it is theirs.
    let bytes = &bytes[..length];
    if checksum(bytes) != u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) {
        return bad("checksum: the bytes were changed on the way".into());
    }
    let kind = u16::from_le_bytes([bytes[6], bytes[7]]);
    Ok((kind, Fields { bytes: &bytes[HEAD..] }))
}

fn wrong_kind(found: u16, wanted: &str) -> BadDescriptor {
    let name = KINDS.iter().find(|(kind, _)| *kind == found).map_or("something unknown", |(_, name)| name);
    BadDescriptor(format!("kind: this is a {name}, wanted a {wanted}"))
}

struct Fields<'a> {
    bytes: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadDescriptor> {
        let short = || BadDescriptor("length: the fields end early".into());
        let (field, rest) = self.bytes.split_first_chunk::<N>().ok_or_else(short)?;
        self.bytes = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, BadDescriptor> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, BadDescriptor> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadDescriptor> {
        self.take().map(u64::from_le_bytes)
    }

    fn process(&mut self) -> Result<ProcessRef, BadDescriptor> {
        Ok(ProcessRef { pid: self.u32()?, salt: self.u16()?, token: [self.u64()?, self.u64()?] })
    }
}

fn put_process(fields: &mut Vec<u8>, process: &ProcessRef) {
    fields.extend(process.pid.to_le_bytes());
    fields.extend(process.salt.to_le_bytes());
    fields.extend(process.token.iter().flat_map(|word| word.to_le_bytes()));
}

impl MemoryDescriptor {
    /// The bytes to hand out.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put_process(&mut fields, &self.process);
        fields.extend(self.region.bits().to_le_bytes());
        fields.extend(self.addr.to_le_bytes());
        fields.extend(self.len.to_le_bytes());
        fields.extend(self.access.to_le_bytes());
        fields.extend(self.device.to_le_bytes());
        seal(if self.reach == Reach::Rdma { 1 } else { 2 }, &fields)
    }

    /// Reads bytes that came from anywhere.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadDescriptor> {
        let (kind, mut fields) = unseal(bytes)?;
        let reach = match kind {
            1 => Reach::Rdma,
            2 => Reach::Pci,
            other => return Err(wrong_kind(other, "memory descriptor")),
        };
        Ok(MemoryDescriptor {
            reach,
            process: fields.process()?,
            region: RegionId::from_bits(fields.u64()?),
            addr: fields.u64()?,
            len: fields.u64()?,
            access: fields.u32()?,
            device: fields.u32()?,
        })
    }
}

impl ConnectionDescriptor {
    /// The bytes to hand out.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put_process(&mut fields, &self.process);
        fields.extend(self.context.bits().to_le_bytes());
        fields.extend(self.link.bits().to_le_bytes());
        fields.extend(self.transport.to_le_bytes());
        seal(3, &fields)
    }

    /// Reads bytes that came from anywhere.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadDescriptor> {
        let (kind, mut fields) = unseal(bytes)?;
        if kind != 3 {
            return Err(wrong_kind(kind, "connection descriptor"));
        }
        Ok(ConnectionDescriptor {
            process: fields.process()?,
            context: ContextId::from_bits(fields.u64()?),
            link: LinkId::from_bits(fields.u64()?),
            transport: fields.u32()?,
        })
    }
}

impl EventDescriptor {
    /// Where the value is.
    pub fn piece(&self) -> Piece {
        Piece { addr: self.addr, len: 8, region: self.region }
    }

    /// The bytes to hand out.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put_process(&mut fields, &self.process);
        fields.extend(self.region.bits().to_le_bytes());
        fields.extend(self.addr.to_le_bytes());
        seal(if self.reach == Reach::Rdma { 4 } else { 5 }, &fields)
    }

    /// Reads bytes that came from anywhere.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadDescriptor> {
        let (kind, mut fields) = unseal(bytes)?;
        let reach = match kind {
            4 => Reach::Rdma,
            5 => Reach::Pci,
            other => return Err(wrong_kind(other, "sync event descriptor")),
        };
        Ok(EventDescriptor {
            reach,
            process: fields.process()?,
            region: RegionId::from_bits(fields.u64()?),
            addr: fields.u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> MemoryDescriptor {
        MemoryDescriptor {
            reach: Reach::Rdma,
            process: ProcessRef { pid: 77, salt: 3, token: [1, 2] },
            region: RegionId { index: 5, generation: 9 },
            addr: 0x7000_1000,
            len: 4096,
            access: 7,
            device: 1,
        }
    }

    fn connection() -> ConnectionDescriptor {
        ConnectionDescriptor {
            process: ProcessRef { pid: 77, salt: 3, token: [1, 2] },
            context: ContextId { index: 1, generation: 3 },
            link: LinkId { index: 0, generation: 1 },
            transport: 0,
        }
    }

    #[test]
    fn descriptors_survive_the_way() {
        assert_eq!(MemoryDescriptor::decode(&memory().encode()), Ok(memory()));
        assert_eq!(ConnectionDescriptor::decode(&connection().encode()), Ok(connection()));
        let mut padded = connection().encode();
        padded.extend([0; 100]);
        assert_eq!(ConnectionDescriptor::decode(&padded), Ok(connection()));
        assert!(memory().encode().len() <= 256);
    }

    #[test]
    fn each_damage_is_named() {
        let good = connection().encode();
        for cut in 0..good.len() {
            assert!(ConnectionDescriptor::decode(&good[..cut]).is_err(), "{cut} bytes were accepted");
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut flipped = good.clone();
                flipped[at] ^= 1 << bit;
                assert!(ConnectionDescriptor::decode(&flipped).is_err(), "bit {bit} of byte {at}");
            }
        }
        let reason = |bytes: &[u8]| ConnectionDescriptor::decode(bytes).unwrap_err().0;
        assert!(reason(&memory().encode()).contains("this is a RDMA memory descriptor"));
        assert!(reason(b"").starts_with("length"));
        assert!(reason(&[0; 64]).starts_with("magic"));
        let mut newer = good;
        newer[4] = 9;
        assert!(reason(&newer).contains("version 9"));
    }
}
