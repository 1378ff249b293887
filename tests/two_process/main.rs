//! Two processes over DOCA RDMA, from safe Rust.
//!
//! ```text
//! two_process                 runs each test below in a process and a network directory of its own
//! two_process test NAME       is such a process
//! two_process role NAME ARGS  is a peer that a test started; they talk over its standard input and output
//! ```
//!
//! `cargo sim test --test two_process` runs all but the long ones, `… -- NAME` one, `… -- --ignored` the long ones.

#[cfg(feature = "comch")]
mod comch;
mod counter;
#[cfg(feature = "comch")]
#[path = "../support/counting.rs"]
mod counting;
#[path = "../support/event_tasks.rs"]
mod event_tasks;
mod events;
mod input;
mod kill;
mod process;
mod random;
mod side;
mod silence;
mod stopped;
mod traffic;
mod wake;

use process::{Parent, Test};
use std::process::ExitCode;

const TESTS: &[Test] = &[
    Test::new("kill::peers_killed_over_cm", kill::peers_killed_over_cm).with_log_level("20"),
    Test::new("kill::peers_killed_over_descriptors", kill::peers_killed_over_descriptors)
        .with_log_level("20"),
    Test::new("traffic::many_small_messages", traffic::many_small_messages),
    Test::new("traffic::large_messages", traffic::large_messages),
    Test::new("traffic::soak_small_messages", traffic::soak_small_messages).too_long("a million messages"),
    Test::new("traffic::soak_large_messages", traffic::soak_large_messages).too_long("4 GiB"),
    Test::new("counter::nothing_is_lost_in_mapped_memory", counter::nothing_is_lost_in_mapped_memory),
    Test::new(
        "counter::nothing_is_lost_in_memory_of_the_heap",
        counter::nothing_is_lost_in_memory_of_the_heap,
    ),
    Test::new(
        "counter::nothing_is_lost_beside_the_owners_cpu",
        counter::nothing_is_lost_beside_the_owners_cpu,
    ),
    Test::new(
        "stopped::every_kind_completes_in_mapped_memory",
        stopped::every_kind_completes_in_mapped_memory,
    ),
    Test::new(
        "stopped::every_kind_completes_in_memory_of_the_heap",
        stopped::every_kind_completes_in_memory_of_the_heap,
    ),
    Test::new("stopped::every_kind_completes_over_dc", stopped::every_kind_completes_over_dc),
    Test::new("input::damaged_descriptors", input::damaged_descriptors),
    Test::new("input::topology_files", input::topology_files),
    Test::new(
        "silence::one_line_for_each_engine_that_nobody_progresses",
        silence::one_line_for_each_engine_that_nobody_progresses,
    ),
    Test::new("silence::each_step_is_a_line_at_trace_level", silence::each_step_is_a_line_at_trace_level),
    Test::new(
        "wake::a_blocked_sender_is_served_by_its_receiver",
        wake::a_blocked_sender_is_served_by_its_receiver,
    ),
    Test::new("wake::a_sleeper_in_poll_is_woken", wake::a_sleeper_in_poll_is_woken),
    Test::new("wake::a_deadline_is_kept", wake::a_deadline_is_kept),
    Test::new(
        "events::an_event_crosses_pci_in_every_pairing_of_modes",
        events::an_event_crosses_pci_in_every_pairing_of_modes,
    ),
    Test::new("events::a_sleeping_wait_is_woken_over_rdma", events::a_sleeping_wait_is_woken_over_rdma),
    Test::new(
        "events::a_wait_for_a_killed_process_can_be_given_up",
        events::a_wait_for_a_killed_process_can_be_given_up,
    ),
];

