//! Flags from a JSON file.
//!
//! The keys are long names, at the top or in the objects `doca_general_flags` and `doca_program_flags`, as the
//! parameter files of the DOCA applications have them. Those files hold comments, commas before a closing
//! bracket and hexadecimal numbers, so all three are read here.

use super::Refusal;
use super::dpdk;
use super::param::Param;
use super::parse::{Line, Step};
use super::value::{Value, misfit};
use crate::code::Code;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

const SECTIONS: [&str; 2] = ["doca_general_flags", "doca_program_flags"];
const DPDK_SECTION: &str = "doca_dpdk_flags";

/// The members of an object and of the sections in it, in the order of the file.
struct Members(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object whose keys are flags")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    if SECTIONS.contains(&key.as_str()) {
                        members.append(&mut map.next_value::<Members>()?.0);
                    } else {
                        members.push((key, map.next_value()?));
                    }
                }
                Ok(Members(members))
            }
        }
        source.deserialize_map(Visit)
    }
}

/// Adds what a file says to what the command line said, which wins. Gives the words for DPDK.
pub(super) fn read(line: &mut Line, built_in: &[Arc<Param>], path: &Path) -> Result<Vec<String>, Refusal> {
    let failed = |why: String| Refusal { code: Code::IO_FAILED, text: format!("{}: {why}", path.display()) };
    let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
    let Members(members) = serde_json::from_str(&strict(&text)).map_err(|e| failed(e.to_string()))?;
    let mut words = Vec::new();
    let mut steps = Vec::new();
    for (key, value) in members {
        if key == DPDK_SECTION {
            words = dpdk::words(&value)?;
        } else {
            member(line, built_in, &key, &value, &mut steps)?;
        }
    }
    line.steps.append(&mut steps);
    Ok(words)
}

fn member(
    line: &Line,
    built_in: &[Arc<Param>],
    key: &str,
    value: &Json,
    steps: &mut Vec<Step>,
) -> Result<(), Refusal> {
    let declared = line.chain.iter().rev().flat_map(|command| &command.params).chain(built_in);
    let param = declared.clone().find(|param| param.long.as_deref() == Some(key) && !param.cli_only);
    let Some(param) = param else {
        let text = format!("'{key}' is not a flag that a JSON file can hold");
        return Err(Refusal { code: Code::NOT_SUPPORTED, text });
    };
    if line.uses(param) {
        return Ok(());
    }
    let values = match value {
        Json::Array(values) if param.multiple => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    for value in values {
        let value = Value::from_json(param.kind, value).map_err(|why| misfit(&format!("'{key}'"), &why))?;
        steps.push(Step::Use(param.clone(), value));
    }
    Ok(())
}

/// The same text without comments, without commas before a closing bracket, and with decimal numbers only.
fn strict(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '"' => string(rest),
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                out.push(' ');
                continue;
            }
            '}' | ']' => {
                let before = out.trim_end().len();
                if out[..before].ends_with(',') {
                    out.truncate(before - 1);
                }
                1
            }
            '0'..='9' | 'a'..='z' | 'A'..='Z' => {
                let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let word = &rest[..end];
                let digits = word.strip_prefix("0x").or(word.strip_prefix("0X"));
                if let Some(number) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
                    out.push_str(&number.to_string());
                    rest = &rest[end..];
                    continue;
                }
                end
            }
            letter => letter.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// The length of the string that stands at the start, quotes included.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_forbids_and_programs_write_is_taken_out() {
        for (loose, json) in [
            ("{\"a\": 1} // end", "{\"a\": 1} "),
            ("/* c\n* { */{}", " {}"),
            ("{\"a\": [1, 2,\n], }", "{\"a\": [1, 2]}"),
            ("{\"a\": 0xFE, \"b\": 0x0F}", "{\"a\": 254, \"b\": 15}"),
            ("{\"a\": \"// no \\\" comment, 0x10,}\"}", "{\"a\": \"// no \\\" comment, 0x10,}\"}"),
            ("{\"é\": true}", "{\"é\": true}"),
            ("{\"open", "{\"open"),
            ("/* open", ""),
            ("0xzz", "0xzz"),
        ] {
            assert_eq!(strict(loose).trim_end(), json.trim_end(), "{loose}");
        }
    }
}
