//! The files in `deploy/`, as the programs that will read them see them. Where such a program is missing, a test says so in
//! capitals and ends.

use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_doca_socket_relay");
const UNIT: &str = include_str!("../deploy/doca-socket-relay@.service");
const POD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/doca-socket-relay.yaml");

/// Runs a program; `None` where it is missing.
fn run(command: &mut Command) -> Option<Output> {
    let output = command.output();
    if output.is_err() {
        eprintln!("\n*** NOT TESTED: {command:?} cannot be run here ***\n");
    }
    output.ok()
}

#[test]
fn systemd_takes_the_unit() {
    let dir = tempfile::tempdir().unwrap();
    let installed = "/usr/local/bin/doca_socket_relay";
    assert!(UNIT.contains(installed));
    let unit = dir.path().join("doca-socket-relay@.service");
    std::fs::write(&unit, UNIT.replace(installed, PROGRAM)).unwrap();
    let Some(output) = run(Command::new("systemd-analyze").arg("verify").arg(&unit)) else { return };
    // Of other units of this machine it may have its own opinion.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("doca-socket-relay"), "{said}");
}

#[test]
fn the_pod_is_yaml_and_its_commands_are_the_relay_s() {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    if !run(Command::new("python3").args(["-c", "import yaml"])).is_some_and(|output| output.status.success())
    {
        eprintln!("\n*** NOT TESTED: Python's yaml is missing; apt-get install python3-yaml ***\n");
        return;
    }
    let output = run(Command::new("python3").args(["-c", script, POD])).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pods: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let container = &pods[0]["spec"]["containers"][0];
    let words = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let probes = ["livenessProbe", "readinessProbe"].map(|probe| words(&container[probe]["exec"]["command"]));
    for command in probes {
        assert_eq!(command[0], "doca_socket_relay");
        check_flags(&command[1..]);
    }
    let mut args = words(&container["args"]);
    args.push("--check".to_owned());
    check_flags(&args);
}

/// None of them is refused as a usage error: what they ask for is not here.
fn check_flags(args: &[String]) {
    let output = run(Command::new(PROGRAM).env("DOCA_SIM_QUIET", "1").args(args)).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !said.contains("argument") && !said.contains("needs a value") && !said.contains("needed"),
        "{said}"
    );
}
