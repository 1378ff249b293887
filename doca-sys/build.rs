//! Finds DOCA, reads its headers, and says what to link. The steps are in `build/`.

#[path = "build/mod.rs"]
mod build;

use build::environment::{Environment, VARIABLES};
use build::messages::Failure;
use build::{bindings, facts, probe};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=wrapper");
    println!("cargo::rustc-check-cfg=cfg(doca_simulator)");
    for name in VARIABLES {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let env = Environment::of_process();
    let done = if env.var("DOCS_RS").is_some() { document() } else { bind(&env) };
    if let Err(failure) = done {
        eprintln!("\n{failure}");
        std::process::exit(1);
    }
}

/// Binds the installed DOCA.
fn bind(env: &Environment) -> Result<(), Failure> {
    let sdk = probe::find(env)?;
    let wrappers = package_dir().join("wrapper");
    let code = bindings::generate(&env.libraries(), &wrappers, &sdk.cflags, &sdk.include_dirs, true)?;
    write(&code)?;

    for warning in &sdk.warnings {
        println!("cargo::warning={warning}");
    }
    for file in &sdk.watched {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    for word in &sdk.libs {
        println!("cargo::{}", linked(word));
    }
    for dir in &sdk.library_dirs {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", dir.display());
    }
    tell(facts::metadata(&sdk, &code));
    if sdk.chosen.simulator {
        println!("cargo::rustc-cfg=doca_simulator");
    }
    Ok(())
}

/// Serves documentation builds, which have no SDK: the bindings that were made from the simulator's headers.
fn document() -> Result<(), Failure> {
    let path = package_dir().join("src/docsrs.rs");
    println!("cargo::rerun-if-changed={}", path.display());
    let code = fs::read_to_string(&path).map_err(|error| Failure::Headers { said: error.to_string() })?;
    write(&code)?;
    tell(facts::documented(&code));
    Ok(())
}

/// A linker flag in cargo's words.
fn linked(flag: &str) -> String {
    match (flag.strip_prefix("-L"), flag.strip_prefix("-l:"), flag.strip_prefix("-l")) {
        (Some(dir), ..) => format!("rustc-link-search=native={dir}"),
        (_, Some(file), _) => format!("rustc-link-lib=dylib:+verbatim={file}"),
        (.., Some(name)) => format!("rustc-link-lib={name}"),
        _ => format!("rustc-link-arg={flag}"),
    }
}

/// Hands facts to dependants, and to this crate's own code.
fn tell(facts: Vec<(String, String)>) {
    for (key, value) in facts {
        println!("cargo::metadata={key}={value}");
        println!("cargo::rustc-env=DOCA_SYS_{key}={value}");
    }
}

fn write(code: &str) -> Result<(), Failure> {
    let path = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("bindings.rs");
    fs::write(&path, code).map_err(|error| Failure::Write { path, reason: error.to_string() })
}

fn package_dir() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"))
}
