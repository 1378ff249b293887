//! `doca_sta_io`: IO contexts, their queue pairs, and the tasks on them.

use super::cm::CmId;
use super::event;
use super::object::Subs;
use super::task::{self, Token, submit};
use crate::command::{CQE, Capsule};
use doca_common::raw::context::{Ctx, null};
use doca_common::{Device, Result, call};
use doca_sys::{doca_data, doca_error_t, doca_sta_io, doca_sta_producer_task_send, doca_sta_qp_handle};
use std::ptr::{self, NonNull};

/// A `doca_sta_io`. Its owner destroys it while its context is idle, and asks it for nothing afterwards.
#[derive(Debug)]
pub(crate) struct IoHandle(NonNull<doca_sta_io>);

// SAFETY: DOCA lets an IO context be created on one thread and used on another. It moves as a seed that is idle and
// connected to no engine; what is started on a thread has an `Rc` around it, and stays there.
unsafe impl Send for IoHandle {}

/// A queue pair in C, as long as its IO context has it in its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct QpHandle(NonNull<doca_sta_qp_handle>);

impl QpHandle {
    pub(crate) fn new(handle: *const doca_sta_qp_handle) -> Option<Self> {
        NonNull::new(handle.cast_mut()).map(QpHandle)
    }

    fn as_ptr(self) -> *mut doca_sta_qp_handle {
        self.0.as_ptr()
    }
}

/// DOCA's name of a command that it handed over.
#[derive(Clone, Copy)]
pub(crate) struct Loan(pub(crate) doca_data);

impl Capsule {
    /// The data of the command. Only commands that were handed out are asked.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.payload {
            // SAFETY: DOCA lends so many bytes, initialised by the allocator, until the answer's callback or the end of
            // the queue pair. Answering takes the capsule, and the queue pair is not destroyed while a command of it is
            // held. No task of the command is in flight, so nothing writes.
            Some(start) => unsafe { std::slice::from_raw_parts(start.as_ptr(), self.data_len()) },
            None => &[],
        }
    }

    /// The same, to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self.payload {
            // SAFETY: as above, and the exclusive reference makes the slice the only one.
            Some(start) => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.data_len()) },
            None => &mut [],
        }
    }
}

impl IoHandle {
    pub(crate) fn new(io: NonNull<doca_sta_io>) -> Self {
        IoHandle(io)
    }

    fn as_ptr(&self) -> *mut doca_sta_io {
        self.0.as_ptr()
    }

    pub(crate) fn context(&self) -> Result<Ctx> {
        // SAFETY: alive; the context belongs to it, and the owner destroys both as `Ctx::new` demands.
        unsafe { Ctx::new(doca_sys::doca_sta_io_as_ctx(self.as_ptr())) }
            .ok_or_else(|| null("doca_sta_io_as_ctx"))
    }

    /// Destroys the object, which must be idle.
    pub(crate) fn destroy(&self) -> Result<()> {
        // SAFETY: alive: its owner calls this once, or again after a refusal.
        unsafe { call!(doca_sta_io_destroy(self.as_ptr())) }
    }

    /// Has commands, events and tasks end in the callbacks of this crate. DOCA does not start without.
    pub(crate) fn enable(&self, channel: u16) -> Result<()> {
        let data = doca_common::raw::number(channel.into());
        // SAFETY: alive, and the callbacks have the types that DOCA wants.
        unsafe {
            let io = self.as_ptr();
            call!(doca_sta_io_non_offload_register_cb(io, Some(event::command), data))?;
            call!(doca_sta_io_event_transport_err_register_cb(io, Some(event::transport_error), data))?;
            call!(doca_sta_io_task_disconnect_set_conf(
                io,
                Some(task::disconnected),
                Some(task::not_disconnected)
            ))?;
            call!(doca_sta_io_task_non_offload_set_rdma_write_send_conf(
                io,
                Some(task::responded),
                Some(task::not_responded)
            ))?;
            call!(doca_sta_io_task_non_offload_set_rdma_read_conf(
                io,
                Some(task::fetched),
                Some(task::not_fetched)
            ))
        }
    }

    /// Accepts a request with private data. The identifier is DOCA's afterwards, in any case.
    pub(crate) fn connect(&self, device: &Device, id: CmId, data: &[u8]) -> Result<QpHandle> {
        let mut qp = ptr::null_mut();
        // SAFETY: alive; the device is open and the family keeps it; the identifier came with a request that nobody
        // answered, and is given away here; DOCA only reads the bytes, before it returns; the out-parameter is a local.
        unsafe {
            call!(doca_sta_io_qp_connect(
                self.as_ptr(),
                device.as_raw(),
                id.into_raw().cast(),
                data.as_ptr().cast(),
                data.len() as u32,
                ptr::null_mut(),
                &mut qp
            ))
        }?;
        QpHandle::new(qp).ok_or_else(|| null("doca_sta_io_qp_connect"))
    }

    /// Makes an empty queue pair for a later request.
    pub(crate) fn alloc(&self, device: &Device) -> Result<QpHandle> {
        let mut qp = ptr::null_mut();
        // SAFETY: alive; the device is open and the family keeps it; the out-parameter is a local.
        unsafe { call!(doca_sta_io_qp_alloc(self.as_ptr(), device.as_raw(), &mut qp)) }?;
        QpHandle::new(qp).ok_or_else(|| null("doca_sta_io_qp_alloc"))
    }

