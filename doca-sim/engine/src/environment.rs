//! Variables that nobody can follow. A wrong word or a wrong name would else pass in silence, and a test that
//! relies on it would test nothing.
//!
//! Sides, topologies, faults, profiles and trace files are looked at where they are used.

use crate::log::{self, Level};
use std::ffi::OsString;

/// Whether strict mode is asked for; anything but `1` does not.
pub const STRICT: &str = "DOCA_SIM_STRICT";
/// The internal point at which this process ends.
pub const KILL_AT: &str = "DOCA_SIM_KILL_AT";
/// Levels of the program's messages and of the SDK's.
pub const LOG_LEVELS: [&str; 2] = ["DOCA_LOG_LEVEL", "DOCA_LOG_LEVEL_SDK"];

/// What all variables of the simulator begin with.
const PREFIX: &str = "DOCA_SIM_";
const KNOWN: [&str; 9] =
    ["DIR", "FAULTS", "KILL_AT", "PROFILE", "QUIET", "SIDE", "STRICT", "TOPOLOGY", "TRACE"];

/// Logs what is wrong. To be called once.
pub fn check() {
    for mistake in std::env::vars_os().filter_map(mistake) {
        log::error!("{mistake}");
    }
}

/// What is wrong with a variable. An empty one is as good as none.
fn mistake((name, value): (OsString, OsString)) -> Option<String> {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    if let Some(rest) = name.strip_prefix(PREFIX)
        && !KNOWN.contains(&rest)
    {
        return Some(format!(
            "{name} is no variable of the simulator; after {PREFIX} come {}",
            KNOWN.join(", ")
        ));
    }
    let wanted = match &*name {
        _ if value.is_empty() => return None,
        STRICT if !["0", "1"].contains(&&*value) => "1, or 0 for off".to_owned(),
        KILL_AT if kill_at(&value).is_none() => "a number from 1 on".to_owned(),
        name if LOG_LEVELS.contains(&name) && Level::parse(&value).is_none() => {
            format!("{}, or 10 to 70", Level::words().collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    };
    Some(format!("{name} is `{value}`, which is ignored; it can be {wanted}"))
}

/// The point that a value names.
pub fn kill_at(value: &str) -> Option<i64> {
    value.parse().ok().filter(|&point| point > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, value: &str) -> Option<String> {
        mistake((name.into(), value.into()))
    }

    #[test]
    fn what_can_be_followed_is_no_mistake() {
        for (name, value) in [
            ("DOCA_SIM_STRICT", "1"),
            ("DOCA_SIM_STRICT", "0"),
            ("DOCA_SIM_STRICT", ""),
            ("DOCA_SIM_KILL_AT", "17"),
            ("DOCA_SIM_DIR", "anything"),
            ("DOCA_LOG_LEVEL", "DEBUG"),
            ("DOCA_LOG_LEVEL_SDK", "40"),
            ("DOCA_LOG_LEVEL_SDK", ""),
            ("DOCA_DIR", "elsewhere"),
        ] {
            assert_eq!(said(name, value), None, "{name}={value}");
        }
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_right() {
        for (name, value, right) in [
            ("DOCA_SIM_STRICT", "yes", "`yes`, which is ignored; it can be 1, or 0 for off"),
            ("DOCA_SIM_KILL_AT", "0", "it can be a number from 1 on"),
            ("DOCA_LOG_LEVEL", "loud", "disable, crit, error, warning, info, debug, trace, or 10 to 70"),
            ("DOCA_LOG_LEVEL_SDK", "35", "or 10 to 70"),
            ("DOCA_SIM_FAULT", "fail=send:1:IO_FAILED", "DOCA_SIM_FAULT is no variable of the simulator"),
        ] {
            let said = said(name, value).unwrap_or_default();
            assert!(said.starts_with(name) && said.contains(right), "{name}={value}: {said}");
        }
    }

    #[test]
    fn each_variable_for_users_is_known() {
        let readme = include_str!("../../../README.md");
        let rows = readme.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        let variables: Vec<&str> = rows.filter_map(|name| name.strip_prefix(PREFIX)).collect();
        assert!(variables.len() > 5, "{variables:?}");
        assert!(variables.iter().all(|name| KNOWN.contains(name)), "{variables:?}");
    }
}
