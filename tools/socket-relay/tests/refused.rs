//! Connections that are refused: what the client's error came from, in words and exit statuses of relay and smoke test.

mod support;

use nix::sys::signal::Signal;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use support::clients::works;
use support::pair::{DPU_DEVICE, HOST_DEVICE, Place, Process, echo, eventually};

/// No machine is so slow that an answer takes longer.
const PATIENT: [&str; 4] = ["--dead-after", "3600000", "--probe-app", "off"];

fn smoke(place: &Place) -> (Option<i32>, String) {
    smoke_at(place, &place.client_path())
}

fn smoke_at(place: &Place, socket: &Path) -> (Option<i32>, String) {
    let mut command = place.program();
    command.arg("--smoke").arg("-s").arg(socket).args(["--steps", "4", "--timeout", "60"]);
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// What a smoke test says at last.
fn expect(place: &Place, status: i32, words: &str) {
    let mut last = (None, String::new());
    let found = || {
        last = smoke(place);
        (last.0 == Some(status) && last.1.contains(words)).then_some(())
    };
    eventually(&format!("status {status} and `{words}`"), found);
}

fn host(place: &Place, name: &str, args: &[&str]) -> Process {
    host_at(place, "client.sock", name, args)
}

fn host_at(place: &Place, socket: &str, name: &str, args: &[&str]) -> Process {
    let mut command = place.program();
    command.arg("-s").arg(place.path(socket)).args(["-n", name, "-p", HOST_DEVICE]).args(PATIENT);
    Process::start(
        command.args(args),
        &place.path(&socket.replace("client.sock", "host.sock").replace("sock", "log")),
    )
}

/// A DPU relay of one name, for the server's socket with the name behind it.
fn dpu(place: &Place, name: &str, args: &[&str]) -> Process {
    let mut command: Command = place.program();
    command.env("DOCA_SIM_SIDE", "dpu").arg("-s").arg(place.path(&format!("{name}.sock")));
    command.args(["-n", name, "-p", &DPU_DEVICE[5..], "-r", &HOST_DEVICE[5..]]).args(PATIENT);
    Process::start(command.args(args), &place.path(&format!("{name}.log")))
}

/// Waits until the relay of that name tells which services there are.
fn lit(place: &Place, name: &str) {
    eventually("the beacon is lit", || {
        (place.ask(&place.path(&format!("{name}.sock")), "status")["beacon"] == true).then_some(())
    });
}

#[test]
fn because_no_relay_was_started() {
    expect(&Place::new(), 21, "no relay runs for it: not started");
}

#[test]
fn because_the_path_is_another_one() {
    let place = Place::new();
    let mut command = place.program();
    command.arg("-s").arg(place.path("other.sock")).args(["-n", "a", "-p", HOST_DEVICE]);
    let mut other = Process::start(&mut command, &place.path("other.log"));
    expect(&place, 22, &format!("run for {}", place.path("other.sock").display()));
    // It is listed as long as it lives, whatever ends it.
    other.kill();
    expect(&place, 21, "not started");
}

#[test]
fn because_nobody_listens_on_a_stale_file() {
    let place = Place::new();
    drop(UnixListener::bind(place.client_path()).unwrap());
    expect(&place, 23, "a stale file");
    // Something else than a socket is no case of it, and left alone.
    std::fs::remove_file(place.client_path()).unwrap();
    std::fs::write(place.client_path(), "").unwrap();
    expect(&place, 12, "not a socket");
    let mut host = host(&place, "a", &[]);
    assert_eq!(host.status(), Some(2));
    assert!(host.log().contains("class 2") && host.log().contains("left alone"), "{}", host.log());
    // It leaves nothing beside it.
    let left: Vec<_> =
        std::fs::read_dir(place.dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("client.sock.")), "{left:?}");
}

#[test]
fn a_path_has_one_owner_however_many_come_and_go() {
    let place = Place::new();
    let path = place.client_path();
    let owners = std::sync::atomic::AtomicUsize::new(0);
    let owned = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                use std::sync::atomic::Ordering::SeqCst;
                for _ in 0..500 {
                    let Ok(claim) = socket_relay::socket_file::Claim::new(&path) else { continue };
                    assert_eq!(owners.fetch_add(1, SeqCst), 0);
                    owned.fetch_add(1, SeqCst);
                    owners.fetch_sub(1, SeqCst);
                    drop(claim);
                }
            });
        }
    });
    assert!(owned.into_inner() > 0);
}

