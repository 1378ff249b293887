//! The `pkg-config` tool, asked the way a user would ask it.

use crate::build::environment::Environment;
use crate::build::messages::Failure;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The tool with a search path that starts at the installation that was chosen.
pub(crate) struct PkgConfig {
    tool: String,
    path: String,
    settings: Vec<(&'static str, String)>,
}

impl PkgConfig {
    /// Makes modules in `dirs` win over those of the same name elsewhere; modules of other projects are still
    /// found where the user's variables and the tool's own paths have them.
    pub(crate) fn new(env: &Environment, dirs: &[PathBuf]) -> Self {
        let mut path: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        path.extend(env.var("PKG_CONFIG_PATH").map(str::to_owned));
        let settings = ["PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"]
            .into_iter()
            .filter_map(|name| Some((name, env.var(name)?.to_owned())))
            .collect();
        PkgConfig {
            tool: env.var("PKG_CONFIG").unwrap_or("pkg-config").to_owned(),
            path: path.join(":"),
            settings,
        }
    }

    /// The words that the tool prints for `question` about `modules`, unescaped.
    pub(crate) fn words(&self, question: &str, modules: &[&str]) -> Result<Vec<String>, Failure> {
        self.ask(&[question], modules, &[]).map(|text| split_words(&text))
    }

    /// Directories that the tool prints for `question`, those the compiler searches anyway included.
    pub(crate) fn dirs(&self, question: &str, modules: &[&str]) -> Result<Vec<PathBuf>, Failure> {
        let all = [("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1"), ("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")];
        let text = self.ask(&[question], modules, &all)?;
        let mut dirs: Vec<PathBuf> = Vec::new();
        for word in split_words(&text) {
            let dir = Path::new(word.get(2..).unwrap_or_default());
            if !dirs.iter().any(|known| known == dir) {
                dirs.push(dir.to_owned());
            }
        }
        Ok(dirs)
    }

    /// The version of one module, as its file spells it.
    pub(crate) fn version(&self, module: &str) -> Result<String, Failure> {
        self.ask(&["--modversion"], &[module], &[]).map(|text| text.trim().to_owned())
    }

    /// A variable of one module; empty when the file does not define it.
    pub(crate) fn variable(&self, name: &str, module: &str) -> Result<String, Failure> {
        self.ask(&["--variable", name], &[module], &[]).map(|text| text.trim().to_owned())
    }

    /// The directories that the tool searches by itself.
    pub(crate) fn own_dirs(&self) -> Result<Vec<PathBuf>, Failure> {
        let list = match self.settings.iter().find(|(name, _)| *name == "PKG_CONFIG_LIBDIR") {
            Some((_, dirs)) => dirs.clone(),
            None => self.variable("pc_path", "pkg-config")?,
        };
        Ok(split_dirs(&list))
    }

    fn ask(&self, question: &[&str], modules: &[&str], extra: &[(&str, &str)]) -> Result<String, Failure> {
        let mut command = Command::new(&self.tool);
        command.arg("--print-errors").args(question).args(modules);
        command.env_remove("PKG_CONFIG_LIBDIR").env_remove("PKG_CONFIG_SYSROOT_DIR");
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command.env("PKG_CONFIG_PATH", &self.path).envs(extra.iter().copied());
        let Output { status, stdout, stderr } = command
            .output()
            .map_err(|error| Failure::NoPkgConfig { tool: self.tool.clone(), reason: error.to_string() })?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        Err(Failure::PkgConfig {
            modules: modules.iter().map(|&module| module.to_owned()).collect(),
            path: self.path.clone(),
            said: String::from_utf8_lossy(&stderr).trim().to_owned(),
        })
    }
}

/// The entries of a colon-separated list of directories.
pub(crate) fn split_dirs(list: &str) -> Vec<PathBuf> {
    list.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from).collect()
}

/// Splits the tool's output at blanks that are not escaped by a backslash.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.extend(letters.next()),
            blank if blank.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
