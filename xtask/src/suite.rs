//! `cargo sim test` without arguments: everything.

use crate::sdk::Sdk;
use crate::{
    Result, abi, asan, conformance, coverage, demo, demo_relay, demo_sta, oldest, place, process, profiles,
    provision,
};
use std::time::Instant;

type Step = (&'static str, fn(&Sdk) -> Result);

const STEPS: &[Step] = &[
    ("headers compile alone, as C99 and C++17", conformance::headers),
    ("libraries and headers match the ABI tables", abi::check),
    ("C conformance programs", conformance::programs),
    ("two processes over DOCA RDMA", demo::check),
    ("two programs through the socket relay", demo_relay::check),
    ("a host writes and reads a storage target", demo_sta::check),
    ("cargo test", cargo_test),
    ("tests under every profile", profiles::check),
    ("the oldest release", oldest::check),
    ("lifecycles under AddressSanitizer", asan::check),
    ("COVERAGE.md matches sources and trace", coverage::check_suite),
];

/// Runs the steps and stops at the first that fails.
pub(crate) fn run() -> Result {
    provision::suite()?;
    let sdk = Sdk::ready()?.traced(&coverage::trace_file())?;
    for (number, (name, step)) in STEPS.iter().enumerate() {
        println!("== {}/{} {name}", number + 1, STEPS.len());
        let started = Instant::now();
        step(&sdk).map_err(|why| format!("{name}: {why}"))?;
        println!("== ok, {:.1} s", started.elapsed().as_secs_f32());
    }
    println!("all {} steps passed", STEPS.len());
    Ok(())
}

/// Every test binary, also after a failure: one run tells of all that is wrong.
fn cargo_test(sdk: &Sdk) -> Result {
    process::run(sdk.cargo().current_dir(place::root()).args([
        "test",
        "--workspace",
        "--no-fail-fast",
        "--features",
        profiles::FEATURES,
    ]))
}
