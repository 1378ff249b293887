//! `cargo sim asan`: the tests of lifecycles under AddressSanitizer and LeakSanitizer, simulator and tests both
//! instrumented.
//!
//! An instrumented shared object takes the sanitizer's functions from the program that loads it, so the tests are
//! linked with `-rdynamic`, and the engine goes into a prefix of its own that nothing else uses. One of the tests
//! plants a fault inside the shared object and demands the report, or a green run would prove nothing.

use crate::install::Options;
use crate::library::ENGINE;
use crate::sdk::Sdk;
use crate::{Result, conformance, engine, place, process};
use std::path::PathBuf;
use std::process::Command;

/// Tests that run instrumented: those that end, drop, forget and misuse things.
const TESTS: &[&str] = &[
    "sanitizer",
    "lifecycle",
    "prepared",
    "connections",
    "one_sided",
    "permissions",
    "events",
    "bridge",
    "failures",
];

/// Not this one: it is thousands of processes, and profiles change what DOCA answers, not who owns what.
const EVERY_PROFILE: &str = "every_profile_works_and_tells_failures";

/// C programs that run beside an instrumented engine, by how their names begin: those of libdoca_sta, which has a thread
/// of its own, and of libdoca_comch, whose peers write into each other's rings.
const PROGRAMS: &[&str] = &["sta_", "comch_"];

/// Not this one: its forked child ends while it holds a copy of what its parent's threads hold, which LeakSanitizer, who
/// does not find those threads there, takes for leaks.
const FORKS: &str = "comch_ends";

/// Tests of Comch, all of whose peers run instrumented, too.
const TWO_PROCESSES: &str = "comch::";

/// Forgetting handles leaks by intention, so this test runs without LeakSanitizer.
const LEAKS_BY_INTENTION: &str = "any_handle_can_be_forgotten";

/// Whose tests they are, built once for all.
const FACADE: &[&str] = &["--package", "doca", "--features", "sta,comch"];

/// What rustc is told. `-Z` needs either a nightly or this word to a stable one.
const FLAGS: &str = "-Zsanitizer=address -Clink-arg=-rdynamic --cfg doca_sim_asan";
const ALLOW_Z: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

/// Runs the tests; with arguments, `cargo test` with these instead of the usual ones.
pub(crate) fn command(args: &[String]) -> Result {
    let instrumented = Instrumented::build(&Sdk::ready()?)?;
    if !args.is_empty() {
        return process::run(instrumented.test(true).args(args));
    }
    instrumented.run()
}

/// The usual ones, as a step of the suite.
pub(crate) fn check(sdk: &Sdk) -> Result {
    Instrumented::build(sdk)?.run()
}

/// An instrumented engine in a prefix of its own.
struct Instrumented {
    sdk: Sdk,
    target: PathBuf,
    triple: String,
}

impl Instrumented {
    fn build(plain: &Sdk) -> Result<Instrumented> {
        let target = place::target().join("asan");
        let prefix = target.join("sdk");
        copy(&plain.options().prefix, &prefix)?;
        let options = Options { prefix, ..Options::default() };
        let triple = host()?;

        let mut build = Command::new(process::cargo());
        build.current_dir(place::root()).env(ALLOW_Z.0, ALLOW_Z.1).env("RUSTFLAGS", FLAGS);
        build.args(["build", "--quiet", "--package", engine::PACKAGE, "--profile", engine::PROFILE]);
        build.args(["--target", &triple, "--target-dir"]).arg(&target);
        process::run(&mut build)?;
        let archive = target.join(&triple).join(engine::PROFILE).join(engine::ARCHIVE);
        // The sanitizer's functions stay undefined until a program brings them.
        let linked = engine::link(&archive, &target, &["-Wl,-z,lazy", "-Wl,-z,undefs"])?;
        let installed = options.libdir().join(ENGINE);
        std::fs::rename(&linked, &installed).map_err(|e| format!("cannot move {}: {e}", linked.display()))?;
        Ok(Instrumented { sdk: Sdk::at(options), target, triple })
    }

    fn run(&self) -> Result {
        let tests: Vec<&str> = TESTS.iter().flat_map(|name| ["--test", name]).collect();
        process::run(self.test(true).args(FACADE).args(&tests).args([
            "--",
            "--skip",
            LEAKS_BY_INTENTION,
            "--skip",
            EVERY_PROFILE,
        ]))?;
        let forgotten = ["--test", "lifecycle", "--test", "prepared", "--", "--exact", LEAKS_BY_INTENTION];
        process::run(self.test(false).args(FACADE).args(forgotten))?;
        process::run(self.test(true).args(FACADE).args(["--test", "two_process", "--", TWO_PROCESSES]))?;
        let chosen = |name: &str| name != FORKS && PROGRAMS.iter().any(|start| name.starts_with(start));
        conformance::some(&self.sdk, chosen, &self.runtime()?)
    }

    /// What brings the sanitizer's functions into a C program: the runtime that came with the compiler of the engine.
    fn runtime(&self) -> Result<Vec<String>> {
        let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let dir = PathBuf::from(sysroot.trim()).join("lib/rustlib").join(&self.triple).join("lib");
        let is_runtime = |path: &PathBuf| path.to_string_lossy().ends_with("_rt.asan.a");
        let runtime = place::files_below(&dir)?.into_iter().find(is_runtime);
        let runtime =
            runtime.ok_or_else(|| format!("no runtime of AddressSanitizer in {}", dir.display()))?;
        let runtime = format!("-Wl,--whole-archive,{},--no-whole-archive", runtime.display());
        Ok(["-rdynamic", &runtime, "-lpthread", "-ldl", "-lm", "-lrt", "-lstdc++"].map(String::from).into())
    }

    fn test(&self, leaks: bool) -> Command {
        let mut test = self.sdk.cargo();
        test.current_dir(place::root()).env(ALLOW_Z.0, ALLOW_Z.1).env("RUSTFLAGS", FLAGS);
        test.env("ASAN_OPTIONS", format!("detect_leaks={}", u8::from(leaks)));
        test.args(["test", "--target", &self.triple, "--target-dir"]).arg(&self.target);
        test
    }
}

/// The triple of this machine: build scripts and macros are instrumented unless one is named.
fn host() -> Result<String> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".into())
}

fn copy(from: &PathBuf, to: &PathBuf) -> Result {
    if to.exists() {
        std::fs::remove_dir_all(to).map_err(|e| format!("cannot remove {}: {e}", to.display()))?;
    }
    place::make_parent(to)?;
    process::run(Command::new("cp").arg("-a").arg(from).arg(to))
}
