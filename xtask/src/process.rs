//! Other programs: started, watched, and ended at a deadline.

use crate::Result;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The cargo that runs us, or the one on the path.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The C compiler.
pub(crate) fn cc() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// Runs a program to its end with our standard streams; anything but success is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|e| format!("cannot run {}: {e}", name(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", line(command))) }
}

/// Runs a program and gives its standard output; anything but success is an error with what it said.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| format!("cannot run {}: {e}", name(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed ({}):\n{said}", line(command), output.status));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("{} printed something that is not text", name(command)))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn line(command: &Command) -> String {
    let mut text = name(command);
    for arg in command.get_args() {
        text.push(' ');
        text += &arg.to_string_lossy();
    }
    text
}

/// A program that we talk with, line by line. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Peer {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
    /// Everything it printed so far, on both streams.
    pub(crate) printed: Vec<String>,
}

impl Peer {
    /// Starts the program; its standard output and error become one list of lines.
    pub(crate) fn start(name: &'static str, command: &mut Command) -> Result<Peer> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
        let (sender, lines) = channel();
        if let Some(stream) = child.stdout.take() {
            pump(stream, sender.clone());
        }
        if let Some(stream) = child.stderr.take() {
            pump(stream, sender);
        }
        Ok(Peer { name, child, lines, printed: Vec::new() })
    }

    /// Waits until it prints a line with this text in it.
    pub(crate) fn expect(&mut self, text: &str, until: Instant) -> Result {
        if self.has_printed(text) {
            return Ok(());
        }
        loop {
            match self.next_line(until)? {
                Some(line) if line.contains(text) => return Ok(()),
                Some(_) => {}
                None => return Err(self.report(&format!("ended without saying `{text}`"))),
            }
        }
    }

    /// Whether a line with this text was read already.
    pub(crate) fn has_printed(&self, text: &str) -> bool {
        self.printed.iter().any(|line| line.contains(text))
    }

    /// Presses Enter.
    pub(crate) fn enter(&mut self) -> Result {
        let pressed = match &mut self.child.stdin {
            Some(stdin) => stdin.write_all(b"\n").and_then(|()| stdin.flush()),
            None => Ok(()),
        };
        pressed.map_err(|e| self.report(&format!("does not read its input: {e}")))
    }

    /// Asks it to end, as Control-C does.
    pub(crate) fn interrupt(&self) -> Result {
        run(Command::new("kill").arg("-INT").arg(self.child.id().to_string()))
    }

    /// Reads to the end of its output and waits for its end.
    pub(crate) fn finish(&mut self, until: Instant) -> Result<ExitStatus> {
        while self.next_line(until)?.is_some() {}
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                Ok(None) => return Err(self.report("closed its output and did not end in time")),
                Err(e) => return Err(self.report(&format!("cannot be waited for: {e}"))),
            }
        }
    }

    /// Like [`Peer::finish`], and anything but success is an error.
    pub(crate) fn succeed(&mut self, until: Instant) -> Result {
        let status = self.finish(until)?;
        if status.success() { Ok(()) } else { Err(self.report(&format!("failed ({status})"))) }
    }

    fn next_line(&mut self, until: Instant) -> Result<Option<String>> {
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                self.printed.push(line.clone());
                Ok(Some(line))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(self.report("took too long")),
        }
    }

    /// An error message about this program, with what it printed.
    pub(crate) fn report(&self, what: &str) -> String {
        let mut text = format!("{} {what}; it printed:", self.name);
        for line in &self.printed {
            text += "\n    ";
            text += line;
        }
        text
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only for a program that has ended and been waited for.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn pump(stream: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            if lines.send(line).is_err() {
                break;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn a_peer_is_heard_answered_and_waited_for() {
        let mut peer =
            Peer::start("sh", Command::new("sh").args(["-c", "echo one; read x; echo two >&2; exit 3"]))
                .unwrap();
        peer.expect("one", soon()).unwrap();
        assert!(!peer.has_printed("two"));
        peer.enter().unwrap();
        assert_eq!(peer.finish(soon()).unwrap().code(), Some(3));
        assert!(peer.has_printed("two"));
        assert!(peer.expect("three", soon()).unwrap_err().contains("ended without saying `three`"));
    }

    #[test]
    fn a_silent_peer_meets_its_deadline() {
        let mut peer = Peer::start("cat", &mut Command::new("cat")).unwrap();
        let error = peer.expect("anything", Instant::now() + Duration::from_millis(20)).unwrap_err();
        assert!(error.contains("took too long"), "{error}");
    }
}
