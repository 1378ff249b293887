//! What the build script may look at: named variables, cargo's facts about the target, chosen features.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every variable that a build can be steered by. Each has a row in the crate documentation, and cargo is
/// told to run the build script again when one of them changes.
pub(crate) const VARIABLES: &[&str] = &[
    "DOCA_DIR",
    "PKG_CONFIG",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "PKG_CONFIG_SYSROOT_DIR",
    "LIBCLANG_PATH",
    "LLVM_CONFIG_PATH",
    "CLANG_PATH",
    "BINDGEN_EXTRA_CLANG_ARGS",
    "DOCS_RS",
];

/// The C libraries that bindings can be made for, `common` always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Common,
    Comch,
    Rdma,
    Sta,
}

impl Library {
    /// The pkg-config modules that can provide this library, the most specific one first.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        match self {
            Library::Common => &["doca-common", "doca"],
            Library::Comch => &["doca-comch", "doca"],
            Library::Rdma => &["doca-rdma", "doca"],
            Library::Sta => &["doca-sta"],
        }
    }

    /// The header that includes the library's public headers, as clang reads it.
    pub(crate) fn wrapper(self) -> (&'static str, &'static str) {
        match self {
            Library::Common => ("common.h", include_str!("../wrapper/common.h")),
            Library::Comch => ("comch.h", include_str!("../wrapper/comch.h")),
            Library::Rdma => ("rdma.h", include_str!("../wrapper/rdma.h")),
            Library::Sta => ("sta.h", include_str!("../wrapper/sta.h")),
        }
    }

    /// The public DOCA headers of the library, as its wrapper lists them.
    pub(crate) fn headers(self) -> impl Iterator<Item = &'static str> {
        let included = |line: &'static str| line.strip_prefix("#include <")?.strip_suffix('>');
        self.wrapper().1.lines().filter_map(included).filter(|header| header.starts_with("doca_"))
    }
}

/// Input of the probe.
pub(crate) struct Environment {
    /// The variables of [`VARIABLES`] that are set.
    pub(crate) variables: BTreeMap<&'static str, String>,
    /// Target architecture in cargo's spelling, never the build machine's.
    pub(crate) arch: String,
    /// Where NVIDIA's documentation installs DOCA.
    pub(crate) documented_prefix: PathBuf,
    /// Bind `libdoca_comch`.
    pub(crate) comch: bool,
    /// Bind `libdoca_rdma`.
    pub(crate) rdma: bool,
    /// Bind `libdoca_sta`, which stands on the RDMA substrate.
    pub(crate) sta: bool,
}

impl Environment {
    /// The environment that cargo gave this process.
    pub(crate) fn of_process() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Environment {
            variables: VARIABLES.iter().filter_map(|&name| Some((name, read(name)?))).collect(),
            arch: read("CARGO_CFG_TARGET_ARCH").unwrap_or_default(),
            documented_prefix: PathBuf::from("/opt/mellanox/doca"),
            comch: read("CARGO_FEATURE_COMCH").is_some(),
            rdma: read("CARGO_FEATURE_RDMA").is_some() || read("CARGO_FEATURE_STA").is_some(),
            sta: read("CARGO_FEATURE_STA").is_some(),
        }
    }

    /// The value of a variable of [`VARIABLES`], if it is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The libraries that the features ask for; one that stands on another comes first, as linkers want it.
    pub(crate) fn libraries(&self) -> Vec<Library> {
        let mut libraries = Vec::new();
        if self.comch {
            libraries.push(Library::Comch);
        }
        if self.sta {
            libraries.push(Library::Sta);
        }
        if self.rdma || self.sta {
            libraries.push(Library::Rdma);
        }
        libraries.push(Library::Common);
        libraries
    }
}
