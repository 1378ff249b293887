//! Where things are in this repository and on this machine.

use crate::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// The repository's top directory.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Cargo's target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Where cargo puts what it builds with a profile in this target directory.
pub(crate) fn built(target: PathBuf, profile: &str) -> PathBuf {
    match std::env::var_os("CARGO_BUILD_TARGET") {
        Some(triple) => target.join(triple).join(profile),
        None => target.join(profile),
    }
}

/// The folder below `lib/` that Debian names after the machine.
pub(crate) fn triplet() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// All files below a directory, sorted, so that what is derived from them is reproducible.
pub(crate) fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).map_err(|e| format!("cannot list {}: {e}", dir.display()))? {
            let path = entry.map_err(|e| format!("cannot list {}: {e}", dir.display()))?.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Writes a file, making the directories above it.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result {
    make_parent(path)?;
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// Makes the directories above a file.
pub(crate) fn make_parent(path: &Path) -> Result {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))
}
