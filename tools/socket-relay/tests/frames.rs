//! Whatever bytes come, the decoder answers: a frame that means the same when written again, or what is wrong.
//!
//! `FUZZ_FACTOR=1000` makes the random tests go on for so many times as long, with other bytes.

use socket_relay::beacon::{self, Services};
use socket_relay::frame::{
    Bytes, FastNote, Features, Frame, HEADER, Hello, Identity, Limits, Malformed, ProbeKind, Reason,
};

fn limits() -> Limits {
    let features = Features::HALF_CLOSE.and(Features::FAST_PATH);
    Limits { features, max_frame: 4080, window: 65536, max_streams: 512, recv_queue: 1024 }
}

/// One of each kind.
fn all() -> Vec<Frame<'static>> {
    let bytes = Bytes { local_in: 1, link_out: 2, link_in: 3, local_out: u64::MAX };
    vec![
        Frame::Hello(Hello { version: 1, limits: limits(), instance: [9; 16], text: "relay 0.1.0" }),
        Frame::HelloAck { version: 1, limits: limits() },
        Frame::Open { stream: 1, credit: 65536, identity: Identity { pid: 1, uid: 2, gid: 3 } },
        Frame::OpenAck { stream: u32::MAX, credit: u64::MAX },
        Frame::Data { stream: 7, offset: 1 << 40, bytes: b"some bytes" },
        Frame::Fin { stream: 7, offset: 12 },
        Frame::Reset { stream: 7, reason: Reason::NoPath, after_fin: false, text: "no such file" },
        Frame::Reset { stream: 7, reason: Reason::LocalClosed, after_fin: true, text: "" },
        Frame::Credit { stream: 7, upto: 99, delivered: false },
        Frame::Credit { stream: 7, upto: 99, delivered: true },
        Frame::Ping(5),
        Frame::Pong(u64::MAX),
        Frame::GoAway { last: 12 },
        Frame::Probe { nonce: 3, kind: ProbeKind::Application },
        Frame::Probe { nonce: 3, kind: ProbeKind::Relay },
        Frame::ProbeResult { nonce: 3, errno: 111, bytes },
        Frame::Fast(FastNote::Ready { consumer: 1, room: 65600, messages: 64 }),
        Frame::Fast(FastNote::None),
        Frame::Fast(FastNote::Credit(u64::MAX)),
    ]
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = vec![0xee; 3];
    frame.encode(&mut out);
    out
}

#[test]
fn each_frame_reads_as_it_was_written() {
    for frame in all() {
        assert_eq!(Frame::decode(&encoded(&frame)), Ok(frame));
    }
}

#[test]
fn the_header_is_as_documented() {
    let message = encoded(&Frame::Data { stream: 0x0403_0201, offset: 0x0c0b_0a09_0807_0605, bytes: b"!" });
    assert_eq!(message, [5, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, b'!']);
    assert_eq!(socket_relay::frame::data_header(0x0403_0201, 0x0c0b_0a09_0807_0605)[..], message[..HEADER]);
}

