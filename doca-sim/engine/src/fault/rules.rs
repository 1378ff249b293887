//! The language of `DOCA_SIM_FAULTS`: from text to rules. `FAULTS.md` describes it for users.

use crate::code::{Code, TABLE};
use crate::topology::RdmaTask;

/// The kinds of tasks that are not RDMA's.
const OTHER_KINDS: &[&str] = &[
    "memcpy",
    "comch_send",
    "comch_post_recv",
    "comch_producer_send",
    "sync_event_get",
    "sync_event_notify_set",
    "sync_event_notify_add",
    "sync_event_wait_eq",
    "sync_event_wait_neq",
    "sta_disconnect",
    "sta_rdma_read",
    "sta_rdma_write_send",
    "sta_rdma_send",
    "sta_rm_ns",
    "sta_destroy_queue",
];

/// The libraries whose contexts can be started.
const LIBRARIES: &[&str] = &[
    "doca_rdma",
    "doca_dma",
    "doca_sync_event",
    "doca_sta",
    "doca_comch_server",
    "doca_comch_client",
    "doca_comch_consumer",
    "doca_comch_producer",
];

/// The functions of the public headers and what they return.
const FUNCTIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// Functions of the simulated librdmacm that can fail.
const RDMACM: &[&str] = &[
    "rdma_accept",
    "rdma_ack_cm_event",
    "rdma_bind_addr",
    "rdma_connect",
    "rdma_create_event_channel",
    "rdma_create_id",
    "rdma_destroy_id",
    "rdma_disconnect",
    "rdma_establish",
    "rdma_get_cm_event",
    "rdma_get_devices",
    "rdma_get_request",
    "rdma_getaddrinfo",
    "rdma_listen",
    "rdma_migrate_id",
    "rdma_reject",
    "rdma_resolve_addr",
    "rdma_resolve_route",
    "rdma_set_option",
];

/// What its functions fail with.
const ERRNOS: &[(&str, i32)] = &[
    ("EACCES", libc::EACCES),
    ("EADDRINUSE", libc::EADDRINUSE),
    ("EADDRNOTAVAIL", libc::EADDRNOTAVAIL),
    ("EAGAIN", libc::EAGAIN),
    ("EBADF", libc::EBADF),
    ("ECONNREFUSED", libc::ECONNREFUSED),
    ("EINTR", libc::EINTR),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("EMFILE", libc::EMFILE),
    ("ENODEV", libc::ENODEV),
    ("ENOMEM", libc::ENOMEM),
    ("ENOSYS", libc::ENOSYS),
    ("ENOTCONN", libc::ENOTCONN),
    ("EPERM", libc::EPERM),
    ("ETIMEDOUT", libc::ETIMEDOUT),
];

/// A word of the language and what stands behind its `=`.
const FORMS: &[(&str, &[&str])] = &[
    ("call", &["FUNCTION", "NTH", "ERROR"]),
    ("refuse", &["KIND", "NTH", "ERROR"]),
    ("fail", &["KIND", "NTH", "ERROR"]),
    ("delay", &["KIND", "NTH", "MS"]),
    ("cut", &["CONNECTION", "COUNT"]),
    ("exhaust", &["KIND", "COUNT"]),
    ("freeze", &["COUNT", "MS"]),
    ("start", &["LIBRARY", "NTH", "ERROR"]),
    ("unit", &["NTH", "HOW"]),
    ("reorder", &["SEED"]),
    ("version", &["TEXT"]),
];

/// Which of a row of occasions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Nth {
    /// Counted from 1.
    pub(super) first: u64,
    /// All later ones too.
    pub(super) and_on: bool,
}

impl Nth {
    pub(super) fn is(self, count: u64) -> bool {
        count == self.first || self.and_on && count > self.first
    }
}

