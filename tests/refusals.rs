//! DOCA refuses, call by call: every error reaches the program with what was handed over, and what cannot be
//! stopped or unregistered is leaked, never freed while a device may reach it.
//!
//! This binary defines some of DOCA's functions itself. Its own calls come here, and go on to the library unless the
//! test asked for a refusal.

mod support;

use doca::rdma::{Left, Rdma};
use doca::{Code, Device, Kind, Memory, ProgressEngine, Refusal};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::time::{Duration, Instant};
use support::{LIMIT, Pair, device, log};

thread_local! {
    /// The function that refuses on this thread, and the code it refuses with.
    static REFUSING: Cell<Option<(&'static CStr, Code)>> = const { Cell::new(None) };
}

/// Lets a function refuse while `body` runs.
fn refusing<T>(function: &'static CStr, code: Code, body: impl FnOnce() -> T) -> T {
    REFUSING.set(Some((function, code)));
    let result = body();
    REFUSING.set(None);
    result
}

/// The library's function of this name.
fn library(name: &CStr) -> *mut c_void {
    // SAFETY: the name is terminated; the handle asks for the definition after this binary's.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!function.is_null(), "{name:?} is in no library");
    function
}

/// Defines functions of DOCA that take one pointer.
macro_rules! functions {
    ($($name:ident = $text:literal;)*) => {
        $(
            // SAFETY: the C function's own name and type; the definition is for this test binary only.
            #[unsafe(no_mangle)]
            extern "C" fn $name(object: *mut c_void) -> doca_sys::doca_error_t {
                match REFUSING.get() {
                    Some((function, code)) if function == $text => doca_sys::doca_error_t(code.as_raw()),
                    _ => {
                        type Function = unsafe extern "C" fn(*mut c_void) -> doca_sys::doca_error_t;
                        // SAFETY: the library's function has this type.
                        let function = unsafe { std::mem::transmute::<*mut c_void, Function>(library($text)) };
                        // SAFETY: the argument is the caller's, who meant the library's function.
                        unsafe { function(object) }
                    }
                }
            }
        )*
    };
}

functions! {
    doca_ctx_start = c"doca_ctx_start";
    doca_ctx_stop = c"doca_ctx_stop";
    doca_task_submit = c"doca_task_submit";
    doca_mmap_start = c"doca_mmap_start";
    doca_mmap_destroy = c"doca_mmap_destroy";
    doca_rdma_destroy = c"doca_rdma_destroy";
    doca_dev_close = c"doca_dev_close";
    doca_pe_destroy = c"doca_pe_destroy";
    doca_pe_request_notification = c"doca_pe_request_notification";
    doca_rdma_connection_disconnect = c"doca_rdma_connection_disconnect";
}

/// Whether an address of this process is mapped.
fn is_mapped(address: usize) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        range.is_some_and(|(start, end)| {
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(start)..number(end)).contains(&address)
        })
    })
}

#[test]
fn a_refused_submission_gives_the_buffer_back_and_costs_no_slot() {
    let mut pair = Pair::new();
    for (code, kind) in
        [(Code::AGAIN, Kind::Again), (Code::FULL, Kind::Full), (Code::from_raw(99), Kind::Other)]
    {
        for _ in 0..support::TASKS * 3 {
            let message = pair.message(b"refused");
            let refused = refusing(c"doca_task_submit", code, || {
                pair.left.sends.submit(&pair.left.connection, message).unwrap_err()
            });
            assert_eq!((refused.error.code(), refused.error.kind()), (Some(code), kind));
            assert_eq!(refused.error.is_retryable(), kind != Kind::Other);
            assert_eq!((&refused.value[..], refused.error.call()), (&b"refused"[..], "doca_task_submit"));
            let receive = pair.memory.take(8).unwrap();
            let refused =
                refusing(c"doca_task_submit", code, || pair.left.receives.submit(receive).unwrap_err());
            assert_eq!(refused.value.len(), 8);
        }
    }
    pair.exchange(b"as if nothing had been");
}

#[test]
fn a_context_that_does_not_start_is_still_idle() {
    let engine = ProgressEngine::new().unwrap();
    let config = Rdma::configure(&device()).unwrap();
    let failed = refusing(c"doca_ctx_start", Code::DRIVER, || config.start(&engine).unwrap_err());
    assert_eq!(failed.error.code(), Some(Code::DRIVER));
    let Left::Config(mut config) = failed.value else { panic!("{:?}", failed.value) };
    config.set_max_num_connections(2).unwrap();
    let (rdma, _connection) = support::alone(config.start(&engine).unwrap());
    assert_eq!(rdma.max_num_connections().unwrap(), 2);
}

