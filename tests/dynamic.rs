//! Dynamic connections (DC): what differs from reliable ones, and what they refuse. That their tasks do the same is in
//! `one_sided.rs` and `permissions.rs`.

mod support;

use doca::rdma::{Config, Decision, Rdma, ReceiveTask, SendTask, TransportType, caps};
use doca::{Code, Memory, ProgressEngine, Refusal};
use support::{LIMIT, device, free_port};

fn configure(transport: TransportType) -> Config {
    let mut config = Rdma::configure(&device()).unwrap();
    config.set_gid_roce_v2().unwrap();
    config.set_transport_type(transport).unwrap();
    config
}

#[test]
fn the_initiator_alone_connects() {
    let engine = ProgressEngine::new().unwrap();
    let memory = Memory::zeroed(4096).unwrap().private(&device()).unwrap();
    let start = || {
        let mut config = configure(TransportType::DC);
        let keys = (config.enable::<SendTask>(1).unwrap(), config.enable::<ReceiveTask>(1).unwrap());
        (config.start(&engine).unwrap().running().unwrap(), keys)
    };
    let ((initiator, (sends, _)), (target, (_, receives))) = (start(), start());
    let (_waiting, descriptor) = target.export().unwrap();
    let (exported, _) = initiator.export().unwrap();
    let connection = exported.connect(&descriptor).unwrap();
    let mut receive = target.queue(receives).unwrap().submit(memory.take(8).unwrap()).unwrap();
    let mut send = initiator.queue(sends).unwrap().submit(&connection, memory.take(4).unwrap()).unwrap();
    send.wait_for(LIMIT).unwrap();
    assert_eq!(receive.wait_for(LIMIT).unwrap().buffer.len(), 4);
}

#[test]
fn there_is_no_rdma_cm() {
    let engine = ProgressEngine::new().unwrap();
    let port = free_port();
    let rdma = configure(TransportType::DC).start(&engine).unwrap().running_within(LIMIT).unwrap();
    let error = rdma.listen(port, |_| Decision::accept()).unwrap_err();
    assert_eq!((error.call(), error.code()), ("doca_rdma_start_listen_to_port", Some(Code::NOT_SUPPORTED)));
    let error = rdma.connect_addr(support::address(port)).unwrap_err();
    assert_eq!((error.call(), error.code()), ("doca_rdma_connect_to_addr", Some(Code::NOT_SUPPORTED)));
    // The port is free, and nothing that was refused holds the one connection.
    let mut other = configure(TransportType::RC);
    other.set_max_num_connections(2).unwrap();
    let (other, _own) = support::alone(other.start(&engine).unwrap());
    drop(other.listen(port, |_| Decision::accept()).unwrap());
    rdma.export().unwrap();
}

#[test]
fn both_sides_must_have_it() {
    let engine = ProgressEngine::new().unwrap();
    let start = |transport| configure(transport).start(&engine).unwrap();
    let (reliable, dynamic) = (start(TransportType::RC), start(TransportType::DC));
    let ((one, of_one), (other, of_other)) = (reliable.export().unwrap(), dynamic.export().unwrap());
    let refused = [one.connect(&of_other).unwrap_err(), other.connect(&of_one).unwrap_err()];
    for failed in &refused {
        assert_eq!((failed.error.call(), failed.error.code()), ("doca_rdma_connect", Some(Code::DRIVER)));
        assert!(failed.error.next_check().contains("transport"), "{}", failed.error);
    }
    // What was exported comes back, for the right peer.
    let [one, _] = refused.map(|failed| failed.value);
    one.connect(&of_one).unwrap();
}

/// The topology file is read once per process.
#[test]
fn a_device_may_not_have_it() {
    const TEST: &str = "a_device_may_not_have_it";
    const WITHOUT: &str = r#"{ "extends": "default",
        "host": { "mlx5_0": { "rdma": { "transports": { "dc": false } } } } }"#;
    if std::env::var_os("DOCA_SIM_TOPOLOGY").is_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), WITHOUT).unwrap();
        let output = support::again(TEST, &[("DOCA_SIM_TOPOLOGY", file.path().to_str().unwrap())]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let device = device();
    let mut config = Rdma::configure(&device).unwrap();
    let error = config.set_transport_type(TransportType::DC).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Capability));
    assert_eq!(config.transport_type().unwrap(), TransportType::RC);
    let answer = caps::TRANSPORT_DC.ask(&device.info()).unwrap();
    assert_eq!(answer, doca::caps::Value::Supported(false));
}

/// Once per process, and the other tests have such connections, too.
#[test]
fn they_are_said_to_be_alpha_once() {
    const TEST: &str = "they_are_said_to_be_alpha_once";
    const ALONE: &str = "DOCA_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let output = support::again(TEST, &[(ALONE, "")]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let device = device();
    for warned in [true, false] {
        let mut config = Rdma::configure(&device).unwrap();
        config.set_transport_type(TransportType::DC).unwrap();
        let said = support::log::warnings().iter().any(|text| text.contains("DC is alpha"));
        assert_eq!(said, warned);
    }
}
