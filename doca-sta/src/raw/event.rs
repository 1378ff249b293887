//! Events and non-offloaded commands: callbacks that record what came and return.

use super::io::{Loan, QpHandle};
use super::object::BackEnd;
use super::sta::Handle;
use crate::command::Capsule;
use crate::event::{Eu, EuKind, Event};
use crate::instance::Instance;
use crate::io_instance::IoInstance;
use doca_common::raw::{as_number, current, number};
use doca_common::{Result, call};
use doca_sys::{
    doca_data, doca_sta_event_be_timeout, doca_sta_event_eu_err, doca_sta_event_transport_err,
    doca_sta_qp_handle,
};
use std::any::Any;
use std::ptr::{self, NonNull};

/// Finds the control context with this number.
fn control(channel: doca_data, body: impl FnOnce(&Instance)) {
    let mut body = Some(body);
    current::search(|core, member| {
        let found = (member as &dyn Any).downcast_ref::<Instance>();
        let Some(found) = found.filter(|found| u64::from(found.channel()) == as_number(channel)) else {
            return false;
        };
        if let Some(body) = body.take() {
            body(found);
        }
        core.mark();
        true
    });
}

/// Finds the IO context that has this queue pair. Its user data is not relied on: later releases may give the queue
/// pair's here.
fn io_of(qp: QpHandle, body: impl FnOnce(&IoInstance, u32)) {
    let mut body = Some(body);
    current::search(|core, member| {
        let Some(io) = (member as &dyn Any).downcast_ref::<IoInstance>() else { return false };
        let Some(index) = io.place_of(qp) else { return false };
        if let Some(body) = body.take() {
            body(io, index);
        }
        core.mark();
        true
    });
}

/// Logs what an event does not tell.
fn untold<T>(told: Result<T>) -> Option<T> {
    told.map_err(|error| log::warn!("{error}: an event says less than it should")).ok()
}

/// A command that DOCA does not execute.
pub(super) unsafe extern "C" fn command(
    qp: *mut doca_sta_qp_handle,
    _data: doca_data,
    sqe: *const u8,
    payload: *mut u8,
    payload_len: u32,
    valid: bool,
    loan: doca_data,
) {
    let Some(qp) = QpHandle::new(qp) else { return };
    if sqe.is_null() {
        return;
    }
    // SAFETY: DOCA passes 64 bytes, of any alignment; they are copied now.
    let sqe = unsafe { sqe.cast::<[u8; 64]>().read_unaligned() };
    let capsule =
        Capsule { sqe, payload: NonNull::new(payload), len: payload_len as usize, valid, loan: Loan(loan) };
    io_of(qp, |io, index| io.arrived(index, capsule));
}

/// Something went wrong between this queue pair and the initiator's.
pub(super) unsafe extern "C" fn transport_error(
    event: *const doca_sta_event_transport_err,
    _data: doca_data,
) {
    let (mut qp, mut operation, mut syndrome, mut vendor) = (ptr::null(), 0, 0, 0);
    // SAFETY: the event is valid in here, and the out-parameters are locals. What cannot be told stays 0.
    unsafe {
        untold(call!(doca_sta_event_transport_err_get_qp_handle(event, &mut qp)));
        untold(call!(doca_sta_event_transport_err_get_operation(event, &mut operation)));
        untold(call!(doca_sta_event_transport_err_get_syndrome(event, &mut syndrome)));
        untold(call!(doca_sta_event_transport_err_get_vendor_syndrome(event, &mut vendor)));
    }
    let Some(qp) = QpHandle::new(qp) else { return };
    io_of(qp, |io, index| io.transport_failed(index, operation, syndrome, vendor));
}

/// A disk did not complete a command in time.
unsafe extern "C" fn back_end_timeout(event: *const doca_sta_event_be_timeout, channel: doca_data) {
    let mut handle = ptr::null();
    // SAFETY: the event is valid in here, and the out-parameter is a local.
    untold(unsafe { call!(doca_sta_event_be_timeout_get_be_handle(event, &mut handle)) });
    let handle = NonNull::new(handle.cast_mut()).map(BackEnd);
    control(channel, |instance| {
        let back_end = handle.and_then(|handle| instance.back_end_of(handle));
        instance.record(Event::BackEndTimeout { back_end });
    });
}

