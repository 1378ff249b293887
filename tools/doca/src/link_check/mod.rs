//! `doca link-check`: what a program links, read from its file, without running it and without DOCA.
//!
//! ```text
//! elf, versions     one file                        machine   architectures
//!    |
//! loader            where a library is found        ld_cache, ld_conf
//!    |
//! process           the program and all it loads
//!    |
//! analysis          DOCA's part in it               library   names, functions
//!    |
//! report, verdict   what to tell; whether it is what was asked for
//! ```

mod analysis;
mod elf;
mod ld_cache;
mod ld_conf;
mod library;
mod loader;
mod machine;
mod process;
mod report;
#[cfg(test)]
mod sample;
mod verdict;
mod versions;

use crate::{Failure, Outcome};
use elf::Elf;
use loader::{Asker, By, Found, Loader};
use process::Process;
use std::path::{Path, PathBuf};
use verdict::{Demands, Wanted};

/// Tell which DOCA libraries a program links, where they come from, and whether it uses them
///
/// Reads the program's file and follows its libraries as the dynamic loader would, for any architecture; nothing is
/// run. Takes LD_LIBRARY_PATH into account. A program that moves data by verbs without DOCA is reported as a bypass.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit status: 0 all requirements are met, 1 one is not, 2 the file cannot be read.")]
pub(crate) struct Args {
    /// The program or shared object
    binary: PathBuf,
    /// Fail unless the program uses this library (repeatable); sta demands the RDMA library too
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIBRARY")]
    require: Vec<Wanted>,
    /// Fail if a library is the simulator's, or a search path leads into a simulator
    #[arg(long)]
    forbid_simulator: bool,
    /// Do not fail because a library is not found here
    #[arg(long)]
    allow_missing: bool,
    /// What stands for / on the system that the program is for
    #[arg(long, value_name = "DIR", default_value = "/")]
    sysroot: PathBuf,
    /// Directories to search, instead of those in LD_LIBRARY_PATH
    #[arg(long, value_name = "PATH")]
    library_path: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) use library::release;

/// A DOCA library that the loader finds for a program without a search path of its own.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) path: PathBuf,
    /// The rule that found it.
    pub(crate) by: By,
    /// Release and build, if the file's name has them.
    pub(crate) version: Option<String>,
    pub(crate) simulator: bool,
}

/// Looks for a library on behalf of a new program of this machine.
fn find(library: &str) -> Option<Found> {
    let path = std::env::current_exe().ok()?;
    let mut program = Elf::parse(&std::fs::read(&path).ok()?).ok()?;
    (program.rpath, program.runpath) = (None, None);
    let loader = Loader::new(Path::new("/"), std::env::var("LD_LIBRARY_PATH").ok());
    loader.find(library, &[Asker { path: &path, elf: &program }], program.target).ok()
}

/// The library that [`find`] finds, and whether it exports a function.
pub(crate) fn exports(library: &str, function: &str) -> Option<(PathBuf, bool)> {
    let found = find(library)?;
    let has = found.elf.exports.iter().any(|symbol| symbol.name == function);
    Some((found.path, has))
}

/// What there is to know about the library that [`find`] finds.
pub(crate) fn resolve(library: &str) -> Option<Resolved> {
    let found = find(library)?;
    let real = std::fs::canonicalize(&found.path).unwrap_or(found.path);
    let name = library::doca_name(library).unwrap_or_default();
    Some(Resolved {
        by: found.by,
        version: library::release_in(&real),
        simulator: analysis::is_simulator(name, &found.elf),
        path: real,
    })
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let place = args.binary.display();
    let bytes = std::fs::read(&args.binary).map_err(|error| format!("cannot read {place}: {error}"))?;
    let program = Elf::parse(&bytes).map_err(|why| format!("{place} {why}"))?;
    if !args.sysroot.is_dir() {
        return Err(format!("--sysroot {} is not a directory", args.sysroot.display()).into());
    }
    let sysroot = std::fs::canonicalize(&args.sysroot)?;
    let library_path = args.library_path.clone().or_else(|| std::env::var("LD_LIBRARY_PATH").ok());
    let loader = Loader::new(&sysroot, library_path);
    let process = Process::start(&args.binary, program, &loader);
    let mut report = analysis::describe(&args.binary, &process, &loader);
    verdict::judge(
        &mut report,
        &Demands {
            wanted: args.require.clone(),
            forbid_simulator: args.forbid_simulator,
            allow_missing: args.allow_missing,
        },
    );
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.text());
    }
    Ok(if report.ok { Outcome::Good } else { Outcome::Unmet })
}
