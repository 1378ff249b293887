//! How failures are to be told: the rule, and the few functions that have another.

use crate::calls::{Case, Run, Verdict};
use doca::Layer;
use std::collections::BTreeMap;

/// Another way than an error value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Reached by dropping, by progress or inside a callback, where nobody can be given a value: logged with call,
    /// code and layer. What could not be destroyed is leaked.
    Logged,
    /// As a value where the program asks, logged where dropping does it.
    Either,
    /// A snapshot holds it at the question that was asked; as a value where the answer was needed.
    Answer,
    /// As a value at the first call; later ones do without, for the reason that is said.
    First(&'static str),
    /// As a value, under the name of the operation whose end could not be asked.
    Operation,
    /// As an answer, or nothing where it is only a hint, for the reason that is said.
    Hint(&'static str),
    /// No error of its own, for the reason that is said.
    Silent(&'static str),
}

/// Functions that have another way.
#[rustfmt::skip]
pub const DIFFERENT: &[(&str, Way)] = &[
    ("doca_buf_dec_refcount", Way::Logged),
    ("doca_buf_inventory_destroy", Way::Logged),
    ("doca_buf_unchain_list", Way::Logged),
    ("doca_dev_close", Way::Logged),
    ("doca_dev_rep_close", Way::Logged),
    ("doca_devinfo_destroy_list", Way::Logged),
    ("doca_devinfo_rep_destroy_list", Way::Logged),
    ("doca_mmap_destroy", Way::Logged),
    ("doca_pe_destroy", Way::Logged),
    ("doca_rdma_addr_destroy", Way::Logged),
    ("doca_rdma_connection_accept", Way::Logged),
    ("doca_rdma_connection_reject", Way::Logged),
    ("doca_rdma_destroy", Way::Logged),
    ("doca_rdma_stop_listen_to_port", Way::Logged),
    ("doca_sync_event_destroy", Way::Logged),
    ("doca_sync_event_remote_net_destroy", Way::Logged),
    ("doca_buf_get_data_len", Way::Logged),
    ("doca_comch_client_destroy", Way::Logged),
    ("doca_comch_connection_set_user_data", Way::Logged),
    ("doca_comch_consumer_destroy", Way::Logged),
    ("doca_comch_producer_destroy", Way::Logged),
    ("doca_comch_server_destroy", Way::Logged),
    ("doca_ctx_get_user_data", Way::Logged),
    ("rdma_ack_cm_event", Way::Logged),
    ("rdma_destroy_id", Way::Logged),
    ("rdma_reject", Way::Logged),
    ("doca_sta_be_destroy", Way::Logged),
    ("doca_sta_destroy", Way::Logged),
    ("doca_sta_event_cqe_notify_get_capsule_params", Way::Logged),
    ("doca_sta_event_cqe_notify_get_cqe", Way::Logged),
    ("doca_sta_event_cqe_notify_get_cqe_notify_type", Way::Logged),
    ("doca_sta_event_cqe_notify_get_param_err_location", Way::Logged),
    ("doca_sta_event_eu_err_get_eu_handle", Way::Logged),
    ("doca_sta_event_eu_err_is_fatal_error", Way::Logged),
    ("doca_sta_event_transport_err_get_operation", Way::Logged),
    ("doca_sta_event_transport_err_get_qp_handle", Way::Logged),
    ("doca_sta_event_transport_err_get_syndrome", Way::Logged),
    ("doca_sta_event_transport_err_get_vendor_syndrome", Way::Logged),
    ("doca_sta_io_destroy", Way::Logged),
    ("doca_sta_io_qp_destroy", Way::Logged),
    ("doca_sta_subsystem_destroy", Way::Logged),
    ("doca_sta_create", Way::Answer),
    ("doca_comch_client_get_connection", Way::Either),
    ("doca_sta_get_eu_id", Way::Either),
    ("doca_sta_get_eu_name", Way::Either),
    ("doca_sta_get_eu_port", Way::Either),
    ("doca_sta_get_eu_type", Way::Either),
    ("doca_sta_io_task_disconnect_alloc_init", Way::Either),
    ("doca_task_get_status", Way::Operation),
    ("doca_ctx_stop", Way::Either),
    ("doca_rdma_connection_disconnect", Way::Either),
    ("doca_sync_event_stop", Way::Logged),
    ("doca_devinfo_get_ibdev_name", Way::First("the name of a device within the text of an error is left out")),
    ("doca_pe_get_notification_handle", Way::First("waiting polls instead of sleeping")),
    ("doca_pe_request_notification", Way::First("waiting polls instead of sleeping")),
    ("doca_rdma_cap_task_send_is_supported", Way::Hint("looking for devices passes over what cannot be asked")),
    ("doca_sta_cap_is_supported", Way::Hint("looking for devices passes over what cannot be asked")),
    ("doca_rdma_cap_task_receive_is_supported", Way::Hint("looking for devices passes over what cannot be asked")),
    ("doca_rdma_cap_get_max_message_size", Way::Hint("a context without the number leaves the check to DOCA")),
    ("doca_comch_consumer_cap_get_max_buf_size", Way::Hint("a consumer without the number leaves the check to DOCA")),
    ("doca_comch_producer_cap_get_max_buf_size", Way::Hint("a producer without the number leaves the check to DOCA")),
    ("doca_ctx_get_state", Way::Silent("the state is the one that the callback told last")),
    ("doca_rdma_connection_get_addr", Way::Silent("the only listener is asked, whatever the port")),
    ("doca_rdma_addr_get_params", Way::Silent("the only listener is asked, whatever the port")),
    ("doca_rdma_connection_get_user_data", Way::Silent("the receive says that its connection is unknown")),
    ("doca_rdma_get_max_num_connections", Way::Silent("the size of a table that grows")),
];

/// Functions of librdmacm that the crates call, and what they may fail with.
pub const RDMACM: &[(&str, &str)] = &[
    ("rdma_create_event_channel", "ENOMEM EMFILE"),
    ("rdma_create_id", "ENOMEM"),
    ("rdma_bind_addr", "EADDRINUSE EADDRNOTAVAIL"),
    ("rdma_listen", "EADDRINUSE"),
    ("rdma_get_cm_event", "EIO"),
    ("rdma_ack_cm_event", "EINVAL"),
    ("rdma_reject", "EINVAL ENOTCONN"),
    ("rdma_destroy_id", "EINVAL"),
];

/// What listens keeps its port when these fail, until the process ends; the next one removes the claim on it.
const LEAVES: &[&str] = &["rdma_ack_cm_event", "rdma_destroy_id"];

/// Functions that no scene calls, and why they cannot be struck there.
#[rustfmt::skip]
pub const NOT_CALLED: &[(&str, &str)] = &[
    ("doca_ctx_get_num_inflight_tasks", "only for the text of another failure"),
    ("doca_mmap_set_dmabuf_memrange", "needs a buffer of a driver"),
    ("doca_sync_event_create_from_export", "needs a process on the other side of PCI: tests/one_sided.rs"),
    ("doca_sta_event_be_timeout_get_be_handle", "needs a disk that does not answer: doca-sta-target/tests/target.rs"),
    ("doca_rdma_get_recv_queue_size", "is refused where CPUs move the data: tests/basics.rs"),
    ("doca_rdma_set_recv_queue_size", "the same"),
];

/// Functions that a scene calls more often the slower a process is, since it sleeps, or its peer does more meanwhile:
/// their last call is not known before.
#[rustfmt::skip]
pub const AS_OFTEN_AS_TIME_GOES: &[(&str, &str)] = &[
    ("rdma", "doca_pe_get_notification_handle"),
    ("rdma", "doca_pe_request_notification"),
    ("rdma", "doca_pe_clear_notification"),
    // Looked for until it is there.
    ("bridge", "rdma_get_cm_event"),
    ("storage target", "rdma_get_cm_event"),
    // A peer that has not posted a buffer yet is tried again, and how often it sends itself is its own matter.
    ("comch client", "doca_task_submit"),
    ("comch server", "doca_task_submit"),
    ("storage target", "doca_task_submit"),
    ("comch client", "doca_ctx_get_user_data"),
    ("comch server", "doca_ctx_get_user_data"),
    // A client that was sent away comes again.
    ("comch server", "doca_comch_connection_set_user_data"),
];

/// Codes that are answers rather than failures, for calls where they are documented or may come.
const ANSWERS: &[&str] = &["AGAIN", "IN_PROGRESS", "NOT_SUPPORTED", "NOT_FOUND"];

/// Functions whose NO_MEMORY says that all tasks are in flight: a full queue, which is no failure.
const FULL: &[&str] = &[
    "doca_comch_client_task_send_alloc_init",
    "doca_comch_server_task_send_alloc_init",
    "doca_comch_consumer_task_post_recv_alloc_init",
    "doca_comch_producer_task_send_alloc_init",
    "doca_sta_be_destroy_queue_task_alloc_init",
    "doca_sta_io_task_disconnect_alloc_init",
    "doca_sta_subsystem_task_rm_ns_alloc_init",
];

/// What a code points to; the first row that fits. `call` is how the function begins.
#[rustfmt::skip]
const LAYERS: &[(&str, &str, Layer)] = &[
    ("doca_mmap_start", "NOT_PERMITTED", Layer::Environment),
    ("doca_mmap_start", "DRIVER", Layer::Environment),
    ("doca_mmap_create_from_export", "INVALID_VALUE", Layer::Runtime),
    ("doca_dev_open", "NOT_CONNECTED", Layer::Environment),
    ("doca_rdma_start_listen_to_port", "CONNECTION_ABORTED", Layer::Environment),
    ("doca_rdma_export", "FULL", Layer::Program),
    ("doca_comch_server_create", "NOT_PERMITTED", Layer::Environment),
    ("", "INVALID_VALUE", Layer::Program),
    ("", "BAD_STATE", Layer::Program),
    ("", "NOT_PERMITTED", Layer::Program),
    ("", "IN_USE", Layer::Program),
    ("", "NO_MEMORY", Layer::Program),
    ("", "NOT_CONNECTED", Layer::Program),
    ("", "ALREADY_EXIST", Layer::Program),
    ("", "EMPTY", Layer::Program),
    ("", "TOO_BIG", Layer::Program),
    ("", "FULL", Layer::Runtime),
    ("", "CONNECTION_ABORTED", Layer::Runtime),
    ("", "CONNECTION_RESET", Layer::Runtime),
    ("", "CONNECTION_INPROGRESS", Layer::Runtime),
    ("", "INITIALIZATION", Layer::Environment),
    ("", "OPERATING_SYSTEM", Layer::Environment),
    ("", "DRIVER", Layer::Driver),
    ("", "UNEXPECTED", Layer::Driver),
    ("", "UNKNOWN", Layer::Driver),
];

/// The codes that a function is made to fail with.
pub fn codes_of<'a>(function: &str, documented: &'a BTreeMap<String, Vec<String>>) -> Vec<&'a str> {
    let all = documented.get(function).into_iter().flatten().map(String::as_str);
    let is_answer = |code: &str| ANSWERS.contains(&code) || code == "NO_MEMORY" && FULL.contains(&function);
    let codes: Vec<&str> = all.filter(|code| !code.is_empty() && !is_answer(code)).collect();
    if codes.is_empty() { vec!["INVALID_VALUE"] } else { codes }
}

