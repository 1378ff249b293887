//! Refusals, failures and small pools of the link, on request: bytes come through, or streams end and the next session works.

mod support;

use nix::sys::signal::Signal;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::thread;
use support::clients::{ends, exchange, works};
use support::pair::{Place, Process, echo, eventually, pattern};

/// Relays whose processes meet these faults.
fn pair(place: &Place, [host, dpu]: [&str; 2], args: &[&str]) -> [Process; 2] {
    let start = |mut command: std::process::Command, faults: &str, log: &str| {
        command.args(["--probe-app", "off"]).args(args).env("DOCA_SIM_FAULTS", faults);
        Process::start(&mut command, &place.path(log))
    };
    [start(place.dpu_command(), dpu, "dpu.log"), start(place.host_command(), host, "host.log")]
}

/// Ends both; each fault must have struck.
fn finish(pair: [Process; 2]) -> [String; 2] {
    let [mut dpu, mut host] = pair;
    for process in [&mut host, &mut dpu] {
        process.terminate();
        assert_eq!(process.status(), Some(0), "{}", process.log());
        assert!(!process.log().contains("never happened"), "{}", process.log());
    }
    [host.log(), dpu.log()]
}

/// No byte is lost whatever is refused.
fn come_through(path: &'static str, faults: [&str; 2], args: &[&str]) {
    let place = Place::with_fast_path(path);
    echo(UnixListener::bind(place.server_path()).unwrap());
    let relays = pair(&place, faults, args);
    thread::scope(|scope| {
        for seed in 0..3 {
            let place = &place;
            scope.spawn(move || {
                let sent = pattern(seed, 30_000);
                assert!(exchange(place.client(), &sent).unwrap() == sent, "client {seed}");
            });
        }
    });
    finish(relays);
}

macro_rules! refused {
    ($($test:ident: $path:literal, host $host:literal, dpu $dpu:literal, $args:expr;)*) => {
        $(#[test]
        fn $test() {
            come_through($path, [$host, $dpu], &$args);
        })*
    };
}

const NONE: [&str; 0] = [];

refused! {
    a_send_pool_of_one_and_a_window_of_one_byte: "off",
        host "exhaust=comch_send:1", dpu "exhaust=comch_send:1", ["--window", "1", "--max-clients", "5"];
    pools_of_one_on_the_fast_path: "require",
        host "exhaust=comch_producer_send:1;exhaust=comch_post_recv:1",
        dpu "exhaust=comch_producer_send:1;exhaust=comch_post_recv:1;exhaust=comch_send:1", NONE;
    again_at_sends: "off",
        host "refuse=comch_send:1:AGAIN;refuse=comch_send:4:AGAIN;refuse=comch_send:5:AGAIN;refuse=comch_send:12:AGAIN",
        dpu "refuse=comch_send:2:AGAIN;refuse=comch_send:3:AGAIN;refuse=comch_send:9:AGAIN", NONE;
    again_on_the_fast_path: "require",
        host "refuse=comch_producer_send:1:AGAIN;refuse=comch_producer_send:2:AGAIN;refuse=comch_send:6:AGAIN",
        dpu "refuse=comch_producer_send:2:AGAIN;refuse=comch_send:1:AGAIN", NONE;
    no_memory_at_sends: "off",
        host "call=doca_comch_client_task_send_alloc_init:3:NO_MEMORY;\
            call=doca_comch_client_task_send_alloc_init:7:NO_MEMORY",
        dpu "call=doca_comch_server_task_send_alloc_init:1:NO_MEMORY;\
            call=doca_comch_server_task_send_alloc_init:6:NO_MEMORY", NONE;
    no_memory_on_the_fast_path: "require",
        host "call=doca_comch_producer_task_send_alloc_init:1:NO_MEMORY;\
            call=doca_comch_consumer_task_post_recv_alloc_init:5:NO_MEMORY",
        dpu "call=doca_comch_producer_task_send_alloc_init:1:NO_MEMORY;\
            call=doca_comch_consumer_task_post_recv_alloc_init:64:NO_MEMORY", NONE;
    no_consumer_on_the_dpu: "auto", host "", dpu "start=doca_comch_consumer:1:INITIALIZATION", NONE;
    no_producer_on_the_dpu: "auto", host "", dpu "start=doca_comch_producer:1:INITIALIZATION", NONE;
    neither_on_the_host: "auto",
        host "call=doca_comch_consumer_create:1:NO_MEMORY;call=doca_comch_producer_create:1:NO_MEMORY", dpu "", NONE;
}

/// What fails on its way ends the session, and all streams with it, and the next one works.
fn the_session_ends(path: &'static str, faults: [&str; 2]) {
    let place = Place::with_fast_path(path);
    echo(UnixListener::bind(place.server_path()).unwrap());
    let relays = pair(&place, faults, &[]);
    let mut client = place.client();
    let mut writer = client.try_clone().unwrap();
    let flow = thread::spawn(move || while writer.write_all(&[3; 5000]).is_ok() {});
    ends(&mut client);
    flow.join().unwrap();
    works(&place);
    let [host, dpu] = finish(relays);
    assert!(host.contains("session lost") && dpu.contains("session lost"), "{host}{dpu}");
}