#[test]
fn each_fault_has_its_name() {
    let with = |at: usize, value: u8, frame: &Frame<'_>| {
        let mut message = encoded(frame);
        message[at] = value;
        message
    };
    let ping = Frame::Ping(1);
    let data = Frame::Data { stream: 1, offset: 0, bytes: b"x" };
    let reset = Frame::Reset { stream: 1, reason: Reason::Limit, after_fin: false, text: "ab" };
    let fast = Frame::Fast(FastNote::Ready { consumer: 1, room: 65536 + 16, messages: 64 });
    let cases = [
        (vec![], Malformed::Short(0)),
        (vec![9; 15], Malformed::Short(15)),
        (with(0, 0, &ping), Malformed::Type(0)),
        (with(0, 16, &ping), Malformed::Type(16)),
        (with(0, 14, &ping), Malformed::Length(0)),
        (with(12, 1, &fast), Malformed::Value(1 << 32 | 1)),
        (with(HEADER + 2, 0, &fast), Malformed::Value(16)),
        (with(HEADER + 4, 0, &fast), Malformed::Value(0)),
        ([encoded(&fast), vec![0]].concat(), Malformed::Length(9)),
        ([encoded(&Frame::Fast(FastNote::None)), vec![0]].concat(), Malformed::Length(1)),
        (with(4, 1, &Frame::Fast(FastNote::Credit(9))), Malformed::Stream(1)),
        (with(1, 1, &ping), Malformed::Flags(1)),
        (with(1, 2, &reset), Malformed::Flags(2)),
        (with(2, 1, &ping), Malformed::Reserved(1)),
        (with(3, 1, &ping), Malformed::Reserved(256)),
        (with(4, 1, &ping), Malformed::Stream(1)),
        (with(4, 0, &data), Malformed::Stream(0)),
        (encoded(&data)[..HEADER].to_vec(), Malformed::Length(0)),
        ([encoded(&ping), vec![0]].concat(), Malformed::Length(1)),
        (with(8, 0, &reset), Malformed::Value(0)),
        (with(8, 11, &reset), Malformed::Value(11)),
        (with(HEADER, 0xff, &reset), Malformed::Text),
        ([encoded(&reset), vec![b'a'; 127]].concat(), Malformed::Length(129)),
        (with(HEADER, b'X', &all()[0]), Malformed::Magic),
        (with(HEADER, 2, &Frame::Probe { nonce: 1, kind: ProbeKind::Relay }), Malformed::Value(2)),
        (with(12, 1, &Frame::GoAway { last: 1 }), Malformed::Value(1 << 32 | 1)),
    ];
    for (message, fault) in cases {
        assert_eq!(Frame::decode(&message), Err(fault), "{message:?}");
    }
    // A cut text stays a text.
    let long = "ä".repeat(100);
    let reset = Frame::Reset { stream: 1, reason: Reason::Limit, after_fin: false, text: &long };
    let message = encoded(&reset);
    assert!(matches!(Frame::decode(&message), Ok(Frame::Reset { text, .. }) if text.len() == 128));
}

