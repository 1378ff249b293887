//! Tasks that read, write and change the memory of a peer, which does nothing for it.

use super::way::{Again, Once, Way};
use super::{Pending, Queue, SUBMIT, Task, kind, ready_to_send};
use crate::caps;
use crate::connection::Connection;
use crate::prepared::Prepared;
use crate::run::{Flight, Role, Run, Target};
use doca_common::buffer::{Destination, NamedBuf, Payload, Source};
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
    /// What a task brought.
    #[inline]
    pub(super) fn of(buffer: P) -> Self {
        Word { value: buffer.first_word().unwrap_or_default(), buffer }
    }
}

kind! {
    /// Reads a peer's memory: `doca_rdma_task_read`. Gives [`Fetched`].
    ReadTask: 3, "doca_rdma_task_read", caps::READ, targeted, bytes_came;
    Output = Fetched<P>, |buffer, flight| Fetched { buffer, len: flight.len.get() };

    /// Writes a peer's memory: `doca_rdma_task_write`. Gives the buffer back when the peer's adapter has the data;
    /// a message sent behind it, or [`WriteImmTask`], tells the peer that they are there.
    WriteTask: 4, "doca_rdma_task_write", caps::WRITE, targeted, takes;
    Output = P, |buffer, _| buffer;

    /// Writes a peer's memory, and consumes a receive of the peer with a number:
    /// `doca_rdma_task_write_imm`. Gives the buffer back.
    WriteImmTask: 5, "doca_rdma_task_write_imm", caps::WRITE_IMM, targeted, takes;
    Output = P, |buffer, _| buffer;

    /// Changes 8 bytes of a peer's memory if they have a certain value: `doca_rdma_task_atomic_cmp_swp`. Gives the
    /// value before, as [`Word`]. It is atomic against RDMA atomics on the peer's device, not against its CPU.
    CompareSwapTask: 6, "doca_rdma_task_atomic_cmp_swp", caps::ATOMIC_CMP_SWP, targeted, word_came;
    Output = Word<P>, |buffer, _| Word::of(buffer);

    /// Adds to 8 bytes of a peer's memory: `doca_rdma_task_atomic_fetch_add`. Gives the value before, as [`Word`].
    /// It is atomic against RDMA atomics on the peer's device, not against its CPU.
    FetchAddTask: 7, "doca_rdma_task_atomic_fetch_add", caps::ATOMIC_FETCH_ADD, targeted, word_came;
    Output = Word<P>, |buffer, _| Word::of(buffer);
}

/// Refuses remote memory that was imported for another device than this context's.
#[inline]
fn check_device(run: &Run, remote: &RemoteBuffer) -> Result<()> {
    if remote.device() == run.instance().device() { Ok(()) } else { Err(other_device()) }
}

#[cold]
fn other_device() -> Error {
    Error::refused(SUBMIT, Refusal::OtherDevice).with("the remote memory")
}

/// Checks where bytes of the peer are to go, and makes it ready.
#[inline(always)]
pub(crate) fn ready_to_read<D: Destination>(
    run: &Run,
    destination: &mut D,
    source: &RemoteBuffer,
) -> Result<NamedBuf> {
    check_device(run, source)?;
    run.check(SUBMIT, destination, Role::Fetched { len: source.len() })?;
    destination.as_destination()
}

/// Checks what is to be written and makes it ready. Refuses more data than the remote range has.
#[inline(always)]
pub(crate) fn ready_to_write<S: Source>(
    run: &Run,
    source: &mut S,
    remote: &RemoteBuffer,
) -> Result<NamedBuf> {
    check_device(run, remote)?;
    if source.data_len() > remote.len() {
        return Err(too_much(source.data_len(), remote));
    }
    run.check(SUBMIT, source, Role::Source)?;
    source.as_source()
}

#[cold]
fn too_much(len: usize, remote: &RemoteBuffer) -> Error {
    Error::refused(SUBMIT, Refusal::OutOfRange).with(format!("{len} bytes into {remote:?}"))
}

