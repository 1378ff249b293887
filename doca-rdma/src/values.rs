//! Values of `libdoca_rdma` with names.

macro_rules! named {
    ($(#[$meta:meta])* $name:ident($c:ident) { $($(#[$doc:meta])* $variant:ident = $constant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(u32);

        impl $name {
            $($(#[$doc])* pub const $variant: $name = $name(doca_sys::$c::$constant.0);)*

            /// From C; values of later releases too.
            pub const fn from_raw(value: u32) -> Self {
                $name(value)
            }

            /// As in C.
            pub const fn as_raw(self) -> u32 {
                self.0
            }

            #[allow(dead_code, reason = "some are only read")]
            pub(crate) const fn to_c(self) -> doca_sys::$c {
                doca_sys::$c(self.0)
            }
        }
    };
}

named! {
    /// Transport of a context: `enum doca_rdma_transport_type`. Peers use the same.
    TransportType(doca_rdma_transport_type) {
        /// Reliable connection.
        RC = DOCA_RDMA_TRANSPORT_TYPE_RC,
        /// Dynamically connected: descriptors only, one connection. Alpha in DOCA: it may change.
        DC = DOCA_RDMA_TRANSPORT_TYPE_DC,
    }
}

named! {
    /// Path MTU: `enum doca_mtu_size`.
    Mtu(doca_mtu_size) {
        /// 256 bytes
        BYTES_256 = DOCA_MTU_SIZE_256_BYTES,
        /// 512 bytes
        BYTES_512 = DOCA_MTU_SIZE_512_BYTES,
        /// 1 KiB
        KIB_1 = DOCA_MTU_SIZE_1K_BYTES,
        /// 2 KiB
        KIB_2 = DOCA_MTU_SIZE_2K_BYTES,
        /// 4 KiB
        KIB_4 = DOCA_MTU_SIZE_4K_BYTES,
    }
}

named! {
    /// What consumed a receive: `enum doca_rdma_opcode`.
    #[derive(Default)]
    Opcode(doca_rdma_opcode) {
        /// A message.
        SEND = DOCA_RDMA_OPCODE_RECV_SEND,
        /// A message with an immediate value.
        SEND_WITH_IMM = DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM,
        /// A write with an immediate value. The data is where the writer put it, not in the receive buffer.
        WRITE_WITH_IMM = DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM,
    }
}
