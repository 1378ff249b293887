//! Tasks that read, write and change the memory of a peer, which does nothing for it.

use super::{Pending, Queue, SUBMIT, Task, kind};
use crate::caps;
use crate::connection::Connection;
use crate::run::{Outcome, Role, Run, Target};
use doca_common::buffer::{Destination, Load, Payload, Source};
use doca_common::{Error, Failed, Refusal, RemoteBuffer, RemoteCell, Result};
use std::fmt;

/// What a read brought.
pub struct Fetched<P> {
    /// The buffer; its data is what was read.
    pub buffer: P,
    len: u32,
}

impl<P> Fetched<P> {
    /// Bytes that were read: `doca_rdma_task_read_get_result_len`.
    #[doc(alias = "doca_rdma_task_read_get_result_len")]
    pub fn bytes_read(&self) -> usize {
        self.len as usize
    }
}

impl<P: fmt::Debug> fmt::Debug for Fetched<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("buffer", &self.buffer).field("len", &self.len).finish()
    }
}

/// A number of 8 bytes that a task brought.
#[derive(Debug)]
pub struct Word<P> {
    /// The value: of the event, or what was at the peer before the change.
    pub value: u64,
    /// The buffer that it was brought in; its data are these 8 bytes.
    pub buffer: P,
}

impl<P: Payload> Word<P> {
    pub(super) fn of(buffer: P) -> Self {
        Word { value: buffer.first_word().unwrap_or_default(), buffer }
    }
}

kind! {
    /// Reads a peer's memory: `doca_rdma_task_read`. Gives [`Fetched`].
    ReadTask: 3, "doca_rdma_task_read", caps::READ, targeted;
    Output = Fetched<P>, |buffer, outcome| Fetched { buffer, len: outcome.len };

    /// Writes a peer's memory: `doca_rdma_task_write`. Gives the buffer back when the peer's adapter has the data;
    /// a message sent behind it, or [`WriteImmTask`], tells the peer that they are there.
    WriteTask: 4, "doca_rdma_task_write", caps::WRITE, targeted;
    Output = P, |buffer, _| buffer;

    /// Writes a peer's memory, and consumes a receive of the peer with a number:
    /// `doca_rdma_task_write_imm`. Gives the buffer back.
    WriteImmTask: 5, "doca_rdma_task_write_imm", caps::WRITE_IMM, targeted;
    Output = P, |buffer, _| buffer;

    /// Changes 8 bytes of a peer's memory if they have a certain value: `doca_rdma_task_atomic_cmp_swp`. Gives the
    /// value before, as [`Word`]. It is atomic against RDMA atomics on the peer's device, not against its CPU.
    CompareSwapTask: 6, "doca_rdma_task_atomic_cmp_swp", caps::ATOMIC_CMP_SWP, targeted;
    Output = Word<P>, |buffer, _| Word::of(buffer);

    /// Adds to 8 bytes of a peer's memory: `doca_rdma_task_atomic_fetch_add`. Gives the value before, as [`Word`].
    /// It is atomic against RDMA atomics on the peer's device, not against its CPU.
    FetchAddTask: 7, "doca_rdma_task_atomic_fetch_add", caps::ATOMIC_FETCH_ADD, targeted;
    Output = Word<P>, |buffer, _| Word::of(buffer);
}

/// Refuses remote memory that was imported for another device than this context's.
fn check_device(run: &Run, remote: &RemoteBuffer) -> Result<()> {
    if remote.device() == run.instance().device() {
        return Ok(());
    }
    Err(Error::refused(SUBMIT, Refusal::OtherDevice).with("the remote memory"))
}

/// Refuses more data than the remote range has.
fn check_write(run: &Run, load: &Load, remote: &RemoteBuffer) -> Result<()> {
    check_device(run, remote)?;
    if load.len() > remote.len() {
        let text = format!("{} bytes into {remote:?}", load.len());
        return Err(Error::refused(SUBMIT, Refusal::OutOfRange).with(text));
    }
    run.check(SUBMIT, load, Role::Source)
}

