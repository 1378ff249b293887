use super::file::{default, load, parse};
use super::*;

#[test]
fn the_default_serves_rdma_on_both_sides() {
    let topology = default().unwrap();
    let host: Vec<&Device> = topology.of(Side::Host).collect();
    assert_eq!(host.iter().map(|d| d.ibdev.as_str()).collect::<Vec<_>>(), ["mlx5_0", "mlx5_1"]);
    assert!(RdmaTask::ALL.iter().all(|kind| host[0].rdma.task(*kind)));
    assert_eq!(host[0].ipv4, Some([192, 168, 1, 1].into()));
    assert!(topology.of(Side::Dpu).any(|d| d.func_type == FuncType::Sf && d.ipv4.is_some()));
    assert!(topology.of(Side::Dpu).any(|d| !d.representors.is_empty()));
    assert!(topology.devices.iter().enumerate().all(|(index, device)| device.index == index));
}

#[test]
fn derived_gids_are_in_the_kernels_order() {
    let topology = default().unwrap();
    let device = &topology.devices[0];
    let kinds: Vec<Option<GidType>> =
        device.gid_table.iter().map(|slot| slot.map(|entry| entry.kind)).collect();
    use GidType::{RoceV1, RoceV2};
    assert_eq!(kinds[..5], [Some(RoceV1), Some(RoceV2), Some(RoceV1), Some(RoceV2), None]);
    assert_eq!(kinds.len(), 16);
    assert_eq!(device.gid(0), Some("fe80::ff:fe3b:0".parse().unwrap()));
    assert_eq!(device.gid(3), Some("::ffff:192.168.1.1".parse().unwrap()));
    assert_eq!((device.gid(4), device.gid(16)), (Some(Gid::ZERO), None));
}

#[test]
fn a_patch_switches_one_thing_off() {
    let topology =
        parse(r#"{"extends": "default", "host": {"mlx5_0": {"rdma": {"tasks": {"send": false}}}}}"#).unwrap();
    let [first, second] = [&topology.devices[0], &topology.devices[1]];
    let missing: Vec<&RdmaTask> = RdmaTask::ALL.iter().filter(|kind| !first.rdma.task(**kind)).collect();
    assert_eq!(missing, [&RdmaTask::Send]);
    assert!(second.rdma.task(RdmaTask::Send));
    assert_eq!(first.ipv4, Some([192, 168, 1, 1].into()));
}

#[test]
fn a_patch_removes_adds_and_changes() {
    let topology = parse(
        r#"{"extends": "default", "name": "mine", "timeouts": {"cm_timeout_ms": 5},
            "host": {"mlx5_1": null, "mlx5_0": {"ipv4": null, "rdma": {"supported": false}},
                     "mlx5_9": {"pci": "04:00.0", "iface": "e", "mac": "02:00:00:00:00:09"}},
            "dpu": {"mlx5_0": null, "mlx5_1": null, "mlx5_2": null, "mlx5_3": null}}"#,
    )
    .unwrap();
    assert_eq!(topology.devices.iter().map(|d| d.ibdev.as_str()).collect::<Vec<_>>(), ["mlx5_0", "mlx5_9"]);
    assert_eq!(
        (topology.name.as_str(), topology.timeouts.cm_timeout_ms, topology.timeouts.transport_timeout_ms),
        ("mine", 5, 1000)
    );
    assert_eq!(topology.devices[0].ipv4, None);
    assert_eq!(topology.devices[0].gid_table.iter().flatten().count(), 2);
    assert!(!RdmaTask::ALL.iter().any(|kind| topology.devices[0].rdma.task(*kind)));
}

