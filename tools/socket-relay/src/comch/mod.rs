//! The link over DOCA Comch: the host is its client, the DPU its server.

mod beacon;
mod fast;
mod follow;
mod setup;

use crate::fault::Fault;
use crate::frame::{FastNote, Features};
use crate::mux::Role;
use crate::registry::{Entered, Registry};
use crate::settings::Settings;
use crate::transport::{Down, FastStates, Lane, LinkEvent, LinkLimits, Refused, Space, Transport};
pub use beacon::is_asking;
use beacon::{Asker, Lamp};
use doca_comch::{Client, Connection, ConnectionId, Events, Left, Server};
use doca_common::{Device, Error, ProgressEngine, Representor};
use fast::{Fast, Offer};
use setup::{check_name, client, configure, device_fault, finish, open, start};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Messages on their way, if the device allows as many.
const SENDS: u32 = 256;
/// Messages that wait for this side to look at them, if the device allows as many.
const QUEUE: u32 = 1024;
/// How long a context may take to stop.
const STOP: Duration = Duration::from_secs(5);
/// How long to sleep at most, for what notifications might miss.
const NAP: Duration = Duration::from_millis(10);
/// The same while a consumer starts: some releases lose that where the engine is armed, so it is not.
const STARTING_NAP: Duration = Duration::from_millis(1);
/// How long the DPU waits for its client to leave first.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a server may take to admit its client, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(5);
/// Messages of a newcomer that are kept until it is let in or sent away.
const KEPT: usize = 8;

/// Where the link goes.
#[derive(Clone, Debug)]
pub struct Place {
    /// PCI address of the device.
    pub device: String,
    /// DPU: PCI address of the representor.
    pub representor: Option<String>,
    /// Name of the service.
    pub service: String,
}

/// Messages as they came, in one piece of memory.
#[derive(Debug, Default)]
struct Inbox {
    bytes: Vec<u8>,
    entries: VecDeque<(ConnectionId, usize, usize)>,
}

impl Inbox {
    fn push(&mut self, from: ConnectionId, message: &[u8]) {
        if self.entries.is_empty() {
            self.bytes.clear();
        }
        self.entries.push_back((from, self.bytes.len(), message.len()));
        self.bytes.extend_from_slice(message);
    }
}

/// The context of one role.
#[derive(Debug)]
enum End {
    Host(Left<Client>),
    Dpu(Left<Server>),
}

/// The link. See [`Transport`].
pub struct Comch {
    /// Ends before the connection that it is on.
    fast: Option<Fast>,
    /// What the device can do of that.
    offer: Option<Offer>,
    /// DPU: the name that hosts ask under.
    lamp: Option<Lamp>,
    /// Host: what it asks when it was not taken.
    asker: Option<Asker>,
    asks: bool,
    /// Host: how long it waits to be taken, and for an answer.
    patience: Duration,
    /// When the last attempt began.
    since: Instant,
    entered: Option<Entered>,
    device: Device,
    representor: Option<Representor>,
    end: End,
    engine: ProgressEngine,
    place: Place,
    limits: LinkLimits,
    sends: u32,
    /// Of the sends, those that the peer has room for.
    allowed: u32,
    inbox: Rc<RefCell<Inbox>>,
    events: Option<Events>,
    peer: Option<Connection>,
    newcomer: Option<Connection>,
    told_newcomer: bool,
    kept: VecDeque<Vec<u8>>,
    /// An event that is to be told next.
    due: Option<Option<Down>>,
    /// Host: an attempt was asked for while the last one was not over.
    wanted: Option<Instant>,
    /// Whether an attempt or a session is going on that its end must be told of.
    trying: bool,
    /// Host: whether a message came in this attempt.
    heard: bool,
    /// Host: the connection of this attempt ended before.
    turned_away: bool,
    failed: Option<String>,
    retired: Vec<ConnectionId>,
}

