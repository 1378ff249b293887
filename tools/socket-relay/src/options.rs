//! The command line and its JSON file: NVIDIA's flags, and more.

use crate::fault::{Cause, Exit, Fault};
use crate::mux::Role;
use crate::settings::{ListenWhen, ProbeApp, Settings, UseFastPath};
use crate::smoke;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Objects of DOCA's JSON files; the keys may also stand at the top.
const SECTIONS: [&str; 2] = ["doca_general_flags", "doca_program_flags"];

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Relay.
    Run,
    /// Only see whether it could.
    Check,
    /// Ask a running relay.
    Ask(String),
    /// Test a running pair.
    Smoke(smoke::Options),
    /// Serve the smoke test on the DPU.
    Echo,
    /// Print the usage.
    Help,
    /// Print the versions.
    Version,
}

/// All that the command line says.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is to be done.
    pub mode: Mode,
    /// For the relay.
    pub settings: Settings,
    /// Which end.
    pub role: Role,
    /// Name of the Comch service.
    pub service: String,
    /// PCI address of the device.
    pub device: String,
    /// DPU: PCI address of the representor.
    pub representor: Option<String>,
    /// DOCA's number.
    pub log_level: u32,
    /// DOCA's number, for the SDK.
    pub sdk_log_level: u32,
}

/// What a flag takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Text,
    Number,
}

struct Flag {
    long: &'static str,
    short: Option<char>,
    kind: Kind,
    what: &'static str,
}

const fn flag(long: &'static str, short: Option<char>, kind: Kind, what: &'static str) -> Flag {
    Flag { long, short, kind, what }
}

/// The flags of all DOCA programs.
const DOCA: &[Flag] = &[
    flag("help", Some('h'), Kind::Nothing, "print this text"),
    flag("version", Some('v'), Kind::Nothing, "print the versions of relay and DOCA"),
    flag(
        "log-level",
        Some('l'),
        Kind::Number,
        "10 nothing, 20 critical, 30 error, 40 warning, 50 info (default), 60 debug, 70 trace",
    ),
    flag("sdk-log-level", None, Kind::Number, "the same for the SDK; default 40"),
    flag(
        "json",
        Some('j'),
        Kind::Text,
        "read flags from a JSON file, by their long names; the command line wins",
    ),
];

/// The flags of NVIDIA's relay.
const NVIDIA: &[Flag] = &[
    flag(
        "socket",
        Some('s'),
        Kind::Text,
        "path of the AF_UNIX socket: bound on the host, connected to on the DPU; needed on both",
    ),
    flag("cc-name", Some('n'), Kind::Text, "name of the Comch service; needed, and the same, on both"),
    flag("pci-addr", Some('p'), Kind::Text, "PCI address of this side's DOCA device; needed on both"),
    flag(
        "rep-pci",
        Some('r'),
        Kind::Text,
        "PCI address of the host function's representor; DPU only, and needed there",
    ),
];

