//! `cargo sim demo sta`: a storage target on a disk over a file, and a host that writes it full and reads it back.

use crate::process::{self, Peer};
use crate::sdk::Sdk;
use crate::{Result, place};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(120);
const MIB: u64 = 16;
const NQN: &str = "nqn.2014-08.org.example:demo";
const ADDRESS: &str = "192.168.1.1:4420";
const LISTENING: &str = "listening on";
const STATISTICS: &str = "statistics:";
const STOPPED: &str = "stopped";

/// `cargo sim demo sta`
pub(crate) fn command() -> Result {
    let sdk = Sdk::ready()?;
    check(&sdk)?;
    println!("demo sta: ok");
    Ok(())
}

/// The demo as a test.
pub(crate) fn check(sdk: &Sdk) -> Result {
    let build = |arguments: &[&str]| {
        process::run(sdk.cargo().current_dir(place::root()).arg("build").args(arguments))
    };
    build(&["-p", "doca-sta-target", "--example", "sta_target"])?;
    build(&["-p", "doca-sim-initiator"])?;
    let dir = tempfile::Builder::new().prefix("doca-demo-").tempdir();
    let dir = dir.map_err(|e| format!("cannot make a directory: {e}"))?;
    let file = |name: &str| dir.path().join(name);
    let (disk, sent, got) = (file("disk.img"), file("sent"), file("got"));
    random_file(&sent)?;
    place::write(&file("target.json"), configuration(&disk))?;
    let command = |program: &Path| {
        let mut command = sdk.command(program);
        command.env("DOCA_SIM_QUIET", "1").env("DOCA_SIM_DIR", dir.path().join("network"));
        command
    };
    let until = Instant::now() + DEADLINE;
    let example = sdk.built("examples/sta_target");
    let mut target = Peer::start("sta_target", command(&example).arg(file("target.json")))?;
    target.expect(LISTENING, until)?;
    println!("sta_target: {NQN} at {ADDRESS}, {MIB} MiB in {}", disk.display());
    let host = |what: &str, arguments: &[&str]| {
        let mut host: Command = command(&sdk.built("doca-sim"));
        process::run(host.args(["nvme", what, "--nqn", NQN, "--address", ADDRESS]).args(arguments))
    };
    host("identify", &[])?;
    host("write", &["--file", &sent.display().to_string()])?;
    host("read", &["--file", &got.display().to_string()])?;
    let read = |path: &Path| fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
    let (wanted, came, stored) = (read(&sent)?, read(&got)?, read(&disk)?);
    if wanted != came {
        return Err("what was read back is not what was written".to_owned());
    }
    if wanted != stored {
        return Err(format!("{} does not hold what was written", disk.display()));
    }
    println!("{} random bytes written, read back, and on the disk: equal", wanted.len());
    host("load", &["--queues", "4", "--depth", "32", "--time", "3"])?;
    target.interrupt()?;
    target.expect(STATISTICS, until)?;
    target.expect(STOPPED, until)?;
    target.succeed(until)?;
    let last = target.printed.iter().rposition(|line| line.starts_with(STATISTICS)).unwrap_or(0);
    target.printed[last..].iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn configuration(disk: &Path) -> String {
    format!(
        r#"{{ "control": "mlx5_0", "listen": ["{ADDRESS}"], "threads": 2,
  "disks": [{{ "file": "{}", "create_mib": {MIB} }}],
  "subsystems": [{{ "nqn": "{NQN}", "namespaces": [{{ "nsid": 1, "disk": 0 }}] }}] }}"#,
        disk.display()
    )
}

fn random_file(path: &Path) -> Result {
    let write = || -> std::io::Result<u64> {
        std::io::copy(&mut File::open("/dev/urandom")?.take(MIB << 20), &mut File::create(path)?)
    };
    write().map(drop).map_err(|e| format!("cannot write {}: {e}", path.display()))
}
