//! DOCA's libraries, and the libraries that move data without DOCA: names, versions, symbols.

use std::sync::LazyLock;
use std::{collections::BTreeMap, path::Path};

/// A DOCA library and the tables of the public functions that it exports.
struct Row {
    /// `rdma` for `libdoca_rdma`.
    name: &'static str,
    tables: &'static [&'static str],
}

macro_rules! tables {
    ($($name:literal),*) => {
        &[$(include_str!(concat!("../../../../abi/doca_", $name, ".tsv"))),*]
    };
}

/// The libraries whose functions are known one by one. A function of any other library is told by its prefix.
const ROWS: &[Row] = &[
    Row {
        name: "common",
        tables: tables![
            "types",
            "error",
            "version",
            "log",
            "dev",
            "mmap",
            "buf",
            "buf_inventory",
            "buf_pool",
            "ctx",
            "pe",
            "sync_event",
            "rdma_bridge"
        ],
    },
    Row { name: "argp", tables: tables!["argp"] },
    Row { name: "rdma", tables: tables!["rdma"] },
    Row { name: "comch", tables: tables!["comch", "comch_consumer", "comch_producer", "comch_msgq"] },
    Row { name: "dma", tables: tables!["dma"] },
    Row {
        name: "sta",
        tables: tables![
            "sta",
            "sta_be",
            "sta_event",
            "sta_handle",
            "sta_io",
            "sta_io_non_offload",
            "sta_io_qp",
            "sta_mem",
            "sta_stats",
            "sta_subsystem",
            "sta_task"
        ],
    },
];

/// Every public function with its library.
static FUNCTIONS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let mut functions = BTreeMap::new();
    for row in ROWS {
        for line in row.tables.iter().flat_map(|table| table.lines()) {
            let cells: Vec<_> = line.split('\t').collect();
            if let ["fn", name, _, _, stability, ..] = cells[..]
                && stability != "inline"
            {
                functions.insert(name, row.name);
            }
        }
    }
    functions
});

/// The library of a public function that the tables know.
pub(crate) fn home(function: &str) -> Option<&'static str> {
    FUNCTIONS.get(function).copied()
}

/// The library that a function most likely belongs to: that of the tables, else that of its prefix.
pub(crate) fn likely_home(function: &str) -> Option<&str> {
    home(function).or_else(|| function.strip_prefix("doca_")?.split('_').next())
}

/// `libdoca_rdma` of `libdoca_rdma.so.2`.
fn stem(file: &str) -> Option<&str> {
    let (stem, rest) = file.split_once(".so")?;
    (rest.is_empty() || rest.starts_with('.')).then_some(stem)
}

/// `rdma` of `libdoca_rdma.so.2`.
pub(crate) fn doca_name(file: &str) -> Option<&str> {
    stem(file)?.strip_prefix("libdoca_").filter(|name| !name.is_empty())
}

/// The library that all libraries of the simulator need, and no other.
pub(crate) const SIMULATOR: &str = "sim";

/// How the simulator's own functions begin.
pub(crate) const SIMULATOR_PREFIX: &str = "sim_doca_";

/// Whether a file is one that RDMA programs without DOCA need: verbs, connection manager, driver.
pub(crate) fn is_rdma_core(file: &str) -> bool {
    stem(file).is_some_and(|stem| ["libibverbs", "librdmacm", "libmlx5"].contains(&stem))
}

/// Functions that a program calls only to move data by verbs itself. Connection management, device queries and
/// protection domains are none of them: DOCA's bridge and STA take those from a program. What verbs.h defines inline
/// (`ibv_post_send`) leaves no import, but needs a queue pair that does.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "ibv_create_qp", "ibv_create_qp_ex", "ibv_open_qp", "ibv_modify_qp", "ibv_create_srq", "ibv_create_srq_ex",
    "ibv_post_send", "ibv_post_recv", "ibv_post_srq_recv", "ibv_poll_cq",
    "rdma_create_qp", "rdma_create_qp_ex", "rdma_create_ep", "rdma_create_srq", "rdma_create_srq_ex",
    "rsocket",
    "mlx5dv_create_qp",
];

/// Whether a function moves data by verbs.
pub(crate) fn is_verbs_data_path(function: &str) -> bool {
    VERBS.contains(&function) || function.starts_with("rdma_post_")
}

