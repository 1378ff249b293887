//! An admin queue on a queue pair that is not STA's: the half that does not depend on the transport.

use crate::engine::{Action, Outcome, QueueKey};
use crate::frontend::{Frontend, Told};
use nvme_wire::{Cqe, SglKind, Sqe, Status};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};

/// Memory of the initiator, which the transport reads or writes by RDMA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemory {
    /// Address in the initiator.
    pub address: u64,
    /// Remote key.
    pub key: u32,
    /// Bytes.
    pub len: u32,
}

/// What the transport is to do.
#[derive(Debug)]
pub enum Step {
    /// Read this memory, and hand its bytes to [`AdminQueue::fetched`].
    Fetch(Fetch),
    /// Write the data, if there are any, then send the response capsule.
    Answer {
        /// Where to, and what: not more than fits there.
        data: Option<(HostMemory, Vec<u8>)>,
        /// The response capsule.
        response: [u8; 16],
        /// Send it with invalidation of this key.
        invalidate: Option<u32>,
    },
    /// End the connection, for this reason.
    Disconnect(&'static str),
}

/// A command whose data are to be read.
#[derive(Debug)]
pub struct Fetch {
    command: Sqe,
    /// Where they are.
    pub from: HostMemory,
}

/// An admin queue of a target on a connection of the transport's. Dropping it closes the queue, and with it its controller.
#[derive(Debug)]
pub struct AdminQueue {
    frontend: Frontend,
    key: QueueKey,
    told: Receiver<Told>,
    /// Bytes of data that a command may have.
    room: usize,
    /// Entries of the initiator's queue, once Connect has told.
    entries: Option<u64>,
    consumed: u64,
    /// Keys to be invalidated by the answers to commands that wait for an event.
    kept: HashMap<u16, Option<u32>>,
}

impl AdminQueue {
    /// Opens a queue of a connection whose private data asked for queue 0, on a transport that moves `room` bytes for a command.
    pub fn new(frontend: &Frontend, room: usize) -> Self {
        let (route, told) = channel();
        let key = frontend.opened(0, route);
        let frontend = frontend.clone();
        AdminQueue { frontend, key, told, room, entries: None, consumed: 0, kept: HashMap::new() }
    }

    /// Takes a command capsule in. `None`: nothing is to be done now.
    pub fn command(&mut self, capsule: &[u8]) -> Option<Step> {
        let Some((command, behind)) = capsule.split_first_chunk() else {
            return Some(Step::Disconnect("a capsule is shorter than a command"));
        };
        self.consumed += 1;
        let sqe = Sqe::parse(command);
        match sqe.sgl().kind() {
            SglKind::InCapsule { offset: 0, len } => match behind.get(..len as usize) {
                Some(data) => self.handle(&sqe, Some(data)),
                None => Some(self.refuse(&sqe, Status::SGL_OFFSET_INVALID)),
            },
            _ => self.handle(&sqe, None),
        }
    }

    /// Goes on with a command whose data were read.
    pub fn fetched(&mut self, fetch: &Fetch, data: &[u8]) -> Option<Step> {
        self.handle(&fetch.command, Some(data))
    }

    /// What is to be done by itself: answers to commands that waited for an event, and the end of the connection. To be asked now
    /// and then.
    pub fn poll(&mut self) -> Option<Step> {
        while let Ok(told) = self.told.try_recv() {
            match told {
                Told::Action(Action::Complete { cqe, .. }) => {
                    if let Some(invalidate) = self.kept.remove(&cqe.cid) {
                        return Some(self.answer(&cqe, None, invalidate));
                    }
                }
                Told::Action(Action::Disconnect { why, .. }) => return Some(Step::Disconnect(why)),
                _ => {}
            }
        }
        None
    }

    fn handle(&mut self, sqe: &Sqe, data: Option<&[u8]>) -> Option<Step> {
        let memory = match sqe.sgl().kind() {
            SglKind::Keyed { address, len, key, invalidate } => {
                Some((HostMemory { address, key, len }, invalidate.then_some(key)))
            }
            _ => None,
        };
        let invalidate = memory.and_then(|(_, invalidate)| invalidate);
        Some(match self.frontend.handle(self.key, sqe, data, self.room) {
            Outcome::Complete(cqe) => self.answer(&cqe, None, invalidate),
            Outcome::Data(cqe, bytes) => match memory.filter(|(to, _)| bytes.len() <= to.len as usize) {
                Some((to, _)) => self.answer(&cqe, Some((to, bytes)), invalidate),
                None => self.refuse(sqe, Status::SGL_LENGTH_INVALID),
            },
            Outcome::Fetch => match memory.filter(|_| data.is_none()) {
                Some((from, _)) => Step::Fetch(Fetch { command: sqe.clone(), from }),
                None => self.refuse(sqe, Status::INVALID_FIELD),
            },
            Outcome::Keep => {
                self.kept.insert(sqe.cid, invalidate);
                return None;
            }
            Outcome::Attach { sqsize, cqe, .. } => {
                self.entries = Some(u64::from(sqsize) + 1);
                self.answer(&cqe, None, invalidate)
            }
            // There is no disk behind an admin queue.
            Outcome::Disk { .. } => self.refuse(sqe, Status::INVALID_OPCODE),
        })
    }

    fn refuse(&self, sqe: &Sqe, status: Status) -> Step {
        self.answer(&Cqe::new(sqe.cid, status.with_dnr()), None, None)
    }

    fn answer(&self, cqe: &Cqe, data: Option<(HostMemory, Vec<u8>)>, invalidate: Option<u32>) -> Step {
        let sqhd = self.entries.map_or(0, |entries| (self.consumed % entries) as u16);
        Step::Answer { data, response: Cqe { sqhd, ..cqe.clone() }.to_bytes(), invalidate }
    }
}

impl Drop for AdminQueue {
    fn drop(&mut self) {
        self.frontend.closed(self.key);
    }
}
