//! The examples in pairs, each in a process of its own, over descriptor files (RC and DC) and over RDMA CM. Somebody
//! presses Enter where NVIDIA's samples of the same names want it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);
const TEXT: &str = "some text of our own";

/// Two examples, and what the line begins with that shows what arrived where.
struct Case {
    asker: &'static str,
    answerer: &'static str,
    /// The option that carries the text, whether the asker has it, and the line at the other side.
    text: (&'static str, bool, &'static str),
    /// Whether the answerer waits for Enter in the end.
    finish: bool,
}

const fn case(
    asker: &'static str,
    answerer: &'static str,
    text: (&'static str, bool, &'static str),
    finish: bool,
) -> Case {
    Case { asker, answerer, text, finish }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("rdma_send", "rdma_receive", ("-s", true, "Got from sender: \"{}\""), false),
    case("rdma_send_immediate", "rdma_receive_immediate", ("-s", true, "Got from sender: \"{}\" with immediate: 43981"), false),
    case("rdma_read_requester", "rdma_read_responder", ("-r", false, "Read from responder: \"{}\""), true),
    case("rdma_write_requester", "rdma_write_responder", ("-w", true, "Requester has written: \"{}\""), true),
    case("rdma_write_immediate_requester", "rdma_write_immediate_responder", ("-w", true, "Requester has written: \"{}\" with immediate data: 43981"), false),
    case("rdma_sync_event_requester", "rdma_sync_event_responder", ("-s", false, "Received sync event value 0xd0cb"), false),
];

/// A running example.
struct Example {
    child: Child,
    output: Arc<(Mutex<String>, Condvar)>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Example {
    fn start(name: &str, network: &Path, arguments: &[&str]) -> Self {
        Example::start_on("host", name, network, arguments)
    }

    fn start_on(side: &str, name: &str, network: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(directory().join(name))
            .args(arguments)
            .env("DOCA_SIM_DIR", network)
            .env("DOCA_SIM_QUIET", "1")
            .env("DOCA_SIM_SIDE", side)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let output = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let shared = output.clone();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *shared.0.lock().unwrap() += &(line + "\n");
                shared.1.notify_all();
            }
        });
        Example { child, output, reader: Some(reader) }
    }

    /// Waits until the text was printed so often.
    fn wait(&self, text: &str, times: usize) {
        let (output, change) = &*self.output;
        let missing = |printed: &mut String| printed.matches(text).count() < times;
        let (printed, late) = change.wait_timeout_while(output.lock().unwrap(), LIMIT, missing).unwrap();
        assert!(!late.timed_out(), "{text:?} was not printed {times} times: {printed}");
    }

    fn enter(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Waits for the end, which must be a good one, and gives all that was printed.
    fn end(mut self) -> String {
        let deadline = Instant::now() + LIMIT;
        self.wait("Sample finished", 1);
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not exit");
            std::thread::yield_now();
        }
        self.reader.take().unwrap().join().unwrap();
        let printed = self.output.0.lock().unwrap().clone();
        assert!(self.child.wait().unwrap().success(), "{printed}");
        assert!(printed.ends_with("Sample finished successfully\n"), "{printed}");
        printed
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the examples, and says where they are.
fn directory() -> &'static Path {
    static DIRECTORY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        let directory = profile.join("examples");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--examples", "--manifest-path"]);
        build.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        // With the features of this test, so that nothing is built once more.
        for (feature, on) in [("sta", cfg!(feature = "sta")), ("comch", cfg!(feature = "comch"))] {
            if on {
                build.args(["--features", feature]);
            }
        }
        let build = build.status();
        assert!(build.unwrap().success());
        directory
    })
}

fn network() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("doca-examples").tempdir().unwrap()
}

/// The common arguments, then the text for the side that has it.
fn arguments<'a>(case: &Case, asks: bool, common: &[&'a str]) -> Vec<&'a str> {
    let (option, with_asker, _) = case.text;
    let mut arguments = common.to_vec();
    if with_asker == asks {
        arguments.extend([option, TEXT]);
    }
    arguments
}

/// Lets both come to their end, and looks for what arrived.
fn finish(case: &Case, asker: Example, mut answerer: Example) {
    let asked = asker.end();
    if case.finish {
        answerer.wait("Wait till the requester has finished", 1);
        answerer.enter();
    }
    let answered = answerer.end();
    let line = case.text.2.replace("{}", TEXT);
    let side = if case.text.1 { answered } else { asked };
    assert!(side.lines().any(|printed| printed == line), "{line:?} is not in {side}");
}

fn over_files(case: &Case, transport: &str) {
    let network = network();
    let file = |name: &str| network.path().join(name).to_str().unwrap().to_owned();
    let (ours, theirs, resource) = (file("asker"), file("answerer"), file("resource"));
    let asking = ["-d", "mlx5_0", "-tt", transport, "-ld", &ours, "-re", &theirs, "-m", &resource];
    let answering = ["-d", "mlx5_0", "-tt", transport, "-ld", &theirs, "-re", &ours, "-m", &resource];
    let mut answerer = Example::start(case.answerer, network.path(), &arguments(case, false, &answering));
    answerer.wait(&format!("Copy {theirs}"), 1);
    let mut asker = Example::start(case.asker, network.path(), &arguments(case, true, &asking));
    asker.wait("press Enter", 1);
    if transport == "RC" {
        answerer.wait("press Enter", 1);
        answerer.enter();
    }
    asker.enter();
    finish(case, asker, answerer);
}

