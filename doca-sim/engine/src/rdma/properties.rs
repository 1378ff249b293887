//! Settings of an RDMA instance: defaults, limits, errors.

use crate::access;
use crate::code::{Code, Res};
use crate::fabric::route::Route;
use crate::topology::{Device, GidEntry, GidType, LinkLayer};
use std::cell::Cell;
use std::net::Ipv6Addr;

/// `DOCA_ACCESS_FLAG_LOCAL_READ_WRITE` and the three RDMA rights: what `set_permissions` takes.
const PERMISSIONS: u32 = access::LOCAL_READ_WRITE | access::ANY_RDMA;

/// The settings. Plain cells: the entries check the state, the setters here check values.
pub struct Properties {
    /// Entries of each connection's send queue, a power of two.
    pub send_queue_size: Cell<u32>,
    /// Buffers in a chain of a send-side task.
    pub max_send_buf_list_len: Cell<u32>,
    /// Buffers in a chain of a receive task.
    pub recv_buf_list_len: Cell<u32>,
    /// `enum doca_rdma_transport_type`
    pub transport: Cell<u32>,
    /// `enum doca_mtu_size`
    pub mtu: Cell<u32>,
    /// `DOCA_ACCESS_FLAG_*`
    pub permissions: Cell<u32>,
    /// Global routing header
    pub grh: Cell<u8>,
    /// Index into the device's GID table
    pub gid_index: Cell<u32>,
    /// Service level
    pub sl: Cell<u32>,
    /// Milliseconds
    pub connection_request_timeout: Cell<u16>,
    /// Connections at once
    pub max_num_connections: Cell<u16>,
    /// 0 to 6, or 7 for ever
    pub rnr_retry_count: Cell<u8>,
}

impl Properties {
    /// The defaults. (Proposed: the real ones are not documented.)
    pub fn new(device: &Device) -> Self {
        let timeouts = crate::topology::get().map_or(2000, |topology| topology.timeouts.cm_timeout_ms);
        Properties {
            send_queue_size: Cell::new(128.min(device.rdma.max_send_queue_size)),
            max_send_buf_list_len: Cell::new(1),
            recv_buf_list_len: Cell::new(4.min(device.rdma.max_recv_buf_list_len.rc)),
            transport: Cell::new(0),
            // 1024 bytes, where the port can.
            mtu: Cell::new(if device.max_mtu < 1024 { device.max_mtu.ilog2() - 8 } else { 2 }),
            permissions: Cell::new(access::LOCAL_READ_WRITE),
            grh: Cell::new(u8::from(device.link_layer == LinkLayer::Ethernet)),
            gid_index: Cell::new(0),
            sl: Cell::new(0),
            connection_request_timeout: Cell::new(timeouts.min(u16::MAX.into()) as u16),
            max_num_connections: Cell::new(1),
            rnr_retry_count: Cell::new(6),
        }
    }

    /// Rounds up to a power of two. NOT_SUPPORTED above the device's limit.
    pub fn set_send_queue_size(&self, device: &Device, size: u32) -> Res {
        if size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if size > device.rdma.max_send_queue_size {
            return Err(Code::NOT_SUPPORTED);
        }
        self.send_queue_size.set(size.next_power_of_two());
        Ok(())
    }

    /// INVALID_VALUE for zero and above the device's limit.
    pub fn set_max_send_buf_list_len(&self, device: &Device, len: u32) -> Res {
        if len == 0 || len > device.rdma.max_send_buf_list_len {
            return Err(Code::INVALID_VALUE);
        }
        self.max_send_buf_list_len.set(len);
        Ok(())
    }

    /// INVALID_VALUE for zero and above the device's limit for the transport.
    pub fn set_recv_buf_list_len(&self, device: &Device, len: u32) -> Res {
        let limits = &device.rdma.max_recv_buf_list_len;
        let limit = if self.transport.get() == 0 { limits.rc } else { limits.dc };
        if len == 0 || len > limit {
            return Err(Code::INVALID_VALUE);
        }
        self.recv_buf_list_len.set(len);
        Ok(())
    }

