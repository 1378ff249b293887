//! Which Rust item reaches a C function, read from the sources of the safe crates.

use crate::{Result, place};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The safe crates, by directory.
const CRATES: [&str; 4] = ["doca-common", "doca-rdma", "doca-sta", "doca-comch"];

/// What the safe crates do with C functions, by name.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Items that carry the function as `#[doc(alias)]`.
    items: BTreeMap<String, BTreeSet<String>>,
    /// Modules whose code names the function.
    modules: BTreeMap<String, BTreeSet<String>>,
}

impl Sources {
    /// Reads the sources of every safe crate.
    pub(crate) fn read() -> Result<Sources> {
        let mut sources = Sources::default();
        for name in CRATES {
            let dir = place::root().join(name).join("src");
            for path in place::files_below(&dir)?.iter().filter(|p| p.extension().is_some_and(|e| e == "rs"))
            {
                let module = module_of(name, path.strip_prefix(&dir).unwrap_or(path));
                sources.scan(&name.replace('-', "_"), &module, &place::read(path)?);
            }
        }
        Ok(sources)
    }

    /// The cell for a function, none if no safe crate reaches it.
    pub(crate) fn method(&self, function: &str) -> Option<String> {
        let quoted = |set: &BTreeSet<String>| {
            set.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let items = self.items.get(function).map(quoted);
        items.or_else(|| self.modules.get(function).map(|set| format!("inside {}", quoted(set))))
    }

    fn scan(&mut self, krate: &str, module: &str, text: &str) {
        let mut aliases = Vec::new();
        let mut owner = None;
        for line in text.lines().take_while(|line| *line != "#[cfg(test)]") {
            let code = line.trim_start();
            if code.starts_with("//") {
                continue;
            }
            if let Some(alias) = code.strip_prefix("#[doc(alias = \"") {
                aliases.extend(alias.split('"').next().map(str::to_owned));
                continue;
            }
            if code.starts_with("#[") {
                continue;
            }
            if line.starts_with("impl") || line.starts_with("unsafe impl") {
                owner = owner_of(line);
            } else if line == "}" {
                owner = None;
            }
            if let Some(item) = item_of(code).filter(|_| !aliases.is_empty()) {
                let path = match &owner {
                    Some(owner) => format!("{krate}::{owner}::{item}"),
                    None => format!("{module}::{item}"),
                };
                for alias in aliases.drain(..) {
                    self.items.entry(alias).or_default().insert(path.clone());
                }
            }
            // Names in texts are not calls.
            for piece in code.split('"').step_by(2) {
                let words = piece.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                for word in words.filter(|word| word.starts_with("doca_")) {
                    self.modules.entry(word.to_owned()).or_default().insert(module.to_owned());
                }
            }
        }
    }
}

/// `doca_rdma::raw::task` for `raw/task.rs`.
fn module_of(krate: &str, file: &Path) -> String {
    let mut parts = vec![krate.replace('-', "_")];
    parts.extend(file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()));
    if parts.last().is_some_and(|last| last == "lib") {
        parts.pop();
    }
    parts.join("::")
}

/// The type whose `impl` block a line opens.
fn owner_of(line: &str) -> Option<String> {
    let mut rest = line.trim_start_matches("unsafe ").trim_start_matches("impl");
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let rest = rest.split(" for ").last()?.trim_start();
    let path = rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).next()?;
    path.rsplit("::").next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The name of the item that a line declares.
fn item_of(code: &str) -> Option<&str> {
    let mut words = code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.find(|word| matches!(*word, "fn" | "struct" | "enum" | "trait" | "type" | "static"))?;
    words.next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_name_the_method_and_calls_the_module() {
        let mut sources = Sources::default();
        sources.scan(
            "doca_x",
            "doca_x::raw::a",
            "impl<'a, T: Into<u8>> Thing<'a, T> {\n    #[doc(alias = \"doca_a\")]\n    #[must_use]\n    pub const fn get(&self) {\n\
             \x20       // doca_c\n        call(\"doca_b\", doca_sys::doca_d(1));\n    }\n}\n\n#[doc(alias = \"doca_e\")]\n\
             pub fn free() {}\n#[cfg(test)]\nmod tests { fn f() { doca_f() } }\n",
        );
        let method = |name| sources.method(name);
        assert_eq!(method("doca_a").as_deref(), Some("`doca_x::Thing::get`"));
        assert_eq!(method("doca_d").as_deref(), Some("inside `doca_x::raw::a`"));
        assert_eq!(method("doca_e").as_deref(), Some("`doca_x::raw::a::free`"));
        assert_eq!([method("doca_b"), method("doca_c"), method("doca_f")], [None, None, None]);
    }

    #[test]
    fn modules_are_named_after_their_files() {
        assert_eq!(module_of("doca-rdma", Path::new("raw/task.rs")), "doca_rdma::raw::task");
        assert_eq!(module_of("doca-sta", Path::new("lib.rs")), "doca_sta");
    }
}
