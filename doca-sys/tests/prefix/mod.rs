//! Made-up installations of DOCA, whole or with a part missing.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The wrapper headers, whose include lines are the headers that a whole installation has.
const WRAPPERS: [&str; 4] = [
    include_str!("../../wrapper/common.h"),
    include_str!("../../wrapper/rdma.h"),
    include_str!("../../wrapper/sta.h"),
    include_str!("../../wrapper/comch.h"),
];

/// An installation in a directory of its own, gone when dropped.
pub(crate) struct Prefix {
    dir: TempDir,
    libdir: String,
    extra: String,
}

impl Prefix {
    /// Headers of a release, but no module and no library yet.
    pub(crate) fn new(version: &str) -> Self {
        Self::at("lib/x86_64-linux-gnu", version)
    }

    /// The same with libraries and modules in another directory of the prefix.
    pub(crate) fn at(libdir: &str, version: &str) -> Self {
        let prefix = Prefix {
            dir: tempfile::tempdir().expect("a temporary directory"),
            libdir: libdir.to_owned(),
            extra: String::new(),
        };
        fs::create_dir_all(prefix.modules()).expect("a directory for modules");
        fs::create_dir_all(prefix.include()).expect("a directory for headers");
        let included = |line: &'static str| line.strip_prefix("#include <")?.strip_suffix('>');
        for header in WRAPPERS.iter().flat_map(|text| text.lines()).filter_map(included) {
            if header.starts_with("doca_") {
                prefix.header(header, "");
            }
        }
        prefix.header("doca_version.h", &format!("#define DOCA_VERSION_STRING \"{version}\"\n"));
        prefix
    }

    /// A whole installation with one module for each library.
    pub(crate) fn split(version: &str) -> Self {
        let prefix = Self::new(version);
        for library in ["common", "rdma", "sta", "comch"] {
            prefix.part(library, version);
        }
        prefix
    }

    /// Marks the modules that are added from here on with a line of their own.
    pub(crate) fn with_line(mut self, line: &str) -> Self {
        self.extra = format!("{line}\n");
        self
    }

    /// Adds a library and its module.
    pub(crate) fn part(&self, library: &str, version: &str) {
        self.library(&format!("doca_{library}"));
        self.module(&format!("doca-{library}"), version, &format!("-ldoca_{library}"));
    }

    /// Adds a module that prints these linker flags.
    pub(crate) fn module(&self, name: &str, version: &str, libs: &str) {
        let (prefix, libdir, extra) = (self.path().display(), &self.libdir, &self.extra);
        let text = format!(
            "prefix={prefix}\nlibdir=${{prefix}}/{libdir}\nincludedir=${{prefix}}/include\n{extra}\n\
             Name: {name}\nDescription: made up\nVersion: {version}\n\
             Libs: -L${{libdir}} {libs}\nCflags: -I${{includedir}}\n"
        );
        fs::write(self.modules().join(format!("{name}.pc")), text).expect("a module");
    }

    /// Adds or replaces a header.
    pub(crate) fn header(&self, name: &str, text: &str) {
        fs::write(self.include().join(name), text).expect("a header");
    }

    /// Adds a library with nothing in it, which is enough to be found.
    pub(crate) fn library(&self, name: &str) {
        self.library_of(name, b"");
    }

    /// Adds a library with these bytes.
    pub(crate) fn library_of(&self, name: &str, bytes: &[u8]) {
        fs::write(self.libraries().join(format!("lib{name}.so")), bytes).expect("a library");
    }

    /// Removes a file, given by its path below the prefix.
    pub(crate) fn remove(&self, path: impl AsRef<Path>) {
        fs::remove_file(self.path().join(path)).expect("a file that was there");
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn include(&self) -> PathBuf {
        self.path().join("include")
    }

    pub(crate) fn libraries(&self) -> PathBuf {
        self.path().join(&self.libdir)
    }

    pub(crate) fn modules(&self) -> PathBuf {
        self.libraries().join("pkgconfig")
    }
}
