//! What the relay's printing commands do where their output goes nowhere. Serving, it must not die of SIGPIPE.

use nix::sys::signal::Signal;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

fn relay(word: &str, stdout: Stdio) -> Output {
    let mut relay = Command::new(env!("CARGO_BIN_EXE_doca_socket_relay"));
    relay.arg(word).env("DOCA_SIM_QUIET", "1").stdout(stdout).stderr(Stdio::piped());
    relay.spawn().and_then(|child| child.wait_with_output()).unwrap()
}

#[test]
fn a_closed_pipe_or_a_full_disk_ends_what_prints() {
    for word in ["--help", "version"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = relay(word, writer.into());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.signal(), &*said), (Some(Signal::SIGPIPE as i32), ""), "{word}");
        let ended = relay(word, File::options().write(true).open("/dev/full").unwrap().into());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.starts_with("error: standard output: No space left"), "{word}: {said}");
        assert_eq!(ended.status.code(), Some(8), "{word}");
    }
}
