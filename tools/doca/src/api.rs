//! `doca api`: what is known about one C function of DOCA.

use crate::{Failure, Outcome, link_check};
use std::collections::BTreeMap;

/// Tell where a C function of DOCA is declared and exported, and by what it is reached from Rust
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit status: 0 the library has it, 1 it does not, 2 the function is not known.")]
pub(crate) struct Args {
    /// The function, such as doca_ctx_start
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Functions, one per line: name, library, first release, whether the headers of this build declare it. Made by the
/// build script from the tables in `abi/`.
const FUNCTIONS: &str = include_str!(concat!(env!("OUT_DIR"), "/functions.tsv"));

/// The rows of this page name the Rust items.
const COVERAGE: &str = include_str!("../../../COVERAGE.md");

/// How many names are offered in place of an unknown one.
const OFFERED: usize = 5;

/// What the build knew.
#[derive(Debug)]
struct Known {
    library: &'static str,
    since: &'static str,
    headers: &'static str,
}

fn functions() -> BTreeMap<&'static str, Known> {
    let row = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [name, library, since, headers] => Some((name, Known { library, since, headers })),
        _ => None,
    };
    FUNCTIONS.lines().filter_map(row).collect()
}

/// The Rust item that reaches a function, or why none does.
fn rust(function: &str) -> &'static str {
    let row = |line: &'static str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        if cells.next()? == function { cells.next() } else { None }
    };
    COVERAGE.lines().find_map(row).unwrap_or("none: not a function that the safe crates are for")
}

/// Known names, nearest first.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<_> = known.map(|other| (distance(name, other), other)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(OFFERED).map(|(_, other)| other).collect()
}

/// Edits that make one name the other.
fn distance(a: &str, b: &str) -> usize {
    let mut costs: Vec<usize> = (0..=b.len()).collect();
    for (row, x) in a.bytes().enumerate() {
        let mut diagonal = row;
        costs[0] = row + 1;
        for (column, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = costs[column + 1];
            costs[column + 1] = replaced.min(diagonal + 1).min(costs[column] + 1);
        }
    }
    costs[b.len()]
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let functions = functions();
    let name = args.name.as_str();
    let Some(known) = functions.get(name) else {
        let near = nearest(name, functions.keys().copied()).join("\n  ");
        return Err(format!("no function {name} in DOCA's public headers; the nearest are\n  {near}").into());
    };
    let file = format!("libdoca_{}.so.2", known.library);
    let (library, has) = match link_check::exports(&file, name) {
        Some((path, true)) => (format!("yes, in {}", path.display()), true),
        Some((path, false)) => (format!("no, not in {}", path.display()), false),
        None => (format!("no, {file} is not found"), false),
    };
    let facts = [
        ("function", name),
        ("since", known.since),
        ("headers", known.headers),
        ("library", &library),
        ("rust", rust(name)),
    ];
    if args.json {
        let object: BTreeMap<_, _> = facts.into_iter().collect();
        println!("{}", serde_json::to_string_pretty(&object)?);
    } else {
        for (label, value) in facts {
            println!("{label:9} {value}");
        }
    }
    Ok(if has { Outcome::Good } else { Outcome::Unmet })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        assert_eq!(distance("doca_a", "doca_a"), 0);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn first_releases_come_from_both_tables() {
        let functions = functions();
        assert_eq!(functions["doca_ctx_start"].since, "2.5 or before");
        assert_eq!(functions["doca_sta_create"].since, "3.0");
        assert_eq!(functions["doca_mmap_get_mkey"].since, "3.1 or later");
    }

    #[test]
    fn each_row_of_the_coverage_has_its_rust_cell() {
        assert_eq!(rust("doca_pe_progress"), "`doca_common::ProgressEngine::progress`");
        assert!(rust("doca_flow_init").starts_with("none"));
    }
}
