//! `doca_comch_cap_*`, `doca_comch_consumer_cap_*`, `doca_comch_producer_cap_*`

use doca_common::caps::Value;
use doca_common::raw::check;
use doca_common::{DeviceInfo, Result};
use doca_sys::{doca_devinfo, doca_error_t};

/// Asks for a number.
///
/// # Safety
///
/// `query` is one of DOCA's queries of this shape.
unsafe fn number(
    call: &'static str,
    device: &DeviceInfo,
    query: unsafe extern "C" fn(*const doca_devinfo, *mut u32) -> doca_error_t,
) -> Result<Value> {
    let mut value = 0;
    // SAFETY: the description is alive, the out-parameter is a local, and the caller vouches for the function.
    check(call, unsafe { query(device.as_raw(), &mut value) }).map(|()| Value::Number(value.into()))
}

/// Asks whether something is supported, which the return code says.
///
/// # Safety
///
/// `query` is one of DOCA's queries of this shape.
unsafe fn supported(
    call: &'static str,
    device: &DeviceInfo,
    query: unsafe extern "C" fn(*const doca_devinfo) -> doca_error_t,
) -> Result<Value> {
    // SAFETY: the description is alive, and the caller vouches for the function.
    Value::from_code(check(call, unsafe { query(device.as_raw()) }))
}

/// Questions that have a number or a yes as answer, one for each C function, and the list of all.
macro_rules! questions {
    ($($(#[$what:meta])* $constant:ident, $name:literal, $shape:ident $function:ident;)*) => {
        $(
            $(#[$what])*
            #[doc = ""]
            #[doc = concat!("C: `", stringify!($function), "`")]
            pub const $constant: doca_common::caps::Capability =
                doca_common::caps::Capability::new($name, stringify!($function), |device| {
                    // SAFETY: the function has this shape, or this does not compile.
                    unsafe { $shape(stringify!($function), device, doca_sys::$function) }
                });
        )*

        /// All questions.
        pub const ALL: &[doca_common::caps::Capability] = &[$($constant,)*];
    };
}

questions! {
    /// Whether the device can have servers: on a DPU.
    SERVER, "comch.server", supported doca_comch_cap_server_is_supported;
    /// Whether the device can have clients: on the host.
    CLIENT, "comch.client", supported doca_comch_cap_client_is_supported;
    /// Longest name of a server, bytes; the C string's last byte, which is zero, counts.
    MAX_NAME_LEN, "comch.max_name_len", number doca_comch_cap_get_max_name_len;
    /// Largest message of the control path, bytes.
    MAX_MSG_SIZE, "comch.max_msg_size", number doca_comch_cap_get_max_msg_size;
    /// Deepest receive queue of the control path, messages.
    MAX_RECV_QUEUE_SIZE, "comch.max_recv_queue_size", number doca_comch_cap_get_max_recv_queue_size;
    /// Clients of one server.
    MAX_CLIENTS, "comch.max_clients", number doca_comch_cap_get_max_clients;
    /// Messages that one server or client can have on their way.
    MAX_SEND_TASKS, "comch.max_send_tasks", number doca_comch_cap_get_max_send_tasks;
    /// Whether connections can have consumers.
    CONSUMER, "comch.consumer", supported doca_comch_consumer_cap_is_supported;
    /// Consumers of one connection.
    MAX_CONSUMERS, "comch.max_consumers", number doca_comch_consumer_cap_get_max_consumers;
    /// Receives that one consumer can have posted.
    CONSUMER_MAX_NUM_TASKS, "comch.consumer_max_num_tasks", number doca_comch_consumer_cap_get_max_num_tasks;
    /// Largest buffer of a consumer, bytes.
    CONSUMER_MAX_BUF_SIZE, "comch.consumer_max_buf_size", number doca_comch_consumer_cap_get_max_buf_size;
    /// Buffers in the chain of a receive.
    CONSUMER_MAX_BUF_LIST_LEN, "comch.consumer_max_buf_list_len",
        number doca_comch_consumer_cap_get_max_buf_list_len;
    /// Immediate data of one message, bytes.
    MAX_IMM_DATA_LEN, "comch.max_imm_data_len", number doca_comch_consumer_cap_get_max_imm_data_len;
    /// Whether connections can have producers.
    PRODUCER, "comch.producer", supported doca_comch_producer_cap_is_supported;
    /// Producers of one connection.
    MAX_PRODUCERS, "comch.max_producers", number doca_comch_producer_cap_get_max_producers;
    /// Messages that one producer can have on their way.
    PRODUCER_MAX_NUM_TASKS, "comch.producer_max_num_tasks", number doca_comch_producer_cap_get_max_num_tasks;
    /// Largest buffer of a producer, bytes.
    PRODUCER_MAX_BUF_SIZE, "comch.producer_max_buf_size", number doca_comch_producer_cap_get_max_buf_size;
    /// Buffers in the chain of a message.
    PRODUCER_MAX_BUF_LIST_LEN, "comch.producer_max_buf_list_len",
        number doca_comch_producer_cap_get_max_buf_list_len;
}
