//! Making and ending connections: descriptors, and RDMA CM with its letters.
//!
//! ```text
//! client                          server
//! connect_to_addr   --Request-->  request callback
//! established cb    <--Reply----  accept          (or Reject: failure callback)
//!                   --Ready---->  established callback
//! disconnection cb  <-Disconnect- disconnect, stop, death
//! ```

use super::connection::{ConnState, Connection, Far, Origin};
use super::running::{EventKind, Running};
use super::{Addr, Rdma};
use crate::code::{Code, Res};
use crate::ctx::{Context, CtxState};
use crate::fabric::context::{ContextView, FarEnd, LinkId, LinkState};
use crate::fabric::descriptor::ConnectionDescriptor;
use crate::fabric::listener::{self, Listener};
use crate::fabric::mailbox::{self, Control, Kind, Message, Offer};
use crate::fabric::network::{self, Address};
use crate::fabric::queue::{self, Holder};
use crate::fabric::{clock, process};
use crate::log;
use crate::profile;
use std::rc::Rc;
use std::sync::Arc;

/// Private data that librdmacm carries for this port space.
pub(super) const MAX_PRIVATE_DATA: usize = 196;
/// RDMA reads and atomics outstanding on a connection. (Proposed.)
const READS: u8 = 16;

fn running_or_starting(rdma: &Rdma) -> Res<Rc<Running>> {
    match rdma.ctx().state() {
        CtxState::Starting | CtxState::Running => rdma.running(),
        state => {
            log::error!("doca_rdma: connections need a context that is started, and it is {state:?}");
            Err(Code::BAD_STATE)
        }
    }
}

/// What a running instance has. BAD_STATE if it does not run.
pub(super) fn running(rdma: &Rdma) -> Res<Rc<Running>> {
    // A context that waits for its first connection must be able to make it.
    if !profile::get().starting_until_connected || rdma.ctx().state() != CtxState::Starting {
        rdma.ctx().require_running()?;
    }
    rdma.running()
}

impl Rdma {
    /// `doca_rdma_export`: a new connection and its descriptor, which the connection keeps.
    pub fn export(&self) -> Res<Rc<Connection>> {
        let running = running_or_starting(self)?;
        let connection = running.new_connection(Origin::Export, ConnState::Exported)?;
        let descriptor = ConnectionDescriptor {
            process: process::local()?.reference(),
            context: running.view().id(),
            link: connection.id(),
            transport: self.properties.transport.get(),
        };
        let _ = connection.descriptor.set(descriptor.encode());
        Ok(connection)
    }

    /// `doca_rdma_connect`
    pub fn connect(&self, blob: &[u8], connection: &Connection) -> Res {
        let running = running_or_starting(self)?;
        let connection = running.find(connection).ok_or(Code::INVALID_VALUE)?;
        if connection.state() != ConnState::Exported {
            return Err(Code::BAD_STATE);
        }
        let descriptor = ConnectionDescriptor::decode(blob).map_err(|bad| {
            log::error!("doca_rdma_connect: not a connection descriptor: {}", bad.0);
            Code::CONNECTION_ABORTED
        })?;
        if descriptor.transport != self.properties.transport.get() {
            log::error!("doca_rdma_connect: the peer uses another transport type");
            return Err(Code::DRIVER);
        }
        let far = Far::plain(descriptor.process, descriptor.context, descriptor.link);
        join(&running, &connection, far)?;
        connection.set_state(ConnState::Connected);
        // The peer may be connected already and have sent something.
        connection.pump_far(running.view());
        Ok(())
    }

    /// `doca_rdma_start_listen_to_port`
    pub fn listen(&self, port: u16) -> Res {
        let running = running(self)?;
        if self.properties.transport.get() != 0 {
            log::error!("doca_rdma_start_listen_to_port: RDMA CM connects over RC only");
            return Err(Code::NOT_SUPPORTED);
        }
        if port == 0 {
            log::error!("doca_rdma_start_listen_to_port: no client could ask which port 0 became");
            return Err(Code::INVALID_VALUE);
        }
        if running.listeners.borrow().iter().any(|(known, _)| *known == port) {
            return Err(Code::BAD_STATE);
        }
        let device = self.device_index();
        let listener = Listener::claim(Address::Port(device, port), running.view().id()).map_err(|code| {
            log::error!("port {port} of {} cannot be listened on: {code:?}", self.device().ibdev);
            Code::CONNECTION_ABORTED
        })?;
        running.listeners.borrow_mut().push((port, listener));
        log::debug!("listening on port {port} of {}", self.device().ibdev);
        Ok(())
    }