/// Those of Comch; a feature switches them on.
#[cfg(not(feature = "comch"))]
const COMCH: &[Test] = &[];
#[cfg(feature = "comch")]
const COMCH: &[Test] = &[
    Test::new("comch::messages_come_whole_and_in_order", comch::control::messages_come_whole_and_in_order),
    Test::new(
        "comch::a_peer_that_takes_nothing_is_a_value",
        comch::control::a_peer_that_takes_nothing_is_a_value,
    ),
    Test::new("comch::a_connection_has_its_share", comch::control::a_connection_has_its_share),
    Test::new("comch::a_server_ends_a_connection", comch::control::a_server_ends_a_connection),
    Test::new(
        "comch::a_client_without_a_server_falls_back",
        comch::control::a_client_without_a_server_falls_back,
    )
    .with_log_level("20"),
    Test::new("comch::one_name_has_one_server", comch::control::one_name_has_one_server),
    Test::new("comch::a_server_stops_under_its_clients", comch::control::a_server_stops_under_its_clients),
    Test::new("comch::closures_take_messages", comch::control::closures_take_messages_and_cannot_progress),
    Test::new("comch::futures_are_woken", comch::control::futures_are_woken),
    Test::new("comch::every_limit_is_told", comch::control::every_limit_is_told).with_log_level("20"),
    Test::new("comch::bulk_data_come_back", comch::fast::bulk_data_come_back),
    Test::new(
        "comch::a_starved_producer_is_woken",
        comch::fast::a_producer_without_a_buffer_sleeps_until_there_is_one,
    ),
    Test::new("comch::misuse_of_the_fast_path_is_refused", comch::fast::misuse_of_the_fast_path_is_refused),
    Test::new(
        "comch::the_end_of_a_connection_is_told_as_such",
        comch::fast::the_end_of_a_connection_is_told_as_such,
    ),
    Test::new("comch::seeds_run_on_other_threads", comch::fast::seeds_run_on_other_threads),
    Test::new("comch::consumers_come_and_go", comch::fast::consumers_come_and_go),
    Test::new("comch::messages_allocate_nothing", comch::fast::messages_allocate_nothing),
    Test::new("comch::a_killed_server_is_noticed", comch::lost::a_killed_server_is_noticed_by_sending)
        .with_log_level("20"),
    Test::new("comch::a_killed_client_holds_nobody", comch::lost::a_killed_client_does_not_hold_its_server)
        .with_log_level("20"),
    Test::new("comch_killed::clients_are_killed_in_copies", comch::killed::clients_are_killed_in_copies)
        .with_log_level("20"),
    Test::new("comch_killed::servers_are_killed_in_copies", comch::killed::servers_are_killed_in_copies)
        .with_log_level("20"),
];

type Role = (&'static str, fn(&mut Parent, &[String]));

const ROLES: &[Role] = &[
    ("survivor", kill::survivor),
    ("victim", kill::victim),
    ("newcomer", kill::newcomer),
    ("descriptor victim", kill::descriptor_victim),
    ("receiver", traffic::receiver),
    ("counting", counter::counting),
    ("target", stopped::target),
    ("exporter", input::exporter),
    ("importer", input::importer),
    ("lister", input::lister),
    ("forgetter", silence::forgetter),
    ("tracer", silence::tracer),
    ("late receiver", wake::late_receiver),
    ("late sender", wake::late_sender),
    ("event importer", events::importer),
    ("event signaller", events::signaller),
    ("event exporter", events::exporter),
    ("event bereaved", events::bereaved),
    #[cfg(feature = "comch")]
    ("comch server", comch::serve),
    #[cfg(feature = "comch")]
    ("comch victim", comch::lost::victim),
    #[cfg(feature = "comch")]
    ("comch survivor", comch::killed::survivor),
    #[cfg(feature = "comch")]
    ("comch killed", comch::killed::victim),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test", name] => match TESTS.iter().chain(COMCH).find(|test| test.name == name) {
            Some(test) => (test.run)(),
            None => panic!("no test {name}"),
        },
        ["role", name, ..] => match ROLES.iter().find(|role| role.0 == name) {
            Some((_, act)) => act(&mut Parent::new(), &args[2..]),
            None => panic!("no role {name}"),
        },
        _ => return process::run_all(TESTS.iter().chain(COMCH), &args),
    }
    ExitCode::SUCCESS
}
