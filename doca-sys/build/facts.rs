//! What the build found out, for whoever compiles next.
//!
//! Cargo hands each fact to the build scripts of direct dependants as `DEP_DOCA_<KEY>`; truth values are `1`
//! and `0`. Dependants turn facts into `cfg`s and never probe again.

use crate::build::probe::Sdk;
use std::path::PathBuf;

/// Functions that not every supported release declares, with the key their presence is told under. The
/// header decides, not the version number.
pub(crate) const OPTIONAL: &[(&str, &str)] = &[
    ("HAS_BRIDGE_PREPARE_CONNECTION", "doca_rdma_bridge_prepare_connection"),
    ("HAS_DEVINFO_PCI_FUNC_TYPE", "doca_devinfo_get_pci_func_type"),
    ("HAS_DEVINFO_SF_INDEX", "doca_devinfo_get_sf_index"),
    ("HAS_STA_BE_QUEUE_MAPPING", "doca_sta_get_be_queue_mapping_info"),
    ("HAS_STA_CQE_NOTIFY", "doca_sta_event_cqe_notify_register_cb"),
    ("HAS_STA_EU_STATE", "doca_sta_get_eu_state"),
    ("HAS_STA_QP_USER_DATA", "doca_sta_io_qp_set_user_data"),
];

/// Whether generated bindings declare a function.
pub(crate) fn declares(bindings: &str, function: &str) -> bool {
    bindings.contains(&format!("pub fn {function}("))
}

/// All facts as key and value.
pub(crate) fn metadata(sdk: &Sdk, bindings: &str) -> Vec<(String, String)> {
    let truth = |yes: bool| if yes { "1" } else { "0" }.to_owned();
    let mut facts = vec![
        ("VERSION".to_owned(), sdk.version.release.to_string()),
        ("VERSION_FULL".to_owned(), sdk.version.text.clone()),
        ("PREFIX".to_owned(), sdk.chosen.prefix.display().to_string()),
        ("MODULES".to_owned(), sdk.modules.join(" ")),
        ("INCLUDE".to_owned(), joined(&sdk.include_dirs)),
        ("LIBDIR".to_owned(), joined(&sdk.library_dirs)),
        ("LINK_ARGS".to_owned(), sdk.link_args().collect::<Vec<_>>().join(" ")),
        ("SIM".to_owned(), truth(sdk.chosen.simulator)),
        ("HAS_RDMA".to_owned(), truth(sdk.rdma)),
        ("HAS_STA".to_owned(), truth(sdk.sta)),
    ];
    facts.extend(
        OPTIONAL.iter().map(|(key, function)| ((*key).to_owned(), truth(declares(bindings, function)))),
    );
    facts
}

/// Directories as `-rpath` and `PATH`-like variables spell a list.
fn joined(dirs: &[PathBuf]) -> String {
    dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(":")
}