fn over_cm(case: &Case) {
    let network = network();
    let common = ["-d", "mlx5_0", "-cm"];
    let mut answerer = Example::start(case.answerer, network.path(), &arguments(case, false, &common));
    answerer.wait("listening on port", 1);
    let client = ["-d", "mlx5_0", "-cm", "-sa", "192.168.1.1"];
    let mut asker = Example::start(case.asker, network.path(), &arguments(case, true, &client));
    if case.answerer.contains("responder") {
        asker.wait("Negotiation receive task submission completed", 1);
        answerer.wait("press Enter", 1);
        answerer.enter();
    } else {
        answerer.wait("The receive is posted", 1);
        asker.wait("press Enter", 1);
        asker.enter();
    }
    finish(case, asker, answerer);
}

#[test]
fn pairs_meet_by_files() {
    for case in CASES {
        over_files(case, "RC");
        over_files(case, "DC");
    }
}

#[test]
fn pairs_meet_by_rdma_cm() {
    CASES.iter().for_each(over_cm);
}

const CONNECTIONS: usize = 3;

#[test]
fn several_connections_are_made_one_after_the_other() {
    let network = network();
    let file = |name: &str| network.path().join(name).to_str().unwrap().to_owned();
    let (ours, theirs) = (file("sender"), file("receiver"));
    let start = |name, local, remote| {
        Example::start(
            name,
            network.path(),
            &["-d", "mlx5_0", "-nc", "3", "-ld", local, "-re", remote, "-s", TEXT],
        )
    };
    let mut sender = start("rdma_multi_conn_send", &ours, &theirs);
    let mut receiver = start("rdma_multi_conn_receive", &theirs, &ours);
    for connection in 1..=CONNECTIONS {
        receiver.wait("press Enter", connection);
        sender.wait("press Enter", connection);
        receiver.enter();
        sender.enter();
    }
    receiver.wait("All RDMA receive tasks are posted", 1);
    sender.wait("press Enter", CONNECTIONS + 1);
    sender.enter();
    sender.end();
    assert_eq!(receiver.end().matches(&format!("Got from sender: \"{TEXT}\"")).count(), CONNECTIONS);
}

#[test]
fn one_receiver_serves_several_senders() {
    let network = network();
    let receiver =
        Example::start("rdma_multi_conn_receive", network.path(), &["-d", "mlx5_0", "-cm", "-nc", "3"]);
    receiver.wait("listening on port", 1);
    let mut senders = ["rdma_send", "rdma_multi_conn_send", "rdma_send"].map(|name| {
        let arguments = ["-d", "mlx5_0", "-cm", "-sa", "192.168.1.1", "-s", TEXT];
        Example::start(name, network.path(), &arguments)
    });
    receiver.wait("All RDMA receive tasks are posted", 1);
    for sender in &mut senders {
        sender.wait("press Enter", 1);
        sender.enter();
    }
    senders.into_iter().for_each(|sender| drop(sender.end()));
    let printed = receiver.end();
    for connection in 0..CONNECTIONS {
        let line = format!("Got from sender: \"{TEXT}\", over connection {connection}");
        assert!(printed.contains(&line), "{line:?} is not in {printed}");
    }
}

#[test]
fn atomics_count() {
    let network = network();
    let printed = Example::start("rdma_atomic", network.path(), &["-d", "mlx5_0"]).end();
    for line in
        ["After 8 additions of 5: 40", "Was 40, so it was replaced by 1000", "Was 1000, so it stays 1000"]
    {
        assert!(printed.contains(line), "{line:?} is not in {printed}");
    }
}

/// A server on the DPU and a client on the host.
#[cfg(feature = "comch")]
fn host_and_dpu(server: &str, client: &str) -> [String; 2] {
    let network = network();
    let dpu = ["-p", "03:00.0", "-r", "3b:00.0", "-t", "text of the DPU"];
    let server = Example::start_on("dpu", server, network.path(), &dpu);
    server.wait("Server is running", 1);
    let client = Example::start_on("host", client, network.path(), &["-p", "3b:00.0", "-t", TEXT]);
    [client.end(), server.end()]
}

#[cfg(feature = "comch")]
#[test]
fn host_and_dpu_exchange_messages() {
    let [asked, served] = host_and_dpu("comch_ctrl_path_server", "comch_ctrl_path_client");
    assert!(asked.contains("Message received: 'text of the DPU'"), "{asked}");
    assert!(served.contains(&format!("Message received: '{TEXT}'")), "{served}");
}

#[cfg(feature = "comch")]
#[test]
fn host_and_dpu_exchange_bulk_data() {
    let [asked, served] =
        host_and_dpu("comch_data_path_high_speed_server", "comch_data_path_high_speed_client");
    assert!(asked.contains("Message received: 'text of the DPU'"), "{asked}");
    assert!(served.contains(&format!("Message received: '{TEXT}'")), "{served}");
    for printed in [asked, served] {
        assert!(printed.contains("Message received: 'stop_data_path_test'"), "{printed}");
    }
}

/// An event of the host that both sides signal, in every pairing of modes and both ways of signalling.
#[cfg(feature = "comch")]
#[test]
fn host_and_dpu_signal_each_other() {
    let asynchronous = &["--async", "--async-num-tasks", "1"][..];
    for (ours, theirs) in [(&[][..], &[][..]), (asynchronous, asynchronous), (asynchronous, &["--atomic"])] {
        let network = network();
        let dpu = [&["-d", "03:00.0", "-r", "3b:00.0"], theirs].concat();
        let answerer = Example::start_on("dpu", "sync_event_remote_pci", network.path(), &dpu);
        answerer.wait("Server is running", 1);
        let host = [&["-d", "3b:00.0", "--atomic"], ours].concat();
        let asker = Example::start_on("host", "sync_event_local_pci", network.path(), &host);
        for printed in [asker.end(), answerer.end()] {
            assert!(printed.contains("Done"), "{printed}");
        }
    }
}