impl Queue<ReadTask> {
    /// Reads all of `source` into `destination`: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`] or `FULL` (progress and try again), [`Refusal::TooLong`] if it
    /// has not enough room, or with what submitting a send is refused for. What the peer refuses is told when the
    /// task is done.
    #[doc(alias = "doca_rdma_task_read_allocate_init")]
    pub fn submit<D: Destination>(
        &self,
        connection: &Connection,
        source: &RemoteBuffer,
        destination: D,
    ) -> std::result::Result<Pending<ReadTask, D>, Failed<D>> {
        let check = |run: &Run, load: &Load| {
            check_device(run, source)?;
            run.check(SUBMIT, load, Role::Fetched { len: source.len() })
        };
        self.submit_on(
            connection,
            destination.into_load(),
            check,
            Load::as_destination,
            |run, token, link, to| {
                run.aim(token, Target::Memory(source.clone()));
                run.submit_read(token, link, source.as_raw(), to)
            },
        )
    }
}

impl Queue<WriteTask> {
    /// Writes the data of `source` to the beginning of `destination`: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`] or `FULL` (progress and try again), [`Refusal::OutOfRange`] if
    /// the range is too short, or with what submitting a send is refused for. What the peer refuses is told when
    /// the task is done.
    #[doc(alias = "doca_rdma_task_write_allocate_init")]
    pub fn submit<S: Source>(
        &self,
        connection: &Connection,
        source: S,
        destination: &RemoteBuffer,
    ) -> std::result::Result<Pending<WriteTask, S>, Failed<S>> {
        let check = |run: &Run, load: &Load| check_write(run, load, destination);
        self.submit_on(connection, source.into_load(), check, Load::as_source, |run, token, link, from| {
            run.aim(token, Target::Memory(destination.clone()));
            run.submit_write(token, link, from, destination.as_raw())
        })
    }
}

impl Queue<WriteImmTask> {
    /// Writes the data of `source` to the beginning of `destination`, then completes a receive of the peer with
    /// `immediate`, whose bits DOCA does not swap: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// As for [`WriteTask`].
    #[doc(alias = "doca_rdma_task_write_imm_allocate_init")]
    pub fn submit<S: Source>(
        &self,
        connection: &Connection,
        source: S,
        destination: &RemoteBuffer,
        immediate: u32,
    ) -> std::result::Result<Pending<WriteImmTask, S>, Failed<S>> {
        let check = |run: &Run, load: &Load| check_write(run, load, destination);
        self.submit_on(connection, source.into_load(), check, Load::as_source, |run, token, link, from| {
            run.aim(token, Target::Memory(destination.clone()));
            run.submit_write_imm(token, link, from, destination.as_raw(), immediate)
        })
    }
}

impl Queue<CompareSwapTask> {
    /// Replaces the value of `cell` by `swap` if it is `compare`, and brings what it was into `result`, which has
    /// room for 8 bytes: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`] or `FULL` (progress and try again), [`Refusal::TooLong`] if it
    /// has not enough room, or with what submitting a send is refused for. What the peer refuses is told when the
    /// task is done.
    #[doc(alias = "doca_rdma_task_atomic_cmp_swp_allocate_init")]
    pub fn submit<D: Destination>(
        &self,
        connection: &Connection,
        cell: &RemoteCell,
        result: D,
        compare: u64,
        swap: u64,
    ) -> std::result::Result<Pending<CompareSwapTask, D>, Failed<D>> {
        let cell = cell.as_buffer();
        let check = |run: &Run, load: &Load| {
            check_device(run, cell)?;
            run.check(SUBMIT, load, Role::Word)
        };
        self.submit_on(connection, result.into_load(), check, Load::as_destination, |run, token, link, to| {
            run.aim(token, Target::Memory(cell.clone()));
            run.submit_compare_swap(token, link, cell.as_raw(), to, compare, swap)
        })
    }
}

impl Queue<FetchAddTask> {
    /// Adds to the value of `cell`, which wraps around, and brings what it was into `result`, which has room for 8
    /// bytes: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// As for [`CompareSwapTask`].
    #[doc(alias = "doca_rdma_task_atomic_fetch_add_allocate_init")]
    pub fn submit<D: Destination>(
        &self,
        connection: &Connection,
        cell: &RemoteCell,
        result: D,
        add: u64,
    ) -> std::result::Result<Pending<FetchAddTask, D>, Failed<D>> {
        let cell = cell.as_buffer();
        let check = |run: &Run, load: &Load| {
            check_device(run, cell)?;
            run.check(SUBMIT, load, Role::Word)
        };
        self.submit_on(connection, result.into_load(), check, Load::as_destination, |run, token, link, to| {
            run.aim(token, Target::Memory(cell.clone()));
            run.submit_fetch_add(token, link, cell.as_raw(), to, add)
        })
    }
}
