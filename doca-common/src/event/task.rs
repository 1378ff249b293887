//! Tasks of an event in asynchronous mode: kinds, the keys and queues of an event, and what was submitted.

use crate::error::{Code, Error, Refusal, Result};
use crate::event::instance::{Flight, Run};
use crate::raw::event_task::Kind;
use crate::slot::Token;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};

/// Number of kinds.
pub(crate) const POOLS: usize = 5;

/// A kind of task: [`GetTask`], [`SetTask`], [`AddTask`], [`WaitEqualTask`], [`WaitNotEqualTask`].
pub trait Task: Kind + Sized + 'static {
    /// Name of the task in C.
    const NAME: &'static str;
    /// The C function that configures it.
    const SET_CONF: &'static str;
    /// The C function that makes one, which errors of submission name.
    const SUBMIT: &'static str;
    /// The C function that says whether a device has it.
    const CAPABILITY: &'static str;
    #[doc(hidden)]
    const POOL: usize;

    /// What a success gives.
    type Output;

    #[doc(hidden)]
    fn output(value: u64) -> Self::Output;
}

macro_rules! tasks {
    ($($(#[$doc:meta])* $kind:ident: $pool:literal, $name:literal, $short:literal;
       Output = $output:ty, |$value:pat_param| $make:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $kind {}

            impl Task for $kind {
                const NAME: &'static str = $name;
                const SET_CONF: &'static str = concat!($name, "_set_conf");
                const SUBMIT: &'static str = concat!($name, "_alloc_init");
                const CAPABILITY: &'static str =
                    concat!("doca_sync_event_cap_task_", $short, "_is_supported");
                const POOL: usize = $pool;
                type Output = $output;

                fn output($value: u64) -> $output {
                    $make
                }
            }
        )*
    };
}

tasks! {
    /// Reads the value: `doca_sync_event_task_get`.
    GetTask: 0, "doca_sync_event_task_get", "get";
    Output = u64, |value| value;

    /// Sets the value: `doca_sync_event_task_notify_set`.
    SetTask: 1, "doca_sync_event_task_notify_set", "notify_set";
    Output = (), |_| ();

    /// Adds to the value, which wraps around, and gives the one before: `doca_sync_event_task_notify_add`.
    AddTask: 2, "doca_sync_event_task_notify_add", "notify_add";
    Output = u64, |value| value;

    /// Waits until the masked value is this one: `doca_sync_event_task_wait_eq`.
    WaitEqualTask: 3, "doca_sync_event_task_wait_eq", "wait_eq";
    Output = (), |_| ();

    /// Waits until the masked value is another one: `doca_sync_event_task_wait_neq`.
    WaitNotEqualTask: 4, "doca_sync_event_task_wait_neq", "wait_neq";
    Output = (), |_| ();
}

/// Takes tasks of one kind. It refuses once the event left RUNNING.
pub struct Queue<T> {
    run: Rc<Run>,
    kind: PhantomData<fn() -> T>,
}

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

impl<T: Task> Queue<T> {
    pub(crate) fn new(run: Rc<Run>) -> Self {
        Queue { run, kind: PhantomData }
    }

    /// Submits a task in a free place. Completions come by progress only.
    fn take(&self, told: T::Told) -> Result<Pending<T>> {
        self.run.require_running(T::SUBMIT)?;
        let place = self.run.slab().vacant(T::POOL);
        let place = place.ok_or_else(|| Error::refused("doca_task_submit", Refusal::Full))?;
        T::submit(self.run.instance().event(), &place, told)?;
        Ok(Pending { token: place.launch(()), run: self.run.clone(), kind: PhantomData })
    }
}

impl Queue<GetTask> {
    /// Reads the value: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Full`] (progress and try again), [`Refusal::Stopped`], [`Refusal::Stale`], or DOCA's.
    #[doc(alias = "doca_sync_event_task_get_alloc_init")]
    #[doc(alias = "doca_task_submit")]
    pub fn submit(&self) -> Result<Pending<GetTask>> {
        self.take(())
    }
}

impl Queue<SetTask> {
    /// Sets the value: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// As for [`GetTask`].
    #[doc(alias = "doca_sync_event_task_notify_set_alloc_init")]
    pub fn submit(&self, value: u64) -> Result<Pending<SetTask>> {
        self.take(value)
    }
}

impl Queue<AddTask> {
    /// Adds to the value: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// As for [`GetTask`].
    #[doc(alias = "doca_sync_event_task_notify_add_alloc_init")]
    pub fn submit(&self, value: u64) -> Result<Pending<AddTask>> {
        self.take(value)
    }
}

impl Queue<WaitEqualTask> {
    /// Waits until the value, masked, is `value`: `doca_task_submit`. `value` itself is not masked. There is no task that
    /// waits for a greater one.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] for a mask that DOCA's tasks do not take: it must be zero, or all ones in 1, 2, 4 or 8
    /// bytes side by side. Otherwise as for [`GetTask`].
    #[doc(alias = "doca_sync_event_task_wait_eq_alloc_init")]
    pub fn submit(&self, value: u64, mask: u64) -> Result<Pending<WaitEqualTask>> {
        require_mask(WaitEqualTask::SUBMIT, mask)?;
        self.take((value, mask))
    }
}

impl Queue<WaitNotEqualTask> {
    /// Waits until the value, masked, is anything but `value`: `doca_task_submit`. `value` itself is not masked.
    ///
    /// # Errors
    ///
    /// As for [`WaitEqualTask`].
    #[doc(alias = "doca_sync_event_task_wait_neq_alloc_init")]
    pub fn submit(&self, value: u64, mask: u64) -> Result<Pending<WaitNotEqualTask>> {
        require_mask(WaitNotEqualTask::SUBMIT, mask)?;
        self.take((value, mask))
    }
}

/// Refuses masks that tasks do not take.
fn require_mask(call: &'static str, mask: u64) -> Result<()> {
    let ones = [1, 2, 4, 8].map(|bytes| (bytes, u64::MAX >> (64 - 8 * bytes)));
    if mask == 0 || ones.iter().any(|(bytes, ones)| (0..=8 - bytes).any(|at| ones << (8 * at) == mask)) {
        return Ok(());
    }
    let text = format!("mask {mask:#x}: zero, or ones in 1, 2, 4 or 8 bytes side by side");
    Err(Error::refused(call, Refusal::OutOfRange).with(text))
}

/// A task in flight. Wait for it, or `.await` it while something progresses the engine. Dropping it detaches it: the task
/// goes on, and a wait has its place in the queue until its condition holds or the event stops.
pub struct Pending<T: Task> {
    run: Rc<Run>,
    token: Token,
    kind: PhantomData<fn() -> T>,
}

impl<T: Task> Pending<T> {
    /// Progresses until the task is done.
    ///
    /// # Errors
    ///
    /// How DOCA says the task failed; [`Refusal::InCallback`], the task goes on then; [`Refusal::Taken`] the second time,
    /// [`Refusal::EngineGone`].
    pub fn wait(&mut self) -> Result<T::Output> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too: the task goes on, and can be waited for again.
    pub fn wait_for(&mut self, time: Duration) -> Result<T::Output> {
        self.wait_by(Instant::now().checked_add(time))
    }

    fn wait_by(&mut self, deadline: Option<Instant>) -> Result<T::Output> {
        if !self.is_done()
            && let Some(core) = self.run.core()
            && !core.wait(T::NAME, deadline, || self.is_done())?
        {
            return Err(Error::refused(T::NAME, Refusal::TimedOut));
        }
        self.take()
    }

    /// Whether there is something to take: the task is done, or its event is.
    pub fn is_done(&self) -> bool {
        self.run.slab().is_done(self.token) || self.run.is_over()
    }

    fn take(&mut self) -> Result<T::Output> {
        let Some(((), flight)) = self.run.slab().take(self.token) else {
            let taken = self.token == Token::NONE || !self.run.is_over();
            let refusal = if taken { Refusal::Taken } else { Refusal::EngineGone };
            return Err(Error::refused(T::NAME, refusal));
        };
        self.token = Token::NONE;
        let Flight { value, code, .. } = flight;
        match code.get() {
            Code::SUCCESS => Ok(T::output(value.get())),
            code => Err(Error::doca(T::NAME, code)),
        }
    }
}

impl<T: Task> Future for Pending<T> {
    type Output = Result<T::Output>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.is_done() {
            return Poll::Ready(this.take());
        }
        drop(this.run.slab().watch(this.token, poller.waker().clone()));
        Poll::Pending
    }
}

impl<T: Task> Drop for Pending<T> {
    fn drop(&mut self) {
        drop(self.run.slab().detach(self.token));
    }
}

impl<T: Task> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({}, {:?})", T::NAME, self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::require_mask;

    #[test]
    fn masks_of_whole_bytes_only() {
        for mask in [0, 0xff, 0xff00, 0xffff << 16, 0xffff_ffff << 24, 0xff << 56, u64::MAX] {
            assert!(require_mask("call", mask).is_ok(), "{mask:#x}");
        }
        for mask in [1, 0xfff, 0xff00ff, 0xff_ffff, u64::MAX >> 8, u64::MAX - 1] {
            assert!(require_mask("call", mask).is_err(), "{mask:#x}");
        }
    }
}
