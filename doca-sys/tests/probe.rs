//! The probe against made-up prefixes: what is found, what is refused, and what the message says.

#[allow(dead_code, reason = "tests use a part of what the build script has")]
#[path = "../build/mod.rs"]
mod build;
#[allow(dead_code, reason = "shared with the other tests")]
mod prefix;

use build::environment::{Environment, Library, VARIABLES};
use build::messages::Failure;
use build::probe::{self, Sdk};
use build::version::Version;
use build::{bindings, facts};
use prefix::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a build sees on a machine that has no DOCA but what the variables name.
fn machine(variables: &[(&'static str, &Path)]) -> Environment {
    let mut all = BTreeMap::from([("PKG_CONFIG_LIBDIR", "/nonexistent".to_owned())]);
    all.extend(variables.iter().map(|(name, value)| (*name, value.display().to_string())));
    Environment {
        variables: all,
        arch: "x86_64".to_owned(),
        documented_prefix: PathBuf::from("/nonexistent/doca"),
        comch: false,
        rdma: true,
        sta: false,
    }
}

fn doca_dir(prefix: &Prefix) -> Environment {
    machine(&[("DOCA_DIR", prefix.path())])
}

/// Feature `sta` alone, which implies the RDMA substrate.
fn with_sta(env: Environment) -> Environment {
    Environment { rdma: false, sta: true, ..env }
}

fn found(env: &Environment) -> Sdk {
    probe::find(env).unwrap_or_else(|failure| panic!("{failure}"))
}

/// The message of a probe that fails, after a look at what every message must have.
fn refused(env: &Environment) -> String {
    said(&probe::find(env).expect_err("an installation that cannot be used"))
}

fn said(failure: &Failure) -> String {
    let message = failure.to_string();
    for part in ["doca-sys: ", "\n  sought  ", "\n  cure    ", "cargo sim -- build", "DOCA_DIR"] {
        assert!(message.contains(part), "{part:?} is not in\n{message}");
    }
    message
}

#[track_caller]
fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in\n{message}");
    }
}

#[test]
fn split_modules_are_linked_as_they_say() {
    let prefix = Prefix::split("3.2.1025");
    let sdk = found(&with_sta(doca_dir(&prefix)));
    assert_eq!(sdk.modules, ["doca-sta", "doca-rdma", "doca-common"]);
    let search = format!("-L{}", prefix.libraries().display());
    assert_eq!(sdk.libs, [&search, "-ldoca_sta", "-ldoca_rdma", "-ldoca_common"]);
    assert_eq!((sdk.version.release.to_string(), sdk.version.build), ("3.2.1".to_owned(), Some(25)));
    assert_eq!(sdk.library_dirs, [prefix.libraries()]);
    assert_eq!(sdk.include_dirs, [prefix.include()]);
    assert!(sdk.warnings.is_empty(), "{:?}", sdk.warnings);
}

#[test]
fn features_choose_modules() {
    let prefix = Prefix::split("3.3.0000");
    prefix.remove("include/doca_rdma.h");
    let sdk = found(&Environment { rdma: false, ..doca_dir(&prefix) });
    assert_eq!(sdk.modules, ["doca-common"]);
    assert!(!sdk.libs.iter().any(|word| word.contains("rdma")), "{:?}", sdk.libs);
}

#[test]
fn comch_stands_on_the_common_library_alone() {
    let prefix = Prefix::split("3.3.0000");
    let env = Environment { comch: true, rdma: false, ..doca_dir(&prefix) };
    let sdk = found(&env);
    assert_eq!(sdk.modules, ["doca-comch", "doca-common"]);
    assert_eq!((sdk.comch, sdk.rdma, sdk.sta), (true, false, false));
    assert_eq!(fact(&sdk, "", "HAS_COMCH"), "1");
    prefix.part("comch", "3.2.0000");
    assert_says(&refused(&env), &["partial install", "doca-comch: 3.2.0"]);
}

