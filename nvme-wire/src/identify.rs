//! What Identify returns.

use crate::code::codes;
use crate::layout::{Wire, layout};
use crate::property::Version;
use crate::text::{Padded, Terminated};

codes! {
    /// Controller or Namespace Structure (CNS): what Identify shall return.
    pub struct Cns(u8) {
        NAMESPACE = 0x00 "Identify Namespace",
        CONTROLLER = 0x01 "Identify Controller",
        ACTIVE_NAMESPACES = 0x02 "Active Namespace ID list",
        DESCRIPTORS = 0x03 "Namespace Identification Descriptor list",
        NVM_SETS = 0x04 "NVM Set List",
        COMMAND_SET_NAMESPACE = 0x05 "I/O Command Set specific Identify Namespace",
        COMMAND_SET_CONTROLLER = 0x06 "I/O Command Set specific Identify Controller",
        COMMAND_SET_ACTIVE_NAMESPACES = 0x07 "I/O Command Set specific Active Namespace ID list",
        INDEPENDENT_NAMESPACE = 0x08 "I/O Command Set Independent Identify Namespace",
        ALLOCATED_NAMESPACES = 0x10 "Allocated Namespace ID list",
        ALLOCATED_NAMESPACE = 0x11 "Identify Namespace of an allocated namespace",
        CONTROLLERS_OF_NAMESPACE = 0x12 "Controller List of a namespace",
        CONTROLLERS = 0x13 "Controller List",
        COMMAND_SETS = 0x1C "I/O Command Set data structure",
    }

    /// Controller Type (CNTRLTYPE).
    pub struct ControllerType(u8) {
        NOT_REPORTED = 0x00 "not reported",
        IO = 0x01 "I/O controller",
        DISCOVERY = 0x02 "Discovery controller",
        ADMINISTRATIVE = 0x03 "Administrative controller",
    }

    /// Namespace Identifier Type (NIDT).
    pub struct DescriptorType(u8) {
        EUI64 = 0x01 "IEEE Extended Unique Identifier",
        NGUID = 0x02 "Namespace Globally Unique Identifier",
        UUID = 0x03 "Namespace UUID",
        CSI = 0x04 "Command Set Identifier",
    }
}

