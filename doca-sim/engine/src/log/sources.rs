//! The log sources that programs register, normally one per C file before `main`.

use crate::code::{Code, Res};
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

struct Sources {
    next: i32,
    names: BTreeMap<i32, String>,
}

static SOURCES: Mutex<Sources> = Mutex::new(Sources { next: 0, names: BTreeMap::new() });

/// Gives a source a number that no other has had. NO_MEMORY when there is none left.
pub(crate) fn register(name: &str) -> Res<i32> {
    let mut sources = lock(&SOURCES);
    let id = sources.next;
    sources.next = id.checked_add(1).ok_or(Code::NO_MEMORY)?;
    sources.names.insert(id, name.to_owned());
    Ok(id)
}

/// Forgets a source. INVALID_VALUE for a number that is not registered.
pub(crate) fn unregister(source: i32) -> Res {
    lock(&SOURCES).names.remove(&source).map(|_| ()).ok_or(Code::INVALID_VALUE)
}
