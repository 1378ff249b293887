//! Where the dynamic loader finds a library, after the rules of glibc's `ld.so`.

use super::elf::Elf;
use super::machine::Target;
use super::{ld_cache, ld_conf};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The system that a program is to run on.
#[derive(Debug)]
pub(crate) struct Loader {
    /// What stands for `/`.
    root: PathBuf,
    /// The directories of `LD_LIBRARY_PATH`, none for an empty or unset one.
    library_path: Option<String>,
    cache: Option<Vec<u8>>,
    /// What `ldconfig` would put into the cache, used where there is none.
    configured: Vec<String>,
}

/// A file in the process that asks for a library, or was loaded on the way to the one that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) path: &'a Path,
    pub(crate) elf: &'a Elf,
}

/// By what a library was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// Its name is a path.
    Path,
    /// The `RPATH` of this file.
    Rpath(PathBuf),
    LibraryPath,
    /// The `RUNPATH` of this file.
    Runpath(PathBuf),
    Cache,
    /// The loader's configuration, as there is no cache.
    Configuration,
    Default,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        match self {
            By::Path => f.write_str("its path"),
            By::Rpath(of) => write!(f, "RPATH of {}", name(of)),
            By::LibraryPath => f.write_str("LD_LIBRARY_PATH"),
            By::Runpath(of) => write!(f, "RUNPATH of {}", name(of)),
            By::Cache => f.write_str("ld.so.cache"),
            By::Configuration => f.write_str("ld.so.conf"),
            By::Default => f.write_str("default directory"),
        }
    }
}

/// A library that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) by: By,
    pub(crate) elf: Elf,
}

/// A search without result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Missed {
    /// Every place, in order.
    pub(crate) searched: Vec<PathBuf>,
    /// Files of that name that do not fit, and why.
    pub(crate) rejected: Vec<(PathBuf, String)>,
}

impl Loader {
    /// The loader of the system below a directory, with this `LD_LIBRARY_PATH`.
    pub(crate) fn new(root: &Path, library_path: Option<String>) -> Loader {
        let etc = root.join("etc");
        let cache = fs::read(etc.join("ld.so.cache")).ok();
        let configured = match cache {
            Some(_) => Vec::new(),
            None => ld_conf::directories(&etc.join("ld.so.conf"), root),
        };
        let library_path = library_path.filter(|path| !path.is_empty());
        Loader { root: root.to_owned(), library_path, cache, configured }
    }

