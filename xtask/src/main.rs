//! The commands of this repository, run as `cargo sim …`.
//!
//! ```text
//! install   builds the software SDK into a prefix: engine, forwarders, headers, modules
//!   |
//! sdk       the variables that make a build find that prefix
//!   |
//! demo, suite, abi, bench, and any cargo command
//! ```

mod abi;
mod asan;
mod bench;
mod clang;
mod conformance;
mod coverage;
mod declaration;
mod demo;
mod demo_relay;
mod demo_sta;
mod elf;
mod engine;
mod forwarders;
mod headers;
mod install;
mod library;
mod modules;
mod oldest;
mod place;
mod process;
mod profiles;
mod provision;
mod rdmacm;
mod release;
mod sdk;
mod suite;
mod table;

use std::process::ExitCode;

/// What every step returns: the error is a sentence for the person at the terminal.
type Result<T = ()> = std::result::Result<T, String>;

const HELP: &str = "\
Commands around the software DOCA SDK. `cargo sim COMMAND`:

  demo [rdma]         build SDK and examples, let two processes exchange a message over DOCA RDMA
  demo relay          let socat on the host talk with socat on the DPU through the socket relay
  demo sta            start a storage target on a file, let a host write it, read it back, and drive load
  test                run the whole suite: headers, ABI, C programs, cargo test
  test ARGS           cargo test ARGS
  abi                 only compare headers and libraries with the tables in abi/
  conformance [NAME]  only compile and run the C programs in doca-sim/conformance
  profiles [NAME]     only run the tests of the safe crates under each profile of the simulator
  oldest              only build for the oldest supported release, and try the libraries as it declares them
  asan [ARGS]         tests of lifecycles under AddressSanitizer, simulator included; or cargo test ARGS
  coverage [--check]  write COVERAGE.md from tables, sources and the suite's trace; or check it
  bench NAME [ARGS]   run a benchmark: cost, latency, sta, …
  env                 print shell `export` lines; use as: eval \"$(cargo sim env)\"
      --rdmacm                programs find the SDK's librdmacm (connection management only) too
  install             build the SDK into a prefix (default: target/doca-sim)
      --prefix DIR            where to; the result can be moved
      --doca-version 3.3|3.0  which release to look like (default 3.3)
      --side host|dpu         which side doca_build_config.h names (default host)
  run, build, check, clippy, doc ARGS
                      the cargo command of that name, with the SDK's variables
  -- COMMAND ARGS     any other cargo command, with the SDK's variables
  --help              this text

What a command needs and does not find (libclang, pkg-config, RDMA headers) it installs with apt-get
when it may, else it prints the command that does.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<ExitCode> {
    let Some((command, rest)) = args.split_first() else {
        eprint!("{HELP}");
        return Ok(ExitCode::FAILURE);
    };
    match command.as_str() {
        "--help" | "-h" | "help" => print!("{HELP}"),
        "install" => install::command(rest)?,
        "env" => sdk::print_exports(rest)?,
        "demo" => demo::command(rest)?,
        "test" if rest.is_empty() => suite::run()?,
        "abi" => abi::command(rest)?,
        "asan" => asan::command(rest)?,
        "conformance" => conformance::command(rest)?,
        "oldest" => oldest::command(rest)?,
        "profiles" => profiles::command(rest)?,
        "coverage" => coverage::command(rest)?,
        "bench" => return bench::command(rest),
        "test" | "run" | "build" | "check" | "clippy" | "doc" => return sdk::cargo(args),
        "--" if !rest.is_empty() => return sdk::cargo(rest),
        "--" => return Err("after `--` comes a cargo command, as in `cargo sim -- tree`".to_owned()),
        other => return Err(format!("unknown command `{other}`; `cargo sim --help` lists them")),
    }
    Ok(ExitCode::SUCCESS)
}