#[test]
fn the_umbrella_serves_comch_too() {
    let prefix = Prefix::new("3.3.0000");
    prefix.library("doca_common");
    prefix.library("doca_comch");
    prefix.module("doca", "3.3.0000", "-ldoca_comch -ldoca_common");
    let env = Environment { comch: true, rdma: false, ..doca_dir(&prefix) };
    assert_eq!(found(&env).modules, ["doca"]);
    let prefix = Prefix::new("3.3.0000");
    prefix.part("common", "3.3.0000");
    let env = Environment { comch: true, rdma: false, ..doca_dir(&prefix) };
    assert_says(&refused(&env), &["module doca-comch is missing", "libdoca-sdk-comch-dev"]);
}

#[test]
fn the_umbrella_serves_where_modules_are_not_split() {
    let prefix = Prefix::new("3.0.0058");
    prefix.library("doca_common");
    prefix.library("doca_rdma");
    prefix.module("doca", "3.0.0058", "-ldoca_rdma -ldoca_common");
    let sdk = found(&doca_dir(&prefix));
    assert_eq!(sdk.modules, ["doca"]);
    assert_eq!(sdk.libs[1..], ["-ldoca_rdma", "-ldoca_common"]);
}

#[test]
fn the_split_module_comes_before_the_umbrella() {
    let prefix = Prefix::split("3.3.0000");
    prefix.module("doca", "3.3.0000", "-ldoca_everything");
    assert_eq!(found(&doca_dir(&prefix)).modules, ["doca-rdma", "doca-common"]);
}

#[test]
fn an_umbrella_of_another_release_is_a_partial_install() {
    let prefix = Prefix::split("3.3.0000");
    prefix.module("doca", "3.1.0105", "-ldoca_common");
    assert_says(&refused(&doca_dir(&prefix)), &["partial install", "module doca: 3.1.0", "doca-rdma: 3.3.0"]);
}

#[test]
fn an_umbrella_of_twenty_libraries_is_linked_whole_and_in_order() {
    let prefix = Prefix::new("3.3.0109");
    let names = [
        "sta",
        "rdma",
        "comch",
        "dma",
        "eth",
        "flow",
        "flow_tune",
        "dpa",
        "verbs",
        "gpunetio",
        "devemu",
        "mgmt",
        "telemetry",
        "urom",
        "compress",
        "sha",
        "aes_gcm",
        "argp",
        "erasure_coding",
        "common",
    ];
    for name in names {
        prefix.library(&format!("doca_{name}"));
    }
    let flags = names.map(|name| format!("-ldoca_{name}"));
    prefix.module("doca", "3.3.0109", &flags.join(" "));
    assert_eq!(found(&doca_dir(&prefix)).libs[1..], flags);

    prefix.remove(prefix.libraries().join("libdoca_erasure_coding.so"));
    assert_says(
        &refused(&doca_dir(&prefix)),
        &["libdoca_erasure_coding.so is missing", "libdoca-sdk-erasure-coding-dev"],
    );
}

#[test]
fn a_module_may_add_libraries_and_flags() {
    let prefix = Prefix::split("3.3.0000");
    prefix.library("doca_rdma_core");
    prefix.module("doca-rdma", "3.3.0000", "-ldoca_rdma -ldoca_rdma_core -pthread -Wl,-z,now");
    let sdk = found(&doca_dir(&prefix));
    assert!(sdk.libs.contains(&"-ldoca_rdma_core".to_owned()), "{:?}", sdk.libs);
    assert_eq!(sdk.link_args().collect::<Vec<_>>(), ["-pthread", "-Wl,-z,now"]);
}

#[test]
fn modules_of_different_releases_are_a_partial_install() {
    let prefix = Prefix::split("3.2.1025");
    prefix.part("rdma", "3.2.0100");
    assert_says(
        &refused(&doca_dir(&prefix)),
        &[
            "partial install",
            "doca-rdma: 3.2.0 build 100",
            "doca-common: 3.2.1 build 25",
            "doca_version.h: 3.2.1",
        ],
    );
}