impl Comch {
    /// Opens device and representor, and configures the context.
    ///
    /// # Errors
    /// What is not there, not allowed, or not able to.
    pub fn new(role: Role, place: Place) -> Result<Comch, Fault> {
        let (device, representor) = open(role, &place)?;
        check_name(&device, &place.service)?;
        let internal = |e: Error| device_fault(&e, "cannot make a progress engine");
        let engine = ProgressEngine::new().map_err(internal)?;
        engine.notification_handle().map_err(internal)?;
        let inbox = Rc::<RefCell<Inbox>>::default();
        let offer =
            Offer::of(&device.info()).map_err(|e| device_fault(&e, "cannot ask for the fast path"))?;
        let (end, mut limits, sends) = match &representor {
            None => {
                let (config, limits, sends) = client(&device, &place, &inbox)?;
                (End::Host(Left::Config(config)), limits, sends)
            }
            Some(representor) => {
                let config = Server::configure(&device, representor, &place.service)
                    .map_err(|e| device_fault(&e, "cannot make a Comch server"))?;
                let (config, limits, sends) = configure(config, &device, &inbox)?;
                (End::Dpu(Left::Config(config)), limits, sends)
            }
        };
        if offer.is_some() {
            limits.features = limits.features.and(Features::FAST_PATH);
        }
        Ok(Comch {
            fast: None,
            offer,
            lamp: None,
            asker: None,
            asks: false,
            patience: PATIENCE,
            since: Instant::now(),
            entered: None,
            device,
            representor,
            end,
            engine,
            place,
            limits,
            sends,
            allowed: 1,
            inbox,
            events: None,
            peer: None,
            newcomer: None,
            told_newcomer: false,
            kept: VecDeque::new(),
            due: None,
            wanted: None,
            trying: false,
            heard: false,
            turned_away: false,
            failed: None,
            retired: Vec::new(),
        })
    }

    /// Lets relays of this machine and of the other side know of this one, so that a host whose name is not served
    /// learns why.
    #[must_use]
    pub fn with_beacon(mut self, registry: Registry, settings: &Settings) -> Comch {
        let own = beacon::entry(self.role(), &self.place, &settings.socket);
        let failed = match &self.representor {
            None => {
                (self.asks, self.patience) = (true, settings.dead_after);
                registry.enter(&own).map(|entered| self.entered = Some(entered)).map_err(|e| e.to_string())
            }
            Some(representor) => Lamp::new(&self.device, representor, registry, own, settings.heartbeat)
                .map(|lamp| self.lamp = Some(lamp)),
        };
        if let Err(why) = failed {
            log::debug!(target: crate::LOG, "other relays do not learn of this one: {why}");
        }
        self
    }

    /// Control frames have this much for themselves.
    fn reserve(&self) -> u32 {
        if self.allowed < 8 { 0 } else { self.allowed / 8 }
    }

    fn begin(&mut self) -> Result<(), Fault> {
        let Comch { end, engine, place, .. } = self;
        let failed = match end {
            End::Host(left) => start(left, engine),
            End::Dpu(left) => start(left, engine),
        };
        let Err(error) = failed else { return Ok(()) };
        let what = match end {
            End::Host(_) => format!("cannot start the Comch client of {}", place.service),
            End::Dpu(_) => format!(
                "cannot start the Comch server {}: is another relay serving this name on the same representor?",
                place.service
            ),
        };
        Err(device_fault(&error, &what))
    }
}

impl Transport for Comch {
    fn role(&self) -> Role {
        match self.end {
            End::Host(_) => Role::Host,
            End::Dpu(_) => Role::Dpu,
        }
    }

    fn limits(&self) -> LinkLimits {
        self.limits
    }

    fn connect(&mut self) -> Result<(), Fault> {
        if matches!(self.end, End::Host(Left::Config(_)) | End::Dpu(Left::Config(_))) {
            self.wanted = None;
            self.trying = true;
            (self.heard, self.turned_away) = (false, false);
            self.since = Instant::now();
            self.begin()?;
            self.follow();
            return Ok(());
        }
        let since = *self.wanted.get_or_insert_with(Instant::now);
        if since.elapsed() >= STOP {
            // Destroying it now would free what the library still uses.
            return Err(Fault::internal("the Comch client did not become idle in time; a restart is needed"));
        }
        self.due = Some(Some("the last connection has not ended yet".into()));
        Ok(())
    }

