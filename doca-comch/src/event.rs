//! What happens to the connections of a server or client, for event loops.

use crate::connection::{ConnectionId, RemoteConsumer};
use crate::run::Run;
use doca_common::Code;
use std::fmt;
use std::rc::Rc;

/// Something happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A connection was established.
    Connected(ConnectionId),
    /// A client did not get through to this server.
    ConnectFailed,
    /// A connection ended: the peer stopped, was lost, or the server ended it. DOCA itself does not tell of the last.
    Disconnected(ConnectionId),
    /// A message could not be sent, with what DOCA says of it.
    SendFailed(ConnectionId, Code),
    /// The peer has a new consumer, which producers on the connection can send to.
    ConsumerUp(RemoteConsumer),
    /// A consumer of the peer is gone.
    ConsumerDown(RemoteConsumer),
}

/// What happens to the connections of a server or client, in order, from the moment this was made. Read it after
/// progress; unread events are kept, so read them or drop this.
pub struct Events {
    run: Rc<Run>,
}

impl Events {
    pub(crate) fn new(run: Rc<Run>) -> Self {
        run.table().borrow_mut().record(true);
        Events { run }
    }
}

impl Iterator for Events {
    type Item = Event;

    /// The next event that was not read yet; more may come after progress.
    fn next(&mut self) -> Option<Event> {
        self.run.table().borrow_mut().next_event()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.run.table().borrow_mut().record(false);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
