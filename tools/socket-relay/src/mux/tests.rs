//! Two state machines with queues between them, driven at random.

use super::*;
use crate::frame::{Features, HEADER, Hello, Limits};
use crate::transport::Bulk;
use nix::errno::Errno;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const TIMING: Timing = Timing {
    hello: Duration::from_secs(2),
    heartbeat: Duration::from_secs(1),
    dead_after: Duration::from_secs(5),
};

/// Bytes that windows may take in addition.
const SPARE: u64 = 6000;

fn settings(window: u32, max_streams: u32) -> Settings {
    let features = Features::HALF_CLOSE.and(Features::FAST_PATH);
    let limits = Limits { features, max_frame: 300, window, max_streams, recv_queue: 64 };
    Settings { limits, instance: [7; 16], text: "here".to_owned(), timing: TIMING, spare: SPARE }
}

/// A small generator, so that each failure can be repeated by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// A message of the fast path.
struct Message<'a>(&'a [u8]);

impl Bulk for Message<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> usize {
        let from = self.0.get(offset..).unwrap_or_default();
        let len = from.len().min(to.len());
        to[..len].copy_from_slice(&from[..len]);
        len
    }

    fn send_to(&self, _: &UnixStream, _: usize) -> Result<usize, Errno> {
        Err(Errno::EPIPE)
    }
}

/// One local end of a stream, and what it did.
#[derive(Default, Debug)]
struct End {
    wrote: Vec<u8>,
    got: Vec<u8>,
    accepted: bool,
    finished: bool,
    told_end: bool,
    gone: bool,
    closed: Option<Option<Reason>>,
}

struct Side {
    mux: Mux,
    wire: VecDeque<Vec<u8>>,
    /// The fast path: another order than on the wire.
    fast: VecDeque<Vec<u8>>,
    ends: HashMap<u32, End>,
    up: bool,
}

impl Side {
    /// Takes a message of the fast path; the local end takes so many bytes of it at once.
    fn handle_fast(&mut self, message: &[u8], now: Instant, most: usize) -> Result<(), Broken> {
        let ends = &mut self.ends;
        self.mux.handle_fast(&Message(message), now, &mut |id, offset| {
            let end = ends.entry(id).or_default();
            let bytes = &message[offset..];
            let bytes = &bytes[..bytes.len().min(most)];
            end.got.extend_from_slice(bytes);
            bytes.len()
        })
    }

    fn new(role: Role, window: u32, streams: u32, now: Instant) -> Side {
        Side {
            mux: Mux::new(role, settings(window, streams), now),
            wire: VecDeque::new(),
            fast: VecDeque::new(),
            ends: HashMap::new(),
            up: false,
        }
    }

    fn send_control(&mut self) {
        let mut out = Vec::new();
        while self.mux.next_control(&mut out) {
            self.wire.push_back(out.clone());
        }
    }

    fn look(&mut self) {
        while let Some(event) = self.mux.next_event() {
            match event {
                Event::Up => self.up = true,
                Event::Opened(id, _) => {
                    self.ends.insert(id, End { accepted: true, ..End::default() });
                    self.mux.accept(id);
                }
                Event::Accepted(id) => self.ends.get_mut(&id).unwrap().accepted = true,
                Event::PeerGone(id) => self.ends.get_mut(&id).unwrap().finished = true,
                Event::Closed(id, why) => {
                    let end = self.ends.get_mut(&id).unwrap();
                    assert_eq!(end.closed, None, "stream {id} was closed twice");
                    end.closed = Some(why.map(|(reason, _)| reason));
                }
                _ => {}
            }
        }
    }

