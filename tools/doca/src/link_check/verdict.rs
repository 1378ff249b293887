//! Whether a program is what was asked for.

use super::report::{Library, Link, Origin, Report};
use clap::ValueEnum;
use serde::Serialize;

/// A DOCA library that a program may be required to use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Wanted {
    /// libdoca_rdma: remote direct memory access
    Rdma,
    /// libdoca_sta: storage target offload, with the RDMA library that it works by
    Sta,
    /// libdoca_comch: messages between host and DPU
    Comch,
}

impl Wanted {
    fn library(self) -> &'static str {
        match self {
            Wanted::Rdma => "rdma",
            Wanted::Sta => "sta",
            Wanted::Comch => "comch",
        }
    }
}

/// What is asked of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demands {
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) forbid_simulator: bool,
    /// Whether libraries may be absent here, because the program runs elsewhere.
    pub(crate) allow_missing: bool,
}

/// One thing that was asked, and the answer.
#[derive(Debug, Serialize)]
pub(crate) struct Requirement {
    pub(crate) name: String,
    pub(crate) met: bool,
    /// Each reason why it is not met.
    pub(crate) why: Vec<String>,
}

/// Adds the verdict to a report.
pub(crate) fn judge(report: &mut Report, demands: &Demands) {
    let mut wanted = demands.wanted.clone();
    wanted.sort();
    wanted.dedup();
    let mut requirements = Vec::new();
    for wanted in wanted {
        let name = wanted.library();
        let mut why = used(report, name, demands);
        if wanted == Wanted::Sta {
            why.extend(present(report, "rdma", demands).err());
        }
        requirements.push((format!("require {name}"), why));
    }
    if demands.forbid_simulator {
        requirements.push(("forbid simulator".into(), not_simulated(report, demands)));
    }
    report.requirements =
        requirements.into_iter().map(|(name, why)| Requirement { name, met: why.is_empty(), why }).collect();
    report.ok = report.requirements.iter().all(|requirement| requirement.met);
}

/// The library, if the program has it and it can be loaded.
fn present<'a>(report: &'a Report, name: &str, demands: &Demands) -> Result<&'a Library, String> {
    let Some(library) = report.libraries.iter().find(|library| library.library == name) else {
        return Err(format!("libdoca_{name} is not linked"));
    };
    if library.link == Link::Dlopen {
        return Err(format!("{} is not linked, only named in the program's data", library.file));
    }
    if !library.found && !demands.allow_missing {
        return Err(format!(
            "{} is not found; put its directory into the RUNPATH or LD_LIBRARY_PATH, or, for a program of another \
             system, give its root as --sysroot or use --allow-missing",
            library.file
        ));
    }
    Ok(library)
}

/// Why the program does not use a library.
fn used(report: &Report, name: &str, demands: &Demands) -> Vec<String> {
    let mut why = Vec::new();
    if report.bypass {
        let calls: Vec<_> = report.verbs.iter().map(|call| format!("{} in {}", call.name, call.by)).collect();
        why.push(format!("bypass: data moves by verbs, not by DOCA ({})", calls.join(", ")));
    }
    match present(report, name, demands) {
        Err(reason) => why.push(reason),
        Ok(library) if !library.used => why.push(format!(
            "{} is linked but not used: no part of the program imports a doca_{name}_* function",
            library.file
        )),
        Ok(library) => {
            let unbound: Vec<_> = library.imports.iter().filter(|import| !import.bound).collect();
            if let Some(first) = unbound.first() {
                let node = first.node.as_ref().map(|node| format!("@{node}")).unwrap_or_default();
                let (file, count) = (&library.file, unbound.len());
                why.push(format!(
                    "{file} lacks {count} of the imported functions, first {}{node}",
                    first.name
                ));
            }
        }
    }
    why
}

/// Why the program may run on the simulator.
fn not_simulated(report: &Report, demands: &Demands) -> Vec<String> {
    let mut why = report.simulator.clone();
    let unknown = |library: &&Library| library.origin == Origin::Unknown;
    for library in report.libraries.iter().filter(unknown).filter(|_| !demands.allow_missing) {
        let file = &library.file;
        why.push(match library.link {
            Link::Static => continue,
            _ => format!("whose {file} it would be cannot be told, as it is not found"),
        });
    }
    why
}
