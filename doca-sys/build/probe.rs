//! Finds DOCA and refuses what would not work: every way to fail is a [`Failure`] of its own.

use crate::build::environment::{Environment, Library};
use crate::build::messages::Failure;
use crate::build::pkg_config::{PkgConfig, split_dirs};
use crate::build::version::{NEWEST, OLDEST, Version};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Where a prefix keeps its pkg-config files, under `<prefix>`; `@` is the target architecture.
const MODULE_DIRS: &[&str] = &[
    "lib/@-linux-gnu/pkgconfig",
    "lib64/pkgconfig",
    "lib/pkgconfig",
    "infrastructure/lib/@-linux-gnu/pkgconfig",
    "infrastructure/lib64/pkgconfig",
    "infrastructure/lib/pkgconfig",
];

/// One of the four places that are searched, in the order of the variants.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) origin: Origin,
    /// The prefix, for the places that are one.
    pub(crate) prefix: Option<PathBuf>,
    /// Directories that may hold `.pc` files.
    pub(crate) dirs: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    DocaDir,
    PkgConfigPath,
    PkgConfig,
    Documented,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::DocaDir => "DOCA_DIR",
            Origin::PkgConfigPath => "PKG_CONFIG_PATH",
            Origin::PkgConfig => "pkg-config's own paths",
            Origin::Documented => "the documented prefix",
        })
    }
}

impl Place {
    fn of_prefix(origin: Origin, prefix: &Path, arch: &str) -> Self {
        let dirs = MODULE_DIRS.iter().map(|dir| prefix.join(dir.replace('@', arch))).collect();
        Place { origin, prefix: Some(prefix.to_owned()), dirs }
    }

    /// Whether one of the directories has a file for the module.
    pub(crate) fn has(&self, module: &str) -> bool {
        self.dirs.iter().any(|dir| dir.join(format!("{module}.pc")).is_file())
    }

    /// Whether DOCA's base library can be found here, by its own module or the umbrella.
    fn has_doca(&self) -> bool {
        Library::Common.modules().iter().any(|module| self.has(module))
    }

    /// An architecture other than `arch` that the prefix has DOCA for.
    pub(crate) fn other_arch(&self, arch: &str) -> Option<String> {
        let prefix = self.prefix.as_ref()?;
        let entries = fs::read_dir(prefix.join("lib")).ok()?;
        entries.flatten().find_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let other = name.strip_suffix("-linux-gnu")?;
            (other != arch && Place::of_prefix(self.origin, prefix, other).has_doca())
                .then(|| other.to_owned())
        })
    }
}

/// The places to search, in order. One that the environment does not name has no directories.
fn places(env: &Environment) -> Result<[Place; 4], Failure> {
    let prefix = env.var("DOCA_DIR").map(Path::new);
    let listed = |origin, dirs| Place { origin, prefix: None, dirs };
    Ok([
        prefix
            .map_or(listed(Origin::DocaDir, Vec::new()), |p| Place::of_prefix(Origin::DocaDir, p, &env.arch)),
        listed(Origin::PkgConfigPath, split_dirs(env.var("PKG_CONFIG_PATH").unwrap_or_default())),
        listed(Origin::PkgConfig, PkgConfig::new(env, &[]).own_dirs()?),
        Place::of_prefix(Origin::Documented, &env.documented_prefix, &env.arch),
    ])
}

/// Which installation was chosen, as messages name it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) origin: Origin,
    pub(crate) prefix: PathBuf,
    /// Directories in which every module was looked for.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) simulator: bool,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.simulator { "the DOCA simulator" } else { "DOCA" };
        write!(f, "{what} at {}, found by {}", self.prefix.display(), self.origin)
    }
}

/// A usable installation.
#[derive(Debug)]
pub(crate) struct Sdk {
    pub(crate) chosen: Rc<Chosen>,
    /// The modules that were linked, the most dependent first.
    pub(crate) modules: Vec<&'static str>,
    pub(crate) version: Version,
    pub(crate) comch: bool,
    pub(crate) rdma: bool,
    pub(crate) sta: bool,
    /// Where DOCA's headers are.
    pub(crate) include_dirs: Vec<PathBuf>,
    /// Where DOCA's libraries are.
    pub(crate) library_dirs: Vec<PathBuf>,
    /// Compiler flags, word by word as pkg-config prints them.
    pub(crate) cflags: Vec<String>,
    /// Linker flags, word by word as pkg-config prints them.
    pub(crate) libs: Vec<String>,
    /// What is odd, but no reason to stop.
    pub(crate) warnings: Vec<String>,
    /// Files whose change makes another probe necessary.
    pub(crate) watched: Vec<PathBuf>,
}

impl Sdk {
    /// Linker flags that are neither `-L` nor `-l`; cargo hands those to this package's own binaries only.
    pub(crate) fn link_args(&self) -> impl Iterator<Item = &str> {
        self.libs.iter().map(String::as_str).filter(|word| !word.starts_with("-L") && !word.starts_with("-l"))
    }
}

