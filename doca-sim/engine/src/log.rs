//! `doca_log`: messages of applications and of the SDK itself, and the backends that write them.
//!
//! The two families have backends of their own. A smaller level is more severe; an application backend shows
//! what lies between its lower and its upper limit, an SDK backend what is at least as severe as its level.
//!
//! What the published interface leaves open is settled here so: until a program creates an SDK backend, SDK
//! messages of WARNING and above go to stderr. `DOCA_LOG_LEVEL` and `DOCA_LOG_LEVEL_SDK` (words or numbers)
//! are where the levels of their family begin, and its backends stay at least that verbose, whatever the
//! program asks for, unless the command line says otherwise or a limit is strict.

mod backend;
mod level;
mod line;
mod sink;
mod sources;
#[cfg(test)]
mod tests;

pub use backend::{Backend, Family, Limit};
pub(crate) use level::Level;
pub(crate) use sink::{Sink, Stdio, print};
pub(crate) use sources::{register as register_source, unregister as unregister_source};

use crate::code::{Code, Res};
use crate::environment::{self, LOG_LEVELS};
use crate::lock::lock;
use backend::Registry;
use line::Record;
use std::fmt::Arguments;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once};

macro_rules! at {
    ($level:ident, $($text:tt)*) => {
        if $crate::log::wanted($crate::log::Level::$level) {
            $crate::log::sdk($crate::log::Level::$level, file!(), line!(), module_path!(), format_args!($($text)*))
        }
    };
}
macro_rules! error { ($($text:tt)*) => { $crate::log::at!(ERROR, $($text)*) } }
macro_rules! warning { ($($text:tt)*) => { $crate::log::at!(WARNING, $($text)*) } }
macro_rules! info { ($($text:tt)*) => { $crate::log::at!(INFO, $($text)*) } }
macro_rules! debug { ($($text:tt)*) => { $crate::log::at!(DEBUG, $($text)*) } }
macro_rules! trace { ($($text:tt)*) => { $crate::log::at!(TRACE, $($text)*) } }
pub(crate) use {at, debug, error, info, trace, warning};

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(|| {
    let level = |name| std::env::var(name).ok().and_then(|text| Level::parse(&text));
    let registry = Registry::new(level(LOG_LEVELS[0]), level(LOG_LEVELS[1]));
    MOST_VERBOSE.store(registry.most_verbose_sdk(), Ordering::Relaxed);
    Mutex::new(registry)
});

/// The most verbose level that any SDK backend shows; all of them until the registry exists.
static MOST_VERBOSE: AtomicU32 = AtomicU32::new(u32::MAX);

/// Changes the registry, after which the threshold may be another.
fn change<T>(what: impl FnOnce(&mut Registry) -> T) -> T {
    let mut registry = lock(&REGISTRY);
    let result = what(&mut registry);
    MOST_VERBOSE.store(registry.most_verbose_sdk(), Ordering::Relaxed);
    result
}

/// Whether any SDK backend shows this level. All that a message costs which nobody wants.
#[inline]
pub(crate) fn wanted(level: Level) -> bool {
    level.number() <= MOST_VERBOSE.load(Ordering::Relaxed)
}

/// Hands one SDK message to the backends that want it.
#[cold]
pub(crate) fn sdk(level: Level, file: &str, line: u32, module: &str, text: Arguments<'_>) {
    let function = module.strip_prefix("doca_sim::").unwrap_or(module);
    emit(Family::Sdk, Record { level, file, line: i64::from(line), function, text });
}

/// Hands one application message to the backends that want it.
pub(crate) fn application(level: Level, file: &str, line: i32, function: &str, text: &str) {
    let text = format_args!("{text}");
    emit(Family::Application, Record { level, file, line: i64::from(line), function, text });
}

fn emit(family: Family, record: Record<'_>) {
    let backends = lock(&REGISTRY).showing(family, record.level);
    if backends.is_empty() {
        return;
    }
    let line = record.to_line();
    for backend in backends {
        backend.write(record.level, &line);
    }
}

/// Adds a backend for as long as the process lives.
pub(crate) fn add(family: Family, sink: Sink) -> Arc<Backend> {
    change(|registry| registry.add(family, sink))
}

/// The backend without a handle. A second one would print everything twice, so there is one.
pub(crate) fn add_standard() {
    change(Registry::add_standard);
}

/// Sets one limit of one backend. INVALID_VALUE for a backend of another family; NOT_PERMITTED for a limit
/// that is strict and would let more messages through.
pub(crate) fn set_limit(backend: &Backend, limit: Limit, level: Level) -> Res {
    change(|registry| registry.set_limit(backend, limit, level))
}

/// Lets a limit only shrink from now on. INVALID_VALUE for an SDK backend.
pub(crate) fn make_strict(backend: &Backend, limit: Limit) -> Res {
    backend.make_strict(limit)
}

/// Sets one limit of all backends of a family, and of those to come.
pub(crate) fn set_global(limit: Limit, level: Level) {
    change(|registry| registry.set_global(limit, level));
}

/// The limit that new backends begin with.
pub(crate) fn global(limit: Limit) -> Level {
    lock(&REGISTRY).global(limit)
}

/// Sets the level that the user asked for on the command line, which outranks the environment.
pub(crate) fn set_by_user(limit: Limit, level: Level) {
    change(|registry| {
        registry.forget_environment(limit);
        registry.set_global(limit, level);
    });
}

/// The level that C means, or INVALID_VALUE.
pub(crate) fn level_from_c(number: u32) -> Res<Level> {
    Level::from_number(number).ok_or(Code::INVALID_VALUE)
}

/// The release that the loaded `libdoca_common` claims to be; `None` where it is not loaded for all to see.
pub(crate) fn release() -> Option<String> {
    // SAFETY: the name is NUL-terminated, and dlsym is asked for a function of the loaded libraries only.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"doca_version_runtime".as_ptr()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: doca_version.h declares the function of this name with this type.
    let function: unsafe extern "C" fn() -> *const std::ffi::c_char =
        unsafe { std::mem::transmute(function) };
    // SAFETY: it returns a string that is never freed.
    let text = unsafe { std::ffi::CStr::from_ptr(function()) };
    text.to_str().ok().map(str::to_owned)
}

/// Says on stderr, once per process, that no hardware is behind this library, which `DOCA_SIM_QUIET` hides; and
/// logs what is wrong with the environment.
pub fn announce_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let release = release().unwrap_or_default();
        let (space, quiet) = (if release.is_empty() { "" } else { " " }, std::env::var_os("DOCA_SIM_QUIET"));
        if quiet.is_none_or(|value| value.is_empty() || value == "0") {
            let line = format!(
                "doca-sim: software DOCA{space}{release}, no hardware is used (DOCA_SIM_QUIET=1 hides this line)\n"
            );
            print(Stdio::Err, line.as_bytes());
        }
        crate::log::info!("DOCA version{space}{release} (simulator)");
        environment::check();
    });
}
