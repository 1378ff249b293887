//! Local sockets: connected to without waiting, read and written without signals.

use crate::frame::Identity;
use crate::settings::abstract_name;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, getsockopt, sendmsg, socket, sockopt,
};
use std::io::IoSlice;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Connects to a stream socket. The result does not block.
///
/// # Errors
/// `EAGAIN`: somebody listens, but the queue is full. `ECONNREFUSED`: nobody listens.
pub fn dial(path: &Path) -> Result<UnixStream, Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let address = match abstract_name(path) {
        Some(name) => UnixAddr::new_abstract(name)?,
        None => UnixAddr::new(path)?,
    };
    connect(fd.as_raw_fd(), &address)?;
    Ok(UnixStream::from(fd))
}

/// Writes what fits of two slices. Never raises SIGPIPE.
pub(crate) fn write_two(socket: &UnixStream, first: &[u8], second: &[u8]) -> Result<usize, Errno> {
    let both = [IoSlice::new(first), IoSlice::new(second)];
    let slices = if second.is_empty() { &both[..1] } else { &both };
    sendmsg::<()>(socket.as_raw_fd(), slices, &[], MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT, None)
}

/// Reads what is there.
pub(crate) fn read(socket: &UnixStream, into: &mut [u8]) -> Result<usize, Errno> {
    nix::unistd::read(socket, into)
}

/// Takes the next client, not blocking.
pub(crate) fn accept(listener: &std::os::unix::net::UnixListener) -> Result<UnixStream, std::io::Error> {
    let (socket, _) = listener.accept()?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Who is at the other end.
pub fn identity(socket: &UnixStream) -> Identity {
    match getsockopt(socket, sockopt::PeerCredentials) {
        Ok(peer) => Identity { pid: peer.pid().cast_unsigned(), uid: peer.uid(), gid: peer.gid() },
        Err(_) => Identity::default(),
    }
}
