use super::backend::Registry;
use super::line::Record;
use super::*;
use std::ffi::{CStr, c_char};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn registry() -> Registry {
    Registry::new(None, None)
}

fn count(registry: &Registry, family: Family, level: Level) -> usize {
    registry.showing(family, level).len()
}

#[test]
fn levels_are_words_or_numbers() {
    for (text, level) in [
        ("10", Some(Level::DISABLE)),
        ("critical", Some(Level::CRIT)),
        ("ERROR", Some(Level::ERROR)),
        (" warn ", Some(Level::WARNING)),
        ("Warning", Some(Level::WARNING)),
        ("info", Some(Level::INFO)),
        ("60", Some(Level::DEBUG)),
        ("trace", Some(Level::TRACE)),
        ("55", None),
        ("0", None),
        ("", None),
        ("loud", None),
        ("-10", None),
    ] {
        assert_eq!(Level::parse(text), level, "{text:?}");
    }
}

#[test]
fn an_application_backend_shows_what_lies_between_its_limits() {
    let mut registry = registry();
    assert_eq!(count(&registry, Family::Application, Level::CRIT), 0);
    let backend = registry.add(Family::Application, Sink::Stderr);
    assert_eq!(count(&registry, Family::Application, Level::CRIT), 1);
    assert_eq!(count(&registry, Family::Application, Level::INFO), 1);
    assert_eq!(count(&registry, Family::Application, Level::DEBUG), 0);
    registry.set_limit(&backend, Limit::Upper, Level::WARNING).unwrap();
    assert_eq!(count(&registry, Family::Application, Level::ERROR), 0);
    assert_eq!(count(&registry, Family::Application, Level::WARNING), 1);
    registry.set_limit(&backend, Limit::Lower, Level::DISABLE).unwrap();
    assert_eq!(count(&registry, Family::Application, Level::WARNING), 0);
}

#[test]
fn until_there_is_an_sdk_backend_warnings_are_shown() {
    let mut registry = registry();
    assert_eq!(count(&registry, Family::Sdk, Level::WARNING), 1);
    assert_eq!(count(&registry, Family::Sdk, Level::INFO), 0);
    assert_eq!(registry.most_verbose_sdk(), 40);
    registry.set_global(Limit::Sdk, Level::DEBUG);
    assert_eq!(registry.most_verbose_sdk(), 60);
    let own = registry.add(Family::Sdk, Sink::Stderr);
    assert_eq!(count(&registry, Family::Sdk, Level::DEBUG), 1);
    registry.set_limit(&own, Limit::Sdk, Level::CRIT).unwrap();
    assert_eq!(registry.most_verbose_sdk(), 20);
    assert_eq!(count(&registry, Family::Sdk, Level::ERROR), 0);
}

#[test]
fn the_standard_backend_exists_once() {
    let mut registry = registry();
    registry.add_standard();
    registry.add_standard();
    assert_eq!(count(&registry, Family::Application, Level::INFO), 1);
}

#[test]
fn global_limits_reach_old_and_new_backends_of_their_family() {
    let mut registry = registry();
    let sdk = registry.add(Family::Sdk, Sink::Stderr);
    registry.add(Family::Application, Sink::Stderr);
    registry.set_limit(&sdk, Limit::Sdk, Level::ERROR).unwrap();
    registry.set_global(Limit::Lower, Level::TRACE);
    registry.add(Family::Application, Sink::Stderr);
    assert_eq!(count(&registry, Family::Application, Level::TRACE), 2);
    assert_eq!(count(&registry, Family::Sdk, Level::WARNING), 0);
    assert_eq!(registry.global(Limit::Lower), Level::TRACE);
    assert_eq!(registry.global(Limit::Sdk), Level::INFO);
}

#[test]
fn a_strict_limit_only_shrinks() {
    let mut registry = registry();
    let backend = registry.add(Family::Application, Sink::Stderr);
    backend.make_strict(Limit::Lower).unwrap();
    backend.make_strict(Limit::Upper).unwrap();
    assert_eq!(registry.set_limit(&backend, Limit::Lower, Level::DEBUG), Err(Code::NOT_PERMITTED));
    registry.set_global(Limit::Lower, Level::DEBUG);
    assert_eq!(count(&registry, Family::Application, Level::DEBUG), 0);
    registry.set_limit(&backend, Limit::Lower, Level::WARNING).unwrap();
    assert_eq!(count(&registry, Family::Application, Level::INFO), 0);
    registry.set_limit(&backend, Limit::Upper, Level::ERROR).unwrap();
    assert_eq!(registry.set_limit(&backend, Limit::Upper, Level::CRIT), Err(Code::NOT_PERMITTED));
}