/// Ours.
const OURS: &[Flag] = &[
    flag("role", None, Kind::Text, "host or dpu; default: dpu with --rep-pci, else host"),
    flag("max-clients", None, Kind::Number, "clients at a time; default 512"),
    flag(
        "window",
        None,
        Kind::Number,
        "bytes that each direction of a client may be ahead of its reader; default 65536; four times as many, as far \
         as --memory-cap goes, for readers that take all that comes",
    ),
    flag("memory-cap", None, Kind::Number, "bytes that all windows of this side may take; default 67108864"),
    flag("socket-mode", None, Kind::Text, "rights of the host's socket, octal; default 0660"),
    flag("socket-group", None, Kind::Text, "group of the host's socket, name or number"),
    flag(
        "listen-when",
        None,
        Kind::Text,
        "session (default): the host's socket exists while the DPU relay answers; always",
    ),
    flag(
        "drain-timeout",
        None,
        Kind::Number,
        "seconds that streams may take to end after SIGTERM; default 30",
    ),
    flag("conn-retry", None, Kind::Number, "attempts in a row to reach the DPU; default -1: for ever"),
    flag("heartbeat", None, Kind::Number, "milliseconds of silence until a ping; default 1000"),
    flag(
        "dead-after",
        None,
        Kind::Number,
        "milliseconds of silence until the other side counts as dead; default 5000",
    ),
    flag(
        "fast-path",
        None,
        Kind::Text,
        "auto (default): bytes go over Comch's producers and consumers where both sides can; off; require: no session \
         without",
    ),
    flag(
        "probe-app",
        None,
        Kind::Text,
        "start (default), periodic or off: whether the DPU relay tries its application with an empty connection",
    ),
    flag(
        "strict-nvidia",
        None,
        Kind::Nothing,
        "NVIDIA's published limits: 512 clients, only the host ends a connection, FIN ends both directions",
    ),
    flag(
        "hold",
        None,
        Kind::Nothing,
        "serve one client until --smoke passed or the admin socket admits the rest",
    ),
    flag(
        "admin-socket",
        None,
        Kind::Text,
        "default: the socket's path with .admin; `--ask help` lists its commands",
    ),
    flag(
        "allow-abstract",
        None,
        Kind::Nothing,
        "allow a host socket that begins with @; everybody may connect to it",
    ),
    flag("busy-poll", None, Kind::Nothing, "do not sleep"),
    flag("check", None, Kind::Nothing, "validate and exit"),
    flag("status", None, Kind::Nothing, "print the status of a running relay (--socket or --admin-socket)"),
    flag("ask", None, Kind::Text, "send a command to a running relay's admin socket"),
    flag("echo", None, Kind::Nothing, "serve --socket as the far end of the smoke test, on the DPU"),
    flag(
        "smoke",
        None,
        Kind::Nothing,
        "test the way from the host's --socket to an --echo; exit status: see below",
    ),
    flag("compare", None, Kind::Text, "smoke: the same on this socket, without the relay, beside it"),
    flag("bytes", None, Kind::Number, "smoke: bytes per round trip; default 4096"),
    flag("count", None, Kind::Number, "smoke: round trips; default 100"),
    flag("clients", None, Kind::Number, "smoke: clients at once; default 8"),
    flag("timeout", None, Kind::Number, "smoke: seconds for each step; default 5"),
    flag("steps", None, Kind::Number, "smoke: stop after this step; default 8"),
];

/// Words that may come first, and the flag that each stands for.
const WORDS: [(&str, Option<&str>); 5] = [
    ("run", None),
    ("status", Some("status")),
    ("smoke", Some("smoke")),
    ("echo", Some("echo")),
    ("version", Some("version")),
];

fn all() -> impl Iterator<Item = &'static Flag> {
    DOCA.iter().chain(NVIDIA).chain(OURS)
}

/// The usage.
pub fn help() -> String {
    let mut text = "Usage: doca_socket_relay [run|status|smoke|echo|version] [DOCA Flags] [Program Flags]\n\n\
        Relays an AF_UNIX stream socket between a host and its DPU over DOCA Comch. Both ends must be this relay: it\n\
        takes the command line of NVIDIA's doca_socket_relay, but does not speak its protocol.\n"
        .to_owned();
    for (title, flags) in [("DOCA Flags", DOCA), ("Program Flags", NVIDIA), ("Flags of this relay", OURS)] {
        _ = writeln!(text, "\n{title}:");
        for Flag { long, short, kind, what } in flags {
            let short = short.map_or_else(|| "   ".to_owned(), |c| format!("-{c},"));
            let value = match kind {
                Kind::Nothing => "",
                Kind::Text => " <text>",
                Kind::Number => " <n>",
            };
            _ = writeln!(text, "  {short} {:24} {what}", format!("--{long}{value}"));
        }
    }
    text += "\nExit status:\n";
    for (exit, what) in Exit::ALL {
        _ = writeln!(text, "  {:3} {what}", exit as u8);
    }
    text += "and of the smoke test: 10 + class of the fault, or, where the cause is known,\n";
    for (cause, what) in Cause::ALL {
        _ = writeln!(text, "  {:3} {what}", cause as u8);
    }
    text += "Fatal log lines name the class of the fault, 1 to 7, as NVIDIA's guide counts them. SIGTERM and SIGINT drain, a\n\
        second one ends at once; SIGUSR1 logs counters and connections.\n";
    text
}

