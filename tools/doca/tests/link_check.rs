//! `doca link-check` on programs that the C compiler links against made-up libraries.

mod bench;

use bench::{Bench, Checked};
use std::fs;
use std::process::Command;

const RDMA: &str =
    "int doca_rdma_create(void) { return 0; } int doca_rdma_cap_task_send_is_supported(void) { return 0; }";
const COMMON: &str = "int doca_dev_open(void) { return 0; }";
const STA: &str = "int doca_sta_create(void) { return 0; }";
const VERBS: &str = "int ibv_create_qp(void) { return 0; } int ibv_get_device_list(void) { return 0; }";
const USES_RDMA: &str = "int doca_rdma_create(void); int main(void) { return doca_rdma_create(); }";
/// Linker flags: a library finds its own beside itself; a library is needed even if it is not used.
const ORIGIN: &str = "-Wl,-rpath,$ORIGIN";
const NEEDED: &str = "-Wl,--no-as-needed";
const NO_DOCA: &str = "int main(void) { return 0; }";

/// A directory with a DOCA of release 3.2.1.
fn real() -> Bench {
    let bench = Bench::new();
    bench.doca("lib", "common", "3.2.1025", COMMON, &[]);
    bench.doca("lib", "rdma", "3.2.1025", RDMA, &[ORIGIN, NEEDED, "-ldoca_common"]);
    bench
}

/// The same, every library of which needs the simulator's engine.
fn simulated() -> Bench {
    let bench = Bench::new();
    bench.library("lib", "libdoca_sim.so.1", "int sim_doca_x(void) { return 0; }", &[]);
    let uses = |rest: &str| format!("int sim_doca_x(void); int use(void) {{ return sim_doca_x(); }} {rest}");
    bench.doca("lib", "common", "3.3.0000", &uses(COMMON), &["-l:libdoca_sim.so.1"]);
    bench.doca("lib", "rdma", "3.3.0000", &uses(RDMA), &["-ldoca_common", "-l:libdoca_sim.so.1"]);
    bench
}

