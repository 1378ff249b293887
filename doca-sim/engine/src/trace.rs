//! `DOCA_SIM_TRACE=FILE`: every call into the SDK and its result, one line each.
//!
//! ```text
//! 4711 doca_ctx_start DOCA_SUCCESS
//! 4711 doca_task_free -
//! ```
//!
//! Lines are appended whole, so several processes can share a file. `doca_pe_progress` is left out: it would drown the
//! rest.

use crate::code::{Code, TABLE};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Once, OnceLock};

const LEFT_OUT: &str = "doca_pe_progress";

/// Records a call; `None` for functions that do not return `doca_error_t`.
pub fn call(name: &'static str, result: Option<Code>) {
    if let Some(file) = file()
        && name != LEFT_OUT
    {
        let result = match result {
            None => "-".into(),
            Some(code) => match TABLE.get(code.0 as usize) {
                Some((name, _)) => name.to_string_lossy(),
                None => code.0.to_string().into(),
            },
        };
        let line = format!("{} {name} {result}\n", std::process::id());
        if let Err(error) = (&mut &*file).write_all(line.as_bytes()) {
            static SAID: Once = Once::new();
            SAID.call_once(|| crate::log::error!("DOCA_SIM_TRACE: {error}: calls are missing in the file"));
        }
    }
}

fn file() -> Option<&'static File> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::var_os("DOCA_SIM_TRACE").filter(|path| !path.is_empty())?;
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) => {
                crate::log::error!("DOCA_SIM_TRACE: {}: {error}", path.display());
                None
            }
        }
    })
    .as_ref()
}
