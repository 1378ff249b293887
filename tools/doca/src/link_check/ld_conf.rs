//! The configuration that `ldconfig` makes the loader's cache from: `/etc/ld.so.conf` and what it includes.

use std::fs;
use std::path::{Path, PathBuf};

/// The directories that a configuration lists. A file that cannot be read adds none, as with `ldconfig`.
pub(crate) fn directories(file: &Path, root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    read(file, root, 0, &mut found);
    found
}

/// Includes that include each other end here.
const DEPTH: u32 = 8;

fn read(file: &Path, root: &Path, depth: u32, found: &mut Vec<String>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        let Some(patterns) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) else {
            let dirs = line.split([' ', '\t', ',', ':']).filter(|dir| dir.starts_with('/'));
            found.extend(dirs.map(str::to_owned));
            continue;
        };
        for pattern in patterns.split_whitespace().filter(|_| depth < DEPTH) {
            let pattern = match Path::new(pattern).strip_prefix("/") {
                Ok(absolute) => root.join(absolute),
                Err(_) => file.parent().unwrap_or(root).join(pattern),
            };
            for file in matching(&pattern) {
                read(&file, root, depth + 1, found);
            }
        }
    }
}

/// Files whose name fits the last part of a pattern, sorted.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (pattern.parent(), pattern.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let fits = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|file| fits(name.as_bytes(), file.as_bytes()))
    };
    let mut files: Vec<_> = entries.filter(fits).map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Whether a name fits a pattern of the shell's kind, with `*` and `?`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skip| fits(rest, &name[skip..])),
        ([b'?', pattern @ ..], [_, name @ ..]) => fits(pattern, name),
        ([want, pattern @ ..], [is, name @ ..]) => want == is && fits(pattern, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_in_the_order_of_lines_and_includes() {
        let root = tempfile::tempdir().unwrap();
        let etc = root.path().join("etc");
        fs::create_dir_all(etc.join("ld.so.conf.d")).unwrap();
        let write = |name: &str, text: &str| fs::write(etc.join(name), text).unwrap();
        write("ld.so.conf", "/first # note\ninclude /etc/ld.so.conf.d/*.conf\nhwcap 1 nothing\n/last\n");
        write("ld.so.conf.d/b.conf", "/b\ninclude ../ld.so.conf\n");
        write("ld.so.conf.d/a.conf", "/a:/a2\n");
        write("ld.so.conf.d/c.off", "/c\n");
        let found = directories(&etc.join("ld.so.conf"), root.path());
        assert_eq!(found[..4], ["/first", "/a", "/a2", "/b"]);
        assert!(found.contains(&"/last".into()) && !found.contains(&"/c".into()));
    }

    #[test]
    fn patterns_fit() {
        assert!(fits(b"*.conf", b"a.conf") && fits(b"a?c", b"abc") && fits(b"**", b""));
        assert!(!fits(b"*.conf", b"a.conf.off") && !fits(b"a?c", b"ac"));
    }
}
