//! A prefix of another release and side, moved to another place, as a C user meets it.

use super::{declarations, symbols};
use crate::install::{self, Options};
use crate::process;
use crate::release::{Release, Side};
use crate::sdk::Sdk;
use crate::{Result, conformance, place};
use std::fs;

/// Prints which release the headers and the library are of, and the side of the headers.
const PROGRAM: &str = "\
#include <stdio.h>
#include <doca_build_config.h>
#include <doca_version.h>
#if defined(DOCA_ARCH_DPU) && !defined(DOCA_ARCH_HOST)
#define SIDE \"dpu\"
#else
#define SIDE \"host\"
#endif
int main(void)
{
	printf(\"%s %s %s\\n\", doca_version(), doca_version_runtime(), SIDE);
	return 0;
}
";

pub(super) fn check() -> Result {
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let options = Options { prefix: scratch.path().join("first"), release: Release::V3_0, side: Side::Dpu };
    install::install(&options)?;
    symbols::check(&options)?;
    declarations::check(&options)?;

    let moved = Options { prefix: scratch.path().join("second"), ..options.clone() };
    fs::rename(&options.prefix, &moved.prefix).map_err(|e| format!("cannot move the prefix: {e}"))?;
    let sdk = Sdk::at(moved);
    let source = scratch.path().join("which.c");
    place::write(&source, PROGRAM)?;
    for modules in [&["doca"][..], &["doca-common"], &["doca-sta"]] {
        let program = scratch.path().join("which");
        conformance::compile(&sdk, modules, &source, &program)?;
        let said = process::output(sdk.command(&program).env("DOCA_SIM_QUIET", "1"))?;
        if said.trim() != "3.0.0058 3.0.0058 dpu" {
            return Err(format!(
                "a program for a moved 3.0 prefix of a DPU, built with {modules:?}, sees: {said}"
            ));
        }
        let version = process::output(sdk.command("pkg-config").arg("--modversion").args(modules))?;
        let simulated = process::output(sdk.command("pkg-config").arg("--variable=doca_sim").args(modules))?;
        if (version.trim(), simulated.trim()) != ("3.0.0058", "1") {
            return Err(format!(
                "modules {modules:?} of the 3.0 prefix say {version} and doca_sim={simulated}"
            ));
        }
    }
    println!(
        "prefix: a DPU's 3.0 prefix can be moved and is used through the umbrella and the split modules"
    );
    Ok(())
}
