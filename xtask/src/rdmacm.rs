//! `librdmacm.so.1` of the SDK. It lies in a directory of its own, so that only those find it who ask for it.

use crate::library::ENGINE;
use crate::{Result, install, place, process};
use std::path::{Path, PathBuf};

const SONAME: &str = "librdmacm.so.1";
const DEV_LINK: &str = "librdmacm.so";

/// The directory, below the one of the other libraries.
pub(crate) fn dir(libdir: &Path) -> PathBuf {
    libdir.join("doca-sim-rdmacm")
}

/// Compiles the library into its directory.
pub(crate) fn build(engine: &Path, libdir: &Path) -> Result {
    let sources = place::root().join("doca-sim/libs");
    let dir = dir(libdir);
    let file = dir.join(SONAME);
    place::make_parent(&file)?;
    let mut cc = process::cc();
    cc.args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes"]);
    // Functions that refuse have parameters for their prototypes' sake.
    cc.args(["-Wno-unused-parameter", "-o"]).arg(&file).arg(sources.join("rdmacm.c"));
    cc.arg(format!("-Wl,--version-script={}", sources.join("rdmacm.map").display()));
    cc.args([&format!("-Wl,-soname,{SONAME}"), "-Wl,-rpath,$ORIGIN/..", "-Wl,-z,defs", "-Wl,-z,now"]);
    cc.arg("-Wl,--no-as-needed").arg(engine);
    process::run(&mut cc).map_err(|e| format!("{SONAME} (needs {ENGINE}): {e}"))?;
    install::link(SONAME, &dir.join(DEV_LINK))
}
