//! The parts of a started IO context that the engine's thread works on: where capsules arrive, and what the program is told.

use super::core::{Core, wake};
use super::handle::Handle;
use super::memory::{Allocator, Buffer};
use crate::code::{Code, Res};
use crate::fabric::context::{ContextView, Sizes};
use crate::fabric::process::{self, ContextPlace};
use crate::fabric::receives;
use crate::fabric::route::Route;
use crate::fault;
use crate::task::Task;
use std::collections::VecDeque;
use std::sync::Arc;

/// Capsules that an IO context takes before the engine's thread has seen them.
const RECEIVES: u32 = 256;
/// Payloads of commands that need no more.
pub(super) const SMALL: usize = 4096;
/// What a payload holds when its loan is over, so that who reads it then sees nonsense.
const OVER: u8 = 0xdb;

/// A started IO context.
pub(crate) struct Io {
    pub(super) view: Arc<ContextView>,
    _place: ContextPlace,
    /// Room for capsules.
    pub(super) capsules: Option<Buffer>,
    pub(super) capsule_len: usize,
    pub(super) posted: u64,
    pub(super) received: u64,
    /// Queue pairs by their slot in the fabric.
    pub(super) slots: Vec<Option<Handle>>,
    pub(super) generations: Vec<u32>,
    inbox: VecDeque<IoEvent>,
    pub(super) wake: Option<i32>,
    small: Vec<Buffer>,
    large: Vec<Buffer>,
}

/// Something for the IO thread.
pub(crate) enum IoEvent {
    /// A command for the program.
    Command { qp: Handle, token: Handle },
    /// A task has ended, and with it the command that it answered.
    Done { task: usize, code: Code, over: Option<(Handle, Handle)> },
    /// A connection has broken.
    TransportError { qp: Handle, operation: u32, syndrome: u32 },
}

impl Io {
    /// Sets an IO context up, with memory of the program's.
    pub(super) fn set_up(core: &Core, allocator: Allocator) -> Res<Io> {
        let limits = core.limits;
        let depth = core.caps.max_io_queue_size;
        // Two operations a command, of the host's own and of twice as many that are not yet answered.
        let sends = depth.saturating_mul(4).saturating_add(4).next_power_of_two();
        let sizes =
            Sizes { conns: limits.max_qps, sends, receives: RECEIVES, send_pieces: 1, receive_pieces: 1 };
        let place = ContextPlace::reserve()?;
        let view = Arc::new(ContextView::create(process::local()?.clone(), place.id(), sizes)?);
        // Nobody reads or writes a target's memory; queue pairs come from RDMA CM, which finds the way.
        view.describe(0, 0, Route::NOWHERE);
        let capsule_len = (limits.max_ioccsz as usize).next_multiple_of(64);
        let capsules = allocator.allocate(capsule_len * RECEIVES as usize, false)?;
        let conns = limits.max_qps as usize;
        let mut io = Io {
            view: view.clone(),
            _place: place,
            capsules: Some(capsules),
            capsule_len,
            posted: 0,
            received: 0,
            slots: vec![None; conns],
            generations: vec![0; conns],
            inbox: VecDeque::new(),
            wake: None,
            small: Vec::new(),
            large: Vec::new(),
        };
        for _ in 0..RECEIVES {
            io.post_receive();
        }
        view.set_open(true);
        io._place.publish(&view)?;
        Ok(io)
    }

    pub(super) fn tell(&mut self, event: IoEvent) {
        self.inbox.push_back(event);
        wake(self.wake);
    }

    /// Whether there is something that the program can be told. A completion that is held back holds back what is behind it.
    pub(super) fn has_event(&self) -> bool {
        match self.inbox.front() {
            Some(IoEvent::Done { task, .. }) => !fault::is_held(*task as *const Task),
            other => other.is_some(),
        }
    }

    /// Takes it.
    pub(super) fn next_event(&mut self) -> Option<IoEvent> {
        if self.has_event() { self.inbox.pop_front() } else { None }
    }

    /// Nothing but the ends of tasks is told about a queue pair any more.
    pub(super) fn forget(&mut self, gone: Handle) {
        self.inbox.retain(|event| match event {
            IoEvent::Command { qp, .. } | IoEvent::TransportError { qp, .. } => *qp != gone,
            IoEvent::Done { .. } => true,
        });
    }

    /// Posts the next receive.
    pub(super) fn post_receive(&mut self) {
        let Some(capsules) = &self.capsules else { return };
        let slot = self.posted as usize & (self.view.sizes().receives as usize - 1);
        let piece = capsules.piece(slot * self.capsule_len, self.capsule_len);
        receives::post(&self.view, self.posted, [piece].into_iter());
        self.posted += 1;
    }

    /// A free payload of that many bytes.
    pub(super) fn payload(&mut self, len: usize) -> Option<Buffer> {
        if len <= SMALL { self.small.pop() } else { self.large.pop() }
    }

    /// Takes a payload back; what it held is nobody's any more.
    pub(super) fn put_payload(&mut self, buffer: Buffer) {
        buffer.fill(OVER);
        if buffer.len() <= SMALL { self.small.push(buffer) } else { self.large.push(buffer) }
    }

    /// Everything from the program's allocator.
    pub(super) fn buffers(self) -> Vec<Buffer> {
        self.small.into_iter().chain(self.large).chain(self.capsules).collect()
    }
}
