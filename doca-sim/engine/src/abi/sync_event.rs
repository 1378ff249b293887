//! `doca_sync_event.h`: sync events, in both modes.

use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::ctx::Ctx;
use crate::dev::{Dev, Devinfo};
use crate::entry;
use crate::entry::{In, Out};
use crate::sync_event::{Conf, Kind, Location, RemoteNet, SyncEvent};
use crate::task::{Task, TaskCallback};
use crate::topology::Device;
use std::ffi::c_void;
use std::ptr::null;
use std::rc::Rc;

/// There are neither DPA nor GPU objects here: no pointer to one is ever valid.
fn accelerator(object: *const c_void) -> Res {
    if object.is_null() { Err(Code::INVALID_VALUE) } else { Err(Code::NOT_SUPPORTED) }
}

/// Capabilities answer by their return code.
fn capability(devinfo: &In<Devinfo>, has: impl FnOnce(&Device) -> bool) -> Res {
    if has(devinfo.get()?.device()) { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

fn hand_out(place: Res<(*const u8, usize)>, data: &Out<*const u8>, size: &Out<usize>) -> Res {
    data.check()?;
    size.check()?;
    let (bytes, len) = place?;
    data.put(bytes)?;
    size.put(len)
}

entry! {
    /// An event to be configured.
    fn doca_sync_event_create(event: Out<*const SyncEvent>) {
        event.check()?;
        event.put(Rc::into_raw(SyncEvent::create()))
    }

    /// The event of the processor across PCI.
    fn doca_sync_event_create_from_export(
        dev: In<Dev>, data: In<u8>, len: usize, event: Out<*const SyncEvent>,
    ) {
        event.check()?;
        event.put(Rc::into_raw(SyncEvent::import(dev.get()?, data.bytes(len)?)?))
    }

    /// The event of a peer, for RDMA tasks.
    fn doca_sync_event_remote_net_create_from_export(
        dev: In<Dev>, data: In<u8>, len: usize, event: Out<*mut RemoteNet>,
    ) {
        event.check()?;
        event.put(Box::into_raw(Box::new(RemoteNet::import(dev.get()?, data.bytes(len)?)?)))
    }

    /// Ends an event that is not started.
    fn doca_sync_event_destroy(event: In<SyncEvent>) {
        event.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in a create function; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(event.raw()) });
        Ok(())
    }

    /// Forgets a peer's event.
    fn doca_sync_event_remote_net_destroy(event: In<RemoteNet>) {
        event.get()?.retire();
        // SAFETY: made by `Box::into_raw` in the create function; the tag, now dead, lets this line be reached once.
        drop(unsafe { Box::from_raw(event.raw().cast_mut()) });
        Ok(())
    }

    /// Updated from this process.
    fn doca_sync_event_add_publisher_location_cpu(event: In<SyncEvent>, dev: In<Dev>) {
        event.get()?.add_publisher(Location::Cpu, Some(dev.get()?))
    }

    /// There is no DPA here.
    fn doca_sync_event_add_publisher_location_dpa(event: In<SyncEvent>, dpa: *const c_void) {
        event.get()?;
        accelerator(dpa)
    }

    /// There is no GPU here.
    fn doca_sync_event_add_publisher_location_gpu(event: In<SyncEvent>, gpu: *const c_void) {
        event.get()?;
        accelerator(gpu)
    }

    /// Updated from across PCI.
    fn doca_sync_event_add_publisher_location_remote_pci(event: In<SyncEvent>) {
        event.get()?.add_publisher(Location::RemotePci, None)
    }

    /// Updated from across the network.
    fn doca_sync_event_add_publisher_location_remote_net(event: In<SyncEvent>) {
        event.get()?.add_publisher(Location::RemoteNet, None)
    }

    /// Waited for in this process.
    fn doca_sync_event_add_subscriber_location_cpu(event: In<SyncEvent>, dev: In<Dev>) {
        event.get()?.add_subscriber(Location::Cpu, Some(dev.get()?))
    }

    /// There is no DPA here.
    fn doca_sync_event_add_subscriber_location_dpa(event: In<SyncEvent>, dpa: *const c_void) {
        event.get()?;
        accelerator(dpa)
    }

    /// There is no GPU here.
    fn doca_sync_event_add_subscriber_location_gpu(event: In<SyncEvent>, gpu: *const c_void) {
        event.get()?;
        accelerator(gpu)
    }

    /// Waited for across PCI.
    fn doca_sync_event_add_subscriber_location_remote_pci(event: In<SyncEvent>) {
        event.get()?.add_subscriber(Location::RemotePci, None)
    }

    /// Keeps the value at the program's address.
    fn doca_sync_event_set_addr(event: In<SyncEvent>, addr: *mut u64) {
        event.get()?.set_addr(addr as usize)
    }

    /// Keeps the value in the program's buffer.
    fn doca_sync_event_set_doca_buf(event: In<SyncEvent>, buf: In<Buf>) {
        event.get()?.set_buf(buf.get()?)
    }

    /// Starts the event for the blocking calls.
    fn doca_sync_event_start(event: In<SyncEvent>) {
        event.get()?.start()
    }

    /// Ends that.
    fn doca_sync_event_stop(event: In<SyncEvent>) {
        event.get()?.stop()
    }

    /// The event as a context; NULL once it was started the other way.
    fn doca_sync_event_as_ctx(event: In<SyncEvent>) -> *const Ctx = null(); {
        event.get().ok().and_then(SyncEvent::as_ctx).map_or(null(), std::ptr::from_ref)
    }

    /// A descriptor for across PCI.
    fn doca_sync_event_export_to_remote_pci(
        event: In<SyncEvent>, dev: In<Dev>, data: Out<*const u8>, size: Out<usize>,
    ) {
        hand_out(event.get()?.export_pci(dev.get()?), &data, &size)
    }

    /// A descriptor for across the network.
    fn doca_sync_event_export_to_remote_net(event: In<SyncEvent>, data: Out<*const u8>, size: Out<usize>) {
        hand_out(event.get()?.export_net(), &data, &size)
    }

    /// There is no DPA here.
    fn doca_sync_event_get_dpa_handle(event: In<SyncEvent>, dpa: *const c_void, handle: Out<u64>) {
        event.get()?;
        handle.check()?;
        accelerator(dpa)
    }

    /// There is no GPU here.
    fn doca_sync_event_get_gpu_handle(event: In<SyncEvent>, gpu: *const c_void, handle: Out<*mut u64>) {
        event.get()?;
        handle.check()?;
        accelerator(gpu)
    }

    /// There is no DPA here.
    fn doca_sync_event_remote_net_get_dpa_handle(event: In<RemoteNet>, dpa: *const c_void, handle: Out<u64>) {
        event.get()?;
        handle.check()?;
        accelerator(dpa)
    }

    /// There is no GPU here.
    fn doca_sync_event_remote_net_get_gpu_handle(event: In<RemoteNet>, gpu: *const c_void, handle: Out<u64>) {
        event.get()?;
        handle.check()?;
        accelerator(gpu)
    }

    /// The value.
    fn doca_sync_event_get(event: In<SyncEvent>, value: Out<u64>) {
        value.check()?;
        value.put(event.get()?.get()?)
    }

    /// Adds; gives the value before.
    fn doca_sync_event_update_add(event: In<SyncEvent>, value: u64, fetched: Out<u64>) {
        fetched.check()?;
        fetched.put(event.get()?.add(value)?)
    }

    /// Sets.
    fn doca_sync_event_update_set(event: In<SyncEvent>, value: u64) {
        event.get()?.set(value)
    }

    /// Blocks until the masked value is greater.
    fn doca_sync_event_wait_gt(event: In<SyncEvent>, value: u64, mask: u64) {
        event.get()?.wait(mask, false, |now| now > value)
    }

    /// The same, giving up the processor at each look.
    fn doca_sync_event_wait_gt_yield(event: In<SyncEvent>, value: u64, mask: u64) {
        event.get()?.wait(mask, true, |now| now > value)
    }

    /// Blocks until the masked value is equal.
    fn doca_sync_event_wait_eq(event: In<SyncEvent>, value: u64, mask: u64) {
        event.get()?.wait(mask, false, |now| now == value)
    }

    /// The same, giving up the processor at each look.
    fn doca_sync_event_wait_eq_yield(event: In<SyncEvent>, value: u64, mask: u64) {
        event.get()?.wait(mask, true, |now| now == value)
    }

    /// Blocks until the masked value is not equal.
    fn doca_sync_event_wait_neq(event: In<SyncEvent>, value: u64, mask: u64) {
        event.get()?.wait(mask, false, |now| now != value)
    }

    /// The same, giving up the processor at each look.
    fn doca_sync_event_wait_neq_yield(event: In<SyncEvent>, value: u64, mask: u64) {
        event.get()?.wait(mask, true, |now| now != value)
    }
}

