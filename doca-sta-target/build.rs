//! Makes the crate's tests find DOCA's libraries where the build found them. Probes nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(dirs) = std::env::var("DEP_DOCA_LIBDIR") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dirs}");
    }
}
