//! Turns what the headers declare into `cfg`s, and makes this package's tests find the libraries where the build found
//! them. Probes nothing.

/// Facts of `doca-sys` that this crate's code depends on, by the `cfg`.
const FACTS: &[(&str, &str)] = &[
    ("doca_has_sta_cqe_notify", "DEP_DOCA_HAS_STA_CQE_NOTIFY"),
    ("doca_has_sta_eu_state", "DEP_DOCA_HAS_STA_EU_STATE"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for (cfg, fact) in FACTS {
        println!("cargo::rustc-check-cfg=cfg({cfg})");
        if std::env::var(fact).is_ok_and(|value| value == "1") {
            println!("cargo::rustc-cfg={cfg}");
        }
    }
    if let Ok(dirs) = std::env::var("DEP_DOCA_LIBDIR") {
        // The simulator has a librdmacm of its own, for machines without one.
        for dir in dirs.split(':').filter(|dir| std::path::Path::new(dir).join("librdmacm.so").exists()) {
            println!("cargo::rustc-link-search=native={dir}");
        }
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dirs}");
    }
}