#[test]
fn headers_of_another_release_are_a_partial_install() {
    let prefix = Prefix::split("3.2.1025");
    prefix.header("doca_version.h", "#define DOCA_VERSION_STRING \"3.3.0001\"\n");
    assert_says(&refused(&doca_dir(&prefix)), &["partial install", "doca_version.h: 3.3.0", "3.2.1"]);
}

#[test]
fn sta_is_compared_with_its_substrate() {
    let prefix = Prefix::split("3.3.0000");
    prefix.part("sta", "3.2.0000");
    found(&doca_dir(&prefix));
    assert_says(&refused(&with_sta(doca_dir(&prefix))), &["partial install", "doca-sta: 3.2.0"]);
}

#[test]
fn another_build_is_a_warning() {
    let prefix = Prefix::split("3.2.1025");
    prefix.part("rdma", "3.2.1031");
    let sdk = found(&doca_dir(&prefix));
    assert_eq!(sdk.warnings.len(), 1, "{:?}", sdk.warnings);
    assert_says(&sdk.warnings[0], &["different builds", "build 31", "build 25"]);
}

#[test]
fn a_newer_release_is_a_warning() {
    let sdk = found(&doca_dir(&Prefix::split("3.4.0001")));
    assert_says(&sdk.warnings[0], &["3.4.0", "newer than 3.3"]);
}

#[test]
fn two_is_too_old() {
    let prefix = Prefix::split("2.10.0087");
    assert_says(&refused(&doca_dir(&prefix)), &["DOCA 2.10.0 build 87 is too old", "3.0 to 3.3"]);
    // Up to 2.6 there was the umbrella only, and macros had other names.
    let prefix = Prefix::new("2.5.0108");
    prefix.library("doca_common");
    prefix.module("doca", "2.5.0108", "-ldoca_common");
    assert_says(&refused(&doca_dir(&prefix)), &["DOCA 2.5.0 build 108 is too old"]);
}

#[test]
fn an_unreadable_version_is_named() {
    let prefix = Prefix::split("3.3.0000");
    prefix.part("common", "unknown");
    assert_says(&refused(&doca_dir(&prefix)), &["module doca-common states no version", "\"unknown\""]);
}

#[test]
fn nothing_anywhere_lists_every_place() {
    let empty = tempfile::tempdir().unwrap();
    let message = refused(&machine(&[("PKG_CONFIG_PATH", empty.path())]));
    assert_says(
        &message,
        &[
            "not installed",
            "doca-rdma, doca-common (or the umbrella doca)",
            "DOCA_DIR: not set",
            &format!("PKG_CONFIG_PATH:\n            {}", empty.path().display()),
            "pkg-config's own paths:\n            /nonexistent\n",
            "documented prefix: /nonexistent/doca, which is no directory",
            "libdoca-sdk-common-dev",
        ],
    );
}

#[test]
fn a_missing_module_is_named_with_its_package() {
    let prefix = Prefix::new("3.3.0000");
    prefix.part("common", "3.3.0000");
    assert_says(
        &refused(&doca_dir(&prefix)),
        &["module doca-rdma is missing", &prefix.path().display().to_string(), "libdoca-sdk-rdma-dev"],
    );
    prefix.part("rdma", "3.3.0000");
    assert_says(
        &refused(&with_sta(doca_dir(&prefix))),
        &["module doca-sta is missing", "beside doca-rdma and doca-common", "libdoca-sdk-sta-dev"],
    );
}

#[test]
fn sta_without_its_substrate_is_refused() {
    let prefix = Prefix::new("3.3.0000");
    prefix.part("common", "3.3.0000");
    prefix.part("sta", "3.3.0000");
    assert_says(
        &refused(&with_sta(doca_dir(&prefix))),
        &["doca-sta is installed without the RDMA substrate", "doca-rdma", "libdoca-sdk-rdma-dev"],
    );
}

#[test]
fn sta_alone_is_seen_though_nothing_is_found() {
    let prefix = Prefix::new("3.3.0000");
    prefix.part("sta", "3.3.0000");
    assert_says(
        &refused(&with_sta(doca_dir(&prefix))),
        &["not installed", "it has doca-sta, but not the doca-common"],
    );
}