    /// `doca_rdma_stop_listen_to_port`
    pub fn stop_listening(&self, port: u16) -> Res {
        let running = running(self)?;
        let mut listeners = running.listeners.borrow_mut();
        let index = listeners.iter().position(|(known, _)| *known == port).ok_or(Code::INVALID_VALUE)?;
        listeners.swap_remove(index);
        Ok(())
    }

    /// `doca_rdma_connect_to_addr`: what goes wrong after the first checks is told by the failure callback.
    pub fn connect_to(&self, addr: &Addr, user_data: u64) -> Res {
        let running = running(self)?;
        if self.cm.get().is_none() {
            log::error!("doca_rdma_connect_to_addr without connection state callbacks");
            return Err(Code::INVALID_VALUE);
        }
        if self.properties.transport.get() != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let connection = running.new_connection(Origin::Client, ConnState::Connecting)?;
        connection.user_data.set(user_data);
        connection.program_addr.set(addr);
        addr.count_user(1);
        let timeout = clock::millis(self.properties.connection_request_timeout.get().into());
        connection.deadline.set(clock::now() + timeout * listener::THINKING);

        let Some(server) = find_listener(addr) else {
            let network = network::directory();
            let why = format!("nobody listens at that address and port in the network {}", network.display());
            give_up(&running, &connection, &why);
            return Ok(());
        };
        connection.set_far(server);
        let Some(view) = connection.far_mailbox() else {
            give_up(&running, &connection, "the listener cannot be reached");
            return Ok(());
        };
        let request = message(self, &running, &connection, Kind::Request, addr.port(), &[])?;
        send(&running, view, request);
        Ok(())
    }

    /// `doca_rdma_connection_accept`
    pub fn accept(&self, connection: &Connection, private_data: &[u8]) -> Res {
        let running = running(self)?;
        let connection = running.find(connection).ok_or(Code::BAD_STATE)?;
        if connection.state() != ConnState::Requested || connection.origin == Origin::Bridge {
            return Err(Code::BAD_STATE);
        }
        if private_data.len() > MAX_PRIVATE_DATA {
            return Err(Code::INVALID_VALUE);
        }
        let far = connection.far().ok_or(Code::UNEXPECTED)?;
        let data = connection.far_view().filter(|view| view.process().is_alive());
        let waits = data.as_ref().is_some_and(|view| {
            view.named_link(far.link).is_some_and(|link| link.state() == LinkState::Init)
        });
        let (Some(mailbox), true) = (connection.far_mailbox(), waits) else {
            log::error!("the client gave up before the request was accepted");
            running.tell(EventKind::Failure, &connection);
            connection.set_state(ConnState::Ending);
            return Err(Code::CONNECTION_ABORTED);
        };
        join(&running, &connection, far)?;
        connection.set_state(ConnState::Accepted);
        let reply = message(self, &running, &connection, Kind::Reply, 0, private_data)?;
        send(&running, mailbox, reply);
        Ok(())
    }

    /// `doca_rdma_connection_reject`
    pub fn reject(&self, connection: &Connection) -> Res {
        let running = running(self)?;
        let connection = running.find(connection).ok_or(Code::BAD_STATE)?;
        if connection.state() != ConnState::Requested || connection.origin == Origin::Bridge {
            return Err(Code::BAD_STATE);
        }
        farewell(&running, &connection);
        running.end_connection(&connection);
        Ok(())
    }

    /// `doca_rdma_connection_disconnect`
    pub fn disconnect(&self, connection: &Connection) -> Res {
        if self.ctx().state() == CtxState::Idle {
            return Err(Code::BAD_STATE);
        }
        let running = self.running()?;
        connection.require_alive()?;
        let connection = running.find(connection).ok_or(Code::BAD_STATE)?;
        if connection.origin == Origin::Bridge {
            running.end_connection(&connection);
            return Ok(());
        }
        match connection.state() {
            ConnState::Requested => {
                farewell(&running, &connection);
                running.end_connection(&connection);
            }
            ConnState::Exported | ConnState::Connected => running.end_connection(&connection),
            ConnState::Connecting => give_up(&running, &connection, "disconnected before it was established"),
            ConnState::Accepted | ConnState::Established => {
                let told = connection.state();
                farewell(&running, &connection);
                if profile::get().disconnect_not_told_to_initiator {
                    running.end_connection(&connection);
                } else {
                    end(&running, &connection, told);
                }
            }
            // Inside the disconnection callback, where programs acknowledge.
            ConnState::Ending | ConnState::Gone => {}
        }
        Ok(())
    }
}

