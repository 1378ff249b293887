//! The installation that a build finds, and whether its parts belong together.

use super::{Finding, Layer};
use crate::link_check::{release, resolve};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The prefix that NVIDIA's packages install to.
const DEFAULT_PREFIX: &str = "/opt/mellanox/doca";

/// Modules that a program may ask for. In old releases `doca` stands for all.
const MODULES: [&str; 6] = ["doca-common", "doca-rdma", "doca-argp", "doca-comch", "doca-sta", "doca"];

/// Libraries that a program with RDMA loads.
const LIBRARIES: [&str; 2] = ["libdoca_common.so.2", "libdoca_rdma.so.2"];

/// An installation.
#[derive(Debug)]
pub(crate) struct Sdk {
    prefix: PathBuf,
    libdir: PathBuf,
    include: PathBuf,
    /// Modules that were found, with their versions.
    modules: Vec<(&'static str, String)>,
    pub(crate) simulator: bool,
    /// The loader knows it, but a build does not.
    only_loaded: bool,
}

/// The simulator's library, if that is what programs without a RUNPATH load.
pub(crate) fn loaded_simulator() -> Option<PathBuf> {
    resolve(LIBRARIES[0]).filter(|found| found.simulator).map(|found| found.path)
}

/// A part of the installation and the version it gives.
struct Source {
    name: String,
    version: String,
}

impl Sdk {
    /// Looks where a build looks: `DOCA_DIR`, pkg-config's paths, the default prefix. Then for a simulator around the library
    /// that programs load.
    pub(crate) fn find() -> Result<Sdk, Finding> {
        if Command::new("pkg-config").arg("--version").output().is_err() {
            let next = "install pkg-config (package pkg-config or pkgconf)";
            return Err(Finding::wrong(Layer::Env, "there is no pkg-config, so no build finds DOCA", next));
        }
        let chosen = std::env::var_os("DOCA_DIR").map(PathBuf::from);
        let loaded = loaded_simulator();
        // `lib` or `lib/TRIPLET` is left out.
        let around = loaded.iter().flat_map(|path| path.ancestors().skip(2).take(2));
        let builds =
            chosen.iter().map(|dir| Some(dir.as_path())).chain([None, Some(Path::new(DEFAULT_PREFIX))]);
        let prefixes = builds.map(|prefix| (prefix, false)).chain(around.map(|prefix| (Some(prefix), true)));
        for (prefix, only_loaded) in prefixes {
            let module = |name: &&'static str| Some((*name, ask(prefix, &["--modversion", name])?));
            let modules: Vec<_> = MODULES.iter().filter_map(module).collect();
            let Some((first, _)) = modules.iter().find(|(name, _)| ["doca-common", "doca"].contains(name))
            else {
                continue;
            };
            let variable =
                |name: &str| ask(prefix, &[&format!("--variable={name}"), first]).unwrap_or_default();
            let dir = |name: &str| {
                let dir = PathBuf::from(variable(name));
                fs::canonicalize(&dir).unwrap_or(dir)
            };
            return Ok(Sdk {
                prefix: dir("prefix"),
                libdir: dir("libdir"),
                include: dir("includedir"),
                simulator: variable("doca_sim") == "1",
                only_loaded,
                modules,
            });
        }
        let sought = chosen.map_or_else(String::new, |dir| format!("DOCA_DIR={}, ", dir.display()));
        let text =
            format!("no module doca-common or doca: sought in {sought}pkg-config's paths, {DEFAULT_PREFIX}");
        let next = "install libdoca-sdk-common-dev and libdoca-sdk-rdma-dev (or doca-all), or set DOCA_DIR to the \
                    prefix of DOCA or of its simulator";
        Err(Finding::wrong(Layer::Env, text, next))
    }

    /// What is right and wrong with it, given the version of the library that this program loaded.
    pub(crate) fn findings(&self, loaded: Option<String>) -> Vec<Finding> {
        let kind = if self.simulator { "the DOCA simulator" } else { "DOCA" };
        let mut findings =
            vec![Finding::ok(Layer::Env, format!("{kind} is installed in {}", self.prefix.display()))];
        let listed: Vec<_> = self.modules.iter().map(|(name, version)| format!("{name} {version}")).collect();
        findings.push(if self.only_loaded {
            let prefix = self.prefix.display();
            let text = format!("programs load it, but no build finds it: {}", listed.join(", "));
            Finding::note(Layer::Build, text, format!("to build with it, set DOCA_DIR={prefix}"))
        } else {
            Finding::ok(Layer::Build, format!("pkg-config finds {}", listed.join(", ")))
        });
        let has = |names: &[&str]| self.modules.iter().any(|(name, _)| names.contains(name));
        if !has(&["doca-rdma", "doca"]) {
            let next = "install libdoca-sdk-rdma-dev";
            findings.push(Finding::wrong(Layer::Build, "there is no module doca-rdma", next));
        }
        if self.header_version().is_none() {
            let text = format!("{} has no readable doca_version.h", self.include.display());
            let next = "install libdoca-sdk-common-dev";
            findings.push(Finding::wrong(Layer::Build, text, next));
        }
        let mut sources = self.sources(loaded);
        findings.extend(self.libraries(&mut sources));
        findings.push(compared(&sources));
        findings
    }