#[test]
fn a_module_without_its_header_is_refused() {
    for (header, package) in
        [("doca_rdma.h", "rdma-dev"), ("doca_mmap.h", "common-dev"), ("doca_version.h", "common-dev")]
    {
        let prefix = Prefix::split("3.3.0000");
        prefix.remove(format!("include/{header}"));
        let include = prefix.include().display().to_string();
        assert_says(
            &refused(&doca_dir(&prefix)),
            &[&format!("header {header} is missing"), package, &include],
        );
    }
}

#[test]
fn a_header_whose_own_include_is_absent_is_refused() {
    let cases = [("doca_dpa.h", "libdoca-sdk-dpa-dev"), ("rdma/rdma_cma.h", "librdmacm-dev")];
    for (absent, package) in cases {
        let prefix = Prefix::split("3.3.0000");
        prefix.header("doca_rdma.h", &format!("#include <{absent}>\n"));
        let sdk = found(&doca_dir(&prefix));
        // The machine of the test may have rdma-core: clang is not to look outside the prefix.
        let flags = [sdk.cflags.clone(), vec!["-nostdinc".to_owned()]].concat();
        let failure = generate(&flags, &sdk.include_dirs).expect_err("a header that is not there");
        let includer = prefix.include().join("doca_rdma.h").display().to_string();
        assert_says(&said(&failure), &[&format!("header {absent} is missing"), &includer, package]);
    }
}

#[test]
fn headers_that_are_not_c_are_refused_with_clangs_words() {
    let prefix = Prefix::split("3.3.0000");
    prefix.header("doca_rdma.h", "doca_error_t doca_rdma_create(;\n");
    let sdk = found(&doca_dir(&prefix));
    let failure = generate(&sdk.cflags, &sdk.include_dirs).expect_err("a header that is no C");
    assert_says(&said(&failure), &["headers cannot be read", "doca_rdma.h:1:"]);
}

fn generate(cflags: &[String], include_dirs: &[PathBuf]) -> Result<String, Failure> {
    let wrappers = Path::new(env!("CARGO_MANIFEST_DIR")).join("wrapper");
    bindings::generate(&[Library::Rdma, Library::Common], &wrappers, cflags, include_dirs, false)
}

#[test]
fn a_header_without_its_library_is_refused_before_linking() {
    let prefix = Prefix::split("3.3.0000");
    prefix.remove(prefix.libraries().join("libdoca_rdma.so"));
    let message = refused(&doca_dir(&prefix));
    assert_says(
        &message,
        &["libdoca_rdma.so is missing", &prefix.libraries().display().to_string(), "libdoca-sdk-rdma-dev"],
    );
    std::fs::write(prefix.libraries().join("libdoca_rdma.so.2"), "").unwrap();
    assert_says(&refused(&doca_dir(&prefix)), &["libdoca_rdma.so.2 is for running programs"]);
}

#[test]
fn libraries_of_the_target_are_chosen_and_no_others() {
    let prefix = Prefix::at("lib/aarch64-linux-gnu", "3.3.0000");
    prefix.part("common", "3.3.0000");
    prefix.part("rdma", "3.3.0000");
    assert_says(
        &refused(&doca_dir(&prefix)),
        &["it has DOCA for aarch64, but the target is x86_64", "install DOCA for x86_64"],
    );
    std::fs::create_dir_all(prefix.path().join("lib/x86_64-linux-gnu/pkgconfig")).unwrap();
    let sdk = found(&Environment { arch: "aarch64".to_owned(), ..doca_dir(&prefix) });
    assert_eq!(sdk.library_dirs, [prefix.libraries()]);
    assert!(!sdk.libs.iter().any(|word| word.contains("x86_64")), "{:?}", sdk.libs);
}

