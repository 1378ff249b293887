//! The relays of one user on one machine, as a directory: one file each, locked as long as its relay lives.
//!
//! Nothing depends on it but what a refused connection is said to come from.

use crate::mux::Role;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How often a file may be taken for one of the dead before it was locked.
const TRIES: u32 = 8;
/// Longest file that is read.
const LONGEST: u64 = 4096;
/// How the names of other files end than those of relays.
const RIGHT: &str = ".lock";

/// What a relay says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Which end.
    pub role: Role,
    /// Its socket's path.
    pub socket: PathBuf,
    /// Name of its Comch service.
    pub service: String,
    /// PCI address of its device.
    pub device: String,
    /// DPU: PCI address of the function that it serves.
    pub representor: Option<String>,
}

/// The directory.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

/// The right to something that one relay can have at a time, as long as this lives. Its file goes with it.
#[derive(Debug)]
pub struct Right {
    path: PathBuf,
    _lock: Flock<File>,
}

/// A relay that is listed as long as this lives.
#[derive(Debug)]
pub struct Entered {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Registry {
    /// That of this user: `$XDG_RUNTIME_DIR/doca-socket-relay`; `/run/doca-socket-relay` for root; else
    /// `/tmp/doca-socket-relay-UID`.
    pub fn of_this_user() -> Registry {
        let user = geteuid();
        let dir = match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(dir) if !dir.is_empty() => Path::new(&dir).join("doca-socket-relay"),
            _ if user.is_root() => PathBuf::from("/run/doca-socket-relay"),
            _ => PathBuf::from(format!("/tmp/doca-socket-relay-{user}")),
        };
        Registry { dir }
    }

    /// One of these.
    pub fn at(dir: impl Into<PathBuf>) -> Registry {
        Registry { dir: dir.into() }
    }

    /// Makes sure that the directory is there, and this user's.
    fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let meta = fs::symlink_metadata(&self.dir)?;
        if meta.is_dir() && meta.uid() == geteuid().as_raw() {
            return Ok(());
        }
        let text = format!("{} is not a directory of this user", self.dir.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// The right to something that one relay can have at a time. `None`: another has it.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub fn only_one(&self, what: &str) -> io::Result<Option<Right>> {
        self.make()?;
        let path = self.dir.join(format!("{what}{RIGHT}"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_CLOEXEC);
        for _ in 0..TRIES {
            match Flock::lock(options.open(&path)?, FlockArg::LockExclusiveNonblock) {
                // The one before may have removed it between its opening and its locking.
                Ok(lock) if is_still(&path, &lock) => return Ok(Some(Right { path, _lock: lock })),
                Ok(_) => {}
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                Err((_, errno)) => return Err(errno.into()),
            }
        }
        // Others come and go.
        Ok(None)
    }

    /// Lists a relay.
    ///
    /// # Errors
    /// The directory is not this user's, or the file cannot be written.
    pub fn enter(&self, entry: &Entry) -> io::Result<Entered> {
        self.make()?;
        for _ in 0..TRIES {
            let name: String =
                crate::relay::new_instance().iter().map(|byte| format!("{byte:02x}")).collect();
            let path = self.dir.join(name);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).custom_flags(nix::libc::O_CLOEXEC);
            let lock = Flock::lock(options.open(&path)?, FlockArg::LockExclusive);
            let mut lock = lock.map_err(|(_, errno)| io::Error::from(errno))?;
            // Somebody may have found it before it was locked, and removed it as one of the dead.
            if is_still(&path, &lock) {
                lock.write_all(serde_json::to_string(entry)?.as_bytes())?;
                return Ok(Entered { path, _lock: lock });
            }
        }
        Err(io::Error::other("files vanish before they are locked"))
    }

