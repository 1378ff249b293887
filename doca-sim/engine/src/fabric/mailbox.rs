//! Connection-management messages: a ring of letters in each context, written by any process, read by the owner.

use super::context::{ContextId, ContextView, LETTERS, LinkId};
use super::descriptor::ProcessRef;
use super::process;
use super::shm::Shared;
use super::word::{Phase, State, Word};
use crate::code::{Code, Res};
use crate::fault;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Most bytes of private data in a letter.
pub const PRIVATE_DATA: usize = 256;

/// A letter in shared memory.
#[repr(C)]
pub struct Letter {
    state: State,
    kind: AtomicU32,
    port: AtomicU32,
    pid: AtomicU32,
    salt: AtomicU32,
    token: [AtomicU64; 2],
    context: AtomicU64,
    from: AtomicU64,
    control_context: AtomicU64,
    control_link: AtomicU64,
    to: AtomicU64,
    offer: AtomicU64,
    device: AtomicU32,
    len: AtomicU32,
    qp_num: AtomicU32,
    _pad: AtomicU32,
    data: [AtomicU64; PRIVATE_DATA / 8],
}
// SAFETY: atomic integers only (`State` is one).
unsafe impl Shared for Letter {}

/// What a letter says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A client asks for a connection.
    Request = 1,
    /// The server has accepted.
    Reply = 2,
    /// The server refuses; `port` holds the reason, a `REJECT_*`.
    Reject = 3,
    /// The client has seen the reply.
    Ready = 4,
    /// Either side ends the connection.
    Disconnect = 5,
    /// An access to the addressee's memory was refused; `port` holds the flag, `device` 0 for the context and 1 for
    /// the mmap that lacks it.
    Refused = 6,
}

/// Nobody listens.
pub const REJECT_NO_LISTENER: u16 = 8;
/// No room for another connection.
pub const REJECT_NO_RESOURCES: u16 = 3;
/// The program on the other side does not want it.
pub const REJECT_BY_PROGRAM: u16 = 28;

/// What a side asks for or grants with a request or a reply, for programs to read: nothing here depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// RDMA reads and atomics that the sender will answer at once.
    pub responder_resources: u8,
    /// RDMA reads and atomics that the sender will have outstanding.
    pub initiator_depth: u8,
    /// Whether end-to-end flow control is there.
    pub flow_control: u8,
    /// How often lost packets are sent again.
    pub retry_count: u8,
    /// How often a receiver that is not ready is tried again.
    pub rnr_retry_count: u8,
    /// Whether receives are shared between connections.
    pub srq: u8,
    /// The sender's own port.
    pub port: u16,
    /// The sender's queue pair.
    pub qp_num: u32,
}

impl Offer {
    fn bits(self) -> u64 {
        let [low, high] = self.port.to_le_bytes();
        u64::from_le_bytes([
            self.responder_resources,
            self.initiator_depth,
            self.flow_control,
            self.retry_count,
            self.rnr_retry_count,
            self.srq,
            low,
            high,
        ])
    }

    fn from_bits(bits: u64, qp_num: u32) -> Offer {
        let [
            responder_resources,
            initiator_depth,
            flow_control,
            retry_count,
            rnr_retry_count,
            srq,
            low,
            high,
        ] = bits.to_le_bytes();
        let port = u16::from_le_bytes([low, high]);
        Offer {
            responder_resources,
            initiator_depth,
            flow_control,
            retry_count,
            rnr_retry_count,
            srq,
            port,
            qp_num,
        }
    }
}

/// A mailbox and a name in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Whose mailbox.
    pub context: ContextId,
    /// What letters are addressed to there.
    pub link: LinkId,
}

/// A letter as the engine handles it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// What it says.
    pub kind: Kind,
    /// The sender's process.
    pub process: ProcessRef,
    /// The sender's context.
    pub context: ContextId,
    /// The sender's end of the connection.
    pub from: LinkId,
    /// Where letters about this connection go: the sender's context and end, unless an `rdma_cm_id` of the sender's
    /// program keeps the connection.
    pub control: Control,
    /// The addressee's end, if it has one yet.
    pub to: LinkId,
    /// The sender's device, as a position in the topology.
    pub device: u32,
    /// The port that was asked for.
    pub port: u16,
    /// What comes with a request or a reply.
    pub offer: Offer,
    /// Private data.
    pub data: Vec<u8>,
}