#[test]
fn a_path_to_another_architecture_is_refused() {
    let prefix = Prefix::split("3.3.0000");
    let env = machine(&[("PKG_CONFIG_PATH", &prefix.modules())]);
    let message = refused(&Environment { arch: "aarch64".to_owned(), ..env });
    assert_says(
        &message,
        &["for x86_64, but the target is aarch64", &prefix.libraries().display().to_string()],
    );
}

#[test]
fn a_library_for_another_machine_is_refused_whatever_its_directory() {
    let prefix = Prefix::at("lib64", "3.3.0000");
    prefix.part("common", "3.3.0000");
    prefix.part("rdma", "3.3.0000");
    let mut aarch64 = b"\x7fELF\x02\x01\x01".to_vec();
    aarch64.resize(18, 0);
    aarch64.extend(183u16.to_le_bytes());
    prefix.library_of("doca_rdma", &aarch64);
    assert_says(&refused(&doca_dir(&prefix)), &["for aarch64, but the target is x86_64", "libdoca_rdma.so"]);
}

#[test]
fn other_layouts_of_a_prefix_are_known() {
    for libdir in ["lib64", "lib", "infrastructure/lib/x86_64-linux-gnu", "infrastructure/lib64"] {
        let prefix = Prefix::at(libdir, "3.3.0000");
        prefix.part("common", "3.3.0000");
        prefix.part("rdma", "3.3.0000");
        assert_eq!(found(&doca_dir(&prefix)).library_dirs, [prefix.libraries()]);
    }
}

#[test]
fn the_first_place_with_doca_serves_every_library() {
    let [first, second, third, fourth] = ["3.0.0001", "3.1.0001", "3.2.0001", "3.3.0001"].map(Prefix::split);
    let mut env = machine(&[
        ("DOCA_DIR", first.path()),
        ("PKG_CONFIG_PATH", &second.modules()),
        ("PKG_CONFIG_LIBDIR", &third.modules()),
    ]);
    env.documented_prefix = fourth.path().to_owned();
    for (prefix, variable) in [
        (&first, Some("DOCA_DIR")),
        (&second, Some("PKG_CONFIG_PATH")),
        (&third, Some("PKG_CONFIG_LIBDIR")),
        (&fourth, None),
    ] {
        assert_eq!(found(&env).chosen.prefix, prefix.path());
        match variable {
            Some("PKG_CONFIG_LIBDIR") => env.variables.insert("PKG_CONFIG_LIBDIR", "/nonexistent".to_owned()),
            Some(name) => env.variables.remove(name),
            None => None,
        };
    }

    // A later place does not fill in what the first one lacks.
    first.remove(first.modules().join("doca-rdma.pc"));
    let env = machine(&[("DOCA_DIR", first.path()), ("PKG_CONFIG_PATH", &second.modules())]);
    assert_says(&refused(&env), &["doca-rdma is missing", "found by DOCA_DIR"]);
}

#[test]
fn a_prefix_without_doca_is_passed_over_aloud() {
    let [empty, whole] = [Prefix::new("3.3.0000"), Prefix::split("3.3.0000")];
    let sdk = found(&machine(&[("DOCA_DIR", empty.path()), ("PKG_CONFIG_PATH", &whole.modules())]));
    assert_eq!(sdk.chosen.prefix, whole.path());
    assert_says(&sdk.warnings[0], &["DOCA_DIR=", "has no doca-common", "PKG_CONFIG_PATH is used instead"]);
}

#[test]
fn the_simulator_is_named_as_such() {
    let prefix = Prefix::new("3.3.0000").with_line("doca_sim=1");
    prefix.part("common", "3.3.0000");
    let message = refused(&doca_dir(&prefix));
    assert_says(&message, &[&format!("the DOCA simulator at {}", prefix.path().display())]);
    prefix.part("rdma", "3.3.0000");
    let sdk = found(&doca_dir(&prefix));
    assert!(sdk.chosen.simulator);
    assert_eq!(fact(&sdk, "", "SIM"), "1");
    assert_eq!(fact(&found(&doca_dir(&Prefix::split("3.3.0000"))), "", "SIM"), "0");
}

