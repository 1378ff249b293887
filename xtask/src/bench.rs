//! `cargo sim bench NAME`

use crate::sdk;
use crate::{Result, place, provision};
use std::process::ExitCode;

/// Where benchmarks are, and the package that they belong to.
const HOMES: &[(&str, &str)] = &[
    ("benches", "doca"),
    ("doca-comch/benches", "doca-comch"),
    ("doca-sta-target/benches", "doca-sta-target"),
    ("tools/socket-relay/benches", "doca-socket-relay"),
];

pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let known = programs()?;
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let chosen = args.split_first().and_then(|(name, rest)| {
        let (name, package) = known.iter().find(|(known, _)| known == name)?;
        Some((name, *package, rest))
    });
    let Some((name, package, rest)) = chosen else {
        return Err(format!("bench needs one of these names: {}", names.join(", ")));
    };
    if ["cost", "comch_cost", "scale"].contains(&name.as_str()) {
        provision::counting()?;
    }
    if name == "relay" {
        provision::relaying()?;
    }
    let mut cargo: Vec<String> =
        ["bench", "--quiet", "-p", package, "--bench", name, "--"].map(str::to_owned).into();
    cargo.extend_from_slice(rest);
    sdk::cargo(&cargo)
}

/// The benchmarks by name, with their package.
fn programs() -> Result<Vec<(String, &'static str)>> {
    let mut found = Vec::new();
    for (home, package) in HOMES {
        let dir = place::root().join(home);
        let mut files = place::files_below(&dir)?;
        // What is further down are parts of them.
        files.retain(|path| path.parent() == Some(&dir) && path.extension().is_some_and(|e| e == "rs"));
        let stems = files.iter().filter_map(|path| path.file_stem());
        found.extend(stems.map(|stem| (stem.to_string_lossy().into_owned(), *package)));
    }
    Ok(found)
}
