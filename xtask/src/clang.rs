//! libclang, which bindgen loads at build time.

use std::fs;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "LIBCLANG_PATH";

/// The directory that holds a libclang (or the file, which bindgen accepts as well): the user's choice if there is
/// one there, else the newest in the usual places.
pub(crate) fn find() -> Option<PathBuf> {
    chosen().or_else(|| places(Path::new("/")).into_iter().find(|dir| holds_libclang(dir)))
}

/// What `LIBCLANG_PATH` names, if there is a libclang.
fn chosen() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(VARIABLE)?);
    (path.is_file() || holds_libclang(&path)).then_some(path)
}

/// The variable to set for cargo, if it has to be.
pub(crate) fn variable() -> Option<(&'static str, PathBuf)> {
    if chosen().is_some() {
        return None;
    }
    find().map(|dir| (VARIABLE, dir))
}

/// Where distributions put it, newest LLVM first.
fn places(root: &Path) -> Vec<PathBuf> {
    let list = |dir: &str, keep: &dyn Fn(&str) -> bool| -> Vec<PathBuf> {
        let entries = fs::read_dir(root.join(dir)).into_iter().flatten().flatten();
        entries
            .map(|e| e.path())
            .filter(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(keep))
            .collect()
    };
    let release = |path: &PathBuf| -> u32 {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.trim_start_matches("llvm-").trim_start_matches("llvm").parse().unwrap_or(0)
    };
    let mut llvm = list("usr/lib", &|name| name.starts_with("llvm"));
    llvm.extend(list("usr/lib64", &|name| name.starts_with("llvm")));
    llvm.sort_by_key(|path| std::cmp::Reverse(release(path)));
    let mut places: Vec<PathBuf> = llvm.iter().flat_map(|dir| [dir.join("lib"), dir.join("lib64")]).collect();
    places.extend(list("usr/lib", &|name| name.ends_with("-linux-gnu")));
    places.extend(["usr/lib64", "usr/lib", "usr/local/lib64", "usr/local/lib"].map(|dir| root.join(dir)));
    places
}

fn holds_libclang(dir: &Path) -> bool {
    fs::read_dir(dir).into_iter().flatten().flatten().any(|e| is_libclang(&e.file_name().to_string_lossy()))
}

/// The names that bindgen looks for: `libclang.so`, `libclang-14.so` and these with a version behind.
fn is_libclang(name: &str) -> bool {
    let Some((stem, version)) = name.split_once(".so") else { return false };
    let plain = version.is_empty() || version.starts_with('.');
    let stem = stem.strip_prefix("libclang").unwrap_or("?");
    plain
        && (stem.is_empty()
            || stem.strip_prefix('-').is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_bindgen_accepts() {
        for name in
            ["libclang.so", "libclang.so.1", "libclang-14.so", "libclang-14.so.1", "libclang-14.0.6.so"]
        {
            assert!(is_libclang(name), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclangAST.a", "libclang.a", "libLLVM.so", "libclang.sox"] {
            assert!(!is_libclang(name), "{name}");
        }
    }

    #[test]
    fn the_newest_llvm_is_preferred() {
        let root = tempfile::tempdir().unwrap();
        for release in ["9", "14", "13"] {
            let dir = root.path().join(format!("usr/lib/llvm-{release}/lib"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("libclang.so.1"), "").unwrap();
        }
        let found = places(root.path()).into_iter().find(|dir| holds_libclang(dir)).unwrap();
        assert_eq!(found, root.path().join("usr/lib/llvm-14/lib"));
    }
}
