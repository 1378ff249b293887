//! DOCA's own messages in the `log` facade, under the target `doca`.

use crate::error::Result;
use crate::raw;
use ::log::{Level, LevelFilter, Record};
use std::sync::Mutex;

/// `enum doca_log_level`
const LEVELS: &[(LevelFilter, u32)] = &[
    (LevelFilter::Off, doca_sys::doca_log_level::DOCA_LOG_LEVEL_DISABLE.0),
    (LevelFilter::Error, doca_sys::doca_log_level::DOCA_LOG_LEVEL_ERROR.0),
    (LevelFilter::Warn, doca_sys::doca_log_level::DOCA_LOG_LEVEL_WARNING.0),
    (LevelFilter::Info, doca_sys::doca_log_level::DOCA_LOG_LEVEL_INFO.0),
    (LevelFilter::Debug, doca_sys::doca_log_level::DOCA_LOG_LEVEL_DEBUG.0),
    (LevelFilter::Trace, doca_sys::doca_log_level::DOCA_LOG_LEVEL_TRACE.0),
];

/// How DOCA marks the level of a line.
const TAGS: &[(&str, Level)] = &[
    ("CRT", Level::Error),
    ("CRIT", Level::Error),
    ("ERR", Level::Error),
    ("ERROR", Level::Error),
    ("WRN", Level::Warn),
    ("WARN", Level::Warn),
    ("INF", Level::Info),
    ("INFO", Level::Info),
    ("DBG", Level::Debug),
    ("DEBUG", Level::Debug),
    ("TRC", Level::Trace),
    ("TRACE", Level::Trace),
];

/// Sends the messages of DOCA's libraries to the program's logger, from `level` on. The first call adds the route
/// for the rest of the process; later calls change nothing.
///
/// The logger runs wherever DOCA logs, also inside its calls, so it must not call DOCA.
///
/// # Errors
///
/// `NO_MEMORY`, `NOT_SUPPORTED`, [`Refusal::Version`](crate::Refusal::Version).
#[doc(alias = "doca_log_backend_create_with_buf_sdk")]
#[doc(alias = "doca_log_backend_set_sdk_level")]
pub fn route_sdk(level: LevelFilter) -> Result<()> {
    static ROUTED: Mutex<bool> = Mutex::new(false);
    let mut routed = ROUTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !*routed {
        let number = LEVELS.iter().find(|(filter, _)| *filter == level).map_or(0, |(_, number)| *number);
        raw::log::route(number)?;
        *routed = true;
    }
    Ok(())
}

/// Gives one line of DOCA to the logger.
pub(crate) fn forward(line: &str) {
    let (level, message) = parse(line);
    ::log::logger()
        .log(&Record::builder().level(level).target("doca").args(format_args!("{message}")).build());
}

/// Level and message of a line such as `[12:34:56:789012][4242][DOCA][ERR][doca_dev.cpp:120][open] text`. What is
/// not marked is a warning.
fn parse(line: &str) -> (Level, &str) {
    let line = line.trim();
    let (mut rest, mut level) = (line, None);
    while let Some((field, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if level.is_none() {
            level = TAGS.iter().find(|(tag, _)| *tag == field).map(|(_, level)| *level);
        }
        rest = after;
    }
    match level {
        Some(level) => (level, rest.trim_start_matches(':').trim_start()),
        None => (Level::Warn, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_shapes_of_lines() {
        let new = "[12:34:56:789012][4242][DOCA][ERR][doca_dev.cpp:120][open] cannot open\n";
        assert_eq!(parse(new), (Level::Error, "cannot open"));
        let old = "[12:34:56:789012][DOCA][INF][CORE:12]: started";
        assert_eq!(parse(old), (Level::Info, "started"));
        assert_eq!(parse("something else"), (Level::Warn, "something else"));
        assert_eq!(parse("[no level] text"), (Level::Warn, "[no level] text"));
    }
}
