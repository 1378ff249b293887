//! The smallest way in for who has a C program already: cargo builds and links it, Rust calls it.
//!
//! ```sh
//! cargo run -p c_shim                                    # our own program: the devices of this machine
//! C_SHIM_SOURCES=/path/to/program.c cargo run -p c_shim -- ARGS
//! ```
//!
//! The variables are those of `build.rs`. A sample that comes with DOCA has several files and reads its command line
//! with `doca_argp`:
//!
//! ```sh
//! S=/opt/mellanox/doca/samples
//! C_SHIM_SOURCES=$S/doca_rdma/rdma_send/rdma_send_main.c:$S/doca_rdma/rdma_send/rdma_send_sample.c:$S/doca_rdma/rdma_common.c:$S/common.c \
//! C_SHIM_INCLUDE=$S:$S/doca_rdma C_SHIM_LIBS=doca_argp cargo run -p c_shim -- -d mlx5_0
//! ```

// Nothing of it is called here, but it brings the libraries.
use doca_sys as _;
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::process::exit;
use std::ptr;

unsafe extern "C" {
    /// The program's `main`.
    fn c_shim_entry(argc: c_int, argv: *mut *mut c_char) -> c_int;
}

fn main() {
    let words = std::env::args_os().map(|word| CString::new(word.into_vec()).expect("words end at a NUL"));
    // Given away for good, as those of a C program are.
    let mut argv: Vec<*mut c_char> = words.map(CString::into_raw).collect();
    let argc = c_int::try_from(argv.len()).expect("so many words fit on no command line");
    argv.push(ptr::null_mut());
    // SAFETY: what `main` is promised: so many strings that can be written, and a NULL behind them.
    exit(unsafe { c_shim_entry(argc, argv.as_mut_ptr()) })
}
