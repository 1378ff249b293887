//! A link for tests of the loop: messages over a SEQPACKET socket, which has boundaries, order and back-pressure too.

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, connect, listen, recv,
    sendmsg, socket,
};
use socket_relay::fault::Fault;
use socket_relay::frame::Features;
use socket_relay::mux::Role;
use socket_relay::relay::{Handle, Outcome, Relay};
use socket_relay::settings::Settings;
use socket_relay::transport::{Lane, LinkEvent, LinkLimits, Refused, Transport};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

const MESSAGE: usize = 4080;

pub struct Pipe {
    role: Role,
    path: PathBuf,
    poller: Epoll,
    listener: Option<OwnedFd>,
    peer: Option<OwnedFd>,
    newcomer: Option<OwnedFd>,
    told_newcomer: bool,
    pending: Vec<Option<String>>,
    buffer: Vec<u8>,
}

impl Pipe {
    pub fn new(role: Role, path: &Path) -> Pipe {
        let poller = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        Pipe {
            role,
            path: path.to_owned(),
            poller,
            listener: None,
            peer: None,
            newcomer: None,
            told_newcomer: false,
            pending: Vec::new(),
            buffer: vec![0; MESSAGE],
        }
    }

    fn watch(&self, fd: &OwnedFd) {
        self.poller.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0)).unwrap();
    }

    fn open() -> OwnedFd {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap()
    }
}

impl Transport for Pipe {
    fn role(&self) -> Role {
        self.role
    }

    fn limits(&self) -> LinkLimits {
        LinkLimits { max_message: MESSAGE as u32, recv_queue: 64, features: Features::default() }
    }

    fn connect(&mut self) -> Result<(), Fault> {
        let fd = Self::open();
        let address = UnixAddr::new(&self.path).unwrap();
        match self.role {
            Role::Dpu => {
                _ = std::fs::remove_file(&self.path);
                bind(fd.as_raw_fd(), &address).unwrap();
                listen(&fd, Backlog::new(8).unwrap()).unwrap();
                self.watch(&fd);
                self.listener = Some(fd);
            }
            Role::Host => match connect(fd.as_raw_fd(), &address) {
                Ok(()) => {
                    self.watch(&fd);
                    self.peer = Some(fd);
                    self.pending.push(None);
                }
                Err(errno) => self.pending.push(Some(errno.to_string())),
            },
        }
        Ok(())
    }

    fn progress(&mut self, most: usize, sink: &mut dyn FnMut(LinkEvent<'_>)) -> bool {
        if !self.pending.is_empty() {
            let down = |why: String| LinkEvent::Down(why.as_str().into());
            sink(self.pending.remove(0).map_or(LinkEvent::Up, down));
            return true;
        }
        let mut any = false;
        if let Some(listener) = &self.listener
            && self.newcomer.is_none()
            && let Ok(fd) = accept4(listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC)
        {
            any = true;
            // SAFETY: accept4 has just made this descriptor, and nothing else knows of it.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            if self.peer.is_some() {
                self.newcomer = Some(fd);
            } else {
                self.watch(&fd);
                self.peer = Some(fd);
                sink(LinkEvent::Up);
                return true;
            }
        }
        for _ in 0..most {
            let Some(peer) = &self.peer else { break };
            match recv(peer.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(0) | Err(Errno::ECONNRESET) => {
                    self.peer = None;
                    sink(LinkEvent::Down("the peer is gone".into()));
                    return true;
                }
                Ok(bytes) => {
                    sink(LinkEvent::Message(&self.buffer[..bytes]));
                    any = true;
                }
                Err(_) => break,
            }
        }
        if self.newcomer.is_some() && !self.told_newcomer {
            self.told_newcomer = true;
            sink(LinkEvent::Newcomer);
        }
        any
    }

    fn send(&mut self, _: Lane, header: &[u8], payload: &[u8]) -> Result<(), Refused> {
        let Some(peer) = &self.peer else { return Err(Refused::Down) };
        let parts = [IoSlice::new(header), IoSlice::new(payload)];
        match sendmsg::<()>(peer.as_raw_fd(), &parts, &[], MsgFlags::MSG_NOSIGNAL, None) {
            Ok(_) => Ok(()),
            Err(Errno::EAGAIN) => Err(Refused::Busy),
            Err(_) => Err(Refused::Down),
        }
    }

    fn room(&self, _: Lane) -> usize {
        if self.peer.is_some() { 16 } else { 0 }
    }

    fn set_peer_queue(&mut self, _: u32) {}

    fn settle(&mut self, replace: bool) {
        self.told_newcomer = false;
        let newcomer = self.newcomer.take();
        if replace && let Some(fd) = newcomer {
            self.watch(&fd);
            self.peer = Some(fd);
            self.pending.push(None);
        }
    }

    fn alive(&mut self) -> bool {
        self.peer.is_some()
    }

    fn disconnect(&mut self) {
        if self.peer.take().is_some() {
            self.pending.push(Some("disconnected".to_owned()));
        }
    }

    fn close(&mut self) -> Result<(), Fault> {
        (self.peer, self.listener) = (None, None);
        Ok(())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.0.as_fd()
    }

    fn arm(&mut self) -> Duration {
        let mut events = [EpollEvent::empty()];
        let idle = self.pending.is_empty() && self.poller.wait(&mut events, EpollTimeout::ZERO) == Ok(0);
        if idle { Duration::from_millis(10) } else { Duration::ZERO }
    }

    fn describe(&self) -> String {
        format!("test link {}", self.path.display())
    }
}

/// What the relays say stands beside a test that fails.
struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        eprintln!("{:?} {} {}", std::thread::current().id(), record.level(), record.args());
    }

    fn flush(&self) {}
}

/// A relay in a thread of its own.
pub struct Running {
    pub handle: Handle,
    thread: Option<JoinHandle<Result<Outcome, Fault>>>,
}

impl Running {
    pub fn start(role: Role, settings: Settings, link: &Path) -> Running {
        if log::set_logger(&Log).is_ok() {
            log::set_max_level(log::LevelFilter::Debug);
        }
        let link = link.to_owned();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let relay = Relay::new(settings, Pipe::new(role, &link))?;
            sender.send(relay.handle()).unwrap();
            drop(sender);
            relay.run()
        });
        match receiver.recv() {
            Ok(handle) => Running { handle, thread: Some(thread) },
            Err(_) => panic!("the relay did not start: {:?}", thread.join().unwrap()),
        }
    }

    pub fn drain(mut self) -> Result<Outcome, Fault> {
        self.handle.drain();
        self.finish()
    }

    /// Waits for its end.
    pub fn finish(&mut self) -> Result<Outcome, Fault> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.handle.drain();
            self.handle.drain();
            _ = thread.join();
        }
    }
}
