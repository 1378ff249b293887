//! The exported functions, one file per public header.

pub mod argp;
pub mod buf;
pub mod buf_inventory;
pub mod buf_pool;
pub mod ctx;
pub mod dev;
pub mod dma;
pub mod error;
pub mod log;
pub mod mmap;
pub mod pe;
pub mod rdma;
pub mod rdma_bridge;
pub mod rdma_caps;
pub mod rdma_tasks;
pub mod rdmacm;
pub mod sta;
pub mod sta_event;
pub mod sta_io;
pub mod sta_setup;
pub mod sta_stats;
pub mod sync_event;
pub mod unsupported;
pub mod version;