/// Finds the installation for `env`, or says why there is none to use.
pub(crate) fn find(env: &Environment) -> Result<Sdk, Failure> {
    let places = places(env)?;
    let Some(place) = places.iter().find(|place| place.has_doca()) else {
        return Err(Failure::NotFound {
            arch: env.arch.clone(),
            libraries: env.libraries(),
            places: places.into(),
        });
    };
    let mut warnings = Vec::new();
    if let Some(named) = env.var("DOCA_DIR").filter(|_| place.origin != Origin::DocaDir) {
        warnings
            .push(format!("DOCA_DIR={named} has no doca-common module; {} is used instead", place.origin));
    }

    let tool = PkgConfig::new(env, &place.dirs);
    let base = module_of(place, Library::Common).expect("the place was chosen for it");
    let chosen = Rc::new(Chosen {
        origin: place.origin,
        prefix: prefix_of(&tool, place, base)?,
        dirs: place.dirs.clone(),
        simulator: is_simulator(&tool, base)?,
    });

    let mut modules: Vec<&'static str> = Vec::new();
    for library in env.libraries() {
        let module = module_of(place, library).ok_or_else(|| Failure::NoModule {
            library,
            beside: env.libraries().into_iter().filter_map(|other| module_of(place, other)).collect(),
            chosen: chosen.clone(),
        })?;
        if !modules.contains(&module) {
            modules.push(module);
        }
    }
    one_kind(&tool, &modules, &chosen)?;

    let library_dirs = straight_all(tool.dirs("--libs-only-L", &modules)?);
    right_arch(&library_dirs, &env.arch, &chosen)?;
    let include_dirs = straight_all(tool.dirs("--cflags-only-I", &modules)?);
    let (version, notes, header) = one_version(&tool, place, &modules, &include_dirs, &chosen)?;
    warnings.extend(notes);

    for library in env.libraries() {
        if let Some(header) = library.headers().find(|header| find_file(&include_dirs, header).is_none()) {
            return Err(Failure::NoHeader { header: header.to_owned(), library, include_dirs, chosen });
        }
    }
    let libs = tool.words("--libs", &modules)?;
    every_library(&libs, &library_dirs, &env.arch, &chosen)?;

    let mut watched = vec![header];
    watched.extend(
        place.dirs.iter().flat_map(|dir| modules.iter().map(|module| dir.join(format!("{module}.pc")))),
    );
    watched.retain(|file| file.is_file());
    Ok(Sdk {
        comch: env.libraries().contains(&Library::Comch),
        rdma: env.libraries().contains(&Library::Rdma),
        sta: env.libraries().contains(&Library::Sta),
        cflags: tool.words("--cflags", &modules)?,
        include_dirs: include_dirs.into_iter().filter(|dir| holds(dir, "doca_")).collect(),
        library_dirs: library_dirs.into_iter().filter(|dir| holds(dir, "libdoca")).collect(),
        chosen,
        modules,
        version,
        libs,
        warnings,
        watched,
    })
}

/// The most specific module of the place that provides the library.
fn module_of(place: &Place, library: Library) -> Option<&'static str> {
    library.modules().iter().copied().find(|module| place.has(module))
}

/// The prefix that the base module states, or the place's own.
fn prefix_of(tool: &PkgConfig, place: &Place, base: &str) -> Result<PathBuf, Failure> {
    let stated = tool.variable("prefix", base)?;
    if !stated.is_empty() {
        return Ok(straight(PathBuf::from(stated)));
    }
    let holds = |dir: &&PathBuf| dir.join(format!("{base}.pc")).is_file();
    Ok(place.prefix.clone().or_else(|| place.dirs.iter().find(holds).cloned()).unwrap_or_default())
}

/// The simulator marks its modules with the variable `doca_sim=1`.
fn is_simulator(tool: &PkgConfig, module: &str) -> Result<bool, Failure> {
    Ok(tool.variable("doca_sim", module)? == "1")
}

