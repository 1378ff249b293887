//! Tasks: kinds, the keys and queues of a context, and what was submitted.

pub(crate) mod event;
pub(crate) mod remote;
mod way;

pub use event::{EventAddTask, EventGetTask, EventSetTask};
pub use remote::{CompareSwapTask, FetchAddTask, Fetched, ReadTask, Word, WriteImmTask, WriteTask};

use crate::caps;
use crate::connection::{Connection, ConnectionId};
use crate::prepared::Prepared;
use crate::raw::task::Kind;
use crate::run::{Flight, Place, Role, Run, Target};
use crate::values::Opcode;
use doca_common::access::{self, Requirement};
use doca_common::buffer::{Destination, Load, NamedBuf, Payload, Source};
use doca_common::caps::Capability;
use doca_common::slot::Token;
use doca_common::{Code, Error, Failed, Refusal, Result};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};
use way::{Again, Once, Way};

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
    #[doc(hidden)]
    const CONNECTED: bool;
    #[doc(hidden)]
    const FILLS: bool;

    /// What a success gives.
    type Output<P>;

    /// Notes what a success did to the local buffer.
    #[doc(hidden)]
    fn landed<P: Payload>(payload: &mut P, flight: &Flight);

    /// What a success gives, after that was noted.
    #[doc(hidden)]
    fn output<P: Payload>(payload: P, flight: &Flight) -> Self::Output<P>;

    /// The row of the permission matrix: what both sides must allow.
    fn requirement() -> Option<&'static Requirement> {
        access::requirement(Self::NAME)
    }
}

/// Kinds with their pool, name in C, capability, whether they go out on a connection and name something of the peer, what
/// they do to their local buffer, and what they give.
macro_rules! kind {
    ($($(#[$doc:meta])* $kind:ident: $pool:literal, $name:literal, $capability:expr, $targeted:ident, $effect:ident;
       Output = $output:ty, |$buffer:pat_param, $flight:tt| $make:expr;)*) => {
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
                const CONNECTED: bool = $crate::task::kind!(@connected $targeted);
                const FILLS: bool = $crate::task::kind!(@ $effect);
                type Output<P> = $output;

                #[inline]
                fn landed<P: Payload>(payload: &mut P, flight: &Flight) {
                    $crate::task::$effect(payload, flight);
                }

                #[inline]
                fn output<P: Payload>($buffer: P, $flight: &Flight) -> Self::Output<P> {
                    $make
                }
            }
        )*
    };
    (@connected incoming) => { false };
    (@connected $outgoing:ident) => { true };
    (@ targeted) => { true };
    (@ takes) => { false };
    (@ incoming) => { false };
    (@ message) => { false };
    (@ $fills:ident) => { true };
}
use kind;

/// The data stay as they were.
#[inline]
fn takes<P: Payload>(_payload: &mut P, _flight: &Flight) {}

/// A message is in the buffer.
#[inline]
fn message_came<P: Payload>(payload: &mut P, flight: &Flight) {
    if flight.opcode.get() == Opcode::WRITE_WITH_IMM {
        // The data is elsewhere, and nobody says what DOCA did to the receive's buffer.
        payload.disturbed();
    } else {
        payload.filled(flight.len.get() as usize);
    }
}

/// Bytes of the peer are in the buffer.
#[inline]
fn bytes_came<P: Payload>(payload: &mut P, flight: &Flight) {
    payload.filled(flight.len.get() as usize);
}

/// A number is in the buffer. Nobody says what DOCA did to the length of its data.
#[inline]
fn word_came<P: Payload>(payload: &mut P, _flight: &Flight) {
    payload.filled(8);
    payload.disturbed();
}

kind! {
    /// Sends a message to a peer that posted a receive: `doca_rdma_task_send`. Gives the buffer back.
    SendTask: 0, "doca_rdma_task_send", caps::SEND, message, takes;
    Output = P, |buffer, _| buffer;

    /// Receives the next message of any connection of the context: `doca_rdma_task_receive`. Gives [`Received`].
    ReceiveTask: 1, "doca_rdma_task_receive", caps::RECEIVE, incoming, message_came;
    Output = Received<P>, |buffer, flight| Received { buffer, arrival: Arrival::of(flight) };

    /// Sends a message with a number to a peer that posted a receive: `doca_rdma_task_send_imm`. Gives the buffer
    /// back.
    SendImmTask: 2, "doca_rdma_task_send_imm", caps::SEND_IMM, message, takes;
    Output = P, |buffer, _| buffer;
}

