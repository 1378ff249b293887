//! `doca_comch_producer.h`: the sending side of the fast path. What is for the DPA has no body here.

use super::comch::{ability, conf, limit};
use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::comch::{self, Connection, Producer};
use crate::ctx::{Context, Ctx};
use crate::dev::Devinfo;
use crate::entry;
use crate::entry::{In, Out};
use crate::task::{Task, TaskCallback};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// The producer of a task.
fn owner(task: &Task) -> Option<*const Producer> {
    let owner = task.owner().ok()?;
    (owner.name() == "doca_comch_producer").then(|| Rc::as_ptr(&owner).cast())
}

/// Immediate data as C gives them: NULL and 0 for none.
fn immediate(bytes: &In<u8>, len: u32) -> Res<&[u8]> {
    match (bytes.raw().is_null(), len) {
        (true, 0) | (false, 0) => Ok(&[]),
        (true, _) => Err(Code::INVALID_VALUE),
        (false, _) => bytes.bytes(len as usize),
    }
}

entry! {
    /// A producer of a connection that is up.
    fn doca_comch_producer_create(comch_connection: In<Connection>, producer: Out<*const Producer>) {
        let connection = comch_connection.get()?;
        producer.check()?;
        producer.put(Rc::into_raw(Producer::new(connection)?))
    }

    /// IN_USE unless IDLE.
    fn doca_comch_producer_destroy(producer: In<Producer>) {
        producer.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_comch_producer_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(producer.raw()) });
        Ok(())
    }

    /// Devices of both sides.
    fn doca_comch_producer_cap_is_supported(devinfo: In<Devinfo>) {
        ability(&devinfo, comch::has_fast_path)
    }

    /// Its number on the connection.
    fn doca_comch_producer_get_id(producer: In<Producer>, id: Out<u32>) {
        id.put(producer.get()?.id())
    }

    /// Most tasks of one producer.
    fn doca_comch_producer_cap_get_max_num_tasks(devinfo: In<Devinfo>, max_num_tasks: Out<u32>) {
        limit(&devinfo, &max_num_tasks, |caps| caps.max_num_tasks)
    }

    /// Largest buffer; NOT_SUPPORTED without the fast path.
    fn doca_comch_producer_cap_get_max_buf_size(devinfo: In<Devinfo>, max_buf_size: Out<u32>) {
        max_buf_size.check()?;
        ability(&devinfo, comch::has_fast_path)?;
        limit(&devinfo, &max_buf_size, |caps| caps.max_buf_size)
    }

    /// Longest chain; NOT_SUPPORTED without the fast path.
    fn doca_comch_producer_cap_get_max_buf_list_len(devinfo: In<Devinfo>, max_buf_list_len: Out<u32>) {
        max_buf_list_len.check()?;
        ability(&devinfo, comch::has_fast_path)?;
        limit(&devinfo, &max_buf_list_len, |caps| caps.max_buf_list_len)
    }

    /// Most producers on one side of a connection.
    fn doca_comch_producer_cap_get_max_producers(devinfo: In<Devinfo>, max_producers: Out<u32>) {
        limit(&devinfo, &max_producers, |caps| caps.max_producers)
    }

    /// The context.
    fn doca_comch_producer_as_ctx(producer: In<Producer>) -> *const Ctx = null(); {
        producer.get().map_or(null(), |producer| std::ptr::from_ref(producer.ctx()))
    }

    /// BAD_STATE unless IDLE.
    fn doca_comch_producer_task_send_set_conf(
        producer: In<Producer>, success: Option<TaskCallback>, failure: Option<TaskCallback>, count: u32,
    ) {
        producer.get()?.set_conf(conf(success, failure, count)?)
    }

    /// The data of a buffer, immediate data, or both.
    fn doca_comch_producer_task_send_alloc_init(
        producer: In<Producer>, buf: In<Buf>, imm_data: In<u8>, imm_data_len: u32, consumer_id: u32,
        task: Out<*const Task>,
    ) {
        let producer = producer.get()?;
        let buf = buf.optional()?;
        let bytes = immediate(&imm_data, imm_data_len)?;
        task.check()?;
        task.put(producer.send(buf, bytes, consumer_id)?)
    }

    /// The buffer.
    fn doca_comch_producer_task_send_get_buf(task: In<Task>) -> *const Buf = null(); {
        task.get().map_or(null(), |task| task.fields.src.get() as *const Buf)
    }

    /// For a task that the program owns.
    fn doca_comch_producer_task_send_set_buf(task: In<Task>, buf: In<Buf>) -> () = (); {
        if let Ok(task) = task.get()
            && task.is_changeable()
        {
            task.fields.src.set(buf.raw().addr());
        }
    }

    /// The consumer.
    fn doca_comch_producer_task_send_get_consumer_id(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.immediate.get())
    }

    /// For a task that the program owns.
    fn doca_comch_producer_task_send_set_consumer_id(task: In<Task>, consumer_id: u32) -> () = (); {
        if let Ok(task) = task.get()
            && task.is_changeable()
        {
            task.fields.immediate.set(consumer_id);
        }
    }

    /// The task's copy, or NULL.
    fn doca_comch_producer_task_send_get_imm_data(task: In<Task>) -> *mut u8 = null_mut(); {
        let Ok(task) = task.get() else { return null_mut() };
        // SAFETY: the task's owner is a producer, which the program keeps while it reads tasks.
        owner(task).map_or(null_mut(), |producer| unsafe { &*producer }.immediate_of(task))
    }

    /// Bytes of it.
    fn doca_comch_producer_task_send_get_imm_data_len(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.second.get() as u32)
    }

    /// For a task that the program owns; the bytes are copied.
    fn doca_comch_producer_task_send_set_imm_data(task: In<Task>, imm_data: In<u8>, imm_data_len: u32) -> () = (); {
        if let Ok(task) = task.get()
            && task.is_changeable()
            && let Ok(bytes) = immediate(&imm_data, imm_data_len)
            && let Some(producer) = owner(task)
        {
            // SAFETY: the task's owner is a producer, which the program keeps while it uses tasks.
            unsafe { &*producer }.set_immediate(task, bytes);
        }
    }

    /// The same pointer.
    fn doca_comch_producer_task_send_as_task(task: In<Task>) -> *const Task = null(); { task.raw() }
}
