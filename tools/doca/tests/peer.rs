//! `doca perf` and `doca verify`, each between two processes.
#![cfg(feature = "device")]

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A network of its own, with the default devices of one host changed.
struct Network {
    dir: TempDir,
    topology: PathBuf,
}

impl Network {
    fn new(devices: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let topology = dir.path().join("topology.json");
        fs::write(&topology, json!({ "extends": "default", "host": devices }).to_string()).unwrap();
        Network { dir, topology }
    }

    fn doca(&self, args: &[&str]) -> Command {
        let mut doca = Command::new(env!("CARGO_BIN_EXE_doca"));
        doca.env("DOCA_SIM_DIR", self.dir.path()).env("DOCA_SIM_TOPOLOGY", &self.topology);
        doca.env("DOCA_SIM_QUIET", "1").args(args);
        doca
    }

    fn run(&self, args: &[&str]) -> Output {
        self.doca(args).output().unwrap()
    }

    /// Serves on the first device.
    fn serve(&self, args: &[&str]) -> Server {
        let mut doca = self.doca(&[args, &["-d", "mlx5_0"]].concat());
        let mut child = doca.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        errors.read_line(&mut said).unwrap();
        assert!(said.contains("name 192.168.1.1 and port 13579"), "{said}");
        // Shown if the test fails.
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).for_each(|line| println!("server: {line}"))
        });
        Server(child)
    }
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("doca ends by itself")
}

