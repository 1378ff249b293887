//! `doca_comch_server`, `doca_comch_client`: the two ends of the control path, their properties and registrations.

use crate::raw::connection::{self, Link};
use crate::raw::task;
use doca_common::raw::context::{Ctx, null};
use doca_common::{Device, Error, Refusal, Representor, Result, call};
use doca_sys::{doca_comch_client, doca_comch_server};
use std::ffi::CString;
use std::ptr::{self, NonNull};

/// One of the two. Its owner destroys it while its context is idle, and asks it for nothing afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Server(NonNull<doca_comch_server>),
    Client(NonNull<doca_comch_client>),
}

/// Calls the function of either end that does the same, inside `unsafe`.
macro_rules! either {
    ($end:expr, $server:ident, $client:ident $(, $argument:expr)*) => {
        match $end {
            End::Server(server) => call!($server(server.as_ptr() $(, $argument)*)),
            End::Client(client) => call!($client(client.as_ptr() $(, $argument)*)),
        }
    };
}
pub(crate) use either;

/// A name as C wants it.
fn c_name(call: &'static str, name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::refused(call, Refusal::Malformed).with("a name with a zero byte"))
}

impl End {
    pub(crate) fn server(device: &Device, representor: &Representor, name: &str) -> Result<Self> {
        const CALL: &str = "doca_comch_server_create";
        let name = c_name(CALL, name)?;
        let mut server = ptr::null_mut();
        // SAFETY: device and representor are open, the name is terminated, and the out-parameter is a local.
        unsafe {
            call!(doca_comch_server_create(device.as_raw(), representor.as_raw(), name.as_ptr(), &mut server))
        }?;
        NonNull::new(server).map(End::Server).ok_or_else(|| null(CALL))
    }

    pub(crate) fn client(device: &Device, name: &str) -> Result<Self> {
        const CALL: &str = "doca_comch_client_create";
        let name = c_name(CALL, name)?;
        let mut client = ptr::null_mut();
        // SAFETY: the device is open, the name is terminated, and the out-parameter is a local.
        unsafe { call!(doca_comch_client_create(device.as_raw(), name.as_ptr(), &mut client)) }?;
        NonNull::new(client).map(End::Client).ok_or_else(|| null(CALL))
    }

    pub(crate) fn context(self) -> Result<Ctx> {
        // SAFETY: alive; the context belongs to the end, and the owner destroys both as `Ctx::new` demands.
        unsafe {
            match self {
                End::Server(server) => Ctx::new(doca_sys::doca_comch_server_as_ctx(server.as_ptr()))
                    .ok_or_else(|| null("doca_comch_server_as_ctx")),
                End::Client(client) => Ctx::new(doca_sys::doca_comch_client_as_ctx(client.as_ptr()))
                    .ok_or_else(|| null("doca_comch_client_as_ctx")),
            }
        }
    }

    /// Destroys it; it must be idle.
    pub(crate) fn destroy(self) -> Result<()> {
        // SAFETY: alive: its owner calls this once, or again after a refusal.
        unsafe { either!(self, doca_comch_server_destroy, doca_comch_client_destroy) }
    }

    /// Makes this crate's callbacks hear of messages, connections and consumers.
    pub(crate) fn hear(self) -> Result<()> {
        // SAFETY: alive, and the callbacks have the types that DOCA wants.
        unsafe {
            either!(
                self,
                doca_comch_server_event_msg_recv_register,
                doca_comch_client_event_msg_recv_register,
                Some(connection::received)
            )?;
            either!(
                self,
                doca_comch_server_event_consumer_register,
                doca_comch_client_event_consumer_register,
                Some(connection::consumer_up),
                Some(connection::consumer_down)
            )?;
            if let End::Server(server) = self {
                call!(doca_comch_server_event_connection_status_changed_register(
                    server.as_ptr(),
                    Some(connection::connected),
                    Some(connection::disconnected)
                ))?;
            }
        }
        Ok(())
    }

    pub(crate) fn set_send_tasks(self, count: u32) -> Result<()> {
        // SAFETY: alive, and the callbacks have the type that DOCA wants.
        unsafe {
            either!(
                self,
                doca_comch_server_task_send_set_conf,
                doca_comch_client_task_send_set_conf,
                Some(task::sent),
                Some(task::sent),
                count
            )
        }
    }

    /// The connection of a client that runs.
    pub(crate) fn own_connection(self) -> Result<Link> {
        const CALL: &str = "doca_comch_client_get_connection";
        let End::Client(client) = self else { return Err(Error::refused(CALL, Refusal::NotConnected)) };
        let mut connection = ptr::null_mut();
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_comch_client_get_connection(client.as_ptr(), &mut connection)) }?;
        Link::new(connection).ok_or_else(|| null(CALL))
    }

    /// Ends a connection of a server; it is gone on success.
    pub(crate) fn disconnect(self, link: Link) -> Result<()> {
        const CALL: &str = "doca_comch_server_disconnect";
        let End::Server(server) = self else { return Err(Error::refused(CALL, Refusal::OtherContext)) };
        // SAFETY: both are alive: the table has valid connections only.
        unsafe { call!(doca_comch_server_disconnect(server.as_ptr(), link.as_ptr())) }
    }
}

/// Numbers that are set and read while idle, from one list.
macro_rules! properties {
    ($($set:ident $server_set:ident $client_set:ident, $get:ident $server_get:ident $client_get:ident;)*) => {
        impl End {
            $(
                pub(crate) fn $set(self, value: u32) -> Result<()> {
                    // SAFETY: alive; DOCA checks the value and the state.
                    unsafe { either!(self, $server_set, $client_set, value) }
                }

                pub(crate) fn $get(self) -> Result<u32> {
                    let mut value = 0;
                    // SAFETY: alive, and the out-parameter is a local.
                    unsafe { either!(self, $server_get, $client_get, &mut value) }.map(|()| value)
                }
            )*
        }
    };
}

properties! {
    set_max_msg_size doca_comch_server_set_max_msg_size doca_comch_client_set_max_msg_size,
        max_msg_size doca_comch_server_get_max_msg_size doca_comch_client_get_max_msg_size;
    set_recv_queue_size doca_comch_server_set_recv_queue_size doca_comch_client_set_recv_queue_size,
        recv_queue_size doca_comch_server_get_recv_queue_size doca_comch_client_get_recv_queue_size;
}
