//! Private data of RDMA connections that carry NVMe.

use crate::code::codes;
use crate::layout::layout;

layout! {
    /// Private data of RDMA_CM_REQUEST, by the host. What arrives may be longer, padded with zeros.
    pub struct CmRequest [32] {
        /// Record Format (RECFMT): 0.
        0 recfmt: u16,
        /// Queue ID (QID).
        2 qid: u16,
        /// RDMA QP Host Receive Queue Size (HRQSIZE), 1-based.
        4 hrqsize: u16,
        /// RDMA QP Host Send Queue Size (HSQSIZE); hosts and targets in the field use it 0-based.
        6 hsqsize: u16,
        /// Controller ID (CNTLID); older hosts leave it 0.
        8 cntlid: u16,
    }

    /// Private data of RDMA_CM_ACCEPT, by the controller.
    pub struct CmAccept [32] {
        /// Record Format (RECFMT): 0.
        0 recfmt: u16,
        /// RDMA QP Controller Receive Queue Size (CRQSIZE), 1-based.
        2 crqsize: u16,
    }

    /// Private data of RDMA_CM_REJECT.
    pub struct CmReject [4] {
        /// Record Format (RECFMT): 0.
        0 recfmt: u16,
        /// Status (STS).
        2 status: RejectStatus,
    }
}

codes! {
    /// Why a connection was rejected.
    pub struct RejectStatus(u16) {
        INVALID_LENGTH = 0x01 "Invalid Private Data Length",
        INVALID_RECFMT = 0x02 "Invalid RECFMT",
        INVALID_QID = 0x03 "Invalid QID",
        INVALID_HSQSIZE = 0x04 "Invalid HSQSIZE",
        INVALID_HRQSIZE = 0x05 "Invalid HRQSIZE",
        NO_RESOURCES = 0x06 "No Resources",
        INVALID_IRD = 0x07 "Invalid IRD",
        INVALID_ORD = 0x08 "Invalid ORD",
        INVALID_CNTLID = 0x09 "Invalid CNTLID",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_data_are_the_bytes_of_the_specification() {
        let request = CmRequest { recfmt: 0, qid: 1, hrqsize: 128, hsqsize: 127, cntlid: 5 };
        let bytes = request.to_bytes();
        assert_eq!(
            (&bytes[..10], &bytes[10..]),
            ([0, 0, 1, 0, 128, 0, 127, 0, 5, 0].as_slice(), [0; 22].as_slice())
        );
        assert_eq!(CmRequest::parse(&bytes), request);
        assert_eq!(CmAccept { recfmt: 0, crqsize: 0x1234 }.to_bytes()[..4], [0, 0, 0x34, 0x12]);
        assert_eq!(CmReject { recfmt: 0, status: RejectStatus::NO_RESOURCES }.to_bytes(), [0, 0, 6, 0]);
    }
}
