//! A directory in which programs and libraries are built and checked.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use tempfile::TempDir;

/// A directory of its own, gone when dropped.
pub(crate) struct Bench {
    dir: TempDir,
}

/// What `doca link-check` answered.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) code: i32,
    pub(crate) json: Value,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    /// The absolute path of something in the directory.
    pub(crate) fn path(&self, below: &str) -> String {
        let dir = fs::canonicalize(self.dir.path()).expect("the directory is there");
        dir.join(below).display().to_string()
    }

    /// Links a program. Libraries in `lib` are found by the linker.
    pub(crate) fn program(&self, name: &str, source: &str, flags: &[&str]) {
        self.compile(name, source, flags);
    }

    /// Links a shared library, whose `SONAME` is its file name.
    pub(crate) fn library(&self, dir: &str, file: &str, source: &str, flags: &[&str]) {
        fs::create_dir_all(self.path(dir)).expect("a directory");
        let soname = format!("-Wl,-soname,{file}");
        self.compile(&format!("{dir}/{file}"), source, &[&["-shared", "-fPIC", &soname], flags].concat());
    }

    /// Links a DOCA library of a release, with its chain of names.
    pub(crate) fn doca(&self, dir: &str, name: &str, version: &str, source: &str, flags: &[&str]) {
        let file = format!("libdoca_{name}.so.{version}");
        let soname = format!("libdoca_{name}.so.2");
        fs::create_dir_all(self.path(dir)).expect("a directory");
        let last = format!("-Wl,-soname,{soname}");
        self.compile(&format!("{dir}/{file}"), source, &[&["-shared", "-fPIC", &last], flags].concat());
        for link in [soname, format!("libdoca_{name}.so")] {
            let link = self.path(&format!("{dir}/{link}"));
            _ = fs::remove_file(&link);
            symlink(&file, link).expect("a symbolic link");
        }
    }

    fn compile(&self, output: &str, source: &str, flags: &[&str]) {
        let file = self.path("source.c");
        fs::write(&file, source).expect("a source file");
        let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        // The linker would take libraries of libraries from there.
        cc.env_remove("LD_LIBRARY_PATH");
        cc.current_dir(self.dir.path()).args(["-o", output, &file, "-Llib"]).args(flags);
        let said = cc.output().expect("a C compiler");
        assert!(said.status.success(), "{cc:?}: {}", String::from_utf8_lossy(&said.stderr));
    }

    /// Checks a program for a script, without `LD_LIBRARY_PATH`.
    pub(crate) fn check(&self, program: &str, args: &[&str]) -> Checked {
        self.check_in(program, args, "")
    }

    /// The same with directories to search.
    pub(crate) fn check_in(&self, program: &str, args: &[&str], library_path: &str) -> Checked {
        let mut checked = self.run(&[&[program, "--json", "--library-path", library_path], args].concat());
        let json = serde_json::from_str(&checked.stdout);
        checked.json = json.unwrap_or_else(|error| panic!("{error}: {checked:?}"));
        assert_eq!(checked.stderr, "");
        checked
    }

    /// Runs `doca link-check` in the directory.
    pub(crate) fn run(&self, args: &[&str]) -> Checked {
        self.run_in(args, "")
    }

    /// The same with `LD_LIBRARY_PATH`.
    pub(crate) fn run_in(&self, args: &[&str], library_path: &str) -> Checked {
        let mut doca = Command::new(env!("CARGO_BIN_EXE_doca"));
        doca.current_dir(self.dir.path()).env("LD_LIBRARY_PATH", library_path).arg("link-check").args(args);
        let said = doca.output().expect("doca starts");
        Checked {
            code: said.status.code().expect("doca ends by itself"),
            json: Value::Null,
            stdout: String::from_utf8(said.stdout).expect("text"),
            stderr: String::from_utf8(said.stderr).expect("text"),
        }
    }

    /// The path from which the system's own loader takes a library of a program.
    pub(crate) fn loaded(&self, program: &str, library_path: &str, library: &str) -> Option<String> {
        let mut program = Command::new(self.path(program));
        program.env("LD_TRACE_LOADED_OBJECTS", "1").env("LD_LIBRARY_PATH", library_path);
        let said = String::from_utf8(program.output().expect("the program starts").stdout).expect("text");
        let line = said.lines().find_map(|line| line.trim().strip_prefix(library)?.strip_prefix(" => "));
        let path = line.unwrap_or_else(|| panic!("{library} in {said}")).split(" (").next()?;
        (path != "not found").then(|| path.to_owned())
    }
}

impl Checked {
    /// The entry of a DOCA library.
    pub(crate) fn library(&self, name: &str) -> &Value {
        let libraries = self.json["libraries"].as_array().expect("a list");
        let found = libraries.iter().find(|library| library["library"] == name);
        found.unwrap_or_else(|| panic!("{name}: {self:?}"))
    }

    /// The codes of all findings.
    pub(crate) fn findings(&self) -> Vec<&str> {
        let findings = self.json["findings"].as_array().expect("a list");
        findings.iter().map(|finding| finding["code"].as_str().expect("a word")).collect()
    }

    /// The first reason of a requirement.
    pub(crate) fn why(&self, requirement: usize) -> String {
        self.json["requirements"][requirement]["why"][0].as_str().unwrap_or_default().to_owned()
    }
}