macro_rules! capabilities {
    ($($name:ident |$device:ident| $has:expr;)*) => {
        entry! { $(
            /// SUCCESS if the device can, else NOT_SUPPORTED.
            fn $name(devinfo: In<Devinfo>) {
                capability(&devinfo, |$device| $has)
            }
        )* }
    };
}

capabilities! {
    doca_sync_event_cap_is_create_from_export_supported |device| device.mmap.create_from_export_pci;
    doca_sync_event_cap_is_export_to_remote_pci_supported |device| device.mmap.export_pci;
    doca_sync_event_cap_is_export_to_remote_net_supported |device| device.rdma.supported;
    doca_sync_event_cap_remote_net_is_create_from_export_supported |device| device.rdma.supported;
    doca_sync_event_cap_is_export_to_dpa_supported |_device| false;
    doca_sync_event_cap_is_export_to_gpu_supported |_device| false;
    doca_sync_event_cap_remote_net_is_export_to_dpa_supported |_device| false;
    doca_sync_event_cap_remote_net_is_export_to_gpu_supported |_device| false;
    doca_sync_event_cap_task_get_is_supported |_device| true;
    doca_sync_event_cap_task_notify_set_is_supported |_device| true;
    doca_sync_event_cap_task_notify_add_is_supported |_device| true;
    doca_sync_event_cap_task_wait_eq_is_supported |_device| true;
    doca_sync_event_cap_task_wait_neq_is_supported |_device| true;
}

