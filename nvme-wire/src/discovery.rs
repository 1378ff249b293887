//! The discovery log page: which subsystems a host can reach, and how.

use crate::code::codes;
use crate::layout::{Wire, layout};
use crate::text::{Padded, Terminated};

codes! {
    /// Transport Type (TRTYPE).
    pub struct TransportType(u8) {
        RDMA = 0x01 "RDMA",
        FIBRE_CHANNEL = 0x02 "Fibre Channel",
        TCP = 0x03 "TCP",
        LOOP = 0xFE "Intra-host",
    }

    /// Address Family (ADRFAM).
    pub struct AddressFamily(u8) {
        IPV4 = 0x01 "AF_INET",
        IPV6 = 0x02 "AF_INET6",
        INFINIBAND = 0x03 "AF_IB",
        FIBRE_CHANNEL = 0x04 "Fibre Channel",
    }

    /// Subsystem Type (SUBTYPE).
    pub struct SubsystemType(u8) {
        REFERRAL = 0x01 "referral to another discovery service",
        NVM = 0x02 "NVM subsystem",
        DISCOVERY = 0x03 "this discovery subsystem",
    }

    /// RDMA QP Service Type (RDMA_QPTYPE) in the transport specific address.
    pub struct RdmaQpType(u8) {
        CONNECTED = 0x01 "Reliable Connected",
        DATAGRAM = 0x02 "Reliable Datagram",
    }

    /// RDMA Provider Type (RDMA_PRTYPE).
    pub struct RdmaProvider(u8) {
        NONE = 0x01 "No provider specified",
        INFINIBAND = 0x02 "InfiniBand",
        ROCE_V1 = 0x03 "RoCE v1",
        ROCE_V2 = 0x04 "RoCE v2",
        IWARP = 0x05 "iWARP",
    }

    /// RDMA Connection Management Service (RDMA_CMS).
    pub struct RdmaCms(u8) {
        RDMA_CM = 0x01 "RDMA_IP_CM",
    }
}

layout! {
    /// The beginning of the discovery log page.
    pub struct DiscoveryHeader [1024] {
        /// Generation Counter (GENCTR): changes with the log.
        0 genctr: u64,
        /// Number of Records (NUMREC).
        8 numrec: u64,
        /// Record Format (RECFMT): 0.
        16 recfmt: u16,
    }

    /// An entry of the discovery log page.
    pub struct DiscoveryEntry [1024] {
        /// Transport Type (TRTYPE).
        0 trtype: TransportType,
        /// Address Family (ADRFAM).
        1 adrfam: AddressFamily,
        /// Subsystem Type (SUBTYPE).
        2 subtype: SubsystemType,
        /// Transport Requirements (TREQ) 1:0, secure channel: 0 not specified, 1 required, 2 not required.
        3[0..=1] secure_channel: u8,
        /// TREQ 2: disabling of SQ flow control is supported.
        3[2..=2] no_flow_control: bool,
        /// Port ID (PORTID).
        4 portid: u16,
        /// Controller ID (CNTLID): 0xFFFF for dynamic controllers.
        6 cntlid: u16,
        /// Admin Max SQ Size (ASQSZ).
        8 asqsz: u16,
        /// Transport Service Identifier (TRSVCID): the port, in decimal.
        32 trsvcid: Padded<32>,
        /// NVM Subsystem Qualified Name (SUBNQN).
        256 subnqn: Terminated<256>,
        /// Transport Address (TRADDR).
        512 traddr: Padded<256>,
        /// Transport specific address (TSAS): RDMA_QPTYPE.
        768 rdma_qptype: RdmaQpType,
        /// TSAS: RDMA_PRTYPE.
        769 rdma_prtype: RdmaProvider,
        /// TSAS: RDMA_CMS.
        770 rdma_cms: RdmaCms,
    }
}

/// The whole page.
pub fn page(genctr: u64, entries: &[DiscoveryEntry]) -> Vec<u8> {
    let header = DiscoveryHeader { genctr, numrec: entries.len() as u64, recfmt: 0 };
    let mut page = header.to_bytes().to_vec();
    page.resize(DiscoveryHeader::LEN + entries.len() * DiscoveryEntry::LEN, 0);
    for (entry, place) in
        entries.iter().zip(page[DiscoveryHeader::LEN..].chunks_exact_mut(DiscoveryEntry::LEN))
    {
        entry.put(place);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn the_page_is_the_bytes_of_the_specification() {
        let entry = DiscoveryEntry {
            trtype: TransportType::RDMA,
            adrfam: AddressFamily::IPV4,
            subtype: SubsystemType::NVM,
            cntlid: 0xFFFF,
            asqsz: 32,
            trsvcid: Padded::new("4420").unwrap(),
            subnqn: Terminated::new("nqn.a").unwrap(),
            traddr: Padded::new("192.168.1.1").unwrap(),
            rdma_qptype: RdmaQpType::CONNECTED,
            rdma_prtype: RdmaProvider::ROCE_V2,
            rdma_cms: RdmaCms::RDMA_CM,
            ..Default::default()
        };
        let page = page(7, &[entry.clone(), entry.clone()]);
        assert_eq!((page.len(), page[0], page[8]), (3072, 7, 2));
        assert_eq!(page[1024..1034], [1, 1, 2, 0, 0, 0, 0xFF, 0xFF, 32, 0]);
        assert_eq!(
            (&page[1056..1061], &page[1536..1548], &page[1792..1795]),
            (b"4420 ".as_slice(), b"192.168.1.1 ".as_slice(), [1, 4, 1].as_slice())
        );
        assert_eq!(DiscoveryEntry::read(&page[2048..]).unwrap(), entry);
    }
}
