//! Clients of a pair, and what they see.

use super::pair::{Place, SOON, pattern};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

/// Sends and reads at once; the bytes that came back.
pub fn exchange(mut stream: UnixStream, sent: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = stream.try_clone()?;
    thread::scope(|scope| {
        let write = scope.spawn(move || {
            writer.write_all(sent)?;
            writer.shutdown(Shutdown::Write)
        });
        let mut got = Vec::new();
        stream.read_to_end(&mut got)?;
        write.join().unwrap()?;
        Ok(got)
    })
}

/// Bytes go through the pair and come back.
pub fn works(place: &Place) {
    let sent = pattern(7, 100_000);
    assert!(exchange(place.client(), &sent).unwrap() == sent);
}

/// The end comes: as end of file or as an error, but it comes.
pub fn ends(stream: &mut UnixStream) {
    let until = Instant::now() + SOON;
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return,
            Ok(_) => assert!(Instant::now() < until, "it never ends"),
            Err(error) => {
                assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "silence");
                return;
            }
        }
    }
}