/// Functions that end something which DOCA has still when they fail, though the program gets a value.
const KEEPS: &[&str] =
    &["doca_sta_be_destroy_queue_task_alloc_init", "doca_sta_subsystem_task_rm_ns_alloc_init"];

/// Whether something stays allocated by intention when this function fails.
pub fn leaks(function: &str) -> bool {
    matches!(way(function), Some(Way::Logged | Way::Either)) || KEEPS.contains(&function)
}

/// The way of a function, if it is not an error value.
fn way(function: &str) -> Option<Way> {
    let row = DIFFERENT.iter().find(|(name, _)| *name == function);
    row.map(|(_, way)| *way).or_else(|| is_question(function).then_some(Way::Answer))
}

/// Whether a function says what a device can do.
fn is_question(function: &str) -> bool {
    ["doca_sta_get_max_", "doca_sta_get_min_"].iter().any(|start| function.starts_with(start))
        || function.contains("_cap_")
}

fn layer(case: &Case) -> Layer {
    if case.function.starts_with("rdma_") {
        return Layer::Environment;
    }
    let row = LAYERS.iter().find(|(call, code, _)| *code == case.code && case.function.starts_with(call));
    row.unwrap_or_else(|| panic!("{case}: no layer is demanded")).2
}

pub fn judge(case: &Case, run: &Run) -> Verdict {
    let wrong = |why: &str| Verdict::Wrong(why.to_owned());
    if run.hung() {
        return wrong("hangs");
    }
    if !run.status.success() || !run.ended {
        return Verdict::Wrong(format!("ends by {}", run.status));
    }
    let is_claim = |name: &String| LEAVES.contains(&case.function.as_str()) && name.starts_with("listen-");
    if !run.left.iter().all(is_claim) {
        return Verdict::Wrong(format!("leaves {:?}", run.left));
    }
    if run.stderr.contains("never happened: call=") {
        return wrong("did not fail");
    }
    if case.function.is_empty() {
        return match &run.value {
            None => Verdict::Right,
            Some(error) => Verdict::Wrong(error.clone()),
        };
    }
    let text = match case.function.starts_with("rdma_") {
        // In the operating system's words.
        true => format!("{}: ", case.function),
        false => format!("{}: DOCA_ERROR_{} (", case.function, case.code),
    };
    let layer = format!("[{}; check: ", layer(case));
    let told = |line: &str| line.contains(&text) && line.contains(&layer);
    let value = run.value.as_deref().is_some_and(told);
    let said = |what: &str| run.lines.iter().any(|line| line.starts_with(what) && told(line));
    let right = match way(&case.function) {
        None => value,
        Some(Way::Logged) => said("log "),
        Some(Way::Either) => value || said("log "),
        Some(Way::Operation) => {
            let code = format!(": DOCA_ERROR_{} (", case.code);
            run.value.as_deref().is_some_and(|line| line.contains(&code) && line.contains(&layer))
        }
        Some(Way::Answer) => value || said("told "),
        Some(Way::Hint(_)) => value || said("told ") || run.value.is_none(),
        Some(Way::First(_)) => value || case.nth > 1,
        Some(Way::Silent(_)) => run.value.is_none(),
    };
    if right { Verdict::Right } else { wrong("is not told as it must be") }
}
