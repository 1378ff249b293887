//! A transfer that was submitted.

use crate::fast::{FastPath, Run};
use doca_common::buffer::Payload;
use doca_common::slot::Token;
use doca_common::{Code, Error, Failed, Refusal};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};

/// A transfer in flight. Wait for it, or `.await` it while something progresses the engine. Dropping it detaches it: the
/// transfer goes on, and its buffer goes back to its memory afterwards.
pub struct Pending<C: FastPath, P: Payload> {
    run: Rc<Run>,
    token: Token,
    types: PhantomData<fn() -> (C, P)>,
}

/// What a transfer gives in the end: its output, or the error with the buffer. The buffer is absent only when it was
/// taken before, or is leaked with a context that could not be stopped.
pub type Done<C, P> = Result<<C as FastPath>::Output<P>, Failed<Option<P>>>;

impl<C: FastPath, P: Payload> Pending<C, P> {
    pub(crate) fn new(run: Rc<Run>, token: Token) -> Self {
        Pending { run, token, types: PhantomData }
    }

    /// Progresses until the transfer is done.
    ///
    /// # Errors
    ///
    /// With the buffer: how DOCA says the transfer failed, `IO_FAILED` mostly if the context was stopped. Without it, the
    /// transfer goes on: [`Refusal::InCallback`]. And [`Refusal::Taken`] the second time.
    pub fn wait(&mut self) -> Done<C, P> {
        self.wait_by(None)
    }

    /// As [`wait`](Self::wait), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too: the transfer goes on, and can be waited for again.
    pub fn wait_for(&mut self, time: Duration) -> Done<C, P> {
        self.wait_by(Instant::now().checked_add(time))
    }

    fn wait_by(&mut self, deadline: Option<Instant>) -> Done<C, P> {
        let name = self.run.task_name();
        if !self.is_done()
            && let Some(core) = self.run.core()
        {
            match core.wait(name, deadline, || self.is_done()) {
                Ok(true) => {}
                Ok(false) => return Err(Failed::new(Error::refused(name, Refusal::TimedOut), None)),
                Err(error) => return Err(Failed::new(error, None)),
            }
        }
        self.take()
    }

    /// Whether there is something to take: the transfer is done, or its context is.
    pub fn is_done(&self) -> bool {
        self.run.slab().is_done(self.token) || self.run.is_over()
    }

    fn take(&mut self) -> Done<C, P> {
        let name = self.run.task_name();
        let Some((load, flight)) = self.run.slab().take(self.token) else {
            return Err(Failed::new(Error::refused(name, Refusal::Taken), None));
        };
        self.token = Token::NONE;
        match (P::from_load(load), flight.code.get()) {
            (Some(payload), Code::SUCCESS) => Ok(C::output(payload, flight)),
            (mut payload, code) => {
                if let Some(payload) = &mut payload {
                    payload.disturbed();
                }
                Err(Failed::new(Error::doca(name, code), payload))
            }
        }
    }
}

impl<C: FastPath, P: Payload> Future for Pending<C, P> {
    type Output = Done<C, P>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.is_done() {
            return Poll::Ready(this.take());
        }
        drop(this.run.slab().watch(this.token, poller.waker().clone()));
        Poll::Pending
    }
}

impl<C: FastPath, P: Payload> Drop for Pending<C, P> {
    fn drop(&mut self) {
        if self.token != Token::NONE {
            drop(self.run.slab().detach(self.token));
        }
    }
}

impl<C: FastPath, P: Payload> fmt::Debug for Pending<C, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({}, {:?})", self.run.task_name(), self.token)
    }
}
