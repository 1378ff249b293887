//! `doca_rdma`: the object, its properties, and the making of connections.

use crate::raw::address::Addr;
use crate::raw::connection::Link;
use crate::values::{Mtu, TransportType};
use doca_common::raw::context::{Ctx, null};
use doca_common::raw::number;
use doca_common::{Access, Descriptor, Device, Error, Refusal, Result, call};
use doca_sys::{doca_mtu_size, doca_rdma, doca_rdma_transport_type};
use std::ptr::{self, NonNull};

/// A `doca_rdma`. Its owner destroys it while its context is idle, and asks it for nothing afterwards.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<doca_rdma>);

impl Handle {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let mut rdma = ptr::null_mut();
        // SAFETY: the device is open, and the out-parameter is a local.
        unsafe { call!(doca_rdma_create(device.as_raw(), &mut rdma)) }?;
        NonNull::new(rdma).map(Handle).ok_or_else(|| null("doca_rdma_create"))
    }

    pub(crate) fn as_ptr(&self) -> *mut doca_rdma {
        self.0.as_ptr()
    }

    pub(crate) fn context(&self) -> Result<Ctx> {
        // SAFETY: alive; the context belongs to it, and the owner destroys both as `Ctx::new` demands.
        unsafe { Ctx::new(doca_sys::doca_rdma_as_ctx(self.as_ptr())) }.ok_or_else(|| null("doca_rdma_as_ctx"))
    }

    /// Destroys the object, which must be idle.
    pub(crate) fn destroy(&self) -> Result<()> {
        // SAFETY: alive: its owner calls this once, or again after a refusal.
        unsafe { call!(doca_rdma_destroy(self.as_ptr())) }
    }

    /// Opens a connection slot; gives the connection and the peer's descriptor of it.
    pub(crate) fn export(&self) -> Result<(Link, Descriptor)> {
        const CALL: &str = "doca_rdma_export";
        let (mut bytes, mut len, mut connection) = (ptr::null(), 0, ptr::null_mut());
        // SAFETY: alive, and the out-parameters are locals.
        unsafe { call!(doca_rdma_export(self.as_ptr(), &mut bytes, &mut len, &mut connection)) }?;
        let link = Link::new(connection).ok_or_else(|| null(CALL))?;
        if bytes.is_null() {
            return Err(null(CALL));
        }
        // SAFETY: DOCA keeps `len` bytes there until the context stops; they are copied now.
        let descriptor = Descriptor::from(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) });
        Ok((link, descriptor))
    }

    /// Connects an exported connection with the peer's descriptor.
    pub(crate) fn connect(&self, link: Link, remote: &[u8]) -> Result<()> {
        const CALL: &str = "doca_rdma_connect";
        if remote.is_empty() {
            return Err(Error::refused(CALL, Refusal::Malformed).with("an empty descriptor"));
        }
        // SAFETY: alive, the connection too, and DOCA copies the bytes before it returns.
        unsafe {
            call!(doca_rdma_connect(self.as_ptr(), remote.as_ptr().cast(), remote.len(), link.as_ptr()))
        }
    }

    pub(crate) fn listen(&self, port: u16) -> Result<()> {
        // SAFETY: alive.
        unsafe { call!(doca_rdma_start_listen_to_port(self.as_ptr(), port)) }
    }

    pub(crate) fn stop_listening(&self, port: u16) -> Result<()> {
        // SAFETY: alive.
        unsafe { call!(doca_rdma_stop_listen_to_port(self.as_ptr(), port)) }
    }

    /// Begins to connect. The address must stay until the connection is over.
    pub(crate) fn connect_to(&self, address: &Addr, token: u64) -> Result<()> {
        // SAFETY: alive, and the caller keeps the address.
        unsafe { call!(doca_rdma_connect_to_addr(self.as_ptr(), address.as_ptr(), number(token))) }
    }
}

/// Setters and getters of properties, from one list.
macro_rules! properties {
    ($($set:ident $c_set:ident, $get:ident $c_get:ident: $type:ty as $c:ty, $into:expr, $from:expr;)*) => {
        impl Handle {
            $(
                pub(crate) fn $set(&self, value: $type) -> Result<()> {
                    let into: fn($type) -> $c = $into;
                    // SAFETY: alive; DOCA checks the value and the state.
                    unsafe { call!($c_set(self.as_ptr(), into(value))) }
                }

                pub(crate) fn $get(&self) -> Result<$type> {
                    let from: fn($c) -> $type = $from;
                    // SAFETY: zero is a value of these integers.
                    let mut value: $c = unsafe { std::mem::zeroed() };
                    // SAFETY: alive, and the out-parameter is a local.
                    unsafe { call!($c_get(self.as_ptr(), &mut value)) }.map(|()| from(value))
                }
            )*
        }
    };
}

properties! {
    set_send_queue_size doca_rdma_set_send_queue_size,
        send_queue_size doca_rdma_get_send_queue_size: u32 as u32, |v| v, |v| v;
    set_recv_queue_size doca_rdma_set_recv_queue_size,
        recv_queue_size doca_rdma_get_recv_queue_size: u32 as u32, |v| v, |v| v;
    set_max_send_buf_list_len doca_rdma_set_max_send_buf_list_len,
        max_send_buf_list_len doca_rdma_get_max_send_buf_list_len: u32 as u32, |v| v, |v| v;
    set_receive_buf_list_len doca_rdma_task_receive_set_dst_buf_list_len,
        receive_buf_list_len doca_rdma_task_receive_get_dst_buf_list_len: u32 as u32, |v| v, |v| v;
    set_transport_type doca_rdma_set_transport_type,
        transport_type doca_rdma_get_transport_type: TransportType as doca_rdma_transport_type,
        |v| v.to_c(), |v| TransportType::from_raw(v.0);
    set_mtu doca_rdma_set_mtu,
        mtu doca_rdma_get_mtu: Mtu as doca_mtu_size, |v| v.to_c(), |v| Mtu::from_raw(v.0);
    set_permissions doca_rdma_set_permissions,
        permissions doca_rdma_get_permissions: Access as u32, |v| v.bits(), Access::from_bits_retain;
    set_grh_enabled doca_rdma_set_grh_enabled,
        grh_enabled doca_rdma_get_grh_enabled: bool as u8, u8::from, |v| v != 0;
    set_gid_index doca_rdma_set_gid_index,
        gid_index doca_rdma_get_gid_index: u32 as u32, |v| v, |v| v;
    set_sl doca_rdma_set_sl,
        sl doca_rdma_get_sl: u32 as u32, |v| v, |v| v;
    set_connection_request_timeout doca_rdma_set_connection_request_timeout,
        connection_request_timeout doca_rdma_get_connection_request_timeout: u16 as u16, |v| v, |v| v;
    set_max_num_connections doca_rdma_set_max_num_connections,
        max_num_connections doca_rdma_get_max_num_connections: u16 as u16, |v| v, |v| v;
    set_rnr_retry_count doca_rdma_set_rnr_retry_count,
        rnr_retry_count doca_rdma_get_rnr_retry_count: u8 as u8, |v| v, |v| v;
}