#[test]
fn a_library_is_followed_to_its_real_file() {
    let bench = real();
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath,$ORIGIN/lib"]);
    let checked = bench.check("app", &["--require", "rdma", "--forbid-simulator"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let rdma = checked.library("rdma");
    assert_eq!(rdma["file"], "libdoca_rdma.so.2");
    assert_eq!(rdma["link"], "direct");
    assert_eq!(rdma["path"], bench.path("lib/libdoca_rdma.so.2"));
    assert_eq!(rdma["real_path"], bench.path("lib/libdoca_rdma.so.3.2.1025"));
    assert_eq!(rdma["found_by"], "RUNPATH of app");
    assert_eq!((&rdma["version"], &rdma["full_version"]), (&"3.2.1".into(), &"3.2.1025".into()));
    assert_eq!(rdma["origin"], "real");
    assert_eq!(rdma["imports"][0]["name"], "doca_rdma_create");
    assert_eq!(rdma["imports"][0]["by"], "app");
    assert_eq!(checked.json["imports_doca_rdma"], true);
    assert_eq!(checked.json["runpath"], "$ORIGIN/lib");
}

#[test]
fn a_library_that_is_not_found_fails_and_tells_where_it_was_sought() {
    let bench = real();
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath,/nowhere/$LIB"]);
    let checked = bench.check("app", &["--require", "rdma"]);
    assert_eq!(checked.code, 1);
    let rdma = checked.library("rdma");
    assert_eq!((&rdma["found"], &rdma["origin"]), (&false.into(), &"unknown".into()));
    assert!(
        rdma["searched"].to_string().contains("/nowhere/lib/x86_64-linux-gnu/libdoca_rdma.so.2"),
        "{rdma}"
    );
    assert_eq!(checked.findings(), ["not-found"]);
    assert!(checked.why(0).contains("is not found"), "{checked:?}");

    assert_eq!(bench.check("app", &["--require", "rdma", "--allow-missing"]).code, 0);
    assert_eq!(bench.check("app", &["--forbid-simulator"]).code, 1);
    assert_eq!(bench.check("app", &[]).code, 0);

    let lib = bench.path("lib");
    let found = bench.check_in("app", &["--require", "rdma"], &format!("/nowhere;{lib}"));
    assert_eq!(found.code, 0);
    assert_eq!(found.library("rdma")["found_by"], "LD_LIBRARY_PATH");
    assert_eq!(found.library("common")["link"], "transitive");
}

#[test]
fn a_path_for_loaded_libraries_too_is_told_from_one_for_the_programs_own() {
    let bench = real();
    let rdma = ["-ldoca_rdma", "-Wl,-rpath-link,lib"];
    bench.library(
        "lib",
        "libapp.so",
        "int doca_rdma_create(void); int run(void) { return doca_rdma_create(); }",
        &rdma,
    );
    let source = "int run(void); int main(void) { return run(); }";
    let link = ["-l:libapp.so", "-Wl,-rpath-link,lib", "-Wl,-rpath,$ORIGIN/lib"];
    bench.program("old", source, &[&link[..], &["-Wl,--disable-new-dtags"]].concat());
    bench.program("new", source, &[&link[..], &["-Wl,--enable-new-dtags"]].concat());

    let old = bench.check("old", &["--require", "rdma"]);
    assert_eq!(old.code, 0, "{old:?}");
    let rdma = old.library("rdma");
    assert_eq!((&rdma["link"], &rdma["found_by"]), (&"transitive".into(), &"RPATH of old".into()));
    assert_eq!(rdma["needed_by"][0], "libapp.so");
    assert_eq!(rdma["imports"][0]["by"], "libapp.so");

    let new = bench.check("new", &["--require", "rdma"]);
    assert_eq!((new.code, &new.library("rdma")["found"]), (1, &false.into()));
}

#[test]
fn a_library_with_a_path_of_its_own_does_not_take_the_programs() {
    let bench = Bench::new();
    bench.doca("below", "common", "3.2.1025", COMMON, &[]);
    let flags = ["-Lbelow", NEEDED, "-ldoca_common", "-Wl,--enable-new-dtags,-rpath,/nowhere"];
    bench.doca("lib", "rdma", "3.2.1025", RDMA, &flags);
    let rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib:$ORIGIN/below";
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath-link,below", rpath]);
    assert_eq!(bench.loaded("app", "", "libdoca_common.so.2"), None);
    let checked = bench.check("app", &[]);
    assert_eq!((&checked.library("rdma")["found"], checked.findings()), (&true.into(), vec!["not-found"]));
}

#[test]
fn what_is_loaded_under_another_name_is_not_sought_again() {
    let bench = Bench::new();
    bench.doca("below", "common", "3.2.1025", COMMON, &[]);
    bench.doca("lib", "rdma", "3.2.1025", RDMA, &["-Lbelow", NEEDED, "-ldoca_common"]);
    bench.library("lib", "libalias.so", COMMON, &[]);
    let link = [NEEDED, "-l:libalias.so", "-ldoca_rdma", "-Wl,-rpath-link,below", "-Wl,-rpath,$ORIGIN/lib"];
    bench.program("app", USES_RDMA, &link);
    assert_eq!(bench.check("app", &[]).findings(), ["not-found"]);
    fs::copy(bench.path("below/libdoca_common.so.2"), bench.path("lib/libalias.so")).unwrap();
    assert_eq!(bench.check("app", &[]).library("common")["path"], bench.path("lib/libalias.so"));
}

#[test]
fn library_path_stands_between_rpath_and_runpath() {
    let bench = real();
    bench.doca("other", "rdma", "3.2.1030", RDMA, &[]);
    let link = ["-ldoca_rdma", "-Wl,-rpath,$ORIGIN/lib"];
    bench.program("old", USES_RDMA, &[&link[..], &["-Wl,--disable-new-dtags"]].concat());
    bench.program("new", USES_RDMA, &[&link[..], &["-Wl,--enable-new-dtags"]].concat());
    let version = |program| {
        let checked = bench.check_in(program, &[], &bench.path("other"));
        checked.library("rdma")["full_version"].clone()
    };
    assert_eq!(version("old"), "3.2.1025");
    assert_eq!(version("new"), "3.2.1030");
}

#[test]
fn the_loader_agrees() {
    let bench = real();
    bench.doca("other", "rdma", "3.2.1030", RDMA, &[NEEDED, "-ldoca_common"]);
    let link = ["-ldoca_rdma", "-Wl,-rpath,$ORIGIN/lib"];
    for tags in ["-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"] {
        bench.program("app", USES_RDMA, &[&link[..], &[tags]].concat());
        for library_path in ["", "other", "nowhere"] {
            let library_path = bench.path(library_path);
            let checked = bench.check_in("app", &[], &library_path);
            for library in ["rdma", "common"] {
                let library = checked.library(library);
                let file = library["file"].as_str().unwrap();
                let loaded = bench.loaded("app", &library_path, file);
                assert_eq!(library["path"].as_str(), loaded.as_deref(), "{tags} {library_path} {file}");
            }
        }
    }
}

#[test]
fn linking_without_using_is_not_enough() {
    let bench = real();
    let link = [NEEDED, "-ldoca_rdma", "-ldoca_common", "-Wl,-rpath,$ORIGIN/lib"];
    bench.program("app", NO_DOCA, &link);
    let checked = bench.check("app", &["--require", "rdma"]);
    assert_eq!(checked.code, 1);
    assert!(checked.why(0).contains("linked but not used"), "{checked:?}");
    assert_eq!(checked.findings(), ["unused", "unused"]);
    assert_eq!(
        (&checked.json["imports_doca_rdma"], &checked.library("rdma")["used"]),
        (&false.into(), &false.into())
    );
    assert_eq!(bench.check("app", &[]).code, 0);
}

#[test]
fn code_that_is_linked_in_is_seen() {
    let bench = Bench::new();
    let source = format!("{RDMA} {COMMON} {USES_RDMA} int doca_rdma_helper_of_mine(void) {{ return 0; }}");
    for (name, flags, kind) in [
        ("static", &["-static"][..], "static-executable"),
        ("static-pie", &["-static-pie"], "static-pie"),
        ("dynamic", &[], "position-independent-executable"),
        ("fixed", &["-no-pie"], "executable"),
    ] {
        bench.program(name, &source, flags);
        let checked = bench.check(name, &["--require", "rdma"]);
        assert_eq!((checked.code, &checked.json["kind"]), (0, &kind.into()), "{checked:?}");
        for library in ["rdma", "common"] {
            let library = checked.library(library);
            assert_eq!((&library["link"], &library["used"]), (&"static".into(), &true.into()));
        }
        assert_eq!(bench.check(name, &["--require", "comch"]).code, 1);
        assert_eq!(checked.findings(), Vec::<&str>::new());
    }
    bench.program("stripped", &source, &["-static", "-s"]);
    let checked = bench.check("stripped", &["--require", "rdma"]);
    assert_eq!((checked.code, checked.findings()), (1, vec!["stripped"]));
    bench.program(
        "mine",
        "int doca_rdma_helper_of_mine(void) { return 0; } int main(void) { return 0; }",
        &[],
    );
    assert!(bench.check("mine", &[]).json["libraries"].as_array().unwrap().is_empty());
}

#[test]
fn a_name_for_dlopen_is_told_but_proves_nothing() {
    let bench = real();
    let source = "#include <dlfcn.h>\nint main(void) { return !dlopen(\"libdoca_rdma.so.2\", RTLD_NOW); }";
    bench.program("app", source, &["-ldl", "-Wl,-rpath,$ORIGIN/lib"]);
    let checked = bench.check("app", &["--require", "rdma"]);
    assert_eq!(checked.code, 1);
    let rdma = checked.library("rdma");
    assert_eq!((&rdma["link"], &rdma["version"]), (&"dlopen".into(), &"3.2.1".into()));
    assert_eq!(checked.findings(), ["dlopen"]);
    assert!(checked.why(0).contains("only named"), "{checked:?}");
}

#[test]
fn data_that_moves_by_verbs_is_a_bypass() {
    let bench = real();
    bench.library("lib", "libibverbs.so.1", VERBS, &[]);
    let link = ["-l:libibverbs.so.1", "-ldoca_rdma", "-Wl,-rpath,$ORIGIN/lib"];
    let verbs = "int ibv_create_qp(void); ";
    bench.program("bypass", &format!("{verbs} int main(void) {{ return ibv_create_qp(); }}"), &link);
    let checked = bench.check("bypass", &["--require", "rdma"]);
    assert_eq!((checked.code, &checked.json["bypass"]), (1, &true.into()));
    assert!(checked.why(0).starts_with("bypass"), "{checked:?}");
    assert_eq!(checked.json["verbs"][0]["name"], "ibv_create_qp");
    let checked = bench.check("bypass", &[]);
    assert_eq!((checked.code, checked.findings()), (0, vec!["bypass"]));

    let asks = "int doca_rdma_cap_task_send_is_supported(void);";
    let source = format!(
        "{verbs} {asks} int main(void) {{ return ibv_create_qp() + doca_rdma_cap_task_send_is_supported(); }}"
    );
    bench.program("asks", &source, &link);
    assert_eq!(
        bench.check("asks", &["--require", "rdma"]).code,
        1,
        "asking what a device can do moves no data"
    );

    let source = format!(
        "{verbs} int doca_rdma_create(void); int main(void) {{ return ibv_create_qp() + doca_rdma_create(); }}"
    );
    bench.program("both", &source, &link);
    let checked = bench.check("both", &["--require", "rdma"]);
    assert_eq!((checked.code, checked.findings()), (0, vec!["verbs"]));

    let source = "int ibv_get_device_list(void); int main(void) { return ibv_get_device_list(); }";
    bench.program("lists", source, &link);
    assert_eq!(bench.check("lists", &[]).json["bypass"], false);
}

#[test]
fn verbs_below_doca_are_no_bypass_and_in_the_programs_own_library_are() {
    let bench = Bench::new();
    bench.library("lib", "libibverbs.so.1", VERBS, &[]);
    let verbs = "int ibv_create_qp(void); int use(void) { return ibv_create_qp(); }";
    bench.doca("lib", "rdma", "3.2.1025", &format!("{verbs} {RDMA}"), &["-l:libibverbs.so.1"]);
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath-link,lib", "-Wl,-rpath,$ORIGIN/lib"]);
    let checked = bench.check_in("app", &["--require", "rdma"], &bench.path("lib"));
    assert_eq!((checked.code, checked.findings()), (0, vec![]), "{checked:?}");

    bench.library("lib", "libown.so", verbs, &["-l:libibverbs.so.1"]);
    let source = "int use(void); int main(void) { return use(); }";
    bench.program("own", source, &["-l:libown.so", "-Wl,-rpath-link,lib", "-Wl,-rpath,$ORIGIN/lib"]);
    let checked = bench.check_in("own", &[], &bench.path("lib"));
    assert_eq!(
        (&checked.json["bypass"], &checked.json["verbs"][0]["by"]),
        (&true.into(), &"libown.so".into())
    );
}

#[test]
fn the_simulator_is_named_and_can_be_forbidden() {
    let bench = simulated();
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath-link,lib"]);
    let checked = bench.check_in("app", &["--require", "rdma"], &bench.path("lib"));
    assert_eq!((checked.code, &checked.library("rdma")["origin"]), (0, &"simulator".into()));
    assert_eq!(checked.findings(), Vec::<&str>::new());
    assert_eq!(bench.check_in("app", &["--forbid-simulator"], &bench.path("lib")).code, 1);
}

#[test]
fn a_search_path_into_a_simulator_is_named_though_another_library_is_loaded() {
    let (bench, simulator) = (real(), simulated());
    let rpath = format!("-Wl,-rpath,$ORIGIN/lib:{}", simulator.path("lib"));
    bench.program("app", USES_RDMA, &["-ldoca_rdma", &rpath]);
    let checked = bench.check("app", &["--forbid-simulator"]);
    assert_eq!((checked.code, &checked.library("rdma")["origin"]), (1, &"real".into()));
    assert!(checked.why(0).contains("leads into a simulator"), "{checked:?}");

    // A prefix without libraries yet says it in its modules.
    for file in fs::read_dir(simulator.path("lib")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(bench.check("app", &["--forbid-simulator"]).code, 0);
    fs::create_dir(simulator.path("lib/pkgconfig")).unwrap();
    fs::write(simulator.path("lib/pkgconfig/doca-common.pc"), "prefix=/x\ndoca_sim=1\n").unwrap();
    assert_eq!(bench.check("app", &["--forbid-simulator"]).code, 1);
}

#[test]
fn version_nodes_are_told_and_must_be_there() {
    let bench = Bench::new();
    fs::write(bench.path("one"), "EXPERIMENTAL { global: doca_*; };").unwrap();
    fs::write(bench.path("two"), "DOCA_2 { global: doca_*; };").unwrap();
    bench.doca("lib", "rdma", "3.2.1025", RDMA, &["-Wl,--version-script=one"]);
    bench.doca("moved", "rdma", "3.2.1025", RDMA, &["-Wl,--version-script=two"]);
    bench.doca("plain", "rdma", "3.2.1025", RDMA, &[]);
    bench.doca("less", "rdma", "3.2.1025", "int doca_rdma_other(void) { return 0; }", &[]);
    bench.program("app", USES_RDMA, &["-ldoca_rdma"]);
    let check = |lib: &str| bench.check_in("app", &["--require", "rdma"], &bench.path(lib));

    let same = check("lib");
    assert_eq!((same.code, &same.library("rdma")["imports"][0]["node"]), (0, &"EXPERIMENTAL".into()));
    assert_eq!(check("plain").code, 0, "an unversioned library serves all");
    for lib in ["moved", "less"] {
        let other = check(lib);
        assert_eq!((other.code, other.findings()), (1, vec!["unbound"]), "{lib}");
        assert!(other.why(0).contains("doca_rdma_create@EXPERIMENTAL"), "{other:?}");
    }
}

#[test]
fn libraries_of_different_releases_are_told() {
    let bench = real();
    bench.doca("lib", "common", "3.1.0105", COMMON, &[]);
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath-link,lib"]);
    let checked = bench.check_in("app", &[], &bench.path("lib"));
    assert_eq!(checked.findings(), ["mixed-versions"]);
}

#[test]
fn storage_offload_demands_the_rdma_library() {
    let bench = real();
    bench.doca("lib", "sta", "3.2.1025", STA, &["-ldoca_common"]);
    bench.doca("whole", "sta", "3.2.1025", STA, &[NEEDED, "-ldoca_rdma"]);
    let source = "int doca_sta_create(void); int main(void) { return doca_sta_create(); }";
    bench.program("app", source, &["-ldoca_sta"]);
    let checked = bench.check_in("app", &["--require", "sta"], &bench.path("lib"));
    assert_eq!((checked.code, checked.why(0)), (1, "libdoca_rdma is not linked".into()));
    let path = format!("{}:{}", bench.path("whole"), bench.path("lib"));
    let checked = bench.check_in("app", &["--require", "sta"], &path);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert_eq!(bench.check_in("app", &["--require", "sta,rdma"], &path).code, 1);
}

#[test]
fn other_architectures_are_read_and_their_libraries_sought() {
    let bench = real();
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath,$ORIGIN/arm:$ORIGIN/lib"]);
    let machine = |file: &str| {
        let mut bytes = fs::read(bench.path(file)).unwrap();
        bytes[18..20].copy_from_slice(&183_u16.to_le_bytes());
        bytes
    };
    fs::write(bench.path("app.arm"), machine("app")).unwrap();
    let checked = bench.check("app.arm", &["--require", "rdma"]);
    assert_eq!((checked.code, &checked.json["architecture"]), (1, &"aarch64".into()));
    let rejected = &checked.library("rdma")["rejected"][0];
    assert_eq!(rejected["path"], bench.path("lib/libdoca_rdma.so.2"));
    assert_eq!(rejected["why"], "is 64-bit little-endian x86_64");

    fs::create_dir(bench.path("arm")).unwrap();
    fs::write(bench.path("arm/libdoca_rdma.so.2"), machine("lib/libdoca_rdma.so.2")).unwrap();
    let checked = bench.check("app.arm", &["--require", "rdma"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert_eq!(checked.library("rdma")["path"], bench.path("arm/libdoca_rdma.so.2"));
    // The native program passes over the library that is not for it.
    assert_eq!(bench.check("app", &[]).library("rdma")["path"], bench.path("lib/libdoca_rdma.so.2"));
}

#[test]
fn a_system_below_a_directory_is_searched_by_its_own_configuration() {
    let bench = real();
    bench.program("app", USES_RDMA, &["-ldoca_rdma"]);
    fs::create_dir_all(bench.path("root/etc/ld.so.conf.d")).unwrap();
    fs::create_dir_all(bench.path("root/opt/doca")).unwrap();
    fs::write(bench.path("root/etc/ld.so.conf"), "include ld.so.conf.d/*.conf\n").unwrap();
    fs::write(bench.path("root/etc/ld.so.conf.d/doca-runtime.conf"), "/opt/doca\n").unwrap();
    fs::copy(bench.path("lib/libdoca_rdma.so.2"), bench.path("root/opt/doca/libdoca_rdma.so.2")).unwrap();
    let root = bench.path("root");
    let checked = bench.check("app", &["--sysroot", &root, "--require", "rdma"]);
    assert_eq!(
        (checked.code, &checked.library("rdma")["found_by"]),
        (0, &"ld.so.conf".into()),
        "{checked:?}"
    );
}

#[test]
fn the_cache_that_ldconfig_makes_is_read() {
    let bench = real();
    bench.program("app", USES_RDMA, &["-ldoca_rdma"]);
    fs::create_dir_all(bench.path("root/etc")).unwrap();
    fs::create_dir_all(bench.path("root/opt")).unwrap();
    fs::copy(bench.path("lib/libdoca_rdma.so.2"), bench.path("root/opt/libdoca_rdma.so.2")).unwrap();
    fs::write(bench.path("conf"), format!("{}\n", bench.path("root/opt"))).unwrap();
    let mut ldconfig = Command::new("/sbin/ldconfig");
    ldconfig.args(["-X", "-C", &bench.path("root/etc/ld.so.cache"), "-f", &bench.path("conf")]);
    assert!(ldconfig.output().expect("ldconfig starts").status.success());
    let checked = bench.check("app", &["--sysroot", &bench.path("root")]);
    let rdma = checked.library("rdma");
    assert_eq!(rdma["found_by"], "ld.so.cache", "{checked:?}");
    assert_eq!(rdma["path"], bench.path("root/opt/libdoca_rdma.so.2"));
}

#[test]
fn the_environments_search_path_is_the_programs_and_not_this_ones() {
    // Libraries that `doca` itself could not run with.
    let bench = simulated();
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath-link,lib"]);
    let Checked { code, stdout, stderr, .. } =
        bench.run_in(&["app", "--require", "rdma"], &bench.path("lib"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("(LD_LIBRARY_PATH)"), "{stdout}");
}

#[test]
fn people_read_it_too() {
    let bench = simulated();
    bench.program("app", USES_RDMA, &["-ldoca_rdma", "-Wl,-rpath,$ORIGIN/lib", "-Wl,-rpath-link,lib"]);
    let Checked { stdout, .. } = bench.run(&["app", "--require", "rdma", "--forbid-simulator"]);
    for text in ["libdoca_rdma.so.2", "SIMULATOR", "3.3.0", "1 unversioned", "require rdma: ok", "FAILED"] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
}

#[test]
fn what_cannot_be_answered_has_a_status_of_its_own() {
    let bench = Bench::new();
    fs::write(bench.path("text"), "not a program").unwrap();
    bench.program("app", NO_DOCA, &[]);
    let whole = fs::read(bench.path("app")).unwrap();
    fs::write(bench.path("cut"), &whole[..whole.len() / 16]).unwrap();
    for (args, says) in [
        (&["text"][..], "text is not an ELF file"),
        (&["cut"], "is a damaged ELF file"),
        (&["absent"], "cannot read absent"),
        (&["."], "cannot read ."),
        (&["app", "--require", "verbs"], "invalid value 'verbs'"),
        (&["app", "--sysroot", "absent"], "is not a directory"),
        (&[], "required"),
    ] {
        let Checked { code, stdout, stderr, .. } = bench.run(args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
}
