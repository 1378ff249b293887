//! Addresses for RDMA CM.

use crate::raw;
use doca_common::{Error, Refusal, Result};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a peer listens: an IP address or GID, and a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    host: Host,
    port: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Host {
    Ip(IpAddr),
    Gid(Ipv6Addr),
}

impl Address {
    /// The address of a GID, given as its 16 bytes.
    pub fn from_gid(gid: [u8; 16], port: u16) -> Self {
        Address { host: Host::Gid(Ipv6Addr::from(gid)), port }
    }

    /// Reads a GID in the notation of IPv6.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`]
    pub fn parse_gid(text: &str, port: u16) -> Result<Self> {
        let gid: Ipv6Addr = text.parse().map_err(|_| malformed(text, "a GID in IPv6 notation"))?;
        Ok(Address { host: Host::Gid(gid), port })
    }

    /// Reads an IPv4 or IPv6 address.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`]
    pub fn parse_ip(text: &str, port: u16) -> Result<Self> {
        let ip: IpAddr = text.parse().map_err(|_| malformed(text, "an IP address"))?;
        Ok(Address { host: Host::Ip(ip), port })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates the C object: `doca_rdma_addr_create`.
    pub(crate) fn create(&self) -> Result<raw::address::Addr> {
        use doca_sys::doca_rdma_addr_type as c;
        let (kind, text) = match self.host {
            Host::Ip(IpAddr::V4(ip)) => (c::DOCA_RDMA_ADDR_TYPE_IPv4, ip.to_string()),
            Host::Ip(IpAddr::V6(ip)) => (c::DOCA_RDMA_ADDR_TYPE_IPv6, ip.to_string()),
            Host::Gid(gid) => (c::DOCA_RDMA_ADDR_TYPE_GID, gid.to_string()),
        };
        raw::address::Addr::new(kind, &text, self.port)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address { host: Host::Ip(address.ip()), port: address.port() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            Host::Ip(ip) => SocketAddr::new(ip, self.port).fmt(f),
            Host::Gid(gid) => write!(f, "gid {gid} port {}", self.port),
        }
    }
}

fn malformed(text: &str, wanted: &str) -> Error {
    Error::refused("doca_rdma_addr_create", Refusal::Malformed).with(format!("{text:?} is not {wanted}"))
}
