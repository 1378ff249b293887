//! `doca_comch_task_send`
//!
//! DOCA has no call that gives such a task another message: each message takes a task from the pool, is told its user data,
//! and frees it. (Tasks of the fast path, which have such calls, are kept.)

use crate::control::Control;
use crate::raw::bytes::Bytes;
use crate::raw::connection::Link;
use crate::raw::end::{End, either};
use doca_common::engine::Core;
use doca_common::raw::context::null;
use doca_common::raw::{as_number, current, number, task};
use doca_common::slot::Token;
use doca_common::{Result, call};
use doca_sys::{doca_comch_task_send, doca_data};
use std::ptr;

/// Sends a message. On an error nothing is on its way.
///
/// # Safety
///
/// The end runs, the connection is valid and one of its own, and `len` bytes at `message` stay as they are until the
/// callback.
unsafe fn send(end: End, link: Link, message: *const u8, len: u32, token: Token) -> Result<()> {
    const CALL: &str = "doca_comch_task_send_as_task";
    let mut send: *mut doca_comch_task_send = ptr::null_mut();
    // SAFETY: as the caller says; the out-parameter is a local. A task that could not be submitted is still ours.
    unsafe {
        either!(
            end,
            doca_comch_server_task_send_alloc_init,
            doca_comch_client_task_send_alloc_init,
            link.as_ptr(),
            message.cast(),
            len,
            &mut send
        )?;
        let common = doca_sys::doca_comch_task_send_as_task(send);
        if common.is_null() {
            return Err(null(CALL));
        }
        doca_sys::doca_task_set_user_data(common, number(token.to_bits()));
        let submitted = call!(doca_task_submit(common));
        if submitted.is_err() {
            doca_sys::doca_task_free(common);
        }
        submitted
    }
}

/// A message was sent, or could not be: what the task says.
pub(crate) unsafe extern "C" fn sent(send: *mut doca_comch_task_send, token: doca_data, context: doca_data) {
    // SAFETY: DOCA passes a live task, whose callback this is: it is ours again, and freed once.
    let code = unsafe {
        let common = doca_sys::doca_comch_task_send_as_task(send);
        let code = task::status(common);
        doca_sys::doca_task_free(common);
        code
    };
    let record = |core: &Core, control: &Control| {
        control.with_run(|run| {
            if run.sent(Token::from_bits(as_number(token)), code) {
                core.mark();
            }
        });
    };
    // SAFETY: recording runs no code of users, and leaves the contexts of the engine alone.
    unsafe { current::record(as_number(context), record) };
}

impl End {
    /// Sends a message from the buffer of its slot. The context runs, and the connection is one of the table's.
    pub(crate) fn send(self, link: Link, bytes: &Bytes, token: Token, parts: &[&[u8]]) -> Result<()> {
        // SAFETY: the slot was free, so nothing is on its way from its buffer, and it is not used again before the
        // callback; the caller checked that the context runs, and took the connection from its table.
        unsafe {
            let (message, len) = bytes.fill(token.index as usize, parts);
            send(self, link, message, len as u32, token)
        }
    }
}
