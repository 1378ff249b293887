//! What a target says of itself when no initiator can be served: the first precondition that does not hold, one switch of the
//! topology at a time and several.

mod support;

use doca_sim_initiator::Target as Way;
use doca_sta::cm::Listener;
use doca_sta::diagnosis::Precondition;
use nvme_wire::{Nqn, Status};
use std::time::Duration;
use support::{ADDRESS, alone, disk, host, start, way};

fn named(switch: &str) -> String {
    all_named(&[switch])
}

/// A topology with these switched off.
fn all_named(switches: &[&str]) -> String {
    let off: Vec<_> = switches.iter().map(|switch| format!(r#""{switch}": false"#)).collect();
    format!(r#"{{ "extends": "default", "host": {{ "mlx5_0": {{ "sta": {{ {} }} }} }} }}"#, off.join(", "))
}

/// The precondition that a target which does not start names.
fn refused() -> Precondition {
    let disk = disk();
    let failure = start(&disk).unwrap_err();
    failure.finding.clone().unwrap_or_else(|| panic!("{failure}")).precondition
}

#[test]
fn a_missing_substrate_is_named() {
    alone("a_missing_substrate_is_named", &named("substrate"), || {
        assert_eq!(refused(), Precondition::Libraries)
    });
}

#[test]
fn an_unsupported_device_is_named() {
    alone("an_unsupported_device_is_named", &named("supported"), || {
        assert_eq!(refused(), Precondition::Capability)
    });
}

#[test]
fn missing_privileges_are_named() {
    alone("missing_privileges_are_named", &named("permitted"), || {
        assert_eq!(refused(), Precondition::Privileges)
    });
}

#[test]
fn libraries_are_named_before_privileges_and_steering() {
    let topology = all_named(&["substrate", "permitted", "steering"]);
    alone("libraries_are_named_before_privileges_and_steering", &topology, || {
        assert_eq!(refused(), Precondition::Libraries)
    });
}

#[test]
fn capability_is_named_before_privileges_and_steering() {
    let topology = all_named(&["supported", "permitted", "steering"]);
    alone("capability_is_named_before_privileges_and_steering", &topology, || {
        assert_eq!(refused(), Precondition::Capability)
    });
}

#[test]
fn privileges_are_named_before_the_listener() {
    alone("privileges_are_named_before_the_listener", &named("permitted"), || {
        let _taken = Listener::bind(ADDRESS.parse().unwrap()).unwrap();
        assert_eq!(refused(), Precondition::Privileges)
    });
}

#[test]
fn a_listener_that_cannot_be_is_named_before_steering() {
    alone("a_listener_that_cannot_be_is_named_before_steering", &named("steering"), || {
        let _taken = Listener::bind(ADDRESS.parse().unwrap()).unwrap();
        assert_eq!(refused(), Precondition::Listener)
    });
}

#[test]
fn hosts_that_are_all_refused_are_named_last() {
    alone("hosts_that_are_all_refused_are_named_last", "", || {
        let disk = disk();
        let mut target = start(&disk).unwrap();
        let stranger = std::thread::spawn(|| {
            let way = Way { subnqn: Nqn::new("nqn.2014-08.org.example:none").unwrap(), ..way() };
            host().open(&way).map(|_| ()).unwrap_err().status()
        });
        while !stranger.is_finished() {
            target.run_for(Duration::from_millis(5)).unwrap();
        }
        assert!(stranger.join().unwrap().is_some_and(|status| status.is(Status::CONNECT_INVALID_PARAMETERS)));
        assert_eq!(target.diagnosis().unwrap().precondition, Precondition::Initiator);
        target.stop().unwrap();
    });
}

#[test]
fn missing_steering_is_named_and_points_to_flow() {
    alone("missing_steering_is_named_and_points_to_flow", &named("steering"), || {
        let disk = disk();
        let mut target = start(&disk).unwrap();
        assert_eq!(target.diagnosis().unwrap().precondition, Precondition::Listener, "nobody came yet");
        let host = std::thread::spawn(|| {
            let way = Way { limit: Duration::from_secs(2), ..way() };
            host().open(&way).map(|_| ()).unwrap_err().to_string()
        });
        while !host.is_finished() {
            target.run_for(Duration::from_millis(20)).unwrap();
        }
        println!("{}", host.join().unwrap());
        let finding = target.diagnosis().unwrap();
        assert_eq!(finding.precondition, Precondition::Steering);
        assert!(finding.to_string().contains("DOCA Flow"), "{finding}");
        target.stop().unwrap();
    });
}