#[test]
fn limits_of_sta_are_of_the_library_or_of_a_device() {
    let topology = parse(
        r#"{"extends": "default", "sta": {"max_qps": 7, "logical_block_sizes": [4096]},
            "host": {"mlx5_0": {"sta": {"supported": false, "max_io_queue_size": 1024}}}}"#,
    )
    .unwrap();
    assert_eq!((topology.sta.max_qps, topology.sta.max_devs), (7, 2));
    assert_eq!(topology.sta.logical_block_sizes, BlockSizes(vec![4096]));
    let [first, second] = [&topology.devices[0].sta, &topology.devices[1].sta];
    assert_eq!((first.supported, first.max_io_queue_size, first.max_num_eus_available), (false, 1024, 16));
    assert_eq!((second.supported, second.max_io_queue_size), (true, 128));
}

#[test]
fn explicit_gids_replace_the_derived_ones() {
    let topology = parse(
        r#"{"extends": "default", "host": {"mlx5_0": {"gid_table_size": 8,
            "gids": [{"index": 5, "gid": "::ffff:10.0.0.1", "type": "RoCE v2"}]}}}"#,
    )
    .unwrap();
    let table = &topology.devices[0].gid_table;
    assert_eq!(table.len(), 8);
    assert_eq!(table.iter().flatten().count(), 1);
    assert_eq!(table[5].unwrap().kind, GidType::RoceV2);
}

#[test]
fn an_empty_topology_is_one() {
    assert!(parse("{}").unwrap().devices.is_empty());
}

