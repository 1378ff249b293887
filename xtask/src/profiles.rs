//! `cargo sim profiles`: the tests of the safe crates under each reading of DOCA, as a table.
//!
//! A program that is to run on hardware should work under each of them, and so should these crates. `tests/failures`
//! looks at each profile too, call by call; `doca-sta` names its profiles in its own tests.

use crate::process::{self, Peer};
use crate::sdk::Sdk;
use crate::{Result, place};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A test binary of the facade, and which of its tests.
type Tests = (&'static str, &'static [&'static str]);

/// What runs under a profile, by how its name begins; the first row that fits.
const SETS: &[(&str, &[Tests])] = &[
    ("sta-", &[]),
    ("comch-", &[("two_process", &["comch::", "comch_killed::"])]),
    (
        "",
        &[
            ("basics", &[]),
            ("one_sided", &[]),
            ("permissions", &[]),
            ("dynamic", &[]),
            ("prepared", &[]),
            ("connections", &[]),
            ("bridge", &[]),
            ("lifecycle", &[]),
            ("log", &[]),
            ("events", &[]),
            ("allocations", &[]),
            ("many_connections", &[]),
            ("examples", &[]),
            (
                "two_process",
                &["traffic::", "counter::", "stopped::", "input::", "wake::", "events::", "comch::"],
            ),
        ],
    ),
];

/// For all tests of one profile.
const DEADLINE: Duration = Duration::from_secs(300);

/// `cargo sim profiles [PROFILE…]`
pub(crate) fn command(names: &[String]) -> Result {
    let mut chosen = all()?;
    if !names.is_empty() {
        if let Some(unknown) = names.iter().find(|name| !chosen.contains(name)) {
            return Err(format!("there is no profile {unknown}; there are: {}", chosen.join(", ")));
        }
        chosen.retain(|profile| names.contains(profile));
    }
    run(&Sdk::ready()?, &chosen)
}

/// All of them, as a step of the suite.
pub(crate) fn check(sdk: &Sdk) -> Result {
    run(sdk, &all()?)
}

/// The names in the table of profiles; a test of the engine says that none is missing there.
fn all() -> Result<Vec<String>> {
    let page = place::root().join("doca-sim/PROFILES.md");
    let text = std::fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    let row = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    Ok(text.lines().filter_map(row).collect())
}

fn run(sdk: &Sdk, profiles: &[String]) -> Result {
    let binaries = build(sdk)?;
    let mut failed = Vec::new();
    for profile in profiles {
        let set = SETS.iter().find(|(start, _)| profile.starts_with(start)).map_or(&[][..], |(_, set)| set);
        if set.is_empty() {
            continue;
        }
        let started = Instant::now();
        let wrong = under(sdk, profile, set, &binaries)?;
        let verdict = if wrong.is_empty() { "ok" } else { "FAILED" };
        println!("{profile:34} {verdict:6} {:5.1} s", started.elapsed().as_secs_f32());
        failed.extend(wrong.into_iter().map(|why| format!("under {profile}: {why}")));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs tests side by side, each in a network of its own. Gives what the failed ones printed.
fn under(sdk: &Sdk, profile: &str, set: &[Tests], binaries: &[(String, PathBuf)]) -> Result<Vec<String>> {
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let until = Instant::now() + DEADLINE;
    let mut running = Vec::new();
    for (name, tests) in set {
        let binary = binaries.iter().find(|(known, _)| known == name);
        let (_, binary) = binary.ok_or_else(|| format!("cargo built no test {name}"))?;
        let mut command = sdk.command(binary);
        command.args(*tests).current_dir(place::root()).env("DOCA_SIM_PROFILE", profile);
        command.env("DOCA_SIM_DIR", scratch.path().join(name)).env("DOCA_SIM_QUIET", "1");
        // The suite's page on coverage is about DOCA as it is by default.
        command.env_remove("DOCA_SIM_TRACE");
        running.push(Peer::start(name, &mut command)?);
    }
    Ok(running.iter_mut().filter_map(|tests| tests.succeed(until).err()).collect())
}

/// Builds the facade's tests as the suite does, and says where they are.
fn build(sdk: &Sdk) -> Result<Vec<(String, PathBuf)>> {
    let mut cargo = sdk.cargo();
    cargo.current_dir(place::root()).args(["test", "--no-run", "--workspace", "--features", FEATURES]);
    let names = SETS.iter().flat_map(|(_, set)| set.iter()).map(|(name, _)| name);
    cargo.args(names.flat_map(|name| ["--test", name]));
    cargo.arg("--message-format=json-render-diagnostics").stderr(std::process::Stdio::inherit());
    let said = process::output(&mut cargo)?;
    Ok(said.lines().filter_map(|line| executable(line, &place::root().join("tests"))).collect())
}

/// Features of the suite's tests: others would build everything once more.
pub(crate) const FEATURES: &str = "rdma,sta,comch";

/// Name and file of a test that cargo tells about, if its sources are in this directory.
fn executable(line: &str, tests: &Path) -> Option<(String, PathBuf)> {
    let field = |name: &str| Some(line.split_once(&format!("\"{name}\":\""))?.1.split_once('"')?.0);
    let source = Path::new(field("src_path")?).strip_prefix(tests).ok()?;
    let name = source.components().next()?.as_os_str().to_str()?;
    Some((name.trim_end_matches(".rs").to_owned(), field("executable")?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_in_what_cargo_says() {
        let line = r#"{"reason":"compiler-artifact","target":{"kind":["test"],"name":"two","src_path":"/w/tests/two/main.rs"},"executable":"/w/target/two-1"}"#;
        assert_eq!(executable(line, Path::new("/w/tests")), Some(("two".into(), "/w/target/two-1".into())));
        assert_eq!(executable(line, Path::new("/w/other/tests")), None);
        assert_eq!(
            executable(r#"{"src_path":"/w/tests/a.rs","executable":null}"#, Path::new("/w/tests")),
            None
        );
    }

    #[test]
    fn every_profile_has_a_row() {
        let names = all().unwrap();
        assert!(names.iter().any(|name| name == "starting-until-connected"), "{names:?}");
    }
}
