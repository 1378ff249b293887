//! What arrives at a channel: letters, and the silence of peers.

use super::channel::Mailbox;
use super::event::{Kind, Pending};
use super::id::{Id, State};
use super::{Cm, address, devices};
use crate::fabric::clock;
use crate::fabric::context::LinkId;
use crate::fabric::mailbox::{self, Control, Message, Offer};
use crate::fabric::process;
use crate::log;
use crate::rdma::Far;
use crate::topology;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// `IB_CM_REJ_TIMEOUT`: the other side has gone away.
const REJECT_TIMEOUT: i32 = 4;

impl Cm {
    /// Handles a letter. What does not fit the state of things is dropped: letters may come late.
    pub(super) fn receive(&mut self, mailbox: &Arc<Mailbox>, letter: Message) {
        log::trace!("rdma_cm: received {:?}", letter.kind);
        let here = mailbox.view().id().bits();
        if letter.kind == mailbox::Kind::Request {
            let asked = |id: &&Id| {
                id.state == State::Listening
                    && Arc::ptr_eq(&id.mailbox, mailbox)
                    && id.listens_on(letter.to.index, letter.port)
            };
            return match self.ids.values().find(asked).map(Id::key) {
                Some(listener) => self.request(listener, letter),
                None => self.refuse(mailbox, &letter, mailbox::Kind::Reject, mailbox::REJECT_NO_LISTENER),
            };
        }
        let Some(id) = self.names.get(&(here, letter.to.bits())).and_then(|key| self.ids.get_mut(key)) else {
            if letter.kind == mailbox::Kind::Reply {
                // The program did not wait for it: the server must not either.
                self.refuse(mailbox, &letter, mailbox::Kind::Disconnect, 0);
            }
            return;
        };
        let (key, channel) = (id.key(), id.channel);
        let plain = |kind, status| Pending::plain(key, kind, status);
        let pending = match (letter.kind, id.state) {
            (mailbox::Kind::Reply, State::Connecting) => {
                id.join(far_of(&letter));
                id.state = State::Answered;
                Pending { offer: letter.offer, data: letter.data, ..plain(Kind::ConnectResponse, 0) }
            }
            (mailbox::Kind::Reject, State::Connecting) => {
                id.state = State::Over;
                Pending { data: letter.data, ..plain(Kind::Rejected, letter.port.into()) }
            }
            (mailbox::Kind::Ready, State::Accepted) => {
                // The end that takes the data may be another than the one that asked.
                id.meet(far_of(&letter));
                id.state = State::Established;
                plain(Kind::Established, 0)
            }
            (mailbox::Kind::Disconnect, State::Accepted) => {
                id.state = State::Over;
                plain(Kind::Rejected, mailbox::REJECT_BY_PROGRAM.into())
            }
            (mailbox::Kind::Disconnect, State::Answered | State::Established) => {
                id.state = State::Left;
                plain(Kind::Disconnected, 0)
            }
            _ => return,
        };
        self.report(channel, pending);
    }

    /// A client asks a listener: a new identifier for the program to accept or reject.
    fn request(&mut self, listener: usize, letter: Message) {
        let Some(asked) = self.ids.get(&listener) else { return };
        let (mailbox, channel) = (asked.mailbox.clone(), asked.channel);
        let Some(mut id) = asked.child(&letter) else {
            return self.refuse(&mailbox, &letter, mailbox::Kind::Reject, mailbox::REJECT_NO_RESOURCES);
        };
        // Attached to now, so that the client's death is noticed.
        if !id.meet(far_of(&letter)) {
            id.forget_name();
            return;
        }
        let key = id.key();
        self.names.insert(id.name(), key);
        self.ids.insert(key, id);
        let pending = Pending {
            listener: Some(listener),
            offer: letter.offer,
            data: letter.data,
            ..Pending::plain(key, Kind::ConnectRequest, 0)
        };
        self.report(channel, pending);
    }

    /// Answers a letter for which there is no identifier.
    fn refuse(&mut self, mailbox: &Mailbox, letter: &Message, kind: mailbox::Kind, reason: u16) {
        let nobody = LinkId { index: 0, generation: 0 };
        let context = mailbox.view().id();
        let Ok(me) = process::local() else { return };
        let answer = Message {
            kind,
            process: me.reference(),
            context,
            from: nobody,
            control: Control { context, link: nobody },
            to: letter.control.link,
            device: letter.to.index,
            port: reason,
            offer: Offer::default(),
            data: Vec::new(),
        };
        if let Ok(view) =
            process::attach(letter.process).and_then(|peer| peer.context(letter.control.context))
        {
            self.send(&view, answer);
        }
    }

    /// Ends what waits for peers that are gone or silent.
    pub(super) fn look_after_peers(&mut self, channel: usize) {
        let now = clock::now();
        let mut events = Vec::new();
        for (key, id) in self.ids.iter_mut().filter(|(_, id)| id.channel == channel) {
            let Some((peer, until)) = id.waits_for() else { continue };
            let dead = !peer.process().is_alive();
            let (state, kind, status) = match id.state {
                State::Connecting if dead || until.is_some_and(|until| now >= until) => {
                    (State::Over, Kind::Unreachable, -libc::ETIMEDOUT)
                }
                State::Accepted if dead => (State::Over, Kind::Unreachable, -libc::ETIMEDOUT),
                State::Requested if dead => (State::Over, Kind::Rejected, REJECT_TIMEOUT),
                State::Answered | State::Established if dead => (State::Left, Kind::Disconnected, 0),
                _ => continue,
            };
            id.state = state;
            events.push(Pending::plain(*key, kind, status));
        }
        for event in events {
            self.report(channel, event);
        }
    }
}

fn far_of(letter: &Message) -> Far {
    Far { process: letter.process, context: letter.context, link: letter.from, control: letter.control }
}

impl Id {
    /// The identifier of a connection that a client asks this listener for; `None` if there is no room for one.
    fn child(&self, letter: &Message) -> Option<Id> {
        let devices = &topology::get().ok()?.devices;
        let (device, client) = (devices.get(letter.to.index as usize)?, devices.get(letter.device as usize)?);
        // In the family that the listener is bound to by a specific address, else in one that both sides have.
        let wanted = self.source.filter(|source| !source.ip().is_unspecified()).map(|source| source.ip());
        let v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let v4 = device.ipv4.filter(|_| client.ipv4.is_some()).map(IpAddr::V4);
        let family = wanted.or(v4).unwrap_or(v6);
        let at = |device, port| address::ip_of(device, family).map(|ip| SocketAddr::new(ip, port));
        let mut id = self.sibling().ok()?;
        id.state = State::Requested;
        id.device = Some(device.index);
        id.source = at(device, letter.port);
        id.destination = at(client, letter.offer.port);
        id.show(devices::context(device));
        Some(id)
    }
}
