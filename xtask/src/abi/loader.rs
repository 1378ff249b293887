//! What the dynamic loader makes of the libraries: binaries built against other releases, and the engine's
//! place in a process.

use crate::library;
use crate::process;
use crate::sdk::Sdk;
use crate::{Result, conformance, place};
use std::path::{Path, PathBuf};

/// A program that calls a stable and an experimental function.
const CALLER: &str = "\
const char *doca_error_get_name(unsigned int error);
const char *doca_version_runtime(void);
int main(void)
{
	return doca_error_get_name(0) == 0 || doca_version_runtime() == 0;
}
";

/// The library that it was built against.
const OTHER_RELEASE: &str = "\
const char *doca_error_get_name(unsigned int error) { return error ? 0 : \"\"; }
const char *doca_version_runtime(void) { return \"\"; }
";

/// A version script of another release, and whether its binaries run on ours.
struct Case {
    name: &'static str,
    script: &'static str,
    runs: bool,
}

const CASES: &[Case] = &[
    Case { name: "without version nodes", script: "", runs: true },
    Case {
        name: "with the same nodes",
        script: "DOCA_2 { global: doca_error_get_name; local: *; }; EXPERIMENTAL { global: doca_version_runtime; };",
        runs: true,
    },
    Case {
        name: "before a function was promoted to stable",
        script: "EXPERIMENTAL { global: doca_error_get_name; doca_version_runtime; local: *; };",
        runs: true,
    },
    Case {
        name: "after a function was promoted to stable",
        script: "DOCA_2 { global: doca_error_get_name; doca_version_runtime; local: *; };",
        runs: true,
    },
    Case {
        name: "with a node that nobody knows",
        script: "DOCA_2 { global: doca_error_get_name; local: *; }; DOCA_9 { global: doca_version_runtime; };",
        runs: false,
    },
];

pub(super) fn check(sdk: &Sdk) -> Result {
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    for (number, case) in CASES.iter().enumerate() {
        let dir = scratch.path().join(number.to_string());
        binary_runs(sdk, case, &dir).map_err(|e| format!("a binary built {}: {e}", case.name))?;
    }
    println!("binaries: {} kinds of version references behave as they should", CASES.len());

    for program in ["one_engine", "one_engine_dlopen"] {
        let source = place::root().join("doca-sim/conformance/abi").join(program).with_extension("c");
        let built = scratch.path().join(program);
        conformance::compile(sdk, conformance::MODULES, &source, &built)?;
        let mut command = sdk.command(&built);
        command.env("DOCA_SIM_DIR", scratch.path().join("network")).env("DOCA_SIM_QUIET", "1");
        process::output(&mut command).map_err(|e| format!("{program}: {e}"))?;
    }
    println!("state: one engine per process, linked and by dlopen");
    Ok(())
}

/// Builds the program against the other release, then runs it on ours.
fn binary_runs(sdk: &Sdk, case: &Case, dir: &Path) -> Result {
    let program = build(case, dir)?;
    let mut command = sdk.command(&program);
    command.env("LD_LIBRARY_PATH", sdk.options().libdir()).env("LD_BIND_NOW", "1").env("DOCA_SIM_QUIET", "1");
    match (process::output(&mut command), case.runs) {
        (Ok(_), true) => Ok(()),
        (Ok(_), false) => Err("it runs, and should have been refused".to_owned()),
        (Err(why), false) if why.contains("version `DOCA_9' not found") => Ok(()),
        (Err(why), _) => Err(why),
    }
}

fn build(case: &Case, dir: &Path) -> Result<PathBuf> {
    let file = |name: &str| dir.join(name);
    place::write(&file("caller.c"), CALLER)?;
    place::write(&file("other.c"), OTHER_RELEASE)?;
    let library = file("libdoca_common.so");
    let mut cc = process::cc();
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(file("other.c"));
    cc.arg(format!("-Wl,-soname,{}", library::soname("common")));
    if !case.script.is_empty() {
        place::write(&file("other.map"), case.script)?;
        cc.arg(format!("-Wl,--version-script={}", file("other.map").display()));
    }
    process::run(&mut cc)?;
    let program = file("caller");
    let mut cc = process::cc();
    cc.arg("-o").arg(&program).arg(file("caller.c")).arg(&library);
    process::run(&mut cc)?;
    Ok(program)
}
