//! The session with the other relay: reached, greeted, watched, and reached again.

use super::{NAP, Relay, SHARE};
use crate::fault::{Class, Exit, Fault};
use crate::frame::{Features, Limits, Reason};
use crate::mux::{Broken, Event, Mux, Role, Timing};
use crate::settings::{ProbeApp, UseFastPath};
use crate::transport::{Absence, Down, FastState, LinkEvent, Transport};
use std::time::{Duration, Instant};

/// Time for both hellos.
const GREETING: Duration = Duration::from_secs(2);
/// How long the DPU tries an application whose queue is full.
const DIAL: Duration = Duration::from_secs(5);
/// How long the fast path may take to be set up at both ends.
const FAST: Duration = Duration::from_secs(5);
/// How long an old peer may take to prove that it lives, when a new one is there.
const CHALLENGE: Duration = Duration::from_millis(300);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How far the link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// DPU: nobody is there.
    #[default]
    Idle,
    /// Host: the next attempt comes then.
    Pausing(Instant),
    Connecting,
    Greeting,
    Up(Instant),
}

#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) state: State,
    /// Attempts in a row that led to no session.
    failures: u32,
    pub(super) last_error: Option<String>,
    /// What is known of why the other side was not reached the last time.
    pub(super) absence: Absence,
    /// A newer peer waits until then for the old one to prove itself.
    challenge: Option<(Instant, Instant)>,
    /// When the application is tried next.
    pub(super) next_probe: Option<Instant>,
    /// Whether it failed last time.
    pub(super) application_fails: bool,
    /// A probe that was asked for by the loop itself.
    pub(super) own_probe: Option<u64>,
    /// DPU: connections to the application whose queue is full.
    pub(super) dialing: Vec<(u32, Instant)>,
    /// The peer's instance in the session before.
    pub(super) peer_instance: Option<[u8; 16]>,
    pub(super) probe_nonce: u64,
    /// When the layer below was last asked about the peer.
    looked_at: Option<Instant>,
    /// Host: the DPU relay waits for us to leave.
    peer_drains: bool,
    /// Until when the fast path may be set up before clients are let in.
    settling: Option<Instant>,
    /// What the peer told of the fast path that cannot be.
    fast_nonsense: Option<String>,
}

impl Link {
    /// The other side is not there. Where it was greeted, it was reached.
    fn absent(&mut self, told: Absence) {
        self.absence = match told {
            Absence::Unknown if self.state == State::Greeting => Absence::Ended,
            told => told,
        };
    }
}

impl<T: Transport> Relay<T> {
    pub(super) fn start(&mut self) -> Result<(), Fault> {
        let what = self.transport.describe();
        match self.role {
            Role::Host => {
                log::info!(target: crate::LOG, "host side of {}: {what}", self.settings.socket.display());
                self.link.state = State::Pausing(Instant::now());
                self.front.start(&self.settings, &self.poller)
            }
            Role::Dpu => {
                log::info!(target: crate::LOG, "DPU side of {}: {what}", self.settings.socket.display());
                self.transport.connect()
            }
        }
    }