/// Whether a defined function says something about what is linked in.
pub(crate) fn is_of_interest(function: &str) -> bool {
    // `rsocket` may be anyone's function.
    let verbs = is_verbs_data_path(function) && function.contains('_');
    home(function).is_some() || function.starts_with(SIMULATOR_PREFIX) || verbs
}

/// Names of DOCA and verbs libraries in a file's bytes, as programs that call `dlopen` have them, with their places.
pub(crate) fn mentioned(bytes: &[u8]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(at) = bytes[start..].iter().position(|&byte| byte == b'l').map(|at| start + at) {
        start = at + 1;
        let rest = &bytes[at..];
        if !rest.starts_with(b"lib") {
            continue;
        }
        let name = String::from_utf8_lossy(&rest[..file_name_len(rest)]);
        if doca_name(&name).is_some() || is_rdma_core(&name) {
            found.push((at, name.into_owned()));
        }
    }
    found
}

/// Length of the library's file name that bytes begin with, as in `libx.so.1`. Whatever else may follow, as the
/// next literal of a Rust program does, is no part of it.
fn file_name_len(bytes: &[u8]) -> usize {
    let run =
        |from: usize, part: fn(&u8) -> bool| bytes[from..].iter().take_while(|&byte| part(byte)).count();
    let mut len = run(0, |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if !bytes[len..].starts_with(b".so") {
        return len;
    }
    len += ".so".len();
    while bytes[len..].starts_with(b".") {
        match run(len + 1, u8::is_ascii_digit) {
            0 => break,
            digits => len += 1 + digits,
        }
    }
    len
}

/// Release and build that a library's real file name ends in, as in `libdoca_rdma.so.3.2.1025`.
pub(crate) fn release_in(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (_, version) = name.split_once(".so.")?;
    let numbers = version.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    (numbers && version.matches('.').count() == 2).then(|| version.to_owned())
}

/// `3.2.1` of `3.2.1025`: a last number of four digits is patch times 1000 plus build. Others stay as they are.
pub(crate) fn release(full: &str) -> String {
    match full.rsplit_once('.') {
        Some((minor, last)) if last.len() >= 4 => {
            format!("{minor}.{}", last.parse::<u64>().map_or(0, |last| last / 1000))
        }
        _ => full.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_at_home_in_their_library() {
        assert_eq!(home("doca_rdma_create"), Some("rdma"));
        assert_eq!(home("doca_rdma_bridge_get_dev_pd"), Some("common"));
        assert_eq!(home("doca_comch_producer_create"), Some("comch"));
        assert_eq!(home("doca_sta_io_create"), Some("sta"));
        assert_eq!(home("doca_rdma_helper_of_mine"), None);
        assert_eq!(likely_home("doca_flow_init"), Some("flow"));
    }

    #[test]
    fn names_tell_library_and_release() {
        assert_eq!(doca_name("libdoca_telemetry_exporter.so.2"), Some("telemetry_exporter"));
        assert_eq!(doca_name("libdoca_rdma.sofa"), None);
        let release_of = |name: &str| release_in(Path::new(name));
        assert_eq!(release_of("/x/libdoca_rdma.so.3.2.1025").as_deref(), Some("3.2.1025"));
        assert_eq!(release_of("libdoca_rdma.so.2"), None);
        assert_eq!(release_of("libdoca_rdma.so.a.b.c"), None);
        assert_eq!((release("3.2.1025"), release("2.10.0087")), ("3.2.1".into(), "2.10.0".into()));
        assert_eq!(release("3.2.1"), "3.2.1");
    }

    #[test]
    fn mentions_are_whole_file_names() {
        let names = |text: &str| -> Vec<_> { mentioned(text.as_bytes()).into_iter().map(|m| m.1).collect() };
        assert_eq!(names("\0libdoca_rdma.so.2\0libc.so.6\0"), ["libdoca_rdma.so.2"]);
        assert_eq!(
            names("open libdoca_sta.so. Then liblib libibverbs.so.1"),
            ["libdoca_sta.so", "libibverbs.so.1"]
        );
        assert_eq!(
            names("libdoca_rdma.so.2libdoca_sta.so.12.next"),
            ["libdoca_rdma.so.2", "libdoca_sta.so.12"]
        );
        assert!(names("libdoca_*.so libdoca_.so libdoca_rdma").is_empty());
    }
}
