//! What the build found out, for whoever compiles next.
//!
//! Cargo hands each fact to the build scripts of direct dependants as `DEP_DOCA_<KEY>`; truth values are `1`
//! and `0`. Dependants turn facts into `cfg`s and never probe again.

use crate::build::probe::Sdk;
use std::path::PathBuf;

/// Functions that not every supported release declares, in groups that came together, with the key their presence
/// is told under. The header decides, not the version number.
pub(crate) const OPTIONAL: &[(&str, &[&str])] = &[
    ("HAS_BRIDGE_PREPARE_CONNECTION", &["doca_rdma_bridge_prepare_connection"]),
    ("HAS_BUF_REUSE", &["doca_buf_inventory_buf_reuse_by_data", "doca_buf_inventory_buf_reuse_by_addr"]),
    ("HAS_DEVINFO_PCI_FUNC_TYPE", &["doca_devinfo_get_pci_func_type"]),
    ("HAS_DEVINFO_SF_INDEX", &["doca_devinfo_get_sf_index"]),
    ("HAS_MMAP_MKEY", &["doca_mmap_get_mkey"]),
    ("HAS_STA_BE_QUEUE_MAPPING", &["doca_sta_get_be_queue_mapping_info"]),
    (
        "HAS_STA_CQE_NOTIFY",
        &[
            "doca_sta_event_cqe_notify_register_cb",
            "doca_sta_event_cqe_notify_get_cqe_notify_type",
            "doca_sta_event_cqe_notify_get_cqe",
            "doca_sta_event_cqe_notify_get_subsystem_handle",
            "doca_sta_event_cqe_notify_get_qp_handle",
            "doca_sta_event_cqe_notify_get_capsule_params",
            "doca_sta_event_cqe_notify_get_param_err_location",
        ],
    ),
    ("HAS_STA_EU_STATE", &["doca_sta_get_eu_state"]),
    ("HAS_STA_QP_USER_DATA", &["doca_sta_io_qp_set_user_data", "doca_sta_io_qp_get_user_data"]),
];

/// Whether generated bindings declare all of these functions.
fn declares(bindings: &str, functions: &[&str]) -> bool {
    functions.iter().all(|function| bindings.contains(&format!("pub fn {function}(")))
}

/// All facts as key and value.
pub(crate) fn metadata(sdk: &Sdk, bindings: &str) -> Vec<(String, String)> {
    let mut facts = vec![
        fact("VERSION", sdk.version.release),
        fact("VERSION_FULL", &sdk.version.text),
        fact("PREFIX", sdk.chosen.prefix.display()),
        fact("MODULES", sdk.modules.join(" ")),
        fact("INCLUDE", joined(&sdk.include_dirs)),
        fact("LIBDIR", joined(&run_dirs(sdk))),
        fact("LINK_ARGS", sdk.link_args().collect::<Vec<_>>().join(" ")),
        fact("SIM", u8::from(sdk.chosen.simulator)),
        fact("HAS_COMCH", u8::from(sdk.comch)),
        fact("HAS_RDMA", u8::from(sdk.rdma)),
        fact("HAS_STA", u8::from(sdk.sta)),
    ];
    facts.extend(optional(bindings));
    facts
}

/// Where programs find the libraries when they run. Connections of STA are librdmacm's, of which the simulator has its own
/// beside its other libraries.
fn run_dirs(sdk: &Sdk) -> Vec<PathBuf> {
    let own = |dir: &PathBuf| Some(dir.join("doca-sim-rdmacm")).filter(|dir| sdk.sta && dir.is_dir());
    let rdmacm = sdk.library_dirs.iter().filter(|_| sdk.chosen.simulator).filter_map(own);
    rdmacm.chain(sdk.library_dirs.iter().cloned()).collect()
}

/// The same facts for a documentation build, which has all bindings and no installation.
pub(crate) fn documented(bindings: &str) -> Vec<(String, String)> {
    let texts = ["VERSION", "VERSION_FULL", "PREFIX", "MODULES", "INCLUDE", "LIBDIR", "LINK_ARGS"];
    let mut facts: Vec<_> = texts.map(|key| fact(key, "")).into();
    facts.extend([fact("SIM", 0), fact("HAS_COMCH", 1), fact("HAS_RDMA", 1), fact("HAS_STA", 1)]);
    facts.extend(optional(bindings));
    facts
}

fn optional(bindings: &str) -> impl Iterator<Item = (String, String)> {
    OPTIONAL.iter().map(|(key, functions)| fact(key, u8::from(declares(bindings, functions))))
}

fn fact(key: &str, value: impl ToString) -> (String, String) {
    (key.to_owned(), value.to_string())
}

/// Directories as `-rpath` and `PATH`-like variables spell a list.
fn joined(dirs: &[PathBuf]) -> String {
    dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(":")
}
