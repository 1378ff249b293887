//! Names, nodes and dependencies of the installed libraries.

use crate::Result;
use crate::elf::{self, Export};
use crate::forwarders::{self, NODES};
use crate::install::Options;
use crate::library::{self, ENGINE, Library};
use crate::table::Row;
use std::collections::BTreeSet;

pub(super) fn check(options: &Options) -> Result {
    let mut exported = 0;
    for library in library::ALL {
        exported += check_one(library, options).map_err(|e| format!("{}: {e}", library.soname()))?;
    }
    println!(
        "symbols: {} libraries export the {exported} functions of the tables, under the right nodes",
        library::ALL.len()
    );
    Ok(())
}

fn check_one(library: &Library, options: &Options) -> Result<usize> {
    let facts = elf::facts(&options.libdir().join(library.file(options.release)))?;
    let mut rows = Vec::new();
    for table in library.tables(options.release)? {
        rows.extend(table.exports().cloned());
    }
    let differences = compare(&rows, &facts.exports);
    if !differences.is_empty() {
        return Err(format!("exports differ from the tables:\n    {}", differences.join("\n    ")));
    }
    if facts.soname != library.soname() {
        return Err(format!("its SONAME is {}", facts.soname));
    }
    if facts.nodes != NODES {
        return Err(format!("its version nodes are {:?} and not {NODES:?}", facts.nodes));
    }
    if facts.runpath != "$ORIGIN" {
        return Err(format!("its run path is `{}`, so the prefix cannot be moved", facts.runpath));
    }
    let needed = library.needs.iter().map(|name| library::soname(name)).chain([ENGINE.to_owned()]);
    for needed in needed {
        if !facts.needed.contains(&needed) {
            return Err(format!("it does not need {needed}: {:?}", facts.needed));
        }
    }
    Ok(rows.len())
}

/// What the tables ask for and the library lacks, and what it has beyond them.
fn compare(rows: &[Row], exports: &[Export]) -> Vec<String> {
    let export = |name: &str, node: &str, default| Export { name: name.into(), node: node.into(), default };
    let wanted: BTreeSet<Export> = rows
        .iter()
        .flat_map(|row| {
            let (first, second) = forwarders::nodes(row.stability);
            [export(&row.name, first, true), export(&row.name, second, false)]
        })
        .collect();
    let found: BTreeSet<Export> = exports.iter().cloned().collect();
    let show = |export: &Export| {
        format!("{}{}{}", export.name, if export.default { "@@" } else { "@" }, export.node)
    };
    let missing = wanted.difference(&found).map(|e| format!("{} is missing", show(e)));
    missing.chain(found.difference(&wanted).map(|e| format!("{} is not in the tables", show(e)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Kind, Stability};

    #[test]
    fn both_directions_are_compared() {
        let row = Row {
            kind: Kind::Function,
            name: "doca_a".into(),
            result: "void".into(),
            detail: "void".into(),
            stability: Stability::Stable,
            errors: Vec::new(),
        };
        let export =
            |name: &str, node: &str, default| Export { name: name.into(), node: node.into(), default };
        let good = [export("doca_a", "DOCA_2", true), export("doca_a", "EXPERIMENTAL", false)];
        assert!(compare(std::slice::from_ref(&row), &good).is_empty());
        let bad = [export("doca_a", "DOCA_2", false), good[1].clone(), export("doca_b", "DOCA_2", true)];
        assert_eq!(
            compare(&[row], &bad),
            [
                "doca_a@@DOCA_2 is missing",
                "doca_a@DOCA_2 is not in the tables",
                "doca_b@@DOCA_2 is not in the tables"
            ]
        );
    }
}
