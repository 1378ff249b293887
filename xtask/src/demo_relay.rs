//! `cargo sim demo relay`: a program that knows nothing of DOCA serves on the DPU, another one is its client on the host.

use crate::process::{self, Peer};
use crate::sdk::Sdk;
use crate::{Result, place, provision};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);
/// Devices of the default topology.
const HOST_DEVICE: &str = "0000:3b:00.0";
const DPU_DEVICE: &str = "0000:03:00.0";
const SERVICE: &str = "demo";
/// Random bytes each way; different, so that neither direction can pass for the other.
const THERE: u64 = 3_000_017;
const BACK: u64 = 5_000_011;

const LISTENING: &str = "listening on";
const RELAY: &str = "doca_socket_relay";

/// `cargo sim demo relay`
pub(crate) fn command() -> Result {
    let sdk = Sdk::ready()?;
    check(&sdk)?;
    println!("demo relay: ok");
    Ok(())
}

/// The demo as a test.
pub(crate) fn check(sdk: &Sdk) -> Result {
    provision::relaying()?;
    process::run(sdk.cargo().current_dir(place::root()).args(["build", "-p", "doca-socket-relay"]))?;
    let dir = tempfile::Builder::new().prefix("doca-demo-").tempdir();
    let dir = dir.map_err(|e| format!("cannot make a directory: {e}"))?;
    let file = |name: &str| dir.path().join(name);
    let (there, back) = (file("there"), file("back"));
    random_file(&there, THERE)?;
    random_file(&back, BACK)?;
    let until = Instant::now() + DEADLINE;
    let relay = |side: &str, socket: &str, device: &str| {
        let mut command = sdk.command(sdk.built(RELAY));
        command.env("DOCA_SIM_QUIET", "1").env("DOCA_SIM_SIDE", side);
        command.env("DOCA_SIM_DIR", dir.path().join("network"));
        command.arg("-s").arg(file(socket)).args(["-n", SERVICE, "-p", device, "--probe-app", "off"]);
        command
    };
    // The server: gives the one file and keeps what comes as another.
    let script = format!("cat '{}' & cat > '{}'; wait", back.display(), file("there.got").display());
    let mut server = Peer::start(
        "server",
        Command::new("socat")
            .arg(format!("UNIX-LISTEN:{}", file("server.sock").display()))
            .arg(format!("SYSTEM:\"{script}\"")),
    )?;
    wait_for(&file("server.sock"), until)?;
    let _dpu = Peer::start("DPU relay", relay("dpu", "server.sock", DPU_DEVICE).args(["-r", HOST_DEVICE]))?;
    let mut host = Peer::start("host relay", &mut relay("host", "client.sock", HOST_DEVICE))?;
    host.expect(LISTENING, until)?;
    println!("relays: {} <- DOCA Comch -> {}", file("client.sock").display(), file("server.sock").display());
    // The client: sends its file, and keeps what comes until the server has ended.
    let mut client = Command::new("socat");
    client.args(["-t", "60", "-"]).arg(format!("UNIX-CONNECT:{}", file("client.sock").display()));
    let open = |e: std::io::Error| format!("cannot open a file of the demo: {e}");
    client.stdin(File::open(&there).map_err(open)?);
    client.stdout(File::create(file("back.got")).map_err(open)?);
    process::run(&mut client)?;
    server.succeed(until)?;
    let mut ask = sdk.command(sdk.built(RELAY));
    ask.env("DOCA_SIM_QUIET", "1").arg("-s").arg(file("client.sock")).args(["--ask", "metrics"]);
    let metrics = process::output(&mut ask)?;
    let counted = |name: &str| {
        let line = metrics.lines().find_map(|line| line.trim().strip_prefix(&format!("\"{name}\": ")));
        line.unwrap_or("?").trim_end_matches(',').to_owned()
    };
    println!(
        "bytes that took Comch's fast path: {} to the DPU, {} from it",
        counted("fast_bytes_out"),
        counted("fast_bytes_in")
    );
    for (name, sent, got) in
        [("host to DPU", &there, file("there.got")), ("DPU to host", &back, file("back.got"))]
    {
        let read = |path: &Path| fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
        let (sent, got) = (read(sent)?, read(&got)?);
        if sent != got {
            return Err(format!("{name}: {} bytes were sent, {} others came", sent.len(), got.len()));
        }
        println!("{name}: {} random bytes, equal", sent.len());
    }
    Ok(())
}

fn random_file(path: &Path, len: u64) -> Result {
    let write = || -> std::io::Result<u64> {
        std::io::copy(&mut File::open("/dev/urandom")?.take(len), &mut File::create(path)?)
    };
    write().map(drop).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn wait_for(path: &Path, until: Instant) -> Result {
    while !path.exists() {
        if Instant::now() > until {
            return Err(format!("{} does not appear", path.display()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
