//! `doca_rdma_connection`, and the callbacks that tell how connections come and go.

use crate::connection::ConnectionId;
use crate::instance::Instance;
use crate::raw::rdma::Handle;
use crate::run::Run;
use doca_common::engine::Core;
use doca_common::raw::{as_number, current, number};
use doca_common::{Result, call};
use doca_sys::{doca_data, doca_rdma_connection};
use std::any::Any;
use std::ptr::{self, NonNull};
use std::rc::Rc;

/// A connection in C. It is valid until its disconnection or failure was told, or its context is idle; its entry in
/// the table forgets it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(NonNull<doca_rdma_connection>);

impl Link {
    pub(crate) fn new(connection: *mut doca_rdma_connection) -> Option<Self> {
        NonNull::new(connection).map(Link)
    }

    pub(crate) fn as_ptr(self) -> *mut doca_rdma_connection {
        self.0.as_ptr()
    }

    /// Makes callbacks and results name the entry in the table.
    pub(crate) fn address_to(self, id: ConnectionId) -> Result<()> {
        // SAFETY: the table has valid connections only.
        unsafe { call!(doca_rdma_connection_set_user_data(self.as_ptr(), number(id.to_bits()))) }
    }

    pub(crate) fn disconnect(self) -> Result<()> {
        // SAFETY: the table has valid connections only.
        unsafe { call!(doca_rdma_connection_disconnect(self.as_ptr())) }
    }

    pub(crate) fn accept(self, data: &[u8]) -> Result<()> {
        let bytes = if data.is_empty() { ptr::null_mut() } else { data.as_ptr().cast_mut().cast() };
        // SAFETY: valid, in its request callback; DOCA only reads the bytes, before it returns. Their number was
        // checked to fit when the decision was made.
        unsafe { call!(doca_rdma_connection_accept(self.as_ptr(), bytes, data.len() as u8)) }
    }

    pub(crate) fn reject(self) -> Result<()> {
        // SAFETY: valid, in its request callback.
        unsafe { call!(doca_rdma_connection_reject(self.as_ptr())) }
    }

    /// DOCA's own number of the connection.
    pub(crate) fn number(self) -> Result<u32> {
        let mut id = 0;
        // SAFETY: valid, and the out-parameter is a local.
        unsafe { call!(doca_rdma_connection_get_id(self.as_ptr(), &mut id)) }.map(|()| id)
    }

    /// The port of its address: on a server the one that was listened on.
    pub(crate) fn port(self) -> Result<u16> {
        let (mut addr, mut port) = (ptr::null_mut(), 0);
        let (mut kind, mut text) = (doca_sys::doca_rdma_addr_type(0), ptr::null());
        // SAFETY: valid; DOCA owns the address and its text, of which only the port is kept.
        unsafe {
            call!(doca_rdma_connection_get_addr(self.as_ptr(), &mut addr))?;
            call!(doca_rdma_addr_get_params(addr, &mut kind, &mut text, &mut port))?;
        }
        Ok(port)
    }
}

/// The entry that a connection names by its user data, as [`ConnectionId::to_bits`] gave it.
///
/// # Safety
///
/// `connection` is null or valid.
#[inline]
pub(crate) unsafe fn name_of(connection: *const doca_rdma_connection) -> Option<u64> {
    if connection.is_null() {
        return None;
    }
    let mut data = number(0);
    // SAFETY: valid, as the caller says, and the out-parameter is a local.
    unsafe { call!(doca_rdma_connection_get_user_data(connection, &mut data)) }.ok()?;
    Some(as_number(data))
}

impl Handle {
    /// Makes the callbacks below hear of connections.
    pub(crate) fn hear_of_connections(&self) -> Result<()> {
        // SAFETY: alive, and the callbacks have the types that DOCA wants.
        unsafe {
            call!(doca_rdma_set_connection_state_callbacks(
                self.as_ptr(),
                Some(requested),
                Some(established),
                Some(failed),
                Some(disconnected)
            ))
        }
    }
}

/// Finds the run that a callback belongs to.
pub(crate) fn with_run(context: doca_data, body: impl FnOnce(&Core, &Rc<Run>)) {
    current::member(as_number(context), |core, member| {
        if let Some(run) = (member as &dyn Any).downcast_ref::<Instance>().and_then(Instance::run) {
            body(core, &run);
        }
    });
}

unsafe extern "C" fn requested(connection: *mut doca_rdma_connection, context: doca_data) {
    let Some(link) = Link::new(connection) else { return };
    let mut decided = false;
    with_run(context, |core, run| {
        core.mark();
        run.requested(link, &mut decided);
    });
    if !decided && let Err(error) = link.reject() {
        log::warn!("{error}");
    }
}

unsafe extern "C" fn established(connection: *mut doca_rdma_connection, data: doca_data, context: doca_data) {
    with_run(context, |core, run| {
        core.mark();
        run.established(ConnectionId::from_bits(as_number(data)), Link::new(connection));
    });
}

unsafe extern "C" fn failed(_connection: *mut doca_rdma_connection, data: doca_data, context: doca_data) {
    with_run(context, |core, run| {
        core.mark();
        run.failed(ConnectionId::from_bits(as_number(data)));
    });
}

unsafe extern "C" fn disconnected(
    connection: *mut doca_rdma_connection,
    data: doca_data,
    context: doca_data,
) {
    with_run(context, |core, run| {
        core.mark();
        run.disconnected(ConnectionId::from_bits(as_number(data)));
    });
    if let Some(link) = Link::new(connection) {
        // The acknowledgement that NVIDIA's programs give; libraries that need none may refuse it.
        let _ = link.disconnect();
    }
}
