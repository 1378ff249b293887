//! What one message between two relays says. See `PROTOCOL.md`.
//!
//! A frame is one Comch message: a header of [`HEADER`] bytes, little endian, and a payload. Nothing here trusts a
//! length: whatever bytes come, [`Frame::decode`] answers a frame or says what is wrong with them.

use std::fmt;

/// Bytes before the payload.
pub const HEADER: usize = 16;
/// The version of the protocol that is spoken here.
pub const VERSION: u64 = 1;
/// Sessions whose frames are smaller than this are refused.
pub const MIN_FRAME: u32 = 256;
/// The longest explanation in a [`Frame::Reset`].
pub const MAX_TEXT: usize = 128;

const MAGIC: [u8; 8] = *b"DSRELAY1";
/// Magic, features, four limits, instance.
const HELLO: usize = 8 + 5 * 4 + 16;
const COUNTERS: usize = 4 * 8;

/// What can be agreed on in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features(pub u32);

impl Features {
    /// Both sides can move data over the fast path.
    pub const FAST_PATH: Features = Features(1);
    /// The end of one direction leaves the other open.
    pub const HALF_CLOSE: Features = Features(2);

    /// Whether all of `other` are among these.
    pub const fn has(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// These, but not those.
    #[must_use]
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// What both have.
    #[must_use]
    pub const fn common(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }
}

/// Limits that the two sides tell each other; what is agreed on is the smaller of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Optional behaviour.
    pub features: Features,
    /// Bytes of the longest frame.
    pub max_frame: u32,
    /// Bytes that one direction of a stream may be ahead of its reader.
    pub window: u32,
    /// Streams at a time.
    pub max_streams: u32,
    /// Messages that the side can hold before its program looks at them.
    pub recv_queue: u32,
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { features, max_frame, window, max_streams, recv_queue } = self;
        write!(
            f,
            "features {:#x}, frames of {max_frame} bytes, windows of {window}, {max_streams} clients, {recv_queue} \
             messages",
            features.0
        )
    }
}

impl Limits {
    /// What both sides can do.
    #[must_use]
    pub fn common(&self, other: &Limits) -> Limits {
        Limits {
            features: self.features.common(other.features),
            max_frame: self.max_frame.min(other.max_frame),
            window: self.window.min(other.window),
            max_streams: self.max_streams.min(other.max_streams),
            recv_queue: self.recv_queue.min(other.recv_queue),
        }
    }
}

/// The local process behind a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// Why a stream ended before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u64)]
#[allow(missing_docs, reason = "`Reason::text` says it")]
pub enum Reason {
    LocalClosed = 1,
    Refused = 2,
    NoPath = 3,
    Permission = 4,
    Limit = 5,
    Protocol = 6,
    SessionLost = 7,
    Shutdown = 8,
    Timeout = 9,
    Internal = 10,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 10] = [
        Reason::LocalClosed,
        Reason::Refused,
        Reason::NoPath,
        Reason::Permission,
        Reason::Limit,
        Reason::Protocol,
        Reason::SessionLost,
        Reason::Shutdown,
        Reason::Timeout,
        Reason::Internal,
    ];

    fn from_code(code: u64) -> Option<Reason> {
        Self::ALL.into_iter().find(|reason| *reason as u64 == code)
    }

    /// A few words for logs and counters.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::LocalClosed => "local end closed",
            Reason::Refused => "application refused the connection",
            Reason::NoPath => "application's socket does not exist",
            Reason::Permission => "application's socket may not be opened",
            Reason::Limit => "limit reached",
            Reason::Protocol => "protocol error",
            Reason::SessionLost => "session lost",
            Reason::Shutdown => "relay shut down",
            Reason::Timeout => "timed out",
            Reason::Internal => "internal error",
        }
    }
}

/// What a side says about itself first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello<'a> {
    /// Protocol version.
    pub version: u64,
    /// What it can do.
    pub limits: Limits,
    /// Another one after each start of the program.
    pub instance: [u8; 16],
    /// Versions of relay and DOCA, for people and for comparison.
    pub text: &'a str,
}

/// What a probe asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ProbeKind {
    /// An answer from the relay.
    Relay = 0,
    /// One empty connection to the application.
    Application = 1,
}

/// Bytes that a relay has moved since it started, by where they came from or went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Bytes {
    /// Read from local sockets.
    pub local_in: u64,
    /// Sent to the other relay.
    pub link_out: u64,
    /// Received from the other relay.
    pub link_in: u64,
    /// Written to local sockets.
    pub local_out: u64,
}