#[test]
fn because_the_other_side_is_down() {
    let place = Place::new();
    let forever = host(&place, "a", &[]);
    expect(&place, 24, "no DPU relay answers");
    drop(forever);
    let mut once = host(&place, "a", &["--conn-retry", "2"]);
    assert_eq!(once.status(), Some(4));
    assert!(once.log().contains("class 4") && once.log().contains("no DPU relay answers"), "{}", once.log());
}

#[test]
fn because_the_other_side_serves_other_names() {
    let place = Place::new();
    let _relays = [dpu(&place, "b", &[]), dpu(&place, "c", &[])];
    eventually("one of them tells", || {
        let beacons =
            ["b.sock", "c.sock"].map(|name| place.ask(&place.path(name), "status")["beacon"] == true);
        assert!(beacons != [true, true]);
        beacons.contains(&true).then_some(())
    });
    let words =
        r#"a DPU relay answers, but --cc-name is not among the services that it knows of: "b", "c"; "#;
    let forever = host(&place, "a", &[]);
    expect(&place, 25, words);
    drop(forever);
    let mut once = host(&place, "a", &["--conn-retry", "2"]);
    assert_eq!(once.status(), Some(9));
    assert!(once.log().contains("class 4") && once.log().contains(words), "{}", once.log());
    // As soon as one serves it, all is well.
    echo(UnixListener::bind(place.path("a.sock")).unwrap());
    let _host = host(&place, "a", &[]);
    let _third = dpu(&place, "a", &[]);
    works(&place);
}

#[test]
fn because_the_other_side_serves_another_host() {
    let place = Place::new();
    echo(UnixListener::bind(place.path("a.sock")).unwrap());
    let _dpu = dpu(&place, "a", &[]);
    lit(&place, "a");
    let patient = ["--heartbeat", "3500000"];
    // The second takes the place of the first where that does not answer soon enough: of two, one is told.
    let sockets = ["x.sock", "y.sock"];
    let both = sockets.map(|socket| host_at(&place, socket, "a", &patient));
    eventually("one is told", || {
        let told = |socket| smoke_at(&place, &place.path(socket));
        sockets.map(told).into_iter().find(|(status, said)| {
            assert!(!said.contains("Lost(") && said.matches("class ").count() <= 1, "{said}");
            *status == Some(27) && said.contains("serves another host relay")
        })
    });
    for (args, status, words) in [
        (
            ["--conn-retry", "1"].as_slice(),
            12,
            "class 4 (DPU end not reachable): the DPU relay of --cc-name serves",
        ),
        (
            &["--conn-retry", "1", "--strict-nvidia"],
            4,
            "the server ended the connection): it has another host relay",
        ),
    ] {
        let socket = place.path("z.sock");
        eventually("a third one is refused", || {
            let mut third = host_at(&place, "z.sock", "a", &[&patient, args].concat());
            let ended = eventually("it ends, or is served in the place of another", || {
                third.try_status().map(Some).or_else(|| socket.exists().then_some(None))
            });
            third.kill();
            _ = std::fs::remove_file(&socket);
            let log = third.log();
            (ended == Some(status) && log.contains(words)).then_some(()).or_else(|| {
                assert!(ended.is_none(), "{ended:?}: {log}");
                None
            })
        });
    }
    drop(both);
}

#[test]
fn that_nobody_answers_is_told_once_an_attempt() {
    let place = Place::new();
    let mut command = place.program();
    command.env_remove("DOCA_SIM_QUIET").arg("-s").arg(place.client_path()).args([
        "-n",
        "a",
        "-p",
        HOST_DEVICE,
    ]);
    let host = Process::start(&mut command, &place.path("host.log"));
    eventually("three attempts", || {
        (place.ask(&place.client_path(), "metrics")["attempts"].as_u64().unwrap() >= 3).then_some(())
    });
    let log = host.log();
    assert!(log.contains("there is no server a for"), "{log}");
    assert!(!log.contains("no server doca-socket-relay"), "{log}");
}

#[test]
fn because_the_application_is_down() {
    let place = Place::new();
    let _dpu = place.dpu(&[]);
    let host = place.host(&[]);
    expect(&place, 26, "its application");
    assert!(host.log().contains("class 4") && host.log().contains("ENOENT"), "{}", host.log());
    let status = |name: &str| place.ask(&place.client_path(), "status")[name].clone();
    assert_eq!(status("application"), "fails");
    // The first client that it serves proves that it is back.
    echo(UnixListener::bind(place.server_path()).unwrap());
    works(&place);
    assert_eq!(
        (status("application"), status("last_error")),
        ("not seen to fail".into(), serde_json::Value::Null)
    );
    expect(&place, 0, "smoke: ok");
}