/// The longest time, a year in seconds: a deadline can be counted from it.
const LONGEST: u64 = 365 * 24 * 60 * 60;

/// Bytes of a round trip at most: they are in memory.
const MOST_BYTES: usize = 1 << 30;

/// Values by long name.
type Values = BTreeMap<&'static str, String>;

/// Reads the command line, without the program's name.
///
/// # Errors
/// Which flag is wrong, and how.
pub fn parse(args: &[String]) -> Result<Options, Fault> {
    let mut given = Values::new();
    let mut rest = args.iter().map(String::as_str);
    if let Some((_, flag)) = args.first().and_then(|first| WORDS.iter().find(|(word, _)| word == first)) {
        rest.next();
        given.extend(flag.map(|name| (name, String::new())));
    }
    while let Some(arg) = rest.next() {
        let (flag, inline) = find(arg)?;
        let value = match (flag.kind, inline) {
            (Kind::Nothing, None) => String::new(),
            (Kind::Nothing, Some(_)) => {
                return Err(Fault::usage(format!("--{} takes no value", flag.long)));
            }
            (_, Some(value)) => value.to_owned(),
            (_, None) => match rest.next() {
                Some(value) => value.to_owned(),
                None => return Err(Fault::usage(format!("--{} needs a value", flag.long))),
            },
        };
        given.insert(flag.long, value);
    }
    let mut values = match given.get("json") {
        Some(path) => read_json(path)?,
        None => Values::new(),
    };
    values.extend(given);
    Values::options(values)
}

fn find(arg: &str) -> Result<(&'static Flag, Option<&str>), Fault> {
    let unknown = || Fault::usage(format!("unknown argument `{arg}`; --help lists the flags"));
    if let Some(name) = arg.strip_prefix("--") {
        let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        return Ok((all().find(|flag| flag.long == name).ok_or_else(unknown)?, value));
    }
    let mut letters = arg.strip_prefix('-').ok_or_else(unknown)?.chars();
    let letter = letters.next().ok_or_else(unknown)?;
    let flag = all().find(|flag| flag.short == Some(letter)).ok_or_else(unknown)?;
    let value = Some(letters.as_str()).filter(|value| !value.is_empty());
    Ok((flag, value))
}

fn read_json(path: &str) -> Result<Values, Fault> {
    let fail = |what: String| Fault::usage(format!("--json {path}: {what}"));
    let text = std::fs::read_to_string(path).map_err(|e| fail(format!("IO_FAILED: {e}")))?;
    let Value::Object(top) = serde_json::from_str(&text).map_err(|e| fail(format!("IO_FAILED: {e}")))? else {
        return Err(fail("INVALID_VALUE: not an object".to_owned()));
    };
    let mut values = Values::new();
    let mut open: Vec<(String, Value)> = top.into_iter().collect();
    while let Some((key, value)) = open.pop() {
        if SECTIONS.contains(&key.as_str()) {
            let Value::Object(section) = value else {
                return Err(fail(format!("INVALID_VALUE: {key} is not an object")));
            };
            open.extend(section.into_iter().filter(|(key, _)| !SECTIONS.contains(&key.as_str())));
            continue;
        }
        let known =
            all().find(|flag| flag.long == key && !matches!(key.as_str(), "json" | "help" | "version"));
        let Some(flag) = known else { return Err(fail(format!("NOT_SUPPORTED: unknown key {key:?}"))) };
        let text = match (flag.kind, value) {
            (Kind::Nothing, Value::Bool(true)) => String::new(),
            (Kind::Nothing, Value::Bool(false)) => continue,
            (Kind::Text, Value::String(text)) => text,
            (Kind::Number, Value::Number(number)) => number.to_string(),
            (_, other) => return Err(fail(format!("INVALID_VALUE: {key} cannot be {other}"))),
        };
        values.insert(flag.long, text);
    }
    Ok(values)
}

