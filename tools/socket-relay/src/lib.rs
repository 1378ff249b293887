//! Moves an AF_UNIX application to the DPU without a change to it or its clients.

#![forbid(unsafe_code)]

pub mod beacon;
pub mod comch;
pub mod fault;
pub mod frame;
pub mod local;
pub mod mux;
pub mod options;
pub mod registry;
pub mod relay;
pub mod settings;
pub mod smoke;
pub mod socket_file;
pub mod transport;

/// The category of all log lines, as NVIDIA's tool names it.
pub const LOG: &str = "SOCKET_RELAY";

/// What a level of DOCA's numbers lets through: 10, 20, … 70.
pub fn level_filter(number: u32) -> Option<log::LevelFilter> {
    Some(match number {
        10 => log::LevelFilter::Off,
        20 | 30 => log::LevelFilter::Error,
        40 => log::LevelFilter::Warn,
        50 => log::LevelFilter::Info,
        60 => log::LevelFilter::Debug,
        70 => log::LevelFilter::Trace,
        _ => return None,
    })
}