/// Checks where an atomic's result goes, and makes it ready.
#[inline(always)]
pub(crate) fn ready_for_word<D: Destination>(
    run: &Run,
    result: &mut D,
    cell: &RemoteBuffer,
) -> Result<NamedBuf> {
    check_device(run, cell)?;
    run.check(SUBMIT, result, Role::Word)?;
    result.as_destination()
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
        self.take::<Once, D>(connection, source, destination)
    }

    /// Prepares to read all of `source` into `destination` again and again: `doca_rdma_task_read_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<D: Destination>(
        &self,
        connection: &Connection,
        source: &RemoteBuffer,
        destination: D,
    ) -> std::result::Result<Prepared<ReadTask, D>, Failed<D>> {
        self.take::<Again, D>(connection, source, destination)
    }

    #[inline(always)]
    fn take<W: Way, D: Destination>(
        &self,
        connection: &Connection,
        source: &RemoteBuffer,
        destination: D,
    ) -> std::result::Result<W::Handle<ReadTask, D>, Failed<D>> {
        self.take_on::<W, D>(
            connection,
            destination,
            |run, destination| ready_to_read(run, destination, source),
            |run, place, open, to| run.set_up_read(place, open, source.named(), to),
            || Target::Memory(source.clone()),
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
        self.take::<Once, S>(connection, source, destination)
    }

    /// Prepares to write the data of `source` to the beginning of `destination` again and again:
    /// `doca_rdma_task_write_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<S: Source>(
        &self,
        connection: &Connection,
        source: S,
        destination: &RemoteBuffer,
    ) -> std::result::Result<Prepared<WriteTask, S>, Failed<S>> {
        self.take::<Again, S>(connection, source, destination)
    }

    #[inline(always)]
    fn take<W: Way, S: Source>(
        &self,
        connection: &Connection,
        source: S,
        destination: &RemoteBuffer,
    ) -> std::result::Result<W::Handle<WriteTask, S>, Failed<S>> {
        self.take_on::<W, S>(
            connection,
            source,
            |run, source| ready_to_write(run, source, destination),
            |run, place, open, from| run.set_up_write(place, open, from, destination.named()),
            || Target::Memory(destination.clone()),
        )
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
        self.take::<Once, S>(connection, source, destination, immediate)
    }

    /// Completes a receive of the peer with `immediate`, and writes nothing: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Full`] or `FULL` (progress and try again), or what submitting a send is refused for.
    #[doc(alias = "doca_rdma_task_write_imm_allocate_init")]
    pub fn notify(
        &self,
        connection: &Connection,
        immediate: u32,
    ) -> std::result::Result<Pending<WriteImmTask, ()>, Failed<()>> {
        self.take_on::<Once, ()>(
            connection,
            (),
            ready_to_send,
            |run, place, open, nothing| run.set_up_write_imm(place, open, nothing, nothing, immediate),
            Target::default,
        )
    }

    /// Prepares to write and to complete a receive of the peer again and again:
    /// `doca_rdma_task_write_imm_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<S: Source>(
        &self,
        connection: &Connection,
        source: S,
        destination: &RemoteBuffer,
        immediate: u32,
    ) -> std::result::Result<Prepared<WriteImmTask, S>, Failed<S>> {
        self.take::<Again, S>(connection, source, destination, immediate)
    }

    #[inline(always)]
    fn take<W: Way, S: Source>(
        &self,
        connection: &Connection,
        source: S,
        destination: &RemoteBuffer,
        immediate: u32,
    ) -> std::result::Result<W::Handle<WriteImmTask, S>, Failed<S>> {
        let to = destination.named();
        self.take_on::<W, S>(
            connection,
            source,
            |run, source| ready_to_write(run, source, destination),
            |run, place, open, from| run.set_up_write_imm(place, open, from, to, immediate),
            || Target::Memory(destination.clone()),
        )
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
        self.take::<Once, D>(connection, cell, result, compare, swap)
    }

    /// Prepares to compare and swap again and again: `doca_rdma_task_atomic_cmp_swp_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<D: Destination>(
        &self,
        connection: &Connection,
        cell: &RemoteCell,
        result: D,
        compare: u64,
        swap: u64,
    ) -> std::result::Result<Prepared<CompareSwapTask, D>, Failed<D>> {
        self.take::<Again, D>(connection, cell, result, compare, swap)
    }

    #[inline(always)]
    fn take<W: Way, D: Destination>(
        &self,
        connection: &Connection,
        cell: &RemoteCell,
        result: D,
        compare: u64,
        swap: u64,
    ) -> std::result::Result<W::Handle<CompareSwapTask, D>, Failed<D>> {
        let cell = cell.as_buffer();
        self.take_on::<W, D>(
            connection,
            result,
            |run, result| ready_for_word(run, result, cell),
            |run, place, open, to| run.set_up_compare_swap(place, open, cell.named(), to, compare, swap),
            || Target::Memory(cell.clone()),
        )
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
        self.take::<Once, D>(connection, cell, result, add)
    }

    /// Prepares to fetch and add again and again: `doca_rdma_task_atomic_fetch_add_allocate_init`.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    pub fn prepare<D: Destination>(
        &self,
        connection: &Connection,
        cell: &RemoteCell,
        result: D,
        add: u64,
    ) -> std::result::Result<Prepared<FetchAddTask, D>, Failed<D>> {
        self.take::<Again, D>(connection, cell, result, add)
    }

    #[inline(always)]
    fn take<W: Way, D: Destination>(
        &self,
        connection: &Connection,
        cell: &RemoteCell,
        result: D,
        add: u64,
    ) -> std::result::Result<W::Handle<FetchAddTask, D>, Failed<D>> {
        let cell = cell.as_buffer();
        self.take_on::<W, D>(
            connection,
            result,
            |run, result| ready_for_word(run, result, cell),
            |run, place, open, to| run.set_up_fetch_add(place, open, cell.named(), to, add),
            || Target::Memory(cell.clone()),
        )
    }
}