    /// Lets messages come in and the link's own time pass.
    pub(super) fn turn_link(&mut self, now: Instant) -> Result<bool, Fault> {
        if let State::Pausing(until) = self.link.state
            && now >= until
            && self.ending.is_none()
        {
            self.link.state = State::Connecting;
            self.counters.attempts += 1;
            self.transport.connect()?;
        }
        let mut ups = Vec::new();
        let mut broken = None;
        let Relay { transport, mux, counters, connections, .. } = self;
        let busy = transport.progress(SHARE, &mut |event| match event {
            LinkEvent::Message(message) if broken.is_none() => {
                counters.frames_in += 1;
                if let Some(mux) = mux {
                    let before = mux.data_in();
                    broken = mux.handle(message, now).err();
                    counters.bytes.link_in += mux.data_in() - before;
                }
            }
            LinkEvent::Bulk(message) if broken.is_none() => {
                counters.frames_in += 1;
                counters.fast_frames_in += 1;
                if let Some(mux) = mux {
                    let before = mux.data_in();
                    let mut passed = 0;
                    let mut pass = |id, offset| {
                        passed = connections.pass(id, message, offset);
                        passed
                    };
                    broken = mux.handle_fast(message, now, &mut pass).err();
                    counters.bytes.local_out += passed as u64;
                    let bytes = mux.data_in() - before;
                    counters.bytes.link_in += bytes;
                    counters.fast_bytes_in += bytes;
                }
            }
            LinkEvent::Message(_) | LinkEvent::Bulk(_) => {}
            LinkEvent::Up => ups.push(Change::Up),
            LinkEvent::Down(down) => ups.push(Change::Down(down)),
            LinkEvent::Newcomer => ups.push(Change::Newcomer),
        });
        self.turn_events(now);
        broken = broken.or_else(|| self.turn_fast(now));
        for change in ups {
            match change {
                Change::Up => self.greet(now),
                Change::Down(down) => {
                    self.link.absent(down.absence);
                    self.lost(&down.why, now)?;
                }
                Change::Newcomer => {
                    self.link.challenge = Some((now, now + CHALLENGE));
                    if let Some(mux) = &mut self.mux {
                        mux.ping(now);
                    }
                }
            }
        }
        if let Some(mux) = &mut self.mux
            && broken.is_none()
            && !busy
        {
            broken = mux.tick(now).err();
            let silent =
                now.saturating_duration_since(mux.last_heard().max(self.link.looked_at.unwrap_or(now)));
            self.link.looked_at.get_or_insert(now);
            if broken.is_none() && silent >= self.settings.heartbeat {
                // The layer below may know already what silence only suggests.
                self.link.looked_at = Some(now);
                if !self.transport.alive() {
                    broken = Some(Broken::Silent(silent));
                }
            }
        }
        if let Some(broken) = broken {
            self.drop_session(broken, now)?;
        }
        if self.link.peer_drains && self.mux.as_ref().is_some_and(Mux::is_empty) && !self.outgoing.held {
            self.transport.disconnect();
            self.lost("the other relay has drained", now)?;
        }
        self.settle_challenge(now)?;
        self.turn_dialing(now);
        self.turn_probe(now);
        self.turn_opening(now);
        Ok(busy)
    }

    /// The pipe is there: says hello.
    fn greet(&mut self, now: Instant) {
        let limits = self.transport.limits();
        let mut features = limits.features;
        if self.settings.fast_path == UseFastPath::Off {
            features = features.without(Features::FAST_PATH);
        }
        if !self.settings.strict_nvidia {
            features = features.and(Features::HALF_CLOSE);
        }
        let timing = Timing {
            hello: GREETING.max(self.settings.heartbeat),
            heartbeat: self.settings.heartbeat,
            dead_after: self.settings.dead_after,
        };
        let settings = crate::mux::Settings {
            limits: Limits {
                features,
                max_frame: limits.max_message,
                window: self.settings.window,
                max_streams: self.settings.max_clients,
                recv_queue: limits.recv_queue,
            },
            instance: self.instance,
            text: self.versions(),
            timing,
            spare: self.settings.spare(),
        };
        self.mux = Some(Mux::new(self.role, settings, now));
        self.link.state = State::Greeting;
    }

    /// What is compared between the two sides.
    pub(super) fn versions(&self) -> String {
        let doca = &self.settings.doca_version;
        format!("relay {}, doca-common {doca}", env!("CARGO_PKG_VERSION"))
    }