macro_rules! failed {
    ($($test:ident: $path:literal, host $host:literal, dpu $dpu:literal;)*) => {
        $(#[test]
        fn $test() {
            the_session_ends($path, [$host, $dpu]);
        })*
    };
}

failed! {
    a_message_fails_at_the_host: "off", host "fail=comch_send:40:IO_FAILED", dpu "";
    a_message_fails_at_the_dpu: "off", host "", dpu "fail=comch_send:40:IO_FAILED";
    bulk_fails_at_the_host: "require", host "fail=comch_producer_send:20:IO_FAILED", dpu "";
    bulk_fails_at_the_dpu: "require", host "", dpu "fail=comch_producer_send:20:IO_FAILED";
    bulk_is_not_received_by_the_host: "require", host "fail=comch_post_recv:20:IO_FAILED", dpu "";
    bulk_is_not_received_by_the_dpu: "require", host "", dpu "fail=comch_post_recv:20:IO_FAILED";
}

#[test]
fn a_needed_fast_path_that_is_not_there_has_its_words_and_status() {
    let place = Place::with_fast_path("require");
    let mut dpu = place.dpu_command();
    dpu.args(["--fast-path", "off"]);
    let _dpu = Process::start(&mut dpu, &place.path("dpu.log"));
    let mut host = place.host(&["--conn-retry", "3"]);
    assert_eq!(host.status(), Some(4));
    assert!(
        host.log().contains("class 7") && host.log().contains("the other side has none"),
        "{}",
        host.log()
    );
}

/// A smoke test that finds bytes missing names the arrow on which they stay.
mod dark {
    use super::*;

    /// `before` makes it dark, and keeps it so as long as what it gives lives.
    fn arrow<K>(
        path: &'static str,
        faults: [&str; 2],
        args: &[&str],
        words: &str,
        before: impl FnOnce(&Place, &[Process; 2]) -> K,
    ) {
        of(4096, path, faults, args, words, before);
    }

    /// The same for a round trip of so many bytes.
    fn of<K>(
        bytes: usize,
        path: &'static str,
        faults: [&str; 2],
        args: &[&str],
        words: &str,
        before: impl FnOnce(&Place, &[Process; 2]) -> K,
    ) {
        let place = Place::with_fast_path(path);
        let relays = pair(&place, faults, args);
        let _kept = before(&place, &relays);
        drop(place.client());
        eventually(words, || {
            let mut command = place.program();
            command.arg("--smoke").arg("-s").arg(place.client_path()).args([
                "--steps",
                "5",
                "--timeout",
                "3",
                "--bytes",
                &bytes.to_string(),
            ]);
            let output = command.output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            eprintln!("{said}");
            (output.status.code() == Some(14) && said.contains(words)).then_some(())
        });
    }

    fn echoes(place: &Place, _: &[Process; 2]) {
        echo(UnixListener::bind(place.server_path()).unwrap());
    }

    /// For the connections that are made before and between the smoke test's own.
    const FROM_THE_FIRST: [&str; 2] =
        ["refuse=comch_producer_send:1+:AGAIN", "delay=comch_post_recv:1+:3600000"];

    #[test]
    fn from_the_client_to_the_host_relay() {
        // Another client has the only place.
        arrow("auto", ["", ""], &["--hold"], "the dark arrow: client -> host relay", |place, relays| {
            echoes(place, relays);
            place.client()
        });
    }

    #[test]
    fn from_the_host_relay_to_the_link() {
        let faults = [FROM_THE_FIRST[0], ""];
        arrow("require", faults, &[], "the dark arrow: host relay -> link", echoes);
    }

    #[test]
    fn from_the_link_to_the_dpu_relay() {
        let faults = ["", FROM_THE_FIRST[1]];
        arrow("require", faults, &[], "the dark arrow: link -> DPU relay", echoes);
    }

    #[test]
    fn from_the_dpu_relay_to_the_application() {
        // It accepts, and reads nothing; more is sent than all buffers on the way hold.
        let much = |place: &Place, _: &[Process; 2]| UnixListener::bind(place.server_path()).unwrap();
        of(4 << 20, "auto", ["", ""], &[], "the dark arrow: DPU relay -> application", much);
    }

    #[test]
    fn from_the_application_to_the_dpu_relay() {
        // It reads, and says nothing.
        arrow("auto", ["", ""], &[], "the dark arrow: application -> DPU relay", |place, _| {
            let listener = UnixListener::bind(place.server_path()).unwrap();
            thread::spawn(move || {
                let mut all = Vec::new();
                while let Ok((stream, _)) = listener.accept() {
                    all.push(stream);
                }
            });
        });
    }

    #[test]
    fn from_the_dpu_relay_to_the_link() {
        let faults = ["", FROM_THE_FIRST[0]];
        arrow("require", faults, &[], "the dark arrow: DPU relay -> link", echoes);
    }

    #[test]
    fn from_the_link_to_the_host_relay() {
        let faults = [FROM_THE_FIRST[1], ""];
        arrow("require", faults, &[], "the dark arrow: link -> host relay", echoes);
    }

    #[test]
    fn a_relay_that_stands_still() {
        let patient = ["--dead-after", "3600000"];
        arrow("auto", ["", ""], &patient, "the DPU relay answers: FAILED, class 4", |place, relays| {
            echoes(place, relays);
            works(place);
            relays[0].signal(Signal::SIGSTOP);
        });
    }
}
