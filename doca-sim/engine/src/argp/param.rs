//! What a program (or the parser itself) declares: flags and commands.

use super::handle::Draft;
use crate::code::{Code, Res};
use std::ffi::c_void;
use std::sync::Arc;

/// Called with a value and the program's configuration.
pub type ParamCallback = unsafe extern "C" fn(*mut c_void, *mut c_void) -> Code;
/// Called with the program's configuration.
pub type ConfigCallback = unsafe extern "C" fn(*mut c_void) -> Code;

/// What follows a flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Not set, or a number that is no type.
    #[default]
    Unknown,
    /// Any text.
    String,
    /// A whole number of 32 bits.
    Int,
    /// Nothing; in a file, true or false.
    Boolean,
    /// Only in a file: an object.
    JsonObject,
    /// A log level, as a word or a number. (No `enum doca_argp_type` names it.)
    Level,
}

impl Kind {
    /// The type of `enum doca_argp_type`.
    pub fn from_c(number: u32) -> Self {
        match number {
            1 => Kind::String,
            2 => Kind::Int,
            3 => Kind::Boolean,
            4 => Kind::JsonObject,
            _ => Kind::Unknown,
        }
    }
}

/// What happens when a flag is used.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Call(ParamCallback),
    Help,
    Version,
    LogLevel,
    SdkLogLevel,
    Json,
}

/// A flag.
#[derive(Clone, Default)]
pub struct Param {
    pub(crate) short: Option<String>,
    pub(crate) long: Option<String>,
    pub(crate) arguments: Option<String>,
    pub(crate) description: Option<String>,
    pub(super) action: Option<Action>,
    pub(crate) kind: Kind,
    pub(crate) mandatory: bool,
    pub(crate) cli_only: bool,
    pub(crate) multiple: bool,
    pub(crate) singular: bool,
    pub(crate) inherited: bool,
    pub(crate) hidden: bool,
}

impl Param {
    /// Sets what is called when the flag is used.
    pub(crate) fn call(&mut self, callback: Option<ParamCallback>) {
        self.action = callback.map(Action::Call);
    }

    /// INITIALIZATION when something mandatory is missing, INVALID_VALUE when something makes no sense.
    fn check(&self) -> Res {
        let named = self.short.is_some() || self.long.is_some();
        if !named || self.description.is_none() || self.action.is_none() || self.kind == Kind::Unknown {
            return Err(Code::INITIALIZATION);
        }
        let object_without_key = self.kind == Kind::JsonObject && (self.long.is_none() || self.cli_only);
        if object_without_key || !self.names().all(is_name) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.short.iter().chain(&self.long).map(String::as_str)
    }

    /// How to name it to a user.
    pub(super) fn title(&self) -> String {
        let names = [
            self.short.as_ref().map(|name| format!("-{name}")),
            self.long.as_ref().map(|name| format!("--{name}")),
        ];
        names.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Draft for Param {
    const TAG: u32 = u32::from_le_bytes(*b"argp");
}

/// A command: a word that may follow the flags, with flags and commands of its own. The program itself is the
/// outermost one.
#[derive(Clone, Default)]
pub struct Command {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) callback: Option<ConfigCallback>,
    pub(crate) hidden: bool,
    pub(super) params: Vec<Arc<Param>>,
    pub(super) commands: Vec<Arc<Command>>,
}

impl Command {
    /// Adds a flag. A flag without a long name has no key in a file. INVALID_VALUE for a name that is taken.
    pub(super) fn add_param(&mut self, mut param: Param) -> Res {
        param.check()?;
        param.cli_only |= param.long.is_none();
        let taken = |known: &Arc<Param>| {
            (param.short.is_some() && known.short == param.short)
                || (param.long.is_some() && known.long == param.long)
        };
        if self.params.iter().any(taken) {
            return Err(Code::INVALID_VALUE);
        }
        self.params.push(Arc::new(param));
        Ok(())
    }

    /// Adds a command. INITIALIZATION without name or description, INVALID_VALUE for a name that is taken.
    pub(super) fn add_command(&mut self, command: Command) -> Res {
        let name = command.name.as_deref().ok_or(Code::INITIALIZATION)?;
        if command.description.is_none() {
            return Err(Code::INITIALIZATION);
        }
        if !is_name(name) || self.command(name).is_some() {
            return Err(Code::INVALID_VALUE);
        }
        self.commands.push(Arc::new(command));
        Ok(())
    }

    /// The command with this name.
    pub(super) fn command(&self, name: &str) -> Option<&Arc<Command>> {
        self.commands.iter().find(|command| command.name.as_deref() == Some(name))
    }
}

impl Draft for Command {
    const TAG: u32 = u32::from_le_bytes(*b"argc");
}

/// Names are words that can be told from a value and from a flag.
fn is_name(name: &str) -> bool {
    let odd = |letter: char| letter == '=' || letter.is_whitespace() || letter.is_control();
    !name.is_empty() && !name.starts_with('-') && !name.contains(odd)
}

/// The flags that every program has.
pub(super) fn built_in() -> Vec<Arc<Param>> {
    let rows = [
        ("h", "help", "", Kind::Boolean, Action::Help, "Show this text and end"),
        ("v", "version", "", Kind::Boolean, Action::Version, "Show the version and end"),
        ("l", "log-level", "<level>", Kind::Level, Action::LogLevel, "Log level of the program"),
        ("", "sdk-log-level", "<level>", Kind::Level, Action::SdkLogLevel, "Log level of the SDK"),
        ("j", "json", "<file>", Kind::String, Action::Json, "Take flags from a JSON file"),
    ];
    let levels = "\n10=DISABLE 20=CRIT 30=ERROR 40=WARNING 50=INFO 60=DEBUG 70=TRACE";
    rows.map(|(short, long, arguments, kind, action, description)| {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let more = if kind == Kind::Level { levels } else { "" };
        Arc::new(Param {
            short: text(short),
            long: text(long),
            arguments: text(arguments),
            description: Some(format!("{description}{more}")),
            action: Some(action),
            kind,
            cli_only: kind != Kind::Level,
            ..Param::default()
        })
    })
    .to_vec()
}
