//! `doca_rdma_bridge_*` of an instance: connections that a program accepts by its own librdmacm loop.

use crate::raw::connection::Link;
use crate::raw::rdma::Handle;
use doca_common::raw::context::null;
use doca_common::{Error, Refusal, Result, call};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// An identifier of librdmacm (`struct rdma_cm_id`) with a connection request, which DOCA can take over. Dropping it
/// does nothing: whoever has it back must end it by librdmacm.
#[derive(Debug)]
pub struct CmId(NonNull<doca_sys::rdma_cm_id>);

impl CmId {
    /// Takes an identifier out of the hands of the program. Null gives `None`.
    ///
    /// # Safety
    ///
    /// `id` points to a `struct rdma_cm_id` of the librdmacm that DOCA uses, which came with
    /// `RDMA_CM_EVENT_CONNECT_REQUEST` and was neither answered nor destroyed. From now on the program does neither,
    /// unless it has it back by [`into_raw`](Self::into_raw). The event channel that it reports to outlives it.
    pub unsafe fn from_raw(id: *mut c_void) -> Option<Self> {
        NonNull::new(id).map(|id| CmId(id.cast()))
    }

    /// Gives it back to the program.
    pub fn into_raw(self) -> *mut c_void {
        self.0.as_ptr().cast()
    }
}

impl Handle {
    /// Makes a connection of a request. The identifier is DOCA's afterwards, in any case.
    pub(crate) fn bridge_prepare(&self, id: CmId) -> Result<Link> {
        const CALL: &str = "doca_rdma_bridge_prepare_connection";
        let mut connection = ptr::null_mut();
        // SAFETY: alive; the identifier is as `from_raw` demands and given away here; the out-parameter is a local.
        unsafe { call!(doca_rdma_bridge_prepare_connection(self.as_ptr(), id.0.as_ptr(), &mut connection)) }?;
        Link::new(connection).ok_or_else(|| null(CALL))
    }

    /// Accepts the request of a connection that was prepared.
    pub(crate) fn bridge_accept(&self, link: Link, data: &[u8]) -> Result<()> {
        const CALL: &str = "doca_rdma_bridge_accept";
        let len = u8::try_from(data.len()).map_err(|_| {
            let text = format!("{} bytes of private data, 255 at most", data.len());
            Error::refused(CALL, Refusal::TooLong).with(text)
        })?;
        let bytes = if data.is_empty() { ptr::null_mut() } else { data.as_ptr().cast_mut().cast() };
        // SAFETY: alive, the connection too; DOCA only reads the bytes, before it returns.
        unsafe { call!(doca_rdma_bridge_accept(self.as_ptr(), bytes, len, link.as_ptr())) }
    }

    /// Tells that librdmacm established a connection that was accepted.
    pub(crate) fn bridge_established(&self, link: Link) -> Result<()> {
        // SAFETY: alive, the connection too.
        unsafe { call!(doca_rdma_bridge_established(self.as_ptr(), link.as_ptr())) }
    }
}
