//! Tasks that read and change the sync event of a peer, which does nothing for it.

use super::{Pending, Queue, SUBMIT, Task, Word, kind};
use crate::caps;
use crate::connection::Connection;
use crate::run::{Outcome, Role, Run, Target};
use doca_common::buffer::{Destination, Load, Payload, Source};
use doca_common::{Error, Failed, Refusal, RemoteEvent, Result};

kind! {
    /// Reads a peer's event: `doca_rdma_task_remote_net_sync_event_get`. Gives [`Word`].
    EventGetTask: 8, "doca_rdma_task_remote_net_sync_event_get", caps::SYNC_EVENT_GET, targeted;
    Output = Word<P>, |buffer, _| Word::of(buffer);

    /// Sets a peer's event: `doca_rdma_task_remote_net_sync_event_notify_set`. Gives the buffer back.
    EventSetTask: 9, "doca_rdma_task_remote_net_sync_event_notify_set", caps::SYNC_EVENT_NOTIFY_SET, targeted;
    Output = P, |buffer, _| buffer;

    /// Adds to a peer's event: `doca_rdma_task_remote_net_sync_event_notify_add`. Gives the value before, as
    /// [`Word`].
    EventAddTask: 10, "doca_rdma_task_remote_net_sync_event_notify_add", caps::SYNC_EVENT_NOTIFY_ADD, targeted;
    Output = Word<P>, |buffer, _| Word::of(buffer);
}

/// Refuses an event that was imported for another device than this context's, and a buffer that does not fit.
fn check(run: &Run, load: &Load, event: &RemoteEvent, role: Role) -> Result<()> {
    if event.device() != run.instance().device() {
        return Err(Error::refused(SUBMIT, Refusal::OtherDevice).with("the remote event"));
    }
    run.check(SUBMIT, load, role)
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
        let check = |run: &Run, load: &Load| check(run, load, event, Role::Word);
        self.submit_on(
            connection,
            destination.into_load(),
            check,
            Load::as_destination,
            |run, token, link, to| {
                run.aim(token, Target::Event(event.clone()));
                run.submit_event_get(token, link, event.as_raw(), to)
            },
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
        let check = |run: &Run, load: &Load| {
            if load.len() != 8 {
                let text = format!("{} bytes of data, 8 are a number", load.len());
                return Err(Error::refused(SUBMIT, Refusal::OutOfRange).with(text));
            }
            check(run, load, event, Role::Source)
        };
        self.submit_on(connection, source.into_load(), check, Load::as_source, |run, token, link, from| {
            run.aim(token, Target::Event(event.clone()));
            run.submit_event_set(token, link, event.as_raw(), from)
        })
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
        let check = |run: &Run, load: &Load| check(run, load, event, Role::Word);
        self.submit_on(connection, result.into_load(), check, Load::as_destination, |run, token, link, to| {
            run.aim(token, Target::Event(event.clone()));
            run.submit_event_add(token, link, event.as_raw(), to, add)
        })
    }
}
