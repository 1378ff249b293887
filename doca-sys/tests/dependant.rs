//! A package that depends on doca-sys, checked by cargo: what its build script is told, and what its user reads when
//! there is nothing to build with.

#[allow(dead_code, reason = "shared with the other tests")]
mod prefix;

use prefix::Prefix;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const MANIFEST: &str = r#"
[package]
name = "dependant"
version = "0.0.0"
edition = "2024"

[dependencies]
doca-sys = { path = "DOCA_SYS", features = ["rdma"] }

[workspace]
"#;

/// Leaves what it is told where the test finds it.
const BUILD_SCRIPT: &str = r#"
fn main() {
    let told = std::env::vars().filter(|(name, _)| name.starts_with("DEP_DOCA_"));
    let lines: String = told.map(|(name, value)| format!("{name}={value}\n")).collect();
    std::fs::write(std::path::Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("told"), lines).unwrap();
}
"#;

const LIBRARY: &str = r#"
pub const SUCCESS: doca_sys::doca_error_t = doca_sys::doca_error_t::DOCA_SUCCESS;
pub fn create() -> doca_sys::doca_error_t {
    let mut pe = std::ptr::null_mut();
    unsafe { doca_sys::doca_pe_create(&mut pe) }
}
"#;

/// Writes the package and has cargo check it, on a machine that has no DOCA but what `variables` name.
fn check(variables: &[(&str, &Path)]) -> (TempDir, Output) {
    let sys = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = tempfile::tempdir().unwrap();
    fs::create_dir(package.path().join("src")).unwrap();
    let files = [
        ("Cargo.toml", MANIFEST.replace("DOCA_SYS", &sys.display().to_string())),
        ("build.rs", BUILD_SCRIPT.to_owned()),
        ("src/lib.rs", LIBRARY.to_owned()),
        // The versions that this workspace has, so that nothing is fetched.
        ("Cargo.lock", fs::read_to_string(sys.join("../Cargo.lock")).unwrap()),
    ];
    for (name, text) in files {
        fs::write(package.path().join(name), text).unwrap();
    }
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet"])
        .current_dir(package.path())
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("dependant"))
        .env("PKG_CONFIG_LIBDIR", "/nonexistent")
        .env_remove("DOCA_DIR")
        .env_remove("PKG_CONFIG_PATH")
        .env_remove("RUSTFLAGS")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    (package, output)
}

/// The headers of the DOCA that this test was built with, and libraries that are empty.
fn copy_of_this_doca() -> Prefix {
    let prefix = Prefix::split(doca_sys::built::VERSION_FULL);
    let source = Path::new(doca_sys::built::PREFIX).join("include");
    for entry in fs::read_dir(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display())) {
        let entry = entry.unwrap();
        if entry.path().is_file() {
            fs::copy(entry.path(), prefix.include().join(entry.file_name())).unwrap();
        }
    }
    prefix
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_dependant_is_told_the_facts() {
    let prefix = copy_of_this_doca();
    let (package, output) = check(&[("DOCA_DIR", prefix.path())]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = fs::read_to_string(package.path().join("told")).unwrap();
    for (key, value) in [
        ("VERSION", doca_sys::built::VERSION.to_owned()),
        ("PREFIX", prefix.path().display().to_string()),
        ("INCLUDE", prefix.include().display().to_string()),
        ("LIBDIR", prefix.libraries().display().to_string()),
        ("MODULES", "doca-rdma doca-common".to_owned()),
        ("SIM", "0".to_owned()),
        ("HAS_COMCH", "0".to_owned()),
        ("HAS_RDMA", "1".to_owned()),
        ("HAS_STA", "0".to_owned()),
        ("HAS_BRIDGE_PREPARE_CONNECTION", "1".to_owned()),
        ("HAS_STA_EU_STATE", "0".to_owned()),
    ] {
        let line = format!("DEP_DOCA_{key}={value}\n");
        assert!(told.contains(&line), "{line:?} is not in\n{told}");
    }
}

#[test]
fn a_machine_without_doca_is_told_what_to_do() {
    let (_package, output) = check(&[]);
    assert!(!output.status.success());
    let message = stderr(&output);
    for words in
        ["doca-sys: DOCA is not installed", "DOCA_DIR: not set", "cargo sim install", "exit status: 1"]
    {
        assert!(message.contains(words), "{words:?} is not in\n{message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

#[test]
fn a_machine_without_libclang_is_told_what_to_install() {
    let prefix = copy_of_this_doca();
    let (_package, output) =
        check(&[("DOCA_DIR", prefix.path()), ("LIBCLANG_PATH", Path::new("/nonexistent"))]);
    assert!(!output.status.success());
    let message = stderr(&output);
    assert!(message.contains("doca-sys: libclang is missing"), "{message}");
    assert!(message.contains("libclang-dev"), "{message}");
    assert!(!message.contains("panicked"), "{message}");
}

#[test]
fn documentation_needs_no_doca() {
    let (_package, output) = check(&[("DOCS_RS", Path::new("1"))]);
    assert!(output.status.success(), "{}", stderr(&output));
}
