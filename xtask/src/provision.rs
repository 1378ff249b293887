//! What the commands need from the machine, found or installed.

use crate::{Result, clang, process};
use std::path::Path;
use std::process::{Command, Stdio};

/// Something that has to be on the machine.
struct Need {
    what: &'static str,
    package: &'static str,
    found: fn() -> bool,
}

const COMPILER: Need =
    Need { what: "a C compiler", package: "build-essential", found: || answers("cc", "--version") };
const CXX: Need = Need { what: "a C++ compiler", package: "g++", found: || answers("c++", "--version") };
const PKG_CONFIG: Need =
    Need { what: "pkg-config", package: "pkg-config", found: || answers("pkg-config", "--version") };
const LIBCLANG: Need =
    Need { what: "libclang (bindgen loads it)", package: "libclang-dev", found: || clang::find().is_some() };
const RDMA_HEADERS: Need = Need {
    what: "rdma/rdma_cma.h (doca_rdma.h includes it)",
    package: "librdmacm-dev",
    found: || has_header("rdma/rdma_cma.h"),
};
const VALGRIND: Need =
    Need { what: "valgrind", package: "valgrind", found: || answers("valgrind", "--version") };

const SOCAT: Need = Need { what: "socat", package: "socat", found: || answers("socat", "-V") };

/// What a build of the SDK needs.
pub(crate) fn sdk() -> Result {
    ensure(&[COMPILER, RDMA_HEADERS])
}

/// What a build of the Rust crates needs besides.
pub(crate) fn crates() -> Result {
    ensure(&[COMPILER, RDMA_HEADERS, PKG_CONFIG, LIBCLANG])
}

/// What the whole suite needs.
pub(crate) fn suite() -> Result {
    ensure(&[COMPILER, CXX, RDMA_HEADERS, PKG_CONFIG, LIBCLANG])
}

/// What counting instructions needs besides.
pub(crate) fn counting() -> Result {
    ensure(&[COMPILER, RDMA_HEADERS, PKG_CONFIG, LIBCLANG, VALGRIND])
}

/// Programs for the socket relay to relay, and to compare it with.
pub(crate) fn relaying() -> Result {
    ensure(&[SOCAT])
}

fn ensure(needs: &[Need]) -> Result {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.found)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    // SAFETY: geteuid has no arguments, no preconditions and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root || !answers("apt-get", "--version") {
        return Err(advice(&missing));
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    eprintln!("installing {}", packages.join(" "));
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], &packages[..]].concat())?;
    let still: Vec<&Need> = missing.into_iter().filter(|need| !(need.found)()).collect();
    if still.is_empty() { Ok(()) } else { Err(advice(&still)) }
}

/// What is missing, and the command that installs it.
fn advice(missing: &[&Need]) -> String {
    let whats: Vec<&str> = missing.iter().map(|need| need.what).collect();
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    format!(
        "missing: {}. Install it; on Debian and Ubuntu:\n    sudo apt-get update && sudo apt-get install --yes {}",
        whats.join(", "),
        packages.join(" ")
    )
}

/// apt-get talks to stderr, so that what a command prints stays clean.
fn apt(args: &[&str]) -> Result {
    let mut command = Command::new("apt-get");
    command
        .args(["-o", "DPkg::Lock::Timeout=300", "--quiet"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::io::stderr());
    process::run(&mut command)
}

fn answers(program: &str, flag: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(flag).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn has_header(name: &str) -> bool {
    let usual = ["/usr/include", "/usr/local/include"];
    usual.iter().any(|dir| Path::new(dir).join(name).exists()) || {
        let mut cc = process::cc();
        cc.args(["-E", "-include", name, "-x", "c", "/dev/null"]);
        cc.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_what_is_missing_and_the_command() {
        assert_eq!(
            advice(&[&PKG_CONFIG, &LIBCLANG]),
            "missing: pkg-config, libclang (bindgen loads it). Install it; on Debian and Ubuntu:\n    \
             sudo apt-get update && sudo apt-get install --yes pkg-config libclang-dev"
        );
    }

    #[test]
    fn a_header_is_found_by_the_compiler_and_an_absent_one_is_not() {
        assert!(has_header("stdio.h"));
        assert!(!has_header("rdma/no_such_header.h"));
    }
}
