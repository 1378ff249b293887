//! Queue pairs, as the units see them.
//!
//! ```text
//! qp_alloc -> Allocated --accept--> Accepted --connect_established--> Connected --transport error--> Failed
//! qp_connect -----------------------^                                     |    disconnect task         |
//!                                                                         v                            v
//!                         qp_destroy <-- Disconnected <--completion-- Disconnecting <------------------+
//! ```

use super::core::Target;
use super::handle::{Handle, Kind};
use super::inbox::IoEvent;
use super::nvme::{self, COMPLETION, Command, Status};
use super::stats;
use super::token::Token;
use super::wire::Wire;
use crate::code::Code;
use crate::fabric::context::LinkState;
use crate::fabric::operation::{Operation, Outcome, Post};
use crate::fabric::queue;
use crate::fabric::region::{self, Piece};
use crate::log;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Where a queue pair is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum QpState {
    Allocated,
    Accepted,
    Connected,
    Failed,
    Disconnecting,
    /// Over, but the program has not been told yet.
    Ended,
    Disconnected,
}

/// A command as it came, with the data behind it.
pub(super) struct Capsule {
    pub(super) command: Command,
    pub(super) data: Vec<u8>,
}

/// Commands that a queue pair gets taken before the others' turn.
const QUANTUM: usize = 8;

/// What an operation in the send queue is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The data of a command that a unit serves.
    Fetch(u64),
    /// Data that the answer follows.
    Data,
    /// An answer of a unit, which ends the command with this number.
    Answer(Option<u64>),
    /// A task that fetches data for the program.
    Task { task: usize, token: Handle },
    /// A task that answers for the program.
    Response { task: usize, token: Handle },
}

/// What a task asks for.
pub(super) enum Job {
    /// Data for the program.
    Read { task: usize, token: Handle },
    /// Nothing: a fault on request, which breaks the connection.
    Fail { task: usize, token: Handle },
    /// An answer, with data or without.
    Respond { task: usize, token: Handle, completion: [u8; COMPLETION], data: bool },
}

/// A queue pair.
pub(crate) struct Qp {
    pub(super) handle: Handle,
    /// The IO context that it belongs to.
    pub(super) io: u32,
    pub(super) state: QpState,
    pub(super) device: usize,
    /// The unit that handles its completions: a position.
    pub(super) unit: usize,
    pub(super) index_in_group: u16,
    /// The number that the network knows.
    pub(super) number: u32,
    pub(super) user_data: Option<u64>,
    pub(super) subsystem: Option<Handle>,
    /// As the host gave it: one less than the number of entries.
    pub(super) sq_size: Option<u16>,
    /// Carries commands of the administration, which no unit knows.
    pub(super) admin: bool,
    /// The program has answered Connect.
    pub(super) is_connected: bool,
    /// Commands taken from the queue.
    pub(super) consumed: u64,
    pub(super) offloaded: BTreeSet<u64>,
    /// When it was looked at last, there was nothing left for its commands.
    pub(super) starved: bool,
    pub(super) jobs: VecDeque<Job>,
    pub(super) pending: VecDeque<Capsule>,
    /// Commands that the program has.
    pub(super) tokens: BTreeMap<Handle, Token>,
    /// The task that ends it.
    pub(super) disconnect: Option<usize>,
    pub(super) wire: Option<Wire>,
}

/// The numbers that the program is told about a failure, like the adapter's. (Proposed.)
fn syndrome(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Success => 0,
        Outcome::Flushed => 0x05,
        Outcome::Length | Outcome::Misaligned => 0x12,
        Outcome::Refused | Outcome::RemoteAddress => 0x13,
        Outcome::LocalAccess | Outcome::Abandoned | Outcome::Injected => 0x14,
        Outcome::Unreachable => 0x15,
        Outcome::ReceiverNotReady => 0x16,
    }
}

const RECEIVING: u32 = 0;

fn number_of(operation: Operation) -> u32 {
    match operation {
        Operation::Write => 2,
        Operation::Read => 3,
        _ => 1,
    }
}

impl Qp {
    /// The head of the host's submission queue, for answers.
    pub(super) fn sq_head(&self) -> u16 {
        self.sq_size.map_or(0, |size| (self.consumed % (u64::from(size) + 1)) as u16)
    }

    /// Whether reads and writes are served by the units.
    fn offloads(&self) -> bool {
        // Units that know no queues of the administration see opcodes alone.
        let bound = self.subsystem.is_some() || crate::profile::get().sta_no_admin_qp;
        !self.admin && self.is_connected && bound && self.sq_size.is_some()
    }