    /// A local end does something at random.
    fn act(&mut self, id: u32, dice: &mut Dice, now: Instant) {
        let end = self.ends.get_mut(&id).unwrap();
        if end.closed.is_some() || !end.accepted {
            return;
        }
        match dice.roll(20) {
            0 if !end.finished => {
                end.finished = true;
                self.mux.finish(id);
            }
            1 if dice.roll(4) == 0 && !end.gone => {
                end.gone = true;
                end.finished = true;
                self.mux.local_gone(id);
            }
            2..10 if !end.finished => {
                let bytes = self.mux.room(id).min(1 + dice.roll(300 - HEADER));
                if bytes > 0 {
                    let payload: Vec<u8> = (0..bytes).map(|_| dice.roll(256) as u8).collect();
                    let path = self.mux.path(id, [Path::Control, Path::Fast][dice.roll(2)]);
                    let mut message = self.mux.sent(id, bytes, path, now).unwrap().to_vec();
                    message.extend_from_slice(&payload);
                    end.wrote.extend_from_slice(&payload);
                    match path {
                        Path::Control => self.wire.push_back(message),
                        Path::Fast => self.fast.push_back(message),
                    }
                }
            }
            _ if !end.gone => {
                let (first, second) = self.mux.incoming(id);
                let all = [first, second].concat();
                let bytes = dice.roll(all.len() + 1);
                end.got.extend_from_slice(&all[..bytes]);
                self.mux.delivered(id, bytes);
                if self.mux.ends_here(id) {
                    end.told_end = true;
                    self.mux.end_delivered(id);
                }
            }
            _ => {}
        }
    }
}

fn pair(window: u32, streams: u32, now: Instant) -> [Side; 2] {
    let mut both = [Side::new(Role::Host, window, streams, now), Side::new(Role::Dpu, window, streams, now)];
    carry(&mut both, now);
    assert!(both[0].up && both[1].up);
    both
}

/// Carries everything there is.
fn carry(both: &mut [Side; 2], now: Instant) {
    loop {
        let mut any = false;
        for at in 0..2 {
            both[at].send_control();
            while let Some(message) = both[at].wire.pop_front() {
                both[1 - at].mux.handle(&message, now).unwrap();
                any = true;
            }
            while let Some(message) = both[at].fast.pop_front() {
                both[1 - at].handle_fast(&message, now, 0).unwrap();
                any = true;
            }
            both[1 - at].look();
        }
        if !any {
            return;
        }
    }
}

#[test]
fn streams_end_with_all_bytes_delivered_or_with_a_reason() {
    for seed in 1..120 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ seed);
        let now = Instant::now();
        let window = [1, 2, 100, 1000][dice.roll(4)];
        let mut both = pair(window, 5, now);
        let mut ids: Vec<u32> = Vec::new();
        for _ in 0..2000 {
            if dice.roll(40) == 0
                && let Some(id) = both[0].mux.open(Identity::default(), now)
            {
                both[0].ends.insert(id, End::default());
                ids.push(id);
            }
            let at = dice.roll(2);
            let side = &mut both[at];
            if !side.ends.is_empty() {
                let known: Vec<u32> = ids.iter().copied().filter(|id| side.ends.contains_key(id)).collect();
                side.act(known[dice.roll(known.len())], &mut dice, now);
            }
            let mut out = Vec::new();
            if dice.roll(2) == 0 && side.mux.next_control(&mut out) {
                side.wire.push_back(out);
            }
            if dice.roll(2) == 0
                && let Some(message) = side.wire.pop_front()
            {
                both[1 - at].mux.handle(&message, now).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                both[1 - at].look();
            }
            let side = &mut both[at];
            if dice.roll(2) == 0
                && let Some(message) = side.fast.pop_front()
            {
                let most = [0, dice.roll(400)][dice.roll(2)];
                both[1 - at].handle_fast(&message, now, most).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                both[1 - at].look();
            }
            assert!(both.iter().all(|side| side.mux.ring_bytes().0 <= window as usize * 5 + SPARE as usize));
        }
        // Everybody finishes and reads what is left.
        for _ in 0..100_000 {
            carry(&mut both, now);
            if both.iter().all(|side| side.mux.is_empty()) {
                break;
            }
            for side in &mut both {
                for id in &ids {
                    let Some(end) = side.ends.get_mut(id).filter(|end| end.closed.is_none()) else {
                        continue;
                    };
                    if !end.finished {
                        end.finished = true;
                        side.mux.finish(*id);
                    }
                    for _ in 0..4 {
                        side.act(*id, &mut dice, now);
                    }
                }
            }
        }
        for id in ids {
            let [host, dpu] = [0, 1].map(|at| &both[at].ends[&id]);
            assert!(host.closed.is_some() && dpu.closed.is_some(), "seed {seed} stream {id} is not closed");
            for (from, to) in [(host, dpu), (dpu, host)] {
                assert!(from.wrote.starts_with(&to.got), "seed {seed} stream {id}");
                if to.told_end {
                    assert_eq!(from.wrote, to.got, "seed {seed} stream {id}: the end came early");
                }
                if !to.gone {
                    assert!(to.told_end || from.gone, "seed {seed} stream {id}: no end");
                    // Whoever stays is given all that was sent before the other went.
                    assert_eq!(from.wrote, to.got, "seed {seed} stream {id}: bytes are missing");
                }
            }
        }
        for side in &both {
            assert!(side.mux.is_empty() && side.mux.ring_bytes() == (0, 0), "seed {seed}: something is left");
        }
    }
}

