//! What was found out about a program, for scripts (JSON) and for people.

use super::elf::Kind;
use super::machine::Described;
use super::verdict::Requirement;
use crate::table::columns;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// How a DOCA library comes into the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Link {
    /// The program needs it.
    Direct,
    /// A library of the program needs it.
    Transitive,
    /// Its code is part of the program.
    Static,
    /// Its name is in the program's data, but no part of the program needs it.
    Dlopen,
}

/// Whose library it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    Real,
    Simulator,
    /// The file was not found, or is part of the program.
    Unknown,
}

/// A function that a part of the program takes from a library.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(crate) struct Import {
    pub(crate) name: String,
    /// The version node that it asks for.
    pub(crate) node: Option<String>,
    /// The part that asks.
    pub(crate) by: String,
    /// Whether the library that was found has it. True also where none was found.
    pub(crate) bound: bool,
}

/// One DOCA library.
#[derive(Debug, Serialize)]
pub(crate) struct Library {
    /// The name that it is asked for by, as in `libdoca_rdma.so.2`.
    pub(crate) file: String,
    /// `rdma` for `libdoca_rdma`.
    pub(crate) library: String,
    pub(crate) link: Link,
    /// Whether a file was found; true for code that is part of the program.
    pub(crate) found: bool,
    /// The files that need it.
    pub(crate) needed_by: Vec<String>,
    /// Where the loader takes it from.
    pub(crate) path: Option<PathBuf>,
    /// The same without symbolic links.
    pub(crate) real_path: Option<PathBuf>,
    /// The rule that found it.
    pub(crate) found_by: Option<String>,
    /// Where it was looked for, if it was not found.
    pub(crate) searched: Vec<PathBuf>,
    /// Files of that name that do not fit.
    pub(crate) rejected: Vec<Rejected>,
    /// As in `3.2.1`.
    pub(crate) version: Option<String>,
    /// As the file name has it, as in `3.2.1025`.
    pub(crate) full_version: Option<String>,
    pub(crate) origin: Origin,
    /// Whether a part of the program imports, or has linked in, one of its functions.
    pub(crate) used: bool,
    pub(crate) imports: Vec<Import>,
}

/// A file that has the right name and does not fit.
#[derive(Debug, Serialize)]
pub(crate) struct Rejected {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// A function that moves data by verbs, and the part of the program that calls it.
#[derive(Debug, Serialize)]
pub(crate) struct VerbsCall {
    pub(crate) name: String,
    pub(crate) by: String,
    /// Whether the function's code is part of that file.
    pub(crate) linked_in: bool,
}

/// Something worth a look.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// A word for scripts.
    pub(crate) code: &'static str,
    pub(crate) text: String,
}

/// Everything about one program.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) binary: PathBuf,
    pub(crate) kind: Kind,
    #[serde(flatten)]
    pub(crate) target: Described,
    pub(crate) rpath: Option<String>,
    pub(crate) runpath: Option<String>,
    pub(crate) libraries: Vec<Library>,
    /// Whether a part of the program imports a function of `libdoca_rdma`.
    pub(crate) imports_doca_rdma: bool,
    pub(crate) verbs: Vec<VerbsCall>,
    /// Whether data moves by verbs and no DOCA library is asked to move any.
    pub(crate) bypass: bool,
    /// What shows that the program runs on the simulator, or may.
    pub(crate) simulator: Vec<String>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) requirements: Vec<Requirement>,
    /// Whether all requirements are met.
    pub(crate) ok: bool,
}

impl Report {
    /// The report for people.
    pub(crate) fn text(&self) -> String {
        let Described { bits, endian, architecture } = &self.target;
        let kind = match self.kind {
            Kind::Executable => "executable",
            Kind::PositionIndependentExecutable => "position-independent executable",
            Kind::StaticExecutable => "static executable",
            Kind::StaticPie => "static position-independent executable",
            Kind::SharedObject => "shared object",
        };
        let mut text =
            format!("{}: {kind}, {bits}-bit {endian}-endian {architecture}\n", self.binary.display());
        if self.libraries.is_empty() {
            text += "  no DOCA library\n";
        } else {
            text += &columns(&self.rows());
        }
        for library in self.libraries.iter().filter(|library| !library.found) {
            let searched: Vec<_> = library.searched.iter().map(|path| path.display().to_string()).collect();
            _ = writeln!(text, "  {} was looked for at: {}", library.file, searched.join(" "));
            for Rejected { path, why } in &library.rejected {
                _ = writeln!(text, "    {} {why}", path.display());
            }
        }
        _ = writeln!(text, "imports doca_rdma_*: {}", if self.imports_doca_rdma { "yes" } else { "no" });
        for evidence in &self.simulator {
            _ = writeln!(text, "simulator: {evidence}");
        }
        for finding in &self.findings {
            _ = writeln!(text, "note: {}", finding.text);
        }
        for requirement in &self.requirements {
            let name = &requirement.name;
            if requirement.met {
                _ = writeln!(text, "{name}: ok");
            }
            for why in &requirement.why {
                _ = writeln!(text, "{name}: FAILED: {why}");
            }
        }
        text
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let heading = ["LIBRARY", "LINK", "VERSION", "ORIGIN", "IMPORTS", "WHERE"].map(str::to_owned).into();
        let mut rows: Vec<Vec<String>> = vec![heading];
        for library in &self.libraries {
            let link = match library.link {
                Link::Direct => "direct",
                Link::Transitive => "transitive",
                Link::Static => "static",
                Link::Dlopen => "dlopen",
            };
            let origin = match library.origin {
                Origin::Real => "real",
                Origin::Simulator => "SIMULATOR",
                Origin::Unknown => "-",
            };
            let place = match (&library.real_path, &library.found_by) {
                (Some(path), Some(by)) => format!("{} ({by})", path.display()),
                _ if library.link == Link::Static => "in the program".into(),
                _ => "NOT FOUND".into(),
            };
            let link = match library.link {
                Link::Transitive => format!("{link} by {}", library.needed_by.join(", ")),
                _ => link.to_owned(),
            };
            rows.push(vec![
                library.file.clone(),
                link,
                library.version.clone().unwrap_or_else(|| "-".into()),
                origin.into(),
                counted(&library.imports),
                place,
            ]);
        }
        rows
    }
}

/// Number of functions, by version node.
fn counted(imports: &[Import]) -> String {
    let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
    for import in imports {
        *nodes.entry(import.node.as_deref().unwrap_or("unversioned")).or_default() += 1;
    }
    match nodes.is_empty() {
        true => "none".into(),
        false => nodes.iter().map(|(node, count)| format!("{count} {node}")).collect::<Vec<_>>().join(", "),
    }
}