layout! {
    /// Identify Controller data structure.
    pub struct IdentifyController [4096] {
        /// PCI Vendor ID (VID).
        0 vid: u16,
        /// PCI Subsystem Vendor ID (SSVID).
        2 ssvid: u16,
        /// Serial Number (SN).
        4 sn: Padded<20>,
        /// Model Number (MN).
        24 mn: Padded<40>,
        /// Firmware Revision (FR).
        64 fr: Padded<8>,
        /// Recommended Arbitration Burst (RAB).
        72 rab: u8,
        /// IEEE OUI Identifier (IEEE).
        73 ieee: [u8; 3],
        /// Controller Multi-Path I/O and Namespace Sharing Capabilities (CMIC).
        76 cmic: u8,
        /// Maximum Data Transfer Size (MDTS): 2 ^ MDTS minimum pages; 0 is no limit.
        77 mdts: u8,
        /// Controller ID (CNTLID).
        78 cntlid: u16,
        /// Version (VER).
        80 ver: Version,
        /// RTD3 Resume Latency (RTD3R) in microseconds.
        84 rtd3r: u32,
        /// RTD3 Entry Latency (RTD3E) in microseconds.
        88 rtd3e: u32,
        /// Optional Asynchronous Events Supported (OAES); bit 8 namespace attributes, bit 31 discovery log.
        92 oaes: u32,
        /// Controller Attributes (CTRATT); bit 0 is 128-bit Host Identifier.
        96 ctratt: u32,
        /// Controller Type (CNTRLTYPE).
        111 cntrltype: ControllerType,
        /// FRU Globally Unique Identifier (FGUID).
        112 fguid: [u8; 16],
        /// Optional Admin Command Support (OACS).
        256 oacs: u16,
        /// Abort Command Limit (ACL), 0-based.
        258 acl: u8,
        /// Asynchronous Event Request Limit (AERL), 0-based.
        259 aerl: u8,
        /// Firmware Updates (FRMW).
        260 frmw: u8,
        /// Log Page Attributes (LPA); bit 1 effects log, bit 2 extended data.
        261 lpa: u8,
        /// Error Log Page Entries (ELPE), 0-based.
        262 elpe: u8,
        /// Number of Power States Support (NPSS), 0-based.
        263 npss: u8,
        /// Warning Composite Temperature Threshold (WCTEMP) in kelvin.
        266 wctemp: u16,
        /// Critical Composite Temperature Threshold (CCTEMP) in kelvin.
        268 cctemp: u16,
        /// Total NVM Capacity (TNVMCAP) in bytes.
        280 tnvmcap: u128,
        /// Keep Alive Support (KAS): granularity in units of 100 ms; 0 is none.
        320 kas: u16,
        /// Submission Queue Entry Size (SQES): 3:0 required, 7:4 maximum, as powers of two.
        512 sqes: u8,
        /// Completion Queue Entry Size (CQES).
        513 cqes: u8,
        /// Maximum Outstanding Commands (MAXCMD).
        514 maxcmd: u16,
        /// Number of Namespaces (NN): the highest NSID.
        516 nn: u32,
        /// Optional NVM Command Support (ONCS).
        520 oncs: u16,
        /// Fused Operation Support (FUSES).
        522 fuses: u16,
        /// Format NVM Attributes (FNA).
        524 fna: u8,
        /// Volatile Write Cache (VWC); bit 0 present.
        525 vwc: u8,
        /// Atomic Write Unit Normal (AWUN), 0-based blocks.
        526 awun: u16,
        /// Atomic Write Unit Power Fail (AWUPF), 0-based blocks.
        528 awupf: u16,
        /// SGL Support 1:0: 0 none, 1 without restriction, 2 with dword alignment.
        536[0..=1] sgl_support: u8,
        /// SGLS 2: Keyed SGL Data Block descriptors.
        536[2..=2] sgl_keyed: bool,
        /// SGLS 16: SGL Bit Bucket descriptors.
        536[16..=16] sgl_bit_bucket: bool,
        /// SGLS 20: offsets in the address field, i.e. data in capsules.
        536[20..=20] sgl_offset: bool,
        /// NVM Subsystem NVMe Qualified Name (SUBNQN).
        768 subnqn: Terminated<256>,
        /// I/O Queue Command Capsule Supported Size (IOCCSZ) in units of 16 bytes.
        1792 ioccsz: u32,
        /// I/O Queue Response Capsule Supported Size (IORCSZ) in units of 16 bytes.
        1796 iorcsz: u32,
        /// In Capsule Data Offset (ICDOFF) in units of 16 bytes.
        1800 icdoff: u16,
        /// Fabrics Controller Attributes (FCATT); bit 0 is 1 for static controllers.
        1802 fcatt: u8,
        /// Maximum SGL Data Block Descriptors (MSDBD); 0 is no limit.
        1803 msdbd: u8,
        /// Optional Fabric Commands Support (OFCS); bit 0 is Disconnect.
        1804 ofcs: u16,
    }

    /// LBA Format (LBAF).
    pub struct LbaFormat [4] {
        /// Metadata Size (MS) in bytes.
        0 ms: u16,
        /// LBA Data Size (LBADS) as a power of two.
        2 lbads: u8,
        /// Relative Performance (RP).
        3[0..=1] rp: u8,
    }

    /// Identify Namespace data structure, NVM command set.
    pub struct IdentifyNamespace [4096] {
        /// Namespace Size (NSZE) in blocks.
        0 nsze: u64,
        /// Namespace Capacity (NCAP) in blocks.
        8 ncap: u64,
        /// Namespace Utilization (NUSE) in blocks.
        16 nuse: u64,
        /// Namespace Features (NSFEAT); bit 0 thin provisioning.
        24 nsfeat: u8,
        /// Number of LBA Formats (NLBAF), 0-based.
        25 nlbaf: u8,
        /// Formatted LBA Size (FLBAS) 3:0: index of the format in use.
        26[0..=3] format: u8,
        /// Metadata Capabilities (MC).
        27 mc: u8,
        /// End-to-end Data Protection Capabilities (DPC).
        28 dpc: u8,
        /// End-to-end Data Protection Type Settings (DPS).
        29 dps: u8,
        /// Namespace Multi-path I/O and Namespace Sharing Capabilities (NMIC) 0: may be attached to several controllers.
        30[0..=0] shared: bool,
        /// Reservation Capabilities (RESCAP).
        31 rescap: u8,
        /// Deallocate Logical Block Features (DLFEAT).
        33 dlfeat: u8,
        /// NVM Capacity (NVMCAP) in bytes.
        48 nvmcap: u128,
        /// Namespace Attributes (NSATTR) 0: write protected.
        99[0..=0] write_protected: bool,
        /// Namespace Globally Unique Identifier (NGUID).
        104 nguid: [u8; 16],
        /// IEEE Extended Unique Identifier (EUI64).
        120 eui64: [u8; 8],
        /// LBA Format Support (LBAF0 to LBAF15).
        128 lbaf: [LbaFormat; 16],
    }
}

impl IdentifyNamespace {
    /// Bytes of a block in the format in use; `None` where the format cannot be.
    pub fn block_size(&self) -> Option<u32> {
        1u32.checked_shl(u32::from(self.lbaf[usize::from(self.format)].lbads)).filter(|&size| size >= 512)
    }
}