/// A program on the adapter failed.
unsafe extern "C" fn eu_error(event: *const doca_sta_event_eu_err, channel: doca_data) {
    let (mut fatal, mut handle) = (true, ptr::null());
    // SAFETY: the event is valid in here, and the out-parameters are locals. The unit is named by what is not fatal only.
    let eu = unsafe {
        untold(call!(doca_sta_event_eu_err_is_fatal_error(event, &mut fatal)));
        if !fatal {
            untold(call!(doca_sta_event_eu_err_get_eu_handle(event, &mut handle)));
        }
        if handle.is_null() { None } else { untold(super::stats::describe(handle)) }
    };
    control(channel, |instance| instance.record(Event::EuFailed { fatal, eu }));
}

impl Handle {
    /// Has events end in the callbacks above.
    pub(crate) fn hear(&self, channel: u16) -> Result<()> {
        let data = number(channel.into());
        // SAFETY: alive, and the callbacks have the types that DOCA wants.
        unsafe {
            call!(doca_sta_event_be_timeout_register_cb(self.as_ptr(), Some(back_end_timeout), data))?;
            call!(doca_sta_event_eu_err_register_cb(self.as_ptr(), Some(eu_error), data))?;
            #[cfg(doca_has_sta_cqe_notify)]
            call!(doca_sta_event_cqe_notify_register_cb(self.as_ptr(), Some(notify::error_response), data))?;
        }
        Ok(())
    }
}

/// An error status that DOCA sent without asking.
#[cfg(doca_has_sta_cqe_notify)]
mod notify {
    use super::{control, untold};
    use crate::event::{ErrorResponse, Event, Origin};
    use doca_common::call;
    use doca_sys::{doca_data, doca_sta_cqe_notify_type, doca_sta_event_cqe_notify};

    pub(super) unsafe extern "C" fn error_response(
        event: *const doca_sta_event_cqe_notify,
        channel: doca_data,
    ) {
        let mut kind = doca_sta_cqe_notify_type(0);
        let (mut completion, mut location) = ([0; 16], 0);
        let (mut opcode, mut cid, mut nsid, mut lba) = (0, 0, 0, 0);
        // SAFETY: the event is valid in here, and the out-parameters are locals. What cannot be told stays 0.
        unsafe {
            untold(call!(doca_sta_event_cqe_notify_get_cqe_notify_type(event, &mut kind)));
            untold(call!(doca_sta_event_cqe_notify_get_cqe(event, completion.as_mut_ptr())));
            untold(call!(doca_sta_event_cqe_notify_get_capsule_params(
                event,
                &mut opcode,
                &mut cid,
                &mut nsid,
                &mut lba
            )));
            untold(call!(doca_sta_event_cqe_notify_get_param_err_location(event, &mut location)));
        }
        let origin = if kind == doca_sta_cqe_notify_type::DOCA_STA_CQE_NOTIF_NVME_COMP_ERR {
            Origin::Disk
        } else {
            Origin::Validation
        };
        let response = ErrorResponse { origin, completion, opcode, cid, nsid, lba, location };
        control(channel, |instance| instance.record(Event::ErrorResponse(response)));
    }
}

impl EuKind {
    pub(crate) fn from_raw(kind: u32) -> Self {
        use doca_sys::dpa_sta_eu_type as c;
        match c(kind) {
            c::DOCA_STA_EU_COMP => EuKind::Completion,
            c::DOCA_STA_EU_TX => EuKind::Transmit,
            c::DOCA_STA_EU_BEQ => EuKind::BackEndQueue,
            _ => EuKind::Unknown,
        }
    }
}

/// So that the type stands once.
pub(super) type Unit = Eu;
