//! `doca_sta_cap_is_supported`, `doca_sta_get_max_*`, `doca_sta_get_min_*`, `doca_sta_is_logical_block_size_supported`

use super::sta::Idle;
use doca_common::caps::Value;
use doca_common::raw::check;
use doca_common::{DeviceInfo, Result, call};
use doca_sys::{doca_error_t, doca_sta};

/// NOT_SUPPORTED unless the device can control a target.
fn require(device: &DeviceInfo) -> Result<()> {
    // SAFETY: the description is alive.
    unsafe { call!(doca_sta_cap_is_supported(device.as_raw())) }
}

pub(crate) fn block_size(device: &DeviceInfo, size: u32) -> Result<bool> {
    require(device)?;
    // SAFETY: takes a number, and needs nothing.
    Ok(unsafe { doca_sys::doca_sta_is_logical_block_size_supported(size) })
}

/// Asks for a limit that needs no context.
///
/// # Safety
///
/// `query` is one of DOCA's queries of this shape.
unsafe fn library(
    call: &'static str,
    device: &DeviceInfo,
    query: unsafe extern "C" fn(*mut u32) -> doca_error_t,
) -> Result<Value> {
    require(device)?;
    let mut limit = 0;
    // SAFETY: the out-parameter is a local, and the caller vouches for the function.
    check(call, unsafe { query(&mut limit) }).map(|()| Value::Number(limit.into()))
}

/// Asks for a limit of a context.
///
/// # Safety
///
/// `query` is one of DOCA's queries of this shape.
unsafe fn context<T: Default + Into<u64>>(
    call: &'static str,
    device: &DeviceInfo,
    query: unsafe extern "C" fn(*const doca_sta, *mut T) -> doca_error_t,
) -> Result<Value> {
    require(device)?;
    let sta = Idle::new(device)?;
    let mut limit = T::default();
    // SAFETY: the context is alive, the out-parameter is a local, and the caller vouches for the function.
    check(call, unsafe { query(sta.as_ptr(), &mut limit) }).map(|()| Value::Number(limit.into()))
}

/// Questions about the device, with a yes or a number as answer, one for each C function.
macro_rules! questions {
    ($($(#[$what:meta])* $constant:ident, $name:literal, $shape:ident $function:ident;)*) => {
        $(
            $(#[$what])*
            #[doc = ""]
            #[doc = concat!("C: `", stringify!($function), "`")]
            pub const $constant: doca_common::caps::Capability =
                doca_common::caps::Capability::new($name, stringify!($function), |device| {
                    questions!(@ask $shape $function device)
                });
        )*
    };
    (@ask supported $function:ident $device:ident) => {
        Value::from_code(require($device))
    };
    (@ask $shape:ident $function:ident $device:ident) => {
        // SAFETY: the function has this shape, or this does not compile.
        unsafe { $shape(stringify!($function), $device, doca_sys::$function) }
    };
}

questions! {
    /// Whether the device can control a storage target.
    SUPPORTED, "sta.supported", supported doca_sta_cap_is_supported;
    /// Devices that can be added to a context, for connections to be on.
    DEVS, "sta.devs", library doca_sta_get_max_devs;
    /// Execution units of the adapter, of all types.
    NUM_EUS_AVAILABLE, "sta.num_eus_available", context doca_sta_get_max_num_eus_available;
    /// Connections that one execution unit serves.
    NUM_CONNECTED_QP_PER_EU, "sta.num_connected_qp_per_eu", context doca_sta_get_max_num_connected_qp_per_eu;
    /// Subsystems.
    SUBSYS, "sta.subsys", library doca_sta_get_max_subsys;
    /// Namespaces of a subsystem.
    NS_PER_SUBS, "sta.ns_per_subs", library doca_sta_get_max_ns_per_subs;
    /// Connections, each of which is a queue pair.
    QPS, "sta.qps", library doca_sta_get_max_qps;
    /// IO contexts, each progressed by one thread, that a context can be configured for.
    IO_THREADS, "sta.io_threads", library doca_sta_get_max_io_threads;
    /// IO contexts of a context that has not been configured.
    STA_IO, "sta.sta_io", context doca_sta_get_max_sta_io;
    /// Data of one command, bytes.
    IO_SIZE, "sta.io_size", library doca_sta_get_max_io_size;
    /// Commands that one execution unit holds at a time, in spite of the name.
    IO_NUM_PER_DEV, "sta.io_num_per_dev", context doca_sta_get_max_io_num_per_dev;
    /// Commands in the queue of one connection.
    IO_QUEUE_SIZE, "sta.io_queue_size", context doca_sta_get_max_io_queue_size;
    /// Smallest capsule of a command, bytes; NVMe's own IOCCSZ counts 16 bytes as one.
    MIN_IOCCSZ, "sta.min_ioccsz", library doca_sta_get_min_ioccsz;
    /// Largest capsule of a command with data inside, bytes.
    MAX_IOCCSZ, "sta.max_ioccsz", library doca_sta_get_max_ioccsz;
    /// Smallest capsule of a response, bytes.
    MIN_IORCSZ, "sta.min_iorcsz", library doca_sta_get_min_iorcsz;
    /// Largest capsule of a response, bytes.
    MAX_IORCSZ, "sta.max_iorcsz", library doca_sta_get_max_iorcsz;
    /// Largest offset of data in a capsule. DOCA does not say in which unit; 0 is the only one that Linux takes.
    ICDOFF, "sta.icdoff", library doca_sta_get_max_icdoff;
    /// Back ends, each of which is a disk.
    BE, "sta.be", library doca_sta_get_max_be;
    /// Queues of a back end.
    QS_PER_BE, "sta.qs_per_be", library doca_sta_get_max_qs_per_be;
}
