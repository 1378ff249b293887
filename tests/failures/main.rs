//! Whatever call of DOCA fails, the program gets an error that names the call, the code and the layer to look at;
//! everything can be dropped, nothing is left behind, and nothing hangs. Under every profile.
//!
//! A scenario does everything once. A first run, traced, tells which functions it calls and how often; then it runs
//! in one process after the other, and in each one call fails.

#![allow(missing_docs, reason = "a test")]

mod calls;
mod scenario;
mod table;

use calls::{Calls, Case, Run, Verdict};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Processes at a time: they wait for each other more than they compute.
const AT_A_TIME: usize = 8;

/// What each process does. Says line by line what failed, then that it is through.
#[test]
#[ignore = "one call fails in it: in every run, the two tests below start it as a child, once per failure"]
fn scenario() {
    calls::limit_this_process();
    calls::log_lines();
    let mut told = |text: &str| calls::tell("told", text);
    let ended = if calls::is_dpu() { scenario::run_on_dpu(&mut told) } else { scenario::run(&mut told) };
    if let Err(error) = ended {
        calls::tell("value", &error.to_string());
    }
    calls::tell("end", "");
}

#[test]
fn every_failure_is_told() {
    let functions = calls::traced();
    for (function, _) in table::DIFFERENT {
        assert!(functions.contains_key(*function), "{function} is not called: its row is stale");
    }
    let cases = cases(&functions);
    println!("{} functions, {} failures", functions.len(), cases.len());
    check(&cases);
}

/// A call that the crates make and the scenario does not would never be struck.
#[test]
fn the_scenario_calls_everything() {
    let called = calls::traced();
    let fallible = calls::documented();
    let made = calls::made_by_the_crates();
    let missing: Vec<_> =
        made.iter().filter(|name| fallible.contains_key(*name) && !called.contains_key(*name)).collect();
    let known: Vec<_> = table::NOT_CALLED.iter().map(|(name, _)| *name).collect();
    for name in &missing {
        assert!(
            known.contains(&name.as_str()),
            "{name}: call it in the scenario, or say in NOT_CALLED why not"
        );
    }
    let stale: Vec<_> = known.iter().filter(|name| !missing.iter().any(|other| other == *name)).collect();
    assert!(stale.is_empty(), "stale rows of NOT_CALLED: {stale:?}");
}

#[test]
fn every_profile_works_and_tells_failures() {
    let functions = calls::traced();
    let cases = cases(&functions);
    let mut sample = Vec::new();
    for (nth, profile) in calls::profiles().into_iter().enumerate() {
        sample.push(Case { profile: profile.clone(), ..Case::default() });
        // Each function once, with another of its codes for each profile. What the crates make of a code no profile
        // changes, and the test above has them all; what follows a failed call may differ.
        let under = |case: &Case| Case { profile: profile.clone(), ..case.clone() };
        sample.extend(cases.chunk_by(|a, b| a.function == b.function).map(|of| under(&of[nth % of.len()])));
    }
    check(&sample);
}

/// Each function fails at its first call, with each code that is documented, and at its last.
fn cases(functions: &BTreeMap<String, Calls>) -> Vec<Case> {
    let documented = calls::documented();
    let mut cases = Vec::new();
    for (function, calls) in functions {
        let codes = table::codes_of(function, &documented);
        let case = |nth, code: &str| Case {
            function: function.clone(),
            nth,
            code: code.to_owned(),
            side: calls.side,
            profile: String::new(),
        };
        cases.extend(codes.iter().map(|code| case(1, code)));
        if calls.count > 1 && !table::AS_OFTEN_AS_IT_SLEEPS.contains(&function.as_str()) {
            cases.push(case(calls.count, codes[0]));
        }
    }
    cases
}

/// Runs all, several at a time, and says everything that is wrong.
fn check(cases: &[Case]) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = Run::of(case);
                    if let Verdict::Wrong(why) = table::judge(case, &run) {
                        wrong.lock().unwrap().push(format!("{case}: {why}\n{run}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