/// What a side says of its receiving end of the fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastNote {
    /// Messages can be sent to it.
    Ready {
        /// Number of its consumer, never 0.
        consumer: u32,
        /// Bytes of the longest message, more than [`HEADER`].
        room: u32,
        /// Messages that may be sent before the first credit, never 0.
        messages: u32,
    },
    /// It has none: bytes of streams go over the control path.
    None,
    /// So many messages may be sent, counted from the first.
    Credit(u64),
}

impl FastNote {
    /// A word for people.
    pub const fn text(self) -> &'static str {
        match self {
            FastNote::Ready { .. } => "a consumer",
            FastNote::None => "a consumer that is given up",
            FastNote::Credit(_) => "a credit",
        }
    }
}

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// The first frame of each side.
    Hello(Hello<'a>),
    /// The answer to it, with what was agreed on.
    HelloAck {
        /// Chosen version.
        version: u64,
        /// Chosen limits.
        limits: Limits,
    },
    /// Host to DPU: a client has connected.
    Open {
        /// New stream.
        stream: u32,
        /// Offset up to which the DPU may send.
        credit: u64,
        /// Who it is.
        identity: Identity,
    },
    /// DPU to host: the application has accepted.
    OpenAck {
        /// Stream.
        stream: u32,
        /// Offset up to which the host may send.
        credit: u64,
    },
    /// Bytes of a stream.
    Data {
        /// Stream.
        stream: u32,
        /// Offset of the first.
        offset: u64,
        /// At least one.
        bytes: &'a [u8],
    },
    /// No more bytes will come than up to this offset.
    Fin {
        /// Stream.
        stream: u32,
        /// Bytes of the whole direction.
        offset: u64,
    },
    /// The stream is over.
    Reset {
        /// Stream.
        stream: u32,
        /// Why.
        reason: Reason,
        /// The sender has sent a [`Frame::Fin`], all of which is still to be delivered; only the other direction
        /// is void.
        after_fin: bool,
        /// Explanation, at most [`MAX_TEXT`] bytes.
        text: &'a str,
    },
    /// The peer may send up to this offset.
    Credit {
        /// Stream.
        stream: u32,
        /// Offset.
        upto: u64,
        /// All bytes and the end of the direction were delivered.
        delivered: bool,
    },
    /// Asks for a sign of life.
    Ping(u64),
    /// Gives it.
    Pong(u64),
    /// No new streams, please.
    GoAway {
        /// Highest stream that will still be served.
        last: u32,
    },
    /// Host to DPU: does this layer answer?
    Probe {
        /// Of the sender's choice.
        nonce: u64,
        /// Which layer.
        kind: ProbeKind,
    },
    /// The answer.
    ProbeResult {
        /// As in the probe.
        nonce: u64,
        /// Zero, or the errno of the connection to the application.
        errno: u32,
        /// What the relay has moved.
        bytes: Bytes,
    },
    /// What concerns the fast path, where it was agreed on.
    Fast(FastNote),
}

/// What is wrong with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Shorter than a header.
    Short(usize),
    /// No frame has this type.
    Type(u8),
    /// Bits that have no meaning are set.
    Flags(u8),
    /// The reserved field is not zero.
    Reserved(u16),
    /// This kind of frame cannot have this stream id.
    Stream(u32),
    /// The payload is too short or too long for its kind.
    Length(usize),
    /// The magic of a hello is not ours.
    Magic,
    /// A value that is not known.
    Value(u64),
    /// A text that is not UTF-8.
    Text,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short(len) => write!(f, "a message of {len} bytes has no room for a header"),
            Malformed::Type(code) => write!(f, "unknown frame type {code}"),
            Malformed::Flags(bits) => write!(f, "unknown flags {bits:#04x}"),
            Malformed::Reserved(bits) => write!(f, "the reserved field is {bits:#06x}, not zero"),
            Malformed::Stream(id) => write!(f, "stream {id} in a frame that cannot have it"),
            Malformed::Length(len) => write!(f, "a payload of {len} bytes does not fit the frame type"),
            Malformed::Magic => write!(f, "the peer does not speak this relay's protocol (wrong magic)"),
            Malformed::Value(value) => write!(f, "unknown value {value}"),
            Malformed::Text => write!(f, "a text is not UTF-8"),
        }
    }
}

impl std::error::Error for Malformed {}