    /// INVALID_VALUE for an unknown transport, NOT_SUPPORTED for one that the device lacks.
    pub fn set_transport(&self, device: &Device, transport: u32) -> Res {
        let supported = match transport {
            0 => device.rdma.transports.rc,
            1 => device.rdma.transports.dc,
            _ => return Err(Code::INVALID_VALUE),
        };
        if !supported {
            return Err(Code::NOT_SUPPORTED);
        }
        self.transport.set(transport);
        let limits = &device.rdma.max_recv_buf_list_len;
        let limit = if transport == 0 { limits.rc } else { limits.dc };
        self.recv_buf_list_len.set(self.recv_buf_list_len.get().min(limit));
        Ok(())
    }

    /// INVALID_VALUE for an unknown size, NOT_SUPPORTED for raw Ethernet and above the port's limit.
    pub fn set_mtu(&self, device: &Device, mtu: u32) -> Res {
        match mtu {
            0..=4 if 256 << mtu <= device.max_mtu => {
                self.mtu.set(mtu);
                Ok(())
            }
            0..=5 => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// INVALID_VALUE for PCI rights and unknown bits.
    pub fn set_permissions(&self, permissions: u32) -> Res {
        if permissions & !PERMISSIONS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.permissions.set(permissions);
        Ok(())
    }

    /// NOT_SUPPORTED to switch it off on Ethernet.
    pub fn set_grh(&self, device: &Device, grh: u8) -> Res {
        match grh {
            0 if device.link_layer == LinkLayer::Ethernet => Err(Code::NOT_SUPPORTED),
            0 | 1 => {
                self.grh.set(grh);
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// INVALID_VALUE beyond the GID table.
    pub fn set_gid_index(&self, device: &Device, index: u32) -> Res {
        device.gid(index).ok_or(Code::INVALID_VALUE)?;
        self.gid_index.set(index);
        Ok(())
    }

    /// NOT_SUPPORTED if the device lacks the transport, which may be the default.
    pub fn check_transport(&self, device: &Device) -> Res {
        let transports = &device.rdma.transports;
        let (name, supported) = match self.transport.get() {
            0 => ("RC", transports.rc),
            _ => ("DC", transports.dc),
        };
        if supported {
            return Ok(());
        }
        crate::log::error!("{} lacks the transport {name}: see doca_rdma_set_transport_type", device.ibdev);
        Err(Code::NOT_SUPPORTED)
    }

    /// How packets travel with the GID that was chosen.
    pub fn route(&self, device: &Device) -> Route {
        if device.link_layer == LinkLayer::Infiniband && self.grh.get() == 0 {
            return Route::INFINIBAND;
        }
        match device.gid_table.get(self.gid_index.get() as usize).copied().flatten() {
            None => Route::NOWHERE,
            Some(GidEntry { kind: GidType::Infiniband, .. }) => Route::INFINIBAND,
            Some(GidEntry { kind: GidType::RoceV1, .. }) => Route::ROCE_V1,
            Some(GidEntry { kind: GidType::RoceV2, gid, .. }) => match Ipv6Addr::from(gid.0).to_ipv4_mapped()
            {
                Some(addr) => Route::roce_v2_ipv4(addr, device.ipv4_prefix),
                None => Route::ROCE_V2_IPV6,
            },
        }
    }

    /// INVALID_VALUE above 15.
    pub fn set_sl(&self, sl: u32) -> Res {
        if sl > 15 {
            return Err(Code::INVALID_VALUE);
        }
        self.sl.set(sl);
        Ok(())
    }

    /// NOT_SUPPORTED for zero.
    pub fn set_max_num_connections(&self, count: u16) -> Res {
        if count == 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        self.max_num_connections.set(count);
        Ok(())
    }

    /// INVALID_VALUE above 7.
    pub fn set_rnr_retry_count(&self, count: u8) -> Res {
        if count > 7 {
            return Err(Code::INVALID_VALUE);
        }
        self.rnr_retry_count.set(count);
        Ok(())
    }
}
