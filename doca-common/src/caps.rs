//! What a device can do: named answers, which can be printed, compared and required.

use crate::device::DeviceInfo;
use crate::error::{Error, Kind, Refusal, Result};
use std::collections::BTreeMap;
use std::fmt;

/// A question to a device, with its name as in `rdma.max_send_queue_size`.
#[derive(Clone, Copy)]
pub struct Capability {
    /// Library and question.
    pub name: &'static str,
    /// The C function.
    pub call: &'static str,
    query: fn(&DeviceInfo) -> Result<Value>,
}

impl Capability {
    /// A named question.
    pub const fn new(
        name: &'static str,
        call: &'static str,
        query: fn(&DeviceInfo) -> Result<Value>,
    ) -> Self {
        Capability { name, call, query }
    }

    /// Asks the device.
    ///
    /// # Errors
    ///
    /// DOCA's, usually `DOCA_ERROR_DRIVER`. That the device cannot do it is an answer, no error.
    pub fn ask(&self, device: &DeviceInfo) -> Result<Value> {
        (self.query)(device)
    }

    /// Refuses a value above this limit of the device, on behalf of `call`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`], or DOCA's.
    pub fn require_at_most(&self, device: &DeviceInfo, call: &'static str, value: u32) -> Result<()> {
        match self.ask(device)? {
            Value::Number(most) if u64::from(value) > most => {
                let text = format!("{value} exceeds {} = {most}", self.name);
                Err(Error::refused(call, Refusal::Capability).with(text))
            }
            _ => Ok(()),
        }
    }

    /// Whether the device has it: supported, or a number above zero.
    pub fn holds(&self, device: &DeviceInfo) -> bool {
        matches!(self.ask(device), Ok(Value::Supported(true)) | Ok(Value::Number(1..)))
    }
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// Whether it is supported.
    Supported(bool),
    /// A limit, in the unit that its name says.
    Number(u64),
}

impl Value {
    /// Reads an answer that is given as the return code: success is yes, NOT_SUPPORTED is no.
    ///
    /// # Errors
    ///
    /// Any other code.
    pub fn from_code(result: Result<()>) -> Result<Value> {
        match result {
            Ok(()) => Ok(Value::Supported(true)),
            Err(error) if error.kind() == Kind::NotSupported => Ok(Value::Supported(false)),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Supported(true) => f.write_str("yes"),
            Value::Supported(false) => f.write_str("no"),
            Value::Number(number) => number.fmt(f),
        }
    }
}

/// The answers of one device at one moment. What could not be asked holds the reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    answers: BTreeMap<String, std::result::Result<Value, String>>,
}

/// Two answers that differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Name of the question.
    pub name: String,
    /// The answer of the first snapshot, if it was asked.
    pub left: Option<std::result::Result<Value, String>>,
    /// The answer of the second one.
    pub right: Option<std::result::Result<Value, String>>,
}

impl Snapshot {
    /// Asks everything in `questions`.
    pub fn of(device: &DeviceInfo, questions: &[Capability]) -> Self {
        let answer = |c: &Capability| (c.name.to_owned(), c.ask(device).map_err(|error| error.to_string()));
        Snapshot { answers: questions.iter().map(answer).collect() }
    }

    /// The answer to one question.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.answers.get(name)?.as_ref().ok().copied()
    }

    /// All answers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, std::result::Result<Value, &str>)> {
        self.answers
            .iter()
            .map(|(name, answer)| (name.as_str(), answer.as_ref().copied().map_err(String::as_str)))
    }

    /// What differs between two devices, or two moments.
    pub fn diff(&self, other: &Snapshot) -> Vec<Difference> {
        let mut names: Vec<&String> = self.answers.keys().chain(other.answers.keys()).collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .map(|name| Difference {
                name: name.clone(),
                left: self.answers.get(name).cloned(),
                right: other.answers.get(name).cloned(),
            })
            .filter(|difference| difference.left != difference.right)
            .collect()
    }

    /// Checks conditions such as `rdma.atomic_cmp_swp,rdma.max_send_queue_size>=128`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] for a condition that cannot be read or a name that is not known,
    /// [`Refusal::Capability`] for what does not hold, with the answer.
    pub fn require(&self, conditions: &str) -> Result<()> {
        conditions
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .try_for_each(|text| self.check(text))
    }

    fn check(&self, condition: &str) -> Result<()> {
        let malformed = |why: String| Error::refused("require", Refusal::Malformed).with(why);
        let (name, least) = match condition.split_once(">=") {
            None => (condition, None),
            Some((name, number)) => {
                let number = number.trim().parse::<u64>();
                (
                    name.trim(),
                    Some(number.map_err(|_| malformed(format!("{condition}: no number after >=")))?),
                )
            }
        };
        let answer =
            self.answers.get(name).ok_or_else(|| malformed(format!("{name}: no such capability")))?;
        let holds = match (answer, least) {
            (Ok(Value::Supported(yes)), None) => *yes,
            (Ok(Value::Number(number)), least) => *number >= least.unwrap_or(1),
            (Ok(Value::Supported(_)), Some(_)) => {
                return Err(malformed(format!("{condition}: {name} is no number")));
            }
            (Err(_), _) => false,
        };
        if holds {
            return Ok(());
        }
        let answer = match answer {
            Ok(value) => value.to_string(),
            Err(reason) => reason.clone(),
        };
        Err(Error::refused("require", Refusal::Capability)
            .with(format!("{condition}: the device says {answer}")))
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, answer) in &self.answers {
            match answer {
                Ok(value) => writeln!(f, "{name}: {value}")?,
                Err(reason) => writeln!(f, "{name}: unknown ({reason})")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |answer: &Option<std::result::Result<Value, String>>| match answer {
            None => "not asked".to_owned(),
            Some(Ok(value)) => value.to_string(),
            Some(Err(_)) => "unknown".to_owned(),
        };
        write!(f, "{}: {} | {}", self.name, text(&self.left), text(&self.right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(answers: &[(&str, Value)]) -> Snapshot {
        Snapshot { answers: answers.iter().map(|(name, value)| ((*name).to_owned(), Ok(*value))).collect() }
    }

    #[test]
    fn requirements_name_what_does_not_hold() {
        let caps = snapshot(&[("rdma.send", Value::Supported(true)), ("rdma.max", Value::Number(64))]);
        caps.require("rdma.send, rdma.max>=64").unwrap();
        assert_eq!(caps.require("rdma.max>=65").unwrap_err().refusal(), Some(Refusal::Capability));
        assert_eq!(caps.require("rdma.snd").unwrap_err().refusal(), Some(Refusal::Malformed));
        assert_eq!(caps.require("rdma.send>=2").unwrap_err().refusal(), Some(Refusal::Malformed));
        assert_eq!(caps.require("rdma.max>=x").unwrap_err().refusal(), Some(Refusal::Malformed));
    }

    #[test]
    fn differences_include_what_only_one_side_knows() {
        let left = snapshot(&[("a", Value::Number(1)), ("b", Value::Number(2))]);
        let right = snapshot(&[("a", Value::Number(1)), ("c", Value::Number(2))]);
        let names: Vec<_> = left.diff(&right).into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["b", "c"]);
    }
}
