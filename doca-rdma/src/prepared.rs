//! Prepared tasks: set up once, submitted again and again.
//!
//! An ordinary task costs some hundred instructions: it is checked, takes a place, names its buffers to DOCA, and gives
//! them back. A program that does the same over and over prepares it, as C programs do that keep a task and call
//! `doca_task_submit` once more:
//!
//! ```no_run
//! # use doca_common::Buffer;
//! # use doca_rdma::{Connection, Queue, ReceiveTask, SendTask};
//! # fn run(sends: Queue<SendTask>, receives: Queue<ReceiveTask>, connection: Connection, out: Buffer, room: Buffer)
//! #     -> doca_common::Result<()> {
//! let mut send = sends.prepare(&connection, out)?;        // one of the tasks that were enabled, until it is dropped
//! let mut receive = receives.prepare(room)?;
//! for number in 0..1000u64 {
//!     let answer = receive.submit()?;                     // in flight: its buffer cannot be reached
//!     send.data_mut()[..8].copy_from_slice(&number.to_ne_bytes());
//!     send = send.submit()?.wait()?;                      // came back: prepared again
//!     receive = answer.wait()?;
//!     println!("{:?}", receive.data());                   // the message; `arrival` tells whose it is
//! }
//! let out = send.into_buffer();                           // the task goes back to its queue
//! # drop(out); Ok(()) }
//! ```
//!
//! ```text
//!  queue.prepare(…) ──> Prepared ── submit ──> InFlight ── wait, wait_for, .await ──> Prepared
//!                       data, edit,            (a failure gives back what is left)
//!                       set_…, into_buffer
//! ```
//!
//! What was checked when it was prepared is not checked again. What ends by itself revokes: a context that left RUNNING
//! or is to stop, a connection that is over or was dropped. Submitting is refused then, with the prepared task.
//!
//! Dropping [`InFlight`] detaches it, as it does an ordinary task. Forgetting it leaks the buffer, and nothing else.

use crate::raw::prepared::{Local, Seat};
use crate::run::{Flight, Place, Run, Target};
use crate::task::event::{ready_for_word as ready_for_value, ready_to_set};
use crate::task::remote::{ready_for_word, ready_to_read, ready_to_write};
use crate::task::{
    Arrival, CompareSwapTask, EventAddTask, EventGetTask, EventSetTask, FetchAddTask, ReadTask, ReceiveTask,
    SUBMIT, SendImmTask, SendTask, Task, WriteImmTask, WriteTask, error_of, ready_to_receive, ready_to_send,
    refused_for,
};
use doca_common::buffer::{Destination, Load, NamedBuf, Payload, Source};
use doca_common::engine::Core;
use doca_common::{Buffer, Error, Failed, Refusal, RemoteBuffer, RemoteEvent, Result};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};

/// A task that is set up and not in flight.
#[must_use = "dropping it gives its task back"]
pub struct Prepared<T: Task, P: Payload> {
    /// One pointer: handles are moved with each step.
    held: Box<Held<P>>,
    kind: PhantomData<fn() -> T>,
}

/// A prepared task in flight.
#[must_use = "dropping it detaches the task"]
pub struct InFlight<T: Task, P: Payload> {
    /// One pointer: handles are moved with each step.
    held: Box<Held<P>>,
    kind: PhantomData<fn() -> T>,
}

/// What is left of a prepared task when waiting for it failed.
#[must_use = "dropping it gives the task back, or detaches it"]
pub enum TaskLeft<T: Task, P: Payload> {
    /// The task failed. It can be submitted again.
    Prepared(Prepared<T, P>),
    /// Only waiting failed: the task goes on.
    InFlight(InFlight<T, P>),
}

/// The place of a prepared task, with its local buffer.
pub(crate) struct Held<P: Payload> {
    seat: Seat,
    core: Rc<Core>,
    /// Always there, except while this is dropped.
    payload: Option<P>,
}

impl<P: Payload> Held<P> {
    pub(crate) fn new(seat: Seat, core: Rc<Core>, payload: P) -> Box<Self> {
        Box::new(Held { seat, core, payload: Some(payload) })
    }

    pub(crate) fn place(&self) -> &Place {
        self.seat.place()
    }

    #[inline]
    pub(crate) fn flight(&self) -> &Flight {
        self.seat.flight()
    }

