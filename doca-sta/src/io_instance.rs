//! One IO context on its thread: the state behind [`Io`](crate::Io), and what DOCA's callbacks do with it.

use crate::cm::{CmNumber, Request};
use crate::command::{CQE, Capsule, Returned, closed};
use crate::event::{IoEvent, TransportError};
use crate::limits::{Limits, room};
use crate::qp::{QpId, QpState};
use crate::raw::cm::Channel;
use crate::raw::io::{IoHandle, QpHandle};
use crate::raw::task::{Ended, Token};
use crate::table::{End, Table};
use doca_common::context::{Lifecycle, Member, State};
use doca_common::raw::context::Ctx;
use doca_common::{Code, Device, Error, Refusal, Result};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// What the contexts of one target share, on whichever threads they are.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) serial: u64,
    pub(crate) limits: Limits,
    /// Devices that connections can be on. They stay open.
    pub(crate) networks: Vec<Device>,
    /// Queue pairs of all IO contexts.
    pub(crate) qps: AtomicUsize,
    /// IO contexts that are not destroyed yet, seeds among them.
    pub(crate) contexts: AtomicUsize,
    /// Whether the target ends, so that nothing new begins.
    pub(crate) closing: AtomicBool,
}

impl Family {
    /// An IO context was destroyed: its target may be, too, if it was the last.
    pub(crate) fn context_gone(&self) {
        self.contexts.fetch_sub(1, Ordering::Release);
    }
}

/// What an IO context has seen since it started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoCounts {
    /// Queue pairs that were accepted.
    pub accepted: u64,
    /// Commands that DOCA handed over.
    pub commands: u64,
    /// Transport errors.
    pub transport_errors: u64,
}

/// A task of a command that is in flight.
#[derive(Default)]
struct Operation {
    generation: u32,
    /// The command, unless the place is free.
    flying: Option<(QpId, Capsule)>,
    /// Where DOCA reads the completion from until the task is done. It never moves.
    completion: Box<[u8; CQE]>,
}

/// One `doca_sta_io`, on its thread.
pub struct IoInstance {
    handle: IoHandle,
    life: Lifecycle,
    channel: u16,
    table: RefCell<Table>,
    /// Commands that the program did not take yet.
    arrivals: RefCell<VecDeque<(QpId, Capsule)>>,
    operations: RefCell<Vec<Operation>>,
    /// Answers that found no task, to be tried again.
    late: RefCell<Vec<(QpId, Capsule, [u8; CQE])>>,
    events: RefCell<VecDeque<IoEvent>>,
    recording: Cell<bool>,
    wakers: RefCell<Vec<Waker>>,
    /// Whether a queue pair is to be ended, or answers are late.
    dirty: Cell<bool>,
    /// When silent queue pairs were looked for.
    looked: Cell<Instant>,
    counts: Cell<IoCounts>,
    family: Arc<Family>,
}

/// How often silent queue pairs are looked for.
const LOOK: Duration = Duration::from_millis(200);

impl IoInstance {
    pub(crate) fn new(handle: IoHandle, ctx: Ctx, channel: u16, family: Arc<Family>) -> Self {
        IoInstance {
            handle,
            life: Lifecycle::new(ctx),
            channel,
            table: RefCell::new(Table::new(channel)),
            arrivals: RefCell::default(),
            operations: RefCell::default(),
            late: RefCell::default(),
            events: RefCell::default(),
            recording: Cell::new(false),
            wakers: RefCell::default(),
            dirty: Cell::new(false),
            looked: Cell::new(Instant::now()),
            counts: Cell::default(),
            family,
        }
    }

    pub(crate) fn handle(&self) -> &IoHandle {
        &self.handle
    }

    pub(crate) fn channel(&self) -> u16 {
        self.channel
    }

    pub(crate) fn family(&self) -> &Family {
        &self.family
    }

    pub(crate) fn place_of(&self, handle: QpHandle) -> Option<u32> {
        self.table.borrow().place_of(handle)
    }

    /// The queue pair of a connection of RDMA CM.
    pub(crate) fn qp_of(&self, number: CmNumber) -> Option<QpId> {
        self.table.borrow().find(number)
    }

    /// Queue pairs that are not destroyed yet.
    pub(crate) fn qps(&self) -> usize {
        self.table.borrow().len()
    }

    /// What came so far.
    pub(crate) fn counts(&self) -> IoCounts {
        self.counts.get()
    }

    /// Something is to be done by progress.
    fn soil(&self) {
        self.dirty.set(true);
        if let Some(core) = self.life.engine() {
            core.mark();
        }
    }

