//! `struct doca_rdma_addr`: where an RDMA CM server listens.

use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::topology::{self, Device, Gid};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::net::{Ipv4Addr, Ipv6Addr};

/// `enum doca_rdma_addr_type`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum AddrType {
    /// Dotted quad
    Ipv4 = 0,
    /// IPv6 text
    Ipv6 = 1,
    /// A GID in IPv6 text form
    Gid = 2,
}

enum Parsed {
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Gid(Gid),
}

/// An address, the program's or the library's.
#[repr(C)]
pub struct Addr {
    tag: Tag,
    kind: AddrType,
    text: CString,
    port: u16,
    parsed: Parsed,
    users: Cell<u32>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Addr {
    const TAG: u32 = u32::from_le_bytes(*b"addr");
}

impl Addr {
    /// INVALID_VALUE for an unknown type and for text that is no such address.
    pub fn new(kind: u32, text: &CStr, port: u16) -> Res<Addr> {
        let string = text.to_str().map_err(|_| Code::INVALID_VALUE)?;
        let ipv6 = || string.parse::<Ipv6Addr>().map_err(|_| Code::INVALID_VALUE);
        let (kind, parsed) = match kind {
            0 => (AddrType::Ipv4, Parsed::Ipv4(string.parse().map_err(|_| Code::INVALID_VALUE)?)),
            1 => (AddrType::Ipv6, Parsed::Ipv6(ipv6()?)),
            2 => (AddrType::Gid, Parsed::Gid(Gid::from_ipv6(ipv6()?))),
            _ => return Err(Code::INVALID_VALUE),
        };
        Ok(Addr { tag: Tag::live::<Self>(), kind, text: text.to_owned(), port, parsed, users: Cell::new(0) })
    }

    /// The address that a device listens on.
    pub fn of_listener(device: &Device, port: u16) -> Res<Addr> {
        let (kind, text) = match device.ipv4 {
            Some(ipv4) => (AddrType::Ipv4, ipv4.to_string()),
            None => (AddrType::Ipv6, device.ipv6_addr().to_string()),
        };
        let text = CString::new(text).map_err(|_| Code::UNEXPECTED)?;
        let addr = Addr::new(kind as u32, &text, port)?;
        addr.count_user(1);
        Ok(addr)
    }

    /// Its type.
    pub fn kind(&self) -> AddrType {
        self.kind
    }

    /// As the program wrote it.
    pub fn text(&self) -> &CStr {
        &self.text
    }

    /// In host order.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection begins or ends to use it.
    pub fn count_user(&self, change: i32) {
        self.users.set(self.users.get().saturating_add_signed(change));
    }

    /// `doca_rdma_addr_destroy`: BAD_STATE while a connection uses it.
    pub fn retire(&self) -> Res {
        if self.users.get() > 0 {
            return Err(Code::BAD_STATE);
        }
        self.tag.kill();
        Ok(())
    }

    /// The device with this address: its position in the topology.
    pub fn resolve(&self) -> Option<u32> {
        let devices = &topology::get().ok()?.devices;
        let has = |device: &Device| match self.parsed {
            Parsed::Ipv4(addr) => device.has_ip(addr.into()),
            Parsed::Ipv6(addr) => device.has_ip(addr.into()),
            Parsed::Gid(gid) => gid != Gid::ZERO && (0..).map_while(|i| device.gid(i)).any(|g| g == gid),
        };
        devices.iter().position(has).map(|index| index as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_when_they_are_created() {
        assert!(Addr::new(0, c"192.168.1.1", 1).is_ok());
        for (kind, text) in [(0, c"192.168.1"), (0, c"::1"), (1, c"192.168.1.1"), (2, c"mlx5_0"), (3, c"::1")]
        {
            assert_eq!(Addr::new(kind, text, 1).err(), Some(Code::INVALID_VALUE), "{kind} {text:?}");
        }
    }

    #[test]
    fn an_address_in_use_is_kept() {
        let addr = Addr::new(1, c"fe80::1", 7).unwrap();
        addr.count_user(1);
        assert_eq!(addr.retire(), Err(Code::BAD_STATE));
        addr.count_user(-1);
        assert_eq!(addr.retire(), Ok(()));
    }
}
