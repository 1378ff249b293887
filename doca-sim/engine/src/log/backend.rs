//! The backends of a process, and their limits.

use super::{Level, Sink, sink};
use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::lock::lock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Whose messages a backend writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Those of `doca_log`.
    Application,
    /// Those of the libraries.
    Sdk,
}

/// One of the limits that programs set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The least severe application messages that are shown.
    Lower,
    /// The most severe application messages that are shown.
    Upper,
    /// The least severe SDK messages that are shown.
    Sdk,
}

impl Limit {
    const ALL: [Limit; 3] = [Limit::Lower, Limit::Upper, Limit::Sdk];

    fn family(self) -> Family {
        match self {
            Limit::Lower | Limit::Upper => Family::Application,
            Limit::Sdk => Family::Sdk,
        }
    }

    /// Whether `to` lets messages through that `from` does not.
    fn widens(self, from: Level, to: Level) -> bool {
        match self {
            Limit::Lower | Limit::Sdk => to > from,
            Limit::Upper => to < from,
        }
    }
}

/// `struct doca_log_backend`. Lives until the process ends; there is no call that ends one.
#[repr(C)]
pub struct Backend {
    tag: Tag,
    family: Family,
    /// Whether writing calls a function of the program.
    flushes: bool,
    sink: Mutex<Sink>,
    limits: [AtomicU32; 3],
    strict: [AtomicBool; 3],
}

// SAFETY: `repr(C)`, and the tag comes first.
unsafe impl Object for Backend {
    const TAG: u32 = u32::from_le_bytes(*b"logb");
    const SURVIVES_FORK: bool = true;
}

impl Backend {
    fn new(family: Family, sink: Sink, limits: [Level; 3]) -> Arc<Self> {
        Arc::new(Backend {
            tag: Tag::live::<Self>(),
            family,
            flushes: matches!(sink, Sink::Buffer(..)),
            sink: Mutex::new(sink),
            limits: limits.map(|level| AtomicU32::new(level.number())),
            strict: Default::default(),
        })
    }

    fn limit(&self, limit: Limit) -> Level {
        let number = self.limits[limit as usize].load(Ordering::Relaxed);
        Level::from_number(number).unwrap_or(Level::DISABLE)
    }

    fn shows(&self, level: Level) -> bool {
        match self.family {
            Family::Application => self.limit(Limit::Upper) <= level && level <= self.limit(Limit::Lower),
            Family::Sdk => level <= self.limit(Limit::Sdk),
        }
    }

    fn set(&self, limit: Limit, level: Level) -> Res {
        let strict = self.strict[limit as usize].load(Ordering::Relaxed);
        if strict && limit.widens(self.limit(limit), level) {
            return Err(Code::NOT_PERMITTED);
        }
        self.limits[limit as usize].store(level.number(), Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn make_strict(&self, limit: Limit) -> Res {
        if self.family != limit.family() {
            return Err(Code::INVALID_VALUE);
        }
        self.strict[limit as usize].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Writes one line. What a flush function logs goes to no flush function, or it would wait for itself.
    pub(super) fn write(&self, level: Level, line: &str) {
        if !(self.flushes && sink::is_flushing()) {
            lock(&self.sink).write(level, line);
        }
    }
}

/// All backends, and what new ones begin with.
pub(super) struct Registry {
    backends: Vec<Arc<Backend>>,
    has_standard: bool,
    /// SDK messages go here until the program has an SDK backend.
    fallback: Option<Arc<Backend>>,
    globals: [Level; 3],
    /// How verbose the environment wants each limit at least.
    environment: [Option<Level>; 3],
}

impl Registry {
    /// With the levels that the environment names.
    pub(super) fn new(application: Option<Level>, sdk: Option<Level>) -> Self {
        let globals = [application.unwrap_or(Level::INFO), Level::CRIT, sdk.unwrap_or(Level::INFO)];
        let quiet = [globals[0], globals[1], sdk.unwrap_or(Level::WARNING)];
        Registry {
            backends: Vec::new(),
            has_standard: false,
            fallback: Some(Backend::new(Family::Sdk, Sink::Stderr, quiet)),
            globals,
            environment: [application, None, sdk],
        }
    }

    pub(super) fn add(&mut self, family: Family, sink: Sink) -> Arc<Backend> {
        if family == Family::Sdk {
            self.fallback = None;
        }
        let backend = Backend::new(family, sink, self.globals);
        for limit in Limit::ALL {
            // A new backend has no strict limit.
            _ = backend.set(limit, self.asked(limit, self.globals[limit as usize]));
        }
        self.backends.push(backend.clone());
        backend
    }

    pub(super) fn add_standard(&mut self) {
        if !std::mem::replace(&mut self.has_standard, true) {
            self.add(Family::Application, Sink::Standard);
        }
    }

    pub(super) fn showing(&self, family: Family, level: Level) -> Vec<Arc<Backend>> {
        self.all().filter(|backend| backend.family == family && backend.shows(level)).cloned().collect()
    }

    pub(super) fn most_verbose_sdk(&self) -> u32 {
        let sdk = self.all().filter(|backend| backend.family == Family::Sdk);
        sdk.map(|backend| backend.limit(Limit::Sdk).number()).max().unwrap_or_default()
    }

    pub(super) fn set_limit(&self, backend: &Backend, limit: Limit, level: Level) -> Res {
        if backend.family != limit.family() {
            return Err(Code::INVALID_VALUE);
        }
        backend.set(limit, self.asked(limit, level))
    }

    pub(super) fn set_global(&mut self, limit: Limit, level: Level) {
        self.globals[limit as usize] = level;
        let level = self.asked(limit, level);
        for backend in self.all().filter(|backend| backend.family == limit.family()) {
            // A strict limit stays what it is.
            _ = backend.set(limit, level);
        }
    }

    pub(super) fn global(&self, limit: Limit) -> Level {
        self.globals[limit as usize]
    }

    pub(super) fn forget_environment(&mut self, limit: Limit) {
        self.environment[limit as usize] = None;
    }

    fn asked(&self, limit: Limit, level: Level) -> Level {
        match self.environment[limit as usize] {
            Some(wish) if limit.widens(level, wish) => wish,
            _ => level,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.backends.iter().chain(&self.fallback)
    }
}
