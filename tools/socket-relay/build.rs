//! Lets the program find the DOCA libraries that it was built with.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let dirs = std::env::var("DEP_DOCA_LIBDIR").unwrap_or_default();
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
}
