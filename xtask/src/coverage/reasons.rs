//! Why a function has no Rust method, or a documented error cannot be seen.

/// Reasons by what a function's name begins with; the first that fits counts.
const NO_METHOD: &[(&str, &str)] = &[
    ("doca_argp_", "C programs only: Rust programs take their arguments from crates"),
    ("doca_log", "C programs only: Rust programs write messages through the `log` facade"),
    ("doca_dma_", "C programs only: copies are for NVIDIA's progress engine samples"),
    (
        "doca_sta_subsystem_rm_ns",
        "Rust twin: a namespace is removed by its task, which waits for its commands",
    ),
    ("doca_sta_io_qp_", "Rust twin: the Rust value of a queue pair is found by its handle"),
    ("doca_sta_event_be_timeout_get_be_queue", "not wrapped: the Rust event names the back end"),
    ("doca_sta_event_cqe_notify_get_", "not wrapped: the Rust event has the command and its completion"),
    ("doca_sta_eu_reset_stats_handle", "not wrapped: Rust programs take differences of what they read"),
    (
        "doca_sta_get_be_queue_mapping_info",
        "not wrapped: which unit serves a queue is for the vendor's support",
    ),
    ("doca_comch_", "Rust twin: the Rust value of a context or task keeps what it was given"),
    ("doca_error_", "Rust twin: `doca_common::Error` tells names and descriptions"),
    ("doca_version", "Rust twin: `doca_common::version`"),
    ("doca_buf_pool_", "Rust twin: `doca_common` buffers come from an inventory"),
    ("doca_buf_inventory_", "Rust twin: an inventory belongs to the memory it serves"),
    ("doca_buf_", "Rust twin: the state of a buffer is in its Rust type"),
    ("doca_devinfo_rep_", "C programs only: a representor is known by its function's PCI address or VUID"),
    ("doca_dev_rep_", "C programs only: representors are opened from a list"),
    ("doca_dev", "C programs only: Rust programs open devices from a list"),
    ("doca_mmap_", "C programs only: the owner of the memory is a Rust value"),
    ("doca_pe_", "C programs only: the engine is driven by polling or by its notification"),
    ("doca_ctx_", "C programs only: the context's Rust value keeps its state"),
    ("doca_task_", "C programs only: tasks are submitted one by one, and freed on completion"),
    ("doca_sync_event_task_", "Rust twin: the Rust value of a task keeps what it was given"),
    ("doca_sync_event_wait_", "C programs only: a Rust wait has a deadline, which this has not"),
    ("doca_sync_event_set_", "C programs only: the value of an event is where DOCA keeps it"),
    ("doca_rdma_bridge_", "C programs only: hands out objects of libibverbs"),
    ("doca_rdma_task_", "Rust twin: the Rust value of a task keeps what it was given"),
    ("doca_rdma_", "C programs only: Rust programs know the value from what they set"),
];

/// Parts of names of functions for programs on other processors.
const PROCESSORS: &[(&str, &str)] = &[
    ("_gpu", "GPU programs only"),
    ("_dpa", "DPA programs only"),
    ("_datapath_on_", "GPU and DPA programs only"),
    ("doca_comch_msgq_", "DPA programs only"),
    ("doca_comch_consumer_completion_", "DPA programs only"),
    ("doca_comch_consumer_set_completion", "DPA programs only"),
    ("_set_dev_max_num_", "DPA programs only"),
];

/// Errors that the simulator has no cause for.
const NO_CAUSE: &[(&str, &str)] = &[
    ("DRIVER", "no driver"),
    ("UNEXPECTED", "a fault of the SDK itself"),
    ("OPERATING_SYSTEM", "a fault of the machine"),
    ("NO_MEMORY", "memory of the machine exhausted"),
    ("INITIALIZATION", "a fault of the machine"),
    ("UNKNOWN", "a fault of the SDK itself"),
];

/// What a function for another processor is for.
pub(crate) fn processor(function: &str) -> Option<&'static str> {
    PROCESSORS.iter().find(|(part, _)| function.contains(part)).map(|(_, why)| *why)
}

/// Why no safe crate reaches a function.
pub(crate) fn no_method(function: &str) -> Option<&'static str> {
    let named = || NO_METHOD.iter().find(|(start, _)| function.starts_with(start)).map(|(_, why)| *why);
    processor(function).or_else(named)
}

/// Why an error cannot be provoked.
pub(crate) fn no_cause(error: &str) -> Option<&'static str> {
    NO_CAUSE.iter().find(|(name, _)| *name == error).map(|(_, why)| *why)
}
