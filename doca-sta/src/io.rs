//! IO contexts: each is progressed by one thread, and has the queue pairs that this thread serves.
//!
//! ```text
//! Sta::io_seed ──> IoSeed ── to another thread, or not ──> start(engine) ──> IoStarting ── running ──> Io
//! ```

use crate::cm::{CmNumber, Request};
use crate::command::{CQE, Capsule, Command, Returned, closed};
use crate::event::{IoEvent, TransportError};
use crate::limits::{Limits, room};
use crate::qp::{Qp, QpId, QpState};
use crate::raw::io::{IoHandle, QpHandle};
use crate::raw::task::{Ended, Token};
use crate::table::{End, Table};
use doca_common::context::{self, Lifecycle, Member, State};
use doca_common::{Code, Device, Error, ProgressEngine, Refusal, Result};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, Waker};
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
    fn context_gone(&self) {
        self.contexts.fetch_sub(1, Ordering::Release);
    }
}

/// An IO context that is not on its thread yet. Dropping it destroys it.
pub struct IoSeed {
    /// There until it is started.
    handle: Option<IoHandle>,
    channel: u16,
    family: Arc<Family>,
}

impl IoSeed {
    pub(crate) fn new(handle: IoHandle, channel: u16, family: Arc<Family>) -> Self {
        IoSeed { handle: Some(handle), channel, family }
    }

    /// Starts it on an engine of this thread, where it stays: `doca_ctx_start`. A seed that does not start is gone.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`], or DOCA's: `BAD_STATE` if the control context does not run any more.
    #[doc(alias = "doca_sta_io_create")]
    #[doc(alias = "doca_ctx_start")]
    pub fn start(mut self, engine: &ProgressEngine) -> Result<IoStarting> {
        const CALL: &str = "doca_ctx_start";
        engine.core().require_outside(CALL)?;
        let handle = self.handle.take().ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let made = handle.enable(self.channel).and_then(|()| handle.context());
        let ctx = match made {
            Ok(ctx) => ctx,
            Err(error) => {
                self.handle = Some(handle);
                return Err(error);
            }
        };
        let instance = Rc::new(IoInstance {
            handle,
            life: Lifecycle::new(ctx),
            channel: self.channel,
            table: RefCell::new(Table::new(self.channel)),
            arrivals: RefCell::default(),
            operations: RefCell::default(),
            late: RefCell::default(),
            events: RefCell::default(),
            recording: Cell::new(false),
            wakers: RefCell::default(),
            dirty: Cell::new(false),
            looked: Cell::new(Instant::now()),
            counts: Cell::default(),
            family: self.family.clone(),
        });
        let owner = IoOwner(instance);
        context::start(&owner.0, engine)?;
        Ok(IoStarting { owner })
    }
}

impl Drop for IoSeed {
    fn drop(&mut self) {
        match self.handle.take().map(|handle| handle.destroy()) {
            None => {}
            Some(Ok(())) => self.family.context_gone(),
            Some(Err(error)) => log::warn!("{error}: an IO context is leaked, and its target with it"),
        }
    }
}

impl fmt::Debug for IoSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoSeed({})", self.channel)
    }
}

/// An IO context that is starting.
#[derive(Debug)]
#[must_use = "dropping it stops the context"]
pub struct IoStarting {
    owner: IoOwner,
}

impl IoStarting {
    /// Progresses until the context runs.
    ///
    /// # Errors
    ///
    /// `INITIALIZATION` if it fell back to idle; the context is gone then.
    pub fn running(self) -> Result<Io> {
        self.running_by(None)
    }

    /// As [`running`](Self::running), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn running_within(self, time: Duration) -> Result<Io> {
        self.running_by(Instant::now().checked_add(time))
    }

    fn running_by(self, deadline: Option<Instant>) -> Result<Io> {
        const CALL: &str = "doca_ctx_start";
        context::wait_for(CALL, &self.owner.0.life, &[State::Running, State::Idle], deadline)?;
        if self.owner.0.life.state() == State::Running {
            return Ok(Io { owner: self.owner });
        }
        Err(Error::doca(CALL, Code::INITIALIZATION)
            .with("the IO context fell back to IDLE while it was starting"))
    }
}