/// Types on the wire.
mod code {
    pub(super) const HELLO: u8 = 1;
    pub(super) const HELLO_ACK: u8 = 2;
    pub(super) const OPEN: u8 = 3;
    pub(super) const OPEN_ACK: u8 = 4;
    pub(super) const DATA: u8 = 5;
    pub(super) const FIN: u8 = 6;
    pub(super) const RESET: u8 = 7;
    pub(super) const CREDIT: u8 = 8;
    pub(super) const PING: u8 = 9;
    pub(super) const PONG: u8 = 10;
    pub(super) const GOAWAY: u8 = 11;
    pub(super) const PROBE: u8 = 12;
    pub(super) const PROBE_RESULT: u8 = 13;
    pub(super) const FAST: u8 = 14;
    pub(super) const FAST_CREDIT: u8 = 15;
}

/// The one flag of RESET and CREDIT.
const FLAG: u8 = 1;

const fn header(kind: u8, flags: u8, stream: u32, value: u64) -> [u8; HEADER] {
    let (s, v) = (stream.to_le_bytes(), value.to_le_bytes());
    [kind, flags, 0, 0, s[0], s[1], s[2], s[3], v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]]
}

/// The header of a [`Frame::Data`], for senders that keep header and payload apart.
pub const fn data_header(stream: u32, offset: u64) -> [u8; HEADER] {
    header(code::DATA, 0, stream, offset)
}

