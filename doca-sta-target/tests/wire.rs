//! A target in a process of its own, as hosts see it: conformance, the smoke test, and a file system image.

use doca_sim_initiator::{Host, Target, smoke, wire};
use nvme_wire::Nqn;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddrV4;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

const NQN: &str = "nqn.2014-08.org.example:disk";
const MIB: u64 = 32;

/// The example `sta_target` on a disk over a file. Tests share the network of their process, and take ports by turns.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    dir: tempfile::TempDir,
    address: SocketAddrV4,
}

/// The example, built: cargo does that by itself only when it runs all tests.
fn example() -> &'static Path {
    static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
    EXAMPLE.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--example", "sta_target", "--manifest-path", manifest]);
        assert!(build.status().unwrap().success(), "{build:?}");
        let tests = std::env::current_exe().unwrap();
        tests.ancestors().nth(2).unwrap().join("examples/sta_target")
    })
}

fn config(dir: &Path, block_size: u32, address: SocketAddrV4) -> Value {
    let disk = json!({ "file": dir.join("disk.img"), "block_size": block_size, "create_mib": MIB });
    json!({
        "control": "mlx5_0",
        "listen": [address.to_string()],
        "disks": [disk],
        "subsystems": [{ "nqn": NQN, "namespaces": [{ "nsid": 1, "disk": 0 }, { "nsid": 3, "disk": 0 }] }],
    })
}

impl Running {
    fn start(block_size: u32) -> Self {
        static PORT: Mutex<u16> = Mutex::new(4420);
        let port = {
            let mut next = PORT.lock().unwrap();
            *next += 1;
            *next
        };
        let address = SocketAddrV4::new([192, 168, 1, 1].into(), port);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("target.json");
        std::fs::write(&path, config(dir.path(), block_size, address).to_string()).unwrap();
        let mut child = Command::new(example()).arg(path).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), format!("listening on {address}"));
        Running { child, output, dir, address }
    }

    fn target(&self) -> Target {
        Target::new("mlx5_1", self.address, Nqn::new(NQN).unwrap())
    }

    fn disk(&self) -> PathBuf {
        self.dir.path().join("disk.img")
    }

    /// SIGINT drains it, and it leaves by itself.
    fn end(mut self) {
        let process = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).unwrap();
        let mut lines = Vec::new();
        while matches!(self.output.read_until(b'\n', &mut lines), Ok(1..)) {}
        let said = String::from_utf8_lossy(&lines);
        assert!(self.child.wait().unwrap().success(), "{said}");
        assert!(said.ends_with("stopped\n"), "{said}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn host() -> Host {
    Host::new(Nqn::new("nqn.2014-08.org.example:host").unwrap())
}

#[test]
fn every_capsule_gets_the_status_of_the_specifications() {
    for block_size in [512, 4096] {
        let running = Running::start(block_size);
        let verdict = wire::run(&host(), &running.target(), 1).unwrap();
        assert!(verdict.wrong.is_empty(), "blocks of {block_size}: {:#?}", verdict.wrong);
        assert!(verdict.tried > 60, "{}", verdict.tried);
        running.end();
    }
}

#[test]
fn the_smoke_test_passes_and_names_its_steps() {
    let running = Running::start(4096);
    let mut steps = Vec::new();
    let time = Duration::from_millis(300);
    smoke::run(&host(), &running.target(), 1, time, |step| steps.push(step.to_owned())).unwrap();
    assert!(steps.iter().any(|step| step.starts_with("load: 2 queues of 31")), "{steps:#?}");
    let wrong = smoke::run(&host(), &running.target(), 2, time, |_| {}).unwrap_err();
    assert_eq!(wrong.to_string(), "this host: the target has no namespace 2");
    running.end();
}

/// A file system with a file in it, made by e2fsprogs where they are installed, else bytes that no two blocks share.
fn image(path: &Path) {
    let file = std::fs::File::create(path).unwrap();
    file.set_len(MIB << 20).unwrap();
    let source = tempfile::tempdir().unwrap();
    let text: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
    std::fs::write(source.path().join("text"), text).unwrap();
    let made =
        Command::new("mke2fs").args(["-q", "-F", "-t", "ext4", "-d"]).arg(source.path()).arg(path).status();
    if !made.is_ok_and(|status| status.success()) {
        let mut random = doca_sim_initiator::load::Random::new(9);
        let mut block = [0; 4096];
        for at in (0..MIB << 20).step_by(block.len()) {
            random.fill(&mut block);
            file.write_all_at(&block, at).unwrap();
        }
    }
}