/// The program's claim to an IO context: dropping it ends the context, its queue pairs first, by progress.
#[derive(Debug)]
struct IoOwner(Rc<IoInstance>);

impl Drop for IoOwner {
    fn drop(&mut self) {
        self.0.life.request_destroy(&*self.0);
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

/// A running IO context. Dropping it disconnects its queue pairs, stops and destroys it, by progress of its engine.
#[derive(Debug)]
pub struct Io {
    owner: IoOwner,
}

impl Io {
    fn instance(&self) -> &Rc<IoInstance> {
        &self.owner.0
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.instance().life.state()
    }

    /// Takes a request and accepts it with private data, 196 bytes at most: `doca_sta_io_qp_connect`. DOCA has the
    /// request afterwards, also when it fails; what is refused before DOCA is asked turns the client away.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]; [`Refusal::OtherDevice`] for a request that came to a device which was not added;
    /// [`Refusal::Capability`] above `sta.qps`; [`Refusal::TooLong`]; `CONNECTION_ABORTED` if the client has gone.
    #[doc(alias = "doca_sta_io_qp_connect")]
    pub fn accept(&self, request: Request, data: &[u8]) -> Result<Qp> {
        const CALL: &str = "doca_sta_io_qp_connect";
        let io = self.instance();
        let device = io.ready_for(CALL, Some(&request), data)?;
        let number = request.number();
        let id = request.into_id().ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let channel = id.channel();
        let handle = io.handle.connect(&device, id, data)?;
        Ok(io.adopt(handle, Some(number), Some(channel)))
    }

    /// Makes an empty queue pair for a later request, on a device that was added: `doca_sta_io_qp_alloc`.
    ///
    /// # Errors
    ///
    /// As for [`accept`](Io::accept).
    #[doc(alias = "doca_sta_io_qp_alloc")]
    pub fn spare(&self, device: &Device) -> Result<Spare> {
        const CALL: &str = "doca_sta_io_qp_alloc";
        let io = self.instance();
        io.ready_for(CALL, None, &[])?;
        if !io.family.networks.contains(device) {
            return Err(Error::refused(CALL, Refusal::OtherDevice).with(device.info().to_string()));
        }
        let handle = io.handle.alloc(device)?;
        Ok(Spare { io: io.clone(), handle: Some(handle), device: device.clone() })
    }

    /// The next command that DOCA does not execute, if one came.
    pub fn command(&self) -> Option<Command> {
        self.instance().look_after();
        IoInstance::next_command(self.instance())
    }

    /// Progresses until a command came; `None` if there was none within `time`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`], [`Refusal::InCallback`], [`Refusal::EngineGone`]
    pub fn command_within(&self, time: Duration) -> Result<Option<Command>> {
        const CALL: &str = "doca_pe_progress";
        let io = self.instance();
        io.life.require_running(CALL)?;
        let core = io.life.engine().ok_or_else(|| Error::refused(CALL, Refusal::Stopped))?;
        let mut command = None;
        core.wait(CALL, Instant::now().checked_add(time), || {
            command = self.command();
            command.is_some() || io.life.state() != State::Running
        })?;
        Ok(command)
    }

    /// Resolves to the next command, while something progresses the engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]
    pub async fn next_command(&self) -> Result<Command> {
        poll_fn(|poller| {
            if let Some(command) = self.command() {
                return Poll::Ready(Ok(command));
            }
            if let Err(error) = self.instance().life.require_running("doca_pe_progress") {
                return Poll::Ready(Err(error));
            }
            self.instance().watch(poller.waker());
            Poll::Pending
        })
        .await
    }

    /// Records from now on what happens to queue pairs. There is one record: a new one begins empty.
    pub fn events(&self) -> IoEvents {
        self.instance().events.borrow_mut().clear();
        self.instance().recording.set(true);
        IoEvents { io: self.instance().clone() }
    }

    /// Where a queue pair is, by its name.
    pub fn qp_state(&self, id: QpId) -> QpState {
        self.instance().qp_state(id)
    }

    /// The queue pair of a connection of RDMA CM, for its events.
    pub fn qp_of(&self, number: CmNumber) -> Option<QpId> {
        self.instance().table.borrow().find(number)
    }

    /// Queue pairs that are not destroyed yet.
    pub fn qps(&self) -> usize {
        self.instance().table.borrow().len()
    }

    /// What came so far.
    pub fn counts(&self) -> IoCounts {
        self.instance().counts.get()
    }

    /// Disconnects all queue pairs, stops the context and destroys it, while progressing.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] if that took longer than `time`; it goes on by progress. DOCA's.
    pub fn close(self, time: Duration) -> Result<()> {
        let io = self.owner.0.clone();
        let deadline = Instant::now().checked_add(time);
        drop(self);
        let Some(core) = io.life.engine() else { return Ok(()) };
        if core.wait("doca_ctx_stop", deadline, || io.life.is_gone())? {
            return Ok(());
        }
        let text = format!("{}, {} queue pairs", io.life.left(), io.table.borrow().len());
        Err(Error::refused("doca_ctx_stop", Refusal::TimedOut).with(text))
    }
}

/// A queue pair without a connection. Dropping it destroys it.
#[derive(Debug)]
pub struct Spare {
    io: Rc<IoInstance>,
    handle: Option<QpHandle>,
    device: Device,
}

impl Spare {
    /// Takes a request and accepts it, as [`Io::accept`] does: `doca_sta_io_qp_accept`. A queue pair that fails to
    /// accept is gone, too.
    ///
    /// # Errors
    ///
    /// As for [`Io::accept`].
    #[doc(alias = "doca_sta_io_qp_accept")]
    pub fn accept(mut self, request: Request, data: &[u8]) -> Result<Qp> {
        const CALL: &str = "doca_sta_io_qp_accept";
        let device = self.io.ready_for(CALL, Some(&request), data)?;
        if device != self.device {
            return Err(Error::refused(CALL, Refusal::OtherDevice).with(format!("{request:?}")));
        }
        let handle = self.handle.ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let number = request.number();
        let id = request.into_id().ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let channel = id.channel();
        self.io.handle.accept(handle, &self.device, id, data)?;
        self.handle = None;
        Ok(self.io.adopt(handle, Some(number), Some(channel)))
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take()
            && !self.io.life.is_gone()
            && let Err(error) = self.io.handle.destroy_qp(handle)
        {
            log::warn!("{error}: an empty queue pair stays");
        }
    }
}

/// What happens to the queue pairs of an IO context, in order, from the moment this was made. Unread events are kept,
/// so read them or drop this.
pub struct IoEvents {
    io: Rc<IoInstance>,
}

impl Iterator for IoEvents {
    type Item = IoEvent;

    /// The next event that was not read yet; more may come after progress.
    fn next(&mut self) -> Option<IoEvent> {
        self.io.events.borrow_mut().pop_front()
    }
}

impl Drop for IoEvents {
    fn drop(&mut self) {
        self.io.recording.set(false);
        self.io.events.borrow_mut().clear();
    }
}

impl fmt::Debug for IoEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IoEvents")
    }
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

    fn watch(&self, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Refuses what DOCA would; gives the device that a request came to.
    fn ready_for(&self, call: &'static str, request: Option<&Request>, data: &[u8]) -> Result<Device> {
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

    fn adopt(
        self: &Rc<Self>,
        handle: QpHandle,
        number: Option<CmNumber>,
        channel: Option<Arc<crate::raw::cm::Channel>>,
    ) -> Qp {
        let id = self.table.borrow_mut().insert(handle, number, channel);
        self.family.qps.fetch_add(1, Ordering::Relaxed);
        self.count(|counts| counts.accepted += 1);
        self.record(IoEvent::Qp { qp: id, state: QpState::Created });
        Qp::new(self.clone(), id)
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

    fn next_command(io: &Rc<Self>) -> Option<Command> {
        let (id, capsule) = io.arrivals.borrow_mut().pop_front()?;
        if let Some(entry) = io.table.borrow_mut().get_mut(id) {
            entry.held += 1;
        }
        Some(Command::new(io.clone(), id, capsule))
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
    fn look_after(&self) {
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
