//! The addresses in a topology, each with its one text form.

use serde::Deserialize;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A PCI address, `domain:bus:device.function`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct PciAddr {
    /// PCI domain.
    pub domain: u16,
    /// Bus.
    pub bus: u8,
    /// Device, 5 bits.
    pub device: u8,
    /// Function, 3 bits.
    pub function: u8,
}

impl fmt::Display for PciAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.device, self.function)
    }
}

impl FromStr for PciAddr {
    type Err = String;

    /// Reads `DDDD:BB:DD.F`, or `BB:DD.F` in domain 0, in either case.
    fn from_str(text: &str) -> Result<Self, String> {
        parse_pci(text)
            .ok_or_else(|| format!("`{text}` is not a PCI address such as 0000:03:00.0 or 03:00.0"))
    }
}

fn parse_pci(text: &str) -> Option<PciAddr> {
    let (domain, rest) = match text.len() {
        12 => (hex(text.get(..4)?)?, text.get(4..)?.strip_prefix(':')?),
        7 => (0, text),
        _ => return None,
    };
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    if (bus.len(), device.len(), function.len()) != (2, 2, 1) {
        return None;
    }
    let (bus, device, function) = (hex(bus)?, hex(device)?, hex(function)?);
    (device < 32 && function < 8).then_some(PciAddr {
        domain,
        bus: bus as u8,
        device: device as u8,
        function: function as u8,
    })
}

/// Hexadecimal digits and nothing else (the standard parser also takes a sign).
fn hex(digits: &str) -> Option<u16> {
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let octets: Option<Vec<u8>> = text
            .split(':')
            .map(|octet| (octet.len() == 2).then(|| hex(octet)).flatten().map(|value| value as u8))
            .collect();
        octets
            .and_then(|octets| octets.try_into().ok())
            .map(Mac)
            .ok_or_else(|| format!("`{text}` is not a MAC address such as 02:00:00:00:00:01"))
    }
}

impl Mac {
    /// The link-local IPv6 address made from this address (EUI-64).
    pub fn link_local(&self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }
}

/// A GID: 16 bytes, written like an IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
#[repr(transparent)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The GID of an empty slot.
    pub const ZERO: Gid = Gid([0; 16]);

    /// The GID that stands for an IPv4 address.
    pub fn from_ipv4(addr: Ipv4Addr) -> Self {
        Gid(addr.to_ipv6_mapped().octets())
    }

    /// The GID that is this IPv6 address.
    pub fn from_ipv6(addr: Ipv6Addr) -> Self {
        Gid(addr.octets())
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl FromStr for Gid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<Ipv6Addr>()
            .map(Gid::from_ipv6)
            .map_err(|_| format!("`{text}` is not a GID; GIDs are written like IPv6 addresses"))
    }
}

macro_rules! from_string {
    ($($ty:ty)*) => { $(
        impl TryFrom<String> for $ty {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }
    )* };
}

from_string! { PciAddr Mac Gid }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_addresses_have_two_spellings_and_no_third() {
        let full: PciAddr = "0000:3B:00.1".parse().unwrap();
        assert_eq!(full.to_string(), "0000:3b:00.1");
        assert_eq!("3b:00.1".parse(), Ok(full));
        for bad in
            ["", "3b:00", "3b:00.8", "3b:20.0", "+3b:0.01", "00:3b:00.1", "0000:3b:00.1 ", "0000-3b:00.1"]
        {
            assert!(bad.parse::<PciAddr>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_mac_gives_its_link_local_address() {
        let mac: Mac = "02:00:0a:01:02:03".parse().unwrap();
        assert_eq!(mac.link_local().to_string(), "fe80::aff:fe01:203");
        for bad in ["", "02:00:0a:01:02", "02:00:0a:01:02:03:04", "02:00:0a:01:02:+3", "zz:00:0a:01:02:03"] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }

    #[test]
    fn gids_of_both_families() {
        let mapped = Gid::from_ipv4(Ipv4Addr::new(192, 168, 1, 1));
        assert_eq!("::ffff:192.168.1.1".parse(), Ok(mapped));
        assert!("192.168.1.1".parse::<Gid>().is_err());
    }
}
