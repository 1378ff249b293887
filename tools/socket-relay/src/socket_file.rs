//! The socket file of the host side: a stale one is replaced, a live one never, and rights are never wider than asked.

use crate::fault::{Class, Exit, Fault};
use crate::local::dial;
use crate::settings::abstract_name;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, UnixAddr};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Group, chown, geteuid};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// How often a lock file may be removed while it is being locked.
const TRIES: u32 = 8;

/// The right to own a path, for the whole life of a relay.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    lock: Option<(Flock<File>, PathBuf)>,
}

/// A listening socket. Dropping it removes the file, if it is still ours.
#[derive(Debug)]
pub struct Bound {
    /// Does not block.
    pub listener: UnixListener,
    _file: Option<SocketFile>,
}

/// The file of a socket of ours, which goes with this.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    dev: u64,
    ino: u64,
}

fn bind_fault(text: String) -> Fault {
    Fault::new(Exit::Bind, Class::Bind, text)
}

fn io_fault(what: &str, path: &Path, error: &std::io::Error) -> Fault {
    let text = format!("cannot {what} {}: {error}", path.display());
    match error.kind() {
        ErrorKind::PermissionDenied => Fault::new(Exit::Permission, Class::Permission, text),
        _ => bind_fault(text),
    }
}

impl Claim {
    /// Locks the path against other relays, with a file beside it that goes with this.
    ///
    /// # Errors
    /// Another relay has it, or the file cannot be made.
    pub fn new(path: &Path) -> Result<Claim, Fault> {
        if abstract_name(path).is_some() {
            return Ok(Claim { path: path.to_owned(), lock: None });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let beside = PathBuf::from(name);
        for _ in 0..TRIES {
            let mut lock = lock_file(path, &beside)?;
            // The one before may have removed the file between its opening and its locking.
            let same = |there: fs::Metadata| lock.metadata().is_ok_and(|ours| ours.ino() == there.ino());
            if fs::symlink_metadata(&beside).is_ok_and(same) {
                let noted = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
                noted.map_err(|e| io_fault("write", &beside, &e))?;
                return Ok(Claim { path: path.to_owned(), lock: Some((lock, beside)) });
            }
        }
        Err(bind_fault(format!("{} is removed again and again", beside.display())))
    }

    /// Binds and listens.
    ///
    /// # Errors
    /// The path is taken by something that is not a stale socket of ours, or rights are missing.
    pub fn bind(&self, mode: u32, group: Option<&str>, backlog: i32) -> Result<Bound, Fault> {
        let (socket, file) = self.reserve(mode, group)?;
        let backlog = Backlog::new(backlog).unwrap_or(Backlog::MAXCONN);
        socket::listen(&socket, backlog).map_err(|e| io_fault("listen on", &self.path, &e.into()))?;
        Ok(Bound { listener: socket.into(), _file: file })
    }

    /// Whether [`Claim::bind`] would succeed. Nobody can connect meanwhile.
    ///
    /// # Errors
    /// As there.
    pub fn try_bind(&self, mode: u32, group: Option<&str>) -> Result<(), Fault> {
        self.reserve(mode, group).map(drop)
    }

    /// A socket with that name and those rights, on which nobody listens yet.
    fn reserve(&self, mode: u32, group: Option<&str>) -> Result<(OwnedFd, Option<SocketFile>), Fault> {
        let path = &self.path;
        let failed = |what: &'static str| move |errno: Errno| io_fault(what, path, &errno.into());
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)
            .map_err(failed("make a socket for"))?;
        if let Some(name) = abstract_name(path) {
            let name = UnixAddr::new_abstract(name).map_err(failed("bind"))?;
            socket::bind(socket.as_raw_fd(), &name).map_err(failed("bind"))?;
            return Ok((socket, None));
        }
        let group = group.map(find_group).transpose()?;
        let name = UnixAddr::new(path).map_err(failed("bind"))?;
        warn_about_directory(path);
        clear_stale(path)?;
        // The mask is the process's: nobody else can open the file before its rights are set.
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = socket::bind(socket.as_raw_fd(), &name);
        umask(before);
        bound.map_err(failed("bind"))?;
        let meta = fs::symlink_metadata(path).map_err(|e| io_fault("look at", path, &e))?;
        let file = SocketFile { path: path.clone(), dev: meta.dev(), ino: meta.ino() };
        if let Some(group) = group {
            chown(path, None, Some(group)).map_err(failed("change the group of"))?;
        }
        fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(|e| io_fault("set the rights of", path, &e))?;
        Ok((socket, Some(file)))
    }
}

/// Opens the file and locks it. It may be one that its owner removes at this moment.
fn lock_file(path: &Path, beside: &Path) -> Result<Flock<File>, Fault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_CLOEXEC);
    let file = options.open(beside).map_err(|e| io_fault("make the lock file", beside, &e))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((mut file, Errno::EWOULDBLOCK)) => {
            let mut holder = String::new();
            _ = (&mut file).take(32).read_to_string(&mut holder);
            let holder = if holder.is_empty() { "unknown" } else { holder.trim() };
            Err(bind_fault(format!("another relay owns {}: process {holder}", path.display())))
        }
        Err((_, errno)) => Err(io_fault("lock", beside, &errno.into())),
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // As long as it is locked, the file is ours.
        if let Some((_, beside)) = &self.lock
            && let Err(error) = fs::remove_file(beside)
        {
            log::debug!(target: crate::LOG, "cannot remove {}: {error}", beside.display());
        }
    }
}

fn find_group(name: &str) -> Result<Gid, Fault> {
    if let Ok(id) = name.parse() {
        return Ok(Gid::from_raw(id));
    }
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid),
        _ => Err(Fault::usage(format!("--socket-group: there is no group `{name}`"))),
    }
}

fn warn_about_directory(path: &Path) {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if fs::metadata(dir).is_ok_and(|meta| meta.mode() & 0o1002 == 0o002) {
        log::warn!(target: crate::LOG, "everybody may replace the socket: {} is writable by others and not sticky", dir.display());
    }
}

/// Removes what a dead relay left, and nothing else.
fn clear_stale(path: &Path) -> Result<(), Fault> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(io_fault("look at", path, &e)),
    };
    if !meta.file_type().is_socket() {
        return Err(bind_fault(format!("{} exists and is not a socket; it is left alone", path.display())));
    }
    match dial(path) {
        Ok(_) | Err(Errno::EAGAIN) => {
            Err(bind_fault(format!("somebody listens on {}; it is left alone", path.display())))
        }
        Err(Errno::ECONNREFUSED) => {
            let us = geteuid();
            if !us.is_root() && meta.uid() != us.as_raw() {
                return Err(Fault::new(
                    Exit::Permission,
                    Class::Permission,
                    format!("{} is stale, but belongs to user {}", path.display(), meta.uid()),
                ));
            }
            fs::remove_file(path).map_err(|e| io_fault("remove the stale", path, &e))?;
            log::warn!(target: crate::LOG, "removed the stale socket {}, on which nobody listened", path.display());
            Ok(())
        }
        // Nobody can tell whether it lives.
        Err(errno) => Err(io_fault("try", path, &errno.into())),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        let ours = found.is_ok_and(|meta| (meta.dev(), meta.ino()) == (self.dev, self.ino));
        if ours && let Err(error) = fs::remove_file(&self.path) {
            log::warn!(target: crate::LOG, "cannot remove {}: {error}", self.path.display());
        }
    }
}
