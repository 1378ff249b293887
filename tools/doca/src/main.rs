//! One command for systems with DOCA: what a binary links, what a device can do, where a function is,
//! whether RDMA works between two machines and how fast.
//!
//! Exit status of every subcommand: 0 all is well, 1 something asked for is not so, 2 the question was not
//! understood or could not be answered.

#![forbid(unsafe_code)]

// Its `print!` and `println!` are those of all modules.
#[macro_use]
extern crate doca_tool_output;

mod api;
#[cfg(feature = "device")]
mod caps;
mod doctor;
mod link_check;
#[cfg(feature = "device")]
mod peer;
#[cfg(feature = "device")]
mod perf;
mod table;
#[cfg(feature = "device")]
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "doca", version, about = "Looks into programs and devices that use NVIDIA DOCA")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Api(api::Args),
    LinkCheck(link_check::Args),
    #[cfg(feature = "device")]
    Caps(caps::Args),
    #[cfg(feature = "device")]
    Perf(perf::Args),
    #[cfg(feature = "device")]
    Verify(verify::Args),
    Doctor(doctor::Args),
}

/// What a subcommand found out, as an exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// All is well.
    Good,
    /// Something asked for is not so.
    Unmet,
}

/// Why a subcommand could not answer.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    doca_tool_output::fail_with(2);
    let cli = Cli::try_parse().unwrap_or_else(|told| match told.use_stderr() {
        true => told.exit(),
        false => doca_tool_output::finish(told.print()),
    });
    let outcome = match cli.command {
        Command::Api(args) => api::run(&args),
        Command::LinkCheck(args) => link_check::run(&args),
        #[cfg(feature = "device")]
        Command::Caps(args) => caps::run(&args),
        #[cfg(feature = "device")]
        Command::Perf(args) => perf::run(&args),
        #[cfg(feature = "device")]
        Command::Verify(args) => verify::run(&args),
        Command::Doctor(args) => doctor::run(&args),
    };
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Unmet) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}
