//! Bad input: each gives an error value that names what is wrong.

use crate::process::{LIMIT, Parent, Peer, Talk, from_hex, to_hex};
use crate::side::Side;
use doca::rdma::Exported;
use doca::{Access, Code, Device, DeviceInfo, Error, Kind, Layer, Memory};

/// Shows its descriptors, and waits.
pub fn exporter(parent: &mut Parent, _: &[String]) {
    let started = Side::start("mlx5_0", 1, 64);
    let (exported, descriptor) = started.starting.export().unwrap();
    let device = Device::open("mlx5_0").unwrap();
    let access = Access::LOCAL_READ_WRITE | Access::RDMA_READ;
    let memory = Memory::zeroed(64).unwrap().shared(&device, access).unwrap();
    parent.say(&to_hex(descriptor.as_bytes()));
    parent.say(&to_hex(memory.export().unwrap().as_bytes()));
    let connection = exported.connect(from_hex(&parent.hear())).unwrap();
    let side = started.running();
    let mut receive = side.receives.submit(side.memory.take(64).unwrap()).unwrap();
    assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], b"after all that");
    drop(connection);
    side.close();
}

/// The connection comes back with the error, so it can be tried again.
fn refused(exported: Exported, bytes: &[u8], what: &str) -> Exported {
    let Err(failed) = exported.connect(bytes) else { panic!("{what} was taken for a descriptor") };
    let error = failed.error;
    let text = error.to_string();
    assert_eq!(error.call(), "doca_rdma_connect", "{what}");
    assert!(text.contains("doca_rdma_connect") && text.contains("descriptor"), "{what}: {text}");
    match error.code() {
        Some(code) => assert_eq!(code, Code::CONNECTION_ABORTED, "{what}"),
        None => assert_eq!(error.kind(), Kind::Invalid, "{what}: {text}"),
    }
    failed.value
}

/// Each damage of a descriptor, and words one of which DOCA's log must say of it.
type Damage = (String, Vec<u8>, &'static [&'static str]);

fn damages(theirs: &[u8], of_memory: &[u8]) -> Vec<Damage> {
    let mut all: Vec<Damage> = Vec::new();
    for len in 0..theirs.len() {
        all.push((format!("{len} bytes"), theirs[..len].to_vec(), &["length"]));
    }
    for bit in 0..theirs.len() * 8 {
        let mut flipped = theirs.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        all.push((format!("bit {bit} flipped"), flipped, &["magic", "format", "length", "checksum"]));
    }
    let mut newer = theirs.to_vec();
    newer[4] = 77;
    all.push(("another version".into(), newer, &["version 77"]));
    all.push(("a memory descriptor".into(), of_memory.to_vec(), &["memory descriptor"]));
    all.push(("zeros".into(), vec![0; 4096], &["magic"]));
    all.push(("something foreign".into(), b"GET / HTTP/1.1\r\n\r\n".to_vec(), &["magic"]));
    all
}

/// Tries every damage, and at last the whole descriptor.
pub fn importer(parent: &mut Parent, _: &[String]) {
    let (theirs, of_memory) = (from_hex(&parent.hear()), from_hex(&parent.hear()));
    let started = Side::start("mlx5_1", 1, 64);
    let (mut exported, ours) = started.starting.export().unwrap();
    for (what, bytes, _) in damages(&theirs, &of_memory) {
        exported = refused(exported, &bytes, &what);
    }
    let connection = exported.connect(&theirs).unwrap();
    let side = started.running();
    parent.say(&to_hex(ours.as_bytes()));
    let mut message = side.memory.take(64).unwrap();
    message.fill_with(b"after all that").unwrap();
    side.sends.submit(&connection, message).unwrap().wait_for(LIMIT).unwrap();
    side.close();
}

pub fn damaged_descriptors() {
    let mut exporter = Peer::start("exporter", &[]);
    let (theirs, of_memory) = (exporter.hear(), exporter.hear());
    let mut importer = Peer::start("importer", &[]);
    importer.say(&theirs);
    importer.say(&of_memory);
    exporter.say(&importer.hear());
    let log = importer.finish_with();
    exporter.finish();
    // The error value has a code; DOCA's log says what exactly is wrong. No bytes at all never reach DOCA's parser.
    let damages = damages(&from_hex(&theirs), &from_hex(&of_memory));
    let told: Vec<_> = log.lines().filter(|line| line.contains("doca_rdma_connect:")).collect();
    assert_eq!(told.len() + 1, damages.len(), "one line for each but the empty one");
    for (line, (what, _, words)) in told.iter().zip(&damages[1..]) {
        assert!(words.iter().any(|word| line.contains(word)), "{what}: none of {words:?} in {line}");
    }
}

/// Says what the list of devices gives.
pub fn lister(parent: &mut Parent, _: &[String]) {
    let said = |error: &Error| format!("{} {error}", error.layer() == Layer::Environment);
    match DeviceInfo::list() {
        Ok(list) => parent.say(&format!("{} devices", list.len())),
        Err(error) => parent.say(&said(&error)),
    }
}

fn shows_no_devices(variable: (&str, &str), named: &str) {
    let mut peer = Peer::start_with("lister", &[], &[variable]);
    let line = peer.hear();
    let log = peer.finish_with();
    assert!(line.contains("doca_devinfo_create_list"), "{variable:?}: {line}");
    // The value has a code only; the word itself stands in DOCA's log, once.
    assert_eq!(log.lines().filter(|line| line.contains(named)).count(), 1, "{named}\n{log}");
}

pub fn topology_files() {
    let scratch = tempfile::tempdir().unwrap();
    let device =
        r#"{ "mlx5_0": { "pci": "0000:3b:00.0", "iface": "e0", "mac": "02:00:00:3b:00:00", "vhca_id": 1 } }"#;
    for (text, named) in [
        (format!(r#"{{ "host": {device}, "hots": {{}} }}"#), "hots"),
        (format!(r#"{{ "host": {} }}"#, device.replace("iface", "ifase")), "ifase"),
        (format!(r#"{{ "host": {} }}"#, device.replace("0000:3b", "0000:zz")), "0000:zz"),
        (r#"{ "host": [] }"#.to_owned(), "host"),
        ("not a topology".to_owned(), "topology.json"),
    ] {
        let path = scratch.path().join("topology.json");
        std::fs::write(&path, &text).unwrap();
        shows_no_devices(("DOCA_SIM_TOPOLOGY", path.to_str().unwrap()), named);
    }
    shows_no_devices(("DOCA_SIM_SIDE", "left"), "left");
    // One that is misspelt is not the default.
    shows_no_devices(("DOCA_SIM_PROFILE", "refused-io-failed,refused-at-noon"), "refused-at-noon");
    let mut good = Peer::start("lister", &[]);
    good.expect("2 devices");
    good.finish();
}