    /// The versions that the installation's files and the loaded library give. What is absent is no mismatch.
    fn sources(&self, loaded: Option<String>) -> Vec<Source> {
        let source = |name: String, version: Option<String>| Some(Source { name, version: version? });
        let caps = self.prefix.join("tools/doca_caps");
        let mut sources: Vec<_> = self
            .modules
            .iter()
            .map(|(name, version)| Source { name: format!("module {name}"), version: version.clone() })
            .collect();
        sources.extend(source("doca_version.h".into(), self.header_version()));
        let file = |path: &Path| first_version(&fs::read_to_string(path).ok()?);
        sources
            .extend(source("applications/VERSION".into(), file(&self.prefix.join("applications/VERSION"))));
        sources.extend(source("doca_caps --version".into(), said(Command::new(caps).arg("--version"))));
        if !self.simulator {
            sources.extend(source("/etc/mlnx-release".into(), file(Path::new("/etc/mlnx-release"))));
        }
        sources.extend(source("the library that this program loaded".into(), loaded));
        sources
    }

    fn header_version(&self) -> Option<String> {
        let text = fs::read_to_string(self.include.join("doca_version.h")).ok()?;
        first_version(text.lines().find(|line| line.contains("DOCA_VERSION_STRING"))?)
    }

    /// Where a program without a search path of its own gets its libraries from.
    fn libraries(&self, sources: &mut Vec<Source>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for library in LIBRARIES {
            let Some(found) = resolve(library) else {
                let text = format!("the loader does not find {library} for a program without a RUNPATH");
                let dir = self.libdir.display();
                let next = format!(
                    "link programs with -Wl,-rpath,{dir}, or name {dir} in /etc/ld.so.conf.d and run ldconfig"
                );
                findings.push(Finding::note(Layer::Link, text, next));
                continue;
            };
            let whose = if found.simulator { "the simulator's" } else { "the real" };
            let path = found.path.display();
            let text = format!("the loader finds {whose} {library} by {}: {path}", found.by);
            findings.push(Finding::ok(Layer::Link, text));
            if found.simulator != self.simulator {
                let text = format!("{library} and the headers are not both real DOCA or both the simulator");
                let next = format!("let LD_LIBRARY_PATH name {}", self.libdir.display());
                findings.push(Finding::wrong(Layer::Link, text, next));
            }
            sources.extend(found.version.map(|version| Source { name: path.to_string(), version }));
        }
        findings
    }
}

/// Whether all sources give the same release.
fn compared(sources: &[Source]) -> Finding {
    let releases: BTreeSet<_> = sources.iter().map(|source| release(&source.version)).collect();
    if let [release] = releases.iter().collect::<Vec<_>>()[..] {
        let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
        return Finding::ok(Layer::Version, format!("release {release} everywhere: {}", names.join(", ")));
    }
    let listed: Vec<_> = sources.iter().map(|source| format!("{} {}", source.name, source.version)).collect();
    let text = format!("parts of different releases: {}", listed.join(", "));
    Finding::wrong(
        Layer::Version,
        text,
        "install all parts from one release of DOCA; nothing above can be trusted before",
    )
}

/// pkg-config's answer, with the directories of a prefix in front of its own.
fn ask(prefix: Option<&Path>, args: &[&str]) -> Option<String> {
    let mut command = Command::new("pkg-config");
    command.args(args);
    if let Some(prefix) = prefix {
        let triplet = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
        let dirs = [triplet.as_str(), "lib64", "lib", "infrastructure/lib"]
            .map(|dir| prefix.join(dir).join("pkgconfig"));
        let own = std::env::var("PKG_CONFIG_PATH").unwrap_or_default();
        let all = dirs.iter().map(|dir| dir.display().to_string()).chain([own]).collect::<Vec<_>>();
        command.env("PKG_CONFIG_PATH", all.join(":"));
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The version in what a program prints.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    first_version(&String::from_utf8_lossy(&output.stdout))
}

/// The first three numbers with dots between them.
fn first_version(text: &str) -> Option<String> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    words.map(|word| word.trim_matches('.')).find(|word| word.matches('.').count() == 2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_a_text() {
        assert_eq!(first_version("#define DOCA_VERSION_STRING \"3.2.1025\"").as_deref(), Some("3.2.1025"));
        assert_eq!(first_version("DOCA_2.5.0_BSP_4.5.0_Ubuntu_22.04").as_deref(), Some("2.5.0"));
        assert_eq!(first_version("bf-bundle 22.04"), None);
    }

    #[test]
    fn a_build_number_makes_no_other_release() {
        let source = |version: &str| Source { name: "x".into(), version: version.into() };
        let level =
            |versions: &[&str]| compared(&versions.iter().map(|v| source(v)).collect::<Vec<_>>()).level;
        assert_eq!(level(&["3.2.1025", "3.2.1", "3.2.1030"]), super::super::Level::Ok);
        assert_eq!(level(&["3.2.1025", "3.2.0", "3.2.1"]), super::super::Level::Wrong);
    }
}
