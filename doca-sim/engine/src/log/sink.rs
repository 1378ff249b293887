//! Where lines go.

use super::Level;
use std::cell::Cell;
use std::ffi::{CString, c_char, c_int};

/// C's `FILE`.
pub(crate) type File = libc::FILE;

/// What is called with the buffer after each record.
pub(crate) type Flush = unsafe extern "C" fn(*mut c_char);

/// The destination of a backend.
pub(crate) enum Sink {
    /// stdout down to INFO, stderr for what is more severe.
    Standard,
    /// stderr.
    Stderr,
    /// A stream of the program.
    File(*mut File),
    /// A file descriptor of the program.
    Fd(c_int),
    /// A buffer of the program, and what empties it.
    Buffer(*mut c_char, usize, Flush),
    /// The system's log, under this name.
    Syslog(CString),
}

// SAFETY: the pointers are the program's, which keeps what they point to for as long as the process lives and
// expects messages of any thread; each sink is behind a mutex, so that one thread at a time writes.
unsafe impl Send for Sink {}

/// The two streams that every process has.
#[derive(Clone, Copy)]
pub(crate) enum Stdio {
    Out,
    Err,
}

unsafe extern "C" {
    static stdout: *mut File;
    static stderr: *mut File;
}

thread_local! {
    /// Whether this thread is inside a program's flush function.
    static FLUSHING: Cell<bool> = const { Cell::new(false) };
}

impl Sink {
    /// Writes one line. Failures have no one to be told to, and are ignored.
    pub(super) fn write(&self, level: Level, line: &str) {
        match self {
            Sink::Standard if level >= Level::INFO => print(Stdio::Out, line.as_bytes()),
            Sink::Standard | Sink::Stderr => print(Stdio::Err, line.as_bytes()),
            Sink::File(file) => write_file(*file, line.as_bytes()),
            Sink::Fd(fd) => write_fd(*fd, line.as_bytes()),
            Sink::Buffer(buffer, capacity, flush) => write_buffer(*buffer, *capacity, *flush, line),
            Sink::Syslog(name) => write_syslog(name, level, line),
        }
    }
}

/// Whether this thread is inside a program's flush function.
pub(super) fn is_flushing() -> bool {
    FLUSHING.get()
}

/// Writes to one of C's standard streams, so that the order among the program's own output is kept.
pub(crate) fn print(stream: Stdio, bytes: &[u8]) {
    // SAFETY: C initialises both before `main`; programs may assign to them, never at the time of a call.
    let file = unsafe {
        match stream {
            Stdio::Out => stdout,
            Stdio::Err => stderr,
        }
    };
    write_file(file, bytes);
}

fn write_file(file: *mut File, bytes: &[u8]) {
    // SAFETY: the stream is open by the promise of whoever gave it (see `Sink`); C locks it.
    unsafe {
        libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), file);
        libc::fflush(file);
    }
}

fn write_fd(fd: c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the range is that of a slice; a descriptor that is not open gives an error.
        let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => bytes = &bytes[written..],
            _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

fn write_buffer(buffer: *mut c_char, capacity: usize, flush: Flush, line: &str) {
    let length = line.floor_char_boundary(capacity - 1);
    // SAFETY: the program gave `capacity` bytes, of which there is at least one, and `length` leaves room for
    // the NUL; the sink's mutex keeps other threads of ours out.
    unsafe {
        std::ptr::copy_nonoverlapping(line.as_ptr().cast(), buffer, length);
        buffer.add(length).write(0);
    }
    FLUSHING.set(true);
    // SAFETY: the program gave this function to be called with this buffer.
    unsafe { flush(buffer) };
    FLUSHING.set(false);
}

fn write_syslog(name: &CString, level: Level, line: &str) {
    let priority = match level {
        Level::CRIT => libc::LOG_CRIT,
        Level::ERROR => libc::LOG_ERR,
        Level::WARNING => libc::LOG_WARNING,
        Level::INFO => libc::LOG_INFO,
        _ => libc::LOG_DEBUG,
    };
    let Ok(text) = CString::new(line.trim_end().replace('\0', "")) else { return };
    // SAFETY: the name belongs to a backend, which lives as long as the process, as openlog wants; the format
    // takes one string.
    unsafe {
        libc::openlog(name.as_ptr(), libc::LOG_PID, libc::LOG_USER);
        libc::syslog(priority, c"%s".as_ptr(), text.as_ptr());
    }
}
