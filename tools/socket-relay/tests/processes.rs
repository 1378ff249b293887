//! Two relay processes over DOCA Comch: many clients, stalled ones, refusals and ends.

#[macro_use]
mod support;

use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use support::clients::{ends, exchange, works};
use support::pair::{Place, echo, eventually, gone, pattern};

over_both_paths! {
    five_hundred_and_twelve_clients_each_with_their_own_bytes,
    a_client_that_does_not_read_stops_nobody_and_takes_no_more_than_its_window,
    an_application_that_is_killed_ends_its_clients_and_its_next_life_serves,
    held_until_the_smoke_test_has_passed,
    sigterm_drains_and_a_second_one_cuts,
}

fn five_hundred_and_twelve_clients_each_with_their_own_bytes(place: &Place) {
    echo(UnixListener::bind(place.server_path()).unwrap());
    let [dpu, host] = place.pair();
    works(place);
    place.wait_for_metric(&place.client_path(), "active", 0);
    let before = [dpu.descriptors(), host.descriptors()];
    let clients: Vec<_> = (0..512).map(|_| place.client()).collect();
    // None begins before the last is in: a connected socket may still wait to be accepted.
    for socket in [place.client_path(), place.server_path()] {
        place.wait_for_metric(&socket, "active", 512);
    }
    thread::scope(|scope| {
        for (seed, stream) in clients.into_iter().enumerate() {
            let client = move || {
                let sent = pattern(seed as u64, 40_000 + seed * 100);
                let got = exchange(stream, &sent).unwrap();
                assert!(got == sent, "client {seed}: {} of {} bytes", got.len(), sent.len());
            };
            thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, client).unwrap();
        }
    });
    for socket in [place.client_path(), place.server_path()] {
        place.wait_for_metric(&socket, "active", 0);
        let metrics = place.ask(&socket, "metrics");
        assert_eq!(metrics["peak"], 512, "{metrics}");
        assert_eq!((&metrics["ring_bytes"], &metrics["ring_memory"]), (&0.into(), &0.into()), "{metrics}");
    }
    place.check_path();
    // Of the admin socket's clients the last ones may still be there.
    eventually("no descriptor is left", || {
        (dpu.descriptors() <= before[0] && host.descriptors() <= before[1]).then_some(())
    });
}

fn a_client_that_does_not_read_stops_nobody_and_takes_no_more_than_its_window(place: &Place) {
    echo(UnixListener::bind(place.server_path()).unwrap());
    // Not a byte more than the windows of 512 clients.
    let args = ["--probe-app", "off", "--memory-cap", "33554432"];
    let (dpu, host) = (place.dpu(&args), place.host(&args));
    // It sends until nothing fits any more, and reads nothing of what comes back.
    let stalled = place.client();
    let mut writer = stalled.try_clone().unwrap();
    let sent = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let chunk = [5; 4096];
            while writer.write_all(&chunk).is_ok() {
                sent.fetch_add(chunk.len(), Ordering::Relaxed);
            }
        });
        // It has come to a stop when at least half a window waits for it: less is not asked for.
        eventually("its window fills", || {
            let metrics = place.ask(&place.client_path(), "metrics");
            (metrics["ring_bytes"].as_u64().unwrap() >= 32768).then_some(())
        });
        let memory = [dpu.memory(), host.memory()];
        let busy: Vec<_> = (0..511).map(|_| place.client()).collect();
        thread::scope(|scope| {
            for (seed, stream) in busy.into_iter().enumerate() {
                let client = move || {
                    let sent = pattern(seed as u64, 50_000);
                    assert!(exchange(stream, &sent).unwrap() == sent, "client {seed}");
                };
                thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, client).unwrap();
            }
        });
        let streams = place.ask(&place.client_path(), "streams");
        assert!(streams[0]["ring"].as_u64().unwrap() <= 65536, "{streams}");
        // Windows of all, and no more: 512 times 64 KiB, in KiB, with some for the tables.
        for (process, before) in [(&dpu, memory[0]), (&host, memory[1])] {
            let grown = process.memory().saturating_sub(before);
            assert!(grown <= 512 * 64 + 16_000, "{grown} KiB");
        }
        // What it sent is still its own, and comes when it reads.
        let mut reader = stalled.try_clone().unwrap();
        let mut got = vec![0; 300_000];
        reader.read_exact(&mut got).unwrap();
        assert!(got.iter().all(|byte| *byte == 5));
        stalled.shutdown(Shutdown::Both).unwrap();
    });
    assert!(sent.load(Ordering::Relaxed) >= 300_000);
}

fn an_application_that_is_killed_ends_its_clients_and_its_next_life_serves(place: &Place) {
    let mut application = place.echo_server();
    let _relays = place.pair();
    for _ in 0..3 {
        let mut client = place.client();
        client.write_all(b"hello").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        application.kill();
        ends(&mut client);
        ends(&mut place.client());
        application = place.echo_server();
        works(place);
    }
}

