//! Raw bindings to NVIDIA DOCA, generated from the headers that are installed.
//!
//! Functions, types and constants have their C names; enums are newtypes over integers with associated
//! constants, so that a value of a later release is a value like any other. What the headers define inline, and
//! libraries therefore do not export, is rewritten in Rust. The safe crates `doca-common`,
//! `doca-rdma` and `doca-sta` are what programs should use.
//!
//! # Finding DOCA
//!
//! The build script asks `pkg-config` in these places, and the first that has `doca-common` (or the umbrella
//! `doca` of older releases) serves every library:
//!
//! 1. `DOCA_DIR`, a prefix such as `/opt/mellanox/doca`;
//! 2. the directories of `PKG_CONFIG_PATH`;
//! 3. the directories that pkg-config searches by itself;
//! 4. `/opt/mellanox/doca`, where NVIDIA's documentation installs it.
//!
//! In a prefix, `lib/<arch>-linux-gnu`, `lib64`, `lib` and the same under `infrastructure` are searched, for the
//! architecture of the *target*. DOCA 3.0 to 3.3 is supported: an older one is refused, a newer one gives a
//! warning, parts of different releases are refused. Machines without DOCA build against the simulator's prefix,
//! which is found in the same way; nothing is built without headers.
//!
//! # Environment
//!
//! | variable | meaning |
//! | --- | --- |
//! | `DOCA_DIR` | prefix of the DOCA to use |
//! | `PKG_CONFIG` | the pkg-config program, if it is not the one in `PATH` |
//! | `PKG_CONFIG_PATH` | directories of `.pc` files, searched second |
//! | `PKG_CONFIG_LIBDIR` | directories that replace pkg-config's own |
//! | `PKG_CONFIG_SYSROOT_DIR` | root that pkg-config puts before paths, for cross builds |
//! | `LIBCLANG_PATH` | directory of `libclang.so` |
//! | `LLVM_CONFIG_PATH` | the `llvm-config` that knows where libclang is |
//! | `CLANG_PATH` | the clang whose own headers libclang uses |
//! | `BINDGEN_EXTRA_CLANG_ARGS` | more flags for libclang |
//! | `DOCS_RS` | document from the committed bindings, without an SDK; nothing can be linked |
//!
//! # Features
//!
//! `rdma` adds `libdoca_rdma` and the RDMA bridge of `libdoca_common`; `sta` adds `libdoca_sta` to both; `comch` adds
//! `libdoca_comch`.
//!
//! # What dependants are told
//!
//! Cargo gives the build scripts of *direct* dependants these variables. Truth values are `1` and `0`.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `DEP_DOCA_VERSION`, `DEP_DOCA_VERSION_FULL` | release, as in `3.2.1`, and as the headers spell it, as in `3.2.1025` |
//! | `DEP_DOCA_PREFIX` | prefix of the installation |
//! | `DEP_DOCA_MODULES` | the pkg-config modules in use, separated by blanks |
//! | `DEP_DOCA_INCLUDE`, `DEP_DOCA_LIBDIR` | directories of headers and libraries, separated by colons |
//! | `DEP_DOCA_LINK_ARGS` | linker flags of the modules that are neither `-L` nor `-l`, mostly none |
//! | `DEP_DOCA_SIM` | whether this is the simulator |
//! | `DEP_DOCA_HAS_COMCH`, `DEP_DOCA_HAS_RDMA`, `DEP_DOCA_HAS_STA` | which libraries are bound |
//! | `DEP_DOCA_HAS_…` | whether the headers declare functions that not all releases have: the table of `build/facts.rs` |
//!
//! Link arguments do not travel: a package with binaries, tests or examples sets the run path itself, in a build
//! script with
//!
//! ```ignore
//! let libdir = std::env::var("DEP_DOCA_LIBDIR").unwrap_or_default();
//! println!("cargo::rustc-link-arg=-Wl,-rpath,{libdir}");
//! ```

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unused_imports,
    clippy::all,
    rustdoc::all,
    reason = "generated from C headers"
)]
mod bindings {
    use crate::foreign::{FILE, ibv_pd, rdma_cm_id};

    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}
mod foreign;
mod inline;

pub mod built;

pub use bindings::*;
pub use foreign::{FILE, ibv_pd, rdma_cm_id};
pub use inline::*;
