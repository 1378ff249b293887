//! DOCA's own messages reach the program's logger; a logger that panics harms nobody. A process of its own: the
//! logger and the route are for the whole process.

use doca::rdma::{Rdma, caps};
use doca::{Device, ProgressEngine};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

static LINES: Mutex<Vec<(log::Level, String)>> = Mutex::new(Vec::new());
static PANIC: AtomicBool = AtomicBool::new(false);

struct Collect;

impl log::Log for Collect {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target() == "doca" {
            LINES.lock().unwrap().push((record.level(), record.args().to_string()));
            assert!(!PANIC.load(Ordering::Relaxed), "in the logger");
        }
    }

    fn flush(&self) {}
}

#[test]
fn the_sdk_logs_through_the_facade() {
    log::set_logger(&Collect).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    doca::log::route_sdk(log::LevelFilter::Warn).unwrap();
    doca::log::route_sdk(log::LevelFilter::Trace).unwrap();

    let device = Device::find().with(caps::SEND).list().unwrap()[0].open().unwrap();
    let engine = ProgressEngine::new().unwrap();
    let rdma = Rdma::configure(&device).unwrap().start(&engine).unwrap();
    let fail = || {
        let address = doca::rdma::Address::parse_ip("192.168.1.1", 9).unwrap();
        assert!(rdma.connect_addr(address).unwrap().wait().is_err());
    };
    fail();
    let lines = std::mem::take(&mut *LINES.lock().unwrap());
    assert!(!lines.is_empty(), "DOCA said nothing about a connection that failed");
    for (level, text) in &lines {
        assert!(*level <= log::Level::Warn, "{level}: {text}: routed once, from warnings on");
        assert!(!text.starts_with('['), "{text}: the fields are taken off");
    }

    // The panic ends in the route, and DOCA goes on.
    PANIC.store(true, Ordering::Relaxed);
    fail();
    assert!(!LINES.lock().unwrap().is_empty());
    fail();
}