/// Refuses modules of which some belong to the simulator and some do not.
fn one_kind(tool: &PkgConfig, modules: &[&'static str], chosen: &Rc<Chosen>) -> Result<(), Failure> {
    for &module in modules {
        if is_simulator(tool, module)? != chosen.simulator {
            return Err(Failure::MixedKinds { module, chosen: chosen.clone() });
        }
    }
    Ok(())
}

/// The version that all modules of the place and the header agree on, notes about builds, and the header.
fn one_version(
    tool: &PkgConfig,
    place: &Place,
    modules: &[&'static str],
    include_dirs: &[PathBuf],
    chosen: &Rc<Chosen>,
) -> Result<(Version, Vec<String>, PathBuf), Failure> {
    let decode = |source: String, text: String| match Version::parse(&text) {
        Some(version) if version.release.minor_release() < OLDEST => {
            Err(Failure::TooOld { source, version, chosen: chosen.clone() })
        }
        Some(version) => Ok((source, version)),
        None => Err(Failure::BadVersion { source, text, chosen: chosen.clone() }),
    };

    // An umbrella that is there but not used still tells what was installed beside the split modules.
    let umbrella = Some("doca").filter(|module| !modules.contains(module) && place.has(module));
    let mut sources = Vec::new();
    for module in modules.iter().copied().chain(umbrella) {
        sources.push(decode(format!("module {module}"), tool.version(module)?)?);
    }
    let Some(header) = find_file(include_dirs, "doca_version.h") else {
        return Err(Failure::NoHeader {
            header: "doca_version.h".to_owned(),
            library: Library::Common,
            include_dirs: include_dirs.to_vec(),
            chosen: chosen.clone(),
        });
    };
    let text = fs::read_to_string(&header).unwrap_or_default();
    let stated = Version::of_header(&text).map_or_else(String::new, |version| version.text);
    sources.push(decode(header.display().to_string(), stated)?);

    let version = sources[0].1.clone();
    if sources.iter().any(|(_, other)| other.release != version.release) {
        return Err(Failure::Mixed { sources, chosen: chosen.clone() });
    }
    let mut notes = Vec::new();
    let builds: Vec<_> = sources.iter().filter_map(|(_, version)| version.build).collect();
    if builds.windows(2).any(|pair| pair[0] != pair[1]) {
        let list: Vec<_> = sources.iter().map(|(source, version)| format!("{source} is {version}")).collect();
        notes.push(format!("parts of {chosen} come from different builds: {}", list.join(", ")));
    }
    if version.release.minor_release() > NEWEST {
        let (major, minor) = NEWEST;
        notes.push(format!(
            "DOCA {version} is newer than {major}.{minor}, the newest these bindings were checked with"
        ));
    }
    Ok((version, notes, header))
}

/// Refuses libraries of another architecture than the target's, going by the name of their directory.
fn right_arch(dirs: &[PathBuf], arch: &str, chosen: &Rc<Chosen>) -> Result<(), Failure> {
    for dir in dirs.iter().filter(|dir| holds(dir, "libdoca")) {
        let named = dir.iter().filter_map(|part| part.to_str()?.strip_suffix("-linux-gnu")).next_back();
        if let Some(found) = named.filter(|found| *found != arch) {
            let (found, target) = (found.to_owned(), arch.to_owned());
            return Err(Failure::WrongArch { found, target, path: dir.clone(), chosen: chosen.clone() });
        }
    }
    Ok(())
}

/// Sees to it that each DOCA library of the flags is there to be linked, and is for the target.
fn every_library(libs: &[String], dirs: &[PathBuf], arch: &str, chosen: &Rc<Chosen>) -> Result<(), Failure> {
    for name in libs.iter().filter_map(|word| word.strip_prefix("-l")).filter(|name| name.starts_with("doca"))
    {
        let found =
            [format!("lib{name}.so"), format!("lib{name}.a")].iter().find_map(|file| find_file(dirs, file));
        let Some(path) = found else {
            return Err(Failure::NoLibrary {
                name: name.to_owned(),
                runtime: dirs.iter().find_map(|dir| runtime_library(dir, name)),
                dirs: dirs.to_vec(),
                chosen: chosen.clone(),
            });
        };
        if let Some(found) = machine(&path).filter(|found| *found != arch) {
            let (found, target) = (found.to_owned(), arch.to_owned());
            return Err(Failure::WrongArch { found, target, path, chosen: chosen.clone() });
        }
    }
    Ok(())
}

/// A versioned file of a library, which serves running programs but not the linker.
fn runtime_library(dir: &Path, name: &str) -> Option<PathBuf> {
    let start = format!("lib{name}.so.");
    let entries = fs::read_dir(dir).ok()?;
    entries.flatten().find(|entry| entry.file_name().to_string_lossy().starts_with(&start)).map(|e| e.path())
}

/// The same directory without the `..` of relocatable `.pc` files. Links are followed only where that needs it, so
/// that a prefix which is a link stays one.
fn straight(dir: PathBuf) -> PathBuf {
    let crooked = dir.components().any(|part| part == Component::ParentDir);
    if crooked { fs::canonicalize(&dir).unwrap_or(dir) } else { dir }
}

fn straight_all(dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    dirs.into_iter().map(straight).collect()
}

/// Whether a directory has a file whose name starts so.
fn holds(dir: &Path, start: &str) -> bool {
    fs::read_dir(dir).is_ok_and(|files| {
        files.flatten().any(|file| file.file_name().to_str().is_some_and(|name| name.starts_with(start)))
    })
}

/// The architecture an ELF file is for, in cargo's spelling; nothing for other files.
fn machine(path: &Path) -> Option<&'static str> {
    use std::io::Read;
    let mut header = [0; 20];
    fs::File::open(path).ok()?.read_exact(&mut header).ok()?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    match u16::from_le_bytes([header[18], header[19]]) {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        _ => None,
    }
}

/// The first of `dirs` that holds `name`, joined with it.
fn find_file(dirs: &[PathBuf], name: &str) -> Option<PathBuf> {
    dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file())
}
