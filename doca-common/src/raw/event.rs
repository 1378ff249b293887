//! `doca_sync_event`, `doca_sync_event_remote_net`

use crate::buffer::Named;
use crate::call;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{Publisher, Subscriber};
use crate::raw::context::{Ctx, null};
use crate::raw::inventory::non_null;
use crate::raw::map::next_serial;
use crate::version;
use doca_sys::{doca_error_t, doca_sync_event, doca_sync_event_remote_net};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// An event, in either mode. Nobody destroys it but its owner.
pub struct Event(NonNull<doca_sync_event>);

// SAFETY: an event belongs to no thread; its owner lets one thread at a time use it.
unsafe impl Send for Event {}

/// An event for calls, or whose mode is not chosen yet: dropping it stops and destroys it.
pub(crate) struct Owned(Event);

impl Deref for Owned {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.0
    }
}

impl Owned {
    pub(crate) fn new(publisher: Publisher<'_>, subscriber: Subscriber<'_>) -> Result<Self> {
        version::require_fit()?;
        let mut event = ptr::null_mut();
        // SAFETY: the out-parameter is a local.
        unsafe { call!(doca_sync_event_create(&mut event)) }?;
        let event = Owned(Event(non_null("doca_sync_event_create", event)?));
        let own = event.as_ptr();
        // SAFETY: a live event that is not started, and open devices that the owner keeps.
        unsafe {
            match publisher {
                Publisher::Cpu(device) => {
                    call!(doca_sync_event_add_publisher_location_cpu(own, device.as_raw()))
                }
                Publisher::RemotePci => call!(doca_sync_event_add_publisher_location_remote_pci(own)),
                Publisher::RemoteNet => call!(doca_sync_event_add_publisher_location_remote_net(own)),
            }?;
            match subscriber {
                Subscriber::Cpu(device) => {
                    call!(doca_sync_event_add_subscriber_location_cpu(own, device.as_raw()))
                }
                Subscriber::RemotePci => call!(doca_sync_event_add_subscriber_location_remote_pci(own)),
            }?;
        }
        Ok(event)
    }

    pub(crate) fn import(device: &Device, descriptor: &[u8]) -> Result<Self> {
        const CALL: &str = "doca_sync_event_create_from_export";
        version::require_fit()?;
        require_bytes(CALL, descriptor)?;
        let mut event = ptr::null_mut();
        // SAFETY: the device is open, the bytes are only read, and the out-parameter is a local.
        unsafe {
            call!(doca_sync_event_create_from_export(
                device.as_raw(),
                descriptor.as_ptr(),
                descriptor.len(),
                &mut event
            ))
        }?;
        non_null(CALL, event).map(|event| Owned(Event(event)))
    }

    /// Starts it for calls.
    pub(crate) fn start(self) -> Result<Self> {
        // SAFETY: a live event that is not started.
        unsafe { call!(doca_sync_event_start(self.as_ptr())) }.map(|()| self)
    }

    /// Makes it a context, which its owner destroys.
    pub(crate) fn into_context(self) -> Result<(Event, Ctx)> {
        // SAFETY: a live event that is not started; the owner destroys it with its context.
        let ctx = unsafe { Ctx::new(doca_sys::doca_sync_event_as_ctx(self.as_ptr())) };
        let ctx = ctx.ok_or_else(|| null("doca_sync_event_as_ctx"))?;
        Ok((Event(ManuallyDrop::new(self).0.0), ctx))
    }
}

impl Event {
    pub(crate) fn as_ptr(&self) -> *mut doca_sync_event {
        self.0.as_ptr()
    }

    /// Destroys the event, whose context is idle, or which is stopped.
    pub(crate) fn destroy(&self) -> Result<()> {
        // SAFETY: a live event; its owner destroys it once.
        unsafe { call!(doca_sync_event_destroy(self.as_ptr())) }
    }

    pub(crate) fn get(&self) -> Result<u64> {
        let mut value = 0;
        // SAFETY: a started event, and the out-parameter is a local.
        unsafe { call!(doca_sync_event_get(self.as_ptr(), &mut value)) }.map(|()| value)
    }

    pub(crate) fn set(&self, value: u64) -> Result<()> {
        // SAFETY: a started event.
        unsafe { call!(doca_sync_event_update_set(self.as_ptr(), value)) }
    }

    pub(crate) fn add(&self, value: u64) -> Result<u64> {
        let mut before = 0;
        // SAFETY: a started event, and the out-parameter is a local.
        unsafe { call!(doca_sync_event_update_add(self.as_ptr(), value, &mut before)) }.map(|()| before)
    }

    pub(crate) fn export_net(&self) -> Result<Descriptor> {
        const CALL: &str = "doca_sync_event_export_to_remote_net";
        // SAFETY: a started event, and the out-parameters are locals.
        exported(CALL, |bytes, len| unsafe {
            doca_sys::doca_sync_event_export_to_remote_net(self.as_ptr(), bytes, len)
        })
    }

