//! Lets the binary find the DOCA libraries that it was built with.

use std::env::var;

fn main() {
    let fact = |key: &str| var(format!("DEP_DOCA_{key}")).unwrap_or_default();
    let dirs = fact("LIBDIR");
    if dirs.is_empty() {
        return;
    }
    let mut flags = Vec::new();
    // `doca link-check` reads LD_LIBRARY_PATH on behalf of another program, whose libraries must not take the place of
    // this program's. An RPATH goes before that variable, a RUNPATH after it.
    flags.push("--disable-new-dtags".to_owned());
    flags.extend(dirs.split(':').map(|dir| format!("-rpath,{dir}")));
    if fact("SIM") == "1" {
        // The search for a library's own libraries begins with that variable: the program loads this one first.
        flags.push("--push-state,--no-as-needed".to_owned());
        flags.extend(dirs.split(':').map(|dir| format!("-L{dir}")));
        flags.push("-l:libdoca_sim.so.1,--pop-state".to_owned());
    }
    for flag in flags {
        println!("cargo::rustc-link-arg-bins=-Wl,{flag}");
    }
}
