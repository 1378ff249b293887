//! Every way in which the build can fail, and what it tells the user.
//!
//! A message has four parts: what is wrong, what was sought, where, and what to set or install. The way to the
//! simulator closes each of them.

use crate::build::environment::Library;
use crate::build::probe::{Chosen, Place};
use crate::build::version::{NEWEST, OLDEST, Version};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The tool itself does not run.
    NoPkgConfig {
        tool: String,
        reason: String,
    },
    /// No place has DOCA's base library.
    NotFound {
        libraries: Vec<Library>,
        arch: String,
        places: Vec<Place>,
    },
    /// DOCA is there without a library that a feature asks for.
    NoModule {
        library: Library,
        beside: Vec<&'static str>,
        chosen: Rc<Chosen>,
    },
    /// The tool refused a module that is there, mostly for what it requires.
    PkgConfig {
        modules: Vec<String>,
        path: String,
        said: String,
    },
    /// Modules of the simulator and of real DOCA in one place.
    MixedKinds {
        module: &'static str,
        chosen: Rc<Chosen>,
    },
    TooOld {
        source: String,
        version: Version,
        chosen: Rc<Chosen>,
    },
    BadVersion {
        source: String,
        text: String,
        chosen: Rc<Chosen>,
    },
    /// Parts of different releases.
    Mixed {
        sources: Vec<(String, Version)>,
        chosen: Rc<Chosen>,
    },
    NoHeader {
        header: String,
        library: Library,
        include_dirs: Vec<PathBuf>,
        chosen: Rc<Chosen>,
    },
    /// The flags name a library that the linker would not find.
    NoLibrary {
        name: String,
        runtime: Option<PathBuf>,
        dirs: Vec<PathBuf>,
        chosen: Rc<Chosen>,
    },
    WrongArch {
        found: String,
        target: String,
        path: PathBuf,
        chosen: Rc<Chosen>,
    },
    NoLibclang {
        reason: String,
    },
    /// A header is there, but one that it includes is not.
    NoInclude {
        absent: String,
        includer: String,
        include_dirs: Vec<PathBuf>,
    },
    /// Clang or bindgen refused the headers for another reason.
    Headers {
        said: String,
    },
    Write {
        path: PathBuf,
        reason: String,
    },
}

/// The parts of a message; parts without lines are left out.
struct Report {
    what: String,
    sought: Vec<String>,
    looked: Vec<String>,
    cure: Vec<String>,
}

