//! The committed bindings, which documentation builds use, against the simulator's headers they were made from.
//! `DOCA_SYS_BLESS=1` makes them anew.

#[allow(dead_code, reason = "tests use a part of what the build script has")]
#[path = "../build/mod.rs"]
mod build;

use build::bindings;
use build::environment::Library;
use std::fs;
use std::path::Path;

#[test]
fn documented_bindings_are_those_of_the_headers() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let headers = package.join("../doca-sim/include");
    let dirs = [headers.clone(), headers.join("host")];
    let flags: Vec<String> = dirs.iter().map(|dir| format!("-I{}", dir.display())).collect();
    let libraries = [Library::Comch, Library::Sta, Library::Rdma, Library::Common];
    let code = bindings::generate(&libraries, &package.join("wrapper"), &flags, &dirs, false)
        .unwrap_or_else(|failure| panic!("{failure}"));

    let committed = package.join("src/docsrs.rs");
    if std::env::var_os("DOCA_SYS_BLESS").is_some() {
        fs::write(&committed, &code).unwrap();
    }
    let old = fs::read_to_string(&committed).unwrap_or_default();
    let differs = old.lines().zip(code.lines()).position(|(old, new)| old != new);
    assert!(
        old == code,
        "src/docsrs.rs is stale from line {}: run `DOCA_SYS_BLESS=1 cargo sim test -p doca-sys --test docsrs`",
        differs.unwrap_or(old.lines().count().min(code.lines().count())) + 1,
    );
}