    /// Accepts a request on an empty queue pair. The identifier is DOCA's afterwards, in any case.
    pub(crate) fn accept(&self, qp: QpHandle, device: &Device, id: CmId, data: &[u8]) -> Result<()> {
        // SAFETY: as for `connect`; the queue pair is in the table.
        unsafe {
            call!(doca_sta_io_qp_accept(
                self.as_ptr(),
                qp.as_ptr(),
                device.as_raw(),
                id.into_raw().cast(),
                data.as_ptr().cast(),
                data.len() as u32,
                ptr::null_mut()
            ))
        }
    }

    pub(crate) fn established(&self, qp: QpHandle) -> Result<()> {
        // SAFETY: alive, and the queue pair is in the table.
        unsafe { call!(doca_sta_io_qp_connect_established(self.as_ptr(), qp.as_ptr())) }
    }

    pub(crate) fn set_sq_size(&self, qp: QpHandle, size: u16) -> Result<()> {
        // SAFETY: alive, and the queue pair is in the table.
        unsafe { call!(doca_sta_io_qp_connect_set_sq_size(self.as_ptr(), qp.as_ptr(), size)) }
    }

    pub(crate) fn bind(&self, qp: QpHandle, subsystem: Subs) -> Result<()> {
        // SAFETY: alive, the queue pair is in the table, and the control context, which the caller checked to be the
        // subsystem's, destroys no subsystem while it has IO contexts.
        unsafe { call!(doca_sta_io_qp_add_subsystem(self.as_ptr(), subsystem.0.as_ptr(), qp.as_ptr())) }
    }

    pub(crate) fn destroy_qp(&self, qp: QpHandle) -> Result<()> {
        // SAFETY: alive; the queue pair is in the table, and leaves it by the caller. Nobody has a loan of it.
        unsafe { call!(doca_sta_io_qp_destroy(self.as_ptr(), qp.as_ptr())) }
    }

    /// Number of the queue pair on the network.
    pub(crate) fn number(&self, qp: QpHandle) -> Result<u32> {
        let mut number = 0;
        // SAFETY: the queue pair is in the table, and the out-parameter is a local.
        unsafe { call!(doca_sta_io_qp_get_id(qp.as_ptr(), &mut number)) }.map(|()| number)
    }

    pub(crate) fn port(&self, qp: QpHandle) -> Result<u16> {
        let mut number = 0;
        // SAFETY: as above.
        unsafe { call!(doca_sta_io_qp_get_port_id(qp.as_ptr(), &mut number)) }.map(|()| number)
    }

    pub(crate) fn group(&self, qp: QpHandle) -> Result<u16> {
        let mut number = 0;
        // SAFETY: as above.
        unsafe { call!(doca_sta_io_qp_get_group_id(qp.as_ptr(), &mut number)) }.map(|()| number)
    }

    pub(crate) fn index_in_group(&self, qp: QpHandle) -> Result<u16> {
        let mut number = 0;
        // SAFETY: as above.
        unsafe { call!(doca_sta_io_qp_get_index_in_group(qp.as_ptr(), &mut number)) }.map(|()| number)
    }

    /// Submits the disconnect task.
    pub(crate) fn disconnect(&self, qp: QpHandle, token: Token) -> Result<()> {
        // SAFETY: alive, the queue pair is in the table, and stays there until the callback.
        unsafe {
            submit("doca_sta_io_task_disconnect_alloc_init", token, |data, task| {
                doca_sys::doca_sta_io_task_disconnect_alloc_init(self.as_ptr(), data, qp.as_ptr(), task)
            })
        }
    }

    /// Has the data of a command fetched from the initiator.
    pub(crate) fn fetch(&self, qp: QpHandle, loan: Loan, token: Token) -> Result<()> {
        // SAFETY: as above; the loan is the command's, which is not answered yet.
        unsafe {
            submit("doca_sta_io_task_non_offload_rdma_read_alloc_init", token, |data, task| {
                doca_sys::doca_sta_io_task_non_offload_rdma_read_alloc_init(
                    self.as_ptr(),
                    data,
                    qp.as_ptr(),
                    loan.0,
                    task,
                )
            })
        }
    }

    /// Answers a command, with its data or without. The caller keeps the completion in its place until the callback.
    pub(crate) fn answer(
        &self,
        qp: QpHandle,
        loan: Loan,
        completion: &mut Box<[u8; CQE]>,
        with_data: bool,
        token: Token,
    ) -> Result<()> {
        let (call, allocate): (_, Answer) = if with_data {
            (
                "doca_sta_io_task_non_offload_rdma_write_send_alloc_init",
                doca_sys::doca_sta_io_task_non_offload_rdma_write_send_alloc_init,
            )
        } else {
            (
                "doca_sta_io_task_non_offload_rdma_send_alloc_init",
                doca_sys::doca_sta_io_task_non_offload_rdma_send_alloc_init,
            )
        };
        // SAFETY: as for `fetch`; the completion has a box of its own, which stays with the operation.
        unsafe {
            submit(call, token, |data, task| {
                allocate(self.as_ptr(), data, qp.as_ptr(), completion.as_mut_ptr(), loan.0, task)
            })
        }
    }
}

/// The two functions that make an answer.
type Answer = unsafe extern "C" fn(
    *mut doca_sta_io,
    doca_data,
    *mut doca_sta_qp_handle,
    *mut u8,
    doca_data,
    *mut *mut doca_sta_producer_task_send,
) -> doca_error_t;
