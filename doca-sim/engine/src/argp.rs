//! `doca_argp`: the parser that DOCA programs share for command lines and JSON files.
//!
//! ```text
//! handle   what programs fill in and hand over: parameters and commands
//! param    what can be declared, and the flags that every program has
//! parse    words -> steps          json, dpdk   a file -> steps, and words for DPDK
//! value    one word -> one typed value          usage   the help text
//! ```
//!
//! This file is the state: nothing, then declaring (from init), then started, then nothing again. No lock is
//! held while a callback of the program runs, so a callback may call anything here, destroy included.
//!
//! What the published interface leaves open is settled here so: starting twice and declaring after the start
//! are BAD_STATE; the command line wins over the file; a singular flag excuses mandatory ones; the program's
//! own names win over the built-in ones; a version callback that returns lets the parsing go on.

mod dpdk;
mod handle;
mod json;
mod object;
mod param;
mod parse;
mod usage;
mod value;

pub use handle::{Draft, Handle};
pub use param::{Command, ConfigCallback, Kind, Param, ParamCallback};

use crate::code::{Code, Res};
use crate::entry::In;
use crate::lock::lock;
use crate::log::{self, Level, Limit, Stdio, print};
use handle::Taken;
use param::Action;
use parse::{Line, Step};
use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex};
use value::Value;

/// Gets the words for DPDK.
pub type DpdkCallback = unsafe extern "C" fn(c_int, *mut *mut c_char) -> Code;

/// A program's logger, which takes a `va_list`: only C can call it, by [`CallLogger`].
pub type Logger = unsafe extern "C" fn();

/// Calls a logger with a level and a text.
pub type CallLogger = unsafe extern "C" fn(Logger, u32, *const c_char);

/// Why a command line, a file or a declaration is refused.
#[derive(Debug)]
struct Refusal {
    code: Code,
    text: String,
}

/// The program's configuration, which only its callbacks look at.
#[derive(Clone, Copy)]
struct Config(*mut c_void);

// SAFETY: never read or written here, only handed back to the program.
unsafe impl Send for Config {}

struct Parser {
    program: Option<String>,
    config: Config,
    root: Command,
    started: bool,
    /// The commands of the started program, outermost first.
    chain: Vec<Arc<Command>>,
    built_in: Vec<Arc<Param>>,
    version: Option<ParamCallback>,
    validation: Option<ConfigCallback>,
    logger: Option<(Logger, CallLogger)>,
    dpdk: Option<DpdkCallback>,
    log_level: Option<Level>,
    sdk_log_level: Option<Level>,
    /// Handles that the program has handed over.
    taken: Vec<Box<dyn Any + Send>>,
    dpdk_words: Option<dpdk::Vector>,
}

static PARSER: Mutex<Option<Parser>> = Mutex::new(None);

/// Runs on the parser, or BAD_STATE where there is none.
fn with<T>(what: impl FnOnce(&mut Parser) -> Res<T>) -> Res<T> {
    what(lock(&PARSER).as_mut().ok_or(Code::BAD_STATE)?)
}

/// The same for what is possible only before the start.
fn declaring<T>(what: impl FnOnce(&mut Parser) -> Res<T>) -> Res<T> {
    with(|parser| if parser.started { Err(Code::BAD_STATE) } else { what(parser) })
}

/// Makes the parser. BAD_STATE if there is one.
pub(crate) fn init(program: Option<&CStr>, config: *mut c_void) -> Res {
    let mut parser = lock(&PARSER);
    if parser.is_some() {
        return Err(Code::BAD_STATE);
    }
    *parser = Some(Parser {
        program: program.map(|name| name.to_string_lossy().into_owned()),
        config: Config(config),
        root: Command::default(),
        started: false,
        chain: Vec::new(),
        built_in: param::built_in(),
        version: None,
        validation: None,
        logger: None,
        dpdk: None,
        log_level: None,
        sdk_log_level: None,
        taken: Vec::new(),
        dpdk_words: None,
    });
    Ok(())
}

/// Ends the parser, and all that was handed over to it.
pub(crate) fn destroy() -> Res {
    let parser = lock(&PARSER).take();
    parser.map(drop).ok_or(Code::BAD_STATE)
}

/// A new parameter or command. BAD_STATE without a parser.
pub(crate) fn create<T: Draft>() -> Res<*const Handle<T>> {
    with(|_| Ok(Handle::create()))
}

/// Ends a parameter or command that was never handed over.
pub(crate) fn discard<T: Draft>(handle: &In<Handle<T>>) -> Res {
    Taken::take(handle).map(drop)
}

/// Changes a parameter or command. The C functions have no result, so a misuse is logged.
pub(crate) fn edit<T: Draft>(handle: &In<Handle<T>>, change: impl FnOnce(&mut T)) {
    if let Err(code) = handle.get().and_then(|handle| handle.edit(change)) {
        log::error!("a parameter or command was changed that is none, or is registered already ({code:?})");
    }
}

