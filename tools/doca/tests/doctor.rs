//! `doca doctor` on installations that are whole or not.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// What the loaded library says where the tests run on the simulator.
const VERSION: &str = "3.3.0000";

/// A made-up installation of the simulator: modules, header, application version.
fn installed(module: &str, header: &str, applications: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write = |path: &str, text: String| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    };
    for name in ["doca-common", "doca-rdma"] {
        let variables = format!(
            "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n",
            dir.path().display()
        );
        let text = format!("{variables}doca_sim=1\nName: {name}\nDescription: made up\nVersion: {module}\n");
        write(&format!("lib/pkgconfig/{name}.pc"), text);
    }
    write("include/doca_version.h", format!("#define DOCA_VERSION_STRING \"{header}\"\n"));
    write("applications/VERSION", format!("{applications}\n"));
    dir
}

/// Exit status and report for a `DOCA_DIR`, where the loader knows no DOCA.
fn doctor(prefix: &Path) -> (i32, Value) {
    doctor_with(Some(prefix), "")
}

/// The same with `LD_LIBRARY_PATH`.
fn doctor_with(prefix: Option<&Path>, libraries: &str) -> (i32, Value) {
    let mut doca = Command::new(env!("CARGO_BIN_EXE_doca"));
    let simulation = tempfile::tempdir().expect("a temporary directory");
    match prefix {
        Some(prefix) => doca.env("DOCA_DIR", prefix),
        None => doca.env_remove("DOCA_DIR"),
    };
    doca.env("LD_LIBRARY_PATH", libraries).env("PKG_CONFIG_PATH", "").env("PKG_CONFIG_LIBDIR", "/nowhere");
    doca.env("DOCA_SIM_DIR", simulation.path()).env("DOCA_SIM_QUIET", "1");
    let output = doca.args(["doctor", "--json"]).output().expect("doca starts");
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code().expect("doca ends by itself"), report.unwrap_or_else(|e| panic!("{e}: {output:?}")))
}

/// What is wrong in a layer.
fn wrong<'a>(report: &'a Value, layer: &str) -> Option<&'a Value> {
    let findings = report["findings"].as_array().expect("a list");
    findings.iter().find(|finding| finding["level"] == "wrong" && finding["layer"] == layer)
}

#[test]
fn a_whole_installation_is_well() {
    let prefix = installed(VERSION, VERSION, "3.3.0");
    let (code, report) = doctor(prefix.path());
    assert_eq!((code, &report["simulator"]), (0, &true.into()), "{report:#}");
}

#[test]
fn parts_of_different_releases_are_wrong() {
    for (module, header, applications) in
        [("3.2.0000", VERSION, "3.3.0"), (VERSION, "3.3.1000", "3.3.0"), (VERSION, VERSION, "3.1.0")]
    {
        let prefix = installed(module, header, applications);
        let (code, report) = doctor(prefix.path());
        let finding = wrong(&report, "version").unwrap_or_else(|| panic!("{report:#}"));
        let text = finding["text"].as_str().unwrap();
        assert_eq!(code, 1);
        for part in [module, header, applications] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(finding["next"].is_string());
    }
}

#[test]
fn missing_parts_are_named_with_their_package() {
    let prefix = installed(VERSION, VERSION, "3.3.0");
    fs::remove_file(prefix.path().join("lib/pkgconfig/doca-rdma.pc")).unwrap();
    let (code, report) = doctor(prefix.path());
    let finding = wrong(&report, "build").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!((code, &finding["next"]), (1, &"install libdoca-sdk-rdma-dev".into()));

    let prefix = installed(VERSION, VERSION, "3.3.0");
    fs::remove_file(prefix.path().join("include/doca_version.h")).unwrap();
    let (code, report) = doctor(prefix.path());
    let finding = wrong(&report, "build").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!((code, &finding["next"]), (1, &"install libdoca-sdk-common-dev".into()));
}

#[test]
fn no_installation_is_wrong_and_tells_where_it_was_sought() {
    let empty = tempfile::tempdir().unwrap();
    let (code, report) = doctor(empty.path());
    assert_eq!((code, &report["simulator"]), (1, &Value::Null));
    let text = wrong(&report, "env").unwrap()["text"].to_string();
    assert!(
        text.contains(&empty.path().display().to_string()) && text.contains("/opt/mellanox/doca"),
        "{text}"
    );
}

#[test]
#[cfg(feature = "device")]
fn a_simulator_that_only_the_loader_knows_is_one() {
    let prefix = std::env::var_os("DOCA_DIR").expect("DOCA_DIR names the SDK of the simulator");
    let prefix = std::path::PathBuf::from(prefix);
    let libraries = prefix.join(format!("lib/{}-linux-gnu", std::env::consts::ARCH));
    let (code, report) = doctor_with(None, libraries.to_str().unwrap());
    assert_eq!((code, &report["simulator"]), (0, &true.into()), "{report:#}");
    let next = report["findings"].as_array().unwrap().iter().find_map(|finding| finding["next"].as_str());
    let prefix = fs::canonicalize(prefix).unwrap();
    assert_eq!(
        next,
        Some(format!("to build with it, set DOCA_DIR={}", prefix.display()).as_str()),
        "{report:#}"
    );
}
