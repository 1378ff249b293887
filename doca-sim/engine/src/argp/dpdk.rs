//! The words that a DPDK program hands on to DPDK's own parser.

use super::Refusal;
use crate::code::Code;
use serde_json::Value as Json;
use std::ffi::{CString, c_char};

/// The words that a file's section for DPDK means: `devices`, `core-list`, and other `flags` in one string.
pub(super) fn words(section: &Json) -> Result<Vec<String>, Refusal> {
    let wrong =
        |key: &str| Refusal { code: Code::INVALID_VALUE, text: format!("'{key}' has the wrong type") };
    let members = section.as_object().ok_or_else(|| wrong("doca_dpdk_flags"))?;
    let mut words = Vec::new();
    for (key, value) in members {
        match key.as_str() {
            "devices" => {
                for device in value.as_array().ok_or_else(|| wrong(key))? {
                    words.extend(["-a".to_owned(), device_word(device).ok_or_else(|| wrong(key))?]);
                }
            }
            "core-list" => {
                words.extend(["-l".to_owned(), value.as_str().ok_or_else(|| wrong(key))?.to_owned()])
            }
            "flags" => {
                let flags = value.as_str().ok_or_else(|| wrong(key))?;
                words.extend(flags.split_whitespace().map(str::to_owned));
            }
            _ => {
                let text = format!("'{key}' is not a DPDK flag that a JSON file can hold");
                return Err(Refusal { code: Code::NOT_SUPPORTED, text });
            }
        }
    }
    Ok(words)
}

/// A device as DPDK names it: a PCI address, or an auxiliary device for a scalable function.
fn device_word(device: &Json) -> Option<String> {
    let id = match device.get("id")? {
        Json::String(id) => id.clone(),
        Json::Number(id) => id.to_string(),
        _ => return None,
    };
    let bus = if device.get("device")?.as_str()? == "sf" { "auxiliary:mlx5_core.sf." } else { "" };
    let steering = if device.get("hws").and_then(Json::as_bool) == Some(true) { ",dv_flow_en=2" } else { "" };
    Some(format!("{bus}{id}{steering}"))
}

/// An argument vector for C, which may reorder it. Lives until the parser is destroyed.
pub(super) struct Vector {
    /// What the pointers point into; the program may have moved those about.
    _words: Vec<Vec<u8>>,
    pointers: Vec<*mut c_char>,
}

// SAFETY: the pointers lead into buffers that the vector owns, and nothing here reads through them.
unsafe impl Send for Vector {}

impl Vector {
    pub(super) fn new(words: Vec<CString>) -> Self {
        let mut words: Vec<_> = words.into_iter().map(CString::into_bytes_with_nul).collect();
        let mut pointers: Vec<_> = words.iter_mut().map(|word| word.as_mut_ptr().cast()).collect();
        pointers.push(std::ptr::null_mut());
        Vector { _words: words, pointers }
    }

    /// The number of words, and the array that ends in NULL.
    pub(super) fn parts(&mut self) -> (i32, *mut *mut c_char) {
        (i32::try_from(self.pointers.len() - 1).unwrap_or(i32::MAX), self.pointers.as_mut_ptr())
    }
}