/// Takes a handle, which from then on belongs to the parser whatever the outcome.
fn hand_over<T: Draft>(handle: &In<Handle<T>>, add: impl FnOnce(&mut Parser, T) -> Res) -> Res {
    let taken = Taken::take(handle)?;
    declaring(|parser| {
        let draft = taken.draft();
        parser.taken.push(Box::new(taken));
        add(parser, draft)
    })
}

/// Declares a flag of the program.
pub(crate) fn register_param(param: &In<Handle<Param>>) -> Res {
    hand_over(param, |parser, param| parser.root.add_param(param))
}

/// Declares a command of the program.
pub(crate) fn register_command(command: &In<Handle<Command>>) -> Res {
    hand_over(command, |parser, command| parser.root.add_command(command))
}

/// Declares a flag of a command that is not declared itself yet.
pub(crate) fn register_param_of(command: &In<Handle<Command>>, param: &In<Handle<Param>>) -> Res {
    let command = command.get()?;
    hand_over(param, |_, param| command.edit(|command| command.add_param(param))?)
}

/// Declares a command of a command that is not declared itself yet.
pub(crate) fn register_command_of(command: &In<Handle<Command>>, inner: &In<Handle<Command>>) -> Res {
    if command.raw() == inner.raw() {
        return Err(Code::INVALID_VALUE);
    }
    let command = command.get()?;
    hand_over(inner, |_, inner| command.edit(|command| command.add_command(inner))?)
}

/// Sets what prints the version.
pub(crate) fn set_version(callback: Option<ParamCallback>) -> Res {
    let callback = callback.ok_or(Code::INVALID_VALUE)?;
    declaring(|parser| {
        parser.version = Some(callback);
        Ok(())
    })
}

/// Sets what looks at the whole configuration after parsing.
pub(crate) fn set_validation(callback: Option<ConfigCallback>) -> Res {
    let callback = callback.ok_or(Code::INVALID_VALUE)?;
    declaring(|parser| {
        parser.validation = Some(callback);
        Ok(())
    })
}

/// Sets what gets the parser's messages to the user. ALREADY_EXIST if something does.
pub(crate) fn set_logger(logger: Option<Logger>, call: CallLogger) -> Res {
    let logger = logger.ok_or(Code::INVALID_VALUE)?;
    with(|parser| {
        if parser.logger.is_some() {
            return Err(Code::ALREADY_EXIST);
        }
        parser.logger = Some((logger, call));
        Ok(())
    })
}

/// Sends messages to stderr again. BAD_STATE if they go there already.
pub(crate) fn unset_logger() -> Res {
    with(|parser| parser.logger.take().map(|_| ()).ok_or(Code::BAD_STATE))
}

/// Makes this a DPDK program. NULL makes it an ordinary one.
pub(crate) fn set_dpdk(callback: Option<DpdkCallback>) -> Res {
    declaring(|parser| {
        parser.dpdk = callback;
        Ok(())
    })
}

/// The level that the user chose, else the one of the process.
pub(crate) fn log_level(limit: Limit) -> Level {
    let chosen = lock(&PARSER).as_ref().and_then(|parser| match limit {
        Limit::Sdk => parser.sdk_log_level,
        _ => parser.log_level,
    });
    chosen.unwrap_or_else(|| log::global(limit))
}

/// Prints the help text.
pub(crate) fn usage() -> Res {
    let text = with(|parser| {
        let root = [Arc::new(parser.root.clone())];
        let chain = if parser.chain.is_empty() { &root[..] } else { &parser.chain };
        let program = parser.program.as_deref().unwrap_or("program");
        Ok(usage::text(program, chain, &parser.built_in, parser.dpdk.is_some()))
    })?;
    print(Stdio::Out, text.as_bytes());
    Ok(())
}

/// Reads a command line, the program's name first, and does what it says.
pub(crate) fn start(words: &[&CStr]) -> Res {
    let name = words.first().ok_or(Code::INVALID_VALUE)?.to_string_lossy();
    let (root, built_in, dpdk) = declaring(|parser| {
        parser.started = true;
        let base = name.rsplit('/').next().unwrap_or(&name);
        parser.program.get_or_insert_with(|| base.to_owned());
        Ok((Arc::new(parser.root.clone()), parser.built_in.clone(), parser.dpdk))
    })?;
    let (for_dpdk, own) = match words.iter().position(|word| *word == c"--") {
        Some(at) if dpdk.is_some() => (&words[..at], &words[at + 1..]),
        _ => (&words[..1], &words[1..]),
    };
    let mut for_dpdk: Vec<_> = for_dpdk.iter().map(|word| CString::from(*word)).collect();
    match parse(&root, &built_in, own) {
        Ok((line, more)) => {
            for_dpdk.extend(more.into_iter().filter_map(|word| CString::new(word).ok()));
            run(line)?;
        }
        Err(refusal) => {
            report(&refusal.text);
            return Err(refusal.code);
        }
    }
    match dpdk {
        Some(callback) => hand_to_dpdk(callback, for_dpdk),
        None => Ok(()),
    }
}

