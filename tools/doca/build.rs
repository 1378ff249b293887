//! Lets the binary find the DOCA libraries that it was built with, and know every C function.

use std::collections::{BTreeMap, BTreeSet};
use std::env::var;
use std::fs;
use std::path::Path;

/// Tables of functions, and the library of each.
const ABI: &str = "../../abi";

/// Libraries whose headers are called like them; those of other headers are libdoca_common's.
const LIBRARIES: [&str; 5] = ["argp", "comch", "dma", "rdma", "sta"];

fn main() {
    let fact = |key: &str| var(format!("DEP_DOCA_{key}")).unwrap_or_default();
    let functions = functions(&fact("INCLUDE"));
    fs::write(Path::new(&var("OUT_DIR").expect("cargo sets it")).join("functions.tsv"), functions)
        .expect("OUT_DIR is writable");
    let dirs = fact("LIBDIR");
    if dirs.is_empty() {
        return;
    }
    let mut flags = Vec::new();
    // `doca link-check` reads LD_LIBRARY_PATH on behalf of another program, whose libraries must not take the place of
    // this program's. An RPATH goes before that variable, a RUNPATH after it.
    flags.push("--disable-new-dtags".to_owned());
    flags.extend(dirs.split(':').map(|dir| format!("-rpath,{dir}")));
    if fact("SIM") == "1" {
        // The search for a library's own libraries begins with that variable: the program loads this one first.
        flags.push("--push-state,--no-as-needed".to_owned());
        flags.extend(dirs.split(':').map(|dir| format!("-L{dir}")));
        flags.push("-l:libdoca_sim.so.1,--pop-state".to_owned());
    }
    for flag in flags {
        println!("cargo::rustc-link-arg-bins=-Wl,{flag}");
    }
}

/// Name, library, first release, and whether the headers declare it, of every function.
fn functions(include: &str) -> String {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ABI}");
    let drift = fs::read_to_string(Path::new(ABI).join("drift.tsv")).expect("abi/drift.tsv is there");
    let drift = first_seen(&drift);
    let mut rows = BTreeSet::new();
    for entry in fs::read_dir(ABI).expect("abi/ is there").flatten() {
        let path = entry.path();
        let header = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some(short) = header.strip_prefix("doca_") else { continue };
        // The bridge of RDMA is part of libdoca_common.
        let prefix = short.split('_').next().filter(|_| short != "rdma_bridge");
        let library = LIBRARIES.iter().find(|name| Some(**name) == prefix).unwrap_or(&"common");
        let declared = header_text(include, &header);
        for line in fs::read_to_string(&path).expect("a table is text").lines() {
            let ["fn", name, .., since] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
            let since = match (drift.get(name), since.split(' ').next()) {
                (_, Some("3.1+")) => "3.1 or later",
                (Some(release), _) => release,
                (None, _) => "2.5 or before",
            };
            let headers = match &declared {
                None if include.is_empty() => "unknown, as this command was built without DOCA".to_owned(),
                None => format!("no, there is no {header}.h"),
                Some(text) if declares(text, name) => format!("yes, in {header}.h"),
                Some(_) => format!("no, not in {header}.h"),
            };
            rows.insert(format!("{name}\t{library}\t{since}\t{headers}\n"));
        }
    }
    rows.into_iter().collect()
}

/// The first release with each function of `drift.tsv`.
fn first_seen(drift: &str) -> BTreeMap<&str, &str> {
    let mut lines = drift.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let releases = lines.next().unwrap_or_default();
    let mut first = BTreeMap::new();
    for cells in lines.filter(|cells| cells.first() == Some(&"fn")) {
        // `=` after `-` means that it was absent there, too.
        if let Some(at) = (2..cells.len()).find(|&at| !matches!(cells[at], "-" | "=")) {
            first.insert(cells[1], if at == 2 { "2.5 or before" } else { releases[at] });
        }
    }
    first
}

fn header_text(include: &str, header: &str) -> Option<String> {
    let file = |dir: &str| Path::new(dir).join(header).with_extension("h");
    let path = include.split(':').filter(|dir| !dir.is_empty()).map(file).find(|path| path.exists())?;
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).ok()
}

/// Whether a header has the name with a parameter list after it.
fn declares(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !text[..at].ends_with(word) && text[at + name.len()..].trim_start().starts_with('(')
    })
}