#[test]
fn a_reader_that_stands_still_takes_one_window_and_stops_nobody() {
    let now = Instant::now();
    let mut both = pair(1000, 5, now);
    let [stalled, busy] = [0, 1].map(|_| {
        let id = both[0].mux.open(Identity::default(), now).unwrap();
        both[0].ends.insert(id, End::default());
        id
    });
    carry(&mut both, now);
    let mut delivered = 0;
    for _ in 0..1000 {
        for id in [stalled, busy] {
            let bytes = both[0].mux.room(id).min(200);
            if bytes > 0 {
                let mut message = both[0].mux.sent(id, bytes, Path::Control, now).unwrap().to_vec();
                message.resize(HEADER + bytes, 0);
                both[0].wire.push_back(message);
            }
        }
        carry(&mut both, now);
        let bytes = both[1].mux.incoming(busy).0.len();
        both[1].mux.delivered(busy, bytes);
        delivered += bytes;
    }
    assert_eq!(both[0].mux.room(stalled), 0);
    assert_eq!(both[1].mux.ring_bytes().0, 1000);
    assert!(delivered > 150_000, "{delivered}");
}

#[test]
fn readers_that_take_all_get_larger_windows_as_far_as_there_is_memory() {
    let now = Instant::now();
    let mut both = pair(1000, 5, now);
    let ids: Vec<u32> = (0..3).map(|_| both[0].mux.open(Identity::default(), now).unwrap()).collect();
    for id in &ids {
        both[0].ends.insert(*id, End::default());
    }
    carry(&mut both, now);
    let flow = |both: &mut [Side; 2], id: u32, rounds: usize| {
        for _ in 0..rounds {
            let bytes = both[0].mux.room(id);
            if bytes > 0 {
                let mut message = both[0].mux.sent(id, bytes, Path::Fast, now).unwrap().to_vec();
                message.resize(HEADER + bytes, 0);
                both[0].fast.push_back(message);
                carry(both, now);
                let bytes = both[1].mux.incoming(id).0.len();
                both[1].mux.delivered(id, bytes);
                carry(both, now);
            }
        }
        both[0].mux.room(id)
    };
    // Not before it has proven itself, and no more than fourfold.
    assert_eq!(flow(&mut both, ids[0], 7), 1000);
    assert_eq!(flow(&mut both, ids[0], 200), 4000);
    assert_eq!(flow(&mut both, ids[1], 200), 4000);
    // There is nothing left for the third until another is through.
    assert_eq!(flow(&mut both, ids[2], 200), 1000);
    both[0].mux.reset(ids[0], Reason::LocalClosed, "");
    carry(&mut both, now);
    assert_eq!(flow(&mut both, ids[2], 200), 4000);
}

#[test]
fn there_are_no_more_streams_than_agreed_and_a_closed_one_makes_room() {
    let now = Instant::now();
    let mut both = pair(100, 2, now);
    let first = both[0].mux.open(Identity::default(), now).unwrap();
    both[0].ends.insert(first, End::default());
    both[0].ends.insert(2, End::default());
    both[0].mux.open(Identity::default(), now).unwrap();
    assert_eq!(both[0].mux.open(Identity::default(), now), None);
    carry(&mut both, now);
    both[0].mux.reset(first, Reason::LocalClosed, "");
    both[0].send_control();
    assert!(both[0].mux.open(Identity::default(), now).is_some());
}