    /// Those that are alive, in the order of their services. Files of the dead are removed.
    pub fn alive(&self) -> Vec<Entry> {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let paths = files.map(|file| file.path()).filter(|path| path.extension().is_none());
        let mut all: Vec<Entry> = paths.filter_map(|path| read_living(&path)).collect();
        all.sort_by(|a, b| (&a.service, &a.socket).cmp(&(&b.service, &b.socket)));
        all
    }
}

/// Whether that file is still there.
fn is_still(path: &Path, file: &File) -> bool {
    fs::metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()))
}

/// Removes a file, which nobody else does as long as it is locked.
fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        log::debug!(target: crate::LOG, "cannot remove {}: {error}", path.display());
    }
}

fn read_living(path: &Path) -> Option<Entry> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_CLOEXEC | nix::libc::O_NONBLOCK);
    let file = options.open(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))?;
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_dead) => {
            // It fails where another one removes it, too.
            _ = fs::remove_file(path);
            None
        }
        Err((file, Errno::EWOULDBLOCK)) => {
            let mut text = String::new();
            file.take(LONGEST).read_to_string(&mut text).ok()?;
            // One that has not written yet is not there yet.
            serde_json::from_str(&text).ok()
        }
        Err(_) => None,
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(service: &str) -> Entry {
        Entry {
            role: Role::Dpu,
            socket: PathBuf::from("/run/app.sock"),
            service: service.to_owned(),
            device: "0000:03:00.0".to_owned(),
            representor: Some("0000:3b:00.0".to_owned()),
        }
    }

    #[test]
    fn the_living_are_listed_and_the_dead_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path().join("runtime"));
        assert_eq!(registry.alive(), []);
        let b = registry.enter(&entry("b")).unwrap();
        let a = registry.enter(&entry("a")).unwrap();
        assert_eq!(registry.alive(), [entry("a"), entry("b")]);
        drop(b);
        assert_eq!(registry.alive(), [entry("a")]);
        // What a relay leaves that was killed: a file that nobody locks.
        let left = registry.dir.join("0123");
        fs::copy(&a.path, &left).unwrap();
        assert_eq!(registry.alive(), [entry("a")]);
        assert!(!left.exists() && a.path.exists());
    }

    #[test]
    fn what_one_can_have_is_had_by_one_and_by_the_next_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        let first = registry.only_one("x").unwrap();
        assert!(first.is_some() && registry.only_one("x").unwrap().is_none());
        assert!(registry.only_one("y").unwrap().is_some());
        assert_eq!(registry.alive(), []);
        drop(first);
        assert!(registry.only_one("x").unwrap().is_some());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_one_can_have_is_had_by_one_however_many_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path());
        let owners = std::sync::atomic::AtomicUsize::new(0);
        let owned = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    use std::sync::atomic::Ordering::SeqCst;
                    for _ in 0..500 {
                        let Some(right) = registry.only_one("x").unwrap() else { continue };
                        assert_eq!(owners.fetch_add(1, SeqCst), 0);
                        owned.fetch_add(1, SeqCst);
                        // Time for the others.
                        std::thread::yield_now();
                        owners.fetch_sub(1, SeqCst);
                        drop(right);
                    }
                });
            }
        });
        assert!(owned.into_inner() > 0);
    }

    #[test]
    fn a_directory_of_somebody_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert_eq!(
            Registry::at(link).enter(&entry("a")).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn relays_that_come_while_others_look_are_all_listed() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::at(dir.path().join("runtime"));
        std::thread::scope(|scope| {
            let entering: Vec<_> = (0..4)
                .map(|thread| {
                    let registry = &registry;
                    scope.spawn(move || {
                        let names = (0..50).map(|number| format!("{thread}-{number:02}"));
                        names.map(|name| registry.enter(&entry(&name)).unwrap()).collect::<Vec<_>>()
                    })
                })
                .collect();
            for _ in 0..20 {
                registry.alive();
            }
            let all: Vec<Entered> = entering.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            assert_eq!(registry.alive().len(), all.len());
        });
        assert_eq!(registry.alive(), []);
    }
}