    fn is_up(&self) -> bool {
        matches!(self.state, QpState::Accepted | QpState::Connected)
    }

    /// Whether there is nothing to be done for it.
    fn is_at_rest(&self) -> bool {
        matches!(self.state, QpState::Allocated | QpState::Ended | QpState::Disconnected)
    }

    /// Everything that can be done for it but [to take commands](Qp::take_commands). Tells whether anything was.
    pub(super) fn serve(&mut self, target: &mut Target, now: u64) -> bool {
        if self.is_at_rest() {
            return false;
        }
        let mut busy = false;
        if let Some(wire) = &mut self.wire {
            if self.state != QpState::Disconnecting {
                busy |= wire.look(now);
            }
            if wire.posted > wire.reported {
                wire.pump();
            }
        }
        // What has failed here says why; otherwise the far end has broken the connection.
        busy |= self.reap(target);
        if self.is_up() && self.wire.as_ref().is_some_and(|wire| wire.state() == LinkState::Error) {
            self.fail(target, RECEIVING, 0x14);
            busy = true;
        }
        busy |= self.work(target);
        if self.disconnect.is_some() {
            busy |= self.finish_disconnect(target);
        }
        busy
    }

    /// Ends what is left of it when its unit is gone.
    pub(super) fn wind_up(&mut self, target: &mut Target) -> bool {
        let mut busy = self.reap(target) | self.work(target);
        self.look_after();
        self.drop_offloaded(target);
        if self.disconnect.is_some() {
            busy |= self.finish_disconnect(target);
        }
        busy
    }

    /// Timeouts and dead peers, now and then.
    pub(super) fn look_after(&mut self) {
        if let Some(wire) = self.wire.as_ref().filter(|wire| wire.posted > wire.reported) {
            wire.look_after();
        }
    }

    /// Operations that have ended.
    fn reap(&mut self, target: &mut Target) -> bool {
        let mut busy = false;
        loop {
            let Some(wire) = &mut self.wire else { return busy };
            if wire.reported >= wire.posted {
                return busy;
            }
            let Some(outcome) = queue::sent(&wire.view, wire.link.index, wire.reported) else { return busy };
            wire.reported += 1;
            let Some((operation, sent)) = wire.sent.pop_front() else { return busy };
            busy = true;
            if outcome != Outcome::Success && self.is_up() {
                self.fail(target, number_of(operation), syndrome(outcome));
            }
            self.ended(target, sent, outcome == Outcome::Success);
        }
    }

    /// An operation has ended, or never began.
    fn ended(&mut self, target: &mut Target, sent: Sent, fine: bool) {
        let code = match self.state {
            _ if fine => Code::SUCCESS,
            QpState::Disconnecting | QpState::Ended | QpState::Disconnected => Code::CONNECTION_ABORTED,
            _ => Code::IO_FAILED,
        };
        match sent {
            Sent::Fetch(number) if fine => self.fetched(target, number),
            Sent::Fetch(number) | Sent::Answer(Some(number)) => {
                self.offloaded.remove(&number);
                target.finish(number);
            }
            Sent::Data | Sent::Answer(None) => {}
            Sent::Task { task, token } => {
                if let Some(token) = self.tokens.get_mut(&token) {
                    token.fetched(fine);
                }
                self.tell(target, IoEvent::Done { task, code, over: None });
            }
            Sent::Response { task, token } => {
                self.tell(target, IoEvent::Done { task, code, over: Some((self.handle, token)) });
            }
        }
    }

    pub(super) fn tell(&self, target: &mut Target, event: IoEvent) {
        if let Some(io) = target.ios.get_mut(&self.io) {
            io.tell(event);
        }
    }

    /// The connection has broken.
    pub(super) fn fail(&mut self, target: &mut Target, operation: u32, syndrome: u32) {
        if !self.is_up() {
            return;
        }
        log::warning!("queue pair {} has failed: operation {operation}, syndrome {syndrome:#x}", self.number);
        self.state = QpState::Failed;
        target.units[self.unit].counters.add(stats::comp::RX_ERRORS, 1);
        self.pending.clear();
        if let Some(wire) = &self.wire {
            wire.cut();
        }
        let event = IoEvent::TransportError { qp: self.handle, operation, syndrome };
        self.tell(target, event);
        self.drop_offloaded(target);
    }

