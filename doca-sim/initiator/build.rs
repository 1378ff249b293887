//! Finds the SDK's librdmacm, which lies beside its libraries in a directory of its own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let dirs = std::env::var("DEP_DOCA_LIBDIR").unwrap_or_default();
    println!("cargo::rustc-link-arg=-Wl,-rpath,{dirs}");
    // The library says so itself, for who uses it in a test: a build script's search paths reach dependants, its run paths do not.
    for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
        println!("cargo::rustc-link-search=native={dir}/doca-sim-rdmacm");
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}/doca-sim-rdmacm");
    }
}