    pub(crate) fn export_pci(&self, device: &Device) -> Result<Descriptor> {
        const CALL: &str = "doca_sync_event_export_to_remote_pci";
        // SAFETY: a started event, an open device, and the out-parameters are locals.
        exported(CALL, |bytes, len| unsafe {
            doca_sys::doca_sync_event_export_to_remote_pci(self.as_ptr(), device.as_raw(), bytes, len)
        })
    }
}

fn require_bytes(call: &'static str, descriptor: &[u8]) -> Result<()> {
    match descriptor {
        [] => Err(Error::refused(call, Refusal::Malformed).with("an empty descriptor")),
        _ => Ok(()),
    }
}

fn exported(
    call: &'static str,
    export: impl FnOnce(*mut *const u8, *mut usize) -> doca_error_t,
) -> Result<Descriptor> {
    let (mut bytes, mut len) = (ptr::null(), 0);
    crate::raw::check(call, export(&mut bytes, &mut len))?;
    if bytes.is_null() {
        return Err(Error::doca(call, Code::UNEXPECTED));
    }
    // SAFETY: DOCA keeps `len` bytes there as long as the event; they are copied now.
    Ok(Descriptor::from(unsafe { std::slice::from_raw_parts(bytes, len) }))
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: a live event, of which nothing else is left. One that was never started refuses to stop, which
        // changes nothing.
        let stopped = unsafe { call!(doca_sync_event_stop(self.as_ptr())) };
        if let Err(error) = self.destroy() {
            if let Err(error) = stopped {
                log::warn!("{error}");
            }
            log::warn!("{error}: an event is leaked");
        }
    }
}

/// An event of a peer, for tasks.
pub(crate) struct RemoteNet {
    event: NonNull<doca_sync_event_remote_net>,
    serial: u64,
    device: Device,
}

// SAFETY: the object is only named in tasks, which read it, and destroyed by its last owner.
unsafe impl Send for RemoteNet {}
// SAFETY: as above.
unsafe impl Sync for RemoteNet {}

impl RemoteNet {
    pub(crate) fn import(device: &Device, descriptor: &[u8]) -> Result<Self> {
        const CALL: &str = "doca_sync_event_remote_net_create_from_export";
        version::require_fit()?;
        require_bytes(CALL, descriptor)?;
        let mut event = ptr::null_mut();
        // SAFETY: the device is open, the bytes are only read, and the out-parameter is a local.
        unsafe {
            call!(doca_sync_event_remote_net_create_from_export(
                device.as_raw(),
                descriptor.as_ptr(),
                descriptor.len(),
                &mut event
            ))
        }?;
        Ok(RemoteNet { event: non_null(CALL, event)?, serial: next_serial(), device: device.clone() })
    }

    #[inline]
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    #[inline]
    pub(crate) fn named(&self) -> Named<doca_sync_event_remote_net> {
        Named { raw: self.event.as_ptr(), serial: self.serial }
    }
}

impl Drop for RemoteNet {
    fn drop(&mut self) {
        // SAFETY: made by import and destroyed once; tasks in flight hold the object.
        if let Err(error) = unsafe { call!(doca_sync_event_remote_net_destroy(self.event.as_ptr())) } {
            log::warn!("{error}: an imported event is leaked");
        }
    }
}

/// Asks whether something is supported.
macro_rules! question {
    ($name:literal, $function:ident) => {
        $crate::caps::Capability::new($name, stringify!($function), |device| {
            // SAFETY: the description is alive.
            $crate::caps::Value::from_code(unsafe { call!($function(device.as_raw())) })
        })
    };
}

/// What a device can do with events.
pub(crate) const QUESTIONS: &[crate::caps::Capability] = &[
    question!("event.export_to_remote_pci", doca_sync_event_cap_is_export_to_remote_pci_supported),
    question!("event.import_from_remote_pci", doca_sync_event_cap_is_create_from_export_supported),
    question!("event.export_to_remote_net", doca_sync_event_cap_is_export_to_remote_net_supported),
    question!("event.import_from_remote_net", doca_sync_event_cap_remote_net_is_create_from_export_supported),
    question!("event.export_to_dpa", doca_sync_event_cap_is_export_to_dpa_supported),
    question!("event.export_to_gpu", doca_sync_event_cap_is_export_to_gpu_supported),
    question!("event.remote_net_export_to_dpa", doca_sync_event_cap_remote_net_is_export_to_dpa_supported),
    question!("event.remote_net_export_to_gpu", doca_sync_event_cap_remote_net_is_export_to_gpu_supported),
    question!("event.task_get", doca_sync_event_cap_task_get_is_supported),
    question!("event.task_notify_set", doca_sync_event_cap_task_notify_set_is_supported),
    question!("event.task_notify_add", doca_sync_event_cap_task_notify_add_is_supported),
    question!("event.task_wait_eq", doca_sync_event_cap_task_wait_eq_is_supported),
    question!("event.task_wait_neq", doca_sync_event_cap_task_wait_neq_is_supported),
];
