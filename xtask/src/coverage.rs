//! `cargo sim coverage`: COVERAGE.md, one row per C function, from the tables, the sources and a trace of the suite.
//!
//! ```text
//! sources   which Rust item reaches a function        reasons   why none does, why an error is not seen
//! trace     what the suite saw it do
//! ```

mod reasons;
mod sources;
mod trace;

use crate::library::{self, ENGINE};
use crate::sdk::Sdk;
use crate::table::{Row, Stability};
use crate::{Result, elf, place};
use sources::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use trace::Trace;

const HEAD: &str = "\
# Coverage of the C interface

One row per function of the public headers: the Rust item that reaches it or why none does, what the simulator does with
it, and what the test suite saw. Written by `cargo sim coverage` from `abi/`, the sources, and the trace that
`cargo sim test` leaves; `cargo sim coverage --check` fails when it is stale.

";

/// Cells of a row that come from the tables and sources: function, Rust, simulator.
const FROM_SOURCES: usize = 3;

/// Where a run of the suite records its calls.
pub(crate) fn trace_file() -> PathBuf {
    place::root().join("target").join("coverage.trace")
}

fn page_file() -> PathBuf {
    place::root().join("COVERAGE.md")
}

/// `cargo sim coverage [--check]`
pub(crate) fn command(args: &[String]) -> Result {
    let sdk = Sdk::ready()?;
    match args {
        [] => {
            let file = trace_file();
            if !file.exists() {
                return Err("there is no trace of the suite yet: run `cargo sim test` first".into());
            }
            place::write(&page_file(), page(&rows(&sdk, &read_trace()?)?))
        }
        [flag] if flag == "--check" => check(&sdk),
        _ => Err(format!("coverage takes --check or nothing, got {}", args.join(" "))),
    }
}

/// Compares the committed page with the tables and sources. What the suite saw is taken from the page.
fn check(sdk: &Sdk) -> Result {
    let committed = parse(&place::read(&page_file())?)?;
    complete(&committed)?;
    stale(&committed, &rows(sdk, &Trace::default())?)
}

/// Last step of the suite: the page is up to date, and what it says was seen was seen again.
pub(crate) fn check_suite(sdk: &Sdk) -> Result {
    check(sdk)?;
    let committed = parse(&place::read(&page_file())?)?;
    let lost = lost(&committed, &read_trace()?);
    if !lost.is_empty() {
        println!("not seen this time, though COVERAGE.md says seen: {}", lost.join(", "));
    }
    Ok(())
}

type Cells = Vec<String>;

fn rows(sdk: &Sdk, trace: &Trace) -> Result<Vec<Cells>> {
    let sources = Sources::read()?;
    let engine = elf::exports(&sdk.options().libdir().join(ENGINE))?;
    let answers: BTreeSet<String> = engine.into_iter().map(|export| export.name).collect();
    let mut rows = BTreeMap::new();
    for table in library::ALL.iter().map(|library| library.tables(sdk.options().release)) {
        for row in table?.iter().flat_map(|table| table.of(crate::table::Kind::Function)) {
            rows.insert(row.name.clone(), cells(row, &sources, &answers, trace)?);
        }
    }
    Ok(rows.into_values().collect())
}

fn cells(row: &Row, sources: &Sources, answers: &BTreeSet<String>, trace: &Trace) -> Result<Cells> {
    let name = &row.name;
    let method = sources.method(name).or_else(|| reasons::no_method(name).map(str::to_owned));
    let rust = method.ok_or_else(|| {
        format!(
            "no Rust item reaches {name}: give one `#[doc(alias = \"{name}\")]`, or a reason in reasons.rs"
        )
    })?;
    let by_hand = place::root().join("doca-sim/libs").join(name).with_extension("c").exists();
    let simulator = if row.stability == Stability::Inline {
        "inline in the header"
    } else if by_hand || answers.contains(&format!("sim_{name}")) {
        "implemented"
    } else if reasons::processor(name).is_some() {
        "NOT_SUPPORTED by design"
    } else {
        "not in this part"
    };
    let success = match (trace.succeeded(name), row.stability, name.as_str()) {
        (true, ..) => "seen",
        (_, Stability::Inline, _) => "inline",
        (.., "doca_pe_progress") => "not traced",
        _ => "not seen",
    };
    Ok(vec![name.clone(), rust, simulator.to_owned(), success.to_owned(), errors(row, trace)])
}

/// What became of the documented errors of a function.
fn errors(row: &Row, trace: &Trace) -> String {
    let of = |error: &String| match reasons::no_cause(error) {
        _ if trace.failed(&row.name, error) => format!("{error}: seen"),
        Some(why) => format!("{error}: {why}"),
        None => format!("{error}: not seen"),
    };
    if row.errors.is_empty() {
        return "none documented".into();
    }
    row.errors.iter().map(of).collect::<Vec<_>>().join("; ")
}