    /// Ends commands that nothing but a disk has to do with any more.
    fn drop_offloaded(&mut self, target: &mut Target) {
        if self.wire.as_ref().is_some_and(|wire| wire.posted > wire.reported) {
            return;
        }
        for number in std::mem::take(&mut self.offloaded) {
            target.finish(number);
        }
    }

    /// What tasks ask for.
    fn work(&mut self, target: &mut Target) -> bool {
        let mut busy = false;
        while let Some(job) = self.jobs.pop_front() {
            busy = true;
            match job {
                Job::Read { task, token } => {
                    let sent = Sent::Task { task, token };
                    match self.tokens.get(&token).and_then(Token::source) {
                        Some((addr, key, piece)) => self.fetch(target, addr, key, piece, sent),
                        None => self.ended(target, sent, false),
                    }
                }
                Job::Fail { task, token } => {
                    self.fail(target, number_of(Operation::Fault), syndrome(Outcome::Injected));
                    self.ended(target, Sent::Response { task, token }, false);
                }
                Job::Respond { task, token, completion, data } => {
                    let Some(known) = self.tokens.get(&token) else {
                        self.ended(target, Sent::Response { task, token }, false);
                        continue;
                    };
                    let (invalidates, connects) =
                        (known.command().invalidates(), known.command().is_connect());
                    if let Some((addr, key, piece)) = known.target().filter(|_| data) {
                        self.deliver_data(target, addr, key, piece);
                    }
                    if connects && nvme::is_success(&completion) {
                        self.connect_answered();
                    }
                    let mut answer = completion;
                    answer[8..10].copy_from_slice(&self.sq_head().to_le_bytes());
                    self.answer(target, &answer, invalidates, Sent::Response { task, token });
                }
            }
        }
        busy
    }

    fn connect_answered(&mut self) {
        self.is_connected = true;
        if !self.admin && !self.offloads() {
            log::warning!(
                "queue pair {}: Connect was answered without a subsystem or a queue size, so no command is offloaded",
                self.number
            );
        }
    }

    /// Begins commands that have come, a few of them. Tells whether there were any.
    pub(super) fn take_commands(&mut self, target: &mut Target, limits: Limits) -> bool {
        self.starved = false;
        if self.state != QpState::Connected {
            return false;
        }
        for taken in 0..QUANTUM {
            let Some(capsule) = self.pending.pop_front() else { return taken > 0 };
            let command = capsule.command;
            let rw = matches!(command.opcode(), nvme::READ | nvme::WRITE);
            if rw && self.offloads() && !command.is_fused() {
                if !self.offload(target, &capsule, limits.max_io_size) {
                    self.pending.push_front(capsule);
                    self.starved = taken == 0;
                    return taken > 0;
                }
            } else {
                self.hand_over(target, capsule);
            }
            if self.state != QpState::Connected {
                break;
            }
        }
        true
    }

    /// A command for the program.
    fn hand_over(&mut self, target: &mut Target, capsule: Capsule) {
        self.consumed += 1;
        if Token::is_torn(&capsule) {
            return self.refuse(target, &capsule.command, Status::SGL_OFFSET);
        }
        if capsule.command.is_connect() && !self.is_connected {
            self.admin = capsule.command.connect_qid() == 0 && !crate::profile::get().sta_no_admin_qp;
        }
        target.units[self.unit].counters.add(stats::comp::RX_NON_OFFLOAD, 1);
        let token = target.handle(Kind::Token);
        self.tokens.insert(token, Token::new(capsule));
        self.tell(target, IoEvent::Command { qp: self.handle, token });
    }

    /// Answers a command with an error.
    pub(super) fn refuse(&mut self, target: &mut Target, command: &Command, status: Status) {
        log::debug!("a command of queue pair {} is refused: status {:#x}", self.number, status.0);
        target.units[self.unit].counters.add(stats::comp::RX_ERRORS, 1);
        let answer = nvme::completion(command.cid(), self.sq_head(), status);
        target.notice(self, 0, command, answer);
        self.answer(target, &answer, command.invalidates(), Sent::Answer(None));
    }