#[test]
fn a_context_that_does_not_stop_still_runs() {
    let Pair { engine, memory, left, right } = Pair::new();
    let failed =
        refusing(c"doca_ctx_stop", Code::UNEXPECTED, || right.rdma.stop().wait_for(LIMIT).unwrap_err());
    assert_eq!(failed.error.code(), Some(Code::UNEXPECTED));
    assert!(failed.to_string().contains("state Running, 0 tasks in flight"), "{failed}");
    let Left::Running(rdma) = failed.value else { panic!("{:?}", failed.value) };
    let mut receive = right.receives.submit(memory.take(8).unwrap()).unwrap();
    left.sends.submit(&left.connection, memory.take(2).unwrap()).unwrap().wait_for(LIMIT).unwrap();
    assert_eq!(receive.wait_for(LIMIT).unwrap().buffer.len(), 2);

    // "Progress and try again" is done for the program.
    let stopping = refusing(c"doca_ctx_stop", Code::AGAIN, || {
        let stopping = rdma.stop();
        let failed = stopping.wait_for(Duration::from_millis(20)).unwrap_err();
        assert_eq!(failed.error.refusal(), Some(Refusal::TimedOut));
        let Left::Running(rdma) = failed.value else { panic!("{:?}", failed.value) };
        rdma.stop()
    });
    drop(stopping.wait_for(LIMIT).unwrap());
    drop((engine, left));
    assert_eq!(log::warnings(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_stopped_is_leaked_with_its_memory() {
    let Pair { engine, memory, left, right } = Pair::new();
    let buffer = memory.take(8).unwrap();
    let address = buffer.as_ptr().addr();
    let mut receive = right.receives.submit(buffer).unwrap();
    let before = Instant::now();
    refusing(c"doca_ctx_stop", Code::UNEXPECTED, || drop(engine));
    assert!((doca::engine::PATIENCE..doca::engine::PATIENCE * 2).contains(&before.elapsed()));
    let warnings = log::warnings().join("\n");
    assert!(
        warnings.contains("a context is leaked") && warnings.contains("the engine is leaked"),
        "{warnings}"
    );

    let failed = receive.wait().unwrap_err();
    assert_eq!((failed.error.refusal(), failed.value.is_none()), (Some(Refusal::EngineGone), true));
    assert!(right.rdma.export().is_err() && left.rdma.mtu().is_err());
    assert_eq!(memory.take_at(0, 8).unwrap_err().refusal(), Some(Refusal::OutOfRange), "still in flight");
    drop((receive, memory, left, right));
    assert!(is_mapped(address), "the device may still write there");
}

#[test]
fn memory_that_stays_registered_stays_mapped() {
    let device = device();
    let memory = Memory::zeroed(1 << 20).unwrap().private(&device).unwrap();
    let address = memory.take(1).unwrap().as_ptr().addr();
    assert!(is_mapped(address));
    refusing(c"doca_mmap_destroy", Code::NOT_PERMITTED, || drop(memory));
    assert!(is_mapped(address));
    assert!(log::warnings().join("\n").contains("1048576 bytes stay allocated"));
}

#[test]
fn memory_that_is_not_registered_comes_back() {
    let device = device();
    let mut memory = Memory::zeroed(4096).unwrap();
    for _ in 0..3 {
        let failed = refusing(c"doca_mmap_start", Code::DRIVER, || memory.private(&device).unwrap_err());
        assert!(failed.error.next_check().contains("ulimit -l"), "{failed}");
        memory = failed.value;
    }
    assert_eq!(memory.private(&device).unwrap().take(4096).unwrap().len(), 4096);
}

#[test]
fn destroying_never_panics() {
    for function in
        [c"doca_rdma_destroy", c"doca_dev_close", c"doca_pe_destroy", c"doca_rdma_connection_disconnect"]
    {
        let Pair { engine, memory, left, right } = Pair::new();
        let device = Device::open("mlx5_1").unwrap();
        refusing(function, Code::IN_USE, || drop((left, right, memory, device, engine)));
        let _ = log::warnings();
    }
    let mut pair = Pair::new();
    pair.exchange(b"others are not disturbed");
}

#[test]
fn waiting_works_without_notifications() {
    let pair = Pair::new();
    refusing(c"doca_pe_request_notification", Code::NOT_SUPPORTED, || {
        assert_eq!(pair.engine.arm().unwrap_err().kind(), Kind::NotSupported);
        let mut receive = pair.right.receives.submit(pair.memory.take(8).unwrap()).unwrap();
        let late = receive.wait_for(Duration::from_millis(5)).unwrap_err();
        assert_eq!(late.error.refusal(), Some(Refusal::TimedOut));
        pair.left.send(pair.message(b"polled"));
        assert_eq!(&receive.wait_for(LIMIT).unwrap().buffer[..], b"polled");
    });
}

/// DOCA has no state for a reliable connection that a failed task has broken.
#[test]
fn what_fails_behind_a_failure_says_so() {
    let Pair { engine, memory, left, right } = Pair::new();
    assert!(!left.connection.is_broken());
    let _too_small = right.receives.submit(memory.take(8).unwrap()).unwrap();
    let _next = right.receives.submit(memory.take(64).unwrap()).unwrap();
    let mut first = left.sends.submit(&left.connection, memory.take(64).unwrap()).unwrap();
    let error = first.wait_for(LIMIT).unwrap_err().error;
    assert!(error.next_check().contains("its receive is smaller"), "{error}");
    assert!(left.connection.is_broken() && left.connection.is_connected());

    // There is a receive for it, but no connection any more.
    let mut second = left.sends.submit(&left.connection, memory.take(1).unwrap()).unwrap();
    let error = second.wait_for(LIMIT).unwrap_err().error;
    assert_eq!(error.kind(), Kind::Io, "{error}");
    assert!(error.next_check().contains("connect anew") && error.context().is_some(), "{error}");
    // What comes back because the connection ends is no failure of a task before it.
    drop((first, second));
    let ended = right.sends.submit(&right.connection, memory.take(1).unwrap());
    right.connection.disconnect().unwrap();
    let error = ended.unwrap().wait_for(LIMIT).unwrap_err().error;
    assert!(!error.next_check().contains("connect anew"), "{error}");
    drop(engine);
}

#[test]
fn nobody_listens_on_port_0() {
    let pair = Pair::new();
    let error = pair.left.rdma.listen(0, |_| doca::rdma::Decision::accept()).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::OutOfRange), "{error}");
}
