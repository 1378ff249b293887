//! The tables from what failed to where to look.

use super::{Code, Kind, Layer, Refusal};

/// Rows for one library, call or code. `library` and `call` are matched as prefixes of the C name, an empty one
/// matches all; the first row that fits wins.
type Row = (&'static str, Code, Layer, &'static str);

/// What an error of a send-side RDMA task means, in the order of the permission matrix: the peer's side first.
const SEND_FAILED: &str = "in this order: the peer posted no receive in time (rnr_retry_count), its receive is \
                           smaller than the message or its memory lacks LOCAL_READ_WRITE, the peer is gone or not \
                           connected yet, the GIDs cannot reach each other";
const REMOTE_FAILED: &str = "in this order: the peer's memory lacks the RDMA_* flag, the peer's context lacks it, the \
                             range lies outside what was exported, the memory was unregistered or the descriptor is \
                             stale, the peer is gone, the GIDs cannot reach each other";
/// What to look at when a peer across PCI does not answer any more.
const PEER_SILENT: &str = "whether the program at the other end runs, and progresses its engine";
/// What a device lacks that cannot control a storage target.
const NO_STA: &str =
    "that it is a physical function of a BlueField-3 or newer whose firmware lets it run DPA programs";

#[rustfmt::skip]
const BY_CALL: &[Row] = &[
    ("doca_rdma_task_receive", Code::IO_FAILED, Layer::Runtime, "whether the context was stopped or the message was longer than the receive"),
    ("doca_rdma_task_send", Code::IO_FAILED, Layer::Runtime, SEND_FAILED),
    ("doca_rdma_task_send", Code::NOT_PERMITTED, Layer::Program, SEND_FAILED),
    ("doca_rdma_task_", Code::IO_FAILED, Layer::Runtime, REMOTE_FAILED),
    ("doca_rdma_task_", Code::NOT_PERMITTED, Layer::Program, REMOTE_FAILED),
    ("doca_rdma_connect_to_addr", Code::CONNECTION_ABORTED, Layer::Runtime, "that the peer listens on address and port, that it accepted, and that the address belongs to an RDMA device"),
    ("doca_rdma_connection_", Code::CONNECTION_ABORTED, Layer::Runtime, "the peer and the network between"),
    ("doca_rdma_connect", Code::CONNECTION_ABORTED, Layer::Runtime, "that the descriptor is complete, fresh, and of the same DOCA release"),
    ("doca_rdma_connect", Code::DRIVER, Layer::Program, "that both peers use the same transport type"),
    ("doca_rdma_export", Code::FULL, Layer::Program, "max_num_connections, or drop connections that are over"),
    ("doca_rdma_start_listen_to_port", Code::CONNECTION_ABORTED, Layer::Environment, "whether another process listens on the port"),
    ("doca_rdma_set_gid_index", Code::INVALID_VALUE, Layer::Program, "the table of GIDs of the device"),
    ("doca_rdma_create", Code::INITIALIZATION, Layer::Environment, "that the device can host RDMA; on BlueField cores use a sub-function"),
    ("doca_sta_cap_is_supported", Code::NOT_SUPPORTED, Layer::Driver, NO_STA),
    ("doca_sta_create", Code::NOT_SUPPORTED, Layer::Driver, NO_STA),
    ("doca_comch_server_create", Code::NOT_PERMITTED, Layer::Environment, "that the representor is one of the device's, of a network function"),
    ("doca_comch_server_disconnect", Code::IN_USE, Layer::Program, "that producers and consumers on the connection have ended"),
    ("doca_comch_task_send", Code::CONNECTION_ABORTED, Layer::Runtime, PEER_SILENT),
    ("doca_comch_task_send", Code::CONNECTION_RESET, Layer::Runtime, PEER_SILENT),
    ("doca_comch_connection_update_info", Code::CONNECTION_ABORTED, Layer::Runtime, PEER_SILENT),
    // What is known to be over is refused before DOCA is asked.
    ("doca_task_submit", Code::BAD_STATE, Layer::Runtime, "whether the peer has gone, or the context stopped, since the last progress"),
    ("doca_mmap_export_", Code::NOT_PERMITTED, Layer::Program, "that the memory is registered with an RDMA_* or PCI_* flag"),
    ("doca_mmap_start", Code::NOT_PERMITTED, Layer::Environment, "the limit of locked memory (ulimit -l)"),
    ("doca_mmap_start", Code::DRIVER, Layer::Environment, "the limit of locked memory (ulimit -l) and dmesg"),
    ("doca_mmap_create_from_export", Code::INVALID_VALUE, Layer::Runtime, "that the descriptor is complete and fresh"),
    ("doca_dev_open", Code::NOT_CONNECTED, Layer::Environment, "permissions of the device nodes in /dev/infiniband"),
    ("doca_ctx_start", Code::NOT_SUPPORTED, Layer::Driver, "the device's capabilities; on BlueField cores RDMA needs a sub-function"),
    ("doca_ctx_start", Code::INITIALIZATION, Layer::Environment, "what the error or DOCA's log names: the peer, or a name that is taken; else devices and hugepages"),
    ("", Code::NOT_PERMITTED, Layer::Program, "permissions of memory and context, and whether the object is in use"),
    ("", Code::IN_USE, Layer::Program, "what still refers to the object"),
    ("", Code::NOT_SUPPORTED, Layer::Driver, "the device's capabilities (doca caps), and that libraries are not older than headers"),
    ("", Code::AGAIN, Layer::Runtime, "again after progress"),
    ("", Code::FULL, Layer::Runtime, "again after progress; if that never helps, the configured size"),
    ("", Code::INVALID_VALUE, Layer::Program, "the arguments; else that headers and libraries are of one release"),
    ("", Code::NO_MEMORY, Layer::Program, "the configured numbers of tasks, buffers and devices; then the limit of locked memory"),
    ("", Code::INITIALIZATION, Layer::Environment, "devices, hugepages and permissions of the user"),
    ("", Code::TIME_OUT, Layer::Runtime, "peer and link"),
    ("", Code::SHUTDOWN, Layer::Program, "who stops the object"),
    ("", Code::CONNECTION_RESET, Layer::Runtime, "the peer"),
    ("", Code::CONNECTION_ABORTED, Layer::Runtime, "the peer and the network between"),
    ("", Code::CONNECTION_INPROGRESS, Layer::Runtime, "that the engine is progressed"),
    ("", Code::NOT_CONNECTED, Layer::Program, "that the context has an engine and the connection is established"),
    ("", Code::NO_LOCK, Layer::Program, "that one thread uses the object"),
    ("", Code::NOT_FOUND, Layer::Environment, "the list of devices (doca caps)"),
    ("", Code::IO_FAILED, Layer::Runtime, "transport, permissions and descriptors of the peer"),
    ("", Code::BAD_STATE, Layer::Program, "the order of calls"),
    ("", Code::UNSUPPORTED_VERSION, Layer::Environment, "that both sides run the same release"),
    ("", Code::OPERATING_SYSTEM, Layer::Environment, "DOCA's log, limits of the process, and dmesg"),
    ("", Code::DRIVER, Layer::Driver, "dmesg, firmware and mlxconfig"),
    ("", Code::ALREADY_EXIST, Layer::Program, "what was added before"),
    ("", Code::EMPTY, Layer::Program, "that buffers come back"),
    ("", Code::IN_PROGRESS, Layer::Program, "that the engine is progressed"),
    ("", Code::TOO_BIG, Layer::Program, "the limits among the capabilities"),
    ("", Code::AUTHENTICATION, Layer::Environment, "credentials"),
    ("", Code::BAD_CONFIG, Layer::Environment, "the device's configuration"),
];