/// The steps that a command line and its file ask for, and the file's words for DPDK. Help ends the process.
fn parse(
    root: &Arc<Command>,
    built_in: &[Arc<Param>],
    words: &[&CStr],
) -> Result<(Line, Vec<String>), Refusal> {
    let silent = |code| Refusal { code, text: "the version callback failed".to_owned() };
    let mut line = Line::read(root, built_in, words)?;
    // The parser may be gone by now only if another thread has destroyed it, which then has no chain to keep.
    _ = with(|parser| {
        parser.chain.clone_from(&line.chain);
        Ok(())
    });
    if line.help {
        usage().map_err(silent)?;
        std::process::exit(0);
    }
    if line.version {
        version().map_err(silent)?;
    }
    let mut for_dpdk = Vec::new();
    if let Some(path) = line.json.clone() {
        for_dpdk = json::read(&mut line, built_in, &path)?;
    }
    line.check()?;
    Ok((line, for_dpdk))
}

/// Prints the version and ends the process, unless the program does so in its own way.
fn version() -> Res {
    let (callback, Config(config)) = with(|parser| Ok((parser.version, parser.config)))?;
    if let Some(callback) = callback {
        // SAFETY: the program registered this function to be called with its configuration.
        return result(unsafe { callback(std::ptr::null_mut(), config) });
    }
    let release = log::release().unwrap_or_else(|| "unknown".to_owned());
    print(Stdio::Out, format!("DOCA {release} (doca-sim, software)\n").as_bytes());
    std::process::exit(0)
}

/// Does the steps: levels first, so that callbacks log as the user wants.
fn run(line: Line) -> Res {
    let Config(config) = with(|parser| Ok(parser.config))?;
    for step in &line.steps {
        match step {
            Step::Use(param, Value::Level(level)) => choose_level(param.action, *level)?,
            Step::Use(..) | Step::Enter(_) => {}
        }
    }
    for step in line.steps {
        let done = match step {
            // SAFETY: the program declared this function to be called with its configuration.
            Step::Enter(command) => command.callback.map_or(Ok(()), |call| result(unsafe { call(config) })),
            Step::Use(param, value) => match param.action {
                // SAFETY: the program declared this function to be called with a value of the type that it
                // declared beside, and with its configuration.
                Some(Action::Call(call)) => value
                    .lend(|value| result(unsafe { call(value, config) }))
                    .inspect_err(|code| log::error!("{}: not accepted ({code:?})", param.title())),
                _ => Ok(()),
            },
        };
        done?;
    }
    // A callback may have destroyed the parser, and then there is nothing left to validate.
    let validation = with(|parser| Ok(parser.validation)).unwrap_or_default();
    // SAFETY: the program registered this function to be called with its configuration.
    validation.map_or(Ok(()), |call| result(unsafe { call(config) }))
}

fn choose_level(action: Option<Action>, level: Level) -> Res {
    let limit = with(|parser| {
        Ok(if matches!(action, Some(Action::SdkLogLevel)) {
            parser.sdk_log_level = Some(level);
            Limit::Sdk
        } else {
            parser.log_level = Some(level);
            Limit::Lower
        })
    })?;
    log::set_by_user(limit, level);
    Ok(())
}

/// Gives DPDK its words, which stay until the parser is destroyed.
fn hand_to_dpdk(callback: DpdkCallback, words: Vec<CString>) -> Res {
    let (count, array) = with(|parser| Ok(parser.dpdk_words.insert(dpdk::Vector::new(words)).parts()))?;
    // SAFETY: the program declared this function for such an array, which the parser keeps.
    result(unsafe { callback(count, array) })
}

/// Tells the user something: through the program's logger, else on stderr.
fn report(text: &str) {
    let (program, logger) = match lock(&PARSER).as_ref() {
        Some(parser) => (parser.program.clone(), parser.logger),
        None => (None, None),
    };
    let program = program.unwrap_or_default();
    let (Some((logger, call)), Ok(message)) = (logger, CString::new(text)) else {
        return print(Stdio::Err, format!("{program}: {text}\nTry '{program} --help'.\n").as_bytes());
    };
    // SAFETY: libdoca_argp registered both together; the text is NUL-terminated.
    unsafe { call(logger, Level::ERROR.number(), message.as_ptr()) };
}

fn result(code: Code) -> Res {
    if code == Code::SUCCESS { Ok(()) } else { Err(code) }
}