/// What is to go wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A call returns an error and does nothing.
    Call { function: String, nth: Nth, error: Code },
    /// The same of librdmacm, whose errors are in `errno`.
    System { function: String, nth: Nth, errno: i32 },
    /// A task is refused by submit.
    Refuse { kind: Kind, nth: Nth, error: Code },
    /// A task is accepted and fails.
    Fail { kind: Kind, nth: Nth, error: Code },
    /// A task's completion is held back.
    Delay { kind: Kind, nth: Nth, ms: u64 },
    /// A connection breaks after so many send-side tasks.
    Cut { connection: Option<u32>, after: u64 },
    /// A pool has fewer tasks than configured.
    Exhaust { kind: Kind, count: u32 },
    /// A context neither executes nor answers for a time.
    Freeze { after: u64, ms: u64 },
    /// A context of a library does not start.
    Start { library: String, nth: Nth, error: Code },
    /// An execution unit of a storage target fails.
    Unit { nth: Nth, fatal: bool },
    /// Queues are served in an order of chance.
    Reorder { seed: u64 },
    /// What `doca_version_runtime` says.
    Version(String),
}

/// A kind of task, or all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kind(Option<String>);

impl Kind {
    pub(super) fn is(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|kind| kind == name)
    }
}

/// A rule as it was written, and what it means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) what: What,
}

/// Reads rules, which end with a semicolon or with their line. The error names the rule and its field.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let rules = lines.flat_map(|line| line.split(';')).map(str::trim).filter(|rule| !rule.is_empty());
    rules.map(|text| rule(text).map(|what| Rule { text: text.to_owned(), what })).collect()
}

fn rule(text: &str) -> Result<What, String> {
    let bad = |why: String| format!("'{text}': {why}");
    let (word, rest) = text.split_once('=').unwrap_or((text, ""));
    let word = word.trim();
    let form = FORMS.iter().find(|(known, _)| *known == word);
    let (_, names) = form.ok_or_else(|| {
        bad(format!("unknown word '{word}'; known are {}", list(FORMS.iter().map(|(word, _)| *word))))
    })?;
    let values: Vec<&str> = rest.split(':').map(str::trim).collect();
    if values.len() != names.len() || values.iter().any(|value| value.is_empty()) {
        return Err(bad(format!("expected {word}={}", names.join(":"))));
    }
    let fields = Fields { names, values: &values };
    meaning(word, &fields).map_err(bad)
}

fn meaning(word: &str, fields: &Fields<'_>) -> Result<What, String> {
    Ok(match word {
        "call" if fields.values[0].starts_with("rdma_") => {
            What::System { function: fields.of_librdmacm(0)?, nth: fields.nth(1)?, errno: fields.errno(2)? }
        }
        "call" => What::Call { function: fields.function(0)?, nth: fields.nth(1)?, error: fields.error(2)? },
        "refuse" => What::Refuse { kind: fields.kind(0)?, nth: fields.nth(1)?, error: fields.error(2)? },
        "fail" => What::Fail { kind: fields.kind(0)?, nth: fields.nth(1)?, error: fields.error(2)? },
        "delay" => What::Delay { kind: fields.kind(0)?, nth: fields.nth(1)?, ms: fields.number(2)? },
        "cut" => What::Cut { connection: fields.connection(0)?, after: fields.number(1)? },
        "exhaust" => What::Exhaust { kind: fields.kind(0)?, count: fields.number(1)? },
        "freeze" => What::Freeze { after: fields.number(0)?, ms: fields.number(1)? },
        "start" => What::Start { library: fields.library(0)?, nth: fields.nth(1)?, error: fields.error(2)? },
        "unit" => What::Unit { nth: fields.nth(0)?, fatal: fields.how(1)? },
        "reorder" => What::Reorder { seed: fields.number(0)? },
        _ => What::Version(fields.values[0].to_owned()),
    })
}

struct Fields<'a> {
    names: &'a [&'a str],
    values: &'a [&'a str],
}

