//! Processes that are killed, over both paths and with every way in which Comch may tell of it.

#[macro_use]
mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;
use support::clients::{ends, exchange, works};
use support::pair::{Place, Process, echo, eventually, pattern};

over_both_paths! {
    whoever_is_killed_its_clients_see_an_end_and_a_restart_works,
    killed_before_its_session_is_up,
}

/// The same where Comch behaves in another way than it does unless told otherwise.
macro_rules! under_profiles {
    ($($test:ident: $profile:literal,)*) => {
        $(#[test]
        fn $test() {
            let place = Place::with_profile($profile);
            whoever_is_killed_its_clients_see_an_end_and_a_restart_works(&place);
        })*
    };
}

under_profiles! {
    deaths_that_are_told_at_once: "comch-death-prompt",
    deaths_that_are_told_late: "comch-death-late",
    disconnections_that_are_told_to_their_author: "comch-disconnect-told",
    credits_that_need_both_sides: "comch-credits-both-sides",
    credits_that_need_the_consumers_side: "comch-credits-consumer-side",
    starts_that_are_lost_where_the_engine_is_armed: "comch-lost-consumer-start",
}

fn whoever_is_killed_its_clients_see_an_end_and_a_restart_works(place: &Place) {
    echo(UnixListener::bind(place.server_path()).unwrap());
    let [mut dpu, mut host] = place.pair();
    for round in 0..6 {
        let mut client = place.client();
        let mut writer = client.try_clone().unwrap();
        let flow = thread::spawn(move || while writer.write_all(&[3; 5000]).is_ok() {});
        client.read_exact(&mut vec![0; 20_000 + round * 7000]).unwrap();
        if round % 2 == 0 {
            host.kill();
            ends(&mut client);
            host = place.host(&["--probe-app", "off"]);
        } else {
            dpu.kill();
            ends(&mut client);
            dpu = place.dpu(&["--probe-app", "off"]);
        }
        flow.join().unwrap();
        works(place);
    }
    assert!(host.log().contains("session lost"), "{}", host.log());
    place.wait_for_metric(&place.client_path(), "active", 0);
    place.wait_for_metric(&place.server_path(), "active", 0);
    // A client that is killed is one that closes: the kernel does it.
    drop(place.client());
    works(place);
}

/// At whatever point of the greeting and of the set-up of the fast path that may be.
fn killed_before_its_session_is_up(place: &Place) {
    echo(UnixListener::bind(place.server_path()).unwrap());
    let off = ["--probe-app", "off"];
    let (mut dpu, mut host) = (place.dpu(&off), place.host(&off));
    for point in 0..10 {
        // It kills itself, at a later point of the simulator each time.
        let dying = |mut command: std::process::Command, log| {
            Process::start(
                command.args(off).env("DOCA_SIM_KILL_AT", (point + 1).to_string()),
                &place.path(log),
            )
        };
        if point % 2 == 0 {
            host.kill();
            dying(place.host_command(), "host.log").ended();
            host = place.host(&off);
        } else {
            dpu.kill();
            dying(place.dpu_command(), "dpu.log").ended();
            dpu = place.dpu(&off);
        }
    }
    // The last death may be noticed while a client is there.
    let sent = pattern(1, 10_000);
    eventually("bytes come back", || {
        exchange(place.client(), &sent).is_ok_and(|got| got == sent).then_some(())
    });
    drop((dpu, host));
}