    fn run(&self) -> &Run {
        self.seat.run()
    }

    fn payload(&self) -> &P {
        self.payload.as_ref().expect("only dropping takes it")
    }

    fn payload_mut(&mut self) -> &mut P {
        self.payload.as_mut().expect("only dropping takes it")
    }

    /// Gives the place back, and the buffer.
    fn into_payload(mut self) -> P {
        let payload = self.payload.take().expect("only dropping takes it");
        self.seat.leave(Load::Nothing);
        payload
    }

    /// It could not be set up.
    pub(crate) fn refused(self, error: Error) -> Failed<P> {
        Failed::new(error, self.into_payload())
    }

    /// Changes the buffer while the task may not be submitted, then allows it again if it is `ready`.
    fn edit<T: Task + Local, R>(
        &mut self,
        change: impl FnOnce(&mut P) -> R,
        ready: impl FnOnce(&Run, &mut P, &Target) -> Result<NamedBuf>,
    ) -> Result<R> {
        let Held { seat, payload, .. } = self;
        let (run, flight) = (seat.run(), seat.flight());
        let payload = payload.as_mut().expect("only dropping takes it");
        flight.ready.revoke();
        seat.place().rest();
        let answer = change(payload);
        let target = flight.target.take();
        let buffer = ready(run, payload, &target);
        drop(flight.target.replace(target));
        T::name_local(flight, buffer?);
        if run.is_running() && (!T::CONNECTED || seat.is_connected()) {
            seat.allow();
        }
        Ok(answer)
    }

    /// Progresses until the task came back.
    fn wait(&self, call: &'static str, deadline: Option<Instant>) -> Result<()> {
        let (place, run) = (self.place(), self.run());
        let in_time = self.core.wait(call, deadline, || place.is_done() || run.is_over())?;
        match place.is_done() {
            true => Ok(()),
            false if in_time => Err(Error::refused(call, Refusal::EngineGone)),
            false => Err(Error::refused(call, Refusal::TimedOut)),
        }
    }

    /// Why the task cannot be submitted.
    #[cold]
    fn why_not(&self, connected: bool) -> Error {
        if let Err(error) = self.run().require_running(SUBMIT) {
            return error;
        }
        if connected && !self.seat.is_connected() {
            return Error::refused(SUBMIT, Refusal::NotConnected);
        }
        let text = "its context was to stop, or a change of its buffer was refused: prepare it anew";
        Error::refused(SUBMIT, Refusal::Stale).with(text)
    }
}

impl<P: Payload> Drop for Held<P> {
    #[inline]
    fn drop(&mut self) {
        if let Some(payload) = self.payload.take() {
            self.seat.leave(payload.into_load());
        }
    }
}

impl<T: Task, P: Payload> Prepared<T, P> {
    pub(crate) fn new(held: Box<Held<P>>) -> Self {
        Prepared { held, kind: PhantomData }
    }

    /// Submits the task as it is: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The prepared task comes back with `FULL` (progress and try again), [`Refusal::Stopped`], [`Refusal::NotConnected`],
    /// [`Refusal::Stale`] after a stop that was asked for in vain, or DOCA's.
    #[doc(alias = "doca_task_submit")]
    #[inline(always)]
    pub fn submit(mut self) -> std::result::Result<InFlight<T, P>, Failed<Self>> {
        if T::FILLS
            && let Some(payload) = &mut self.held.payload
            && let Err(error) = payload.empty()
        {
            return Err(Failed::new(error, self));
        }
        match self.held.seat.submit() {
            Some(Ok(())) => Ok(InFlight { held: self.held, kind: PhantomData }),
            Some(Err(error)) => Err(Failed::new(error, self)),
            None => Err(self.refused()),
        }
    }

    #[cold]
    fn refused(self) -> Failed<Self> {
        Failed::new(self.held.why_not(T::CONNECTED), self)
    }

    /// The buffer. What the last task brought is its data.
    pub fn buffer(&self) -> &P {
        self.held.payload()
    }

    /// The buffer; the task goes back to its queue.
    pub fn into_buffer(self) -> P {
        self.held.into_payload()
    }
}

impl<T: Task> Prepared<T, Buffer> {
    /// The data of the buffer.
    pub fn data(&self) -> &[u8] {
        self.held.payload()
    }

