//! `doca_log.h`: backends, levels and sources. `doca_log` itself is variadic: C formats the text.

use crate::code::{Code, Res};
use crate::entry;
use crate::entry::{In, Out, Text};
use crate::log::{self, Backend, Family, Level, Limit, Sink};
use std::ffi::{c_char, c_int};
use std::sync::Arc;

/// A backend, which the log keeps until the process ends.
type Handle = *const Backend;

fn add_file(family: Family, file: In<libc::FILE>, backend: Out<Handle>) -> Res {
    backend.check()?;
    if file.raw().is_null() {
        return Err(Code::INVALID_VALUE);
    }
    backend.put(Arc::as_ptr(&log::add(family, Sink::File(file.raw().cast_mut()))))
}

fn add_fd(family: Family, fd: c_int, backend: Out<Handle>) -> Res {
    backend.check()?;
    if fd < 0 {
        return Err(Code::INVALID_VALUE);
    }
    backend.put(Arc::as_ptr(&log::add(family, Sink::Fd(fd))))
}

type Flush = unsafe extern "C" fn(*mut c_char);

fn add_buf(
    family: Family,
    buf: Out<c_char>,
    capacity: usize,
    flush: Option<Flush>,
    backend: Out<Handle>,
) -> Res {
    buf.check()?;
    backend.check()?;
    let flush = flush.ok_or(Code::INVALID_VALUE)?;
    if capacity == 0 {
        return Err(Code::INVALID_VALUE);
    }
    backend.put(Arc::as_ptr(&log::add(family, Sink::Buffer(buf.raw(), capacity, flush))))
}

fn add_syslog(family: Family, name: Text, backend: Out<Handle>) -> Res {
    let name = name.get()?.to_owned();
    backend.check()?;
    backend.put(Arc::as_ptr(&log::add(family, Sink::Syslog(name))))
}

fn set_limit(backend: In<Backend>, limit: Limit, level: u32) -> Res {
    log::set_limit(backend.get()?, limit, log::level_from_c(level)?)
}

fn set_global(limit: Limit, level: u32) -> Res {
    log::set_global(limit, log::level_from_c(level)?);
    Ok(())
}

fn global(limit: Limit) -> u32 {
    log::global(limit).number()
}

entry! {
    /// One message of an application, whose text C has formatted. DISABLE is no level of a message; a source
    /// that is not registered is no reason to lose one.
    fn doca_log(level: u32, source: c_int, fname: Text, line: c_int, func: Text, text: Text) {
        _ = source;
        let level = log::level_from_c(level)?;
        if level == Level::DISABLE {
            return Err(Code::INVALID_VALUE);
        }
        let (file, function) = (fname.get()?.to_string_lossy(), func.get()?.to_string_lossy());
        log::application(level, &file, line, &function, &text.get()?.to_string_lossy());
        Ok(())
    }

    /// Shows application messages on stdout and stderr.
    fn doca_log_backend_create_standard() {
        log::add_standard();
        Ok(())
    }

    /// Writes application messages to a stream.
    fn doca_log_backend_create_with_file(fptr: In<libc::FILE>, backend: Out<Handle>) {
        add_file(Family::Application, fptr, backend)
    }

    /// Writes SDK messages to a stream.
    fn doca_log_backend_create_with_file_sdk(fptr: In<libc::FILE>, backend: Out<Handle>) {
        add_file(Family::Sdk, fptr, backend)
    }

    /// Writes application messages to a file descriptor.
    fn doca_log_backend_create_with_fd(fd: c_int, backend: Out<Handle>) {
        add_fd(Family::Application, fd, backend)
    }

    /// Writes SDK messages to a file descriptor.
    fn doca_log_backend_create_with_fd_sdk(fd: c_int, backend: Out<Handle>) {
        add_fd(Family::Sdk, fd, backend)
    }

    /// Hands application messages to a function, in a buffer.
    fn doca_log_backend_create_with_buf(buf: Out<c_char>, capacity: usize, handler: Option<Flush>, backend: Out<Handle>) {
        add_buf(Family::Application, buf, capacity, handler, backend)
    }

    /// Hands SDK messages to a function, in a buffer.
    fn doca_log_backend_create_with_buf_sdk(buf: Out<c_char>, capacity: usize, handler: Option<Flush>, backend: Out<Handle>) {
        add_buf(Family::Sdk, buf, capacity, handler, backend)
    }

    /// Writes application messages to the system's log.
    fn doca_log_backend_create_with_syslog(name: Text, backend: Out<Handle>) {
        add_syslog(Family::Application, name, backend)
    }

    /// Writes SDK messages to the system's log.
    fn doca_log_backend_create_with_syslog_sdk(name: Text, backend: Out<Handle>) {
        add_syslog(Family::Sdk, name, backend)
    }

    /// Sets the least severe level that an application backend shows.
    fn doca_log_backend_set_level_lower_limit(backend: In<Backend>, level: u32) {
        set_limit(backend, Limit::Lower, level)
    }

    /// Sets the most severe level that an application backend shows.
    fn doca_log_backend_set_level_upper_limit(backend: In<Backend>, upper_limit: u32) {
        set_limit(backend, Limit::Upper, upper_limit)
    }

    /// Keeps the lower limit from letting more through.
    fn doca_log_backend_set_level_lower_limit_strict(backend: In<Backend>) {
        log::make_strict(backend.get()?, Limit::Lower)
    }

    /// Keeps the upper limit from letting more through.
    fn doca_log_backend_set_level_upper_limit_strict(backend: In<Backend>) {
        log::make_strict(backend.get()?, Limit::Upper)
    }

    /// Sets the least severe level that an SDK backend shows.
    fn doca_log_backend_set_sdk_level(backend: In<Backend>, level: u32) {
        set_limit(backend, Limit::Sdk, level)
    }

    /// Sets the lower limit of all application backends, and of those to come.
    fn doca_log_level_set_global_lower_limit(level: u32) {
        set_global(Limit::Lower, level)
    }

    /// Sets the upper limit of all application backends, and of those to come.
    fn doca_log_level_set_global_upper_limit(upper_limit: u32) {
        set_global(Limit::Upper, upper_limit)
    }

    /// Sets the level of all SDK backends, and of those to come.
    fn doca_log_level_set_global_sdk_limit(level: u32) {
        set_global(Limit::Sdk, level)
    }

    /// The lower limit that application backends begin with.
    fn doca_log_level_get_global_lower_limit() -> u32 = 0; {
        global(Limit::Lower)
    }

    /// The upper limit that application backends begin with.
    fn doca_log_level_get_global_upper_limit() -> u32 = 0; {
        global(Limit::Upper)
    }

    /// The level that SDK backends begin with.
    fn doca_log_level_get_global_sdk_limit() -> u32 = 0; {
        global(Limit::Sdk)
    }

    /// Gives a log source a number.
    fn doca_log_register_source(source_name: Text, source: Out<c_int>) {
        let name = source_name.get()?.to_string_lossy();
        source.check()?;
        source.put(log::register_source(&name)?)
    }

    /// Forgets a log source.
    fn doca_log_unregister_source(source: c_int) {
        log::unregister_source(source)
    }
}