impl Failure {
    fn report(&self) -> Report {
        match self {
            Failure::NoPkgConfig { tool, reason } => Report {
                what: format!("pkg-config cannot be run: {reason}"),
                sought: vec![format!("the program `{tool}`, which knows where DOCA is installed")],
                looked: vec!["PATH, or the program that PKG_CONFIG names".into()],
                cure: vec!["install the package pkg-config (RHEL: pkgconf-pkg-config), or set PKG_CONFIG".into()],
            },
            Failure::NotFound { libraries, arch, places } => not_found(libraries, arch, places),
            Failure::NoModule { library, beside, chosen } => no_module(*library, beside, chosen),
            Failure::PkgConfig { modules, path, said } => Report {
                what: format!("pkg-config refuses {}", modules.join(", ")),
                sought: said.lines().map(str::to_owned).collect(),
                looked: vec![format!("PKG_CONFIG_PATH={path}, then pkg-config's own paths")],
                cure: vec![
                    "install the development package of the module that is not found".into(),
                    "(libibverbs and libmlx5: libibverbs-dev; libnl-3.0: libnl-3-dev; librdmacm: librdmacm-dev), \
                     or add its directory to PKG_CONFIG_PATH"
                        .into(),
                ],
            },
            Failure::MixedKinds { module, chosen } => Report {
                what: "modules of the DOCA simulator and of real DOCA are mixed".into(),
                sought: vec![format!("{module} and doca-common from one installation")],
                looked: looked_in(chosen),
                cure: vec!["name one prefix only in PKG_CONFIG_PATH, or set DOCA_DIR=<prefix>".into()],
            },
            Failure::TooOld { source, version, chosen } => Report {
                what: format!("DOCA {version} is too old ({} has it)", source),
                sought: vec![format!("DOCA {} to {}", minor(OLDEST), minor(NEWEST))],
                looked: looked_in(chosen),
                cure: vec!["install DOCA 3.x; 2.x has functions of the same names with other parameters".into()],
            },
            Failure::BadVersion { source, text, chosen } => Report {
                what: format!("{source} states no version that can be read: {text:?}"),
                sought: vec!["a version such as 3.2.1025".into()],
                looked: looked_in(chosen),
                cure: vec![format!("reinstall {}", package(Library::Common))],
            },
            Failure::Mixed { sources, chosen } => Report {
                what: "partial install: parts of different DOCA releases".into(),
                sought: vec!["one release in all of".into()]
                    .into_iter()
                    .chain(sources.iter().map(|(source, version)| format!("  {source}: {version} ({})", version.text)))
                    .collect(),
                looked: looked_in(chosen),
                cure: vec!["install all DOCA packages in one version, or set DOCA_DIR to a prefix that has that".into()],
            },
            Failure::NoHeader { header, library, include_dirs, chosen } => Report {
                what: format!("the header {header} is missing"),
                sought: vec![format!("{header}, which belongs to {}", library.modules()[0])],
                looked: looked_in(chosen).into_iter().chain(listed(include_dirs)).collect(),
                cure: vec![format!("install {}", package(*library))],
            },
            Failure::NoLibrary { name, runtime, dirs, chosen } => no_library(name, runtime.as_deref(), dirs, chosen),
            Failure::WrongArch { found, target, path, chosen } => Report {
                what: format!("DOCA's libraries are for {found}, but the target is {target}"),
                sought: vec![format!("libraries for {target}")],
                looked: looked_in(chosen).into_iter().chain([path.display().to_string()]).collect(),
                cure: vec![format!(
                    "install DOCA for {target} and let DOCA_DIR or PKG_CONFIG_PATH name it, or build for {found}"
                )],
            },
            Failure::NoLibclang { reason } => Report {
                what: "libclang is missing; it reads DOCA's headers to make the bindings".into(),
                sought: vec![reason.clone()],
                looked: vec!["LIBCLANG_PATH if it is set, else llvm-config and the system's directories".into()],
                cure: vec![
                    "install libclang-dev (RHEL: clang-devel), or set LIBCLANG_PATH to the directory that has \
                     libclang.so"
                        .into(),
                ],
            },
            Failure::NoInclude { absent, includer, include_dirs } => Report {
                what: format!("the header {absent} is missing"),
                sought: vec![format!("{absent}, which {includer} includes")],
                looked: ["the compiler's own directories, and".into()].into_iter().chain(listed(include_dirs)).collect(),
                cure: vec![format!("install {}", package_of_header(absent))],
            },
            Failure::Headers { said } => Report {
                what: "DOCA's headers cannot be read".into(),
                sought: said.lines().map(str::to_owned).collect(),
                looked: Vec::new(),
                cure: vec!["check that the headers are whole; BINDGEN_EXTRA_CLANG_ARGS adds flags for clang".into()],
            },
            Failure::Write { path, reason } => Report {
                what: format!("{} cannot be written: {reason}", path.display()),
                sought: Vec::new(),
                looked: Vec::new(),
                cure: vec!["make room and permission in cargo's target directory".into()],
            },
        }
    }
}

fn not_found(libraries: &[Library], arch: &str, places: &[Place]) -> Report {
    let mut looked = Vec::new();
    let mut cure = vec![
        format!("install {} (or the profile doca-all),", package(Library::Common)),
        "or set DOCA_DIR=<prefix of DOCA>, or PKG_CONFIG_PATH=<directory of doca-common.pc>".into(),
    ];
    for place in places {
        let origin = place.origin;
        match &place.prefix {
            Some(prefix) if !prefix.is_dir() => {
                looked.push(format!("{origin}: {}, which is no directory", prefix.display()));
                continue;
            }
            Some(prefix) => looked.push(format!("{origin}: {}, with", prefix.display())),
            None if place.dirs.is_empty() => looked.push(format!("{origin}: not set")),
            None => looked.push(format!("{origin}:")),
        }
        looked.extend(listed(&place.dirs));
        if let Some(other) = place.other_arch(arch) {
            looked.push(format!("  (it has DOCA for {other}, but the target is {arch})"));
            cure.push(format!("the prefix of {origin} is for {other}: install DOCA for {arch}"));
        }
        for module in ["doca-comch", "doca-rdma", "doca-sta"].into_iter().filter(|module| place.has(module)) {
            looked.push(format!("  (it has {module}, but not the doca-common that {module} stands on)"));
        }
    }
    let modules = libraries.iter().map(|library| library.modules()[0]).collect::<Vec<_>>().join(", ");
    Report {
        what: "DOCA is not installed where it was looked for".into(),
        sought: vec![format!("pkg-config modules {modules} (or the umbrella doca), for {arch}")],
        looked,
        cure,
    }
}