macro_rules! kinds {
    ($($kind:ident $set_conf:ident $as_task:ident;)*) => {
        entry! { $(
            /// Configures the kind; NOT_PERMITTED unless IDLE.
            fn $set_conf(
                event: In<SyncEvent>, success: Option<TaskCallback>, failure: Option<TaskCallback>, count: u32,
            ) {
                let event = event.get()?;
                let (Some(success), Some(failure)) = (success, failure) else {
                    return Err(Code::INVALID_VALUE);
                };
                event.set_conf(Kind::$kind, Conf { success, failure, count })
            }
            /// The same pointer.
            fn $as_task(task: In<Task>) -> *const Task = null(); { task.raw() }
        )* }
    };
}

kinds! {
    Get doca_sync_event_task_get_set_conf doca_sync_event_task_get_as_doca_task;
    NotifySet doca_sync_event_task_notify_set_set_conf doca_sync_event_task_notify_set_as_doca_task;
    NotifyAdd doca_sync_event_task_notify_add_set_conf doca_sync_event_task_notify_add_as_doca_task;
    WaitEq doca_sync_event_task_wait_eq_set_conf doca_sync_event_task_wait_eq_as_doca_task;
    WaitNeq doca_sync_event_task_wait_neq_set_conf doca_sync_event_task_wait_neq_as_doca_task;
}

