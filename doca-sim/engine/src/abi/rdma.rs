//! `doca_rdma.h`: instance, properties, connections. (Tasks and capabilities have files of their own.)

use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::dev::Dev;
use crate::entry;
use crate::entry::{In, Out, Text};
use crate::rdma::{Addr, CmCallbacks, Connection, ConnectionCallback, Properties, Rdma, RequestCallback};
use crate::rdmacm::OwnedId;
use crate::rdmacm::layout::CmId;
use std::ffi::{c_char, c_void};
use std::rc::Rc;

entry! {
    /// An instance on an opened device.
    fn doca_rdma_create(dev: In<Dev>, rdma: Out<*const Rdma>) {
        rdma.check()?;
        rdma.put(Rc::into_raw(Rdma::new(dev.get()?)?))
    }

    /// BAD_STATE unless the context is IDLE.
    fn doca_rdma_destroy(rdma: In<Rdma>) {
        rdma.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_rdma_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(rdma.raw()) });
        Ok(())
    }

    /// The context.
    fn doca_rdma_as_ctx(rdma: In<Rdma>) -> *const Ctx = std::ptr::null(); {
        rdma.get().map_or(std::ptr::null(), |rdma| std::ptr::from_ref(rdma.ctx()))
    }

    /// A new connection and its descriptor.
    fn doca_rdma_export(
        rdma: In<Rdma>, blob: Out<*const u8>, len: Out<usize>, connection: Out<*const Connection>,
    ) {
        let rdma = rdma.get()?;
        blob.check()?;
        len.check()?;
        connection.check()?;
        let made = rdma.export()?;
        let bytes = made.descriptor.get().ok_or(Code::UNEXPECTED)?;
        blob.put(bytes.as_ptr())?;
        len.put(bytes.len())?;
        connection.put(Rc::as_ptr(&made))
    }

    /// Connects with the peer's descriptor.
    fn doca_rdma_connect(rdma: In<Rdma>, blob: In<u8>, len: usize, connection: In<Connection>) {
        let rdma = rdma.get()?;
        rdma.connect(blob.bytes(len)?, connection.get()?)
    }

    /// Listens on a port of the instance's device.
    fn doca_rdma_start_listen_to_port(rdma: In<Rdma>, port: u16) {
        rdma.get()?.listen(port)
    }

    /// Listens no more; connections stay.
    fn doca_rdma_stop_listen_to_port(rdma: In<Rdma>, port: u16) {
        rdma.get()?.stop_listening(port)
    }

    /// Asks a server for a connection.
    fn doca_rdma_connect_to_addr(rdma: In<Rdma>, addr: In<Addr>, data: u64) {
        rdma.get()?.connect_to(addr.get()?, data)
    }

    /// Accepts a client.
    fn doca_rdma_connection_accept(connection: In<Connection>, data: In<u8>, len: u8) {
        let data = if len == 0 { &[] } else { data.bytes(len.into())? };
        with_owner(&connection, |rdma, connection| rdma.accept(connection, data))
    }

    /// Rejects a client.
    fn doca_rdma_connection_reject(connection: In<Connection>) {
        with_owner(&connection, Rdma::reject)
    }

    /// Ends a connection.
    fn doca_rdma_connection_disconnect(connection: In<Connection>) {
        with_owner(&connection, Rdma::disconnect)
    }

    /// A connection for a client of the program's own listener. From here on the identifier is DOCA's, on failure too.
    fn doca_rdma_bridge_prepare_connection(
        rdma: In<Rdma>, cm_id: *mut CmId, connection: Out<*const Connection>,
    ) {
        let rdma = rdma.get()?;
        let id = OwnedId::take(cm_id).map_err(|_| Code::INVALID_VALUE)?;
        connection.check()?;
        connection.put(Rc::as_ptr(&rdma.bridge_prepare(id)?))
    }

    /// Accepts that client.
    fn doca_rdma_bridge_accept(rdma: In<Rdma>, data: In<u8>, len: u8, connection: In<Connection>) {
        let data = if len == 0 { &[] } else { data.bytes(len.into())? };
        rdma.get()?.bridge_accept(connection.get()?, data)
    }

    /// That client has confirmed.
    fn doca_rdma_bridge_established(rdma: In<Rdma>, connection: In<Connection>) {
        rdma.get()?.bridge_established(connection.get()?)
    }

    /// The program's word.
    fn doca_rdma_connection_set_user_data(connection: In<Connection>, data: u64) {
        connection.get()?.user_data.set(data);
        Ok(())
    }

    /// The program's word.
    fn doca_rdma_connection_get_user_data(connection: In<Connection>, data: Out<u64>) {
        data.put(connection.get()?.user_data.get())
    }

    /// A small number, from 0.
    fn doca_rdma_connection_get_id(connection: In<Connection>, id: Out<u32>) {
        id.put(connection.get()?.id().index)
    }

    /// The address of an RDMA CM connection, the library's on the server and the program's on the client.
    fn doca_rdma_connection_get_addr(connection: In<Connection>, addr: Out<*const Addr>) {
        let connection = connection.get()?;
        let own = connection.own_addr.get().map(|addr| std::ptr::from_ref(&**addr));
        let found = own.unwrap_or(connection.program_addr.get());
        addr.check()?;
        if found.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        addr.put(found)
    }

    /// An address to connect to.
    fn doca_rdma_addr_create(kind: u32, text: Text, port: u16, addr: Out<*mut Addr>) {
        addr.check()?;
        addr.put(Box::into_raw(Box::new(Addr::new(kind, text.get()?, port)?)))
    }

    /// BAD_STATE while a connection uses it.
    fn doca_rdma_addr_destroy(addr: In<Addr>) {
        addr.get()?.retire()?;
        // SAFETY: made by `Box::into_raw` in doca_rdma_addr_create; the tag, now dead, lets this line be reached once.
        // (Addresses of the library are not the program's to destroy.)
        drop(unsafe { Box::from_raw(addr.raw().cast_mut()) });
        Ok(())
    }

    /// What the address was made of.
    fn doca_rdma_addr_get_params(addr: In<Addr>, kind: Out<u32>, text: Out<*const c_char>, port: Out<u16>) {
        let addr = addr.get()?;
        kind.check()?;
        text.check()?;
        port.check()?;
        kind.put(addr.kind() as u32)?;
        port.put(addr.port())?;
        text.put(addr.text().as_ptr())
    }

    /// Who is told of RDMA CM events; a pure client needs no request callback.
    fn doca_rdma_set_connection_state_callbacks(
        rdma: In<Rdma>,
        request: Option<RequestCallback>,
        established: Option<ConnectionCallback>,
        failure: Option<ConnectionCallback>,
        disconnection: Option<ConnectionCallback>,
    ) {
        let rdma = rdma.get()?;
        let (Some(established), Some(failure), Some(disconnection)) = (established, failure, disconnection) else {
            return Err(Code::INVALID_VALUE);
        };
        rdma.set_cm_callbacks(CmCallbacks { request, established, failure, disconnection })
    }

    /// Only the GPU and DPA data paths have one.
    fn doca_rdma_set_recv_queue_size(rdma: In<Rdma>, size: u32) {
        let _ = size;
        rdma.get()?;
        Err(Code::NOT_SUPPORTED)
    }

    /// Only the GPU and DPA data paths have one.
    fn doca_rdma_get_recv_queue_size(rdma: In<Rdma>, size: Out<u32>) {
        rdma.get()?;
        size.check()?;
        Err(Code::NOT_SUPPORTED)
    }

    /// The context is never on a DPA.
    fn doca_rdma_get_dpa_handle(rdma: In<Rdma>, handle: Out<u64>) {
        rdma.get()?;
        handle.check()?;
        Err(Code::BAD_STATE)
    }

    /// The context is never on a GPU.
    fn doca_rdma_get_gpu_handle(rdma: In<Rdma>, handle: Out<*mut c_void>) {
        rdma.get()?;
        handle.check()?;
        Err(Code::BAD_STATE)
    }

    /// There is no DPA here.
    fn doca_rdma_dpa_completion_attach(rdma: In<Rdma>, completion: *mut c_void) {
        rdma.get()?.ctx().require_idle()?;
        if completion.is_null() { Err(Code::INVALID_VALUE) } else { Err(Code::NOT_SUPPORTED) }
    }
}

