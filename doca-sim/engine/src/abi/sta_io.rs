//! `doca_sta_io.h`, `doca_sta_io_qp.h`, `doca_sta_io_non_offload.h`, `doca_sta_task.h`: what one thread does for the queue
//! pairs of a target.

use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::dev::Dev;
use crate::entry;
use crate::entry::{In, Out};
use crate::rdmacm::OwnedId;
use crate::rdmacm::layout::CmId;
use crate::sta::{self, Callbacks, CommandCallback, Handle, IoTask, Kind, Sta, StaIo, TaskCallback};
use crate::task::Task;
use std::ptr::null;
use std::rc::Rc;

/// Bytes of an answer.
const COMPLETION: usize = 16;

fn both(success: Option<TaskCallback>, failure: Option<TaskCallback>) -> Res<Callbacks> {
    match (success, failure) {
        (Some(success), Some(failure)) => Ok(Callbacks { success, failure }),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// A subsystem, or none.
fn optional(subsystem: Handle) -> Res<Option<Handle>> {
    if subsystem.bits() == 0 {
        return Ok(None);
    }
    subsystem.core(Kind::Subsystem)?;
    Ok(Some(subsystem))
}

fn private_data(bytes: &In<u8>, len: u32) -> Res<&[u8]> {
    if len == 0 { Ok(&[]) } else { bytes.bytes(len as usize) }
}

entry! {
    /// An IO context of a target that runs.
    fn doca_sta_io_create(sta: In<Sta>, io: Out<*const StaIo>) {
        let sta = sta.get()?;
        io.check()?;
        io.put(Rc::into_raw(StaIo::new(sta.core())?))
    }

    /// BAD_STATE unless IDLE.
    fn doca_sta_io_destroy(io: In<StaIo>) {
        io.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_sta_io_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(io.raw()) });
        Ok(())
    }

    /// The context.
    fn doca_sta_io_as_ctx(io: In<StaIo>) -> *const Ctx = null(); {
        io.get().map_or(null(), |io| std::ptr::from_ref(io.ctx()))
    }

    /// Configures the kind; BAD_STATE unless IDLE.
    fn doca_sta_io_task_disconnect_set_conf(
        io: In<StaIo>, success: Option<TaskCallback>, failure: Option<TaskCallback>,
    ) {
        io.get()?.set_disconnect(both(success, failure)?)
    }

    /// A task that ends a queue pair.
    fn doca_sta_io_task_disconnect_alloc_init(
        io: In<StaIo>, user_data: u64, qp: Handle, task: Out<*const Task>,
    ) {
        let io = io.get()?;
        task.check()?;
        task.put(io.disconnect_task(qp, user_data)?)
    }

    /// Who is given commands; BAD_STATE unless IDLE.
    fn doca_sta_io_non_offload_register_cb(io: In<StaIo>, callback: Option<CommandCallback>, user_data: u64) {
        io.get()?.set_commands(callback.ok_or(Code::INVALID_VALUE)?, user_data)
    }

    /// Configures both kinds of answers; BAD_STATE unless IDLE.
    fn doca_sta_io_task_non_offload_set_rdma_write_send_conf(
        io: In<StaIo>, success: Option<TaskCallback>, failure: Option<TaskCallback>,
    ) {
        io.get()?.set_answers(both(success, failure)?)
    }

    /// Configures the kind; BAD_STATE unless IDLE.
    fn doca_sta_io_task_non_offload_set_rdma_read_conf(
        io: In<StaIo>, success: Option<TaskCallback>, failure: Option<TaskCallback>,
    ) {
        io.get()?.set_reads(both(success, failure)?)
    }

    /// A task that fetches a command's data.
    fn doca_sta_io_task_non_offload_rdma_read_alloc_init(
        io: In<StaIo>, user_data: u64, qp: Handle, token: u64, task: Out<*const Task>,
    ) {
        let io = io.get()?;
        task.check()?;
        let token = Handle::from_bits(token);
        task.put(io.command_task(IoTask::Read, qp, token, [0; COMPLETION], user_data)?)
    }

    /// A queue pair for a client that is still to come.
    fn doca_sta_io_qp_alloc(io: In<StaIo>, dev: In<Dev>, qp: Out<Handle>) {
        let (io, dev) = (io.get()?, dev.get()?);
        qp.check()?;
        qp.put(io.alloc_qp(dev.index())?)
    }

    /// Accepts a client. From here on its identifier is DOCA's, whatever the result.
    fn doca_sta_io_qp_accept(
        io: In<StaIo>, qp: Handle, dev: In<Dev>, id: *mut CmId, data: In<u8>, len: u32, subsystem: Handle,
    ) {
        let io = io.get()?;
        let id = OwnedId::take(id).map_err(|_| Code::INVALID_VALUE)?;
        qp.core(Kind::Qp)?;
        let (dev, subsystem) = (dev.get()?, optional(subsystem)?);
        io.accept_qp(qp, dev.index(), id, private_data(&data, len)?, subsystem)
    }

    /// Accepts a client with a new queue pair. From here on its identifier is DOCA's, whatever the result.
    fn doca_sta_io_qp_connect(
        io: In<StaIo>, dev: In<Dev>, id: *mut CmId, data: In<u8>, len: u32, subsystem: Handle, qp: Out<Handle>,
    ) {
        let io = io.get()?;
        let id = OwnedId::take(id).map_err(|_| Code::INVALID_VALUE)?;
        qp.check()?;
        let (dev, subsystem) = (dev.get()?, optional(subsystem)?);
        qp.put(io.connect_qp(dev.index(), id, private_data(&data, len)?, subsystem)?)
    }

    /// While Connect is handled: the SQSIZE that the host gave.
    fn doca_sta_io_qp_connect_set_sq_size(io: In<StaIo>, qp: Handle, sq_size: u16) {
        io.get()?.set_sq_size(qp, sq_size)
    }

    /// From now on commands are taken.
    fn doca_sta_io_qp_connect_established(io: In<StaIo>, qp: Handle) {
        io.get()?.qp_established(qp)
    }

    /// BAD_STATE unless it was never accepted, or is disconnected.
    fn doca_sta_io_qp_destroy(io: In<StaIo>, qp: Handle) {
        io.get()?.destroy_qp(qp)
    }

    /// Binds it, once.
    fn doca_sta_io_qp_add_subsystem(io: In<StaIo>, subsystem: Handle, qp: Handle) {
        io.get()?.bind_subsystem(subsystem, qp)
    }

    /// Its number in the network.
    fn doca_sta_io_qp_get_id(qp: Handle, id: Out<u32>) {
        qp.core(Kind::Qp)?;
        id.put(sta::look(qp, |qp, _| qp.number())?)
    }

    /// Its device: a position among those added.
    fn doca_sta_io_qp_get_port_id(qp: Handle, port: Out<u16>) {
        qp.core(Kind::Qp)?;
        port.put(sta::look(qp, |qp, target| qp.port(target))?)
    }

    /// The number of the unit that handles its completions.
    fn doca_sta_io_qp_get_group_id(qp: Handle, group: Out<u16>) {
        qp.core(Kind::Qp)?;
        group.put(sta::look(qp, |qp, target| qp.group(target))?)
    }

    /// Its position there.
    fn doca_sta_io_qp_get_index_in_group(qp: Handle, index: Out<u16>) {
        qp.core(Kind::Qp)?;
        index.put(sta::look(qp, |qp, _| qp.index())?)
    }

    /// What its commands are handed over with, instead of what the context was given.
    fn doca_sta_io_qp_set_user_data(io: In<StaIo>, qp: Handle, data: u64) {
        io.get()?.set_qp_user_data(qp, data)
    }

    /// The value set last, else 0.
    fn doca_sta_io_qp_get_user_data(qp: Handle, data: Out<u64>) {
        qp.core(Kind::Qp)?;
        data.put(sta::look(qp, |qp, _| qp.user_data())?)
    }

    /// The same pointer.
    fn doca_sta_producer_send_task_as_task(task: In<Task>) -> *const Task = null(); { task.raw() }
}

/// Tasks that answer.
macro_rules! answers {
    ($($kind:ident $alloc_init:ident;)*) => {
        entry! { $(
            /// A task that answers a command; the 16 bytes are copied.
            fn $alloc_init(
                io: In<StaIo>, user_data: u64, qp: Handle, completion: In<u8>, token: u64, task: Out<*const Task>,
            ) {
                let io = io.get()?;
                task.check()?;
                let bytes = completion.bytes(COMPLETION)?;
                let completion = bytes.try_into().map_err(|_| Code::UNEXPECTED)?;
                task.put(io.command_task(IoTask::$kind, qp, Handle::from_bits(token), completion, user_data)?)
            }
        )* }
    };
}

answers! {
    WriteSend doca_sta_io_task_non_offload_rdma_write_send_alloc_init;
    Send doca_sta_io_task_non_offload_rdma_send_alloc_init;
}
