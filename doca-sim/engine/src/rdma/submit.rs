//! From a task to a queue entry: the checks that DOCA makes, or leaves to the hardware, in one order.
//!
//! ```text
//! connection      ours, connected
//! buffers         present where the kind needs them; local or remote as it needs
//! chain           no longer than configured
//! device, mmap    registered with this instance's device, started
//! rights          local write for destinations
//! sizes           room, largest message
//! queue           room
//! ```

use super::Rdma;
use super::connection::{ConnState, Connection};
use super::running::Running;
use crate::access::LOCAL_READ_WRITE;
use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::fabric::descriptor::ProcessRef;
use crate::fabric::operation::{Operation, Post};
use crate::fabric::queue;
use crate::fabric::region::{Piece, RegionId};
use crate::fault;
use crate::log;
use crate::mmap::Backing;
use crate::pieces::{advance, chain, data, data_len, rooms};
use crate::profile;
use crate::strict;
use crate::sync_event::RemoteNet;
use crate::task::Task;
use crate::topology::RdmaTask;

/// Hands a task to the adapter.
pub fn submit(rdma: &Rdma, running: &Running, task: &Task, flush: bool) -> Res {
    let kind = RdmaTask::ALL[task.kind as usize];
    let result = match kind {
        RdmaTask::Receive => receive(rdma, running, task),
        _ => send_side(rdma, running, task, kind, flush),
    };
    if let Err(code) = result
        && !matches!(code, Code::FULL | Code::AGAIN)
    {
        log::debug!("submit of a {} task refused: {code:?}", kind.name());
    }
    result
}

fn receive(rdma: &Rdma, running: &Running, task: &Task) -> Res {
    let head = task.buffer(&task.fields.dst);
    let limit = running.view().sizes().receive_pieces;
    check_local(rdma, head, limit, LOCAL_READ_WRITE)?;
    log::trace!("submit of receive task {task:p}");
    strict::open(task, rooms(head));
    running.post_receive(task, rooms(head));
    Ok(())
}

