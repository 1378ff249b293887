//! `doca_sta_event.h`: what happens to a target by itself. Events live during their callback.

use crate::code::Code;
use crate::entry;
use crate::entry::{In, Out};
use crate::sta::{
    BackEndTimeout, Handle, Notified, NotifyCallback, Sta, StaIo, TimeoutCallback, TransportCallback,
    TransportError, UnitCallback, UnitError,
};

entry! {
    /// Who is told of broken connections; BAD_STATE unless IDLE.
    fn doca_sta_io_event_transport_err_register_cb(io: In<StaIo>, callback: Option<TransportCallback>, data: u64) {
        io.get()?.set_errors(callback.ok_or(Code::INVALID_VALUE)?, data)
    }

    /// Who is told of disks that are silent; BAD_STATE unless IDLE.
    fn doca_sta_event_be_timeout_register_cb(sta: In<Sta>, callback: Option<TimeoutCallback>, data: u64) {
        sta.get()?.set_timeouts(callback.ok_or(Code::INVALID_VALUE)?, data)
    }

    /// Who is told of units that have failed; BAD_STATE unless IDLE.
    fn doca_sta_event_eu_err_register_cb(sta: In<Sta>, callback: Option<UnitCallback>, data: u64) {
        sta.get()?.set_unit_errors(callback.ok_or(Code::INVALID_VALUE)?, data)
    }

    /// Who is told of answers with errors; BAD_STATE unless IDLE.
    fn doca_sta_event_cqe_notify_register_cb(sta: In<Sta>, callback: Option<NotifyCallback>, data: u64) {
        sta.get()?.set_notices(callback.ok_or(Code::INVALID_VALUE)?, data)
    }

    /// The adapter's second word about it: always 0 here.
    fn doca_sta_event_transport_err_get_vendor_syndrome(event: In<TransportError>, syndrome: Out<u32>) {
        event.get()?;
        syndrome.put(0)
    }

    /// The answer's 16 bytes.
    fn doca_sta_event_cqe_notify_get_cqe(event: In<Notified>, cqe: Out<u8>) {
        cqe.put_all(&event.get()?.notice.completion)
    }

    /// Which command was answered.
    fn doca_sta_event_cqe_notify_get_capsule_params(
        event: In<Notified>, opcode: Out<u8>, cid: Out<u16>, nsid: Out<u16>, lba: Out<u64>,
    ) {
        let notice = &event.get()?.notice;
        cid.check()?;
        nsid.check()?;
        lba.check()?;
        opcode.put(notice.opcode)?;
        cid.put(notice.cid)?;
        nsid.put(notice.nsid)?;
        lba.put(notice.lba)
    }
}

/// Getters of one field.
macro_rules! getters {
    ($($name:ident $event:ident $($field:ident).+: $type:ty;)*) => {
        entry! { $(
            #[doc = concat!("A field of `", stringify!($event), "`.")]
            fn $name(event: In<$event>, value: Out<$type>) {
                value.put(event.get()?.$($field).+)
            }
        )* }
    };
}

getters! {
    doca_sta_event_transport_err_get_qp_handle TransportError qp: Handle;
    doca_sta_event_transport_err_get_operation TransportError operation: u32;
    doca_sta_event_transport_err_get_syndrome TransportError syndrome: u32;
    doca_sta_event_be_timeout_get_be_handle BackEndTimeout end: Handle;
    doca_sta_event_be_timeout_get_be_queue_handle BackEndTimeout queue: Handle;
    doca_sta_event_eu_err_is_fatal_error UnitError fatal: bool;
    doca_sta_event_eu_err_get_eu_handle UnitError unit: Handle;
    doca_sta_event_cqe_notify_get_cqe_notify_type Notified notice.kind: u32;
    doca_sta_event_cqe_notify_get_subsystem_handle Notified notice.subsystem: Handle;
    doca_sta_event_cqe_notify_get_qp_handle Notified notice.qp: Handle;
    doca_sta_event_cqe_notify_get_param_err_location Notified notice.location: u16;
}