fn read_trace() -> Result<Trace> {
    let path = trace_file();
    let trace = File::open(&path).and_then(|file| Trace::parse(BufReader::new(file)));
    trace.map_err(|e| format!("cannot read {}: {e}", path.display()))
}

fn page(rows: &[Cells]) -> String {
    let mut text = String::from(HEAD);
    let count = |column: usize, value: &str| rows.iter().filter(|row| row[column] == value).count();
    text += &format!(
        "{} functions; the simulator implements {}; the suite saw {} succeed.\n\n",
        rows.len(),
        count(2, "implemented"),
        count(3, "seen")
    );
    text += "| C function | Rust | Simulator | Success | Documented errors |\n|---|---|---|---|---|\n";
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

/// The rows of a page.
fn parse(text: &str) -> Result<Vec<Cells>> {
    let lines = text.lines().filter(|line| line.starts_with("| doca_"));
    lines
        .map(|line| {
            let cells: Cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            if cells.len() == 5 { Ok(cells) } else { Err(format!("COVERAGE.md: not five cells: {line}")) }
        })
        .collect()
}

/// No cell is blank.
fn complete(rows: &[Cells]) -> Result {
    match rows.iter().find(|row| row.iter().any(String::is_empty)) {
        Some(row) => Err(format!("COVERAGE.md: the row of {} has a blank cell", row[0])),
        None => Ok(()),
    }
}

/// The cells that come from tables and sources are those of now; so are the names of the errors.
fn stale(committed: &[Cells], now: &[Cells]) -> Result {
    let names = |row: &Cells| -> Vec<String> {
        row[4].split("; ").map(|error| error.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let same = |a: &Cells, b: &Cells| a[..FROM_SOURCES] == b[..FROM_SOURCES] && names(a) == names(b);
    for (number, row) in now.iter().enumerate() {
        if !committed.get(number).is_some_and(|old| same(old, row)) {
            return Err(format!("COVERAGE.md is stale at {}: run `cargo sim coverage`", row[0]));
        }
    }
    match committed.get(now.len()) {
        Some(row) => Err(format!("COVERAGE.md has a row too many: {}", row[0])),
        None => Ok(()),
    }
}

/// What was seen once and is not seen again. Some errors depend on timing, so this is told and fails nothing.
fn lost(committed: &[Cells], trace: &Trace) -> Vec<String> {
    let mut lost = Vec::new();
    for row in committed {
        if row[3] == "seen" && !trace.succeeded(&row[0]) {
            lost.push(format!("{} succeed", row[0]));
        }
        for error in row[4].split("; ").filter_map(|error| error.strip_suffix(": seen")) {
            if !trace.failed(&row[0], error) {
                lost.push(format!("{} fail with {error}", row[0]));
            }
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 5]) -> Cells {
        cells.map(str::to_owned).into()
    }

    #[test]
    fn a_page_is_read_back_as_it_was_written() {
        let rows = vec![row(["doca_a", "`x::A::b`", "implemented", "seen", "FULL: seen; AGAIN: not seen"])];
        assert_eq!(parse(&page(&rows)).unwrap(), rows);
    }

    #[test]
    fn blank_cells_and_changed_sources_are_found() {
        let old = [row(["doca_a", "`x::A::b`", "implemented", "seen", "FULL: seen"])];
        complete(&old).unwrap();
        assert!(complete(&[row(["doca_a", "", "implemented", "seen", "x"])]).is_err());
        let now = |rust, error| [row(["doca_a", rust, "implemented", "not seen", error])];
        stale(&old, &now("`x::A::b`", "FULL: not seen")).unwrap();
        assert!(stale(&old, &now("`x::A::c`", "FULL: not seen")).unwrap_err().contains("doca_a"));
        assert!(stale(&old, &now("`x::A::b`", "EMPTY: not seen")).is_err());
        assert!(stale(&old, &[]).is_err());
        assert!(stale(&[], &old).is_err());
    }

    #[test]
    fn a_suite_that_sees_less_is_told() {
        let page = [row(["doca_a", "r", "implemented", "seen", "FULL: seen; AGAIN: not seen"])];
        let trace = |text: &str| Trace::parse(text.as_bytes()).unwrap();
        assert!(lost(&page, &trace("1 doca_a DOCA_SUCCESS\n1 doca_a DOCA_ERROR_FULL")).is_empty());
        assert!(lost(&page, &trace("1 doca_a DOCA_SUCCESS"))[0].contains("FULL"));
        assert!(lost(&page, &trace("1 doca_a DOCA_ERROR_FULL"))[0].contains("succeed"));
    }
}