impl Fields<'_> {
    fn bad(&self, index: usize, why: &str) -> String {
        format!("{} '{}' {why}", self.names[index], self.values[index])
    }

    fn number<T: std::str::FromStr>(&self, index: usize) -> Result<T, String> {
        self.values[index].parse().map_err(|_| self.bad(index, "is not a number that fits"))
    }

    fn nth(&self, index: usize) -> Result<Nth, String> {
        let value = self.values[index];
        let digits = value.strip_suffix('+').unwrap_or(value);
        match digits.parse() {
            Ok(first) if first > 0 => Ok(Nth { first, and_on: digits != value }),
            _ => Err(self.bad(index, "is neither a number from 1 on, nor one with a + behind it")),
        }
    }

    fn error(&self, index: usize) -> Result<Code, String> {
        let value = self.values[index];
        let short = value.strip_prefix("DOCA_ERROR_").unwrap_or(value);
        let names = || TABLE.iter().map(|(name, _)| name.to_str().unwrap_or_default());
        let code = names().position(|name| name.strip_prefix("DOCA_ERROR_") == Some(short));
        code.map(|code| Code(code as u32)).ok_or_else(|| self.bad(index, "is no error of doca_error.h"))
    }

    fn of_librdmacm(&self, index: usize) -> Result<String, String> {
        let value = self.values[index];
        if RDMACM.contains(&value) {
            return Ok(value.to_owned());
        }
        Err(self.bad(index, &format!("is none of {}", list(RDMACM.iter().copied()))))
    }

    fn errno(&self, index: usize) -> Result<i32, String> {
        let row = ERRNOS.iter().find(|(name, _)| *name == self.values[index]);
        let known = || list(ERRNOS.iter().map(|(name, _)| *name));
        row.map(|(_, errno)| *errno).ok_or_else(|| self.bad(index, &format!("is none of {}", known())))
    }

    fn kind(&self, index: usize) -> Result<Kind, String> {
        let value = self.values[index];
        let known = || RdmaTask::ALL.iter().map(|kind| kind.name()).chain(OTHER_KINDS.iter().copied());
        if value == "any" {
            return Ok(Kind(None));
        }
        if known().any(|kind| kind == value) {
            return Ok(Kind(Some(value.to_owned())));
        }
        Err(self.bad(index, &format!("is no kind of task; there are any, {}", list(known()))))
    }

    fn connection(&self, index: usize) -> Result<Option<u32>, String> {
        if self.values[index] == "any" { Ok(None) } else { self.number(index).map(Some) }
    }

    fn library(&self, index: usize) -> Result<String, String> {
        let value = self.values[index];
        if LIBRARIES.contains(&value) {
            return Ok(value.to_owned());
        }
        Err(self.bad(index, &format!("is none of {}", list(LIBRARIES.iter().copied()))))
    }

    fn how(&self, index: usize) -> Result<bool, String> {
        match self.values[index] {
            "fatal" => Ok(true),
            "recoverable" => Ok(false),
            _ => Err(self.bad(index, "is neither fatal nor recoverable")),
        }
    }

    fn function(&self, index: usize) -> Result<String, String> {
        let value = self.values[index];
        let declared = FUNCTIONS.iter().find(|(name, _)| *name == value);
        let returns = declared.map(|(_, returns)| *returns);
        match returns {
            Some("doca_error_t") => Ok(value.to_owned()),
            Some(_) => Err(self.bad(index, "does not return doca_error_t")),
            None => Err(self.bad(index, "is no function of the public headers")),
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> What {
        let mut rules = parse(text).expect(text);
        assert_eq!(rules.len(), 1, "{text}");
        rules.remove(0).what
    }

    #[test]
    fn every_word_is_understood() {
        let kind = |name: &str| Kind(Some(name.to_owned()));
        let third = Nth { first: 3, and_on: false };
        let error = Code::IO_FAILED;
        assert_eq!(one("fail=send:3:IO_FAILED"), What::Fail { kind: kind("send"), nth: third, error });
        assert_eq!(
            one("refuse = any : 3 : DOCA_ERROR_IO_FAILED"),
            What::Refuse { kind: Kind(None), nth: third, error }
        );
        assert_eq!(
            one("call=doca_mmap_start:3+:NO_MEMORY"),
            What::Call {
                function: "doca_mmap_start".into(),
                nth: Nth { first: 3, and_on: true },
                error: Code::NO_MEMORY
            }
        );
        assert_eq!(
            one("call=rdma_bind_addr:3:EADDRINUSE"),
            What::System { function: "rdma_bind_addr".into(), nth: third, errno: libc::EADDRINUSE }
        );
        assert_eq!(one("delay=memcpy:3:20"), What::Delay { kind: kind("memcpy"), nth: third, ms: 20 });
        assert_eq!(one("cut=any:100"), What::Cut { connection: None, after: 100 });
        assert_eq!(one("cut=2:0"), What::Cut { connection: Some(2), after: 0 });
        assert_eq!(one("unit=3:fatal"), What::Unit { nth: third, fatal: true });
        assert_eq!(one("exhaust=receive:1"), What::Exhaust { kind: kind("receive"), count: 1 });
        assert_eq!(one("freeze=0:500"), What::Freeze { after: 0, ms: 500 });
        assert_eq!(
            one("start=doca_rdma:3:IO_FAILED"),
            What::Start { library: "doca_rdma".into(), nth: third, error }
        );
        assert_eq!(one("reorder=7"), What::Reorder { seed: 7 });
        assert_eq!(one("version=3.0.0058"), What::Version("3.0.0058".into()));
    }

    #[test]
    fn functions_of_every_header_can_be_named() {
        for (function, returns) in FUNCTIONS {
            let parsed = parse(&format!("call={function}:1:DRIVER"));
            assert_eq!(parsed.is_ok(), *returns == "doca_error_t", "{function}: {parsed:?}");
        }
        let any_of = |start: &str| FUNCTIONS.iter().any(|(function, _)| function.starts_with(start));
        assert!(["doca_rdma_", "doca_comch_", "doca_sta_mem_", "doca_error_"].into_iter().all(any_of));
    }

    #[test]
    fn rules_end_with_a_semicolon_or_their_line_and_comments_with_their_line() {
        let rules = parse("# nothing\nreorder=1; reorder=2;\n\nreorder=3 # three; not four\n").unwrap();
        assert_eq!(
            rules.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>(),
            ["reorder=1", "reorder=2", "reorder=3"]
        );
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn each_mistake_is_named_with_its_field() {
        for (text, named) in [
            ("explode=1", "unknown word 'explode'"),
            ("fail", "expected fail=KIND:NTH:ERROR"),
            ("fail=send:3", "expected fail=KIND:NTH:ERROR"),
            ("fail=send:3:IO_FAILED:4", "expected fail=KIND:NTH:ERROR"),
            ("fail=sent:3:IO_FAILED", "KIND 'sent'"),
            ("fail=send:0:IO_FAILED", "NTH '0'"),
            ("fail=send:-1:IO_FAILED", "NTH '-1'"),
            ("fail=send:3:SUCCESS", "ERROR 'SUCCESS'"),
            ("fail=send:3:io_failed", "ERROR 'io_failed'"),
            ("delay=send:1:soon", "MS 'soon'"),
            ("cut=first:3", "CONNECTION 'first'"),
            ("exhaust=send:99999999999", "COUNT '99999999999'"),
            ("start=doca_comch:1:DRIVER", "LIBRARY 'doca_comch'"),
            ("call=doca_rdma_exprot:1:DRIVER", "FUNCTION 'doca_rdma_exprot' is no function"),
            ("call=doca_pe_progress:1:DRIVER", "FUNCTION 'doca_pe_progress' does not return"),
            ("call=rdma_get_src_port:1:EINVAL", "FUNCTION 'rdma_get_src_port' is none of rdma_accept"),
            ("call=rdma_listen:1:IO_FAILED", "ERROR 'IO_FAILED' is none of EACCES"),
            ("version=", "expected version=TEXT"),
            ("reorder=1; reorder=x", "'reorder=x'"),
        ] {
            let said = parse(text).expect_err(text);
            assert!(said.contains(named), "{text}: {said}");
        }
    }
}