/// What is known of a message that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    len: u32,
    immediate: u32,
    opcode: Opcode,
    connection: ConnectionId,
}

impl Arrival {
    #[inline]
    pub(crate) fn of(flight: &Flight) -> Self {
        Arrival {
            len: flight.len.get(),
            immediate: flight.immediate.get(),
            opcode: flight.opcode.get(),
            connection: ConnectionId::from_bits(flight.from.get()),
        }
    }

    /// Bytes of the message: `doca_rdma_task_receive_get_result_len`.
    #[doc(alias = "doca_rdma_task_receive_get_result_len")]
    pub fn message_len(&self) -> usize {
        self.len as usize
    }

    /// What the peer did: `doca_rdma_task_receive_get_result_opcode`.
    #[doc(alias = "doca_rdma_task_receive_get_result_opcode")]
    pub fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// The immediate value, if there is one, with the bits as the peer gave them: DOCA swaps nothing.
    /// `doca_rdma_task_receive_get_result_immediate_data`
    #[doc(alias = "doca_rdma_task_receive_get_result_immediate_data")]
    pub fn immediate(&self) -> Option<u32> {
        matches!(self.opcode(), Opcode::SEND_WITH_IMM | Opcode::WRITE_WITH_IMM).then_some(self.immediate)
    }

    /// The connection that it came over; compare with [`Connection::id`].
    #[doc(alias = "doca_rdma_task_receive_get_result_rdma_connection")]
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }
}

/// A message that arrived: the buffer, and what [`Arrival`] tells.
pub struct Received<P> {
    /// The buffer; its data is the message.
    pub buffer: P,
    arrival: Arrival,
}

impl<P> Deref for Received<P> {
    type Target = Arrival;

    fn deref(&self) -> &Arrival {
        &self.arrival
    }
}

impl<P: fmt::Debug> fmt::Debug for Received<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").field("buffer", &self.buffer).field("opcode", &self.opcode()).finish()
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
}

pub(crate) const SUBMIT: &str = "doca_task_submit";

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
        self.take::<Once, S>(connection, source)
    }

    /// Prepares to send the data of `source` again and again: `doca_rdma_task_send_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<S: Source>(
        &self,
        connection: &Connection,
        source: S,
    ) -> std::result::Result<Prepared<SendTask, S>, Failed<S>> {
        self.take::<Again, S>(connection, source)
    }

    #[inline(always)]
    fn take<W: Way, S: Source>(
        &self,
        connection: &Connection,
        source: S,
    ) -> std::result::Result<W::Handle<SendTask, S>, Failed<S>> {
        self.take_on::<W, S>(connection, source, ready_to_send, Run::set_up_send, Target::default)
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
        self.take::<Once, S>(connection, source, immediate)
    }

    /// Prepares to send the data of `source` with `immediate` again and again:
    /// `doca_rdma_task_send_imm_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<S: Source>(
        &self,
        connection: &Connection,
        source: S,
        immediate: u32,
    ) -> std::result::Result<Prepared<SendImmTask, S>, Failed<S>> {
        self.take::<Again, S>(connection, source, immediate)
    }

    #[inline(always)]
    fn take<W: Way, S: Source>(
        &self,
        connection: &Connection,
        source: S,
        immediate: u32,
    ) -> std::result::Result<W::Handle<SendImmTask, S>, Failed<S>> {
        let set_up = |run: &Run, place: &Place, open, from| run.set_up_send_imm(place, open, from, immediate);
        self.take_on::<W, S>(connection, source, ready_to_send, set_up, Target::default)
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
        self.take::<Once, D>(destination)
    }

    /// Prepares to receive into `destination` again and again: `doca_rdma_task_receive_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<D: Destination>(
        &self,
        destination: D,
    ) -> std::result::Result<Prepared<ReceiveTask, D>, Failed<D>> {
        self.take::<Again, D>(destination)
    }

    #[inline(always)]
    fn take<W: Way, D: Destination>(
        &self,
        destination: D,
    ) -> std::result::Result<W::Handle<ReceiveTask, D>, Failed<D>> {
        let run = &*self.run;
        W::take(
            self,
            destination,
            |destination| {
                if !run.is_running() {
                    run.require_running(SUBMIT)?;
                }
                ready_to_receive(run, destination)
            },
            |place, to| run.set_up_receive(place, to),
            Target::default,
        )
    }
}

