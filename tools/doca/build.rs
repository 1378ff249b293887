//! Lets the binary find the DOCA libraries that it was built with, also without `LD_LIBRARY_PATH`.

fn main() {
    println!("cargo::rerun-if-env-changed=DEP_DOCA_LIBDIR");
    let dirs = std::env::var("DEP_DOCA_LIBDIR").unwrap_or_default();
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{dir}");
    }
}
