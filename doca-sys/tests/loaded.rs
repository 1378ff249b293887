//! The library that was linked is the one that is loaded, without help from `LD_LIBRARY_PATH`.

use doca_sys::{built, doca_error_get_name, doca_error_t, doca_version_runtime};
use std::ffi::{CStr, c_char};
use std::process::Command;

/// Copies a string that DOCA keeps for the life of the process.
fn text(string: *const c_char) -> String {
    assert!(!string.is_null());
    // SAFETY: DOCA's error names and versions are static strings with a NUL at their end.
    unsafe { CStr::from_ptr(string) }.to_str().expect("ASCII").to_owned()
}

/// The loader reads the variable once, so this takes a process of its own: the test runs itself.
#[test]
fn the_run_path_leads_to_the_library() {
    const INSIDE: &str = "DOCA_SYS_TEST_WITHOUT_PATH";
    if std::env::var_os(INSIDE).is_some() {
        // SAFETY: the function takes any number, known or not.
        let name = unsafe { doca_error_get_name(doca_error_t::DOCA_ERROR_IN_PROGRESS) };
        // SAFETY: the function takes nothing.
        let version = unsafe { doca_version_runtime() };
        assert_eq!(text(name), "DOCA_ERROR_IN_PROGRESS");
        assert_eq!(text(version), built::VERSION_FULL);
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_run_path_leads_to_the_library"])
        .env(INSIDE, "1")
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
}