fn send_side(rdma: &Rdma, running: &Running, task: &Task, kind: RdmaTask, flush: bool) -> Res {
    let fields = &task.fields;
    // SAFETY: set from a `struct doca_rdma_connection *`; the library keeps connections that are over for a while, and
    // the program promised not to use older ones.
    let connection = unsafe { (fields.connection.get() as *const Connection).as_ref() };
    let connection = connection.ok_or(Code::INVALID_VALUE)?;
    if !rdma.owns(connection) {
        log::error!("the task's connection belongs to another doca_rdma");
        return Err(Code::INVALID_VALUE);
    }
    if !connection.takes_sends() {
        if connection.state() == ConnState::Exported {
            log::error!("the connection was exported but not connected: call doca_rdma_connect first");
        }
        return Err(Code::BAD_STATE);
    }
    let limit = running.view().sizes().send_pieces;
    let (src, dst) = (task.buffer(&fields.src), task.buffer(&fields.dst));
    let (mut post, local) = match kind {
        RdmaTask::Receive => return Err(Code::UNEXPECTED),
        RdmaTask::Send | RdmaTask::SendImm => {
            check_local(rdma, src, limit, 0)?;
            let operation = if kind == RdmaTask::Send { Operation::Send } else { Operation::SendImmediate };
            (Post::message(operation, data_len(src), fields.immediate.get()), Local::Data(src))
        }
        RdmaTask::Write | RdmaTask::WriteImm => {
            check_local(rdma, src, limit, 0)?;
            let length = data_len(src);
            let operation =
                if kind == RdmaTask::Write { Operation::Write } else { Operation::WriteImmediate };
            let mut post = Post::message(operation, length, fields.immediate.get());
            if length > 0 {
                post.remote = remote(rdma, dst, length)?.seen_over(connection);
            }
            (post, Local::Data(src))
        }
        RdmaTask::Read => {
            check_local(rdma, dst, limit, LOCAL_READ_WRITE)?;
            let length = src.map_or(0, |buf| buf.data_len() as u64);
            let mut post = Post::message(Operation::Read, length, 0);
            if length > 0 {
                post.remote = remote(rdma, src, length)?.seen_over(connection);
            }
            if length > rooms(dst).map(|piece| piece.len).sum() {
                log::error!("read of {length} bytes into a destination with less room");
                return Err(Code::INVALID_VALUE);
            }
            (post, Local::Room(dst))
        }
        RdmaTask::AtomicCmpSwp | RdmaTask::AtomicFetchAdd => {
            check_local(rdma, Some(dst.ok_or(Code::INVALID_VALUE)?), u32::MAX, LOCAL_READ_WRITE)?;
            if rooms(dst).next().is_none_or(|piece| piece.len < 8) {
                log::error!("the result buffer of an atomic needs room for 8 bytes");
                return Err(Code::INVALID_VALUE);
            }
            let operation =
                if kind == RdmaTask::AtomicCmpSwp { Operation::CompareSwap } else { Operation::FetchAdd };
            let mut post = Post::message(operation, 8, 0);
            post.remote = remote(rdma, Some(src.ok_or(Code::INVALID_VALUE)?), 8)?.seen_over(connection);
            (post.first, post.second) = (fields.first.get(), fields.second.get());
            (post, Local::Room(dst))
        }
        RdmaTask::RemoteNetSyncEventGet => {
            check_local(rdma, Some(dst.ok_or(Code::INVALID_VALUE)?), limit, LOCAL_READ_WRITE)?;
            if rooms(dst).map(|piece| piece.len).sum::<u64>() < 8 {
                log::error!("the destination of a sync event's value needs room for 8 bytes");
                return Err(Code::INVALID_VALUE);
            }
            let mut post = Post::message(Operation::Read, 8, 0);
            post.remote = event(rdma, task)?.seen_over(connection);
            (post, Local::Room(dst))
        }
        RdmaTask::RemoteNetSyncEventNotifySet => {
            check_local(rdma, Some(src.ok_or(Code::INVALID_VALUE)?), limit, 0)?;
            if data_len(src) != 8 {
                log::error!("the source of a sync event's value must hold 8 bytes");
                return Err(Code::INVALID_VALUE);
            }
            let mut post = Post::message(Operation::Write, 8, 0);
            post.remote = event(rdma, task)?.seen_over(connection);
            (post, Local::Data(src))
        }
        RdmaTask::RemoteNetSyncEventNotifyAdd => {
            check_local(rdma, Some(dst.ok_or(Code::INVALID_VALUE)?), u32::MAX, LOCAL_READ_WRITE)?;
            if rooms(dst).next().is_none_or(|piece| piece.len < 8) {
                log::error!("the result buffer of an addition needs room for 8 bytes");
                return Err(Code::INVALID_VALUE);
            }
            let mut post = Post::message(Operation::FetchAdd, 8, 0);
            post.remote = event(rdma, task)?.seen_over(connection);
            post.first = fields.first.get();
            (post, Local::Room(dst))
        }
    };
    if post.length > u64::from(rdma.device().rdma.max_message_size) {
        log::error!("{} bytes are more than the device's largest message", post.length);
        return Err(Code::INVALID_VALUE);
    }
    if connection.is_full() {
        return Err(if profile::get().full_is_again { Code::AGAIN } else { Code::FULL });
    }
    if fault::armed() {
        if fault::will_fail(task) || fault::cut(connection.id().index) {
            post.operation = Operation::Fault;
        }
        if let Some(until) = fault::freeze(false) {
            running.view().freeze(until);
        }
    }
    let position = connection.posted.get();
    connection.task_at(position).set(task);
    connection.posted.set(position + 1);
    log::trace!("submit of {} task {task:p}: {} bytes", kind.name(), post.length);
    let index = connection.id().index;
    match local {
        Local::Data(head) => {
            strict::lend(task, data(head));
            queue::post_send(running.view(), index, position, &post, data(head));
        }
        Local::Room(head) => queue::post_send(running.view(), index, position, &post, rooms(head)),
    }
    if flush {
        connection.held.set(false);
        connection.pump(running.view());
    } else {
        connection.held.set(true);
    }
    Ok(())
}