#[test]
fn simulator_and_real_doca_do_not_mix() {
    let real = Prefix::new("3.3.0000");
    real.part("common", "3.3.0000");
    let simulated = real.with_line("doca_sim=1");
    simulated.part("rdma", "3.3.0000");
    assert_says(&refused(&doca_dir(&simulated)), &["simulator and of real DOCA are mixed", "doca-rdma"]);
}

#[test]
fn a_module_that_requires_a_missing_one_is_refused_with_the_tools_words() {
    let prefix = Prefix::split("3.3.0000");
    let file = prefix.modules().join("doca-common.pc");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}Requires: libmade-up\n")).unwrap();
    assert_says(&refused(&doca_dir(&prefix)), &["pkg-config refuses", "libmade-up", "PKG_CONFIG_PATH"]);
}

#[test]
fn a_missing_pkg_config_is_named() {
    let prefix = Prefix::split("3.3.0000");
    let tool = Path::new("/nonexistent/pkg-config");
    let message = refused(&machine(&[("DOCA_DIR", prefix.path()), ("PKG_CONFIG", tool)]));
    assert_says(
        &message,
        &["pkg-config cannot be run", "/nonexistent/pkg-config", "install the package pkg-config"],
    );
}

#[test]
fn escaped_blanks_in_paths_survive() {
    let prefix = Prefix::split("3.3.0000");
    let spaced = prefix.path().join("with blank");
    std::fs::create_dir(&spaced).unwrap();
    std::fs::write(spaced.join("doca_version.h"), "#define DOCA_VERSION_STRING \"3.3.0000\"\n").unwrap();
    let file = prefix.modules().join("doca-common.pc");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("-I${includedir}", "-I${prefix}/with\\ blank -I${includedir}"))
        .unwrap();
    assert!(found(&doca_dir(&prefix)).include_dirs.contains(&spaced));
}

#[test]
fn the_dots_of_relocatable_modules_are_gone() {
    let prefix = Prefix::split("3.3.0000");
    for module in ["doca-common.pc", "doca-rdma.pc"] {
        let file = prefix.modules().join(module);
        let text = std::fs::read_to_string(&file).unwrap();
        let stated = format!("prefix={}", prefix.path().display());
        std::fs::write(&file, text.replace(&stated, "prefix=${pcfiledir}/../../..")).unwrap();
    }
    let sdk = found(&doca_dir(&prefix));
    let real = std::fs::canonicalize(prefix.path()).unwrap();
    assert_eq!(sdk.chosen.prefix, real);
    assert_eq!(fact(&sdk, "", "INCLUDE"), real.join("include").display().to_string());
    assert_eq!(fact(&sdk, "", "LIBDIR"), real.join("lib/x86_64-linux-gnu").display().to_string());
}

#[test]
fn functions_of_other_libraries_are_not_bound() {
    let prefix = Prefix::split("3.3.0000");
    prefix.header("doca_dpa.h", "struct doca_dpa;\nint doca_dpa_start(struct doca_dpa *dpa);\n");
    prefix.header("doca_rdma.h", "#include <doca_dpa.h>\nint doca_rdma_get_dpa(struct doca_dpa **dpa);\n");
    let sdk = found(&doca_dir(&prefix));
    let code = generate(&sdk.cflags, &sdk.include_dirs).unwrap();
    assert_says(&code, &["pub fn doca_rdma_get_dpa(", "pub struct doca_dpa "]);
    assert!(!code.contains("doca_dpa_start"), "{code}");
}

#[test]
fn headers_decide_what_is_optional() {
    let prefix = Prefix::split("3.3.0000");
    let sdk = found(&with_sta(doca_dir(&prefix)));
    let without = generate(&sdk.cflags, &sdk.include_dirs).unwrap();
    assert_eq!(fact(&sdk, &without, "HAS_BRIDGE_PREPARE_CONNECTION"), "0");
    prefix.header("doca_rdma.h", "int doca_rdma_bridge_prepare_connection(void *rdma);\n");
    let with = generate(&sdk.cflags, &sdk.include_dirs).unwrap();
    assert_eq!(fact(&sdk, &with, "HAS_BRIDGE_PREPARE_CONNECTION"), "1");
    assert_eq!(fact(&sdk, &with, "HAS_STA"), "1");
    assert_eq!(fact(&sdk, &with, "VERSION"), "3.3.0");
}

