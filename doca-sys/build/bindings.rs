//! Bindings out of the installed headers, by libclang.

use crate::build::environment::Library;
use crate::build::messages::Failure;
use bindgen::callbacks::{IntKind, ParseCallbacks};
use bindgen::{BindgenError, EnumVariation, Formatter, RustEdition, RustTarget};
use std::path::{Path, PathBuf};

/// The compiler that the generated code is for: 1.85, the first with edition 2024.
const RUST_MINOR: u64 = 85;

/// Gives macros of all ones their C type; bindgen alone sees a -1.
#[derive(Debug)]
struct Unsigned;

impl ParseCallbacks for Unsigned {
    fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
        (name == "DOCA_STA_VTOPHYS_ERROR").then_some(IntKind::U64)
    }
}

/// Makes sure that libclang can be loaded, since bindgen panics when it cannot.
pub(crate) fn require_libclang() -> Result<(), Failure> {
    clang_sys::load().map_err(|reason| Failure::NoLibclang { reason })
}

/// Generates the bindings of `libraries` from the headers that `cflags` lead to. `wrappers` is the directory of
/// the wrapper headers, `include_dirs` is what messages list.
pub(crate) fn generate(
    libraries: &[Library],
    wrappers: &Path,
    cflags: &[String],
    include_dirs: &[PathBuf],
    watch: bool,
) -> Result<String, Failure> {
    require_libclang()?;
    let mut builder = bindgen::builder()
        .rust_target(RustTarget::stable(RUST_MINOR, 0).unwrap_or_default())
        .rust_edition(RustEdition::Edition2024)
        .formatter(Formatter::Prettyplease)
        .clang_args(cflags)
        .clang_arg("-DDOCA_ALLOW_EXPERIMENTAL_API")
        // The simulator's headers then do with forward declarations, and the bindings do not depend on what is installed.
        .clang_arg("-DDOCA_SIM_NO_VERBS_HEADERS")
        // Callers bring their own bindings of libc, verbs and librdmacm; `src/foreign.rs` has the names.
        .blocklist_type("FILE|_IO_.*|__off.*|ibv_pd|rdma_cm_id")
        .parse_callbacks(Box::new(Unsigned))
        // Values grow from release to release: a Rust enum would make a new one undefined behaviour.
        .default_enum_style(EnumVariation::NewType { is_bitfield: false, is_global: false })
        .bitfield_enum("doca_access_flag")
        .prepend_enum_name(false)
        .derive_debug(true)
        .derive_eq(true)
        .derive_hash(true)
        .generate_cstr(true);
    // A library comes before those it stands on, but is read after them.
    for library in libraries.iter().rev() {
        // What other headers declare, which these include, is in libraries that are not linked.
        for header in library.headers() {
            builder = builder.allowlist_file(format!(".*/{}", header.replace('.', "\\.")));
        }
        builder = builder.header(wrappers.join(library.wrapper().0).display().to_string());
    }
    if watch {
        builder = builder.parse_callbacks(Box::new(bindgen::CargoCallbacks::new()));
    }
    let bindings = builder.generate().map_err(|error| match error {
        BindgenError::ClangDiagnostic(said) => refused(said, include_dirs),
        other => Failure::Headers { said: other.to_string() },
    })?;
    Ok(bindings.to_string())
}

/// Clang's complaint as a failure: a missing file is named with who asked for it.
fn refused(said: String, include_dirs: &[PathBuf]) -> Failure {
    let missing = said.lines().find_map(|line| {
        let (place, rest) = line.split_once(": fatal error: '")?;
        let absent = rest.strip_suffix("' file not found")?;
        let includer = place.split(':').next()?;
        Some((absent.to_owned(), includer.to_owned()))
    });
    match missing {
        Some((absent, includer)) => {
            Failure::NoInclude { absent, includer, include_dirs: include_dirs.to_vec() }
        }
        None => Failure::Headers { said },
    }
}
