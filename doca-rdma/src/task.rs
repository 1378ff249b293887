//! Tasks: kinds, the keys and queues of a context, and what was submitted.

mod event;
mod remote;

pub use event::{EventAddTask, EventGetTask, EventSetTask};
pub use remote::{CompareSwapTask, FetchAddTask, Fetched, ReadTask, Word, WriteImmTask, WriteTask};

use crate::caps;
use crate::connection::{Connection, ConnectionId};
use crate::raw::connection::Link;
use crate::raw::task::Kind;
use crate::run::{Outcome, Role, Run};
use crate::values::Opcode;
use doca_common::access::{self, Requirement};
use doca_common::buffer::{Destination, Load, Payload, Source};
use doca_common::caps::Capability;
use doca_common::slot::Token;
use doca_common::{Code, Error, Failed, Refusal, Result};
use doca_sys::doca_buf;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};

/// Number of kinds.
pub(crate) const POOLS: usize = 11;

/// A kind of task: [`SendTask`], [`SendImmTask`] and [`ReceiveTask`] for messages; [`ReadTask`], [`WriteTask`],
/// [`WriteImmTask`], [`CompareSwapTask`] and [`FetchAddTask`] for a peer's memory; [`EventGetTask`],
/// [`EventSetTask`] and [`EventAddTask`] for a peer's events.
pub trait Task: Kind + Sized + 'static {
    /// Name of the task in C.
    const NAME: &'static str;
    /// The C function that configures it.
    const SET_CONF: &'static str;
    /// The C function that takes one, which errors of submission name.
    const SUBMIT: &'static str;
    /// The device must have this.
    const CAPABILITY: Capability;
    #[doc(hidden)]
    const POOL: usize;
    #[doc(hidden)]
    const TARGETED: bool;

    /// What a success gives.
    type Output<P>;

    #[doc(hidden)]
    fn output<P: Payload>(payload: P, outcome: &Outcome) -> Self::Output<P>;

    /// The row of the permission matrix: what both sides must allow.
    fn requirement() -> Option<&'static Requirement> {
        access::requirement(Self::NAME)
    }
}

/// Kinds with their pool, name in C, capability, whether they name something of the peer, and what they give.
macro_rules! kind {
    ($($(#[$doc:meta])* $kind:ident: $pool:literal, $name:literal, $capability:expr, $targeted:ident;
       Output = $output:ty, |$buffer:ident, $outcome:tt| $make:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $kind {}

            impl Task for $kind {
                const NAME: &'static str = $name;
                const SET_CONF: &'static str = concat!($name, "_set_conf");
                const SUBMIT: &'static str = concat!($name, "_allocate_init");
                const CAPABILITY: doca_common::caps::Capability = $capability;
                const POOL: usize = $pool;
                const TARGETED: bool = $crate::task::kind!(@ $targeted);
                type Output<P> = $output;

                #[inline]
                fn output<P: Payload>($buffer: P, $outcome: &Outcome) -> Self::Output<P> {
                    $make
                }
            }
        )*
    };
    (@ message) => { false };
    (@ targeted) => { true };
}
use kind;

kind! {
    /// Sends a message to a peer that posted a receive: `doca_rdma_task_send`. Gives the buffer back.
    SendTask: 0, "doca_rdma_task_send", caps::SEND, message;
    Output = P, |buffer, _| buffer;

    /// Receives the next message of any connection of the context: `doca_rdma_task_receive`. Gives [`Received`].
    ReceiveTask: 1, "doca_rdma_task_receive", caps::RECEIVE, message;
    Output = Received<P>, |buffer, outcome| Received { buffer, outcome: *outcome };

    /// Sends a message with a number to a peer that posted a receive: `doca_rdma_task_send_imm`. Gives the buffer
    /// back.
    SendImmTask: 2, "doca_rdma_task_send_imm", caps::SEND_IMM, message;
    Output = P, |buffer, _| buffer;
}

/// A message that arrived.
pub struct Received<P> {
    /// The buffer; its data is the message.
    pub buffer: P,
    outcome: Outcome,
}

impl<P> Received<P> {
    /// Bytes of the message: `doca_rdma_task_receive_get_result_len`.
    #[doc(alias = "doca_rdma_task_receive_get_result_len")]
    pub fn message_len(&self) -> usize {
        self.outcome.len as usize
    }

    /// What the peer did: `doca_rdma_task_receive_get_result_opcode`.
    #[doc(alias = "doca_rdma_task_receive_get_result_opcode")]
    pub fn opcode(&self) -> Opcode {
        self.outcome.opcode
    }

    /// The immediate value, if there is one, with the bits as the peer gave them: DOCA swaps nothing.
    /// `doca_rdma_task_receive_get_result_immediate_data`
    #[doc(alias = "doca_rdma_task_receive_get_result_immediate_data")]
    pub fn immediate(&self) -> Option<u32> {
        matches!(self.opcode(), Opcode::SEND_WITH_IMM | Opcode::WRITE_WITH_IMM)
            .then_some(self.outcome.immediate)
    }

    /// The connection that it came over; compare with [`Connection::id`].
    #[doc(alias = "doca_rdma_task_receive_get_result_rdma_connection")]
    pub fn connection(&self) -> ConnectionId {
        self.outcome.connection
    }
}

impl<P: fmt::Debug> fmt::Debug for Received<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").field("buffer", &self.buffer).field("opcode", &self.opcode()).finish()
    }
}

