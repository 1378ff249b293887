//! `doca_socket_relay`: see `--help` and the README of this package.

#![forbid(unsafe_code)]

use doca_tool_output::{print, println};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use socket_relay::comch::{self, Comch, Place};
use socket_relay::fault::{Exit, Fault};
use socket_relay::options::{self, Mode, Options};
use socket_relay::registry::Registry;
use socket_relay::relay::{Handle, Relay};
use socket_relay::smoke;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    doca_tool_output::fail_with(Exit::Internal as u8);
    let args: Vec<String> = std::env::args().skip(1).collect();
    let options = match options::parse(&args) {
        Ok(options) => options,
        Err(fault) => {
            eprintln!("doca_socket_relay: {fault}");
            return ExitCode::from(fault.exit as u8);
        }
    };
    match run(options) {
        Ok(status) => ExitCode::from(status),
        Err(fault) => {
            log::error!(target: socket_relay::LOG, "{fault}");
            // Also where logging is off: an exit status alone explains nothing.
            if log::max_level() < log::LevelFilter::Error {
                eprintln!("doca_socket_relay: {fault}");
            }
            ExitCode::from(fault.exit as u8)
        }
    }
}

fn run(mut options: Options) -> Result<u8, Fault> {
    start_log(&options);
    match options.mode {
        Mode::Help => print!("{}", options::help()),
        Mode::Version => {
            println!("doca_socket_relay {}", env!("CARGO_PKG_VERSION"));
            println!("doca-common {}", doca_version());
        }
        Mode::Smoke(ref smoke) => {
            let settings = &options.settings;
            return Ok(smoke::run(&settings.socket, settings.admin_socket.as_deref(), smoke));
        }
        Mode::Echo => {
            let mut signals = signals(&[SIGTERM, SIGINT])?;
            smoke::serve_echo(&options.settings.socket, move || _ = signals.forever().next())?;
        }
        Mode::Ask(ref command) => {
            let Some(admin) = &options.settings.admin_socket else {
                return Err(Fault::usage("--admin-socket is needed with an abstract socket"));
            };
            let answer = smoke::ask(admin, command, Duration::from_secs(10))?;
            println!("{answer:#}");
            if answer["ok"] == false {
                return Ok(Exit::SaidNo as u8);
            }
        }
        Mode::Run | Mode::Check => {
            options.settings.doca_version = doca_version();
            let place = Place {
                device: options.device.clone(),
                representor: options.representor.clone(),
                service: options.service.clone(),
            };
            let checking = options.mode == Mode::Check;
            options.settings.check(options.role)?;
            let mut transport = Comch::new(options.role, place)?;
            // NVIDIA's relay has no such thing, and --check leaves no trace.
            if !options.settings.strict_nvidia && !checking {
                transport = transport.with_beacon(Registry::of_this_user(), &options.settings);
            }
            let relay = Relay::new(options.settings, transport)?;
            if checking {
                println!("all is well");
                return Ok(Exit::Ok as u8);
            }
            listen_to_signals(relay.handle())?;
            return relay.run().map(|outcome| outcome.exit() as u8);
        }
    }
    Ok(Exit::Ok as u8)
}

fn doca_version() -> String {
    doca_common::version::version().loaded.map_or_else(|| "unknown".to_owned(), |version| version.to_string())
}

fn no_signals(error: std::io::Error) -> Fault {
    Fault::internal(format!("cannot listen to signals: {error}"))
}

fn signals(which: &[i32]) -> Result<Signals, Fault> {
    Signals::new(which).map_err(no_signals)
}

fn listen_to_signals(handle: Handle) -> Result<(), Fault> {
    let mut signals = signals(&[SIGTERM, SIGINT, SIGUSR1])?;
    let listen = move || {
        for signal in signals.forever() {
            if signal == SIGUSR1 { handle.report() } else { handle.drain() }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(no_signals)?;
    Ok(())
}

struct Log {
    color: bool,
}

fn start_log(options: &Options) {
    let log = Log { color: std::io::stderr().is_terminal() };
    if log::set_boxed_logger(Box::new(log)).is_ok()
        && let Some(filter) = socket_relay::level_filter(options.log_level)
    {
        log::set_max_level(filter);
    }
    if let Some(filter) = socket_relay::level_filter(options.sdk_log_level)
        && matches!(options.mode, Mode::Run | Mode::Check)
        && let Err(error) = doca_common::log::route_sdk(filter)
    {
        log::warn!(target: socket_relay::LOG, "the SDK's log stays where it is: {error}");
    }
}

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // The SDK's lines were chosen by its own level, but for those of a question that may well find nobody.
        match metadata.target() {
            "doca" if comch::is_asking() => log::max_level() >= log::LevelFilter::Debug,
            "doca" => true,
            _ => metadata.level() <= log::max_level(),
        }
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let (word, color) = match record.level() {
            log::Level::Error => ("ERR", "\x1b[31m"),
            log::Level::Warn => ("WRN", "\x1b[33m"),
            log::Level::Info => ("INF", ""),
            log::Level::Debug => ("DBG", ""),
            log::Level::Trace => ("TRC", ""),
        };
        let (on, off) = if self.color && !color.is_empty() { (color, "\x1b[0m") } else { ("", "") };
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // One write a line. Where stderr is closed nobody can be told.
        _ = std::io::stderr().write_all(
            format!(
                "[{}.{:03}][{word}][{}] {on}{}{off}\n",
                since.as_secs(),
                since.subsec_millis(),
                record.target(),
                record.args()
            )
            .as_bytes(),
        );
    }

    fn flush(&self) {}
}