#[test]
fn limits_belong_to_a_family() {
    let mut registry = registry();
    let sdk = registry.add(Family::Sdk, Sink::Stderr);
    let application = registry.add(Family::Application, Sink::Stderr);
    assert_eq!(registry.set_limit(&sdk, Limit::Lower, Level::INFO), Err(Code::INVALID_VALUE));
    assert_eq!(registry.set_limit(&application, Limit::Sdk, Level::INFO), Err(Code::INVALID_VALUE));
    assert_eq!(sdk.make_strict(Limit::Upper), Err(Code::INVALID_VALUE));
}

#[test]
fn the_environment_outranks_the_program_and_the_command_line_outranks_both() {
    let mut registry = Registry::new(Some(Level::DEBUG), Some(Level::TRACE));
    let sdk = registry.add(Family::Sdk, Sink::Stderr);
    registry.set_limit(&sdk, Limit::Sdk, Level::WARNING).unwrap();
    assert_eq!(registry.most_verbose_sdk(), 70);
    registry.add_standard();
    assert_eq!(count(&registry, Family::Application, Level::DEBUG), 1);
    registry.forget_environment(Limit::Sdk);
    registry.set_global(Limit::Sdk, Level::ERROR);
    assert_eq!(registry.most_verbose_sdk(), 30);
}

#[test]
fn a_line_says_when_who_what_and_where() {
    let record = Record {
        level: Level::WARNING,
        file: "some/where/file.c",
        line: 7,
        function: "work",
        text: format_args!("a {}", "text"),
    };
    let line = record.to_line();
    let fields: Vec<_> = line.split("][").collect();
    let clock: Vec<_> = fields[0][1..].split(':').map(str::len).collect();
    assert_eq!(clock, [2, 2, 2, 6], "{line}");
    assert!(fields[1].parse::<u32>().is_ok(), "{line}");
    assert_eq!(fields[2..].join("|"), "DOCA|WRN|file.c:7|work] a text\n");
}

#[test]
fn sources_have_numbers_of_their_own() {
    let (one, two) = (register_source("A").unwrap(), register_source("A").unwrap());
    assert_ne!(one, two);
    assert_eq!(unregister_source(one), Ok(()));
    assert_eq!(unregister_source(one), Err(Code::INVALID_VALUE));
    assert_eq!(unregister_source(-1), Err(Code::INVALID_VALUE));
}

#[test]
fn a_flush_function_gets_each_record_at_the_start_of_its_buffer_and_may_log() {
    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    unsafe extern "C" fn flush(buffer: *mut c_char) {
        // SAFETY: the sink writes a NUL into each buffer before it calls this.
        let text = unsafe { CStr::from_ptr(buffer) }.to_string_lossy().into_owned();
        lock(&SEEN).push(text);
        application(Level::INFO, "f", 1, "flush", "logged by the flush function");
    }
    let buffer = Box::leak(Box::new([0 as c_char; 12]));
    let backend = add(Family::Application, Sink::Buffer(buffer.as_mut_ptr(), buffer.len(), flush));
    backend.write(Level::INFO, "short\n");
    backend.write(Level::INFO, "longer than the buffer\n");
    backend.write(Level::INFO, "0123456789é\n");
    set_limit(&backend, Limit::Lower, Level::DISABLE).unwrap();
    let seen = lock(&SEEN);
    for expected in ["short\n", "longer than", "0123456789"] {
        assert!(seen.iter().any(|text| text == expected), "{expected:?} in {seen:?}");
    }
    assert!(!seen.iter().any(|text| text.contains("flush")), "{seen:?}");
}

#[test]
fn what_a_flush_function_logs_reaches_backends_without_one() {
    static FILE: std::sync::OnceLock<std::os::fd::OwnedFd> = std::sync::OnceLock::new();
    unsafe extern "C" fn flush(_: *mut c_char) {
        add_to_file("from the flush function\n");
    }
    fn add_to_file(line: &str) {
        use std::os::fd::AsRawFd;
        let fd = FILE.get().expect("the test has set it").as_raw_fd();
        Registry::new(None, None).add(Family::Application, Sink::Fd(fd)).write(Level::INFO, line);
    }
    let (mut reader, writer) = UnixStream::pair().unwrap();
    reader.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    FILE.set(writer.into()).unwrap();
    let mut buffer = [0 as c_char; 64];
    let sink = Sink::Buffer(buffer.as_mut_ptr(), buffer.len(), flush);
    Registry::new(None, None).add(Family::Application, sink).write(Level::INFO, "first\n");
    let mut text = [0; 64];
    let length = std::io::Read::read(&mut reader, &mut text).unwrap();
    assert_eq!(&text[..length], b"from the flush function\n");
}
