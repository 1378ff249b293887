//! The public libraries' C code: one function per table row, which makes one call to the engine.

use crate::library::Library;
use crate::release::Release;
use crate::table::{Row, Stability};
use crate::{Result, declaration, place, process};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The version nodes of every library, in the order in which they are defined.
pub(crate) const NODES: [&str; 3] = ["DOCA_2", "EXPERIMENTAL", "INTERNAL"];

/// The node that a new program binds to, and the one under which the function is found besides, because
/// functions move from one to the other between releases.
pub(crate) fn nodes(stability: Stability) -> (&'static str, &'static str) {
    match stability {
        Stability::Stable => ("DOCA_2", "EXPERIMENTAL"),
        Stability::Experimental | Stability::Inline => ("EXPERIMENTAL", "DOCA_2"),
    }
}

/// What a build of one library needs to know.
pub(crate) struct Plan<'a> {
    pub(crate) release: Release,
    /// The SDK's public headers.
    pub(crate) include: &'a Path,
    /// Where intermediate files and the libraries go.
    pub(crate) dir: &'a Path,
    /// The engine's shared object.
    pub(crate) engine: &'a Path,
    /// What it exports.
    pub(crate) answers: &'a BTreeSet<String>,
}

/// Generates, compiles and links one library.
pub(crate) fn build(library: &Library, plan: &Plan<'_>) -> Result<PathBuf> {
    let mut rows = Vec::new();
    for table in library.tables(plan.release)? {
        rows.extend(table.exports().cloned());
    }
    let base = plan.dir.join(format!("doca_{}", library.name));
    let (code, script) = (base.with_extension("c"), base.with_extension("map"));
    place::write(&code, source(library, &rows, plan.answers))?;
    place::write(&script, version_script())?;

    let file = plan.dir.join(library.file(plan.release));
    let mut cc = process::cc();
    cc.args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes"]);
    cc.arg("-DDOCA_ALLOW_EXPERIMENTAL_API").arg("-I").arg(plan.include);
    cc.arg("-I").arg(place::root().join("doca-sim/libs"));
    cc.arg("-o").arg(&file).arg(&code);
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    cc.arg(format!("-Wl,-soname,{}", library.soname()));
    cc.args(["-Wl,-rpath,$ORIGIN", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,--no-as-needed"]).arg(plan.engine);
    for needed in library.needs {
        cc.arg(plan.dir.join(format!("libdoca_{needed}.so.{}", plan.release.full())));
    }
    process::run(&mut cc).map_err(|e| format!("{}: {e}", library.soname()))?;
    Ok(file)
}

/// Some functions are written in C by hand: what takes `...` cannot be passed on, and what depends on the headers
/// is not the engine's to know.
fn by_hand(row: &Row) -> Option<String> {
    place::read(&place::root().join("doca-sim/libs").join(&row.name).with_extension("c")).ok()
}

fn source(library: &Library, rows: &[Row], answers: &BTreeSet<String>) -> String {
    let mut c = String::from("/* Generated from the tables in abi/ by `cargo sim install`. */\n");
    for header in library.headers {
        c += &format!("#include <{header}.h>\n");
    }
    c += "\ndoca_error_t sim_not_supported(const char *name);\n";
    for row in rows {
        let below = format!("sim_{}", row.name);
        let answered = answers.contains(&below);
        let by_hand = by_hand(row);
        if by_hand.as_ref().is_some_and(|text| answered || !text.contains(&below)) {
            _ = write!(c, "\n#include \"{}.c\"\n", row.name);
        } else if answered {
            forward(&mut c, row);
        } else {
            refuse(&mut c, row);
        }
        let (name, (first, second)) = (&row.name, nodes(row.stability));
        _ = writeln!(c, "extern __typeof__({name}) other_{name} __attribute__((alias(\"{name}\")));");
        _ = writeln!(c, "__asm__(\".symver other_{name}, {name}@{second}\");");
        _ = writeln!(c, "__asm__(\".symver {name}, {name}@@@{first}\");");
    }
    c
}

fn forward(c: &mut String, row: &Row) {
    let arguments = declaration::parameter_names(row).join(", ");
    let back = if row.result == "void" { "" } else { "return " };
    _ = write!(
        c,
        "\n{below};\n{here}\n{{\n\t{back}sim_{name}({arguments});\n}}\n",
        below = declaration::prototype(row, "sim_"),
        here = declaration::prototype(row, ""),
        name = row.name,
    );
}

/// A function that a later release of the simulator will have says so, and does nothing.
fn refuse(c: &mut String, row: &Row) {
    let say = format!("sim_not_supported(\"{}\");\n", row.name);
    let answer = match row.result.as_str() {
        "void" => format!("\t{say}"),
        "doca_error_t" => format!("\treturn {say}"),
        by_value if by_value.starts_with("union") && !by_value.ends_with('*') => {
            format!("\t{say}\treturn ({by_value}){{0}};\n")
        }
        _ => format!("\t{say}\treturn 0;\n"),
    };
    _ = write!(c, "\n{}\n{{\n", declaration::prototype(row, ""));
    for name in declaration::parameter_names(row) {
        _ = writeln!(c, "\t(void){name};");
    }
    _ = writeln!(c, "{answer}}}");
}

/// The nodes alone: each symbol carries its own from the code. (The linker hides a symbol that has one version
/// from the code and is named here besides, and those of a node that has a `local: *`; so the last node has it,
/// which nothing is exported from.)
fn version_script() -> String {
    let [nodes @ .., last] = NODES;
    let open = nodes.map(|node| format!("{node} {{\n}};\n")).concat();
    format!("{open}{last} {{\n\tlocal: *;\n}};\n")
}