/// Checks where a message is to go, and makes it ready.
#[inline(always)]
pub(crate) fn ready_to_receive<D: Destination>(run: &Run, destination: &mut D) -> Result<NamedBuf> {
    run.check(SUBMIT, destination, Role::Received)?;
    destination.as_destination()
}

/// Checks what is to be sent and makes it ready.
#[inline(always)]
pub(crate) fn ready_to_send<S: Source>(run: &Run, source: &mut S) -> Result<NamedBuf> {
    run.check(SUBMIT, source, Role::Source)?;
    source.as_source()
}

/// How a task failed, with what it had. What may be a refusal of the peer comes with the row of the permission
/// matrix.
#[cold]
fn failure<T: Task, P: Payload>(flight: &Flight, mut payload: Option<P>) -> Failed<Option<P>> {
    if T::FILLS
        && let Some(payload) = &mut payload
    {
        payload.disturbed();
    }
    Failed::new(error_of::<T>(flight), payload)
}

/// A refusal on this side. If it is about permissions, what lacks which, and the row of the matrix.
#[cold]
pub(crate) fn refused_for<T: Task>(error: Error) -> Error {
    match T::requirement() {
        Some(row) if error.refusal() == Some(Refusal::Permissions) => {
            error.with(format!("the local memory lacks LOCAL_READ_WRITE; needs for {row}"))
        }
        _ => error,
    }
}

/// How a task failed. Makes its place as it was before.
#[cold]
pub(crate) fn error_of<T: Task>(flight: &Flight) -> Error {
    let code = flight.code.replace(Code::SUCCESS);
    if flight.flushed.get() {
        return Error::flushed(T::NAME, code);
    }
    let error = Error::doca(T::NAME, code);
    match T::requirement() {
        Some(row) if row.asks_peer() && matches!(code, Code::NOT_PERMITTED | Code::IO_FAILED) => {
            error.with(format!("needs for {row}"))
        }
        _ => error,
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
    #[inline(always)]
    pub fn wait(&mut self) -> Done<T, P> {
        self.run.slab().poll(self.token, self.run.core());
        match self.run.slab().take(self.token) {
            Some((load, flight)) => self.finish(load, flight),
            None => self.wait_by(None),
        }
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too: the task goes on, and can be waited for again.
    pub fn wait_for(&mut self, time: Duration) -> Done<T, P> {
        match self.run.slab().take(self.token) {
            Some((load, flight)) => self.finish(load, flight),
            None => self.wait_by(Instant::now().checked_add(time)),
        }
    }

    #[cold]
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
        match self.run.slab().take(self.token) {
            Some((load, flight)) => self.finish(load, flight),
            None => {
                let gone = self.run.life().is_gone();
                let refusal = if gone { Refusal::EngineGone } else { Refusal::Taken };
                Err(Failed::new(Error::refused(T::NAME, refusal), None))
            }
        }
    }

    /// Whether there is something to take: the task is done, or its context is.
    pub fn is_done(&self) -> bool {
        self.run.slab().is_done(self.token) || self.run.is_over()
    }

    /// What came back, as the program gets it. The slot is free already, and nothing happens to it meanwhile.
    #[inline(always)]
    fn finish(&self, load: Load, flight: &Flight) -> Done<T, P> {
        if T::TARGETED {
            drop(flight.target.take());
        }
        match (P::from_load(load), flight.code.get()) {
            (Some(mut payload), Code::SUCCESS) => {
                T::landed(&mut payload, flight);
                Ok(T::output(payload, flight))
            }
            (payload, _) => Err(failure::<T, P>(flight, payload)),
        }
    }
}

impl<T: Task, P: Payload> Future for Pending<T, P> {
    type Output = Done<T, P>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.is_done() {
            return Poll::Ready(this.wait());
        }
        drop(this.run.slab().watch(this.token, poller.waker().clone()));
        Poll::Pending
    }
}

impl<T: Task, P: Payload> Drop for Pending<T, P> {
    #[inline]
    fn drop(&mut self) {
        if !self.run.slab().is_spent(self.token) {
            detach(&self.run, self.token);
        }
    }
}

/// Nobody waits for a task any more.
#[cold]
fn detach(run: &Run, token: Token) {
    let (back, waker) = run.slab().detach(token);
    if let Some((load, flight)) = back {
        drop((flight.taken(), load));
    }
    drop(waker);
}

impl<T: Task, P: Payload> fmt::Debug for Pending<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({}, {:?})", T::NAME, self.token)
    }
}