/// A list of at most 1024 namespace identifiers, ascending, ended by 0: CNS 2, and log page 4.
pub fn namespace_list(ids: impl IntoIterator<Item = u32>) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    for (place, id) in bytes.chunks_exact_mut(4).zip(ids) {
        id.put(place);
    }
    bytes
}

/// The identifiers of a namespace list.
pub fn namespaces(list: &[u8]) -> impl Iterator<Item = u32> {
    list.chunks_exact(4).map(u32::get).take_while(|&id| id != 0)
}

/// A Namespace Identification Descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor<'a> {
    /// Namespace Identifier Type (NIDT).
    pub kind: DescriptorType,
    /// Namespace Identifier (NID).
    pub id: &'a [u8],
}

/// The bytes of a Namespace Identification Descriptor list: CNS 3. `None`: they do not fit, or an identifier is empty
/// or longer than 255 bytes.
pub fn descriptor_list<'a>(descriptors: impl IntoIterator<Item = Descriptor<'a>>) -> Option<[u8; 4096]> {
    let mut bytes = [0; 4096];
    let mut at = 0;
    for Descriptor { kind, id } in descriptors {
        let len = u8::try_from(id.len()).ok().filter(|&len| len != 0)?;
        let place = bytes.get_mut(at..at + 4 + id.len())?;
        (place[0], place[1]) = (kind.0, len);
        place[4..].copy_from_slice(id);
        at += place.len();
    }
    Some(bytes)
}

/// The descriptors of such a list, up to its end or to the first that does not fit.
pub fn descriptors(list: &[u8]) -> impl Iterator<Item = Descriptor<'_>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (&kind, &len) = (rest.first()?, rest.get(1)?);
        let id = rest.get(4..4 + usize::from(len)).filter(|id| !id.is_empty())?;
        rest = &rest[4 + id.len()..];
        Some(Descriptor { kind: DescriptorType(kind), id })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controller_fields_stand_at_the_offsets_of_the_specification() {
        let controller = IdentifyController {
            sn: Padded::new("SERIAL").unwrap(),
            mdts: 5,
            cntlid: 0x1234,
            ver: Version { mjr: 1, mnr: 3, ter: 0 },
            kas: 100,
            sqes: 0x66,
            nn: 3,
            sgl_support: 1,
            sgl_keyed: true,
            sgl_offset: true,
            ioccsz: 260,
            msdbd: 1,
            subnqn: Terminated::new("nqn.x").unwrap(),
            ..IdentifyController::default()
        };
        let bytes = controller.to_bytes();
        for (at, expected) in [
            (4, b"SERIAL  ".as_slice()),
            (77, &[5, 0x34, 0x12, 0, 3, 1, 0]),
            (320, &[100, 0]),
            (512, &[0x66]),
            (516, &[3, 0, 0, 0]),
            (536, &[5, 0, 0x10, 0]),
            (768, b"nqn.x\0"),
            (1792, &[4, 1, 0, 0]),
            (1803, &[1]),
        ] {
            assert_eq!(bytes[at..at + expected.len()], *expected, "at {at}");
        }
        assert_eq!(IdentifyController::parse(&bytes), controller);
    }

    #[test]
    fn namespace_fields_stand_at_the_offsets_of_the_specification() {
        let mut namespace =
            IdentifyNamespace { nsze: 0x1000, format: 1, shared: true, nguid: [9; 16], ..Default::default() };
        namespace.lbaf[1].lbads = 12;
        let bytes = namespace.to_bytes();
        assert_eq!(
            (&bytes[..8], bytes[26], bytes[30], bytes[104], bytes[134]),
            ([0, 0x10, 0, 0, 0, 0, 0, 0].as_slice(), 1, 1, 9, 12)
        );
        assert_eq!(namespace.block_size(), Some(4096));
        assert_eq!(IdentifyNamespace::default().block_size(), None);
    }

    #[test]
    fn lists_end_where_they_should() {
        let list = namespace_list([1, 5]);
        assert_eq!(list[..12], [1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(namespaces(&list).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(namespaces(&namespace_list(1..5000)).count(), 1024);

        let (nguid, uuid) = ([7; 16], [8; 16]);
        let two = [(DescriptorType::NGUID, &nguid), (DescriptorType::UUID, &uuid)]
            .map(|(kind, id)| Descriptor { kind, id });
        let list = descriptor_list(two).unwrap();
        assert_eq!((list[..5].to_vec(), list[20]), (vec![2, 16, 0, 0, 7], 3));
        assert_eq!(descriptors(&list).collect::<Vec<_>>(), two);
        assert_eq!(descriptors(&[1, 8, 0, 0, 1]).count(), 0, "cut off");
        assert!(descriptor_list([Descriptor { kind: DescriptorType::UUID, id: &[] }]).is_none());
        assert!(descriptor_list([two[0]; 300]).is_none());
    }
}
