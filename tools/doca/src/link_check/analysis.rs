//! From loaded files to a report: which DOCA libraries there are, whose they are and who uses them.

use super::elf::{Elf, Kind, Symbol};
use super::library;
use super::loader::{By, Loader, Missed};
use super::process::Process;
use super::report::{Finding, Import, Library, Link, Origin, Rejected, Report, VerbsCall};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Describes a program, without judging it.
pub(crate) fn describe(binary: &Path, process: &Process, loader: &Loader) -> Report {
    let parts = process.parts();
    let mut libraries = linked(process);
    libraries.extend(linked_in(process, &libraries));
    libraries.extend(mentioned(process, &parts, &libraries, loader));
    let mut unbound = Vec::new();
    for &part in &parts {
        import(process, part, &mut libraries, &mut unbound);
    }
    for library in &mut libraries {
        library.imports.sort();
        library.used |= !library.imports.is_empty();
    }
    let root = &process.objects[0].elf;
    let verbs = verbs(process, &parts);
    let mut report = Report {
        binary: binary.to_owned(),
        kind: root.kind,
        target: root.target.describe(),
        rpath: root.rpath.clone(),
        runpath: root.runpath.clone(),
        imports_doca_rdma: libraries.iter().any(|l| l.library == "rdma" && !l.imports.is_empty()),
        bypass: !verbs.is_empty() && !libraries.iter().any(|library| moves_data(library, root)),
        simulator: simulator(process, &parts, &libraries, loader),
        libraries,
        verbs,
        findings: Vec::new(),
        requirements: Vec::new(),
        ok: true,
    };
    report.findings = findings(&report, process, &unbound);
    report
}

/// The DOCA libraries that the loader loads, or fails to.
fn linked(process: &Process) -> Vec<Library> {
    let mut libraries: Vec<Library> = Vec::new();
    for (index, object) in process.objects.iter().enumerate() {
        for need in &object.needs {
            let Some(name) = library::doca_name(&need.name) else { continue };
            let link = if index == 0 { Link::Direct } else { Link::Transitive };
            let asker = object.name.clone();
            if let Some(known) = libraries.iter_mut().find(|known| known.file == need.name) {
                if !known.needed_by.contains(&asker) {
                    known.needed_by.push(asker);
                }
                continue;
            }
            let found = match &need.object {
                Ok(found) => {
                    let found = &process.objects[*found];
                    Ok((found.path.as_path(), found.by.as_ref(), &found.elf))
                }
                Err(missed) => Err(missed),
            };
            let mut library = placed(&need.name, name, link, found);
            library.needed_by.push(asker);
            libraries.push(library);
        }
    }
    libraries
}

/// The DOCA libraries whose code is part of the program.
fn linked_in(process: &Process, linked: &[Library]) -> Vec<Library> {
    let program = &process.objects[0];
    // A DOCA library defines its own functions, which is not what is asked here.
    if program.elf.soname.as_deref().is_some_and(|name| library::doca_name(name).is_some()) {
        return Vec::new();
    }
    let homes: BTreeSet<_> = program.elf.defined.iter().filter_map(|name| library::home(name)).collect();
    let simulated = program.elf.defined.iter().any(|name| name.starts_with(library::SIMULATOR_PREFIX));
    homes
        .into_iter()
        .filter(|home| !linked.iter().any(|library| library.library == *home))
        .map(|home| Library {
            origin: if simulated { Origin::Simulator } else { Origin::Unknown },
            used: true,
            found: true,
            ..blank(&format!("libdoca_{home}.a"), home, Link::Static)
        })
        .collect()
}

/// The DOCA libraries that the program's data names and that nothing needs.
fn mentioned(process: &Process, parts: &[usize], linked: &[Library], loader: &Loader) -> Vec<Library> {
    let mut libraries: Vec<Library> = Vec::new();
    for &part in parts {
        for file in &process.objects[part].elf.mentions {
            let Some(name) = library::doca_name(file) else { continue };
            if linked.iter().chain(&libraries).any(|known| known.library == name) {
                continue;
            }
            let found = process.look_up(file, part, loader);
            let found = found.as_ref().map(|(path, by, elf)| (path.as_path(), Some(by), elf));
            let mut library = placed(file, name, Link::Dlopen, found);
            library.needed_by.push(process.objects[part].name.clone());
            libraries.push(library);
        }
    }
    libraries
}