    fn count(&self, change: impl FnOnce(&mut IoCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn record(&self, event: IoEvent) {
        if self.recording.get() {
            self.events.borrow_mut().push_back(event);
        }
    }

    /// Begins a new record of events, or ends the one that there is.
    pub(crate) fn set_recording(&self, recording: bool) {
        self.recording.set(recording);
        self.events.borrow_mut().clear();
    }

    pub(crate) fn next_event(&self) -> Option<IoEvent> {
        self.events.borrow_mut().pop_front()
    }

    pub(crate) fn watch(&self, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Refuses what DOCA would; gives the device that a request came to.
    pub(crate) fn ready_for(
        &self,
        call: &'static str,
        request: Option<&Request>,
        data: &[u8],
    ) -> Result<Device> {
        /// What RDMA CM carries with an answer.
        const MOST: usize = 196;
        self.life.require_running(call)?;
        if data.len() > MOST {
            let text = format!("{} bytes of private data, {MOST} at most", data.len());
            return Err(Error::refused(call, Refusal::TooLong).with(text));
        }
        room(call, self.family.qps.load(Ordering::Relaxed), self.family.limits.qps, "sta.qps")?;
        let networks = &self.family.networks;
        let found = match request.and_then(Request::device) {
            Some(name) => networks.iter().find(|device| device.info().is_called(name)),
            None => networks.first(),
        };
        found.cloned().ok_or_else(|| {
            let name = request.and_then(Request::device).unwrap_or("a device without name");
            Error::refused(call, Refusal::OtherDevice).with(format!("{name} was not added to the target"))
        })
    }

    /// Takes a queue pair that was accepted.
    pub(crate) fn adopt(&self, handle: QpHandle, number: CmNumber, channel: Arc<Channel>) -> QpId {
        let id = self.table.borrow_mut().insert(handle, Some(number), Some(channel));
        self.family.qps.fetch_add(1, Ordering::Relaxed);
        self.count(|counts| counts.accepted += 1);
        self.record(IoEvent::Qp { qp: id, state: QpState::Created });
        id
    }

    pub(crate) fn qp_state(&self, id: QpId) -> QpState {
        self.table.borrow().get(id).map_or(QpState::Disconnected, |entry| entry.state)
    }

    /// Whether commands of a queue pair can be answered.
    pub(crate) fn is_open(&self, id: QpId) -> bool {
        !self.life.is_gone() && self.table.borrow().get(id).is_some_and(|entry| entry.end == End::No)
    }

    pub(crate) fn open_handle(&self, call: &'static str, id: QpId) -> Result<QpHandle> {
        self.life.require_running(call)?;
        let table = self.table.borrow();
        let entry = table.get(id).filter(|entry| entry.end == End::No);
        entry.map(|entry| entry.handle).ok_or_else(|| closed(call).with(id.to_string()))
    }

    pub(crate) fn qp_established(&self, id: QpId) -> Result<()> {
        let handle = self.open_handle("doca_sta_io_qp_connect_established", id)?;
        self.handle.established(handle)?;
        self.set_state(id, QpState::Connected);
        Ok(())
    }

    fn set_state(&self, id: QpId, state: QpState) {
        let changed = match self.table.borrow_mut().get_mut(id) {
            Some(entry) => std::mem::replace(&mut entry.state, state) != state,
            None => false,
        };
        if changed {
            self.record(IoEvent::Qp { qp: id, state });
        }
    }

    /// Wants a queue pair to end. Commands of it that nobody took are nobody's any more.
    pub(crate) fn end_qp(&self, id: QpId) {
        if let Some(entry) = self.table.borrow_mut().get_mut(id)
            && entry.end == End::No
        {
            entry.end = End::Wanted;
        } else {
            return;
        }
        self.arrivals.borrow_mut().retain(|(qp, _)| *qp != id);
        self.late.borrow_mut().retain(|(qp, ..)| *qp != id);
        self.soil();
    }

    /// A command came. Runs in DOCA's callback.
    pub(crate) fn arrived(&self, index: u32, capsule: Capsule) {
        self.count(|counts| counts.commands += 1);
        let mut table = self.table.borrow_mut();
        let Some(id) = table.id_at(index) else { return };
        let Some(entry) = table.get_mut(id).filter(|entry| entry.end == End::No) else { return };
        entry.heard = true;
        self.arrivals.borrow_mut().push_back((id, capsule));
    }

    /// The next command, which is in the program's hands from now on.
    pub(crate) fn next_command(&self) -> Option<(QpId, Capsule)> {
        let (id, capsule) = self.arrivals.borrow_mut().pop_front()?;
        if let Some(entry) = self.table.borrow_mut().get_mut(id) {
            entry.held += 1;
        }
        Some((id, capsule))
    }

    /// A command is not in the program's hands any more.
    pub(crate) fn let_go(&self, id: QpId) {
        if let Some(entry) = self.table.borrow_mut().get_mut(id) {
            entry.held = entry.held.saturating_sub(1);
            if entry.end == End::No {
                return;
            }
        }
        self.soil();
    }

    /// A free place for a task, and its token.
    fn place(&self) -> Token {
        let mut operations = self.operations.borrow_mut();
        let index = operations.iter().position(|operation| operation.flying.is_none()).unwrap_or_else(|| {
            operations.push(Operation::default());
            operations.len() - 1
        });
        Token { channel: self.channel, index: index as u32, generation: operations[index].generation }
    }

    /// Keeps what a task is about until it is done.
    fn keep(&self, token: Token, qp: QpId, capsule: Capsule) {
        self.operations.borrow_mut()[token.index as usize].flying = Some((qp, capsule));
    }

    pub(crate) fn fetch(&self, qp: QpId, capsule: Capsule) -> Returned {
        let handle = match self.open_handle("doca_sta_io_task_non_offload_rdma_read_alloc_init", qp) {
            Ok(handle) => handle,
            Err(error) => return Err((error, capsule)),
        };
        let token = self.place();
        match self.handle.fetch(handle, capsule.loan, token) {
            Ok(()) => {
                self.keep(token, qp, capsule);
                Ok(())
            }
            Err(error) => Err((error, capsule)),
        }
    }

    pub(crate) fn respond(
        &self,
        qp: QpId,
        capsule: Capsule,
        completion: [u8; CQE],
        with_data: bool,
    ) -> Returned {
        let handle = match self.open_handle("doca_sta_io_task_non_offload_rdma_send_alloc_init", qp) {
            Ok(handle) => handle,
            Err(error) => return Err((error, capsule)),
        };
        let token = self.place();
        match self.send(handle, &capsule, completion, with_data, token) {
            Ok(()) => {
                self.keep(token, qp, capsule);
                if let Some(entry) = self.table.borrow_mut().get_mut(qp) {
                    entry.answered = true;
                }
                Ok(())
            }
            Err(error) => Err((error, capsule)),
        }
    }

    fn send(
        &self,
        qp: QpHandle,
        capsule: &Capsule,
        completion: [u8; CQE],
        with_data: bool,
        token: Token,
    ) -> Result<()> {
        let mut operations = self.operations.borrow_mut();
        let place = &mut operations[token.index as usize].completion;
        **place = completion;
        self.handle.answer(qp, capsule.loan, place, with_data, token)
    }

    /// Answers a command that the program dropped; by and by if DOCA has no task left.
    pub(crate) fn abandon(&self, qp: QpId, capsule: Capsule, completion: [u8; CQE]) {
        if !self.is_open(qp) {
            return;
        }
        if let Err((error, capsule)) = self.respond(qp, capsule, completion, false) {
            if error.code() == Some(Code::NO_MEMORY) {
                self.late.borrow_mut().push((qp, capsule, completion));
                self.soil();
            } else {
                log::warn!("{error}: {qp} is disconnected, since a command of it cannot be answered");
                self.end_qp(qp);
            }
        }
    }

    /// A task is done. Runs in DOCA's callback.
    pub(crate) fn task_ended(&self, what: Ended, token: Token, code: Code) {
        if what == Ended::Disconnect {
            self.disconnected(token, code);
            return;
        }
        let flown = {
            let mut operations = self.operations.borrow_mut();
            let Some(operation) = operations.get_mut(token.index as usize) else { return };
            if !token.is_generation(operation.generation) {
                return;
            }
            operation.generation = operation.generation.wrapping_add(1);
            operation.flying.take()
        };
        let Some((qp, mut capsule)) = flown else { return };
        match (what, code) {
            (Ended::Fetch, Code::SUCCESS) if self.is_open(qp) => {
                capsule.fetched();
                self.arrivals.borrow_mut().push_front((qp, capsule));
            }
            (_, Code::SUCCESS) => {}
            // What is flushed while the queue pair ends is no news.
            (_, code) if self.is_open(qp) => {
                self.failed(TransportError {
                    qp,
                    operation: 0,
                    syndrome: 0,
                    vendor_syndrome: 0,
                    code: Some(code),
                });
            }
            _ => {}
        }
    }

    /// The transport failed. Runs in DOCA's callback.
    pub(crate) fn transport_failed(&self, index: u32, operation: u32, syndrome: u32, vendor_syndrome: u32) {
        let id = self.table.borrow().id_at(index);
        if let Some(qp) = id {
            self.failed(TransportError { qp, operation, syndrome, vendor_syndrome, code: None });
        }
    }

    fn failed(&self, error: TransportError) {
        log::debug!("{error}");
        self.count(|counts| counts.transport_errors += 1);
        self.record(IoEvent::Transport(error));
        self.end_qp(error.qp);
    }

    fn disconnected(&self, token: Token, code: Code) {
        let id = self.table.borrow().id_at(token.index);
        let Some(id) = id.filter(|id| token.is_generation(id.generation)) else { return };
        if let Some(entry) = self.table.borrow_mut().get_mut(id) {
            entry.end = if code == Code::SUCCESS { End::Done } else { End::Stuck };
        }
        if code != Code::SUCCESS {
            log::warn!("doca_sta_io_task_disconnect: {code}: {id} stays, and its IO context with it");
        }
        self.set_state(id, QpState::Disconnected);
        self.dirty.set(true);
    }

    /// Takes the next steps of queue pairs that end; outside callbacks.
    fn advance(&self) {
        if !self.dirty.replace(false) || self.life.is_gone() {
            return;
        }
        let late = self.late.take();
        for (qp, capsule, completion) in late {
            self.abandon(qp, capsule, completion);
        }
        let ids = self.table.borrow().ids();
        for id in ids {
            let (handle, end, held) = match self.table.borrow().get(id) {
                Some(entry) => (entry.handle, entry.end, entry.held),
                None => continue,
            };
            match end {
                End::Wanted => self.begin_end(id, handle),
                End::Done if held == 0 => self.destroy_qp(id, handle),
                _ => {}
            }
        }
    }

    fn begin_end(&self, id: QpId, handle: QpHandle) {
        let token = Token { channel: self.channel, index: id.index, generation: id.generation };
        let end = match self.handle.disconnect(handle, token) {
            Ok(()) => End::Under,
            Err(error) if matches!(error.code(), Some(Code::NO_MEMORY | Code::AGAIN)) => {
                self.soil();
                End::Wanted
            }
            Err(error) => {
                log::warn!("{error}: {id} stays, and its IO context with it");
                End::Stuck
            }
        };
        if let Some(entry) = self.table.borrow_mut().get_mut(id) {
            entry.end = end;
        }
        if end == End::Stuck {
            self.set_state(id, QpState::Disconnected);
        }
    }

    fn destroy_qp(&self, id: QpId, handle: QpHandle) {
        match self.handle.destroy_qp(handle) {
            Ok(()) => {
                let entry = self.table.borrow_mut().remove(id.index);
                drop(entry);
                self.family.qps.fetch_sub(1, Ordering::Relaxed);
            }
            Err(error) => {
                log::warn!("{error}: {id} stays, and its IO context with it");
                if let Some(entry) = self.table.borrow_mut().get_mut(id) {
                    entry.end = End::Stuck;
                }
            }
        }
    }

    /// Logs queue pairs that are silent.
    pub(crate) fn look_after(&self) {
        let now = Instant::now();
        if now.saturating_duration_since(self.looked.get()) < LOOK {
            return;
        }
        self.looked.set(now);
        for (id, silence) in self.table.borrow_mut().silent(now) {
            log::warn!("{id} is of no use yet: {}", silence.finding());
        }
    }
}

impl Member for IoInstance {
    fn life(&self) -> &Lifecycle {
        &self.life
    }

    fn settle(&self) {
        self.advance();
        if !self.arrivals.borrow().is_empty() || self.life.state() != State::Running {
            for waker in self.wakers.take() {
                waker.wake();
            }
        }
    }

    fn free_idle_tasks(&self) {}

    fn prepare_stop(&self) -> bool {
        let ids = self.table.borrow().ids();
        for id in ids {
            self.end_qp(id);
        }
        self.advance();
        self.table.borrow().len() == 0
    }

    fn ended(&self) {
        // DOCA took the queue pairs with the context, if it stopped by itself.
        let ids = self.table.borrow().ids();
        for id in ids {
            self.set_state(id, QpState::Disconnected);
            if self.table.borrow_mut().remove(id.index).is_some() {
                self.family.qps.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.arrivals.borrow_mut().clear();
    }

    fn destroy(&self) -> Result<()> {
        self.handle.destroy()?;
        self.family.context_gone();
        Ok(())
    }
}

impl fmt::Debug for IoInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "IoInstance({}, {:?}, {} queue pairs)",
            self.channel,
            self.life.state(),
            self.table.borrow().len()
        )
    }
}
