//! Whether two ports reach each other: the GIDs that their contexts use, as small as a word of shared memory.

use std::fmt;
use std::net::Ipv4Addr;

/// How packets of a context travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    /// The slot of the GID table is empty.
    Nowhere = 0,
    Infiniband = 1,
    /// Ethernet frames: one network, whatever the GIDs.
    RoceV1 = 2,
    /// UDP over IPv6.
    RoceV2Ipv6 = 3,
    /// UDP over IPv4.
    RoceV2Ipv4 = 4,
}

/// The part of a GID that decides who can be reached with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Route(u64);

impl Route {
    /// An empty slot.
    pub const NOWHERE: Route = Route::of(Class::Nowhere);
    /// InfiniBand.
    pub const INFINIBAND: Route = Route::of(Class::Infiniband);
    /// RoCE v1.
    pub const ROCE_V1: Route = Route::of(Class::RoceV1);
    /// RoCE v2 with a GID that is an IPv6 address.
    pub const ROCE_V2_IPV6: Route = Route::of(Class::RoceV2Ipv6);

    const fn of(class: Class) -> Route {
        Route(class as u64)
    }

    /// RoCE v2 with a GID that maps an IPv4 address, in a network of so many leading bits (at most 32).
    pub fn roce_v2_ipv4(addr: Ipv4Addr, prefix: u8) -> Route {
        Route(Class::RoceV2Ipv4 as u64 | u64::from(prefix.min(32)) << 8 | u64::from(addr.to_bits()) << 32)
    }

    /// As a number for shared memory.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From shared memory.
    pub fn from_bits(bits: u64) -> Route {
        Route(bits)
    }

    fn class(self) -> u8 {
        self.0 as u8
    }

    fn prefix(self) -> u32 {
        (self.0 >> 8) as u8 as u32
    }

    fn addr(self) -> Ipv4Addr {
        Ipv4Addr::from_bits((self.0 >> 32) as u32)
    }

    /// Whether packets get there and back.
    pub fn reaches(self, other: Route) -> bool {
        if self.class() == Class::Nowhere as u8 || self.class() != other.class() {
            return false;
        }
        // The longer prefix is the narrower view, and both ends must be within the other's network.
        let bits = self.prefix().max(other.prefix()).min(32);
        let differ = self.addr().to_bits() ^ other.addr().to_bits();
        differ.checked_shr(32 - bits).unwrap_or(0) == 0
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class() {
            0 => f.write_str("an empty slot of the GID table"),
            1 => f.write_str("InfiniBand"),
            2 => f.write_str("RoCE v1"),
            3 => f.write_str("RoCE v2 over IPv6"),
            _ => write!(f, "RoCE v2 over IPv4, {}/{}", self.addr(), self.prefix()),
        }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_reaches_like_within_one_network() {
        let v4 = |text: &str, prefix| Route::roce_v2_ipv4(text.parse().unwrap(), prefix);
        let classes = [Route::INFINIBAND, Route::ROCE_V1, Route::ROCE_V2_IPV6, v4("10.0.0.1", 0)];
        for (i, a) in classes.iter().enumerate() {
            for (j, b) in classes.iter().enumerate() {
                assert_eq!(a.reaches(*b), i == j, "{a} to {b}");
            }
            assert!(!a.reaches(Route::NOWHERE) && !Route::NOWHERE.reaches(*a));
        }
        assert!(!Route::NOWHERE.reaches(Route::NOWHERE));
        assert!(v4("10.0.1.1", 0).reaches(v4("192.168.7.9", 0)), "routed everywhere");
        assert!(v4("10.0.1.1", 24).reaches(v4("10.0.1.200", 24)));
        assert!(!v4("10.0.1.1", 24).reaches(v4("10.0.2.1", 24)));
        assert!(
            !v4("10.0.1.1", 16).reaches(v4("10.0.2.1", 24))
                && !v4("10.0.2.1", 24).reaches(v4("10.0.1.1", 16))
        );
        assert!(v4("10.0.1.1", 32).reaches(v4("10.0.1.1", 32)));
        assert_eq!(Route::from_bits(v4("10.0.1.1", 24).bits()).to_string(), "RoCE v2 over IPv4, 10.0.1.1/24");
    }
}