/// This side is set up for the far end.
pub(super) fn join(running: &Running, connection: &Connection, far: Far) -> Res {
    connection.set_far(far);
    let link = running.view().link(connection.id().index).ok_or(Code::UNEXPECTED)?;
    link.connect(FarEnd { process: far.process.id().bits(), context: far.context, link: far.link });
    Ok(())
}

fn find_listener(addr: &Addr) -> Option<Far> {
    let found = listener::find(&Address::Port(addr.resolve()?, addr.port()))?;
    Some(Far::plain(found.process, found.context, found.link))
}

/// What this side lets a program that reads events of librdmacm know.
fn offer(rdma: &Rdma, connection: &Connection) -> Offer {
    Offer {
        responder_resources: READS,
        initiator_depth: READS,
        retry_count: 7,
        rnr_retry_count: rdma.properties.rnr_retry_count.get(),
        qp_num: connection.id().index + 1,
        ..Offer::default()
    }
}

/// A letter about a connection to the far end, or to whoever keeps the connection there.
pub(super) fn message(
    rdma: &Rdma,
    running: &Running,
    connection: &Connection,
    kind: Kind,
    port: u16,
    data: &[u8],
) -> Res<Message> {
    let here = Control { context: running.view().id(), link: connection.id() };
    Ok(Message {
        kind,
        process: process::local()?.reference(),
        context: running.view().id(),
        from: connection.id(),
        control: connection.own_control.get().unwrap_or(here),
        to: connection.far().map_or(LinkId { index: 0, generation: 0 }, |far| far.control.link),
        device: rdma.device_index(),
        port,
        offer: offer(rdma, connection),
        data: data.to_vec(),
    })
}

/// Posts a letter, now or when there is room.
pub(super) fn send(running: &Running, to: Arc<ContextView>, message: Message) {
    log::trace!("connection {}: sends {:?}", message.from.index, message.kind);
    if mailbox::post(&to, &message) == Err(Code::AGAIN) {
        running.outbox.borrow_mut().push_back((to, message));
    }
}

/// Tells the far end that the connection is over, as far as it knows of it.
pub fn farewell(running: &Running, connection: &Connection) {
    if connection.origin == Origin::Bridge {
        // The end of its rdma_cm_id tells it.
        return;
    }
    let (kind, reason) = match connection.state() {
        ConnState::Requested => (Kind::Reject, mailbox::REJECT_BY_PROGRAM),
        ConnState::Accepted | ConnState::Established => (Kind::Disconnect, 0),
        _ => return,
    };
    let Some(rdma) = connection.owner().upgrade() else { return };
    if let Some(view) = connection.far_mailbox()
        && let Ok(letter) = message(&rdma, running, connection, kind, reason, &[])
    {
        send(running, view, letter);
    }
}

/// The link breaks; the program will be told what fits the state it knew.
fn end(running: &Running, connection: &Rc<Connection>, known: ConnState) {
    connection.set_state(ConnState::Ending);
    connection.break_link(running.view());
    let kind = if known == ConnState::Established { EventKind::Disconnection } else { EventKind::Failure };
    running.tell(kind, connection);
}

/// A client's attempt has failed.
pub fn give_up(running: &Running, connection: &Rc<Connection>, why: &str) {
    log::warning!("connection request failed: {why}");
    end(running, connection, ConnState::Connecting);
}

/// The far end's process has ended.
pub fn peer_died(running: &Running, connection: &Rc<Connection>) {
    let known = connection.state();
    if matches!(
        known,
        ConnState::Connecting | ConnState::Accepted | ConnState::Established | ConnState::Requested
    ) {
        log::debug!("the peer of connection {} is gone", connection.id().index);
        end(running, connection, known);
    }
}