    /// Looks for a library on behalf of the first of these files; each was loaded by the next one, the last is
    /// the program.
    pub(crate) fn find(&self, name: &str, chain: &[Asker<'_>], target: Target) -> Result<Found, Missed> {
        let mut missed = Missed::default();
        let places = self.places(name, chain, target);
        for (path, by) in places {
            match self.open(&path, target) {
                Some(Ok(elf)) => return Ok(Found { path, by, elf }),
                Some(Err(why)) => missed.rejected.push((path.clone(), why)),
                None => {}
            }
            if !missed.searched.contains(&path) {
                missed.searched.push(path);
            }
        }
        Err(missed)
    }

    /// Directories of a file's own search paths.
    pub(crate) fn own_dirs(&self, asker: Asker<'_>) -> Vec<(PathBuf, By)> {
        let lists = [
            (&asker.elf.rpath, By::Rpath(asker.path.to_owned())),
            (&asker.elf.runpath, By::Runpath(asker.path.to_owned())),
        ];
        let mut dirs = Vec::new();
        for (list, by) in lists {
            for dir in list.iter().flat_map(|list| list.split(':')) {
                let expanded = self.expand(dir, asker, asker.elf.target);
                dirs.extend(expanded.into_iter().map(|dir| (dir, by.clone())));
            }
        }
        dirs
    }

    /// Every path at which a library may be, best first.
    fn places(&self, name: &str, chain: &[Asker<'_>], target: Target) -> Vec<(PathBuf, By)> {
        let Some(&asker) = chain.first() else { return Vec::new() };
        if name.contains('/') {
            let paths = self.expand(name, asker, target);
            return paths.into_iter().map(|path| (path, By::Path)).collect();
        }
        let mut places = Vec::new();
        if asker.elf.runpath.is_none() {
            for &asker in chain {
                let rpath = |(_, by): &(PathBuf, By)| matches!(by, By::Rpath(_));
                places.extend(self.own_dirs(asker).into_iter().filter(rpath));
            }
        }
        for dir in self.library_path.iter().flat_map(|path| path.split([':', ';'])) {
            let program = chain.last().copied().unwrap_or(asker);
            places.extend(self.expand(dir, program, target).into_iter().map(|dir| (dir, By::LibraryPath)));
        }
        places.extend(self.own_dirs(asker).into_iter().filter(|(_, by)| matches!(by, By::Runpath(_))));
        let mut places: Vec<_> = places.into_iter().map(|(dir, by)| (dir.join(name), by)).collect();

        let default_dirs = target.default_dirs();
        let is_default = |path: &str| {
            let dir = Path::new(path).parent().unwrap_or(Path::new("/"));
            default_dirs.iter().any(|default| dir == Path::new(default))
        };
        for path in self.cache.iter().flat_map(|cache| ld_cache::lookup(cache, name)) {
            if !(asker.elf.no_default_dirs && is_default(&path)) {
                places.push((self.inside(Path::new(&path)), By::Cache));
            }
        }
        for dir in &self.configured {
            places.push((self.inside(Path::new(dir)).join(name), By::Configuration));
        }
        if !asker.elf.no_default_dirs {
            for dir in &default_dirs {
                places.push((self.inside(Path::new(dir)).join(name), By::Default));
            }
        }
        places
    }

    /// Replaces `$ORIGIN`, `$LIB` and `$PLATFORM`. An empty path is the working directory.
    fn expand(&self, dir: &str, asker: Asker<'_>, target: Target) -> Vec<PathBuf> {
        if dir.is_empty() {
            return vec![PathBuf::from(".")];
        }
        let origin = asker.path.parent().unwrap_or(Path::new("/")).to_string_lossy();
        let dir = replace(&replace(dir, "ORIGIN", &origin), "PLATFORM", target.platform());
        let mut dirs: Vec<String> = target.lib_names().iter().map(|lib| replace(&dir, "LIB", lib)).collect();
        dirs.dedup();
        dirs.iter().map(|dir| self.inside(Path::new(dir))).collect()
    }

    /// A path of the system, as this machine sees it.
    fn inside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("/") {
            Ok(below) if !path.starts_with(&self.root) => self.root.join(below),
            _ => path.to_owned(),
        }
    }

    /// Reads a candidate; none if there is no such file.
    fn open(&self, path: &Path, target: Target) -> Option<Result<Elf, String>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => return Some(Err(error.to_string())),
        };
        Some(match Elf::parse(&bytes) {
            Ok(elf) if elf.target == target => Ok(elf),
            Ok(elf) => Err(format!("is {}", elf.target)),
            Err(why) => Err(why.to_string()),
        })
    }
}

/// Replaces `$NAME` and `${NAME}`.
fn replace(text: &str, name: &str, value: &str) -> String {
    let text = text.replace(&format!("${{{name}}}"), value);
    let mut done = String::new();
    let mut rest = text.as_str();
    let word = format!("${name}");
    while let Some(at) = rest.find(&word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let longer = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        done += before;
        done += if longer { &word } else { value };
        rest = after;
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_replaced_whole() {
        assert_eq!(replace("$ORIGIN/../lib:${ORIGIN}", "ORIGIN", "/a"), "/a/../lib:/a");
        assert_eq!(replace("/x/$LIBRARY/$LIB", "LIB", "lib64"), "/x/$LIBRARY/lib64");
    }
}
