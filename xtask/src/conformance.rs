//! The C programs in `doca-sim/conformance`: each checks one contract of the SDK and exits with 0.

use crate::process::{self, Peer};
use crate::sdk::Sdk;
use crate::{Result, place};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(120);

/// Checks that each header compiles alone, as C and as C++.
pub(crate) fn headers(sdk: &Sdk) -> Result {
    let script = place::root().join("doca-sim/conformance/check_headers.sh");
    process::run(sdk.command("sh").arg(script).arg(sdk.options().include()))
}

/// `cargo sim conformance [NAME…]`
pub(crate) fn command(names: &[String]) -> Result {
    let mut chosen = sources()?;
    if !names.is_empty() {
        let all: Vec<String> = chosen.iter().map(|path| name_of(path)).collect();
        if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
            return Err(format!("there is no program {unknown}; there are: {}", all.join(", ")));
        }
        chosen.retain(|path| names.contains(&name_of(path)));
    }
    run(&Sdk::ready()?, &chosen, &[])
}

/// Compiles and runs every program.
pub(crate) fn programs(sdk: &Sdk) -> Result {
    run(sdk, &sources()?, &[])
}

/// Compiles some of the programs with further arguments for the compiler, and runs them.
pub(crate) fn some(sdk: &Sdk, wanted: impl Fn(&str) -> bool, flags: &[String]) -> Result {
    let mut chosen = sources()?;
    chosen.retain(|path| wanted(&name_of(path)));
    run(sdk, &chosen, flags)
}

fn run(sdk: &Sdk, sources: &[PathBuf], flags: &[String]) -> Result {
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    for source in sources {
        let name = name_of(source);
        let program = scratch.path().join(&name);
        compile_with(sdk, modules_of(&name), source, &program, flags)?;
        let mut command =
            if uses_rdmacm(&name) { sdk.command_with_rdmacm(&program) } else { sdk.command(&program) };
        command
            .env("DOCA_SIM_DIR", scratch.path().join(format!("{name}.network")))
            .env("DOCA_SIM_QUIET", "1");
        let mut peer = Peer::start("the C program", &mut command)?;
        peer.succeed(Instant::now() + DEADLINE).map_err(|e| format!("{name}: {e}"))?;
        println!("{name}.c: ok");
    }
    Ok(())
}

fn name_of(source: &Path) -> String {
    source.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn sources() -> Result<Vec<PathBuf>> {
    let dir = place::root().join("doca-sim/conformance");
    let mut found = place::files_below(&dir)?;
    found.retain(|path| path.parent() == Some(&dir) && path.extension().is_some_and(|e| e == "c"));
    Ok(found)
}

/// Programs about connection management use the SDK's librdmacm as others use the real one.
fn uses_rdmacm(program: &str) -> bool {
    ["rdmacm_", "sta_"].iter().any(|prefix| program.starts_with(prefix))
}

/// The modules that a program uses.
fn modules_of(program: &str) -> &'static [&'static str] {
    match program {
        "sta" => &["doca-sta"],
        program if program.starts_with("sta_") => &["doca-sta", "doca-rdma", "doca-common"],
        "dma" => &["doca-dma", "doca-common"],
        "faults" => &["doca-rdma", "doca-dma", "doca-common"],
        program if program.starts_with("comch_") => &["doca-comch", "doca-common"],
        _ => MODULES,
    }
}

/// The modules that most programs use.
pub(crate) const MODULES: &[&str] = &["doca-rdma", "doca-argp", "doca-common"];

/// Builds one program as a user would: with what pkg-config says about these modules.
pub(crate) fn compile(sdk: &Sdk, modules: &[&str], source: &Path, program: &Path) -> Result {
    compile_with(sdk, modules, source, program, &[])
}

fn compile_with(sdk: &Sdk, modules: &[&str], source: &Path, program: &Path, more: &[String]) -> Result {
    let flags = process::output(sdk.command("pkg-config").args(["--cflags", "--libs"]).args(modules))?;
    let mut cc = process::cc();
    cc.args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-DDOCA_ALLOW_EXPERIMENTAL_API"]);
    cc.arg("-o").arg(program).arg(source).args(flags.split_whitespace()).args(["-lpthread", "-ldl"]);
    if uses_rdmacm(&name_of(source)) {
        cc.arg("-L").arg(sdk.options().rdmacm()).arg("-lrdmacm");
    }
    process::run(cc.args(more))
}
