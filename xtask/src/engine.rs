//! The engine: a Rust static library that becomes `libdoca_sim.so.1`.

use crate::library::ENGINE;
use crate::process;
use crate::{Result, place};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const PROFILE: &str = "sim";
pub(crate) const PACKAGE: &str = "doca-sim-engine";
/// What cargo makes of it.
pub(crate) const ARCHIVE: &str = "libdoca_sim.a";

/// Linker flags of a library that lacks nothing and is bound when it is loaded.
pub(crate) const COMPLETE: &[&str] = &["-Wl,-z,defs", "-Wl,-z,now"];

/// Brings the static library up to date and says where it is.
pub(crate) fn build() -> Result<PathBuf> {
    let archive = place::built(place::target(), PROFILE).join(ARCHIVE);
    if !archive.exists() {
        eprintln!("building the simulator's engine");
    }
    let mut cargo = Command::new(process::cargo());
    cargo.current_dir(place::root()).args(["build", "--quiet", "--package", PACKAGE, "--profile", PROFILE]);
    process::run(&mut cargo)?;
    Ok(archive)
}

/// Links the shared object into `dir`. (`rustc` would give a cdylib a version script of its own.)
pub(crate) fn link(archive: &Path, dir: &Path, flags: &[&str]) -> Result<PathBuf> {
    let script = dir.join("sim.map");
    place::write(&script, "{\n\tglobal: sim_*;\n\tlocal: *;\n};\n")?;
    let file = dir.join(ENGINE);
    let mut cc = process::cc();
    cc.args(["-shared", "-o"]).arg(&file);
    cc.args(["-Wl,--whole-archive"]).arg(archive).arg("-Wl,--no-whole-archive");
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    cc.args([&format!("-Wl,-soname,{ENGINE}"), "-Wl,--gc-sections"]);
    cc.args(flags);
    cc.args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lrt", "-lc"]);
    process::run(&mut cc)?;
    Ok(file)
}
