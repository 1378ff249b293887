//! What must not compile, with the error that the author of the program sees.
//!
//! | case | rule |
//! | --- | --- |
//! | `setter_after_start` | only an idle context can be configured |
//! | `enable_after_start` | tasks are enabled before the start |
//! | `queue_without_enabling` | a queue needs the key of its kind of task |
//! | `submit_on_connecting` | tasks need an established connection |
//! | `submit_on_exported` | tasks need a connection that was connected |
//! | `buffer_in_flight` | a submitted buffer is not ours until it comes back |
//! | `prepared_buffer_in_flight` | nor is that of a prepared task |
//! | `prepared_data_of_in_flight` | which has no data until then |
//! | `prepared_submitted_twice` | a prepared task is in flight once at a time |
//! | `engine_across_threads` | an engine stays on its thread |
//! | `context_across_threads` | and so does what runs on it |
//! | `slice_of_shared_memory` | memory that a peer may write has no slices |
//! | `remote_buffer_as_local` | a peer's memory is no local buffer |
//! | `local_buffer_as_remote` | and a local buffer is not at a peer |
//! | `range_as_cell` | atomics need an aligned cell |
//! | `slice_of_remote_memory` | there are no bytes of a peer's memory here |
//! | `read_into_frozen` | a frozen buffer does not change |
//! | `restart_of_consumed_context` | starting consumes the configuration |
//! | `use_after_stop` | stopping consumes the context |
//! | `event_task_before_start` | events, too, take tasks when they run |
//! | `event_enable_after_start` | and are configured before that |
//! | `event_call_in_asynchronous_mode` | an event is in one mode for life |
//! | `event_across_threads` | and one that is a context stays with its engine |
//! | `comch_setter_after_start` | only an idle server or client can be configured |
//! | `comch_disconnect_of_client` | servers end connections; clients stop |
//! | `comch_private_buffer` | bulk data go through shared memory |
//! | `comch_running_consumer_across_threads` | a seed crosses threads, what was started does not |

/// The cases, as in the table.
const CASES: &[&str] = &[
    "setter_after_start",
    "enable_after_start",
    "queue_without_enabling",
    "submit_on_connecting",
    "submit_on_exported",
    "buffer_in_flight",
    "prepared_buffer_in_flight",
    "prepared_data_of_in_flight",
    "prepared_submitted_twice",
    "engine_across_threads",
    "context_across_threads",
    "slice_of_shared_memory",
    "remote_buffer_as_local",
    "local_buffer_as_remote",
    "range_as_cell",
    "slice_of_remote_memory",
    "read_into_frozen",
    "restart_of_consumed_context",
    "use_after_stop",
    "event_task_before_start",
    "event_enable_after_start",
    "event_call_in_asynchronous_mode",
    "event_across_threads",
    "comch_setter_after_start",
    "comch_disconnect_of_client",
    "comch_private_buffer",
    "comch_running_consumer_across_threads",
];

/// Whether the features that a case needs are on. What rustc says of a connection depends on whether two libraries have
/// one.
fn is_on(case: &str) -> bool {
    let names_both = ["comch_", "submit_on_", "prepared_"];
    cfg!(feature = "comch") || !names_both.iter().any(|start| case.starts_with(start))
}

#[test]
fn forbidden_orders_do_not_compile() {
    let cases = trybuild::TestCases::new();
    for case in CASES.iter().filter(|case| is_on(case)) {
        cases.compile_fail(format!("tests/ui/{case}.rs"));
    }
}

#[test]
fn the_table_lists_every_case() {
    let mut files: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ui"))
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    let mut cases: Vec<String> = CASES.iter().map(|case| (*case).to_owned()).collect();
    files.sort();
    cases.sort();
    assert_eq!(files, cases);
    let table = include_str!("ui.rs");
    for case in CASES {
        assert!(table.contains(&format!("//! | `{case}` |")), "{case} is not in the table");
    }
}
