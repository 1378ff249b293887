//! Values of flags: from words and JSON, and as C sees them.

use super::Refusal;
use super::object;
use super::param::Kind;
use crate::code::{Code, Res};
use crate::log::Level;
use serde_json::Value as Json;
use std::ffi::{CString, c_void};

/// The value of one use of a flag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Text(CString),
    Int(i32),
    Flag(bool),
    /// The text of a JSON object.
    Object(CString),
    Level(Level),
}

impl Value {
    /// The value that a word means. `None` stands for a flag without one.
    pub(super) fn from_word(kind: Kind, word: Option<&[u8]>) -> Result<Self, String> {
        if kind == Kind::Boolean {
            return match word {
                None | Some(b"true") => Ok(Value::Flag(true)),
                Some(b"false") => Ok(Value::Flag(false)),
                Some(_) => Err("takes no value, or =true or =false".to_owned()),
            };
        }
        let word = word.ok_or("needs a value")?;
        let text = String::from_utf8_lossy(word);
        match kind {
            Kind::String => CString::new(word).map(Value::Text).map_err(|e| e.to_string()),
            Kind::Int => int(&text).map(Value::Int),
            Kind::Level => level(&text),
            Kind::JsonObject => Err("can be given in a JSON file only".to_owned()),
            Kind::Boolean | Kind::Unknown => Err("has no type".to_owned()),
        }
    }

    /// The value that a JSON value means.
    pub(super) fn from_json(kind: Kind, json: &Json) -> Result<Self, String> {
        match (kind, json) {
            (Kind::String, Json::String(text)) => {
                CString::new(text.as_str()).map(Value::Text).map_err(|_| "holds a NUL character".to_owned())
            }
            (Kind::Int, Json::Number(number)) => int(&number.to_string()).map(Value::Int),
            (Kind::Boolean, Json::Bool(flag)) => Ok(Value::Flag(*flag)),
            (Kind::JsonObject, Json::Object(_)) => {
                CString::new(json.to_string()).map(Value::Object).map_err(|e| e.to_string())
            }
            (Kind::Level, Json::String(text)) => level(text),
            (Kind::Level, Json::Number(number)) => level(&number.to_string()),
            _ => Err(format!("must be {}, not {json}", expected(kind))),
        }
    }

    /// Calls a function with a pointer to the value, of the type that its kind has in C: `char *`, `int *`,
    /// `bool *`, `struct json_object *`.
    pub(super) fn lend(self, call: impl FnOnce(*mut c_void) -> Res) -> Res {
        match self {
            Value::Text(text) => call(text.into_bytes_with_nul().as_mut_ptr().cast()),
            Value::Int(mut number) => call((&raw mut number).cast()),
            Value::Flag(mut flag) => call((&raw mut flag).cast()),
            Value::Object(text) => object::lend(&text, call),
            Value::Level(level) => Value::Int(level.number().cast_signed()).lend(call),
        }
    }
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "a string",
        Kind::Int => "a whole number",
        Kind::Boolean => "true or false",
        Kind::JsonObject => "an object",
        Kind::Level => "a log level",
        Kind::Unknown => "nothing",
    }
}

/// A number as C programs write it: decimal, or hexadecimal after `0x`.
fn int(text: &str) -> Result<i32, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    let only_digits = digits.bytes().all(|byte| char::from(byte).is_digit(radix));
    i32::from_str_radix(&format!("{sign}{digits}"), radix)
        .ok()
        .filter(|_| only_digits)
        .ok_or_else(|| format!("must be a whole number of 32 bits, not '{text}'"))
}

fn level(text: &str) -> Result<Value, String> {
    Level::parse(text).map(Value::Level).ok_or_else(|| {
        format!("must be 10, 20, 30, 40, 50, 60, 70 or disable, crit, error, warning, info, debug, trace, not '{text}'")
    })
}

/// A value that does not fit its flag is INVALID_VALUE, and the text says which.
pub(super) fn misfit(title: &str, why: &str) -> Refusal {
    Refusal { code: Code::INVALID_VALUE, text: format!("{title} {why}") }
}