#[test]
fn what_a_relay_is_asked_has_an_exit_status() {
    let place = Place::new();
    let ask = |command: &str| {
        let output =
            place.program().args(["--ask", command, "-s"]).arg(place.client_path()).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (status, said) = ask("status");
    assert_eq!(status, Some(10), "{said}");
    assert!(said.contains("class 3") && said.contains("not started, or another path"), "{said}");
    let mut host = host(&place, "a", &[]);
    place.ask(&place.client_path(), "status");
    let (status, said) = ask("status");
    assert_eq!(status, Some(0), "{said}");
    for command in ["nonsense", "probe"] {
        let (status, said) = ask(command);
        assert_eq!(status, Some(11), "{said}");
    }
    host.kill();
    let (status, said) = ask("status");
    assert_eq!(status, Some(10), "{said}");
    assert!(said.contains("a stale admin socket"), "{said}");
}

#[test]
fn because_another_relay_has_the_path() {
    let place = Place::new();
    echo(UnixListener::bind(place.server_path()).unwrap());
    let [_dpu, host] = place.pair();
    works(&place);
    let mut second = place.host(&[]);
    assert_eq!(second.status(), Some(2));
    assert!(second.log().contains(&format!("process {}", host.id())), "{}", second.log());
    works(&place);
}

#[test]
fn the_beacon_passes_to_another_relay_when_its_holder_is_killed() {
    let place = Place::new();
    let mut first = dpu(&place, "b", &[]);
    lit(&place, "b");
    let _second = dpu(&place, "c", &[]);
    assert_eq!(place.ask(&place.path("c.sock"), "status")["beacon"], false);
    first.kill();
    lit(&place, "c");
    let mut host = host(&place, "b", &["--conn-retry", "1"]);
    assert_eq!(host.status(), Some(9));
    assert!(host.log().contains(r#"knows of: "c"; "#), "{}", host.log());
}

#[test]
fn a_relay_that_stands_still_is_no_wrong_name() {
    let place = Place::new();
    let stuck = dpu(&place, "b", &[]);
    lit(&place, "b");
    stuck.signal(Signal::SIGSTOP);
    for name in ["a", "b"] {
        let mut host = host(&place, name, &["--conn-retry", "1", "--dead-after", "1500"]);
        assert_eq!(host.status(), Some(4), "{}", host.log());
        assert!(host.log().contains("no DPU relay answers"), "{}", host.log());
    }
}

#[test]
fn strict_as_nvidia_nobody_tells_and_nobody_asks() {
    let place = Place::new();
    let strict = dpu(&place, "b", &["--strict-nvidia"]);
    assert_eq!(place.ask(&place.path("b.sock"), "status")["beacon"], false);
    let mut asking = host(&place, "a", &["--conn-retry", "1"]);
    assert_eq!(asking.status(), Some(4));
    assert!(asking.log().contains("no DPU relay answers"), "{}", asking.log());
    drop(strict);
    let _telling = dpu(&place, "c", &[]);
    lit(&place, "c");
    let mut silent = host(&place, "a", &["--conn-retry", "1", "--strict-nvidia"]);
    assert_eq!(silent.status(), Some(4));
    assert!(silent.log().contains("or runs with another --cc-name"), "{}", silent.log());
}

/// A beacon that fails, at whatever call, harms no service.
#[test]
fn faults_of_the_beacon_are_its_own() {
    for fault in [
        // The second server of a DPU relay is the beacon, the first one its service.
        "call=doca_comch_server_create:2:NO_MEMORY",
        "call=doca_comch_server_event_msg_recv_register:2:NO_MEMORY",
        "start=doca_comch_server:2:INITIALIZATION",
    ] {
        let place = Place::new();
        echo(UnixListener::bind(place.path("b.sock")).unwrap());
        let mut command = place.program();
        command.env("DOCA_SIM_SIDE", "dpu").env("DOCA_SIM_FAULTS", fault).arg("-s").arg(place.path("b.sock"));
        command.args(["-n", "b", "-p", DPU_DEVICE, "-r", HOST_DEVICE]).args(PATIENT);
        // And is not tried again as long as this takes.
        command.args(["--heartbeat", "3500000"]);
        let mut dpu = Process::start(&mut command, &place.path("dpu.log"));
        let host = host(&place, "b", &[]);
        works(&place);
        assert_eq!(place.ask(&place.path("b.sock"), "status")["beacon"], false, "{fault}");
        drop(host);
        dpu.terminate();
        assert_eq!(dpu.status(), Some(0), "{fault}: {}", dpu.log());
        assert!(!dpu.log().contains("never happened"), "{fault}: {}", dpu.log());
    }
}