/// Says that a kind of task was enabled; its context gives the queue for it.
pub struct Key<T> {
    instance: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    pub(crate) fn new(instance: u64) -> Self {
        Key { instance, kind: PhantomData }
    }

    pub(crate) fn is_of(&self, instance: u64) -> bool {
        self.instance == instance
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T: Task> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", T::NAME)
    }
}

/// Takes tasks of one kind. It refuses once the context left RUNNING.
pub struct Queue<T> {
    run: Rc<Run>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Task> Queue<T> {
    pub(crate) fn new(run: Rc<Run>) -> Self {
        Queue { run, kind: PhantomData }
    }

    fn pending<P: Payload>(&self, token: Token) -> Pending<T, P> {
        Pending { run: self.run.clone(), token, types: PhantomData }
    }

    /// Puts a load that was checked into the slab, and submits its task.
    fn launch<P: Payload>(
        &self,
        load: Load,
        buffer: impl FnOnce(&mut Load) -> *mut doca_buf,
        submit: impl FnOnce(Token, *mut doca_buf) -> Result<()>,
    ) -> std::result::Result<Pending<T, P>, Failed<P>> {
        let launched = self.run.slab().borrow_mut().launch(T::POOL, load, buffer);
        let (token, buffer) = match launched {
            Ok(launched) => launched,
            Err(load) => return Err(returned(Error::refused(SUBMIT, Refusal::Full), load)),
        };
        if let Err(error) = submit(token, buffer) {
            self.run.forget_target::<T>(token);
            let load = self.run.slab().borrow_mut().cancel(token).unwrap_or_default();
            return Err(returned(error, load));
        }
        Ok(self.pending(token))
    }

    /// Submits a task on a connection with a load that `check` must let pass.
    #[inline]
    fn submit_on<P: Payload>(
        &self,
        connection: &Connection,
        load: Load,
        check: impl FnOnce(&Run, &Load) -> Result<()>,
        buffer: impl FnOnce(&mut Load) -> *mut doca_buf,
        submit: impl FnOnce(&Run, Token, Link, *mut doca_buf) -> Result<()>,
    ) -> std::result::Result<Pending<T, P>, Failed<P>> {
        let (run, id) = (&self.run, connection.id());
        let checked = run
            .require_running(SUBMIT)
            .and_then(|()| connection.require_of(run))
            .and_then(|()| check(run, &load));
        if let Err(error) = checked {
            return Err(returned(error, load));
        }
        let Some(link) = run.table().borrow_mut().take_off(id) else {
            return Err(returned(Error::refused(SUBMIT, Refusal::NotConnected), load));
        };
        let launched = self.launch(load, buffer, |token, buffer| {
            run.set_on(token, id);
            let submitted = submit(run, token, link, buffer);
            if submitted.is_err() {
                run.set_on(token, ConnectionId::UNKNOWN);
            }
            submitted
        });
        if launched.is_err() {
            run.table().borrow_mut().landed(id);
        }
        launched
    }
}

const SUBMIT: &str = "doca_task_submit";

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Queue { run: self.run.clone(), kind: PhantomData }
    }
}

impl<T: Task> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({})", T::NAME)
    }
}

impl Queue<SendTask> {
    /// Sends the data of `source`: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`] or `FULL` (progress and try again), [`Refusal::Stopped`],
    /// [`Refusal::NotConnected`], [`Refusal::OtherContext`], [`Refusal::OtherDevice`], [`Refusal::TooLong`], or
    /// DOCA's. That the peer did not take it is told when the task is done.
    #[doc(alias = "doca_rdma_task_send_allocate_init")]
    #[doc(alias = "doca_task_submit")]
    pub fn submit<S: Source>(
        &self,
        connection: &Connection,
        source: S,
    ) -> std::result::Result<Pending<SendTask, S>, Failed<S>> {
        let check = |run: &Run, load: &Load| run.check(SUBMIT, load, Role::Source);
        self.submit_on(connection, source.into_load(), check, Load::as_source, Run::submit_send)
    }
}

impl Queue<SendImmTask> {
    /// Sends the data of `source` with `immediate`, whose bits DOCA does not swap: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// As for [`SendTask`].
    #[doc(alias = "doca_rdma_task_send_imm_allocate_init")]
    pub fn submit<S: Source>(
        &self,
        connection: &Connection,
        source: S,
        immediate: u32,
    ) -> std::result::Result<Pending<SendImmTask, S>, Failed<S>> {
        let check = |run: &Run, load: &Load| run.check(SUBMIT, load, Role::Source);
        self.submit_on(connection, source.into_load(), check, Load::as_source, |run, token, link, from| {
            run.submit_send_imm(token, link, from, immediate)
        })
    }
}