/// Setter and getter of a task's number.
macro_rules! numbers {
    ($($set:ident $get:ident => $field:ident;)*) => {
        entry! { $(
            /// For a task that the program owns.
            fn $set(task: In<Task>, value: u64) -> () = (); {
                if let Ok(task) = task.get()
                    && task.is_changeable()
                {
                    task.fields.$field.set(value);
                }
            }
            /// The value set last.
            fn $get(task: In<Task>) -> u64 = 0; { task.get().map_or(0, |task| task.fields.$field.get()) }
        )* }
    };
}

numbers! {
    doca_sync_event_task_notify_set_set_set_val doca_sync_event_task_notify_set_get_set_val => first;
    doca_sync_event_task_notify_add_set_inc_val doca_sync_event_task_notify_add_get_inc_val => first;
    doca_sync_event_task_wait_eq_set_wait_val doca_sync_event_task_wait_eq_get_wait_val => first;
    doca_sync_event_task_wait_eq_set_mask doca_sync_event_task_wait_eq_get_mask => second;
    doca_sync_event_task_wait_neq_set_wait_val doca_sync_event_task_wait_neq_get_wait_val => first;
    doca_sync_event_task_wait_neq_set_mask doca_sync_event_task_wait_neq_get_mask => second;
}

/// Setter and getter of the place for a task's result.
macro_rules! places {
    ($($set:ident $get:ident;)*) => {
        entry! { $(
            /// For a task that the program owns.
            fn $set(task: In<Task>, place: *mut u64) -> () = (); {
                if let Ok(task) = task.get()
                    && task.is_changeable()
                {
                    task.fields.pointer.set(place as usize);
                }
            }
            /// The value set last.
            fn $get(task: In<Task>) -> *mut u64 = std::ptr::null_mut(); {
                task.get().map_or(std::ptr::null_mut(), |task| task.fields.pointer.get() as *mut u64)
            }
        )* }
    };
}

places! {
    doca_sync_event_task_get_set_ret_val_ptr doca_sync_event_task_get_get_ret_val_ptr;
    doca_sync_event_task_notify_add_set_fetched_val_ptr doca_sync_event_task_notify_add_get_fetched_val_ptr;
}

fn allocate(
    event: &In<SyncEvent>,
    kind: Kind,
    user_data: u64,
    out: &Out<*const Task>,
    fill: impl FnOnce(&crate::task::Fields),
) -> Res {
    let event = event.get()?;
    out.check()?;
    let task = event.take_task(kind, user_data)?;
    // SAFETY: from the pool of a running event, which `event` keeps.
    fill(unsafe { &(*task).fields });
    out.put(task)
}

entry! {
    /// Reads the value to `place`.
    fn doca_sync_event_task_get_alloc_init(
        event: In<SyncEvent>, place: *mut u64, user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&event, Kind::Get, user_data, &task, |fields| fields.pointer.set(place as usize))
    }

    /// Sets the value.
    fn doca_sync_event_task_notify_set_alloc_init(
        event: In<SyncEvent>, value: u64, user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&event, Kind::NotifySet, user_data, &task, |fields| fields.first.set(value))
    }

    /// Adds to the value; the value before goes to `place`.
    fn doca_sync_event_task_notify_add_alloc_init(
        event: In<SyncEvent>, value: u64, place: *mut u64, user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&event, Kind::NotifyAdd, user_data, &task, |fields| {
            fields.first.set(value);
            fields.pointer.set(place as usize);
        })
    }

    /// Waits until the masked value is equal.
    fn doca_sync_event_task_wait_eq_alloc_init(
        event: In<SyncEvent>, value: u64, mask: u64, user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&event, Kind::WaitEq, user_data, &task, |fields| {
            fields.first.set(value);
            fields.second.set(mask);
        })
    }

    /// Waits until it is not.
    fn doca_sync_event_task_wait_neq_alloc_init(
        event: In<SyncEvent>, value: u64, mask: u64, user_data: u64, task: Out<*const Task>,
    ) {
        allocate(&event, Kind::WaitNeq, user_data, &task, |fields| {
            fields.first.set(value);
            fields.second.set(mask);
        })
    }
}
