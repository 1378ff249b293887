//! Addresses: between `struct sockaddr` and the topology.

use super::{Errno, Outcome, layout::RawGid};
use crate::topology::{self, Device, Gid};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Reads an address of a program. EINVAL for NULL, EAFNOSUPPORT for anything but IPv4 and IPv6.
///
/// # Safety
///
/// `addr` is NULL or points to a socket address as long as its family says.
pub(super) unsafe fn read(addr: *const libc::sockaddr) -> Outcome<SocketAddr> {
    if addr.is_null() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: not NULL, and every socket address starts with its family.
    match i32::from(unsafe { (*addr).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says what it is; it may be unaligned.
            let v4 = unsafe { addr.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Ok(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Ok(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => Err(Errno(libc::EAFNOSUPPORT)),
    }
}

/// An address as C has it.
pub(super) fn write(addr: SocketAddr) -> libc::sockaddr_storage {
    // SAFETY: all-zero is a valid `sockaddr_storage`.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let room = std::ptr::from_mut(&mut storage);
    match addr {
        SocketAddr::V4(v4) => {
            let made = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a `sockaddr_storage` has room and alignment for every socket address.
            unsafe { room.cast::<libc::sockaddr_in>().write(made) };
        }
        SocketAddr::V6(v6) => {
            let made = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { room.cast::<libc::sockaddr_in6>().write(made) };
        }
    }
    storage
}

/// The devices that this process can use.
pub(super) fn devices() -> Outcome<impl Iterator<Item = &'static Device>> {
    Ok(topology::get()?.of(topology::side()?).filter(|device| device.rdma.supported))
}

/// The device of this side with an address: `None` for the wildcard. EADDRNOTAVAIL if no device has it, ENODEV if that
/// device has no RDMA.
pub(super) fn local(ip: IpAddr) -> Outcome<Option<&'static Device>> {
    if ip.is_unspecified() {
        return Ok(None);
    }
    if ip.is_loopback() {
        return devices()?.next().map(Some).ok_or(Errno(libc::ENODEV));
    }
    let found = topology::get()?.of(topology::side()?).find(|device| device.has_ip(ip));
    match found {
        None => Err(Errno(libc::EADDRNOTAVAIL)),
        Some(device) if !device.rdma.supported => Err(Errno(libc::ENODEV)),
        Some(device) => Ok(Some(device)),
    }
}

/// The device with an address, on either side.
pub(super) fn anywhere(ip: IpAddr) -> Outcome<Option<&'static Device>> {
    if ip.is_loopback() {
        return local(ip);
    }
    Ok(topology::get()?.devices.iter().find(|device| device.rdma.supported && device.has_ip(ip)))
}

/// The device from which a destination is reached: itself, else the nearest by its address. ENODEV if there is none.
pub(super) fn route(destination: &Device, to: IpAddr) -> Outcome<&'static Device> {
    let nearness = |device: &Device| match (ip_of(device, to), to) {
        _ if device.index == destination.index => Some(u32::MAX),
        (Some(IpAddr::V4(from)), IpAddr::V4(to)) => Some((from.to_bits() ^ to.to_bits()).leading_zeros()),
        (Some(IpAddr::V6(from)), IpAddr::V6(to)) => Some((from.to_bits() ^ to.to_bits()).leading_zeros()),
        _ => None,
    };
    // Of equals the first.
    let near = devices()?.filter_map(|device| Some((nearness(device)?, device)));
    let best = near.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, device)| device).ok_or(Errno(libc::ENODEV))
}

/// The address of a device in the family of another address.
pub(super) fn ip_of(device: &Device, like: IpAddr) -> Option<IpAddr> {
    match like {
        IpAddr::V4(_) => device.ipv4.map(IpAddr::V4),
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => device.ipv4.map(|v4| v4.to_ipv6_mapped().into()),
        IpAddr::V6(_) => Some(device.ipv6_addr().into()),
    }
}

/// The GID that stands for an address.
pub(super) fn gid(ip: IpAddr) -> RawGid {
    RawGid(match ip {
        IpAddr::V4(v4) => Gid::from_ipv4(v4).0,
        IpAddr::V6(v6) => Gid::from_ipv6(v6).0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> SocketAddr {
        let storage = write(text.parse().unwrap());
        // SAFETY: a whole socket address.
        unsafe { read((&raw const storage).cast()) }.unwrap()
    }

    #[test]
    fn addresses_survive_the_way_to_c_and_back() {
        for text in ["192.168.1.1:4420", "[fe80::1]:7", "[::]:0"] {
            assert_eq!(round(text), text.parse().unwrap());
        }
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { read(std::ptr::null()) }, Err(Errno(libc::EINVAL)));
    }

    #[test]
    fn the_nearest_device_is_the_source() {
        let from = |text: &str| {
            let to: IpAddr = text.parse().unwrap();
            route(anywhere(to).unwrap().unwrap(), to).unwrap().ibdev.as_str()
        };
        assert_eq!(from("192.168.1.2"), "mlx5_0");
        assert_eq!(from("192.168.2.2"), "mlx5_1");
        assert_eq!(from("192.168.2.1"), "mlx5_1");
        assert_eq!(from("::ffff:192.168.2.2"), "mlx5_1");
        assert_eq!(local("192.168.1.2".parse().unwrap()).err(), Some(Errno(libc::EADDRNOTAVAIL)));
        assert!(anywhere("10.0.0.1".parse().unwrap()).unwrap().is_none());
    }
}