fn with_owner(connection: &In<Connection>, act: impl FnOnce(&Rdma, &Connection) -> Res) -> Res {
    let connection = connection.get()?;
    let rdma = connection.owner().upgrade().ok_or(Code::BAD_STATE)?;
    act(&rdma, connection)
}

/// A setter, allowed in IDLE only, and its getter.
macro_rules! property {
    ($($set:ident $get:ident $ty:ty => $cell:ident, |$p:ident, $device:ident, $value:ident| $check:expr;)*) => {
        entry! { $(
            /// Sets the property; BAD_STATE unless IDLE.
            fn $set(rdma: In<Rdma>, value: $ty) {
                let rdma = rdma.get()?;
                rdma.ctx().require_idle()?;
                let set = |$p: &Properties, $device, $value: $ty| -> Res { $check };
                set(&rdma.properties, rdma.device(), value)
            }
            /// The value in use.
            fn $get(rdma: In<Rdma>, value: Out<$ty>) {
                value.put(rdma.get()?.properties.$cell.get())
            }
        )* }
    };
}

property! {
    doca_rdma_set_send_queue_size doca_rdma_get_send_queue_size u32 => send_queue_size,
        |p, device, v| p.set_send_queue_size(device, v);
    doca_rdma_set_max_send_buf_list_len doca_rdma_get_max_send_buf_list_len u32 => max_send_buf_list_len,
        |p, device, v| p.set_max_send_buf_list_len(device, v);
    doca_rdma_task_receive_set_dst_buf_list_len doca_rdma_task_receive_get_dst_buf_list_len u32
        => recv_buf_list_len, |p, device, v| p.set_recv_buf_list_len(device, v);
    doca_rdma_set_transport_type doca_rdma_get_transport_type u32 => transport,
        |p, device, v| p.set_transport(device, v);
    doca_rdma_set_mtu doca_rdma_get_mtu u32 => mtu, |p, device, v| p.set_mtu(device, v);
    doca_rdma_set_permissions doca_rdma_get_permissions u32 => permissions, |p, _device, v| p.set_permissions(v);
    doca_rdma_set_grh_enabled doca_rdma_get_grh_enabled u8 => grh, |p, device, v| p.set_grh(device, v);
    doca_rdma_set_gid_index doca_rdma_get_gid_index u32 => gid_index, |p, device, v| p.set_gid_index(device, v);
    doca_rdma_set_sl doca_rdma_get_sl u32 => sl, |p, _device, v| p.set_sl(v);
    doca_rdma_set_connection_request_timeout doca_rdma_get_connection_request_timeout u16
        => connection_request_timeout, |p, _device, v| { p.connection_request_timeout.set(v); Ok(()) };
    doca_rdma_set_max_num_connections doca_rdma_get_max_num_connections u16
        => max_num_connections, |p, _device, v| p.set_max_num_connections(v);
    doca_rdma_set_rnr_retry_count doca_rdma_get_rnr_retry_count u8
        => rnr_retry_count, |p, _device, v| p.set_rnr_retry_count(v);
}
