//! `doca caps` on devices that a topology file describes.
#![cfg(feature = "device")]

use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Runs `doca caps` on the default devices with some fields changed.
fn caps(change: &Value, args: &[&str]) -> Output {
    let dir: TempDir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("topology.json");
    let mut topology = json!({ "extends": "default" });
    for (side, devices) in change.as_object().expect("an object") {
        topology[side] = devices.clone();
    }
    fs::write(&file, topology.to_string()).expect("a topology file");
    let mut doca = Command::new(env!("CARGO_BIN_EXE_doca"));
    doca.env("DOCA_SIM_TOPOLOGY", file).env("DOCA_SIM_DIR", dir.path()).env("DOCA_SIM_QUIET", "1");
    doca.arg("caps").args(args).output().expect("doca starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("doca ends by itself")
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn every_device_is_told_with_port_gids_and_capabilities() {
    let change = json!({ "host": { "mlx5_0": {
        "active_rate": 100_000_000_000_u64, "rdma": { "tasks": { "read": false }, "max_send_queue_size": 64 }
    } } });
    let output = caps(&change, &["--json"]);
    assert_eq!((code(&output), output.stderr.as_slice()), (0, &b""[..]));
    let report = json_of(&output);
    assert_eq!(report["devices"].as_array().unwrap().len(), 2);
    let device = &report["devices"][0];
    assert_eq!((&device["ibdev"], &device["pci"]), (&json!("mlx5_0"), &json!("0000:3b:00.0")));
    let port = json!({
        "interface": "ens1f0np0", "link_layer": "Ethernet", "mac": "02:00:00:3b:00:00", "lid": null,
        "ipv4": "192.168.1.1", "ipv6": "fe80::ff:fe3b:0", "rate": 100_000_000_000_u64
    });
    assert_eq!(device["port"], port);
    assert_eq!(device["errors"], json!({}));
    assert_eq!(device["capabilities"]["rdma.read"], false);
    assert_eq!(device["capabilities"]["rdma.write"], true);
    assert_eq!(device["capabilities"]["rdma.max_send_queue_size"], 64);
    assert_eq!(device["gids"].as_array().unwrap().len(), 4, "empty entries are left out");
    assert_eq!(
        device["gids"][3],
        json!({
            "index": 3, "address": "::ffff:192.168.1.1", "protocol": "RoCE v2", "usable": true
        })
    );
    assert_eq!(
        (&device["gids"][2]["protocol"], &device["gids"][2]["usable"]),
        (&json!("RoCE v1"), &json!(false))
    );
}

#[test]
fn every_capability_query_of_the_tables_has_a_name() {
    let table = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../abi/doca_rdma.tsv")).unwrap();
    let is_query =
        |line: &&str| line.starts_with("fn\tdoca_rdma_cap_") && !line.contains("\tdoca_rdma_cap_get_gid\t");
    let queries = table.lines().filter(is_query).count();
    let report = json_of(&caps(&json!({}), &["--json"]));
    let capabilities = report["devices"][0]["capabilities"].as_object().unwrap();
    // Two queries take a transport type, and are asked for both.
    assert_eq!(capabilities.keys().filter(|name| name.starts_with("rdma.")).count(), queries + 2);
}

#[test]
fn storage_targets_are_known_or_the_missing_feature_is() {
    let output = caps(&json!({}), &["--require", "sta.qps>=16,sta.io_queue_size>=64"]);
    let said = String::from_utf8_lossy(&output.stderr);
    if cfg!(feature = "sta") {
        assert_eq!(code(&output), 0, "{said}");
    } else {
        assert!(code(&output) == 2 && said.contains("--features doca-tools/sta"), "{said}");
    }
}

#[test]
fn people_read_it_too() {
    let output = caps(&json!({}), &["--device", "3b:00.1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in
        ["mlx5_1 at 0000:3b:00.1", "200 Gb/s", "Ethernet", "::ffff:192.168.2.1", "rdma.send ", "RoCE v2"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("mlx5_0"), "{text}");
}

#[test]
fn an_infiniband_port_has_a_lid() {
    let change = json!({ "host": { "mlx5_0": { "link_layer": "infiniband", "lid": 7 } } });
    let report = json_of(&caps(&change, &["--json", "--device", "mlx5_0"]));
    let port = &report["devices"][0]["port"];
    assert_eq!((&port["link_layer"], &port["lid"]), (&json!("InfiniBand"), &json!(7)), "{report}");
}

#[test]
fn conditions_are_an_exit_status() {
    let change = json!({ "host": {
        "mlx5_0": { "rdma": { "tasks": { "atomic_cmp_swp": false }, "max_send_queue_size": 256 } },
        "mlx5_1": { "rdma": { "max_send_queue_size": 64 } },
    } });
    for (args, status) in [
        (&["--require", "rdma.send"][..], 0),
        (&["--require", "rdma.max_send_queue_size>=128"], 0),
        (&["--require", "rdma.atomic_cmp_swp"], 0),
        (&["--require", "rdma.atomic_cmp_swp,rdma.max_send_queue_size>=128"], 1),
        (&["--require", "rdma.atomic_cmp_swp", "--device", "mlx5_0"], 1),
        (&["--require", "rdma.max_send_queue_size==64", "--device", "ens1f1np1"], 0),
        (&["--require", "rdma.max_send_queue_size<64", "--device", "ens1f1np1"], 1),
    ] {
        let output = caps(&change, args);
        assert_eq!(code(&output), status, "{args:?}: {output:?}");
    }
    let output = caps(&change, &["--require", "rdma.max_send_queue_size>=128", "--device", "mlx5_1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("rdma.max_send_queue_size>=128: FAILED, the device says 64"), "{text}");
    let report = json_of(&caps(&change, &["--json", "--require", "rdma.read", "--device", "mlx5_1"]));
    assert_eq!((&report["ok"], &report["requirements"][0]["found"]), (&json!(true), &json!("yes")));
}

#[test]
fn without_devices_no_condition_holds() {
    let none = json!({ "host": { "mlx5_0": null, "mlx5_1": null } });
    assert_eq!(code(&caps(&none, &[])), 0);
    assert_eq!(code(&caps(&none, &["--require", "rdma.send"])), 1);
}

#[test]
fn what_is_not_understood_is_named() {
    for (args, says) in [
        (&["--require", "rdma.sned"][..], "rdma.send, "),
        (&["--require", "rdma.send>=1"], "not compared with a number"),
        (&["--require", "rdma.max_message_size>=1Gi"], "\"1Gi\" is not a number"),
        (&["--device", "mlx5_9"], "there is mlx5_0 (0000:3b:00.0, ens1f0np0), mlx5_1"),
        (&["--colour"], "unexpected argument"),
    ] {
        let output = caps(&json!({}), args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((code(&output), said.contains(says)), (2, true), "{args:?}: {said}");
    }
    let output = caps(&json!({ "host": { "mlx5_0": { "colour": 1 } } }), &[]);
    assert_eq!(code(&output), 2, "{output:?}");
}

#[cfg(feature = "sta")]
#[test]
fn storage_target_limits_are_conditions_too() {
    let change = json!({ "host": {
        "mlx5_0": { "sta": { "supported": false } }, "mlx5_1": { "sta": { "max_io_queue_size": 1024 } }
    } });
    let conditions = "sta.qps>=16,sta.io_queue_size>=1024";
    for (device, status) in [("mlx5_0", 1), ("mlx5_1", 0)] {
        let output = caps(&change, &["--require", conditions, "--device", device]);
        assert_eq!(code(&output), status, "{device}: {output:?}");
    }
    let report = json_of(&caps(&change, &["--json"]));
    let [none, all] = [&report["devices"][0]["capabilities"], &report["devices"][1]["capabilities"]];
    assert_eq!((&none["sta.supported"], &none["sta.qps"]), (&json!(false), &json!(null)));
    assert_eq!((&all["sta.supported"], &all["sta.qps"]), (&json!(true), &json!(512)));
}
