//! `doca api` on functions that are there, are not, and do not exist.

use std::process::{Command, Output};

fn api(args: &[&str], library_path: Option<&str>) -> Output {
    let mut doca = Command::new(env!("CARGO_BIN_EXE_doca"));
    if let Some(path) = library_path {
        doca.env("LD_LIBRARY_PATH", path);
    }
    doca.arg("api").args(args).output().expect("doca starts")
}

#[test]
#[cfg(feature = "device")]
fn a_function_is_found_in_headers_library_and_rust() {
    let output = api(&["doca_pe_progress", "--json"], None);
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{facts}");
    assert_eq!(facts["headers"], "yes, in doca_pe.h");
    assert!(facts["library"].as_str().unwrap().starts_with("yes, in "), "{facts}");
    assert!(facts["rust"].as_str().unwrap().contains("progress"), "{facts}");
}

#[test]
fn a_library_that_is_not_there_is_said() {
    let output = api(&["doca_comch_client_create"], Some("/nowhere"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("library   no, libdoca_comch.so.2"), "{text}");
}

#[test]
fn an_unknown_name_lists_the_nearest() {
    let output = api(&["doca_ctx_strat"], None);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("\n  doca_ctx_start\n"), "{text}");
}
