//! `cargo sim bench NAME`

use crate::sdk;
use crate::{Result, place, provision};
use std::process::ExitCode;

pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let names = names()?;
    let Some((name, rest)) = args.split_first().filter(|(name, _)| names.contains(name)) else {
        return Err(format!("bench needs one of these names: {}", names.join(", ")));
    };
    if name == "cost" || name == "scale" {
        provision::counting()?;
    }
    let mut cargo = vec!["bench".to_owned(), "--quiet".to_owned()];
    if name == RELAY {
        provision::relaying()?;
        cargo.extend(["--package", "doca-socket-relay"].map(str::to_owned));
    }
    cargo.extend(["--bench".to_owned(), name.clone(), "--".to_owned()]);
    cargo.extend_from_slice(rest);
    sdk::cargo(&cargo)
}

/// The one that is with its program.
const RELAY: &str = "relay";

/// The programs in `benches/`, and the relay's.
fn names() -> Result<Vec<String>> {
    let dir = place::root().join("benches");
    let mut files = place::files_below(&dir)?;
    // What is further down are parts of them.
    files.retain(|path| path.parent() == Some(&dir));
    let stem = |path: &std::path::PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let names = files.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).filter_map(stem);
    Ok(names.chain([RELAY.to_owned()]).collect())
}