    fn progress(&mut self, most: usize, sink: &mut dyn FnMut(LinkEvent<'_>)) -> bool {
        let mut any = self.step(most);
        // What came before the end of a connection is told before the end.
        let peer = self.peer.as_ref().map(Connection::id);
        if self.due.is_none() {
            if peer.is_some() && self.newcomer.is_none() {
                for message in self.kept.drain(..) {
                    sink(LinkEvent::Message(&message));
                    any = true;
                }
            }
            if peer.is_some() {
                let inbox = Rc::clone(&self.inbox);
                let mut inbox = inbox.borrow_mut();
                while let Some((from, at, len)) = inbox.entries.pop_front() {
                    let message = &inbox.bytes[at..at + len];
                    if Some(from) == peer {
                        self.heard = true;
                        sink(LinkEvent::Message(message));
                    } else if self.kept.len() < KEPT {
                        self.kept.push_back(message.to_vec());
                    }
                    any = true;
                }
            }
        }
        if self.due.is_none() {
            if let Some(fast) = &mut self.fast {
                fast.progressed();
                any |= fast.receive(most, sink);
            }
            self.follow();
            self.read_events();
        }
        if let Some(lamp) = &mut self.lamp {
            lamp.follow(&self.engine);
        }
        if self.due.is_none() {
            any |= self.follow_fast();
        }
        match self.due.take() {
            Some(None) => {
                self.allowed = 1.max(self.sends.min(8));
                sink(LinkEvent::Up);
                any = true;
            }
            Some(Some(down)) => {
                self.inbox.borrow_mut().entries.clear();
                sink(LinkEvent::Down(down));
                any = true;
            }
            None => {}
        }
        if self.newcomer.is_some() && !self.told_newcomer {
            self.told_newcomer = true;
            log::warn!(target: crate::LOG, "another host relay has connected; the one that is there is asked for a sign of life");
            sink(LinkEvent::Newcomer);
        }
        any
    }

    fn send(&mut self, lane: Lane, header: &[u8], payload: &[u8]) -> Result<(), Refused> {
        if self.room(lane) == 0 {
            return Err(if self.peer.is_some() { Refused::Busy } else { Refused::Down });
        }
        let Some(peer) = &self.peer else { return Err(Refused::Down) };
        match peer.send_parts(&[header, payload]) {
            Ok(()) => Ok(()),
            Err(error) if error.is_retryable() => Err(Refused::Busy),
            Err(error) => {
                self.failed.get_or_insert(error.to_string());
                Err(Refused::Down)
            }
        }
    }

    fn send_fast(
        &mut self,
        header: &[u8],
        fill: &mut dyn FnMut(&mut dyn Space) -> usize,
    ) -> Result<usize, Refused> {
        match &mut self.fast {
            Some(fast) => fast.send(header, fill),
            None => Err(if self.peer.is_some() { Refused::Busy } else { Refused::Down }),
        }
    }

    fn holds_fast(&self) -> bool {
        self.fast.as_ref().is_some_and(Fast::holds)
    }

    fn room(&self, lane: Lane) -> usize {
        let Some(peer) = &self.peer else { return 0 };
        let most = match lane {
            Lane::Control => self.allowed,
            Lane::Data => self.allowed - self.reserve(),
            Lane::Fast => return self.fast.as_ref().map_or(0, Fast::room),
        };
        most.saturating_sub(peer.in_flight()) as usize
    }

    fn longest_fast(&self) -> usize {
        self.fast.as_ref().map_or(0, Fast::longest)
    }

    fn open_fast(&mut self) {
        if let (Some(peer), Some(offer), None) = (&self.peer, self.offer, &self.fast) {
            self.fast = Some(Fast::open(offer, &self.engine, &self.device, peer));
        }
    }

    fn fast(&self) -> FastStates {
        self.fast.as_ref().map_or(FastStates::default(), Fast::states)
    }

    fn next_fast_note(&mut self) -> Option<FastNote> {
        self.fast.as_mut()?.next_note()
    }

    fn fast_note(&mut self, note: FastNote) -> Result<(), String> {
        match (&mut self.fast, &self.peer) {
            (Some(fast), Some(peer)) => fast.noted(note, peer),
            // Its sender has not heard yet that there is none any more.
            _ => Ok(()),
        }
    }

    fn set_peer_queue(&mut self, messages: u32) {
        self.allowed = (messages / 4 * 3).clamp(1, self.sends);
    }

    fn settle(&mut self, replace: bool) {
        self.told_newcomer = false;
        let Some(newcomer) = self.newcomer.take() else { return };
        if replace {
            self.retired.extend(self.peer.iter().map(Connection::id));
            self.peer = Some(newcomer);
            self.fast = None;
            self.due = Some(None);
        } else {
            log::warn!(target: crate::LOG, "the other host relay was sent away: there is a session already");
            self.kept.clear();
            self.retired.push(newcomer.id());
        }
    }

    fn alive(&mut self) -> bool {
        // What comes of an attempt that was turned away is being found out.
        let asking = self.turned_away && self.trying;
        asking || self.peer.as_ref().is_some_and(|peer| peer.counters().is_ok())
    }

    fn disconnect(&mut self) {
        self.trying = false;
        self.asker = None;
        self.leave();
    }

    fn close(&mut self) -> Result<(), Fault> {
        let flushed = Instant::now() + STOP;
        let busy = |link: &Comch| {
            let Some(peer) = link.peer.as_ref().filter(|peer| peer.is_connected()) else { return false };
            peer.in_flight() > 0 || link.fast.as_ref().is_some_and(|fast| fast.in_flight() > 0)
        };
        while busy(self) && Instant::now() < flushed {
            self.wait_a_bit();
            self.follow_fast();
        }
        self.fast = None;
        self.events = None;
        self.asker = None;
        self.lamp = None;
        if matches!(self.end, End::Dpu(_)) {
            let patience = Instant::now() + LEAVE;
            while self.peer.as_ref().is_some_and(Connection::is_connected) && Instant::now() < patience {
                self.wait_a_bit();
            }
        }
        self.peer = None;
        self.newcomer = None;
        let stopped = match std::mem::replace(&mut self.end, End::Host(Left::Consumed)) {
            End::Host(left) => finish(left),
            End::Dpu(left) => finish(left),
        };
        stopped.map_err(|error| Fault::internal(format!("Comch did not stop: {error}")))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.engine)
    }

    fn arm(&mut self) -> Duration {
        let work = self.fast.as_ref().is_some_and(Fast::has_work);
        if work || self.due.is_some() || !self.inbox.borrow().entries.is_empty() {
            return Duration::ZERO;
        }
        if self.fast.as_ref().is_some_and(Fast::is_starting) {
            return STARTING_NAP;
        }
        // Armed, it is readable at once if there is work; what a release misses is seen after the nap.
        if let Err(error) = self.engine.arm() {
            log::debug!(target: crate::LOG, "{error}");
        }
        NAP
    }

    fn describe(&self) -> String {
        let Place { device, representor, service } = &self.place;
        match representor {
            Some(representor) => format!("Comch server {service} on {device} for {representor}"),
            None => format!("Comch client of {service} on {device}"),
        }
    }

    fn is_beacon(&self) -> bool {
        self.lamp.as_ref().is_some_and(Lamp::is_lit)
    }
}

impl Comch {
    fn wait_a_bit(&mut self) {
        if let Err(error) = self.engine.wait_for(Duration::from_millis(10)) {
            log::debug!(target: crate::LOG, "{error}");
        }
        self.inbox.borrow_mut().entries.clear();
    }
}
