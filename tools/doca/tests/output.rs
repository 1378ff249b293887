//! What `doca` does where its output goes nowhere.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

const SIGPIPE: i32 = 13;

const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["api", "doca_pe_create"],
    &["api", "doca_pe_create", "--json"],
    &["link-check", env!("CARGO_BIN_EXE_doca")],
    &["doctor"],
    &["doctor", "--json"],
    #[cfg(feature = "device")]
    &["caps"],
    #[cfg(feature = "device")]
    &["caps", "--json"],
];

fn doca(args: &[&str], stdout: Stdio) -> Output {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut doca = Command::new(env!("CARGO_BIN_EXE_doca"));
    doca.env("DOCA_SIM_DIR", dir.path()).env("DOCA_SIM_QUIET", "1");
    doca.args(args).stdout(stdout).stderr(Stdio::piped());
    doca.spawn().and_then(|child| child.wait_with_output()).expect("doca runs")
}

#[test]
fn a_closed_pipe_ends_it_as_it_ends_other_tools() {
    for args in COMMANDS {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = doca(args, writer.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.signal(), &*said), (Some(SIGPIPE), ""), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_told() {
    for args in COMMANDS {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = doca(args, full.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("error: standard output: No space left"), "{args:?}: {said}");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    }
}