fn blank(file: &str, name: &str, link: Link) -> Library {
    Library {
        file: file.to_owned(),
        library: name.to_owned(),
        link,
        found: false,
        needed_by: Vec::new(),
        path: None,
        real_path: None,
        found_by: None,
        searched: Vec::new(),
        rejected: Vec::new(),
        version: None,
        full_version: None,
        origin: Origin::Unknown,
        used: false,
        imports: Vec::new(),
    }
}

/// A library with the file that was found for it.
fn placed(file: &str, name: &str, link: Link, found: Result<(&Path, Option<&By>, &Elf), &Missed>) -> Library {
    let library = blank(file, name, link);
    match found {
        Ok((path, by, elf)) => {
            let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let full_version = library::release_in(&real);
            Library {
                found: true,
                version: full_version.as_deref().map(library::release),
                full_version,
                origin: if is_simulator(name, elf) { Origin::Simulator } else { Origin::Real },
                path: Some(path.to_owned()),
                real_path: Some(real),
                found_by: by.map(ToString::to_string),
                ..library
            }
        }
        Err(Missed { searched, rejected }) => {
            let rejected =
                rejected.iter().map(|(path, why)| Rejected { path: path.clone(), why: why.clone() });
            Library { searched: searched.clone(), rejected: rejected.collect(), ..library }
        }
    }
}

/// Whether a DOCA library is the simulator's.
pub(crate) fn is_simulator(name: &str, elf: &Elf) -> bool {
    let needs = |file: &String| library::doca_name(file) == Some(library::SIMULATOR);
    name == library::SIMULATOR || elf.needed.iter().any(needs)
}

/// Whether a library has what a reference asks for, as the loader matches them.
fn binds(elf: &Elf, wanted: &Symbol) -> bool {
    let start = elf.exports.partition_point(|export| export.name < wanted.name);
    elf.exports[start..]
        .iter()
        .take_while(|export| export.name == wanted.name)
        .any(|export| wanted.node.is_none() || !elf.versioned || export.node == wanted.node)
}

/// Gives each DOCA function that a part imports to the library it comes from.
fn import(process: &Process, part: usize, libraries: &mut [Library], unbound: &mut Vec<String>) {
    let object = &process.objects[part];
    let ours =
        |symbol: &&Symbol| ["doca_", library::SIMULATOR_PREFIX].iter().any(|p| symbol.name.starts_with(p));
    for symbol in object.elf.imports.iter().filter(ours) {
        let source = process.objects.iter().find(|object| binds(&object.elf, symbol));
        let home = match source {
            Some(source) => library::doca_name(&source.name),
            None => {
                symbol.file.as_deref().and_then(library::doca_name).or(library::likely_home(&symbol.name))
            }
        };
        let library = libraries
            .iter_mut()
            .find(|library| library.link != Link::Dlopen && Some(library.library.as_str()) == home);
        let bound = source.is_some() || symbol.weak || library.as_ref().is_some_and(|library| !library.found);
        if !bound {
            unbound.push(spelled(&symbol.name, symbol.node.as_deref()));
        }
        if let Some(library) = library {
            let (name, node, by) = (symbol.name.clone(), symbol.node.clone(), object.name.clone());
            library.imports.push(Import { name, node, by, bound });
        }
    }
}

fn spelled(name: &str, node: Option<&str>) -> String {
    node.map_or_else(|| name.to_owned(), |node| format!("{name}@{node}"))
}

/// Whether the program moves data by this library. Asking what a device can do moves none.
fn moves_data(library: &Library, program: &Elf) -> bool {
    let moving = |name: &str| !name.contains("_cap_");
    let linked_in =
        || program.defined.iter().any(|name| library::home(name) == Some(&library.library) && moving(name));
    match library.library.as_str() {
        "rdma" | "sta" | "comch" => {
            library.imports.iter().any(|import| moving(&import.name))
                || (library.link == Link::Static && linked_in())
        }
        _ => false,
    }
}

