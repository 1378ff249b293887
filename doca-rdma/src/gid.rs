//! GIDs: the addresses of an RDMA port, and which of them can be used.
//!
//! DOCA gives only the bytes of each entry. Whether an entry is for RoCE v1 or v2 comes from Linux (sysfs), where the
//! entry there has the same bytes. Without that: drivers enter each address twice, for v1 and then for v2, so of two
//! neighbours with the same bytes the first is taken for v1, the second for v2. Anything else is unknown, and
//! accepted.

use crate::raw;
use doca_common::{DeviceInfo, Error, Refusal, Result};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// Protocol of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Protocol {
    /// RoCE v1: one Ethernet segment only.
    RoceV1,
    /// RoCE v2: over UDP.
    RoceV2,
    /// InfiniBand.
    InfiniBand,
    /// Nothing tells.
    Unknown,
}

/// An entry of the GID table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gid {
    /// Its index.
    pub index: u32,
    /// Its bytes, in network order.
    pub bytes: [u8; 16],
    /// What it is for, as far as it is known.
    pub protocol: Protocol,
}

impl Gid {
    /// Whether there is no address in the entry.
    pub fn is_empty(&self) -> bool {
        self.bytes == [0; 16]
    }

    /// The address as IPv6.
    pub fn address(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.bytes)
    }

    /// The IPv4 address, if it is one in disguise.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.address().to_ipv4_mapped()
    }

    /// Whether it reaches its own link only.
    pub fn is_link_local(&self) -> bool {
        self.bytes[0] == 0xfe && self.bytes[1] & 0xc0 == 0x80
    }

    /// Whether traffic can use it: neither empty nor RoCE v1.
    pub fn is_usable(&self) -> bool {
        !self.is_empty() && self.protocol != Protocol::RoceV1
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "{}: empty", self.index);
        }
        let protocol = match self.protocol {
            Protocol::RoceV1 => "RoCE v1",
            Protocol::RoceV2 => "RoCE v2",
            Protocol::InfiniBand => "InfiniBand",
            Protocol::Unknown => "protocol unknown",
        };
        write!(f, "{}: {} ({protocol})", self.index, self.address())
    }
}

/// All entries of a device: `doca_rdma_cap_get_gid`.
///
/// # Errors
///
/// `DRIVER`
#[doc(alias = "doca_rdma_cap_get_gid")]
pub fn table(device: &DeviceInfo) -> Result<Vec<Gid>> {
    let raw = raw::caps::gids(device)?;
    let port = sysfs_port(device);
    let entry = |(index, bytes): (usize, &[u8; 16])| {
        let index = index as u32;
        let told = port.as_deref().and_then(|port| protocol_in(port, index, *bytes));
        Gid { index, bytes: *bytes, protocol: told.unwrap_or_else(|| derive(&raw, index as usize)) }
    };
    Ok(raw.iter().enumerate().map(entry).collect())
}

/// The entry at `index`, if traffic can use it.
///
/// # Errors
///
/// [`Refusal::Gid`] for an entry that is empty, RoCE v1 or beyond the table, with those that can be used.
pub fn at(device: &DeviceInfo, index: u32) -> Result<Gid> {
    pick(&table(device)?, index)
}

/// The best entry for RoCE v2: an IPv4 address first, then a routable IPv6 address, then any.
///
/// # Errors
///
/// [`Refusal::Gid`] if there is none.
pub fn roce_v2(device: &DeviceInfo) -> Result<Gid> {
    best(&table(device)?)
}

fn pick(table: &[Gid], index: u32) -> Result<Gid> {
    match table.get(index as usize) {
        Some(gid) if gid.is_usable() => Ok(*gid),
        Some(gid) => Err(refuse(&format!("entry {gid}"), table)),
        None => Err(refuse(&format!("index {index} is beyond the table of {}", table.len()), table)),
    }
}

