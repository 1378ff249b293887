//! The engine: a Rust static library that becomes `libdoca_sim.so.1`.

use crate::library::ENGINE;
use crate::process;
use crate::{Result, place};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROFILE: &str = "sim";
const PACKAGE: &str = "doca-sim-engine";

/// Brings the static library up to date and says where it is.
pub(crate) fn build() -> Result<PathBuf> {
    let archive = place::built(PROFILE).join("libdoca_sim.a");
    if !archive.exists() {
        eprintln!("building the simulator's engine");
    }
    let mut cargo = Command::new(process::cargo());
    cargo.current_dir(place::root()).args(["build", "--quiet", "--package", PACKAGE, "--profile", PROFILE]);
    process::run(&mut cargo)?;
    Ok(archive)
}

/// Links the shared object into `dir`. (`rustc` would give a cdylib a version script of its own.)
pub(crate) fn link(archive: &Path, dir: &Path) -> Result<PathBuf> {
    let script = dir.join("sim.map");
    place::write(&script, "{\n\tglobal: sim_*;\n\tlocal: *;\n};\n")?;
    let file = dir.join(ENGINE);
    let mut cc = process::cc();
    cc.args(["-shared", "-o"]).arg(&file);
    cc.args(["-Wl,--whole-archive"]).arg(archive).arg("-Wl,--no-whole-archive");
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    cc.args([&format!("-Wl,-soname,{ENGINE}"), "-Wl,-z,defs", "-Wl,-z,now", "-Wl,--gc-sections"]);
    cc.args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lrt", "-lc"]);
    process::run(&mut cc)?;
    Ok(file)
}
