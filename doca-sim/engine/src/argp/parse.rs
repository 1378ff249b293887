//! A command line as the steps that it asks for.

use super::Refusal;
use super::param::{Action, Command, Kind, Param};
use super::value::{Value, misfit};
use crate::code::Code;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// One thing to do, in the order in which the user asked for it.
pub(super) enum Step {
    Enter(Arc<Command>),
    Use(Arc<Param>, Value),
}

/// What a command line asks for.
pub(super) struct Line {
    /// The program, the command, the command's command, ...
    pub(super) chain: Vec<Arc<Command>>,
    pub(super) steps: Vec<Step>,
    pub(super) json: Option<PathBuf>,
    pub(super) version: bool,
    /// Help was asked for; what follows was not read.
    pub(super) help: bool,
}

impl Line {
    /// Reads the words that follow the program's name.
    pub(super) fn read(
        root: &Arc<Command>,
        built_in: &[Arc<Param>],
        words: &[&CStr],
    ) -> Result<Self, Refusal> {
        let mut line =
            Line { chain: vec![root.clone()], steps: Vec::new(), json: None, version: false, help: false };
        let mut words = words.iter().map(|word| word.to_bytes()).peekable();
        while let Some(word) = words.next() {
            let Some((flag, attached)) = split(word) else {
                line.enter(word)?;
                continue;
            };
            let Some(param) = line.param(built_in, flag) else {
                let text = format!("unknown flag {}", String::from_utf8_lossy(flag));
                return Err(Refusal { code: Code::NOT_SUPPORTED, text });
            };
            let takes_value = param.kind != Kind::Boolean;
            let next = words.peek().and_then(|next| split(next));
            let next_is_flag = next.is_some_and(|(flag, _)| line.param(built_in, flag).is_some());
            let value = match attached {
                None if takes_value && !next_is_flag => words.next(),
                attached => attached,
            };
            line.use_param(param, value)?;
            if line.help {
                break;
            }
        }
        Ok(line)
    }

    fn enter(&mut self, word: &[u8]) -> Result<(), Refusal> {
        let name = String::from_utf8_lossy(word);
        let inner = self.chain.last().and_then(|command| command.command(&name)).cloned();
        let command = inner.ok_or_else(|| {
            let known = self.chain.last().is_some_and(|command| !command.commands.is_empty());
            let what = if known { "unknown command" } else { "unexpected argument" };
            Refusal { code: Code::INVALID_VALUE, text: format!("{what} '{name}'") }
        })?;
        self.steps.push(Step::Enter(command.clone()));
        self.chain.push(command);
        Ok(())
    }

    fn use_param(&mut self, param: Arc<Param>, word: Option<&[u8]>) -> Result<(), Refusal> {
        let value = Value::from_word(param.kind, word).map_err(|why| misfit(&param.title(), &why))?;
        match (param.action, &value) {
            (Some(Action::Help), _) => self.help = true,
            (Some(Action::Version), _) => self.version = true,
            (Some(Action::Json), Value::Text(path)) => {
                if self.json.is_some() {
                    return Err(misfit(&param.title(), "can be given once"));
                }
                self.json = Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())));
            }
            _ => self.steps.push(Step::Use(param, value)),
        }
        Ok(())
    }

    /// The parameter that a flag means here: of the innermost command, inherited from an outer one, or built in.
    fn param(&self, built_in: &[Arc<Param>], flag: &[u8]) -> Option<Arc<Param>> {
        let is_named = |param: &&Arc<Param>| {
            let is = |prefix: &str, name: &Option<String>| {
                let name = name.as_ref().map(|name| [prefix, name].concat());
                name.is_some_and(|name| name.as_bytes() == flag)
            };
            is("-", &param.short) || is("--", &param.long)
        };
        let (innermost, outer) = self.chain.split_last()?;
        let inherited =
            outer.iter().rev().flat_map(|command| &command.params).filter(|param| param.inherited);
        innermost.params.iter().chain(inherited).chain(built_in).find(is_named).cloned()
    }

    /// Whether the command line uses this parameter.
    pub(super) fn uses(&self, wanted: &Arc<Param>) -> bool {
        self.used().any(|param| Arc::ptr_eq(param, wanted))
    }

    fn used(&self) -> impl Iterator<Item = &Arc<Param>> {
        self.steps.iter().filter_map(|step| match step {
            Step::Use(param, _) => Some(param),
            Step::Enter(_) => None,
        })
    }

    /// Refuses repetitions, a singular flag beside others, and the absence of mandatory ones.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let of_program: Vec<_> =
            self.used().filter(|param| matches!(param.action, Some(Action::Call(_)))).collect();
        for param in self.used() {
            if !param.multiple && self.used().filter(|other| Arc::ptr_eq(other, param)).count() > 1 {
                return Err(misfit(&param.title(), "can be given once"));
            }
        }
        if let Some(singular) = of_program.iter().find(|param| param.singular) {
            let alone = of_program.iter().all(|param| Arc::ptr_eq(param, singular));
            return if alone { Ok(()) } else { Err(misfit(&singular.title(), "must be the only flag")) };
        }
        let mut declared = self.chain.iter().flat_map(|command| &command.params);
        match declared.find(|param| param.mandatory && !self.uses(param)) {
            Some(param) => Err(misfit(&param.title(), "is mandatory")),
            None => Ok(()),
        }
    }
}

/// A flag and the value attached by `=`; `None` for a word that is no flag.
fn split(word: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    if !word.starts_with(b"-") || word == b"-" {
        return None;
    }
    match word.iter().position(|byte| *byte == b'=') {
        Some(at) => Some((&word[..at], Some(&word[at + 1..]))),
        None => Some((word, None)),
    }
}