fn best(table: &[Gid]) -> Result<Gid> {
    let worth = |gid: &&Gid| {
        let known = gid.protocol == Protocol::RoceV2;
        (known, gid.ipv4().is_some(), !gid.is_link_local(), std::cmp::Reverse(gid.index))
    };
    let candidates = table.iter().filter(|gid| gid.is_usable() && gid.protocol != Protocol::InfiniBand);
    candidates.max_by_key(worth).copied().ok_or_else(|| refuse("no entry for RoCE v2", table))
}

fn refuse(what: &str, table: &[Gid]) -> Error {
    let usable: Vec<String> = table.iter().filter(|gid| gid.is_usable()).map(ToString::to_string).collect();
    let usable = if usable.is_empty() { "none".to_owned() } else { usable.join(", ") };
    Error::refused("doca_rdma_set_gid_index", Refusal::Gid).with(format!("{what}; usable: {usable}"))
}

/// What the neighbours of an entry tell.
fn derive(table: &[[u8; 16]], index: usize) -> Protocol {
    let own = table[index];
    let same = |other: Option<usize>| other.and_then(|other| table.get(other)).is_some_and(|gid| *gid == own);
    let before = (0..index).rev().take_while(|&other| table[other] == own).count();
    match (own == [0; 16], before % 2 == 1, same(index.checked_add(1))) {
        (true, ..) => Protocol::Unknown,
        (_, true, _) => Protocol::RoceV2,
        (_, false, true) => Protocol::RoceV1,
        _ => Protocol::Unknown,
    }
}

/// The directory of the device's first port in sysfs, if the kernel knows the device.
fn sysfs_port(device: &DeviceInfo) -> Option<PathBuf> {
    let name = device.ibdev_name().ok().filter(|name| !name.is_empty() && !name.contains('/'))?;
    let port = Path::new("/sys/class/infiniband").join(name).join("ports/1");
    port.is_dir().then_some(port)
}

/// What sysfs says about an entry, if it means the same entry.
fn protocol_in(port: &Path, index: u32, bytes: [u8; 16]) -> Option<Protocol> {
    let read = |path: &str| std::fs::read_to_string(port.join(path)).ok();
    let address: Ipv6Addr = read(&format!("gids/{index}"))?.trim().parse().ok()?;
    if address.octets() != bytes {
        return None;
    }
    if read("link_layer")?.trim() == "InfiniBand" {
        return Some(Protocol::InfiniBand);
    }
    match read(&format!("gid_attrs/types/{index}"))?.trim() {
        "RoCE v2" => Some(Protocol::RoceV2),
        "IB/RoCE v1" => Some(Protocol::RoceV1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 1];
    const V4: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
    const NONE: [u8; 16] = [0; 16];

    fn table(raw: &[[u8; 16]]) -> Vec<Gid> {
        let gid = |index: usize| Gid { index: index as u32, bytes: raw[index], protocol: derive(raw, index) };
        (0..raw.len()).map(gid).collect()
    }

    #[test]
    fn of_two_equal_neighbours_the_second_is_v2() {
        let table = table(&[LINK, LINK, V4, V4, NONE, NONE]);
        let protocols: Vec<_> = table.iter().map(|gid| gid.protocol).collect();
        use Protocol::*;
        assert_eq!(protocols, [RoceV1, RoceV2, RoceV1, RoceV2, Unknown, Unknown]);
        assert_eq!(best(&table).unwrap().index, 3);
    }

    #[test]
    fn unusable_entries_are_refused_with_the_usable_ones() {
        let table = table(&[NONE, LINK, V4, V4]);
        assert_eq!(best(&table).unwrap().index, 3);
        for index in [0, 2, 4, u32::MAX] {
            let error = pick(&table, index).unwrap_err();
            assert_eq!(error.refusal(), Some(Refusal::Gid));
            let text = error.to_string();
            assert!(text.contains("3: ::ffff:10.0.0.1 (RoCE v2)"), "{text}");
            assert!(text.contains("1: fe80::200:ff:fe00:1 (protocol unknown)"), "{text}");
        }
        assert!(best(&[]).unwrap_err().to_string().contains("usable: none"));
    }
}
