//! The public libraries: which headers each serves and which libraries it needs.

use crate::Result;
use crate::release::Release;
use crate::table::Table;

/// A library `libdoca_<name>.so.2` with its module `doca-<name>`.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) name: &'static str,
    /// Names of the tables, in the order in which the headers are included.
    pub(crate) headers: &'static [&'static str],
    /// Other public libraries in its NEEDED list, all before it in [`ALL`].
    pub(crate) needs: &'static [&'static str],
    /// One line for the `.pc` files.
    pub(crate) description: &'static str,
}

/// Every library of the SDK, each after those it needs.
pub(crate) const ALL: &[Library] = &[
    Library {
        name: "common",
        headers: &[
            "doca_types",
            "doca_error",
            "doca_version",
            "doca_log",
            "doca_dev",
            "doca_mmap",
            "doca_buf",
            "doca_buf_inventory",
            "doca_buf_pool",
            "doca_ctx",
            "doca_pe",
            "doca_sync_event",
            "doca_rdma_bridge",
        ],
        needs: &[],
        description: "devices, memory, buffers, contexts and progress engines",
    },
    Library {
        name: "argp",
        headers: &["doca_argp"],
        needs: &["common"],
        description: "command lines of DOCA programs",
    },
    Library {
        name: "comch",
        headers: &["doca_comch", "doca_comch_consumer", "doca_comch_producer", "doca_comch_msgq"],
        needs: &["common"],
        description: "messages between host and DPU",
    },
    Library {
        name: "dma",
        headers: &["doca_dma"],
        needs: &["common"],
        description: "copies in memory and across PCI",
    },
    Library {
        name: "rdma",
        headers: &["doca_rdma"],
        needs: &["common"],
        description: "remote direct memory access",
    },
    Library {
        name: "sta",
        headers: &[
            "doca_sta_handle",
            "doca_sta_task",
            "doca_sta",
            "doca_sta_be",
            "doca_sta_event",
            "doca_sta_io",
            "doca_sta_io_qp",
            "doca_sta_io_non_offload",
            "doca_sta_mem",
            "doca_sta_stats",
            "doca_sta_subsystem",
        ],
        needs: &["common", "rdma"],
        description: "storage target acceleration",
    },
];

impl Library {
    /// `libdoca_rdma.so.2`
    pub(crate) fn soname(&self) -> String {
        soname(self.name)
    }

    /// `libdoca_rdma.so.3.3.0000`
    pub(crate) fn file(&self, release: Release) -> String {
        format!("libdoca_{}.so.{}", self.name, release.full())
    }

    /// The tables of its headers.
    pub(crate) fn tables(&self, release: Release) -> Result<Vec<Table>> {
        self.headers.iter().map(|header| Table::load(header, release)).collect()
    }
}

/// The name by which programs load a public library.
pub(crate) fn soname(name: &str) -> String {
    format!("libdoca_{name}.so.2")
}

/// Headers that are in the SDK and hold macros only.
pub(crate) const MACRO_HEADERS: &[&str] =
    &["doca_config", "doca_common_defines", "doca_compat", "doca_bitfield"];

/// The name of the engine's shared object, which every public library needs.
pub(crate) const ENGINE: &str = "libdoca_sim.so.1";