enum Local<'a> {
    /// The bytes that the buffers hold.
    Data(Option<&'a Buf>),
    /// The room behind them.
    Room(Option<&'a Buf>),
}

/// Local memory: of this process, registered with this device, with the rights, in a chain that is not too long.
fn check_local(rdma: &Rdma, head: Option<&Buf>, limit: u32, access: u32) -> Res {
    for (index, buf) in chain(head).enumerate() {
        if index as u32 >= limit {
            log::error!("a chain of more than {limit} buffers; raise the list length before start");
            return Err(Code::INVALID_VALUE);
        }
        let mmap = buf.mmap();
        if matches!(mmap.backing(), Backing::Remote(_)) {
            log::error!("a buffer of a remote mmap where the task needs local memory");
            return Err(Code::INVALID_VALUE);
        }
        if !mmap.has_dev(rdma.dev()) {
            log::error!("the buffer's mmap does not have the device of this doca_rdma");
            return Err(Code::INVALID_VALUE);
        }
        if access & !mmap.access() != 0 {
            log::error!("the destination's mmap lacks DOCA_ACCESS_FLAG_LOCAL_READ_WRITE");
            return Err(Code::NOT_PERMITTED);
        }
    }
    Ok(())
}

/// Memory of a peer, and whose it is.
struct Remote {
    owner: ProcessRef,
    piece: Piece,
}

impl Remote {
    /// A key means nothing to another process than the one that made it: over a connection to that, it leads nowhere.
    fn seen_over(self, connection: &Connection) -> Piece {
        match connection.far() {
            Some(far) if far.process != self.owner => Piece { region: RegionId::NONE, ..self.piece },
            _ => self.piece,
        }
    }
}

/// Remote memory: the head's data address in an imported mmap.
fn remote(rdma: &Rdma, head: Option<&Buf>, len: u64) -> Res<Remote> {
    let buf = head.ok_or(Code::INVALID_VALUE)?;
    let mmap = buf.mmap();
    let Backing::Remote(descriptor) = mmap.backing() else {
        log::error!("a local buffer where the task needs one of an imported mmap");
        return Err(Code::INVALID_VALUE);
    };
    if !mmap.has_dev(rdma.dev()) {
        log::error!("the remote mmap was imported for another device");
        return Err(Code::INVALID_VALUE);
    }
    Ok(Remote {
        owner: descriptor.process,
        piece: Piece { addr: buf.data() as u64, len, region: descriptor.region },
    })
}

/// The value of the task's sync event.
fn event(rdma: &Rdma, task: &Task) -> Res<Remote> {
    // SAFETY: set from a `struct doca_sync_event_remote_net *` that the program keeps until the task is done.
    let event = unsafe { (task.fields.pointer.get() as *const RemoteNet).as_ref() };
    let event = event.ok_or(Code::INVALID_VALUE)?;
    if !event.has_dev(rdma.dev()) {
        log::error!("the sync event was imported for another device");
        return Err(Code::INVALID_VALUE);
    }
    Ok(Remote { owner: event.owner(), piece: event.piece() })
}

/// After success: what was written locally becomes data of the buffers.
pub fn finish(task: &Task, kind: RdmaTask) {
    let fields = &task.fields;
    match kind {
        RdmaTask::Read => {
            let length = task.buffer(&fields.src).map_or(0, |buf| buf.data_len() as u64);
            fields.result_len.set(length);
            advance(task.buffer(&fields.dst), length);
        }
        RdmaTask::RemoteNetSyncEventGet => {
            fields.result_len.set(8);
            advance(task.buffer(&fields.dst), 8);
        }
        RdmaTask::AtomicCmpSwp | RdmaTask::AtomicFetchAdd | RdmaTask::RemoteNetSyncEventNotifyAdd => {
            advance(task.buffer(&fields.dst), 8);
        }
        RdmaTask::Receive
        | RdmaTask::Send
        | RdmaTask::SendImm
        | RdmaTask::Write
        | RdmaTask::WriteImm
        | RdmaTask::RemoteNetSyncEventNotifySet => {}
    }
}