    /// The data of the buffer, to be changed. Their length is what it was; [`edit`](Prepared::edit) changes that.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.held.payload_mut()
    }
}

impl<T: Task, P: Payload> InFlight<T, P> {
    /// Whether the task came back, so that [`wait`](Self::wait) does not wait.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.held.place().is_done() || self.held.run().is_over()
    }

    /// Progresses until the task came back.
    ///
    /// # Errors
    ///
    /// With [`TaskLeft::Prepared`]: how DOCA says the task failed. With [`TaskLeft::InFlight`]: [`Refusal::InCallback`],
    /// or [`Refusal::EngineGone`] for a context that could not be stopped.
    #[inline(always)]
    pub fn wait(self) -> std::result::Result<Prepared<T, P>, Failed<TaskLeft<T, P>>> {
        let place = self.held.place();
        if place.has_succeeded() || self.held.core.poll(|| place.has_succeeded()) {
            return Ok(self.landed());
        }
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too, with [`TaskLeft::InFlight`].
    pub fn wait_for(self, time: Duration) -> std::result::Result<Prepared<T, P>, Failed<TaskLeft<T, P>>> {
        self.wait_by(Instant::now().checked_add(time))
    }

    #[cold]
    fn wait_by(
        self,
        deadline: Option<Instant>,
    ) -> std::result::Result<Prepared<T, P>, Failed<TaskLeft<T, P>>> {
        if !self.held.place().is_done()
            && let Err(error) = self.held.wait(T::NAME, deadline)
        {
            return Err(Failed::new(error, TaskLeft::InFlight(self)));
        }
        if self.held.place().has_succeeded() { Ok(self.landed()) } else { Err(self.failed()) }
    }

    /// It came back well.
    #[inline(always)]
    fn landed(mut self) -> Prepared<T, P> {
        let Held { seat, payload, .. } = &mut *self.held;
        if T::FILLS
            && let Some(payload) = payload
        {
            T::landed(payload, seat.flight());
        }
        Prepared::new(self.held)
    }

    fn failed(mut self) -> Failed<TaskLeft<T, P>> {
        if T::FILLS {
            self.held.payload_mut().disturbed();
        }
        let error = error_of::<T>(self.held.flight());
        Failed::new(error, TaskLeft::Prepared(Prepared::new(self.held)))
    }
}

impl<T: Task, P: Payload> IntoFuture for InFlight<T, P> {
    type Output = std::result::Result<Prepared<T, P>, Failed<TaskLeft<T, P>>>;
    type IntoFuture = Completion<T, P>;

    fn into_future(self) -> Completion<T, P> {
        Completion { task: Some(self) }
    }
}

/// Resolves when a prepared task came back, while something progresses the engine.
#[must_use = "dropping it detaches the task"]
pub struct Completion<T: Task, P: Payload> {
    task: Option<InFlight<T, P>>,
}

impl<T: Task, P: Payload> Unpin for Completion<T, P> {}

/// # Panics
///
/// If it is polled after it was ready.
impl<T: Task, P: Payload> Future for Completion<T, P> {
    type Output = std::result::Result<Prepared<T, P>, Failed<TaskLeft<T, P>>>;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let task = self.task.take().expect("polled after it was ready");
        if task.is_done() {
            return Poll::Ready(task.wait());
        }
        drop(task.held.place().watch(poller.waker().clone()));
        self.task = Some(task);
        Poll::Pending
    }
}

impl<P: Payload> Prepared<ReceiveTask, P> {
    /// What is known of the message that the last receive brought; `None` if there was none, or it failed.
    pub fn arrival(&self) -> Option<Arrival> {
        self.held.place().has_succeeded().then(|| Arrival::of(self.held.flight()))
    }
}

impl<P: Payload> Prepared<ReadTask, P> {
    /// Bytes that the last read brought, 0 if there was none: `doca_rdma_task_read_get_result_len`.
    #[doc(alias = "doca_rdma_task_read_get_result_len")]
    pub fn bytes_read(&self) -> usize {
        if self.held.place().has_succeeded() { self.held.flight().len.get() as usize } else { 0 }
    }
}

/// Values that tasks brought.
macro_rules! values {
    ($($kind:ident: $what:literal;)*) => {$(
        impl<P: Payload> Prepared<$kind, P> {
            #[doc = $what]
            /// `None` if there was no task yet, or the last one failed.
            pub fn value(&self) -> Option<u64> {
                if self.held.place().has_succeeded() { self.held.payload().first_word() } else { None }
            }
        }
    )*};
}