/// What a peer can do wrong on the fast path, and about it.
#[test]
fn each_broken_rule_of_the_fast_path_ends_the_session() {
    let now = Instant::now();
    let message = |frame: Frame<'_>| {
        let mut message = Vec::new();
        frame.encode(&mut message);
        message
    };
    let data = |stream, offset| message(Frame::Data { stream, offset, bytes: b"x" });
    let cases = [
        (vec![(true, data(1, 0)), (false, data(1, 1))], "changed its path"),
        (vec![(false, data(1, 0)), (true, data(1, 1))], "changed its path"),
        (vec![(true, data(1, 1))], "expected 0"),
        (vec![(true, data(2, 0))], "never opened"),
        (vec![(true, message(Frame::Fin { stream: 1, offset: 0 }))], "on the fast path"),
        (vec![(true, message(Frame::Ping(1)))], "on the fast path"),
        (vec![(true, vec![])], "malformed"),
    ];
    for (messages, expected) in cases {
        let mut both = pair(100, 5, now);
        let id = both[0].mux.open(Identity::default(), now).unwrap();
        both[0].ends.insert(id, End::default());
        carry(&mut both, now);
        let side = &mut both[1];
        let mut said = Ok(());
        for (fast, message) in &messages {
            assert_eq!(said, Ok(()));
            said = if *fast { side.handle_fast(message, now, 0) } else { side.mux.handle(message, now) };
        }
        let said = said.expect_err(expected).to_string();
        assert!(said.contains(expected), "{said}");
    }
    // One that was not agreed on.
    let mut plain = settings(100, 5);
    plain.limits.features = Features::HALF_CLOSE;
    let mut both = [Side::new(Role::Host, 100, 5, now), Side::new(Role::Dpu, 100, 5, now)];
    both[1].mux = Mux::new(Role::Dpu, plain, now);
    carry(&mut both, now);
    let note = message(Frame::Fast(FastNote::Credit(1)));
    let said = both[1].mux.handle(&note, now).expect_err("not agreed on").to_string();
    assert!(said.contains("not agreed on"), "{said}");
}

