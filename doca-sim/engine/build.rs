//! Hands the functions of the public headers on to the engine, as the tables in `abi/` have them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../abi");
    println!("cargo::rerun-if-changed={}", tables.display());
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&tables)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    // What changed between releases is no header.
    paths.retain(|path| path.extension().is_some_and(|end| end == "tsv") && !path.ends_with("drift.tsv"));
    paths.sort();

    let mut code = String::from("&[\n");
    for path in paths {
        for row in fs::read_to_string(path)?.lines() {
            let mut cells = row.split('\t');
            if let (Some("fn"), Some(name), Some(result)) = (cells.next(), cells.next(), cells.next()) {
                let _ = writeln!(code, "    ({name:?}, {result:?}),");
            }
        }
    }
    code.push(']');
    fs::write(
        PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?).join("functions.rs"),
        code,
    )
}