/// A type of number that a flag takes.
trait Number: TryFrom<i128> {
    const LEAST: i128;
    const MOST: i128;
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Number for $kind {
            const LEAST: i128 = <$kind>::MIN as i128;
            const MOST: i128 = <$kind>::MAX as i128;
        })*
    };
}

numbers!(u32, u64, usize, i64);

/// What turns collected values into options.
trait Take {
    fn number<T: Number>(&self, name: &'static str, default: T) -> Result<T, Fault>;
    fn within<T>(&self, name: &'static str, default: T, range: RangeInclusive<T>) -> Result<T, Fault>
    where
        T: Number + PartialOrd + Display;
    fn choice<T: Copy>(&self, name: &'static str, choices: &[(&str, T)], default: T) -> Result<T, Fault>;
    fn options(self) -> Result<Options, Fault>;
}

impl Take for Values {
    fn number<T: Number>(&self, name: &'static str, default: T) -> Result<T, Fault> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let number = text.parse::<i128>().ok().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| {
            let text = format!("--{name}: `{text}` is not a whole number from {} to {}", T::LEAST, T::MOST);
            Fault::usage(text)
        })
    }

    fn within<T>(&self, name: &'static str, default: T, range: RangeInclusive<T>) -> Result<T, Fault>
    where
        T: Number + PartialOrd + Display,
    {
        let number = self.number(name, default)?;
        if range.contains(&number) {
            return Ok(number);
        }
        let (least, most) = range.into_inner();
        Err(Fault::usage(format!("--{name}: `{number}` is not a whole number from {least} to {most}")))
    }

    fn choice<T: Copy>(&self, name: &'static str, choices: &[(&str, T)], default: T) -> Result<T, Fault> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let found = choices.iter().find(|(word, _)| word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            Fault::usage(format!("--{name}: `{text}` is none of {}", words.join(", ")))
        })
    }