impl<'a> Frame<'a> {
    /// Writes the message in place of what `out` holds.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let mut head = |kind, flags, stream, value| {
            out.extend_from_slice(&header(kind, flags, stream, value));
        };
        match *self {
            Frame::Hello(ref hello) => {
                head(code::HELLO, 0, 0, hello.version);
                out.extend_from_slice(&MAGIC);
                put_limits(out, &hello.limits);
                out.extend_from_slice(&hello.instance);
                out.extend_from_slice(hello.text.as_bytes());
            }
            Frame::HelloAck { version, ref limits } => {
                head(code::HELLO_ACK, 0, 0, version);
                put_limits(out, limits);
            }
            Frame::Open { stream, credit, identity } => {
                head(code::OPEN, 0, stream, credit);
                for word in [identity.pid, identity.uid, identity.gid] {
                    out.extend_from_slice(&word.to_le_bytes());
                }
            }
            Frame::OpenAck { stream, credit } => head(code::OPEN_ACK, 0, stream, credit),
            Frame::Data { stream, offset, bytes } => {
                head(code::DATA, 0, stream, offset);
                out.extend_from_slice(bytes);
            }
            Frame::Fin { stream, offset } => head(code::FIN, 0, stream, offset),
            Frame::Reset { stream, reason, after_fin, text } => {
                head(code::RESET, u8::from(after_fin), stream, reason as u64);
                out.extend_from_slice(&text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)]);
            }
            Frame::Credit { stream, upto, delivered } => {
                head(code::CREDIT, u8::from(delivered), stream, upto);
            }
            Frame::Ping(nonce) => head(code::PING, 0, 0, nonce),
            Frame::Pong(nonce) => head(code::PONG, 0, 0, nonce),
            Frame::GoAway { last } => head(code::GOAWAY, 0, 0, u64::from(last)),
            Frame::Probe { nonce, kind } => {
                head(code::PROBE, 0, 0, nonce);
                out.push(kind as u8);
            }
            Frame::ProbeResult { nonce, errno, bytes } => {
                head(code::PROBE_RESULT, 0, 0, nonce);
                out.extend_from_slice(&errno.to_le_bytes());
                for count in [bytes.local_in, bytes.link_out, bytes.link_in, bytes.local_out] {
                    out.extend_from_slice(&count.to_le_bytes());
                }
            }
            Frame::Fast(FastNote::Credit(upto)) => head(code::FAST_CREDIT, 0, 0, upto),
            Frame::Fast(FastNote::None) => head(code::FAST, 0, 0, 0),
            Frame::Fast(FastNote::Ready { consumer, room, messages }) => {
                head(code::FAST, 0, 0, u64::from(consumer));
                out.extend_from_slice(&room.to_le_bytes());
                out.extend_from_slice(&messages.to_le_bytes());
            }
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(message: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        let Some((head, payload)) = message.split_at_checked(HEADER) else {
            return Err(Malformed::Short(message.len()));
        };
        let mut head = Words(head);
        let [kind, flags] = head.take()?;
        let reserved = u16::from_le_bytes(head.take()?);
        let (stream, value) = (head.u32()?, head.u64()?);
        if reserved != 0 {
            return Err(Malformed::Reserved(reserved));
        }
        let flagged = matches!(kind, code::RESET | code::CREDIT);
        if flags & !(if flagged { FLAG } else { 0 }) != 0 {
            return Err(Malformed::Flags(flags));
        }
        let of_session = match kind {
            code::OPEN..=code::CREDIT => false,
            code::HELLO..=code::FAST_CREDIT => true,
            other => return Err(Malformed::Type(other)),
        };
        if of_session != (stream == 0) {
            return Err(Malformed::Stream(stream));
        }
        let mut rest = Words(payload);
        let frame = match kind {
            code::HELLO => {
                if payload.len() < HELLO {
                    return Err(if payload.starts_with(&MAGIC) {
                        Malformed::Length(payload.len())
                    } else {
                        Malformed::Magic
                    });
                }
                if rest.take()? != MAGIC {
                    return Err(Malformed::Magic);
                }
                let (limits, instance) = (rest.limits()?, rest.take()?);
                let text = std::str::from_utf8(rest.rest()).map_err(|_| Malformed::Text)?;
                Frame::Hello(Hello { version: value, limits, instance, text })
            }
            code::HELLO_ACK => Frame::HelloAck { version: value, limits: rest.limits()? },
            code::OPEN => {
                let identity = Identity { pid: rest.u32()?, uid: rest.u32()?, gid: rest.u32()? };
                Frame::Open { stream, credit: value, identity }
            }
            code::OPEN_ACK => Frame::OpenAck { stream, credit: value },
            code::DATA if payload.is_empty() => return Err(Malformed::Length(0)),
            code::DATA => Frame::Data { stream, offset: value, bytes: rest.rest() },
            code::FIN => Frame::Fin { stream, offset: value },
            code::RESET => {
                if payload.len() > MAX_TEXT {
                    return Err(Malformed::Length(payload.len()));
                }
                let reason = Reason::from_code(value).ok_or(Malformed::Value(value))?;
                let text = std::str::from_utf8(rest.rest()).map_err(|_| Malformed::Text)?;
                Frame::Reset { stream, reason, after_fin: flags == FLAG, text }
            }
            code::CREDIT => Frame::Credit { stream, upto: value, delivered: flags == FLAG },
            code::PING => Frame::Ping(value),
            code::PONG => Frame::Pong(value),
            code::GOAWAY => {
                Frame::GoAway { last: u32::try_from(value).map_err(|_| Malformed::Value(value))? }
            }
            code::PROBE => {
                let kind = match rest.take::<1>()? {
                    [0] => ProbeKind::Relay,
                    [1] => ProbeKind::Application,
                    [other] => return Err(Malformed::Value(u64::from(other))),
                };
                Frame::Probe { nonce: value, kind }
            }
            code::FAST if value == 0 => Frame::Fast(FastNote::None),
            code::FAST => {
                let consumer = u32::try_from(value).map_err(|_| Malformed::Value(value))?;
                let (room, messages) = (rest.u32()?, rest.u32()?);
                if room as usize <= HEADER || messages == 0 {
                    return Err(Malformed::Value(u64::from(room.min(messages))));
                }
                Frame::Fast(FastNote::Ready { consumer, room, messages })
            }
            code::FAST_CREDIT => Frame::Fast(FastNote::Credit(value)),
            _ => {
                if payload.len() != 4 + COUNTERS {
                    return Err(Malformed::Length(payload.len()));
                }
                let errno = rest.u32()?;
                let bytes = Bytes {
                    local_in: rest.u64()?,
                    link_out: rest.u64()?,
                    link_in: rest.u64()?,
                    local_out: rest.u64()?,
                };
                Frame::ProbeResult { nonce: value, errno, bytes }
            }
        };
        if rest.0.is_empty() { Ok(frame) } else { Err(Malformed::Length(payload.len())) }
    }
}

fn put_limits(out: &mut Vec<u8>, limits: &Limits) {
    let words = [limits.features.0, limits.max_frame, limits.window, limits.max_streams, limits.recv_queue];
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Bytes that are read from the front.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Malformed::Length(self.0.len()))?;
        self.0 = rest;
        Ok(*first)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    fn limits(&mut self) -> Result<Limits, Malformed> {
        Ok(Limits {
            features: Features(self.u32()?),
            max_frame: self.u32()?,
            window: self.u32()?,
            max_streams: self.u32()?,
            recv_queue: self.u32()?,
        })
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