values! {
    CompareSwapTask: "What was in the peer's memory before the last task.";
    FetchAddTask: "What was in the peer's memory before the last task.";
    EventGetTask: "The value of the peer's event at the last task.";
    EventAddTask: "The value of the peer's event before the last task.";
}

/// Numbers that tasks are told.
macro_rules! numbers {
    ($($kind:ident: $set:ident($($number:ident: $type:ty),+), $tell:ident, $what:literal;)*) => {$(
        impl<P: Payload> Prepared<$kind, P> {
            #[doc = $what]
            pub fn $set(&mut self, $($number: $type),+) {
                self.held.flight().$tell($($number),+);
            }
        }
    )*};
}

numbers! {
    SendImmTask: set_immediate(immediate: u32), tell_send_immediate,
        "Sets the immediate value: `doca_rdma_task_send_imm_set_immediate_data`.";
    WriteImmTask: set_immediate(immediate: u32), tell_write_immediate,
        "Sets the immediate value: `doca_rdma_task_write_imm_set_immediate_data`.";
    CompareSwapTask: set_operands(compare: u64, swap: u64), tell_compare_swap,
        "Sets what is compared and what it is replaced by: `doca_rdma_task_atomic_cmp_swp_set_cmp_data`, `…_set_swap_data`.";
    FetchAddTask: set_add(add: u64), tell_fetch_add,
        "Sets what is added: `doca_rdma_task_atomic_fetch_add_set_add_data`.";
    EventAddTask: set_add(add: u64), tell_event_add,
        "Sets what is added: `doca_rdma_task_remote_net_sync_event_notify_add_set_add_data`.";
}

/// Changes of the local buffer, with what makes it ready afterwards.
macro_rules! edits {
    ($($kind:ident: $bound:ident, |$run:ident, $payload:ident, $target:pat_param| $ready:expr;)*) => {$(
        impl<P: $bound> Prepared<$kind, P> {
            /// Changes the buffer, or puts another in its place; then checks it, and names it to DOCA, as preparing does.
            ///
            /// # Errors
            ///
            /// As for preparing. The task cannot be submitted then until another change was accepted.
            pub fn edit<R>(&mut self, change: impl FnOnce(&mut P) -> R) -> Result<R> {
                self.held.edit::<$kind, R>(change, |$run, $payload, $target| $ready).map_err(refused_for::<$kind>)
            }
        }
    )*};
}

edits! {
    SendTask: Source, |run, payload, _| ready_to_send(run, payload);
    SendImmTask: Source, |run, payload, _| ready_to_send(run, payload);
    ReceiveTask: Destination, |run, payload, _| ready_to_receive(run, payload);
    ReadTask: Destination, |run, payload, target| ready_to_read(run, payload, memory(target)?);
    WriteTask: Source, |run, payload, target| ready_to_write(run, payload, memory(target)?);
    WriteImmTask: Source, |run, payload, target| ready_to_write(run, payload, memory(target)?);
    CompareSwapTask: Destination, |run, payload, target| ready_for_word(run, payload, memory(target)?);
    FetchAddTask: Destination, |run, payload, target| ready_for_word(run, payload, memory(target)?);
    EventGetTask: Destination, |run, payload, target| ready_for_value(run, payload, event(target)?);
    EventSetTask: Source, |run, payload, target| ready_to_set(run, payload, event(target)?);
    EventAddTask: Destination, |run, payload, target| ready_for_value(run, payload, event(target)?);
}

fn memory(target: &Target) -> Result<&RemoteBuffer> {
    match target {
        Target::Memory(memory) => Ok(memory),
        _ => Err(Error::refused(SUBMIT, Refusal::Stale)),
    }
}

fn event(target: &Target) -> Result<&RemoteEvent> {
    match target {
        Target::Event(event) => Ok(event),
        _ => Err(Error::refused(SUBMIT, Refusal::Stale)),
    }
}

/// How handles show themselves.
macro_rules! shown {
    ($($handle:ident)*) => {$(
        impl<T: Task, P: Payload> fmt::Debug for $handle<T, P> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($handle), "({})"), T::NAME)
            }
        }
    )*};
}

shown!(Prepared InFlight TaskLeft Completion);
