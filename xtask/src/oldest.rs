//! `cargo sim oldest`: the crates against the declarations of the oldest release that they support.
//!
//! What later releases added is compiled by what the headers declare, so a build for the newest says nothing about what is
//! left for the oldest. Here both its headers and its libraries lack the additions.

use crate::install::{self, Options};
use crate::release::{Release, Side};
use crate::sdk::Sdk;
use crate::{Result, conformance, demo_sta, place, process, provision};

/// The facade with everything that it has, and whose tests run besides. One list for all of them, or cargo would build twice.
const PACKAGES: &[&str] = &[
    "--package",
    "doca",
    "--features",
    "sta-target,comch",
    "--package",
    "doca-sys",
    "--package",
    "doca-sta",
];

/// What is bound, against the tables of the release; and lifecycles, of the facade and of libdoca_sta.
const TESTS: &[&str] = &["--test", "abi", "--test", "lifecycle"];

/// Many messages and large ones, between two processes.
const TWO_PROCESSES: &[&str] = &["--test", "two_process", "--", "traffic::"];

/// C programs of the library that differs most, by how their names begin.
const PROGRAMS: &str = "sta";

/// `cargo sim oldest`
pub(crate) fn command(args: &[String]) -> Result {
    match args.first() {
        None => provision::crates().and_then(|()| run()),
        Some(arg) => Err(format!("oldest takes no argument, got {arg}")),
    }
}

/// The same as a step of the suite, whose own SDK is of the newest release.
pub(crate) fn check(_newest: &Sdk) -> Result {
    run()
}

fn run() -> Result {
    let target = place::target().join("oldest");
    let options = Options { prefix: target.join("sdk"), release: Release::V3_0, side: Side::Host };
    install::install(&options)?;
    println!("DOCA {} in {}", options.release.full(), options.prefix.display());
    let sdk = Sdk::at(options).apart(target);
    for tests in [TESTS, TWO_PROCESSES] {
        process::run(sdk.cargo().current_dir(place::root()).arg("test").args(PACKAGES).args(tests))?;
    }
    conformance::some(&sdk, |name| name.starts_with(PROGRAMS), &[])?;
    demo_sta::check(&sdk)
}
