//! Which DOCA this crate was built with. Documentation builds have no SDK: there all texts are empty.

/// Release of the headers, as in `3.2.1`.
pub const VERSION: &str = env!("DOCA_SYS_VERSION");

/// Release and build as the installation spells them, as in `3.2.1025`.
pub const VERSION_FULL: &str = env!("DOCA_SYS_VERSION_FULL");

/// Prefix of the installation.
pub const PREFIX: &str = env!("DOCA_SYS_PREFIX");

/// Directories of the libraries, separated by colons. Binaries find the libraries there at run time if their
/// package says so to the linker.
pub const LIBDIR: &str = env!("DOCA_SYS_LIBDIR");

/// Whether the libraries are the simulator's.
pub const SIMULATOR: bool = cfg!(doca_simulator);
