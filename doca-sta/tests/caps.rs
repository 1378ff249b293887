//! Every limit, as a topology file says. A process reads one topology, so each test asks in a process of its own.

use doca_common::caps::Value;
use doca_common::{Code, Device, DeviceInfo, Kind, Refusal};
use doca_sta::caps;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

const CHILD: &str = "DOCA_STA_TEST_CHILD";

/// Runs `body` of the test of this name in a process with this topology, which must not log anything.
fn with_topology(test: &str, topology: &str, body: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(topology.as_bytes()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("DOCA_SIM_TOPOLOGY", file.path())
        .env("DOCA_SIM_QUIET", "1")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
    assert_eq!(err, "");
}

fn device(name: &str) -> DeviceInfo {
    DeviceInfo::list().unwrap().into_iter().find(|device| device.is_called(name)).expect(name)
}

#[test]
fn every_query_of_the_table_is_asked() {
    let table = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../abi/doca_sta.tsv")).unwrap();
    let queries: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("fn\t")?.split('\t').next())
        .filter(|name| ["_cap_", "_get_max_", "_get_min_", "_is_"].iter().any(|part| name.contains(part)))
        .collect();
    assert_eq!(queries, caps::ALL.iter().map(|question| question.call).collect());
}

#[test]
fn every_limit_is_read() {
    const TOPOLOGY: &str = r#"{
        "extends": "default",
        "sta": {
            "max_devs": 2001, "max_subsys": 2002, "max_ns_per_subs": 2003, "max_qps": 2004,
            "max_io_threads": 2005, "max_io_size": 2006, "min_ioccsz": 2007, "max_ioccsz": 2008,
            "min_iorcsz": 2009, "max_iorcsz": 2010, "max_icdoff": 2011, "max_be": 2012,
            "max_qs_per_be": 2013, "logical_block_sizes": [4096]
        },
        "host": {
            "mlx5_1": {
                "sta": {
                    "max_num_eus_available": 3001, "max_num_connected_qp_per_eu": 3002,
                    "max_io_num_per_dev": 3003, "max_io_queue_size": 3004
                }
            }
        }
    }"#;
    with_topology("every_limit_is_read", TOPOLOGY, || {
        let device = device("mlx5_1");
        let snapshot = caps::snapshot(&device);
        let expected = [
            ("sta.be", Value::Number(2012)),
            ("sta.block_size_4096", Value::Supported(true)),
            ("sta.block_size_512", Value::Supported(false)),
            ("sta.devs", Value::Number(2001)),
            ("sta.icdoff", Value::Number(2011)),
            ("sta.io_num_per_dev", Value::Number(3003)),
            ("sta.io_queue_size", Value::Number(3004)),
            ("sta.io_size", Value::Number(2006)),
            ("sta.io_threads", Value::Number(2005)),
            ("sta.max_ioccsz", Value::Number(2008)),
            ("sta.max_iorcsz", Value::Number(2010)),
            ("sta.min_ioccsz", Value::Number(2007)),
            ("sta.min_iorcsz", Value::Number(2009)),
            ("sta.ns_per_subs", Value::Number(2003)),
            ("sta.num_connected_qp_per_eu", Value::Number(3002)),
            ("sta.num_eus_available", Value::Number(3001)),
            ("sta.qps", Value::Number(2004)),
            ("sta.qs_per_be", Value::Number(2013)),
            ("sta.sta_io", Value::Number(1)),
            ("sta.subsys", Value::Number(2002)),
            ("sta.supported", Value::Supported(true)),
        ];
        assert_eq!(snapshot.iter().collect::<Vec<_>>(), expected.map(|(name, value)| (name, Ok(value))));
        assert!(caps::is_block_size_supported(&device, 4096).unwrap());
        assert!(!caps::is_block_size_supported(&device, 4104).unwrap());
        snapshot.require("sta.supported,sta.qps>=16,sta.io_queue_size>=1024").unwrap();
        assert_eq!(snapshot.require("sta.qps>=2005").unwrap_err().refusal(), Some(Refusal::Capability));
    });
}

#[test]
fn devices_differ_in_what_is_theirs() {
    const TOPOLOGY: &str =
        r#"{"extends": "default", "host": {"mlx5_1": {"sta": {"max_io_queue_size": 1024}}}}"#;
    with_topology("devices_differ_in_what_is_theirs", TOPOLOGY, || {
        let [first, second] = ["mlx5_0", "mlx5_1"].map(|name| caps::snapshot(&device(name)));
        let differences: Vec<_> = first.diff(&second).iter().map(ToString::to_string).collect();
        assert_eq!(differences, ["sta.io_queue_size: 128 | 1024"]);
    });
}

#[test]
fn without_sta_every_limit_is_not_supported() {
    const TOPOLOGY: &str = r#"{"extends": "default", "host": {"mlx5_0": {"sta": {"supported": false}}}}"#;
    with_topology("without_sta_every_limit_is_not_supported", TOPOLOGY, || {
        let first = device("mlx5_0");
        assert_eq!(caps::SUPPORTED.ask(&first).unwrap(), Value::Supported(false));
        for question in caps::ALL.iter().filter(|question| question.name != caps::SUPPORTED.name) {
            let error = question.ask(&first).expect_err(question.name);
            assert_eq!((error.kind(), error.code()), (Kind::NotSupported, Some(Code::NOT_SUPPORTED)));
            assert!(error.to_string().contains("doca_sta_cap_is_supported"), "{error}");
        }
        let error = caps::is_block_size_supported(&first, 512).unwrap_err();
        assert_eq!(error.kind(), Kind::NotSupported);
        let snapshot = caps::snapshot(&first);
        assert_eq!(snapshot.require("sta.qps>=16").unwrap_err().refusal(), Some(Refusal::Capability));
        // The search for a control device finds the other one.
        let control = Device::find().with(caps::SUPPORTED).open().unwrap();
        assert_eq!(control.info().ibdev_name().unwrap(), "mlx5_1");
    });
}
