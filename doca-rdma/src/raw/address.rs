//! `doca_rdma_addr`

use doca_common::{Error, Refusal, Result, call};
use doca_sys::{doca_rdma_addr, doca_rdma_addr_type};
use std::ffi::CString;
use std::ptr::{self, NonNull};

/// An address that a connection may use. It outlives the connection, or is leaked.
#[derive(Debug)]
pub(crate) struct Addr(NonNull<doca_rdma_addr>);

impl Addr {
    pub(crate) fn new(kind: doca_rdma_addr_type, text: &str, port: u16) -> Result<Self> {
        const CALL: &str = "doca_rdma_addr_create";
        let text = CString::new(text).map_err(|_| Error::refused(CALL, Refusal::Malformed))?;
        let mut addr = ptr::null_mut();
        // SAFETY: the text is terminated, and the out-parameter is a local.
        unsafe { call!(doca_rdma_addr_create(kind, text.as_ptr(), port, &mut addr)) }?;
        NonNull::new(addr).map(Addr).ok_or_else(|| doca_common::raw::context::null(CALL))
    }

    pub(crate) fn as_ptr(&self) -> *mut doca_rdma_addr {
        self.0.as_ptr()
    }
}

impl Drop for Addr {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once. A connection that still uses it makes DOCA refuse, and then it leaks.
        if let Err(error) = unsafe { call!(doca_rdma_addr_destroy(self.as_ptr())) } {
            log::warn!("{error}: an address is leaked");
        }
    }
}
