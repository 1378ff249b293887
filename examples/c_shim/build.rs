//! Compiles a C program with what doca-sys found out about DOCA: `src/devices.c`, or the program that these name:
//!
//! | variable | meaning | default |
//! | --- | --- | --- |
//! | `C_SHIM_SOURCES` | its C files, separated by colons | `src/devices.c` |
//! | `C_SHIM_INCLUDE` | where else its headers are, separated by colons | |
//! | `C_SHIM_LIBS` | libraries besides those of doca-sys, separated by colons, as in `doca_argp` | |
//! | `C_SHIM_ENTRY` | the function to call, which takes and gives what `main` does | `main` |

use std::env;

fn main() {
    let list = |name: &str, default: &str| {
        println!("cargo::rerun-if-env-changed={name}");
        let value = env::var(name).unwrap_or_else(|_| default.to_owned());
        value.split(':').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    // Facts of the direct dependency doca-sys; its documentation lists them.
    let fact = |name: &str| env::var(format!("DEP_DOCA_{name}")).unwrap_or_default();

    let sources = list("C_SHIM_SOURCES", "src/devices.c");
    for source in &sources {
        println!("cargo::rerun-if-changed={source}");
    }
    let entry = list("C_SHIM_ENTRY", "main").concat();
    cc::Build::new()
        .files(&sources)
        .includes(fact("INCLUDE").split(':'))
        .includes(list("C_SHIM_INCLUDE", ""))
        .define("DOCA_ALLOW_EXPERIMENTAL_API", None)
        // Rust has a `main` of its own.
        .define(&entry, "c_shim_entry")
        .compile("c_shim");

    for library in list("C_SHIM_LIBS", "") {
        println!("cargo::rustc-link-lib={library}");
    }
    for dir in fact("LIBDIR").split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
    for argument in fact("LINK_ARGS").split_whitespace() {
        println!("cargo::rustc-link-arg={argument}");
    }
}
