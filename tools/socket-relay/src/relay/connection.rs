//! The local ends of streams: their sockets and whose turn it is.

use crate::local;
use crate::mux::Mux;
use crate::transport::Bulk;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use std::collections::{HashMap, VecDeque};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Bytes read from a client at a time.
pub(super) const CHUNK: usize = 64 << 10;

/// One local socket.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: UnixStream,
    pub(super) since: Instant,
    /// Whether the other relay has reached the application.
    pub(super) accepted: bool,
    readable: bool,
    writable: bool,
    /// Closed both ways by its other end.
    hung_up: bool,
    /// Nothing more is to be read.
    ended: bool,
    /// In the list of those that may have something to send.
    sending: bool,
    /// In the list of those that may have something to take.
    taking: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Connections {
    table: HashMap<u32, Connection>,
    senders: VecDeque<u32>,
    takers: VecDeque<u32>,
}

/// What reading from a client gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    Bytes(usize),
    Nothing,
    /// The client has closed its direction.
    End,
    /// The client has closed both.
    Gone,
}

impl Connections {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn add(
        &mut self,
        poller: &Epoll,
        token: u64,
        id: u32,
        socket: UnixStream,
    ) -> Result<(), Errno> {
        // Edges only, so that a socket that nobody may read costs nothing.
        let interest =
            EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        poller.add(&socket, EpollEvent::new(interest, token))?;
        let connection = Connection {
            socket,
            since: Instant::now(),
            accepted: false,
            readable: false,
            writable: true,
            hung_up: false,
            ended: false,
            sending: false,
            taking: false,
        };
        self.table.insert(id, connection);
        Ok(())
    }

    /// Closes the socket.
    pub(super) fn remove(&mut self, id: u32) -> bool {
        self.table.remove(&id).is_some()
    }

    /// What the poller saw.
    pub(super) fn wake(&mut self, id: u32, what: EpollFlags, mux: &mut Mux) {
        let Some(connection) = self.table.get_mut(&id) else { return };
        if what.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP) {
            connection.readable = true;
        }
        connection.writable |= what.intersects(EpollFlags::EPOLLOUT | EpollFlags::EPOLLHUP);
        connection.hung_up |= what.intersects(EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR);
        if connection.hung_up && connection.ended {
            mux.local_gone(id);
        }
        self.wants_to_send(id);
        self.wants_to_take(id);
    }

    /// The other relay has reached the application.
    pub(super) fn accept(&mut self, id: u32) {
        if let Some(connection) = self.table.get_mut(&id) {
            connection.accepted = true;
            connection.readable = true;
        }
        self.wants_to_send(id);
    }

    /// Nothing that this client sends is wanted any more.
    pub(super) fn stop_reading(&mut self, id: u32, mux: &mut Mux) {
        if let Some(connection) = self.table.get_mut(&id) {
            connection.ended = true;
            if connection.hung_up {
                mux.local_gone(id);
            }
        }
    }

    pub(super) fn wants_to_send(&mut self, id: u32) {
        if let Some(connection) = self.table.get_mut(&id)
            && connection.accepted
            && connection.readable
            && !connection.ended
            && !connection.sending
        {
            connection.sending = true;
            self.senders.push_back(id);
        }
    }

    pub(super) fn wants_to_take(&mut self, id: u32) {
        if let Some(connection) = self.table.get_mut(&id)
            && connection.writable
            && !connection.taking
        {
            connection.taking = true;
            self.takers.push_back(id);
        }
    }

    /// The next in turn to send.
    pub(super) fn next_sender(&mut self) -> Option<u32> {
        let id = self.senders.pop_front()?;
        if let Some(connection) = self.table.get_mut(&id) {
            connection.sending = false;
        }
        Some(id)
    }

    /// The next in turn to take.
    pub(super) fn next_taker(&mut self) -> Option<u32> {
        let id = self.takers.pop_front()?;
        if let Some(connection) = self.table.get_mut(&id) {
            connection.taking = false;
        }
        Some(id)
    }

    pub(super) fn has_turns(&self) -> bool {
        !self.takers.is_empty()
    }

    /// Who is next in turn to send.
    pub(super) fn first_sender(&self) -> Option<u32> {
        self.senders.front().copied()
    }

    /// Reads from a client, as `read` does; the client stays in turn as long as it gives something.
    pub(super) fn read(&mut self, id: u32, read: impl FnOnce(&UnixStream) -> Result<usize, Errno>) -> Taken {
        let Some(connection) = self.table.get_mut(&id).filter(|c| c.accepted && !c.ended) else {
            return Taken::Nothing;
        };
        match read(&connection.socket) {
            Ok(0) => {
                connection.ended = true;
                if connection.hung_up { Taken::Gone } else { Taken::End }
            }
            Ok(bytes) => {
                self.wants_to_send(id);
                Taken::Bytes(bytes)
            }
            Err(Errno::EAGAIN) => {
                connection.readable = false;
                Taken::Nothing
            }
            Err(Errno::EINTR) => {
                self.wants_to_send(id);
                Taken::Nothing
            }
            // It went with bytes of ours unread.
            Err(_) => {
                connection.ended = true;
                connection.hung_up = true;
                Taken::Gone
            }
        }
    }

    /// Hands a client the bytes of a message from an offset on, as far as it takes them now. What went wrong is met again
    /// by [`write`](Self::write).
    pub(super) fn pass(&mut self, id: u32, message: &dyn Bulk, offset: usize) -> usize {
        let Some(connection) = self.table.get_mut(&id) else { return 0 };
        let mut passed = 0;
        while connection.writable && offset + passed < message.len() {
            match message.send_to(&connection.socket, offset + passed) {
                Ok(bytes) => passed += bytes,
                Err(Errno::EAGAIN) => connection.writable = false,
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        passed
    }

    /// Writes what waits for the client, and the end after it. Gives the bytes that it took.
    pub(super) fn write(&mut self, id: u32, mux: &mut Mux, pass_end: bool) -> usize {
        let Some(connection) = self.table.get_mut(&id) else { return 0 };
        let mut total = 0;
        while connection.writable {
            let (first, second) = mux.incoming(id);
            if first.is_empty() {
                break;
            }
            match local::write_two(&connection.socket, first, second) {
                Ok(bytes) => {
                    total += bytes;
                    mux.delivered(id, bytes);
                }
                Err(Errno::EAGAIN) => connection.writable = false,
                Err(Errno::EINTR) => {}
                Err(_) => {
                    mux.discard(id);
                    if connection.ended {
                        mux.local_gone(id);
                    } else {
                        connection.readable = true;
                    }
                    break;
                }
            }
        }
        if mux.ends_here(id) {
            if pass_end {
                // It fails only where the client is gone already.
                _ = connection.socket.shutdown(Shutdown::Write);
            }
            mux.end_delivered(id);
        }
        total
    }

    /// Streams that the application has not accepted since.
    pub(super) fn waiting_since(&self, before: Instant) -> Vec<u32> {
        let late = |c: &Connection| !c.accepted && c.since < before;
        self.table.iter().filter(|(_, c)| late(c)).map(|(id, _)| *id).collect()
    }

    pub(super) fn ids(&self) -> Vec<u32> {
        self.table.keys().copied().collect()
    }

    pub(super) fn clear(&mut self) {
        *self = Connections::default();
    }
}