/// Handles a letter. What does not fit the state of things is dropped: letters may come late.
pub fn receive(rdma: &Rdma, running: &Running, letter: Message) {
    log::trace!("received {:?} for connection {}", letter.kind, letter.to.index);
    let far =
        Far { process: letter.process, context: letter.context, link: letter.from, control: letter.control };
    if letter.kind == Kind::Request {
        return request(rdma, running, far, letter.port);
    }
    if letter.kind == Kind::Refused {
        let holder = if letter.device == 0 { Holder::Context } else { Holder::Mmap };
        let reason = queue::describe_refusal("this side's", holder, letter.port.into());
        log::error!("access of a peer on connection {} refused: {reason}", letter.to.index);
        return;
    }
    let waiting = |c: &Rc<Connection>| letter.kind != Kind::Reply || c.state() == ConnState::Connecting;
    let Some(connection) = running.connection(letter.to).filter(waiting) else {
        if letter.kind == Kind::Reply {
            // The program did not wait for it: the server must not either.
            answer(rdma, running, &far, Kind::Disconnect, 0);
        }
        return;
    };
    match (letter.kind, connection.state()) {
        (Kind::Reply, ConnState::Connecting) => {
            if join(running, &connection, far).is_err() {
                return;
            }
            connection.deadline.set(u64::MAX);
            connection.set_state(ConnState::Established);
            let ready = message(rdma, running, &connection, Kind::Ready, 0, &[]);
            if let (Ok(ready), Some(view)) = (ready, connection.far_mailbox()) {
                send(running, view, ready);
            }
            running.tell(EventKind::Established, &connection);
            connection.pump_far(running.view());
        }
        (Kind::Reject, ConnState::Connecting) => give_up(running, &connection, "rejected by the server"),
        (Kind::Ready, ConnState::Accepted) => {
            // A client of librdmacm may have lent its connection to an instance only now.
            if connection.far() != Some(far) && join(running, &connection, far).is_err() {
                return;
            }
            connection.set_state(ConnState::Established);
            running.tell(EventKind::Established, &connection);
        }
        (Kind::Disconnect, known @ (ConnState::Accepted | ConnState::Established)) => {
            end(running, &connection, known);
        }
        _ => {}
    }
}

/// Answers a letter for which there is no connection.
fn answer(rdma: &Rdma, running: &Running, far: &Far, kind: Kind, port: u16) {
    let view = process::attach(far.process).and_then(|process| process.context(far.control.context));
    let me = process::local().map(|process| process.reference());
    if let (Ok(view), Ok(me)) = (view, me) {
        let nobody = LinkId { index: 0, generation: 0 };
        let letter = Message {
            kind,
            process: me,
            context: running.view().id(),
            from: nobody,
            control: Control { context: running.view().id(), link: nobody },
            to: far.control.link,
            device: rdma.device_index(),
            port,
            offer: Offer::default(),
            data: Vec::new(),
        };
        send(running, view, letter);
    }
}

fn request(rdma: &Rdma, running: &Running, far: Far, port: u16) {
    let refuse = |reason: u16, why: &str| {
        log::warning!("connection request refused: {why}");
        answer(rdma, running, &far, Kind::Reject, reason);
    };
    let listens = running.listeners.borrow().iter().any(|(known, _)| *known == port);
    if !listens || !matches!(rdma.ctx().state(), CtxState::Starting | CtxState::Running) {
        return refuse(mailbox::REJECT_NO_LISTENER, "this port is not listened on any more");
    }
    if rdma.cm.get().and_then(|callbacks| callbacks.request).is_none() {
        return refuse(mailbox::REJECT_BY_PROGRAM, "no connection request callback is set");
    }
    let Ok(connection) = running.new_connection(Origin::Server, ConnState::Requested) else {
        return refuse(
            mailbox::REJECT_NO_RESOURCES,
            "all connections are in use: raise doca_rdma_set_max_num_connections",
        );
    };
    connection.set_far(far);
    if let Ok(addr) = Addr::of_listener(rdma.device(), port) {
        let _ = connection.own_addr.set(Box::new(addr));
    }
    // Attach now, so that the client's death is noticed.
    if connection.far_view().is_none() {
        running.end_connection(&connection);
        return;
    }
    running.tell(EventKind::Request, &connection);
}

/// Runs the program's callback for an event.
pub fn deliver(rdma: &Rdma, running: &Running, kind: EventKind, connection: &Rc<Connection>) {
    let Some(callbacks) = rdma.cm.get() else { return };
    let pointer = Rc::as_ptr(connection);
    let ctx_data = rdma.ctx().user_data();
    log::trace!("connection {}: {kind:?}", connection.id().index);
    let callback = match kind {
        EventKind::Request => {
            if connection.state() == ConnState::Requested
                && let Some(request) = callbacks.request
            {
                // SAFETY: the program's own function, with what its type promises.
                unsafe { request(pointer, ctx_data) };
            }
            return;
        }
        // Even if it has ended meanwhile: the program hears of the end next.
        EventKind::Established if connection.state() == ConnState::Gone => return,
        EventKind::Established => callbacks.established,
        EventKind::Failure => callbacks.failure,
        EventKind::Disconnection => callbacks.disconnection,
    };
    // SAFETY: as above.
    unsafe { callback(pointer, connection.user_data.get(), ctx_data) };
    if kind != EventKind::Established {
        running.end_connection(connection);
    }
}
