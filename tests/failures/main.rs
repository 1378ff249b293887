//! Whatever call of DOCA fails, the program gets an error that names the call, the code and the layer to look at;
//! everything can be dropped, nothing is left behind, and nothing hangs. Under every profile.
//!
//! Scenes do everything once. A first run of each, traced, tells which functions it calls and how often; then it runs
//! in one process after the other, and in each one call fails.

#![allow(missing_docs, reason = "a test")]

mod bridge;
mod calls;
mod comch;
#[path = "../../doca-sta/tests/support/mod.rs"]
mod disk;
mod rdma;
mod scenes;
mod table;
mod target;

use calls::{Case, Run, Verdict};
use scenes::SCENES;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Processes at a time: they wait for each other more than they compute.
const AT_A_TIME: usize = 16;

/// Every scene goes well in a process of its own if nothing fails. In such a process it is the scene: it says line by line
/// what failed, then that it is through.
#[test]
fn scene() {
    let Some(name) = scenes::role() else {
        return SCENES.iter().for_each(|scene| drop(calls::traced(scene)));
    };
    calls::limit_this_process();
    calls::log_lines();
    let mut told = |text: &str| calls::tell("told", text);
    let scene = SCENES.iter().find(|scene| scene.name == name).expect("a scene");
    if let Err(error) = (scene.run)(&mut told) {
        calls::tell("value", &error.to_string());
    }
    calls::tell("end", "");
}

/// Every partner can be met, and ends well when it is let go. In a process of its own it is the partner.
#[test]
fn partner() {
    match scenes::role() {
        Some(name) => scenes::be_partner(&name),
        None => scenes::start_partners(),
    }
}

#[test]
fn every_failure_is_told() {
    let cases = cases();
    for (function, _) in table::DIFFERENT {
        let is_struck = cases.iter().any(|case| case.function == *function);
        assert!(is_struck, "{function} is not called: its row is stale");
    }
    println!("{} failures", cases.len());
    check(&cases);
}

/// A call that the crates make and no scene does would never be struck.
#[test]
fn the_scenes_call_everything() {
    let called: BTreeSet<String> = SCENES.iter().flat_map(|scene| calls::traced(scene).into_keys()).collect();
    let fallible = calls::documented();
    let made = SCENES.iter().flat_map(|scene| calls::made_by(scene.crates)).collect::<BTreeSet<_>>();
    let missing: Vec<_> =
        made.iter().filter(|name| fallible.contains_key(*name) && !called.contains(*name)).collect();
    let known: Vec<_> = table::NOT_CALLED.iter().map(|(name, _)| *name).collect();
    for name in &missing {
        assert!(known.contains(&name.as_str()), "{name}: call it in a scene, or say in NOT_CALLED why not");
    }
    let stale: Vec<_> = known.iter().filter(|name| !missing.iter().any(|other| other == *name)).collect();
    assert!(stale.is_empty(), "stale rows of NOT_CALLED: {stale:?}");
}

#[test]
fn every_profile_works_and_tells_failures() {
    let cases = cases();
    let mut sample = Vec::new();
    for (nth, profile) in calls::profiles().into_iter().enumerate() {
        let under = |case: &Case| Case { profile: profile.clone(), ..case.clone() };
        for scene in SCENES.iter().filter(|scene| !scene.indifferent.iter().any(|p| profile.starts_with(p))) {
            sample.push(under(&Case::of(scene)));
            // Each function once, with another of its codes for each profile. What the crates make of a code no profile
            // changes, and the test above has them all; what follows a failed call may differ.
            let own: Vec<&Case> = cases.iter().filter(|case| case.scene.name == scene.name).collect();
            let of_function = own.chunk_by(|a, b| a.function == b.function);
            sample.extend(of_function.map(|of| under(of[nth % of.len()])));
        }
    }
    println!("{} runs", sample.len());
    check(&sample);
}

/// In each scene, each function of its crates fails at its first call, with each code that is documented, and at its
/// last.
fn cases() -> Vec<Case> {
    let documented = calls::documented();
    let mut cases = Vec::new();
    let mut struck = BTreeSet::new();
    for scene in SCENES {
        let made = calls::made_by(scene.crates);
        for (function, count) in calls::traced(scene) {
            if !struck.insert(function.clone()) && !made.contains(&function) {
                continue;
            }
            let codes = table::codes_of(&function, &documented);
            let case = |nth, code: &str| Case {
                function: function.clone(),
                nth,
                code: code.to_owned(),
                ..Case::of(scene)
            };
            cases.extend(codes.iter().map(|code| case(1, code)));
            if count > 1 && !table::AS_OFTEN_AS_TIME_GOES.contains(&(scene.name, function.as_str())) {
                cases.push(case(count, codes[0]));
            }
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