    fn options(self) -> Result<Options, Fault> {
        let has = |name: &'static str| self.contains_key(name);
        let text = |name: &'static str| self.get(name).cloned();
        let role = if has("rep-pci") { Role::Dpu } else { Role::Host };
        let role = self.choice("role", &[("host", Role::Host), ("dpu", Role::Dpu)], role)?;
        let socket = text("socket").unwrap_or_default();
        let defaults = Settings::new(socket.clone());
        let mode_text = text("socket-mode").unwrap_or_else(|| "0660".to_owned());
        let socket_mode = u32::from_str_radix(&mode_text, 8).ok().filter(|mode| *mode <= 0o777);
        let retry = self.within("conn-retry", -1, -1..=i64::from(u32::MAX))?;
        let millis = |name, default: Duration| -> Result<Duration, Fault> {
            let default = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
            Ok(Duration::from_millis(self.within(name, default, 1..=1000 * LONGEST)?))
        };
        let admin_socket = match text("admin-socket") {
            Some(path) => Some(PathBuf::from(path)),
            None if socket.is_empty() || socket.starts_with('@') => None,
            None => Some(PathBuf::from(format!("{socket}.admin"))),
        };
        let settings = Settings {
            max_clients: self.number("max-clients", defaults.max_clients)?,
            window: self.number("window", defaults.window)?,
            memory_cap: self.number("memory-cap", defaults.memory_cap)?,
            socket_mode: socket_mode.ok_or_else(|| {
                Fault::usage(format!("--socket-mode: `{mode_text}` are no rights in octal"))
            })?,
            socket_group: text("socket-group"),
            listen_when: self.choice(
                "listen-when",
                &[("session", ListenWhen::Session), ("always", ListenWhen::Always)],
                defaults.listen_when,
            )?,
            drain_timeout: Duration::from_secs(self.within("drain-timeout", 30, 0..=LONGEST)?),
            conn_retry: u32::try_from(retry).ok(),
            heartbeat: millis("heartbeat", defaults.heartbeat)?,
            dead_after: millis("dead-after", defaults.dead_after)?,
            fast_path: self.choice(
                "fast-path",
                &[("auto", UseFastPath::Auto), ("off", UseFastPath::Off), ("require", UseFastPath::Require)],
                defaults.fast_path,
            )?,
            probe_app: self.choice(
                "probe-app",
                &[("start", ProbeApp::Start), ("periodic", ProbeApp::Periodic), ("off", ProbeApp::Off)],
                defaults.probe_app,
            )?,
            strict_nvidia: has("strict-nvidia"),
            hold: has("hold"),
            admin_socket,
            allow_abstract: has("allow-abstract"),
            busy_poll: has("busy-poll"),
            ..defaults
        };
        let smoke = smoke::Options {
            bytes: self.within("bytes", 4096, 1..=MOST_BYTES)?,
            count: self.within("count", 100, 1..=u32::MAX)?,
            clients: self.within("clients", 8, 1..=u32::MAX)?,
            timeout: Duration::from_secs(self.within("timeout", 5, 1..=LONGEST)?),
            steps: self.within("steps", 8, 1..=8)?,
            compare: text("compare").map(PathBuf::from),
        };
        let mode = if has("help") {
            Mode::Help
        } else if has("version") {
            Mode::Version
        } else if has("smoke") {
            Mode::Smoke(smoke)
        } else if has("echo") {
            Mode::Echo
        } else if let Some(command) = text("ask").or_else(|| has("status").then(|| "status".to_owned())) {
            Mode::Ask(command)
        } else if has("check") {
            Mode::Check
        } else {
            Mode::Run
        };
        let mut log_level = self.number("log-level", 50)?;
        if !has("log-level")
            && let Some(level) = std::env::var("DOCA_LOG_LEVEL").ok().and_then(|text| text.parse().ok())
        {
            log_level = level;
        }
        let sdk_log_level = self.number("sdk-log-level", 40)?;
        for (name, level) in [("log-level", log_level), ("sdk-log-level", sdk_log_level)] {
            if crate::level_filter(level).is_none() {
                return Err(Fault::usage(format!("--{name}: {level} is none of 10, 20, 30, 40, 50, 60, 70")));
            }
        }
        let options = Options {
            service: text("cc-name").unwrap_or_default(),
            device: text("pci-addr").unwrap_or_default(),
            representor: text("rep-pci"),
            mode,
            settings,
            role,
            log_level,
            sdk_log_level,
        };
        options.require(&self)?;
        Ok(options)
    }
}

impl Options {
    /// Refuses what lacks a flag that is needed.
    fn require(&self, values: &Values) -> Result<(), Fault> {
        let needed: &[&str] = match self.mode {
            Mode::Help | Mode::Version => &[],
            Mode::Ask(_) if values.contains_key("admin-socket") => &[],
            Mode::Ask(_) | Mode::Smoke(_) | Mode::Echo => &["socket"],
            Mode::Run | Mode::Check if self.role == Role::Dpu => {
                &["socket", "cc-name", "pci-addr", "rep-pci"]
            }
            Mode::Run | Mode::Check => &["socket", "cc-name", "pci-addr"],
        };
        let side = if self.role == Role::Dpu { "DPU" } else { "host" };
        match needed.iter().find(|name| values.get(**name).is_none_or(String::is_empty)) {
            Some(name) => {
                Err(Fault::usage(format!("--{name} is needed on the {side}; --help lists the flags")))
            }
            None if self.role == Role::Host && self.representor.is_some() => {
                Err(Fault::usage("--rep-pci belongs to the DPU, and --role says host"))
            }
            None => Ok(()),
        }
    }
}
