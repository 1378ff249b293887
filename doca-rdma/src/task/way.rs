//! Two ways to use a task: once, or again and again.

use super::{Pending, Queue, SUBMIT, Task, refused_for};
use crate::connection::{Connection, Open};
use crate::prepared::{Held, Prepared};
use crate::raw::prepared::Seat;
use crate::raw::task::Armed;
use crate::run::{Place, Run, Target};
use doca_common::buffer::{NamedBuf, Payload};
use doca_common::{Error, Failed, Refusal, Result};
use std::marker::PhantomData;

/// What becomes of a task whose arguments were given.
pub(crate) trait Way {
    type Handle<T: Task, P: Payload>;

    /// `ready` checks the payload and makes it ready, `set_up` sets up the C task.
    fn take<T: Task, P: Payload>(
        queue: &Queue<T>,
        payload: P,
        ready: impl FnOnce(&mut P) -> Result<NamedBuf>,
        set_up: impl FnOnce(&Place, NamedBuf) -> Result<Armed>,
        target: impl FnOnce() -> Target,
    ) -> std::result::Result<Self::Handle<T, P>, Failed<P>>;
}

/// It is submitted.
pub(crate) enum Once {}

/// It is prepared.
pub(crate) enum Again {}

impl Way for Once {
    type Handle<T: Task, P: Payload> = Pending<T, P>;

    /// The payload goes into the slab when DOCA has taken the task: completions come by progress only.
    #[inline(always)]
    fn take<T: Task, P: Payload>(
        queue: &Queue<T>,
        mut payload: P,
        ready: impl FnOnce(&mut P) -> Result<NamedBuf>,
        set_up: impl FnOnce(&Place, NamedBuf) -> Result<Armed>,
        target: impl FnOnce() -> Target,
    ) -> std::result::Result<Pending<T, P>, Failed<P>> {
        let buffer = match ready(&mut payload) {
            Ok(buffer) => buffer,
            Err(error) => return Err(Failed::new(refused_for::<T>(error), payload)),
        };
        let Some(place) = queue.run.slab().vacant(T::POOL) else {
            return Err(Failed::new(full(), payload));
        };
        if let Err(error) = set_up(place.slot(), buffer).and_then(Armed::submit) {
            return Err(Failed::new(error, payload));
        }
        if T::TARGETED {
            // A vacant place has no target, so dropping it would only cost time.
            std::mem::forget(place.side().target.replace(target()));
        }
        let token = place.launch(payload.into_load());
        Ok(Pending { run: queue.run.clone(), token, types: PhantomData })
    }
}

impl Way for Again {
    type Handle<T: Task, P: Payload> = Prepared<T, P>;

    #[inline(never)]
    fn take<T: Task, P: Payload>(
        queue: &Queue<T>,
        mut payload: P,
        ready: impl FnOnce(&mut P) -> Result<NamedBuf>,
        set_up: impl FnOnce(&Place, NamedBuf) -> Result<Armed>,
        target: impl FnOnce() -> Target,
    ) -> std::result::Result<Prepared<T, P>, Failed<P>> {
        let buffer = match ready(&mut payload) {
            Ok(buffer) => buffer,
            Err(error) => return Err(Failed::new(refused_for::<T>(error), payload)),
        };
        let (Some(core), Some(seat)) = (queue.run.core(), Seat::vacant(&queue.run, T::POOL)) else {
            return Err(Failed::new(full(), payload));
        };
        let held = Held::new(seat, core.clone(), payload);
        match set_up(held.place(), buffer) {
            Ok(armed) => armed.allow(held.flight()),
            Err(error) => return Err(held.refused(error)),
        }
        drop(held.flight().target.replace(target()));
        Ok(Prepared::new(held))
    }
}

#[cold]
fn full() -> Error {
    Error::refused(SUBMIT, Refusal::Full)
}

impl<T: Task> Queue<T> {
    /// Takes a task on a connection.
    #[inline(always)]
    pub(super) fn take_on<W: Way, P: Payload>(
        &self,
        connection: &Connection,
        payload: P,
        ready: impl FnOnce(&Run, &mut P) -> Result<NamedBuf>,
        set_up: impl FnOnce(&Run, &Place, Open, NamedBuf) -> Result<Armed>,
        target: impl FnOnce() -> Target,
    ) -> std::result::Result<W::Handle<T, P>, Failed<P>> {
        let run = &*self.run;
        let Some(open) = connection.open_in(run) else {
            return Err(Failed::new(connection.why_not_open_in(run), payload));
        };
        W::take(
            self,
            payload,
            |payload| ready(run, payload),
            |place, buffer| set_up(run, place, open, buffer),
            target,
        )
    }
}