fn no_module(library: Library, beside: &[&str], chosen: &Chosen) -> Report {
    let module = library.modules()[0];
    let substrate = library == Library::Rdma && beside.contains(&Library::Sta.modules()[0]);
    let what = if substrate {
        "doca-sta is installed without the RDMA substrate that it stands on".to_owned()
    } else {
        format!("the pkg-config module {module} is missing")
    };
    Report {
        what,
        sought: vec![format!(
            "{} beside {}",
            library.modules().join(" or the umbrella "),
            beside.join(" and ")
        )],
        looked: looked_in(chosen).into_iter().chain(listed(&chosen.dirs)).collect(),
        cure: vec![
            format!("install {}, or build without the feature that asks for it", package(library)),
            "(another prefix is not searched once doca-common is found: let DOCA_DIR name the one to use)"
                .into(),
        ],
    }
}

fn no_library(name: &str, runtime: Option<&Path>, dirs: &[PathBuf], chosen: &Chosen) -> Report {
    let short = name.trim_start_matches("doca_").replace('_', "-");
    let mut looked: Vec<_> = looked_in(chosen).into_iter().chain(listed(dirs)).collect();
    looked.extend(
        runtime.map(|file| format!("  ({} is for running programs, not for linking)", file.display())),
    );
    Report {
        what: format!("the library lib{name}.so is missing, though its headers are there"),
        sought: vec![format!("lib{name}.so, which pkg-config says to link")],
        looked,
        cure: vec![format!("install libdoca-sdk-{short}-dev (RHEL: doca-sdk-{short}-devel)")],
    }
}

fn looked_in(chosen: &Chosen) -> Vec<String> {
    vec![chosen.to_string()]
}

fn listed(dirs: &[PathBuf]) -> impl Iterator<Item = String> {
    dirs.iter().map(|dir| format!("  {}", dir.display()))
}

fn minor((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// The packages that bring a library's headers and links.
fn package(library: Library) -> String {
    let name = library.modules()[0].trim_start_matches("doca-");
    format!("libdoca-sdk-{name}-dev (RHEL: doca-sdk-{name}-devel)")
}

/// Packages of headers that DOCA's own include, by the start of their names; the first that fits counts.
const FOREIGN_HEADERS: &[(&str, &str)] = &[
    ("rdma/", "librdmacm-dev (RHEL: rdma-core-devel)"),
    ("infiniband/", "libibverbs-dev (RHEL: rdma-core-devel)"),
    ("doca_dpa", "libdoca-sdk-dpa-dev (RHEL: doca-sdk-dpa-devel)"),
    ("doca_gpunetio", "libdoca-sdk-gpunetio-dev (RHEL: doca-sdk-gpunetio-devel)"),
    ("doca_", "DOCA's development packages in full (the profile doca-all)"),
    ("linux/", "linux-libc-dev (RHEL: kernel-headers)"),
    ("std", "clang, whose own headers libclang needs, and libc6-dev (RHEL: clang, glibc-devel)"),
    ("", "the package that has it, or name its directory in BINDGEN_EXTRA_CLANG_ARGS"),
];

fn package_of_header(header: &str) -> &'static str {
    let fits = FOREIGN_HEADERS.iter().find(|(start, _)| header.starts_with(start));
    fits.map(|(_, package)| *package).expect("the last row fits everything")
}

/// How to do without: the simulator in place of an SDK, and its command in place of a hunt for packages.
const SIMULATOR: [&str; 3] = [
    "build with the DOCA simulator, which needs no SDK: `cargo sim -- build` in doca's repository installs",
    "what it needs; elsewhere, set DOCA_DIR=DIR after one `cargo sim install --prefix DIR` there, and to run the",
    "program LD_LIBRARY_PATH=DIR/lib/<arch>-linux-gnu; or evaluate what `cargo sim env` prints there",
];

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { what, sought, looked, cure } = self.report();
        writeln!(f, "doca-sys: {what}\n")?;
        let simulator = SIMULATOR.map(str::to_owned).to_vec();
        for (title, lines) in [("sought", sought), ("where", looked), ("cure", cure), ("or", simulator)] {
            for (index, line) in lines.iter().enumerate() {
                writeln!(f, "  {:<7} {line}", if index == 0 { title } else { "" })?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