#[test]
fn a_file_system_image_comes_back_as_it_was_written() {
    const BLOCK: u32 = 512;
    let running = Running::start(BLOCK);
    let original = running.dir.path().join("original.img");
    image(&original);
    let original = std::fs::read(original).unwrap();
    let mut controller = host().open(&running.target()).unwrap();
    controller.set_num_queues(1).unwrap();
    let mut queue = controller.io_queue(1, 8).unwrap();
    let chunk = 100 << 10;
    for (index, data) in original.chunks(chunk).enumerate() {
        queue.write(1, (index * chunk) as u64 / u64::from(BLOCK), BLOCK, data).unwrap();
    }
    queue.flush(1).unwrap();
    drop(queue);
    // Another queue, other pieces.
    let mut queue = controller.io_queue(1, 4).unwrap();
    let chunk = 64 << 10;
    for (index, data) in original.chunks(chunk).enumerate() {
        let mut back = vec![0; data.len()];
        queue.read(1, (index * chunk) as u64 / u64::from(BLOCK), BLOCK, &mut back).unwrap();
        assert!(back == data, "{} KiB from the beginning", index * 64);
    }
    controller.shutdown().unwrap();
    drop((queue, controller));
    let disk = running.disk();
    assert!(std::fs::read(&disk).unwrap() == original, "what the disk has");
    if let Ok(status) = Command::new("e2fsck")
        .args(["-f", "-n"])
        .arg(&disk)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
    {
        assert!(status.success() || original[0x438..0x43A] != [0x53, 0xEF], "e2fsck finds faults: {status}");
    }
    running.end();
}

#[test]
fn a_configuration_that_cannot_be_is_told() {
    let address = SocketAddrV4::new([192, 168, 1, 1].into(), 4420);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target.json");
    fn twice(value: &Value) -> Value {
        json!([value[0], value[0]])
    }
    type Change = fn(&mut Value);
    let changes: [(&str, Change, &str); 12] = [
        (
            "a namespace twice",
            |own| own["subsystems"][0]["namespaces"][1]["nsid"] = json!(1),
            "there is one of this name or number already: namespace 1 ",
        ),
        (
            "a subsystem twice",
            |own| own["subsystems"] = twice(&own["subsystems"]),
            "there is one of this name or number already",
        ),
        (
            "a file twice",
            |own| own["disks"] = twice(&own["disks"]),
            "another disk, here or in another process",
        ),
        ("a file of 16 EiB", |own| own["disks"][0]["create_mib"] = json!(1_u64 << 44), "no file has"),
        ("a serial number", |own| own["subsystems"][0]["serial"] = json!("x".repeat(21)), "serial number"),
        ("threads", |own| own["threads"] = json!(0), "needs a thread"),
        ("queues", |own| own["queue_entries"] = json!(0), "2 is the least"),
        (
            "discovery",
            |own| own["subsystems"][0]["nqn"] = json!(Nqn::DISCOVERY),
            "discovery is no subsystem for disks",
        ),
        ("a host", |own| own["subsystems"][0]["hosts"] = json!(["bad"]), "`bad` is no NVMe qualified name"),
        ("a network twice", |own| own["networks"] = json!(["mlx5_1", "mlx5_1"]), "what was added before]\n"),
        ("no device", |own| own["control"] = json!("none"), "needs a sub-function]\n"),
        ("statistics", |own| own["statistics"] = json!(0), "`statistics`"),
    ];
    for (what, change, words) in changes {
        let mut config = config(dir.path(), 512, address);
        change(&mut config);
        std::fs::write(&path, config.to_string()).unwrap();
        _ = std::fs::remove_file(dir.path().join("disk.img"));
        let ended = Command::new(example()).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(1) && said.contains(words), "{what}: {said}");
        assert!(!said.contains("clones"), "{what}: {said}");
    }
}

#[test]
fn a_target_whose_output_nobody_reads_ends() {
    use std::os::unix::process::ExitStatusExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target.json");
    let address = SocketAddrV4::new([192, 168, 1, 1].into(), 4419);
    std::fs::write(&path, config(dir.path(), 512, address).to_string()).unwrap();
    for argument in [path.to_str().unwrap(), "--help"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut target = Command::new(example());
        let ended = target.arg(argument).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let ended = ended.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            ended.status.signal(),
            Some(nix::sys::signal::Signal::SIGPIPE as i32),
            "{argument}: {said}"
        );
    }
}