fn rows(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// `doca verify` from the second device to the first.
fn verify(devices: &Value) -> Output {
    let network = Network::new(devices);
    let mut server = network.serve(&["verify", "--once"]);
    let output = network.run(&["verify", "192.168.1.1", "-d", "mlx5_1", "--json"]);
    assert!(server.0.wait().unwrap().success(), "its only client has gone");
    output
}

/// The verdicts on a task, without repetition.
fn verdicts(rows: &[Value], task: &str) -> Vec<String> {
    let of_task = rows.iter().filter(|row| row["task"] == task);
    let mut verdicts: Vec<_> = of_task.map(|row| row["verdict"].as_str().unwrap().to_owned()).collect();
    verdicts.dedup();
    verdicts
}

#[test]
fn every_kind_of_task_is_tried() {
    let output = verify(&json!({}));
    assert_eq!(code(&output), 0, "{output:?}");
    let rows = rows(&output);
    assert_eq!(rows.len(), 20, "{rows:?}");
    assert!(rows.iter().all(|row| row["verdict"] == "works"), "{rows:?}");
}

#[test]
fn what_the_device_cannot_do_is_no_failure() {
    let output = verify(&json!({ "mlx5_1": { "rdma": { "tasks": { "atomic_fetch_add": false } } } }));
    assert_eq!(code(&output), 0, "{output:?}");
    let rows = rows(&output);
    assert_eq!(verdicts(&rows, "atomic_fetch_add"), ["not_supported"]);
    assert_eq!(verdicts(&rows, "atomic_cmp_swp"), ["works"]);
}

#[test]
fn what_the_other_side_refuses_is_a_failure_with_its_reason_and_spoils_nothing_else() {
    let output = verify(&json!({ "mlx5_0": { "rdma": { "tasks": {
        "read": false, "remote_net_sync_event_get": false
    } } } }));
    assert_eq!(code(&output), 1, "{output:?}");
    let rows = rows(&output);
    assert_eq!(verdicts(&rows, "read"), ["fails"]);
    assert_eq!(verdicts(&rows, "remote_net_sync_event_get"), ["fails"]);
    let why = rows.iter().find(|row| row["task"] == "read").unwrap()["why"].as_str().unwrap();
    assert!(why.contains("RDMA_READ"), "{why}");
    for task in ["send", "write", "write_imm", "atomic_cmp_swp", "remote_net_sync_event_notify_add"] {
        assert_eq!(verdicts(&rows, task), ["works"], "{task}");
    }
}

#[test]
fn each_operation_has_a_figure() {
    let network = Network::new(&json!({}));
    let mut server = network.serve(&["perf", "--once"]);
    let args = ["perf", "192.168.1.1", "-d", "mlx5_1", "-n", "100", "-s", "4K,1M", "--json"];
    let output = network.run(&args);
    assert_eq!(code(&output), 0, "{output:?}");
    let told: Vec<_> = rows(&output)
        .iter()
        .map(|row| {
            assert_eq!((&row["tasks"], &row["lost"]), (&json!(100), &json!(0)));
            assert!(row["seconds"].as_f64().unwrap() > 0.0);
            assert_eq!(row["latency"], Value::Null);
            (row["operation"].as_str().unwrap().to_owned(), row["bytes"].as_u64().unwrap())
        })
        .collect();
    let (small, large) = (4096, 1 << 20);
    let mut wanted: Vec<_> = ["send", "write", "read", "ping"]
        .into_iter()
        .flat_map(|operation| [(operation.to_owned(), small), (operation.to_owned(), large)])
        .collect();
    wanted.insert(6, ("fetch_add".to_owned(), 8));
    assert_eq!(told, wanted);
    assert!(server.0.wait().unwrap().success(), "its only client has gone");
}

/// Whatever a client does when its server dies, it ends, and says that.
#[test]
fn a_server_that_is_killed_holds_nobody() {
    for operation in ["send", "write", "read", "fetch_add", "ping"] {
        let network = Network::new(&json!({}));
        let server = network.serve(&["perf"]);
        let args = ["perf", "192.168.1.1", operation, "-d", "mlx5_1", "-t", "1000", "-s", "64"];
        let trace = network.dir.path().join("trace");
        let mut client = network.doca(&args);
        client.env("DOCA_SIM_TRACE", &trace).stdout(Stdio::null()).stderr(Stdio::piped());
        let client = client.spawn().unwrap();
        // Amid its tasks.
        let submitted =
            || fs::read_to_string(&trace).map_or(0, |text| text.matches("doca_task_submit").count());
        while submitted() < 100 {
            std::thread::yield_now();
        }
        drop(server);
        let output = client.wait_with_output().unwrap();
        assert_eq!(code(&output), 2, "{operation}: {output:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn latency_is_of_one_task_at_a_time() {
    let network = Network::new(&json!({}));
    let _server = network.serve(&["perf"]);
    let args = ["perf", "192.168.1.1", "write", "-d", "mlx5_1", "-n", "50", "-s", "8", "--latency", "--json"];
    let output = network.run(&args);
    assert_eq!(code(&output), 0, "{output:?}");
    let row = &rows(&output)[0];
    assert_eq!((&row["tasks"], &row["in_flight"]), (&json!(50), &json!(1)));
    let at = |what: &str| row["latency"][what].as_f64().unwrap();
    assert!(0.0 < at("min") && at("min") <= at("median"), "{row}");
    assert!(at("median") <= at("percentile_99") && at("percentile_99") <= at("max"), "{row}");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let network = Network::new(&json!({}));
    let _server = network.serve(&["perf"]);
    let here = ["perf", "192.168.1.1", "-d", "mlx5_1"];
    for (args, said) in [
        (&["-s", "2M", "send"][..], "messages have 1048576 bytes at most"),
        (&["-s", "64M", "-i", "32", "write"], "1073741824 can be shared"),
        (&["-s", "0"], "no size"),
        (&["-i", "0"], "0 is not in"),
        (&["-n", "1", "-t", "1"], "cannot be used with"),
        (&["-i", "2", "-l"], "cannot be used with"),
        (&["--once"], "cannot be used with"),
        (&["-p", "1"], "the peer listens on address and port"),
        (&["fly"], "invalid value 'fly'"),
    ] {
        let output = network.run(&[&here[..], args].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 2, "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
    let output = network.run(&["perf", "--json"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("required"), "{output:?}");
}

#[test]
fn nobody_there_is_no_failed_task() {
    let network = Network::new(&json!({}));
    let output = network.run(&["verify", "192.168.1.1", "-d", "mlx5_1"]);
    assert_eq!(code(&output), 2, "{output:?}");
    assert!(output.stdout.is_empty());
}