    /// Takes in what has arrived. Too much of it breaks the connection, as a queue without receives does.
    pub(super) fn arrived(&mut self, target: &mut Target, bytes: &[u8], limits: Limits) {
        if !self.is_up() {
            return;
        }
        let Some((command, data)) = bytes.split_first_chunk() else {
            log::error!("queue pair {}: a capsule of {} bytes is no command", self.number, bytes.len());
            return self.fail(target, RECEIVING, 0x12);
        };
        target.units[self.unit].counters.add(stats::comp::RX_CAPSULES, 1);
        let held = self.pending.len() + self.offloaded.len() + self.tokens.len();
        if held >= 2 * limits.queue_size as usize {
            log::error!("queue pair {}: the host has {held} commands outstanding", self.number);
            return self.fail(target, RECEIVING, 0x16);
        }
        self.pending.push_back(Capsule { command: Command(*command), data: data.to_vec() });
    }

    /// Reads from the host.
    pub(super) fn fetch(&mut self, target: &mut Target, addr: u64, key: u32, piece: Piece, sent: Sent) {
        target.count_tx(self.unit, stats::tx::READS);
        self.one_sided(target, Operation::Read, addr, key, piece, sent);
    }

    /// Writes to the host.
    pub(super) fn deliver_data(&mut self, target: &mut Target, addr: u64, key: u32, piece: Piece) {
        target.count_tx(self.unit, stats::tx::WRITES);
        self.one_sided(target, Operation::Write, addr, key, piece, Sent::Data);
    }

    fn one_sided(
        &mut self,
        target: &mut Target,
        operation: Operation,
        addr: u64,
        key: u32,
        piece: Piece,
        sent: Sent,
    ) {
        let Some(wire) = self.wire.as_mut().filter(|wire| !wire.is_full()) else {
            return self.ended(target, sent, false);
        };
        let mut post = Post::message(operation, piece.len, 0);
        if let Some((far, view)) = &wire.far {
            let region = region::by_key(view.process(), key);
            log::trace!("{operation:?} of {} bytes at {addr:#x} of process {}", piece.len, far.process.pid);
            post.remote = Piece { addr, len: piece.len, region };
        }
        wire.post(&post, piece, sent);
        wire.pump();
    }

    /// Sends an answer.
    pub(super) fn answer(
        &mut self,
        target: &mut Target,
        completion: &[u8; COMPLETION],
        invalidates: Option<u32>,
        sent: Sent,
    ) {
        let Some(wire) = self.wire.as_mut().filter(|wire| !wire.is_full()) else {
            return self.ended(target, sent, false);
        };
        let slot = wire.posted as usize & (wire.view.sizes().sends as usize - 1);
        wire.answers.write(slot * COMPLETION, completion);
        let piece = wire.answers.piece(slot * COMPLETION, COMPLETION);
        let post = match invalidates {
            // As verbs have it, the invalidated key arrives where immediate data do.
            Some(key) => Post::message(Operation::SendImmediate, COMPLETION as u64, key.to_be()),
            None => Post::message(Operation::Send, COMPLETION as u64, 0),
        };
        wire.post(&post, piece, sent);
        wire.pump();
        target.count_tx(self.unit, stats::tx::SENDS);
    }

    /// The program wants to end it: what is under way is flushed.
    pub(super) fn begin_disconnect(&mut self, task: usize) {
        self.state = QpState::Disconnecting;
        self.disconnect = Some(task);
        self.pending.clear();
        if let Some(wire) = &self.wire {
            wire.cut();
        }
    }

    fn finish_disconnect(&mut self, target: &mut Target) -> bool {
        if self.wire.as_ref().is_some_and(|wire| wire.posted > wire.reported) {
            // A peer is executing something of it, or has died doing so.
            return false;
        }
        self.drop_offloaded(target);
        if let Some(id) = self.wire.as_ref().and_then(|wire| wire.id.as_ref()) {
            id.disconnect();
        }
        self.state = QpState::Ended;
        let Some(task) = self.disconnect.take() else { return false };
        if let Some(io) = target.ios.get_mut(&self.io) {
            io.forget(self.handle);
        }
        self.tell(target, IoEvent::Done { task, code: Code::SUCCESS, over: None });
        true
    }
}

/// Limits that hold for all queue pairs of an instance.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) max_io_size: u32,
    /// Commands of one queue.
    pub(super) queue_size: u32,
}

impl Target {
    /// Counts an operation at the unit that transmits for this one.
    fn count_tx(&self, unit: usize, counter: usize) {
        use super::core::UnitKind;
        let tx: Vec<usize> = self.units_of(UnitKind::Tx).collect();
        if let Some(unit) = tx.get(unit % tx.len().max(1)) {
            self.units[*unit].counters.add(counter, 1);
        }
    }
}