#[test]
fn a_device_that_is_not_there_or_is_of_the_other_side_has_its_status() {
    let place = Place::new();
    let status = |args: &[&str], side: &str, words: &str| {
        let mut command = place.program();
        command.env("DOCA_SIM_SIDE", side).arg("-s").arg(place.server_path()).args(args);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words), "{said}");
        output.status.code()
    };
    let all = ["-n", "service", "-p", "0000:7f:00.0"];
    assert_eq!(status(&all, "host", "no device 0000:7f:00.0"), Some(3));
    assert_eq!(status(&all, "host", "that are there: 0000:3b:00.0"), Some(3));
    assert_eq!(status(&all, "dpu", "that are there: 0000:03:00.0"), Some(3));
    let missing = ["-n", "service", "-p", "0000:03:00.0", "-r", "0000:7f:00.0"];
    assert_eq!(status(&missing, "dpu", "--rep-pci"), Some(3));
    // It names those that are there.
    assert_eq!(status(&missing, "dpu", "represents 0000:3b:00.0"), Some(3));
    let server_here = ["-n", "service", "-p", "0000:3b:00.0", "-r", "0000:3b:00.0"];
    assert_eq!(status(&server_here, "host", "cannot be the DPU end"), Some(3));
    assert_eq!(status(&["-n", "service"], "host", "--pci-addr is needed"), Some(1));
    assert_eq!(
        status(&["--window", "999999999", "-n", "s", "-p", "3b:00.0"], "host", "--memory-cap"),
        Some(1)
    );
    let name = "n".repeat(200);
    let limit = "--cc-name has 200 bytes; this device takes names of ";
    assert_eq!(status(&["-n", &name, "-p", "3b:00.0"], "host", limit), Some(1));
    assert_eq!(status(&["-n", &name, "-p", "03:00.0", "-r", "3b:00.0"], "dpu", limit), Some(1));
    for (flag, value, words) in [
        ("--window", "99999999999", "from 0 to 4294967295"),
        ("--window", "-1", "from 0 to 4294967295"),
        ("--heartbeat", "1.5", "from 0 to 18446744073709551615"),
        ("--conn-retry", "x", "from -9223372036854775808 to"),
    ] {
        let words = format!("{flag}: `{value}` is not a whole number {words}");
        assert_eq!(status(&[flag, value, "-n", "s", "-p", "3b:00.0"], "host", &words), Some(1));
    }
    assert_eq!(status(&["--json-config", "x"], "host", "unknown argument"), Some(1));
}

#[test]
fn flags_of_a_json_file_are_those_of_the_command_line() {
    let place = Place::new();
    echo(UnixListener::bind(place.server_path()).unwrap());
    let file = place.path("host.json");
    let socket = place.client_path();
    let text = serde_json::json!({
        "doca_general_flags": { "log-level": 60 },
        "doca_program_flags": { "socket": socket, "cc-name": "service", "pci-addr": "3b:00.0" },
        "socket-mode": "0600",
    });
    std::fs::write(&file, text.to_string()).unwrap();
    let _dpu = place.dpu(&[]);
    let mut command = place.program();
    command.arg("-j").arg(&file);
    let _host = support::pair::Process::start(&mut command, &place.path("host.log"));
    works(&place);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    for (text, words) in
        [(r#"{"sokcet": "x"}"#, "NOT_SUPPORTED"), (r#"{"socket": 1}"#, "INVALID_VALUE"), ("{", "IO_FAILED")]
    {
        std::fs::write(&file, text).unwrap();
        let output = place.program().arg("-j").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains(words));
    }
}

fn held_until_the_smoke_test_has_passed(place: &Place) {
    let _echo = place.echo_server();
    let _dpu = place.dpu(&["--probe-app", "off"]);
    let _host = place.host(&["--hold", "--probe-app", "off"]);
    let mut first = place.client();
    first.write_all(b"a").unwrap();
    first.read_exact(&mut [0]).unwrap();
    // The second is in the kernel's queue; nobody answers it.
    let mut second = place.client();
    second.write_all(b"b").unwrap();
    second.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(second.read_exact(&mut [0]).is_err());
    drop((first, second));
    let mut command = place.program();
    command.arg("--smoke").arg("-s").arg(place.client_path()).args(["--timeout", "20", "--count", "10"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the other clients are let in"), "{said}");
    assert!(said.contains("4096 bytes  application has read"), "{said}");
    let mut clients = [place.client(), place.client()];
    for client in &mut clients {
        client.write_all(b"c").unwrap();
        client.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn ends_that_were_asked_for_leave_no_files() {
    let place = Place::new();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut echo = place.echo_server();
        let mut both = place.pair();
        works(&place);
        eventually("the beacon is lit", || {
            (place.ask(&place.server_path(), "status")["beacon"] == true).then_some(())
        });
        for process in both.iter_mut().rev().chain([&mut echo]) {
            process.signal(signal);
            assert_eq!(process.status(), Some(0));
        }
        let left = |dir: &std::path::Path, ends: &[&str]| -> Vec<_> {
            let names =
                std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            names.filter(|name| ends.iter().any(|end| name.ends_with(end))).collect()
        };
        let none: [String; 0] = [];
        assert_eq!(left(place.dir.path(), &[".sock", ".lock", ".admin"]), none);
        assert_eq!(left(&place.path("runtime/doca-socket-relay"), &[""]), none);
    }
}

fn sigterm_drains_and_a_second_one_cuts(place: &Place) {
    echo(UnixListener::bind(place.server_path()).unwrap());
    let _dpu = place.dpu(&["--probe-app", "off"]);
    let mut host = place.host(&["--probe-app", "off"]);
    let mut client = place.client();
    client.write_all(b"a").unwrap();
    client.read_exact(&mut [0]).unwrap();
    host.terminate();
    gone(&place.client_path());
    client.write_all(b"b").unwrap();
    client.read_exact(&mut [0]).unwrap();
    drop(client);
    assert_eq!(host.status(), Some(0));
    let mut host = place.host(&["--probe-app", "off"]);
    let mut client = place.client();
    client.write_all(b"a").unwrap();
    client.read_exact(&mut [0]).unwrap();
    host.terminate();
    gone(&place.client_path());
    host.terminate();
    assert_eq!(host.status(), Some(7));
    ends(&mut client);
}
