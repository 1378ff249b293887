//! Makes the package's examples, tests and benches find DOCA's libraries where the build found them, and turns what
//! `doca-sys` found out into cfgs. Probes nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(doca_simulator)");
    if let Ok(dirs) = std::env::var("DEP_DOCA_LIBDIR") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dirs}");
    }
    if std::env::var("DEP_DOCA_SIM").is_ok_and(|value| value == "1") {
        println!("cargo::rustc-cfg=doca_simulator");
    }
}
