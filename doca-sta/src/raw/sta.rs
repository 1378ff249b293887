//! `doca_sta`: the control context.

use super::object::{BackEnd, Ns, Subs};
use super::queue::{Lent, NvmeQueue};
use super::task::{self, Token, submit};
use crate::config::Namespace;
use crate::stats::Counters;
use doca_common::raw::context::{Ctx, null};
use doca_common::{Device, DeviceInfo, Result, call};
use doca_sys::{doca_sta, doca_sta_io};
use std::ffi::CStr;
use std::ptr::{self, NonNull};

/// A `doca_sta`. Its owner destroys it while its context is idle, and asks it for nothing afterwards.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<doca_sta>);

impl Handle {
    pub(crate) fn new(control: &Device) -> Result<Self> {
        let mut sta = ptr::null_mut();
        // SAFETY: the device is open, and the out-parameter is a local.
        unsafe { call!(doca_sta_create(control.as_raw(), &mut sta)) }?;
        NonNull::new(sta).map(Handle).ok_or_else(|| null("doca_sta_create"))
    }

    pub(crate) fn as_ptr(&self) -> *mut doca_sta {
        self.0.as_ptr()
    }

    pub(crate) fn context(&self) -> Result<Ctx> {
        // SAFETY: alive; the context belongs to it, and the owner destroys both as `Ctx::new` demands.
        unsafe { Ctx::new(doca_sys::doca_sta_as_ctx(self.as_ptr())) }.ok_or_else(|| null("doca_sta_as_ctx"))
    }

    /// Destroys the object, which must be idle.
    pub(crate) fn destroy(&self) -> Result<()> {
        // SAFETY: alive: its owner calls this once, or again after a refusal.
        unsafe { call!(doca_sta_destroy(self.as_ptr())) }
    }

    /// Adds a device, which the owner keeps open.
    pub(crate) fn add_device(&self, device: &Device) -> Result<()> {
        // SAFETY: alive, the device open.
        unsafe { call!(doca_sta_add_dev(self.as_ptr(), device.as_raw())) }
    }

    pub(crate) fn set_io_contexts(&self, most: u16) -> Result<()> {
        // SAFETY: alive.
        unsafe { call!(doca_sta_set_max_sta_io(self.as_ptr(), most)) }
    }

    pub(crate) fn io_contexts(&self) -> Result<u16> {
        let mut most = 0;
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_sta_get_max_sta_io(self.as_ptr(), &mut most)) }.map(|()| most)
    }

    /// Has tasks end in the callbacks of this crate.
    pub(crate) fn enable_tasks(&self) -> Result<()> {
        // SAFETY: alive, and the callbacks have the type that DOCA wants.
        unsafe {
            call!(doca_sta_subsystem_task_rm_ns_set_conf(
                self.as_ptr(),
                Some(task::namespace_removed),
                Some(task::namespace_stays)
            ))?;
            call!(doca_sta_be_task_destroy_queue_set_conf(
                self.as_ptr(),
                Some(task::queue_destroyed),
                Some(task::queue_stays)
            ))
        }
    }

    pub(crate) fn create_io(&self) -> Result<NonNull<doca_sta_io>> {
        let mut io = ptr::null_mut();
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_sta_io_create(self.as_ptr(), &mut io)) }?;
        NonNull::new(io).ok_or_else(|| null("doca_sta_io_create"))
    }
}

/// A control context that is only asked: IDLE from its creation to its end.
pub(super) struct Idle {
    handle: Handle,
    /// Stays open until the context is destroyed.
    _control: Device,
}

impl Idle {
    /// Opens the device and creates a context on it.
    pub(super) fn new(device: &DeviceInfo) -> Result<Self> {
        let control = device.open()?;
        Ok(Idle { handle: Handle::new(&control)?, _control: control })
    }

    pub(super) fn as_ptr(&self) -> *const doca_sta {
        self.handle.as_ptr()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // Made by doca_sta_create, never started, and destroyed once; the device is closed after this.
        if let Err(error) = self.handle.destroy() {
            log::warn!("{error}: the context stays, and its device open");
        }
    }
}

impl Handle {
    pub(crate) fn create_subsystem(&self, nqn: &CStr) -> Result<Subs> {
        // SAFETY: alive.
        unsafe { Subs::create(self.as_ptr(), nqn) }
    }

    pub(crate) fn add_to_subsystem(&self, subsystem: Subs, device: &Device) -> Result<()> {
        // SAFETY: the instance has subsystems that are alive only, and added the device before.
        unsafe { subsystem.add_device(device) }
    }

    pub(crate) fn create_back_end(&self) -> Result<BackEnd> {
        // SAFETY: alive.
        unsafe { BackEnd::create(self.as_ptr()) }
    }

    pub(crate) fn add_queue(
        &self,
        back_end: BackEnd,
        queue: Box<dyn NvmeQueue>,
        control: &Device,
    ) -> Result<Lent> {
        // SAFETY: the instance has back ends that are alive only.
        unsafe { Lent::add(back_end.0, queue, control) }
    }

    pub(crate) fn add_namespace(&self, subsystem: Subs, plan: &Namespace, back_end: BackEnd) -> Result<Ns> {
        // SAFETY: the instance has objects that are alive only.
        unsafe { subsystem.add_namespace(plan.nsid, plan.block_size, plan.disk_nsid, back_end) }
    }

    /// Submits the task that removes a namespace.
    pub(crate) fn remove_namespace(&self, subsystem: Subs, namespace: Ns, token: Token) -> Result<()> {
        // SAFETY: the instance has objects that are alive only, and keeps these until the callback.
        unsafe {
            submit("doca_sta_subsystem_task_rm_ns_alloc_init", token, |data, task| {
                doca_sys::doca_sta_subsystem_task_rm_ns_alloc_init(
                    subsystem.0.as_ptr(),
                    namespace.0.as_ptr(),
                    data,
                    task,
                )
            })
        }
    }

    /// Submits the task that destroys a queue.
    pub(crate) fn destroy_queue(&self, queue: &Lent, token: Token) -> Result<()> {
        // SAFETY: as above.
        unsafe {
            submit("doca_sta_be_destroy_queue_task_alloc_init", token, |data, task| {
                doca_sys::doca_sta_be_destroy_queue_task_alloc_init(queue.handle.as_ptr(), data, task)
            })
        }
    }

    /// Destroys a back end; whether DOCA did.
    pub(crate) fn destroy_back_end(&self, back_end: BackEnd) -> bool {
        // SAFETY: alive, and forgotten by the instance if it is not any more.
        done(unsafe { back_end.destroy() })
    }

    /// Destroys a subsystem; whether DOCA did.
    pub(crate) fn destroy_subsystem(&self, subsystem: Subs) -> bool {
        // SAFETY: alive, and forgotten by the instance if it is not any more. No IO context is left that could name it.
        done(unsafe { subsystem.destroy() })
    }

    pub(crate) fn namespace_counters(&self, subsystem: Subs, namespace: Ns) -> Result<Counters> {
        // SAFETY: the instance has objects that are alive only.
        unsafe { subsystem.counters(namespace) }
    }

    pub(crate) fn queue_counters(&self, back_end: BackEnd, queue: &Lent) -> Result<Counters> {
        // SAFETY: as above.
        unsafe { back_end.counters(queue.handle) }
    }
}

fn done(result: Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            log::debug!("{error}");
            false
        }
    }
}
