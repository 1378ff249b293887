//! Tasks that read and change the sync event of a peer, which does nothing for it.

use super::way::{Again, Once, Way};
use super::{Pending, Queue, SUBMIT, Task, Word, kind, ready_to_send};
use crate::caps;
use crate::connection::Connection;
use crate::prepared::Prepared;
use crate::run::{Flight, Role, Run, Target};
use doca_common::buffer::{Destination, NamedBuf, Payload, Source};
use doca_common::{Error, Failed, Refusal, RemoteEvent, Result};

kind! {
    /// Reads a peer's event: `doca_rdma_task_remote_net_sync_event_get`. Gives [`Word`].
    EventGetTask: 8, "doca_rdma_task_remote_net_sync_event_get", caps::SYNC_EVENT_GET, targeted, word_came;
    Output = Word<P>, |buffer, _| Word::of(buffer);

    /// Sets a peer's event: `doca_rdma_task_remote_net_sync_event_notify_set`. Gives the buffer back.
    EventSetTask: 9, "doca_rdma_task_remote_net_sync_event_notify_set", caps::SYNC_EVENT_NOTIFY_SET, targeted, takes;
    Output = P, |buffer, _| buffer;

    /// Adds to a peer's event: `doca_rdma_task_remote_net_sync_event_notify_add`. Gives the value before, as
    /// [`Word`].
    EventAddTask: 10, "doca_rdma_task_remote_net_sync_event_notify_add", caps::SYNC_EVENT_NOTIFY_ADD, targeted, word_came;
    Output = Word<P>, |buffer, _| Word::of(buffer);
}

/// Refuses an event that was imported for another device than this context's.
#[inline]
fn check_device(run: &Run, event: &RemoteEvent) -> Result<()> {
    if event.device() == run.instance().device() { Ok(()) } else { Err(other_device()) }
}

#[cold]
fn other_device() -> Error {
    Error::refused(SUBMIT, Refusal::OtherDevice).with("the remote event")
}

#[cold]
fn no_number(len: usize) -> Error {
    Error::refused(SUBMIT, Refusal::OutOfRange).with(format!("{len} bytes of data, 8 are a number"))
}

/// Checks the number that an event is to be set to, and makes it ready.
#[inline(always)]
pub(crate) fn ready_to_set<S: Source>(run: &Run, source: &mut S, event: &RemoteEvent) -> Result<NamedBuf> {
    if source.data_len() != 8 {
        return Err(no_number(source.data_len()));
    }
    check_device(run, event)?;
    ready_to_send(run, source)
}

/// Checks where a value goes, and makes it ready.
#[inline(always)]
pub(crate) fn ready_for_word<D: Destination>(
    run: &Run,
    result: &mut D,
    event: &RemoteEvent,
) -> Result<NamedBuf> {
    check_device(run, event)?;
    run.check(SUBMIT, result, Role::Word)?;
    result.as_destination()
}

impl Queue<EventGetTask> {
    /// Brings the value of `event` into `destination`, which has room for 8 bytes: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`] or `FULL` (progress and try again), [`Refusal::TooLong`] if it
    /// has not enough room, or with what submitting a send is refused for.
    #[doc(alias = "doca_rdma_task_remote_net_sync_event_get_allocate_init")]
    pub fn submit<D: Destination>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        destination: D,
    ) -> std::result::Result<Pending<EventGetTask, D>, Failed<D>> {
        self.take::<Once, D>(connection, event, destination)
    }

    /// Prepares to read `event` again and again: `doca_rdma_task_remote_net_sync_event_get_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<D: Destination>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        destination: D,
    ) -> std::result::Result<Prepared<EventGetTask, D>, Failed<D>> {
        self.take::<Again, D>(connection, event, destination)
    }

    #[inline(always)]
    fn take<W: Way, D: Destination>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        destination: D,
    ) -> std::result::Result<W::Handle<EventGetTask, D>, Failed<D>> {
        self.take_on::<W, D>(
            connection,
            destination,
            |run, destination| ready_for_word(run, destination, event),
            |run, place, open, to| run.set_up_event_get(place, open, event.named(), to),
            || Target::Event(event.clone()),
        )
    }
}

impl Queue<EventSetTask> {
    /// Sets `event` to the number in `source`, whose data are 8 bytes in the order of this machine:
    /// `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`] or `FULL` (progress and try again), [`Refusal::OutOfRange`]
    /// unless it has 8 bytes of data, or with what submitting a send is refused for.
    #[doc(alias = "doca_rdma_task_remote_net_sync_event_notify_set_allocate_init")]
    pub fn submit<S: Source>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        source: S,
    ) -> std::result::Result<Pending<EventSetTask, S>, Failed<S>> {
        self.take::<Once, S>(connection, event, source)
    }

    /// Prepares to set `event` again and again, to the number that is in the buffer then:
    /// `doca_rdma_task_remote_net_sync_event_notify_set_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<S: Source>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        source: S,
    ) -> std::result::Result<Prepared<EventSetTask, S>, Failed<S>> {
        self.take::<Again, S>(connection, event, source)
    }

    #[inline(always)]
    fn take<W: Way, S: Source>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        source: S,
    ) -> std::result::Result<W::Handle<EventSetTask, S>, Failed<S>> {
        self.take_on::<W, S>(
            connection,
            source,
            |run, source| ready_to_set(run, source, event),
            |run, place, open, from| run.set_up_event_set(place, open, event.named(), from),
            || Target::Event(event.clone()),
        )
    }
}

impl Queue<EventAddTask> {
    /// Adds to `event`, which wraps around, and brings what it was into `result`, which has room for 8 bytes:
    /// `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// As for [`EventGetTask`].
    #[doc(alias = "doca_rdma_task_remote_net_sync_event_notify_add_allocate_init")]
    pub fn submit<D: Destination>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        result: D,
        add: u64,
    ) -> std::result::Result<Pending<EventAddTask, D>, Failed<D>> {
        self.take::<Once, D>(connection, event, result, add)
    }

    /// Prepares to add to `event` again and again: `doca_rdma_task_remote_net_sync_event_notify_add_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<D: Destination>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        result: D,
        add: u64,
    ) -> std::result::Result<Prepared<EventAddTask, D>, Failed<D>> {
        self.take::<Again, D>(connection, event, result, add)
    }

    #[inline(always)]
    fn take<W: Way, D: Destination>(
        &self,
        connection: &Connection,
        event: &RemoteEvent,
        result: D,
        add: u64,
    ) -> std::result::Result<W::Handle<EventAddTask, D>, Failed<D>> {
        self.take_on::<W, D>(
            connection,
            result,
            |run, result| ready_for_word(run, result, event),
            |run, place, open, to| run.set_up_event_add(place, open, event.named(), to, add),
            || Target::Event(event.clone()),
        )
    }
}
