//! `rdma_getaddrinfo`: names to addresses.

use super::address;
use super::layout::AddrInfo;
use std::ffi::CStr;
use std::net::SocketAddr;
use std::ptr;

const RAI_PASSIVE: i32 = 1;
const RAI_NUMERICHOST: i32 = 2;
const QPT_RC: i32 = 2;
const PS_TCP: i32 = 0x0106;

/// A result with the addresses that it points to.
#[repr(C)]
struct Whole {
    info: AddrInfo,
    source: Option<Box<libc::sockaddr_storage>>,
    destination: Option<Box<libc::sockaddr_storage>>,
}

/// Gives one result, or what `getaddrinfo` says. `hints` may name a source address.
///
/// # Safety
///
/// The source address of `hints`, if any, is a whole socket address.
pub unsafe fn find(
    node: Option<&CStr>,
    service: Option<&CStr>,
    hints: Option<&AddrInfo>,
) -> Result<*mut AddrInfo, i32> {
    let (flags, family) = hints.map_or((0, 0), |hints| (hints.flags, hints.family));
    let passive = flags & RAI_PASSIVE != 0;
    // SAFETY: all-zero is a valid `addrinfo`.
    let mut wanted: libc::addrinfo = unsafe { std::mem::zeroed() };
    wanted.ai_socktype = libc::SOCK_STREAM;
    for (from, to) in [(RAI_PASSIVE, libc::AI_PASSIVE), (RAI_NUMERICHOST, libc::AI_NUMERICHOST)] {
        if flags & from != 0 {
            wanted.ai_flags |= to;
        }
    }
    // Zero is any family. Programs that name one are not seen to set the flag that says so.
    wanted.ai_family = family;
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let mut found = ptr::null_mut();
    // SAFETY: two strings or NULLs, valid hints, and room for the result.
    let code = unsafe { libc::getaddrinfo(pointer(node), pointer(service), &wanted, &mut found) };
    if code != 0 {
        return Err(code);
    }
    // SAFETY: on success there is at least one result, whose address is whole.
    let first = unsafe { address::read((*found).ai_addr) };
    // SAFETY: what getaddrinfo gave, once.
    unsafe { libc::freeaddrinfo(found) };
    let first = first.map_err(|_| libc::EAI_FAMILY)?;
    // SAFETY: by the contract of this function.
    let source = hints.and_then(|hints| unsafe { address::read(hints.src_addr) }.ok());
    let (source, destination) = if passive { (Some(first), None) } else { (source, Some(first)) };
    Ok(whole(flags, source, destination, hints))
}

fn whole(
    flags: i32,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    hints: Option<&AddrInfo>,
) -> *mut AddrInfo {
    let boxed = |addr: Option<SocketAddr>| addr.map(|addr| Box::new(address::write(addr)));
    let length = |addr: Option<SocketAddr>| match addr {
        None => 0,
        Some(SocketAddr::V4(_)) => size_of::<libc::sockaddr_in>() as libc::socklen_t,
        Some(SocketAddr::V6(_)) => size_of::<libc::sockaddr_in6>() as libc::socklen_t,
    };
    let family = match source.or(destination) {
        Some(SocketAddr::V6(_)) => libc::AF_INET6,
        _ => libc::AF_INET,
    };
    let chosen = |wanted: Option<i32>, usual: i32| wanted.filter(|value| *value != 0).unwrap_or(usual);
    let mut whole = Box::new(Whole {
        info: AddrInfo {
            flags,
            family,
            qp_type: chosen(hints.map(|hints| hints.qp_type), QPT_RC),
            port_space: chosen(hints.map(|hints| hints.port_space), PS_TCP),
            src_len: length(source),
            dst_len: length(destination),
            src_addr: ptr::null_mut(),
            dst_addr: ptr::null_mut(),
            rest: [0; 6],
            next: ptr::null_mut(),
        },
        source: boxed(source),
        destination: boxed(destination),
    });
    let bare = |addr: &mut Option<Box<libc::sockaddr_storage>>| {
        addr.as_mut().map_or(ptr::null_mut(), |addr| ptr::from_mut(&mut **addr).cast())
    };
    whole.info.src_addr = bare(&mut whole.source);
    whole.info.dst_addr = bare(&mut whole.destination);
    Box::into_raw(whole).cast()
}

/// Frees a result.
///
/// # Safety
///
/// `info` is NULL or what [`find`] gave, once.
pub unsafe fn free(info: *mut AddrInfo) {
    if !info.is_null() {
        // SAFETY: made by `Box::into_raw` of a `Whole`, whose first field this is.
        drop(unsafe { Box::from_raw(info.cast::<Whole>()) });
    }
}