    /// Looks at what the streams did.
    pub(super) fn turn_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(event) = self.mux.as_mut().and_then(Mux::next_event) {
            any = true;
            self.event(event, now);
        }
        any
    }

    fn event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Up => self.up(now),
            Event::Opened(id, identity) => {
                log::debug!(target: crate::LOG, "stream {id}: client process {} of user {}", identity.pid, identity.uid);
                self.dial(id, now, now + DIAL);
            }
            Event::Accepted(id) => {
                self.connections.accept(id);
                if self.link.application_fails {
                    self.application_is(0, now);
                }
            }
            Event::Incoming(id) => self.connections.wants_to_take(id),
            Event::Credit(id) => self.connections.wants_to_send(id),
            Event::PeerGone(id) => {
                if let Some(mux) = &mut self.mux {
                    self.connections.stop_reading(id, mux);
                }
            }
            Event::Closed(id, why) => self.closed(id, why),
            Event::GoAway => {
                log::info!(target: crate::LOG, "the other relay drains");
                if self.role == Role::Host {
                    self.front.unbind(&self.poller);
                    self.link.peer_drains = true;
                }
            }
            Event::Fast(note) => {
                if let Err(why) = self.transport.fast_note(note) {
                    self.link.fast_nonsense.get_or_insert(why);
                }
            }
            Event::Probe(nonce, kind) => self.answer(nonce, kind),
            Event::ProbeResult { nonce, errno, bytes } => {
                if self.link.own_probe == Some(nonce) {
                    self.link.own_probe = None;
                    self.application_is(errno, now);
                } else if let Some(admin) = &mut self.admin {
                    admin.probed(nonce, errno, bytes, self.counters.bytes);
                }
            }
            Event::RoundTrip(time) => self.counters.round_trip.add(time),
        }
    }

    pub(super) fn closed(&mut self, id: u32, why: Option<(Reason, String)>) {
        let had = self.connections.remove(id);
        let Some((reason, text)) = why else {
            log::debug!(target: crate::LOG, "stream {id}: ended");
            return;
        };
        self.counters.reset(reason);
        if had || reason != Reason::LocalClosed {
            let class = match reason {
                Reason::Refused | Reason::NoPath | Reason::SessionLost | Reason::Timeout => Class::Terminator,
                Reason::Permission => Class::Permission,
                _ => {
                    log::debug!(target: crate::LOG, "stream {id}: {} {text}", reason.text());
                    return;
                }
            };
            self.front.complain(&format!("{class}: stream {id}: {}: {text}", reason.text()));
        }
    }

    fn up(&mut self, now: Instant) {
        let Some(agreed) = self.mux.as_ref().and_then(Mux::agreed).cloned() else { return };
        self.link.state = State::Up(now);
        self.link.failures = 0;
        self.link.last_error = None;
        self.link.absence = Absence::Unknown;
        self.counters.sessions += 1;
        self.transport.set_peer_queue(agreed.peer_queue);
        let restarted = self.link.peer_instance.is_some_and(|before| before != agreed.instance);
        self.link.peer_instance = Some(agreed.instance);
        log::info!(
            target: crate::LOG,
            "session up: frames of {} bytes, windows of {}, {} clients; the other side is {}{}",
            agreed.limits.max_frame,
            agreed.limits.window,
            agreed.limits.max_streams,
            agreed.text,
            if restarted { ", started anew" } else { "" }
        );
        let ours = self.versions();
        if ours != agreed.text {
            log::warn!(target: crate::LOG, "{}: this side is {ours}, the other {}", Class::Version, agreed.text);
        }
        self.link.settling = Some(now + FAST);
        if agreed.limits.features.has(Features::FAST_PATH) {
            self.transport.open_fast();
        }
    }

    /// Lets clients in as soon as it is known which way their bytes go.
    fn turn_fast(&mut self, now: Instant) -> Option<Broken> {
        if let Some(why) = self.link.fast_nonsense.take() {
            return Some(Broken::Protocol(why));
        }
        let until = self.link.settling?;
        let states = self.transport.fast();
        let both = [states.outgoing, states.incoming];
        if both.contains(&FastState::Starting) && now < until {
            return None;
        }
        self.link.settling = None;
        let missing = both.iter().any(|state| *state != FastState::On);
        log::info!(target: crate::LOG, "fast path: to the other relay {}, from it {}", both[0].text(), both[1].text());
        if missing && self.settings.fast_path == UseFastPath::Require {
            let agreed = self.mux.as_ref().and_then(Mux::agreed);
            let agreed = agreed.is_some_and(|agreed| agreed.limits.features.has(Features::FAST_PATH));
            let why =
                if agreed { "it did not come up in both directions" } else { "the other side has none" };
            return Some(Broken::Fast(format!("--fast-path require, but {why}")));
        }
        if self.role == Role::Host {
            match self.settings.probe_app {
                ProbeApp::Off => self.front.session_up(&self.settings, &self.poller),
                ProbeApp::Start | ProbeApp::Periodic => self.link.next_probe = Some(now),
            }
        }
        None
    }

    /// Whether clients can be served.
    pub(super) fn is_serving(&self) -> bool {
        self.link.settling.is_none() && self.mux.as_ref().is_some_and(|mux| mux.agreed().is_some())
    }

    fn settle_challenge(&mut self, now: Instant) -> Result<(), Fault> {
        let Some((since, until)) = self.link.challenge else { return Ok(()) };
        let proven = self.mux.as_ref().is_some_and(|mux| mux.last_heard() > since);
        if proven || now >= until || self.mux.is_none() {
            self.link.challenge = None;
            if !proven {
                self.lost("another host has taken its place", now)?;
            }
            self.transport.settle(!proven);
        }
        Ok(())
    }

    /// The peer is silent or not one of ours.
    fn drop_session(&mut self, broken: Broken, now: Instant) -> Result<(), Fault> {
        let class = match broken {
            Broken::Silent(_) => Class::Terminator,
            Broken::Fast(_) => Class::Below,
            Broken::Partner(_) | Broken::Malformed(_) | Broken::Protocol(_) => {
                self.counters.protocol_errors += 1;
                Class::Version
            }
        };
        log::error!(target: crate::LOG, "{class}: {broken}; the session is dropped");
        self.transport.disconnect();
        self.link.absent(Absence::Unknown);
        let exit = match broken {
            Broken::Silent(_) => None,
            Broken::Fast(_) => Some(Exit::NoSession),
            Broken::Partner(_) | Broken::Malformed(_) | Broken::Protocol(_) => Some(Exit::Partner),
        };
        if let Some(exit) = exit.filter(|_| self.role == Role::Host && self.settings.conn_retry.is_some()) {
            return Err(Fault::new(exit, class, broken.to_string()));
        }
        self.lost(&broken.to_string(), now)
    }

    /// There is no link, or none any more.
    fn lost(&mut self, why: &str, now: Instant) -> Result<(), Fault> {
        let before = std::mem::replace(&mut self.link.state, State::Idle);
        let Some(mut mux) = self.mux.take() else { return self.pause(before, why, now) };
        // First, so that who sees its end does not come back to a relay without a session.
        self.front.session_lost(&self.settings, &self.poller);
        mux.lose(why);
        let streams = mux.len() + self.connections.len();
        while let Some(event) = mux.next_event() {
            if let Event::Closed(id, _) = event {
                self.connections.remove(id);
                self.counters.reset(Reason::SessionLost);
            }
        }
        self.connections.clear();
        self.link.dialing.clear();
        self.link.own_probe = None;
        self.link.next_probe = None;
        self.link.looked_at = None;
        self.link.settling = None;
        self.link.fast_nonsense = None;
        let drained = std::mem::take(&mut self.link.peer_drains);
        self.outgoing.clear();
        if matches!(before, State::Up(_)) {
            self.counters.sessions_lost += 1;
            let text = format!("{}: session lost with {streams} streams: {why}", Class::Terminator);
            if (drained || self.ending.is_some()) && streams == 0 {
                log::info!(target: crate::LOG, "session over: {why}");
            } else {
                log::error!(target: crate::LOG, "{text}");
                self.link.last_error = Some(text);
            }
        }
        if let Some(admin) = &mut self.admin {
            admin.lost();
        }
        self.pause(before, why, now)
    }

    fn pause(&mut self, before: State, why: &str, now: Instant) -> Result<(), Fault> {
        if self.role != Role::Host {
            return Ok(());
        }
        if before != State::Idle && !matches!(before, State::Up(_)) {
            self.link.failures += 1;
            let (exit, what) = match &self.link.absence {
                Absence::Ended => (
                    Exit::NoSession,
                    format!(
                        "a Comch server took the connection, but no session came of it ({why}): it has another host \
                         relay, hangs, or is no relay of this kind"
                    ),
                ),
                Absence::Unknown => (
                    Exit::NoSession,
                    format!(
                        "no DPU relay was reached ({why}): it is not running, or runs with another --cc-name"
                    ),
                ),
                Absence::Nobody => (
                    Exit::NoSession,
                    "no DPU relay answers: none runs for this function of the host, or it hangs".to_owned(),
                ),
                Absence::NotServed(services) => (
                    Exit::NotServed,
                    format!(
                        "a DPU relay answers, but --cc-name is not among the services that it knows of: {services}"
                    ),
                ),
                Absence::NotTaken => (
                    Exit::NoSession,
                    format!(
                        "a DPU relay answers and knows of --cc-name ({why}): it is just starting, or hangs"
                    ),
                ),
                Absence::Taken => (
                    Exit::Taken,
                    "the DPU relay of --cc-name serves another host relay; it takes one at a time".to_owned(),
                ),
            };
            let reached = format!("{what}; this side: {}", self.transport.describe());
            if self.settings.conn_retry.is_some_and(|most| self.link.failures >= most) {
                return Err(Fault::new(exit, Class::Terminator, reached));
            }
            let text = format!("{}: {reached}", Class::Terminator);
            self.front.complain(&text);
            self.link.last_error = Some(text);
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.link.failures.saturating_sub(1).min(10));
        let pause = doubled.min(LONGEST_PAUSE);
        // A fifth more or less, so that many relays do not come together.
        let share = u32::from(super::new_instance()[0]);
        let pause = pause * 4 / 5 + pause * 2 / 5 * share / 255;
        self.link.state = State::Pausing(now + pause.max(NAP));
        Ok(())
    }
}

enum Change {
    Up,
    Down(Down),
    Newcomer,
}