/// How many times as long as usual.
fn factor() -> usize {
    std::env::var("FUZZ_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// What a decoder that trusted a length, a flag or a text would not survive.
fn examine(message: &[u8]) -> bool {
    match Frame::decode(message) {
        Ok(frame) => {
            assert_eq!(encoded(&frame), message, "{frame:?}");
            true
        }
        Err(fault) => {
            assert!(!fault.to_string().is_empty());
            false
        }
    }
}

#[test]
fn random_bytes_are_frames_or_refused() {
    let mut dice = Dice(0x5eed + factor() as u64);
    let mut frames = 0;
    for _ in 0..300_000 * factor() {
        let mut message: Vec<u8> = (0..dice.roll(120)).map(|_| dice.roll(256) as u8).collect();
        // A quarter with a plausible header, or hardly any would get past it.
        if dice.roll(4) == 0 && message.len() >= HEADER {
            message[0] = dice.roll(17) as u8;
            message[1] = 0;
            message[2..8].fill(0);
            message[4] = dice.roll(2) as u8;
        }
        frames += usize::from(examine(&message));
    }
    assert!(frames > 1000, "{frames}");
}

#[test]
fn mutated_frames_are_frames_or_refused() {
    let mut dice = Dice(0xf0f0 + factor() as u64);
    let (mut frames, mut refused) = (0, 0);
    let seeds: Vec<Vec<u8>> = all().iter().map(encoded).collect();
    for round in 0..400_000 * factor() {
        let mut message = seeds[round % seeds.len()].clone();
        for _ in 0..=dice.roll(3) {
            match dice.roll(5) {
                0 if !message.is_empty() => {
                    let at = dice.roll(message.len());
                    message[at] ^= 1 << dice.roll(8);
                }
                1 if !message.is_empty() => {
                    let at = dice.roll(message.len());
                    message[at] = [0, 1, 0x7f, 0x80, 0xff][dice.roll(5)];
                }
                2 => message.truncate(dice.roll(message.len() + 1)),
                3 => message.extend((0..dice.roll(40)).map(|_| dice.roll(256) as u8)),
                _ => {
                    let other = &seeds[dice.roll(seeds.len())];
                    let cut = dice.roll(message.len() + 1);
                    message.truncate(cut);
                    message.extend_from_slice(other.get(cut..).unwrap_or_default());
                }
            }
        }
        if examine(&message) { frames += 1 } else { refused += 1 }
    }
    assert!(frames > 10_000 && refused > 10_000, "{frames} {refused}");
}

#[test]
fn answers_of_the_beacon_read_as_they_were_written() {
    let names = ["app", "ä", "a name of more than one word"].map(str::to_owned);
    let answer = Services::encode(&names, 4080);
    assert_eq!(Services::decode(&answer), Ok(Services { count: 3, names: names.to_vec() }));
    // What does not fit is counted.
    for most in beacon::QUESTION.len() + 4..answer.len() {
        let cut = Services::encode(&names, most);
        let read = Services::decode(&cut).unwrap();
        assert!(cut.len() <= most && read.count == 3 && read.names.len() < 3, "{read:?}");
    }
    assert_eq!(Services { count: 3, names: vec!["a\n".to_owned()] }.to_string(), r#""a\n" and 2 more"#);
    let with = |bytes: &[u8]| [&beacon::QUESTION[..], bytes].concat();
    let cases = [
        (vec![], beacon::Malformed::Magic),
        (vec![b'x'; 40], beacon::Malformed::Magic),
        (with(&[1, 0, 0]), beacon::Malformed::Length),
        (with(&[1, 0, 0, 0, b'a']), beacon::Malformed::Length),
        (with(&[1, 0, 0, 0, 0xff, 0]), beacon::Malformed::Text),
        (with(&[1, 0, 0, 0, 0]), beacon::Malformed::Names),
        (with(&[1, 0, 0, 0, b'a', 0, b'b', 0]), beacon::Malformed::Names),
    ];
    for (message, fault) in cases {
        assert_eq!(Services::decode(&message), Err(fault), "{message:?}");
    }
}

#[test]
fn mutated_answers_of_the_beacon_are_answers_or_refused() {
    let mut dice = Dice(0xbeac + factor() as u64);
    let seeds = [
        Services::encode(&[], 4080),
        Services::encode(&["a".to_owned(), "service".to_owned()], 4080),
        Services::encode(&vec!["ö".repeat(20); 200], 4080),
    ];
    let (mut answers, mut refused) = (0, 0);
    for round in 0..200_000 * factor() {
        let mut message = seeds[round % seeds.len()].clone();
        for _ in 0..=dice.roll(2) {
            // Mostly behind what the message begins with, without which nothing else is looked at.
            let from = if dice.roll(8) == 0 { 0 } else { beacon::QUESTION.len().min(message.len()) };
            let at = from + dice.roll(message.len() - from + 1);
            match dice.roll(4) {
                0 => message.truncate(at),
                1 => message.extend((0..dice.roll(20)).map(|_| dice.roll(256) as u8)),
                2 => message.insert(at, [0, b'a', 0xff][dice.roll(3)]),
                _ => {
                    if let Some(byte) = message.get_mut(at) {
                        *byte ^= 1 << dice.roll(8);
                    }
                }
            }
        }
        match Services::decode(&message) {
            Ok(Services { count, names }) => {
                assert!(names.len() <= count as usize && !names.iter().any(String::is_empty));
                let again = Services::encode(&names, message.len() + 1);
                assert_eq!(again[beacon::QUESTION.len() + 4..], message[beacon::QUESTION.len() + 4..]);
                answers += 1;
            }
            Err(fault) => {
                assert!(!fault.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(answers > 10_000 && refused > 10_000, "{answers} {refused}");
}