/// A pair with one stream, and a frame for each rule that a peer can break.
#[test]
fn each_broken_rule_ends_the_session() {
    let now = Instant::now();
    let data = |stream, offset, bytes| Frame::Data { stream, offset, bytes };
    let identity = Identity::default();
    let credit = |upto, delivered| Frame::Credit { stream: 1, upto, delivered };
    let to_dpu: &[(&[Frame<'_>], &str)] = &[
        (&[data(1, 1, b"x")], "expected 0"),
        (&[data(1, 0, b"xx"), data(1, 1, b"x")], "expected 2"),
        (&[data(1, 0, &[0; 101])], "beyond 100"),
        (&[data(2, 0, b"x")], "never opened"),
        (&[Frame::Fin { stream: 1, offset: 0 }, Frame::Fin { stream: 1, offset: 0 }], "ended twice"),
        (&[Frame::Fin { stream: 1, offset: 101 }], "cannot reach"),
        (&[Frame::Fin { stream: 1, offset: 0 }, data(1, 0, b"x")], "beyond 0"),
        (&[credit(99, false)], "goes back"),
        (&[credit(100, true)], "not sent"),
        (&[Frame::Open { stream: 1, credit: 0, identity }], "opened after"),
        (&[Frame::OpenAck { stream: 1, credit: 0 }], "host side acknowledged"),
        (&[Frame::Fin { stream: 9, offset: 0 }], "never opened"),
    ];
    let to_host: &[(&[Frame<'_>], &str)] = &[
        (&[Frame::OpenAck { stream: 1, credit: 100 }], "acknowledged twice"),
        (&[Frame::Open { stream: 2, credit: 0, identity }], "DPU side opened"),
    ];
    for (at, cases) in [(1, to_dpu), (0, to_host)] {
        for (frames, expected) in cases {
            let mut both = pair(100, 5, now);
            let id = both[0].mux.open(identity, now).unwrap();
            both[0].ends.insert(id, End::default());
            carry(&mut both, now);
            let mut said = Ok(());
            for frame in *frames {
                assert_eq!(said, Ok(()));
                let mut message = Vec::new();
                frame.encode(&mut message);
                said = both[at].mux.handle(&message, now);
            }
            let said = said.expect_err(expected).to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}

#[test]
fn a_partner_of_another_kind_is_told_from_a_broken_one() {
    let now = Instant::now();
    let fresh = || Mux::new(Role::Dpu, settings(100, 5), now);
    let mut message = Vec::new();
    let greet = |change: &dyn Fn(&mut Hello<'_>), message: &mut Vec<u8>| {
        let Settings { limits, instance, .. } = settings(100, 5);
        let mut hello = Hello { version: crate::frame::VERSION, limits, instance, text: "there" };
        change(&mut hello);
        Frame::Hello(hello).encode(message);
        fresh().handle(message, now)
    };
    assert_eq!(greet(&|_| {}, &mut message), Ok(()));
    type Change = fn(&mut Hello<'_>);
    let cases: [(Change, &str); 3] = [
        (|hello| hello.version = 2, "protocol version 2"),
        (|hello| hello.limits.max_frame = 255, "too small"),
        (|hello| hello.limits.window = 0, "of 0"),
    ];
    for (change, expected) in cases {
        let said = greet(&change, &mut message).expect_err(expected);
        assert!(matches!(said, Broken::Partner(_)) && said.to_string().contains(expected), "{said}");
    }
    Frame::Ping(1).encode(&mut message);
    assert!(matches!(fresh().handle(&message, now), Err(Broken::Partner(_))));
    assert!(matches!(fresh().handle(b"GET / HTTP/1.1\r\n\r\n", now), Err(Broken::Partner(_))));
    // The same bytes in a session are a fault of a partner that is one.
    let [_, mut dpu] = pair(100, 5, now);
    assert!(matches!(dpu.mux.handle(b"GET / HTTP/1.1\r\n\r\n", now), Err(Broken::Malformed(_))));
}

#[test]
fn silence_is_asked_about_and_then_believed() {
    let now = Instant::now();
    let mut both = pair(100, 5, now);
    let later = now + TIMING.heartbeat;
    both[0].mux.tick(later).unwrap();
    carry(&mut both, later);
    both[0].mux.tick(now + TIMING.dead_after).unwrap();
    let last = later + TIMING.dead_after;
    assert_eq!(both[0].mux.tick(last), Err(Broken::Silent(TIMING.dead_after)));
    let mut alone = Mux::new(Role::Host, settings(100, 5), now);
    assert_eq!(alone.tick(now), Ok(()));
    assert!(matches!(alone.tick(now + TIMING.hello), Err(Broken::Partner(_))));
}

/// A well-formed frame that need not fit.
fn any_frame(dice: &mut Dice) -> Vec<u8> {
    let stream = 1 + dice.roll(4) as u32;
    let offset = [0, 10, 100, 150, u64::MAX][dice.roll(5)];
    let flag = dice.roll(2) == 0;
    let frame = match dice.roll(13) {
        0 => Frame::Open {
            stream: stream + dice.roll(40) as u32,
            credit: offset,
            identity: Identity::default(),
        },
        1 => Frame::OpenAck { stream, credit: offset },
        2 | 3 => Frame::Data { stream, offset, bytes: &[1; 60][..1 + dice.roll(59)] },
        4 => Frame::Fin { stream, offset },
        5 | 6 => Frame::Reset { stream, reason: Reason::ALL[dice.roll(10)], after_fin: flag, text: "x" },
        7 => Frame::Credit { stream, upto: offset, delivered: flag },
        8 => Frame::Ping(offset),
        9 => Frame::Pong(offset),
        11 => Frame::Fast(FastNote::Credit(offset)),
        10 => Frame::Probe { nonce: offset, kind: ProbeKind::Relay },
        _ => Frame::GoAway { last: stream },
    };
    let mut message = Vec::new();
    frame.encode(&mut message);
    message
}

#[test]
fn no_message_whatever_breaks_more_than_the_session() {
    let now = Instant::now();
    let mut dice = Dice(42);
    let mut survived = 0;
    for _ in 0..2000 {
        let mut both = pair(100, 5, now);
        for _ in 0..3 {
            let id = both[0].mux.open(Identity::default(), now).unwrap();
            both[0].ends.insert(id, End::default());
        }
        carry(&mut both, now);
        let at = dice.roll(2);
        for _ in 0..50 {
            let message = any_frame(&mut dice);
            let side = &mut both[at];
            let fast = dice.roll(4) == 0 && message[0] == 5;
            let most = dice.roll(3);
            match if fast { side.handle_fast(&message, now, most) } else { side.mux.handle(&message, now) } {
                Ok(()) => survived += 1,
                Err(_) => break,
            }
            both[at].mux.next_event();
            assert!(both[at].mux.len() <= 60 && both[at].mux.ring_bytes().0 <= 300);
        }
        both[at].mux.lose("test");
        while both[at].mux.next_event().is_some() {}
        assert!(both[at].mux.is_empty());
    }
    assert!(survived > 1000, "the frames were all refused: {survived}");
}
