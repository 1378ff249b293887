//! `doca_rdma_cap_*`

use doca_common::caps::Value;
use doca_common::raw::check;
use doca_common::{DeviceInfo, Result, call};
use doca_sys::{doca_devinfo, doca_error_t, doca_rdma_gid, doca_rdma_transport_type};

/// Asks for a number.
///
/// # Safety
///
/// `query` is one of DOCA's queries of this shape.
pub(crate) unsafe fn number(
    call: &'static str,
    device: &DeviceInfo,
    query: unsafe extern "C" fn(*const doca_devinfo, *mut u32) -> doca_error_t,
) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the description is alive, the out-parameter is a local, and the caller vouches for the function.
    check(call, unsafe { query(device.as_raw(), &mut value) }).map(|()| value)
}

/// Asks whether something is supported, which the return code says.
///
/// # Safety
///
/// `query` is one of DOCA's queries of this shape.
pub(crate) unsafe fn supported(
    call: &'static str,
    device: &DeviceInfo,
    query: unsafe extern "C" fn(*const doca_devinfo) -> doca_error_t,
) -> Result<Value> {
    // SAFETY: the description is alive, and the caller vouches for the function.
    Value::from_code(check(call, unsafe { query(device.as_raw()) }))
}

pub(crate) fn transport(device: &DeviceInfo, transport: doca_rdma_transport_type) -> Result<Value> {
    // SAFETY: the description is alive.
    Value::from_code(unsafe { call!(doca_rdma_cap_transport_type_is_supported(device.as_raw(), transport)) })
}

pub(crate) fn receive_list_len(device: &DeviceInfo, transport: doca_rdma_transport_type) -> Result<Value> {
    let mut len = 0;
    // SAFETY: the description is alive and the out-parameter is a local.
    unsafe {
        call!(doca_rdma_cap_task_receive_get_max_dst_buf_list_len(device.as_raw(), transport, &mut len))
    }
    .map(|()| Value::Number(len.into()))
}

/// The whole GID table.
pub(crate) fn gids(device: &DeviceInfo) -> Result<Vec<[u8; 16]>> {
    let mut size = 0;
    // SAFETY: the description is alive and the out-parameter is a local.
    unsafe { call!(doca_rdma_cap_get_gid_table_size(device.as_raw(), &mut size)) }?;
    let mut gids = vec![doca_rdma_gid { raw: [0; 16] }; size as usize];
    if size > 0 {
        // SAFETY: the description is alive, and the array has `size` entries.
        unsafe { call!(doca_rdma_cap_get_gid(device.as_raw(), 0, size, gids.as_mut_ptr())) }?;
    }
    Ok(gids.into_iter().map(|gid| gid.raw).collect())
}

/// Questions that have a number or a yes as answer, one for each C function.
macro_rules! questions {
    ($($constant:ident, $name:literal, $shape:ident $function:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($function), "`")]
            pub const $constant: doca_common::caps::Capability =
                doca_common::caps::Capability::new($name, stringify!($function), |device| {
                    $crate::raw::caps::questions!(@ask $shape $function device)
                });
        )*
    };
    (@ask number $function:ident $device:ident) => {
        // SAFETY: the function has this shape, or this does not compile.
        unsafe { number(stringify!($function), $device, doca_sys::$function) }
            .map(|value| Value::Number(value.into()))
    };
    (@ask supported $function:ident $device:ident) => {
        // SAFETY: the function has this shape, or this does not compile.
        unsafe { supported(stringify!($function), $device, doca_sys::$function) }
    };
}
pub(crate) use questions;

questions! {
    MAX_SEND_QUEUE_SIZE, "rdma.max_send_queue_size", number doca_rdma_cap_get_max_send_queue_size;
    MAX_RECV_QUEUE_SIZE, "rdma.max_recv_queue_size", number doca_rdma_cap_get_max_recv_queue_size;
    MAX_SEND_BUF_LIST_LEN, "rdma.max_send_buf_list_len", number doca_rdma_cap_get_max_send_buf_list_len;
    MAX_MESSAGE_SIZE, "rdma.max_message_size", number doca_rdma_cap_get_max_message_size;
    GID_TABLE_SIZE, "rdma.gid_table_size", number doca_rdma_cap_get_gid_table_size;
    RECEIVE, "rdma.receive", supported doca_rdma_cap_task_receive_is_supported;
    SEND, "rdma.send", supported doca_rdma_cap_task_send_is_supported;
    SEND_IMM, "rdma.send_imm", supported doca_rdma_cap_task_send_imm_is_supported;
    READ, "rdma.read", supported doca_rdma_cap_task_read_is_supported;
    WRITE, "rdma.write", supported doca_rdma_cap_task_write_is_supported;
    WRITE_IMM, "rdma.write_imm", supported doca_rdma_cap_task_write_imm_is_supported;
    ATOMIC_CMP_SWP, "rdma.atomic_cmp_swp", supported doca_rdma_cap_task_atomic_cmp_swp_is_supported;
    ATOMIC_FETCH_ADD, "rdma.atomic_fetch_add", supported doca_rdma_cap_task_atomic_fetch_add_is_supported;
    SYNC_EVENT_GET, "rdma.remote_net_sync_event_get",
        supported doca_rdma_cap_task_remote_net_sync_event_get_is_supported;
    SYNC_EVENT_NOTIFY_SET, "rdma.remote_net_sync_event_notify_set",
        supported doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported;
    SYNC_EVENT_NOTIFY_ADD, "rdma.remote_net_sync_event_notify_add",
        supported doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported;
}