/// Layer and next check for a code of DOCA.
pub(super) fn of_code(call: &str, code: Code) -> (Layer, &'static str) {
    BY_CALL
        .iter()
        .find(|(prefix, row, ..)| *row == code && call.starts_with(prefix))
        .map_or((Layer::Driver, "DOCA's own log and dmesg"), |(_, _, layer, check)| (*layer, *check))
}

pub(super) fn kind_of_code(code: Code) -> Kind {
    match code {
        Code::AGAIN => Kind::Again,
        Code::FULL => Kind::Full,
        Code::NOT_PERMITTED => Kind::NotPermitted,
        Code::NOT_SUPPORTED => Kind::NotSupported,
        Code::CONNECTION_RESET | Code::CONNECTION_ABORTED | Code::NOT_CONNECTED => Kind::Disconnected,
        Code::TIME_OUT => Kind::TimedOut,
        Code::BAD_STATE | Code::SHUTDOWN => Kind::BadState,
        Code::NOT_FOUND => Kind::NotFound,
        Code::INVALID_VALUE | Code::TOO_BIG => Kind::Invalid,
        Code::IO_FAILED => Kind::Io,
        Code::OPERATING_SYSTEM => Kind::System,
        _ => Kind::Other,
    }
}

/// What a refusal says, its layer, the next check, and its kind.
#[rustfmt::skip]
pub(super) fn of_refusal(refusal: Refusal) -> (&'static str, Layer, &'static str, Kind) {
    use Layer::{Driver, Environment, Program, Runtime};
    match refusal {
        Refusal::Full => ("every task of the queue is in flight", Runtime, "again after progress; else enable more tasks", Kind::Full),
        Refusal::Stopped => ("the context is not running any more", Program, "who stopped it, or which error did", Kind::BadState),
        Refusal::Stale => ("the handle is of an earlier run or connection", Program, "take handles anew after a restart", Kind::BadState),
        Refusal::EngineGone => ("the progress engine was dropped", Program, "keep the engine as long as what runs on it", Kind::BadState),
        Refusal::InCallback => ("not allowed inside a callback", Program, "do it after progress returned", Kind::BadState),
        Refusal::Taken => ("the result was taken before", Program, "the first answer", Kind::BadState),
        Refusal::NotConnected => ("the connection is not established, or no longer", Runtime, "the connection's state and the peer", Kind::Disconnected),
        Refusal::TimedOut => ("the deadline passed", Runtime, "that the peer does its part; the operation goes on", Kind::TimedOut),
        Refusal::InUse => ("the object is in use", Program, "who uses it: what is named here, clones of it, tasks in flight", Kind::BadState),
        Refusal::Duplicate => ("there is one of this name or number already", Program, "what was added before", Kind::Invalid),
        Refusal::OtherContext => ("the object belongs to another context", Program, "which context made it", Kind::Invalid),
        Refusal::OtherEngine => ("the context belongs to another engine", Program, "restart it on the engine it was first started on", Kind::NotPermitted),
        Refusal::OtherDevice => ("the memory is registered with another device", Program, "register it with the context's device", Kind::Invalid),
        Refusal::TooLong => ("exceeds its limit", Program, "the limit named here", Kind::Invalid),
        Refusal::OutOfRange => ("the number or range is empty, taken, or outside of what there is", Program, "the number, or offset and length", Kind::Invalid),
        Refusal::Misaligned => ("the address is not aligned", Program, "offsets of cells are multiples of 8", Kind::Invalid),
        Refusal::Permissions => ("the permissions do not fit", Program, "the flags named here", Kind::NotPermitted),
        Refusal::Capability => ("the device cannot do this", Driver, "the device's capabilities (doca caps)", Kind::NotSupported),
        Refusal::NoDevice => ("no device matches", Environment, "the list of devices; RDMA on BlueField cores needs a sub-function", Kind::NotFound),
        Refusal::Ambiguous => ("more than one device matches", Program, "name one of the candidates", Kind::Invalid),
        Refusal::Gid => ("the GID cannot be used", Environment, "the usable entries named here, and the port's addresses", Kind::Invalid),
        Refusal::Malformed => ("cannot be understood", Program, "the spelling", Kind::Invalid),
        Refusal::Version => ("the loaded DOCA does not fit the headers", Environment, "LD_LIBRARY_PATH and the installed packages, or build again", Kind::NotSupported),
    }
}
