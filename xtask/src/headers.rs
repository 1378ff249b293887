//! The public headers, as a prefix has them.

use crate::release::{Release, Side};
use crate::{Result, place};
use std::path::{Path, PathBuf};

const VERSION_HEADER: &str = "doca_version.h";

/// Where the headers are kept.
pub(crate) fn source() -> PathBuf {
    place::root().join("doca-sim/include")
}

/// Copies the headers into `include`, with the release's numbers and the side's `doca_build_config.h`.
pub(crate) fn copy(release: Release, side: Side, include: &Path) -> Result {
    let from = source();
    let config = from.join(side.folder()).join("doca_build_config.h");
    place::write(&include.join("doca_build_config.h"), place::read(&config)?)?;
    for path in place::files_below(&from)? {
        let name = path.file_name().unwrap_or_default();
        if path.parent() != Some(&from) || path.extension().is_none_or(|e| e != "h") {
            continue;
        }
        let mut text = place::read(&path)?;
        if name == VERSION_HEADER {
            text = with_release(&text, release)?;
        }
        place::write(&include.join(name), text)?;
    }
    Ok(())
}

fn with_release(text: &str, release: Release) -> Result<String> {
    let [major, minor, patch] = release.numbers();
    let mut wanted = vec![
        ("DOCA_VERSION_MAJOR", major.to_string()),
        ("DOCA_VERSION_MINOR", minor.to_string()),
        ("DOCA_VERSION_PATCH", patch.to_string()),
        ("DOCA_VERSION_STRING", format!("\"{}\"", release.full())),
    ];
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = match words[..] {
            ["#define", name, _] => wanted.iter().position(|(macro_name, _)| *macro_name == name),
            _ => None,
        };
        match found.map(|at| wanted.swap_remove(at)) {
            Some((name, value)) => out += &format!("#define {name} {value}\n"),
            None => {
                out += line;
                out.push('\n');
            }
        }
    }
    match wanted.first() {
        None => Ok(out),
        Some((name, _)) => Err(format!("{VERSION_HEADER} does not define {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_header_carries_the_release() {
        let text = "#define DOCA_VERSION_MAJOR 3\n#define DOCA_VERSION_MINOR\t3\n#define DOCA_VERSION_PATCH 0\n\
            #define DOCA_VERSION_STRING \"3.3.0000\"\n#define OTHER 3\n";
        let out = with_release(text, Release::V3_0).unwrap();
        assert_eq!(
            out,
            "#define DOCA_VERSION_MAJOR 3\n#define DOCA_VERSION_MINOR 0\n#define DOCA_VERSION_PATCH 58\n\
            #define DOCA_VERSION_STRING \"3.0.0058\"\n#define OTHER 3\n"
        );
        assert_eq!(
            with_release("", Release::V3_0).unwrap_err(),
            "doca_version.h does not define DOCA_VERSION_MAJOR"
        );
    }
}