fn fact(sdk: &Sdk, bindings: &str, key: &str) -> String {
    let facts = facts::metadata(sdk, bindings);
    facts.into_iter().find(|(name, _)| name == key).expect("a fact of that name").1
}

/// What came after 3.0 is told; besides, the one function of 3.0 that marks a changed signature of its neighbour.
#[test]
fn facts_cover_what_the_tables_date_after_3_0() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../abi");
    let mut later = BTreeSet::from(["doca_rdma_bridge_prepare_connection".to_owned()]);
    for entry in std::fs::read_dir(tables).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            if cells[0] == "fn" && cells.get(6).is_some_and(|since| since.starts_with("3.1+")) {
                later.insert(cells[1].to_owned());
            }
        }
    }
    let told: BTreeSet<String> =
        facts::OPTIONAL.iter().flat_map(|(_, functions)| *functions).map(|&name| name.to_owned()).collect();
    assert_eq!(told, later);
}

#[test]
fn versions_are_decoded() {
    let decode = |text| Version::parse(text).map(|version| (version.release.to_string(), version.build));
    let release = |text: &str, build| Some((text.to_owned(), build));
    assert_eq!(decode("3.2.1025"), release("3.2.1", Some(25)));
    assert_eq!(decode("3.0.0058"), release("3.0.0", Some(58)));
    assert_eq!(decode("2.10.0087"), release("2.10.0", Some(87)));
    assert_eq!(decode("3.3.0"), release("3.3.0", None));
    assert_eq!(decode("3.3.1"), release("3.3.1", None));
    assert_eq!(decode("3.3"), release("3.3.0", None));
    assert_eq!(decode("3.3.0000-doca-sim"), release("3.3.0", Some(0)));
    assert_eq!(decode("3.2.1025-1.el9"), release("3.2.1", Some(25)));
    for nonsense in ["", "3", "x.y.z", "3.x", ".3.0"] {
        assert_eq!(decode(nonsense), None, "{nonsense:?}");
    }
}

#[test]
fn version_headers_are_read_with_and_without_the_string() {
    let numbers =
        "#define DOCA_VERSION_MAJOR 3\n# define DOCA_VERSION_MINOR 2\n#define DOCA_VERSION_PATCH 1025\n";
    assert_eq!(Version::of_header(numbers).unwrap().to_string(), "3.2.1 build 25");
    assert_eq!(
        Version::of_header("#define DOCA_VER_STRING \"2.5.0108\"\n").unwrap().to_string(),
        "2.5.0 build 108"
    );
    assert_eq!(Version::of_header("#define DOCA_VERSION_STRING_LEN 3\n"), None);
}

#[test]
fn every_variable_is_documented() {
    let docs = include_str!("../src/lib.rs");
    for name in VARIABLES {
        assert!(docs.contains(&format!("//! | `{name}` |")), "{name} has no row in the crate documentation");
    }
}

/// A program that has no libclang to load says so. The library is looked up once per process, so this takes a
/// process of its own: the test runs itself.
#[test]
fn a_missing_libclang_is_named() {
    const INSIDE: &str = "DOCA_SYS_TEST_WITHOUT_LIBCLANG";
    if std::env::var_os(INSIDE).is_some() {
        let failure = bindings::require_libclang().expect_err("no libclang in an empty directory");
        println!("{}", said(&failure));
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_missing_libclang_is_named", "--nocapture"])
        .env(INSIDE, "1")
        .env("LIBCLANG_PATH", empty.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_says(
        &String::from_utf8_lossy(&output.stdout),
        &["libclang is missing", "libclang-dev", "LIBCLANG_PATH to the directory"],
    );
}
