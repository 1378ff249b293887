//! `doca_comch_consumer_task_post_recv`, `doca_comch_producer_task_send`

use crate::fast::{Fast, Flight, Place, Run};
use crate::immediate::Immediate;
use crate::raw::channel::Channel;
use doca_common::engine::Core;
use doca_common::raw::context::null;
use doca_common::raw::task::{self, Task};
use doca_common::raw::{as_number, current, number};
use doca_common::{Code, Error, Refusal, Result, call};
use doca_sys::{
    doca_buf, doca_comch_consumer_task_post_recv, doca_comch_producer_task_send, doca_data, doca_task,
};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

impl Run {
    /// Posts a receive whose buffer is in the slab.
    pub(crate) fn submit_receive(&self, place: &Place<'_>, buffer: *mut doca_buf) -> Result<()> {
        const CALL: &str = "doca_comch_consumer_task_post_recv_alloc_init";
        let Channel::Consumer(consumer) = self.fast().channel() else {
            return Err(Error::refused(CALL, Refusal::OtherContext));
        };
        // SAFETY: the place is vacant, so its task is not in flight; the context runs, so task and consumer are alive; the
        // buffer stays in the slab until the callback; the out-parameter is a local.
        unsafe {
            if let Some(old) = place.side().task.get() {
                doca_sys::doca_comch_consumer_task_post_recv_set_buf(old.own.as_ptr().cast(), buffer);
                return task::submit(old);
            }
            let mut new = ptr::null_mut();
            call!(doca_comch_consumer_task_post_recv_alloc_init(consumer.as_ptr(), buffer, &mut new))?;
            let common = doca_sys::doca_comch_consumer_task_post_recv_as_task(new);
            task::submit(keep(place, CALL, new.cast(), common)?)
        }
    }

    /// Sends what is in the slab, or immediate data alone, to the consumer of that number.
    pub(crate) fn submit_send(
        &self,
        place: &Place<'_>,
        buffer: *mut doca_buf,
        immediate: &[u8],
        consumer: u32,
    ) -> Result<()> {
        const CALL: &str = "doca_comch_producer_task_send_alloc_init";
        let Channel::Producer(producer) = self.fast().channel() else {
            return Err(Error::refused(CALL, Refusal::OtherContext));
        };
        // DOCA only reads the bytes, and copies them before it returns. Their number was checked to fit.
        let (bytes, len) = match immediate {
            [] => (ptr::null_mut(), 0),
            bytes => (bytes.as_ptr().cast_mut(), bytes.len() as u32),
        };
        // SAFETY: the place is vacant, so its task is not in flight; the context runs, so task and producer are alive; the
        // buffer stays in the slab until the callback; the out-parameter is a local.
        unsafe {
            if let Some(old) = place.side().task.get() {
                let own = old.own.as_ptr().cast();
                doca_sys::doca_comch_producer_task_send_set_buf(own, buffer);
                doca_sys::doca_comch_producer_task_send_set_imm_data(own, bytes, len);
                doca_sys::doca_comch_producer_task_send_set_consumer_id(own, consumer);
                return task::submit(old);
            }
            let mut new = ptr::null_mut();
            call!(doca_comch_producer_task_send_alloc_init(
                producer.as_ptr(),
                buffer,
                bytes,
                len,
                consumer,
                &mut new
            ))?;
            let common = doca_sys::doca_comch_producer_task_send_as_task(new);
            task::submit(keep(place, CALL, new.cast(), common)?)
        }
    }

    /// Frees the tasks that are not in flight.
    pub(crate) fn free_idle_tasks(&self) {
        for (flight, _) in self.slab().sides().filter(|(_, flying)| !flying) {
            // SAFETY: the slab knows what is in flight, and the object calls this only while its context is alive.
            unsafe { flight.task.free() };
        }
    }
}

/// Keeps the first task of a place, which is addressed to it.
///
/// # Safety
///
/// Both are null, or the same live task of the place's kind.
unsafe fn keep(
    place: &Place<'_>,
    call: &'static str,
    own: *mut c_void,
    common: *mut doca_task,
) -> Result<Task> {
    let task = NonNull::new(own).zip(NonNull::new(common));
    let task = task.map(|(own, common)| Task { own, common }).ok_or_else(|| null(call))?;
    // SAFETY: live, as the caller says, and not submitted.
    unsafe { doca_sys::doca_task_set_user_data(common, number(place.address())) };
    place.side().task.put(task);
    Ok(task)
}

/// Records that a task came back, after `note` has recorded how. Runs in DOCA's callback.
fn finish(context: doca_data, address: doca_data, note: impl FnOnce(&Flight)) {
    let record = |core: &Core, fast: &Fast| {
        fast.with_run(|run| {
            if run.finish(as_number(address), note) {
                core.mark();
            }
        });
    };
    // SAFETY: recording runs no code of users, and leaves the contexts of the engine alone.
    unsafe { current::record(as_number(context), record) };
}

/// A message was sent, or could not be: what the task says.
pub(crate) unsafe extern "C" fn sent(
    send: *mut doca_comch_producer_task_send,
    address: doca_data,
    context: doca_data,
) {
    // SAFETY: DOCA passes a live task, whose callback this is.
    let code = unsafe { task::status(doca_sys::doca_comch_producer_task_send_as_task(send)) };
    finish(context, address, |flight| flight.code.set(code));
}

/// A message has come.
pub(crate) unsafe extern "C" fn received(
    receive: *mut doca_comch_consumer_task_post_recv,
    address: doca_data,
    context: doca_data,
) {
    // SAFETY: DOCA passes a live task that succeeded, so its results are there; its buffer is one of ours, in flight
    // until now, and the immediate data stay as long as this runs.
    finish(context, address, |flight| unsafe {
        let (mut len, mut code) = (0, Code::SUCCESS);
        let buffer = doca_sys::doca_comch_consumer_task_post_recv_get_buf(receive);
        if !buffer.is_null()
            && let Err(error) = call!(doca_buf_get_data_len(buffer, &mut len))
        {
            log::warn!("{error}: a message of unknown length is an error");
            code = error.code().unwrap_or(Code::UNEXPECTED);
        }
        let bytes = doca_sys::doca_comch_consumer_task_post_recv_get_imm_data(receive);
        let bytes_len = doca_sys::doca_comch_consumer_task_post_recv_get_imm_data_len(receive);
        let immediate = match bytes.is_null() || bytes_len == 0 {
            true => &[],
            false => std::slice::from_raw_parts(bytes, bytes_len as usize),
        };
        flight.code.set(code);
        flight.len.set(len);
        flight.producer.set(doca_sys::doca_comch_consumer_task_post_recv_get_producer_id(receive));
        flight.immediate.set(Immediate::new(immediate));
    });
}

/// A receive was flushed, or failed.
pub(crate) unsafe extern "C" fn not_received(
    receive: *mut doca_comch_consumer_task_post_recv,
    address: doca_data,
    context: doca_data,
) {
    // SAFETY: DOCA passes a live task, whose callback this is.
    let code = unsafe { task::status(doca_sys::doca_comch_consumer_task_post_recv_as_task(receive)) };
    finish(context, address, |flight| flight.code.set(code));
}
