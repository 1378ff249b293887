//! Types of other projects that DOCA's functions take by pointer. Their bindings are not this crate's business:
//! cast pointers from whichever bindings of libc and rdma-core the program uses.

use std::marker::{PhantomData, PhantomPinned};

/// What only pointers can be had to: neither moved, shared nor sent by Rust code.
type Opaque = PhantomData<(*mut u8, PhantomPinned)>;

/// `FILE` of the C library, an output stream.
#[repr(C)]
#[derive(Debug)]
pub struct FILE {
    nothing: [u8; 0],
    opaque: Opaque,
}

/// `struct ibv_pd` of libibverbs, a protection domain.
#[allow(non_camel_case_types, reason = "the C name")]
#[repr(C)]
#[derive(Debug)]
pub struct ibv_pd {
    nothing: [u8; 0],
    opaque: Opaque,
}

/// `struct rdma_cm_id` of librdmacm, a connection identifier.
#[allow(non_camel_case_types, reason = "the C name")]
#[repr(C)]
#[derive(Debug)]
pub struct rdma_cm_id {
    nothing: [u8; 0],
    opaque: Opaque,
}
