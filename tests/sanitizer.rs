//! That `cargo sim asan` instruments the simulator's shared object: without this, its green runs would prove nothing.
#![cfg(doca_sim_asan)]

use std::process::Command;

const CHILD: &str = "DOCA_TEST_PLANTED_FAULT";

/// In a process of its own, because the sanitizer ends it.
#[test]
fn a_fault_inside_the_simulator_is_reported() {
    if std::env::var_os(CHILD).is_some() {
        plant();
        return;
    }
    let test = std::env::current_exe().unwrap();
    let output = Command::new(test)
        .args(["--exact", "a_fault_inside_the_simulator_is_reported"])
        .env(CHILD, "1")
        .output();
    let output = output.unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "the fault went unnoticed");
    assert!(report.contains("AddressSanitizer: heap-buffer-overflow"), "{report}");
    assert!(report.contains("sim_planted_fault"), "{report}");
}

fn plant() {
    // Loads the simulator, as every program that uses DOCA does.
    let _devices = doca::Device::find().list().unwrap();
    // SAFETY: the name is NUL-terminated.
    let fault = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"sim_planted_fault".as_ptr()) };
    assert!(!fault.is_null(), "the simulator is not the instrumented one");
    // SAFETY: all-zero is a valid Dl_info, which the call fills for an address that it knows.
    let object = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        assert_ne!(libc::dladdr(fault, &mut info), 0);
        std::ffi::CStr::from_ptr(info.dli_fname)
    };
    assert!(object.to_string_lossy().contains("libdoca_sim.so.1"), "{object:?}");
    // SAFETY: the function of the simulator has this type.
    let fault: extern "C" fn() -> u8 = unsafe { std::mem::transmute(fault) };
    fault();
}