/// The functions by which parts of the program move data past DOCA.
fn verbs(process: &Process, parts: &[usize]) -> Vec<VerbsCall> {
    let mut calls = Vec::new();
    for &part in parts {
        let object = &process.objects[part];
        let imported = object.elf.imports.iter().map(|symbol| (&symbol.name, false));
        let linked_in = object.elf.defined.iter().map(|name| (name, true));
        for (name, linked_in) in imported.chain(linked_in) {
            if library::is_verbs_data_path(name) {
                calls.push(VerbsCall { name: name.clone(), by: object.name.clone(), linked_in });
            }
        }
    }
    calls
}

/// What shows that the program runs on the simulator, or would if the directory of its search path is taken.
fn simulator(process: &Process, parts: &[usize], libraries: &[Library], loader: &Loader) -> Vec<String> {
    let mut evidence = Vec::new();
    for library in libraries.iter().filter(|library| library.origin == Origin::Simulator) {
        evidence.push(match &library.real_path {
            Some(path) => format!("{} is the simulator's: {}", library.file, path.display()),
            None => format!("the simulator's {} is part of the program", library.file),
        });
    }
    for (dir, by) in parts.iter().flat_map(|&part| process.search_dirs(part, loader)) {
        if holds_simulator(&dir) {
            let sentence = format!("{by} leads into a simulator: {}", dir.display());
            if !evidence.contains(&sentence) {
                evidence.push(sentence);
            }
        }
    }
    evidence
}

/// Whether a directory of libraries belongs to a simulator: by its library, or by what its modules say.
fn holds_simulator(dir: &Path) -> bool {
    let names = |dir: &Path| -> Vec<PathBuf> {
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let file = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let engine =
        |path: &PathBuf| file(path).is_some_and(|n| library::doca_name(&n) == Some(library::SIMULATOR));
    let module = |path: &PathBuf| {
        path.extension().is_some_and(|kind| kind == "pc")
            && file(path).is_some_and(|name| name.starts_with("doca"))
            && fs::read_to_string(path).is_ok_and(|text| text.lines().any(|line| line.trim() == "doca_sim=1"))
    };
    names(dir).iter().any(engine) || names(&dir.join("pkgconfig")).iter().any(module)
}

fn findings(report: &Report, process: &Process, unbound: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |code, text| findings.push(Finding { code, text });
    for library in &report.libraries {
        let file = &library.file;
        match library.link {
            Link::Direct if !library.used && library.library != library::SIMULATOR => {
                found("unused", format!("{file} is linked but not used: none of its functions is imported"));
            }
            Link::Dlopen => found(
                "dlopen",
                format!("{file} is only named in the data of {}, for dlopen perhaps", library.needed_by[0]),
            ),
            _ => {}
        }
        if !library.found && library.link != Link::Dlopen {
            found("not-found", format!("{file} is not found, so the program does not start"));
        }
    }
    let versions: BTreeSet<_> = report.libraries.iter().filter_map(|l| l.full_version.as_deref()).collect();
    let releases: BTreeSet<_> = report.libraries.iter().filter_map(|l| l.version.as_deref()).collect();
    let listed = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(", ");
    if releases.len() > 1 {
        found("mixed-versions", format!("libraries of different DOCA releases: {}", listed(&versions)));
    } else if versions.len() > 1 {
        found("mixed-builds", format!("libraries of different builds of one release: {}", listed(&versions)));
    }
    if !unbound.is_empty() {
        let text = format!("no library that is loaded has {}, so the program fails", unbound.join(", "));
        found("unbound", text);
    }
    if let Some(first) = report.verbs.first() {
        let names: BTreeSet<_> = report.verbs.iter().map(|call| call.name.as_str()).collect();
        let what = if report.bypass { "moves data by verbs past DOCA" } else { "moves data also by verbs" };
        let code = if report.bypass { "bypass" } else { "verbs" };
        found(code, format!("{} {what}: {}", first.by, listed(&names)));
    }
    let program = &process.objects[0].elf;
    if program.stripped && matches!(program.kind, Kind::StaticExecutable | Kind::StaticPie) {
        let text = "the program is static and stripped, so that code of DOCA or verbs in it cannot be seen";
        found("stripped", text.to_owned());
    }
    let verbs_named = program.mentions.iter().find(|name| library::is_rdma_core(name));
    if let Some(name) = verbs_named.filter(|name| !program.needed.contains(name)) {
        found("verbs-dlopen", format!("{name} is only named in the program's data, for dlopen perhaps"));
    }
    findings
}