/// Each mistake, and what its message must name.
#[test]
fn mistakes_are_named() {
    let device = |body: &str| format!(r#"{{"extends": "default", "host": {{"mlx5_0": {{{body}}}}}}}"#);
    let cases: &[(String, &[&str])] = &[
        ("".into(), &["EOF", "line 1 column 0"]),
        ("[]".into(), &["sequence", "object", "line 1"]),
        (r#"{"host": {"mlx5_0": []}}"#.into(), &["host.mlx5_0", "object", "line 1"]),
        (device(r#""rdma": [true]"#), &["host.mlx5_0.rdma", "object", "line 1"]),
        ("{} x".into(), &["trailing", "line 1 column 4"]),
        (r#"{"hots": {}}"#.into(), &["hots", "`host`", "line 1 column 7"]),
        (r#"{"extends": "defualt"}"#.into(), &["extends", "defualt"]),
        (r#"{"timeouts": {"cm_timeout_ms": -1}}"#.into(), &["timeouts.cm_timeout_ms", "line 1"]),
        (r#"{"host": []}"#.into(), &["host", "device"]),
        (r#"{"host": {"mlx5_0": {"pci": "1:00.0"}}}"#.into(), &["host.mlx5_0.pci", "1:00.0", "line 1"]),
        (r#"{"host": {"a": {"pci": "01:00.0", "mac": "02:00:00:00:00:01"}}}"#.into(), &["host.a", "`iface`"]),
        (
            r#"{"extends": "default", "host": {"mlx5_7": {"lid": 3}}}"#.into(),
            &["host.mlx5_7", "mlx5_0, mlx5_1"],
        ),
        (r#"{"extends": "default", "host": {"mlx5_7": null}}"#.into(), &["host.mlx5_7"]),
        (r#"{"extends": "default", "host": {"mlx5_0": {}, "mlx5_0": {}}}"#.into(), &["mlx5_0", "twice"]),
        (device("\n\"rdma\": {\"tasks\": {\"sned\": false}}"), &["host.mlx5_0.rdma.tasks.sned", "line 2"]),
        (device(r#""rdma": {"tasks": {"send": 0}}"#), &["host.mlx5_0.rdma.tasks.send", "boolean"]),
        (device(r#""rdma": {"max_send_queue_size": 0}"#), &["host.mlx5_0.rdma.max_send_queue_size"]),
        (device(r#""sta": {"max_io_queue_size": 0}"#), &["host.mlx5_0.sta.max_io_queue_size"]),
        (device(r#""sta": {"max_qps": 1}"#), &["host.mlx5_0.sta.max_qps", "unknown field"]),
        (r#"{"sta": {"max_be": 0}}"#.into(), &["sta.max_be", "at least 1"]),
        (r#"{"sta": {"max_io_threads": 65536}}"#.into(), &["sta.max_io_threads", "65536"]),
        (r#"{"sta": {"min_ioccsz": 48}}"#.into(), &["sta.min_ioccsz", "64", "4160"]),
        (r#"{"sta": {"max_iorcsz": 8}}"#.into(), &["sta.min_iorcsz", "16", "8"]),
        (r#"{"sta": {"logical_block_sizes": [512, 520]}}"#.into(), &["sta.logical_block_sizes", "520"]),
        (device(r#""mac": "02:00:00:00:00""#), &["host.mlx5_0.mac", "02:00:00:00:00"]),
        (device(r#""mac": "02:00:00:3b:00:01""#), &["mac", "host.mlx5_0", "host.mlx5_1"]),
        (device(r#""ipv4": "192.168.2.1""#), &["ipv4", "host.mlx5_0", "host.mlx5_1"]),
        (device(r#""ipv4": "192.168.1""#), &["host.mlx5_0.ipv4"]),
        (device(r#""pci": "0000:3b:00.1""#), &["pci", "host.mlx5_0", "host.mlx5_1"]),
        (device(r#""ipv4_prefix": 33"#), &["host.mlx5_0.ipv4_prefix", "33"]),
        (device(r#""max_mtu": 1500"#), &["host.mlx5_0.max_mtu", "1500"]),
        (device(r#""func_type": "sf""#), &["host.mlx5_0.sf_index"]),
        (device(r#""func_type": "xf""#), &["host.mlx5_0.func_type", "xf"]),
        (device(r#""iface": """#), &["host.mlx5_0.iface"]),
        (device(r#""gid_table_size": 2"#), &["host.mlx5_0.gid_table_size"]),
        (device(r#""gids": [{"index": 16, "gid": "::1", "type": "RoCE v2"}]"#), &["host.mlx5_0.gids", "16"]),
        (device(r#""gids": [{"index": 0, "gid": "::1", "type": "RoCE v3"}]"#), &["gids[0].type", "RoCE v3"]),
        (device(r#""gids": [[0, "::1", "RoCE v2"]]"#), &["gids[0]", "object"]),
        (device(r#""gids": [{"index": 0, "gid": "x", "type": "RoCE v2"}]"#), &["gids[0]", "`x`"]),
        (
            device(r#""representors": [{"vuid": "", "pci": "01:00.0", "iface": "r"}]"#),
            &["representors[0].vuid"],
        ),
        (device(r#""representors": [{"vuid": "v", "iface": "r"}]"#), &["representors[0]", "pci"]),
    ];
    for (text, names) in cases {
        let message = parse(text).expect_err(text);
        for name in *names {
            assert!(message.contains(name), "{text}\ngives {message}\nwithout {name}");
        }
    }
}

#[test]
fn a_truncated_file_is_told_by_field_line_and_column() {
    let text = "{\"extends\": \"default\", \"host\": {\n\"mlx5_0\": {\"lid\": 3}}}";
    for end in 1..text.len() {
        let message = parse(&text[..end]).unwrap_err();
        assert!(message.contains("EOF") && message.contains("line ") && !message.contains('?'), "{message}");
    }
    let message = parse(&text[..text.len() - 4]).unwrap_err();
    assert!(message.starts_with("host.mlx5_0"), "{message}");
}

#[test]
fn files_are_named_in_messages() {
    let message = load(Some("/nowhere/topology.json".into())).unwrap_err();
    assert!(message.contains("/nowhere/topology.json"), "{message}");
    assert!(load(Some("".into())).is_ok());
    assert!(load(None).is_ok());
}

#[test]
fn sides_have_two_names() {
    assert_eq!(parse_side(None), Ok(Side::Host));
    assert_eq!(parse_side(Some("dpu".into())), Ok(Side::Dpu));
    assert!(parse_side(Some("arm".into())).unwrap_err().contains("arm"));
}
