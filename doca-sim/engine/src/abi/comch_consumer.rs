//! `doca_comch_consumer.h`: the receiving side of the fast path. What is for the DPA has no body here.

use super::comch::{ability, conf, limit};
use crate::buf::Buf;
use crate::comch::{self, Connection, Consumer};
use crate::ctx::{Context, Ctx};
use crate::dev::Devinfo;
use crate::entry;
use crate::entry::{In, Out};
use crate::mmap::Mmap;
use crate::task::{Task, TaskCallback};
use std::ptr::null;
use std::rc::Rc;

/// The consumer of a task.
fn owner(task: &Task) -> Option<*const Consumer> {
    let owner = task.owner().ok()?;
    (owner.name() == "doca_comch_consumer").then(|| Rc::as_ptr(&owner).cast())
}

entry! {
    /// A consumer of a connection that is up.
    fn doca_comch_consumer_create(
        comch_connection: In<Connection>, buf_mmap: In<Mmap>, consumer: Out<*const Consumer>,
    ) {
        let (connection, mmap) = (comch_connection.get()?, buf_mmap.get()?);
        consumer.check()?;
        consumer.put(Rc::into_raw(Consumer::new(connection, mmap)?))
    }

    /// IN_USE unless IDLE.
    fn doca_comch_consumer_destroy(consumer: In<Consumer>) {
        consumer.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_comch_consumer_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(consumer.raw()) });
        Ok(())
    }

    /// Devices of both sides.
    fn doca_comch_consumer_cap_is_supported(devinfo: In<Devinfo>) {
        ability(&devinfo, comch::has_fast_path)
    }

    /// Most tasks of one consumer.
    fn doca_comch_consumer_cap_get_max_num_tasks(devinfo: In<Devinfo>, max_num_tasks: Out<u32>) {
        limit(&devinfo, &max_num_tasks, |caps| caps.max_num_tasks)
    }

    /// Largest buffer; NOT_SUPPORTED without the fast path.
    fn doca_comch_consumer_cap_get_max_buf_size(devinfo: In<Devinfo>, max_buf_size: Out<u32>) {
        max_buf_size.check()?;
        ability(&devinfo, comch::has_fast_path)?;
        limit(&devinfo, &max_buf_size, |caps| caps.max_buf_size)
    }

    /// Longest chain; NOT_SUPPORTED without the fast path.
    fn doca_comch_consumer_cap_get_max_buf_list_len(devinfo: In<Devinfo>, max_buf_list_len: Out<u32>) {
        max_buf_list_len.check()?;
        ability(&devinfo, comch::has_fast_path)?;
        limit(&devinfo, &max_buf_list_len, |caps| caps.max_buf_list_len)
    }

    /// Most consumers on one side of a connection.
    fn doca_comch_consumer_cap_get_max_consumers(devinfo: In<Devinfo>, max_consumers: Out<u32>) {
        limit(&devinfo, &max_consumers, |caps| caps.max_consumers)
    }

    /// Most immediate data.
    fn doca_comch_consumer_cap_get_max_imm_data_len(devinfo: In<Devinfo>, max_imm_data_len: Out<u32>) {
        limit(&devinfo, &max_imm_data_len, |caps| caps.max_imm_data_len)
    }

    /// Its number on the connection.
    fn doca_comch_consumer_get_id(consumer: In<Consumer>, id: Out<u32>) {
        id.put(consumer.get()?.id())
    }

    /// In every state.
    fn doca_comch_consumer_get_imm_data_len(consumer: In<Consumer>, imm_data_len: Out<u32>) {
        imm_data_len.put(consumer.get()?.immediate())
    }

    /// BAD_STATE unless IDLE.
    fn doca_comch_consumer_set_imm_data_len(consumer: In<Consumer>, imm_data_len: u32) {
        consumer.get()?.set_immediate(imm_data_len)
    }

    /// The context.
    fn doca_comch_consumer_as_ctx(consumer: In<Consumer>) -> *const Ctx = null(); {
        consumer.get().map_or(null(), |consumer| std::ptr::from_ref(consumer.ctx()))
    }

    /// BAD_STATE unless IDLE.
    fn doca_comch_consumer_task_post_recv_set_conf(
        consumer: In<Consumer>, success: Option<TaskCallback>, failure: Option<TaskCallback>, count: u32,
    ) {
        consumer.get()?.set_conf(conf(success, failure, count)?)
    }

    /// A buffer of the consumer's map.
    fn doca_comch_consumer_task_post_recv_alloc_init(
        consumer: In<Consumer>, buf: In<Buf>, task: Out<*const Task>,
    ) {
        let (consumer, buf) = (consumer.get()?, buf.get()?);
        task.check()?;
        task.put(consumer.receive(buf)?)
    }

    /// The buffer.
    fn doca_comch_consumer_task_post_recv_get_buf(task: In<Task>) -> *const Buf = null(); {
        task.get().map_or(null(), |task| task.fields.dst.get() as *const Buf)
    }

    /// For a task that the program owns.
    fn doca_comch_consumer_task_post_recv_set_buf(task: In<Task>, buf: In<Buf>) -> () = (); {
        if let Ok(task) = task.get()
            && task.is_changeable()
        {
            task.fields.dst.set(buf.raw().addr());
        }
    }

    /// Who filled it; 0 before.
    fn doca_comch_consumer_task_post_recv_get_producer_id(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.result_connection.get() as u32)
    }

    /// The immediate data, or NULL.
    fn doca_comch_consumer_task_post_recv_get_imm_data(task: In<Task>) -> *const u8 = null(); {
        let Ok(task) = task.get() else { return null() };
        // SAFETY: the task's owner is a consumer, which its strong count kept during the look-up; the program keeps it
        // while it reads tasks.
        owner(task).map_or(null(), |consumer| unsafe { &*consumer }.immediate_of(task))
    }

    /// Bytes of it.
    fn doca_comch_consumer_task_post_recv_get_imm_data_len(task: In<Task>) -> u32 = 0; {
        task.get().map_or(0, |task| task.fields.result_immediate.get())
    }

    /// The same pointer.
    fn doca_comch_consumer_task_post_recv_as_task(task: In<Task>) -> *const Task = null(); { task.raw() }
}