/// Puts a message into a context's mailbox. AGAIN if the mailbox is full.
pub fn post(to: &ContextView, message: &Message) -> Res {
    let me = process::local()?.id();
    let (letters, _, tail) = to.mailbox();
    let (letter, claimed, lap) = loop {
        let position = tail.load(SeqCst);
        let lap = Word::lap(position, LETTERS);
        let letter = &letters[(position % u64::from(LETTERS)) as usize];
        let empty = Word::new(Phase::Empty, lap);
        let claimed = Word::claimed(me, lap);
        if letter.state.swap(empty, claimed) {
            let _ = tail.compare_exchange(position, position + 1, SeqCst, SeqCst);
            break (letter, claimed, lap);
        }
        if tail.load(SeqCst) != position {
            continue;
        }
        let found = letter.state.get();
        if found.lap_of() != lap || found.phase() == Phase::Empty {
            // Not yet read in the lap before.
            return Err(Code::AGAIN);
        }
        // Claimed or posted in this lap by somebody who has not moved the tail yet.
        let _ = tail.compare_exchange(position, position + 1, SeqCst, SeqCst);
    };
    fault::point();
    letter.kind.store(message.kind as u32, SeqCst);
    letter.port.store(message.port.into(), SeqCst);
    letter.pid.store(message.process.pid, SeqCst);
    letter.salt.store(message.process.salt.into(), SeqCst);
    for i in 0..2 {
        letter.token[i].store(message.process.token[i], SeqCst);
    }
    letter.context.store(message.context.bits(), SeqCst);
    letter.from.store(message.from.bits(), SeqCst);
    letter.control_context.store(message.control.context.bits(), SeqCst);
    letter.control_link.store(message.control.link.bits(), SeqCst);
    letter.to.store(message.to.bits(), SeqCst);
    letter.device.store(message.device, SeqCst);
    letter.offer.store(message.offer.bits(), SeqCst);
    letter.qp_num.store(message.offer.qp_num, SeqCst);
    let data = &message.data[..message.data.len().min(PRIVATE_DATA)];
    letter.len.store(data.len() as u32, SeqCst);
    for (word, chunk) in letter.data.iter().zip(data.chunks(8)) {
        let mut bytes = [0u8; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_ne_bytes(bytes), SeqCst);
    }
    letter.state.swap(claimed, Word::new(Phase::Posted, lap));
    to.notify();
    Ok(())
}

/// Whether the owner's mailbox has something to look at.
pub fn has_mail(own: &ContextView) -> bool {
    let (letters, head, _) = own.mailbox();
    let position = head.load(SeqCst);
    let lap = Word::lap(position, LETTERS);
    letters[(position % u64::from(LETTERS)) as usize].state.get() == Word::new(Phase::Posted, lap)
}

/// Takes the next message out of the owner's mailbox. Nonsense and letters of the dead are dropped.
pub fn take(own: &ContextView) -> Option<Message> {
    let (letters, head, _) = own.mailbox();
    loop {
        let position = head.load(SeqCst);
        let lap = Word::lap(position, LETTERS);
        let letter = &letters[(position % u64::from(LETTERS)) as usize];
        let found = letter.state.get();
        let message = match found.phase() {
            Phase::Posted if found.lap_of() == lap => letter.read(),
            Phase::Claimed if found.lap_of() == lap && !process::lives(found.claimant()) => None,
            _ => return None,
        };
        letter.state.set(Word::new(Phase::Empty, Word::lap(position + u64::from(LETTERS), LETTERS)));
        head.store(position + 1, SeqCst);
        if message.is_some() {
            return message;
        }
        crate::log::debug!("dropped a letter that makes no sense");
    }
}

impl Letter {
    fn read(&self) -> Option<Message> {
        let kind = match self.kind.load(SeqCst) {
            1 => Kind::Request,
            2 => Kind::Reply,
            3 => Kind::Reject,
            4 => Kind::Ready,
            5 => Kind::Disconnect,
            6 => Kind::Refused,
            _ => return None,
        };
        let len = self.len.load(SeqCst) as usize;
        let salt = u16::try_from(self.salt.load(SeqCst)).ok()?;
        let mut data: Vec<u8> = self.data.iter().flat_map(|word| word.load(SeqCst).to_ne_bytes()).collect();
        if len > data.len() {
            return None;
        }
        data.truncate(len);
        Some(Message {
            kind,
            process: ProcessRef {
                pid: self.pid.load(SeqCst),
                salt,
                token: [self.token[0].load(SeqCst), self.token[1].load(SeqCst)],
            },
            context: ContextId::from_bits(self.context.load(SeqCst)),
            from: LinkId::from_bits(self.from.load(SeqCst)),
            control: Control {
                context: ContextId::from_bits(self.control_context.load(SeqCst)),
                link: LinkId::from_bits(self.control_link.load(SeqCst)),
            },
            to: LinkId::from_bits(self.to.load(SeqCst)),
            device: self.device.load(SeqCst),
            port: self.port.load(SeqCst) as u16,
            offer: Offer::from_bits(self.offer.load(SeqCst), self.qp_num.load(SeqCst)),
            data,
        })
    }
}