impl Queue<ReceiveTask> {
    /// Posts a receive for the next message of any connection; the whole capacity can be filled:
    /// `doca_task_submit`. It may be posted before there is a connection.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`] (progress and try again), [`Refusal::Stopped`],
    /// [`Refusal::OtherDevice`], [`Refusal::Permissions`], or DOCA's.
    #[doc(alias = "doca_rdma_task_receive_allocate_init")]
    #[doc(alias = "doca_task_submit")]
    pub fn submit<D: Destination>(
        &self,
        destination: D,
    ) -> std::result::Result<Pending<ReceiveTask, D>, Failed<D>> {
        let load = destination.into_load();
        let checked =
            self.run.require_running(SUBMIT).and_then(|()| self.run.check(SUBMIT, &load, Role::Received));
        if let Err(error) = checked {
            return Err(returned(error, load));
        }
        self.launch(load, Load::as_destination, |token, buffer| self.run.submit_receive(token, buffer))
    }
}

/// How a task failed. What may be a refusal of the peer comes with the row of the permission matrix.
#[cold]
fn failure<T: Task>(code: Code) -> Error {
    let error = Error::doca(T::NAME, code);
    match T::requirement() {
        Some(row) if row.asks_peer() && matches!(code, Code::NOT_PERMITTED | Code::IO_FAILED) => {
            error.with(format!("needs for {row}"))
        }
        _ => error,
    }
}

/// The error of a submission with what was to be submitted.
fn returned<P: Payload>(error: Error, load: Load) -> Failed<P> {
    match P::from_load(load) {
        Some(payload) => Failed::new(error, payload),
        None => unreachable!("a load turns back into what it was made from"),
    }
}

/// A task in flight. Wait for it, or `.await` it while something progresses the engine. Dropping it detaches it:
/// the task goes on, and its buffer goes back to its memory afterwards.
pub struct Pending<T: Task, P: Payload> {
    run: Rc<Run>,
    token: Token,
    types: PhantomData<fn() -> (T, P)>,
}

/// What a task gives in the end: its output, or the error with the buffer. The buffer is absent only when it was
/// taken before, or is leaked with a context that could not be stopped.
pub type Done<T, P> = std::result::Result<<T as Task>::Output<P>, Failed<Option<P>>>;

impl<T: Task, P: Payload> Pending<T, P> {
    /// Progresses until the task is done.
    ///
    /// # Errors
    ///
    /// With the buffer: how DOCA says the task failed. Without it, the task goes on: [`Refusal::InCallback`]. And
    /// [`Refusal::Taken`] the second time.
    pub fn wait(&mut self) -> Done<T, P> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too: the task goes on, and can be waited for again.
    pub fn wait_for(&mut self, time: Duration) -> Done<T, P> {
        self.wait_by(Instant::now().checked_add(time))
    }

    fn wait_by(&mut self, deadline: Option<Instant>) -> Done<T, P> {
        if !self.is_done()
            && let Some(core) = self.run.core()
        {
            match core.wait(T::NAME, deadline, || self.is_done()) {
                Ok(true) => {}
                Ok(false) => return Err(Failed::new(Error::refused(T::NAME, Refusal::TimedOut), None)),
                Err(error) => return Err(Failed::new(error, None)),
            }
        }
        self.take()
    }

    /// Whether there is something to take: the task is done, or its context is.
    pub fn is_done(&self) -> bool {
        self.run.slab().borrow().is_done(self.token) || self.run.is_over()
    }

    fn take(&mut self) -> Done<T, P> {
        let taken = self.run.slab().borrow_mut().take(self.token);
        let Some((load, outcome)) = taken else {
            let gone = self.run.life().is_gone();
            let refusal = if gone { Refusal::EngineGone } else { Refusal::Taken };
            return Err(Failed::new(Error::refused(T::NAME, refusal), None));
        };
        self.run.forget_target::<T>(self.token);
        self.token = Token::NONE;
        match (P::from_load(load), outcome.code) {
            (Some(payload), Code::SUCCESS) => Ok(T::output(payload, &outcome)),
            (payload, code) => Err(Failed::new(failure::<T>(code), payload)),
        }
    }
}

impl<T: Task, P: Payload> Future for Pending<T, P> {
    type Output = Done<T, P>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.is_done() {
            return Poll::Ready(this.take());
        }
        let waker = poller.waker().clone();
        let old = this.run.slab().borrow_mut().watch(this.token, waker);
        drop(old);
        Poll::Pending
    }
}

impl<T: Task, P: Payload> Drop for Pending<T, P> {
    fn drop(&mut self) {
        if self.token == Token::NONE {
            return;
        }
        let back = self.run.slab().borrow_mut().detach(self.token);
        if back.0.is_some() {
            self.run.forget_target::<T>(self.token);
        }
        drop(back);
    }
}

impl<T: Task, P: Payload> fmt::Debug for Pending<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({}, {:?})", T::NAME, self.token)
    }
}
