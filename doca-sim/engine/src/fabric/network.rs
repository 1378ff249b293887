//! The network: one directory that all processes of a simulated fabric share.
//!
//! ```text
//! adapter-PID-SALT   one per live process: where its shared memory is; locked while the process lives
//! listen-DEV-PORT    one per RDMA CM listener: who listens; locked while its owner lives
//! comch-DEV-NAME     one per Comch server, for the clients of that device: likewise; NAME is in hexadecimal
//! ```
//!
//! Locks are POSIX record locks: the kernel drops them when the owner dies, however it dies, and a forked child
//! does not inherit them. (They are also dropped when the owner closes *any* descriptor of that file, so a process
//! never opens its own files a second time.) Changes to the directory are made under a lock on the directory, and
//! whoever makes one removes the files of the dead.

use super::ProcId;
use super::shm::os;
use crate::code::{Code, Res};
use crate::lock::lock;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The directory.
#[derive(Debug)]
pub struct Network {
    dir: PathBuf,
}

/// What can be listened at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Address {
    /// A port of RDMA CM on a device.
    Port(u32, u16),
    /// A name of Comch, for the clients of a device.
    Name(u32, Vec<u8>),
}

/// A file of the network that this process owns; removed when dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    owner: u32,
    _file: File,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let mut ours = lock(&OURS);
            let _ = std::fs::remove_file(&self.path);
            ours.remove(&self.path);
        }
    }
}

/// Paths of this process's own files, which it must not open again. Whoever opens a file of the network holds this
/// from before it looks here until the file is open, and closed again if it is not kept: so no thread opens a file that
/// another one has just made.
static OURS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether this process owns the file.
pub fn is_ours(path: &Path) -> bool {
    lock(&OURS).contains(path)
}

/// Held while the directory is being changed.
struct DirLock(File);

impl Drop for DirLock {
    fn drop(&mut self) {
        // SAFETY: plain system call on our descriptor. Closing would do too, unless a child holds a copy.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

impl Network {
    /// Opens the directory that the environment names, or the user's own, creating it if need be.
    pub fn open() -> Res<Network> {
        let dir = directory();
        let refuse = |why: &str| {
            crate::log::error!("network directory {}: {why}", dir.display());
            Code::OPERATING_SYSTEM
        };
        match DirBuilder::new().recursive(true).mode(0o700).create(&dir) {
            Ok(()) => {}
            Err(e) => return Err(refuse(&e.to_string())),
        }
        let meta = std::fs::metadata(&dir).map_err(|e| refuse(&e.to_string()))?;
        // SAFETY: no arguments, cannot fail.
        let me = unsafe { libc::geteuid() };
        if meta.uid() != me {
            return Err(refuse("belongs to another user"));
        }
        if meta.permissions().mode() & 0o022 != 0 {
            return Err(refuse("can be written by other users"));
        }
        Ok(Network { dir })
    }

    fn lock(&self) -> Res<DirLock> {
        let file = File::open(&self.dir).map_err(|_| os("opening the network directory"))?;
        loop {
            // SAFETY: plain system call on our descriptor.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } == 0 {
                return Ok(DirLock(file));
            }
            if std::io::Error::last_os_error().kind() != ErrorKind::Interrupted {
                return Err(os("locking the network directory"));
            }
        }
    }

    /// Path of a process's adapter file.
    pub fn adapter_path(&self, id: ProcId) -> PathBuf {
        self.dir.join(format!("adapter-{}-{}", id.pid(), id.salt()))
    }

    /// Publishes this process's adapter, and removes what dead processes left.
    pub fn publish_adapter(&self, id: ProcId, text: &str) -> Res<Claim> {
        let lock = self.lock()?;
        self.sweep();
        self.create(&lock, self.adapter_path(id), text)
    }

    /// Path of the file that claims an address.
    pub fn listener_path(&self, at: &Address) -> PathBuf {
        self.dir.join(match at {
            Address::Port(device, port) => format!("listen-{device}-{port}"),
            Address::Name(device, name) => {
                let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("comch-{device}-{name}")
            }
        })
    }

    /// Claims an address. IN_USE if a living process has it.
    pub fn claim_listener(&self, at: &Address, text: &str) -> Res<Claim> {
        let lock = self.lock()?;
        self.sweep();
        self.create(&lock, self.listener_path(at), text)
    }

    fn create(&self, _held: &DirLock, path: PathBuf, text: &str) -> Res<Claim> {
        let mut ours = lock(&OURS);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let mut file = match file {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(Code::IN_USE),
            Err(_) => return Err(os("creating a file of the network")),
        };
        if record_lock(&file, libc::F_SETLK, libc::F_WRLCK).is_none() {
            return Err(os("locking a file of the network"));
        }
        if file.write_all(text.as_bytes()).is_err() {
            return Err(os("writing a file of the network"));
        }
        ours.insert(path.clone());
        Ok(Claim { path, owner: std::process::id(), _file: file })
    }

    /// Removes the files whose owners are dead. The caller holds the directory lock, so no file is half-made.
    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return };
        let ours = lock(&OURS);
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let of_network = ["adapter-", "listen-", "comch-"].iter().any(|kind| name.starts_with(kind));
            if !of_network || ours.contains(&entry.path()) {
                continue;
            }
            if let Ok(file) = OpenOptions::new().read(true).write(true).open(entry.path())
                && !is_locked(&file)
            {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Reads a file that another process published, and keeps it open as a witness of that process's life.
/// NOT_FOUND for this process's own.
pub fn read_published(path: &Path) -> Res<(String, File)> {
    let ours = lock(&OURS);
    if ours.contains(path) {
        return Err(Code::NOT_FOUND);
    }
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(|_| Code::NOT_FOUND)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|_| Code::NOT_FOUND)?;
    if !is_locked(&file) {
        return Err(Code::NOT_FOUND);
    }
    Ok((text, file))
}

/// Whether the owner of a published file lives. (Only for files of other processes.)
pub fn is_locked(file: &File) -> bool {
    record_lock(file, libc::F_GETLK, libc::F_WRLCK) != Some(libc::F_UNLCK)
}

/// Sets or queries a lock on the whole file; gives the resulting lock type, or `None` if the call failed.
fn record_lock(file: &File, command: libc::c_int, kind: libc::c_int) -> Option<libc::c_int> {
    // SAFETY: all-zero is a valid `flock`.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: a valid descriptor and a valid `flock`, which the call may write.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) };
    (result == 0).then_some(libc::c_int::from(lock.l_type))
}

/// The directory that the environment names, or the user's own.
pub fn directory() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("DOCA_SIM_DIR") {
        return dir;
    }
    if let Some(runtime) = set("XDG_RUNTIME_DIR")
        && runtime.is_dir()
    {
        return runtime.join("doca-sim");
    }
    // SAFETY: no arguments, cannot fail.
    let uid = unsafe { libc::geteuid() };
    PathBuf::from(format!("/tmp/doca-sim-{uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the kernel holds a record lock on the file. (A process cannot ask for its own.)
    fn is_held(path: &Path) -> bool {
        let inode = std::fs::metadata(path).expect("the file is there").ino();
        let locks = std::fs::read_to_string("/proc/locks").expect("the kernel's list of locks");
        locks.lines().any(|line| line.contains("POSIX") && line.contains(&format!(":{inode} ")))
    }

    #[test]
    fn a_lock_outlasts_threads_that_look_for_its_file() {
        let dir = std::env::temp_dir().join(format!("doca-sim-network-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let network = Network { dir: dir.clone() };
        let at = Address::Port(0, 1);
        let path = network.listener_path(&at);
        std::thread::scope(|scope| {
            let claims = scope.spawn(|| {
                for _ in 0..500 {
                    let claim = network.claim_listener(&at, "text").expect("a free port");
                    assert!(is_held(&path));
                    assert_eq!(network.claim_listener(&at, "other").err(), Some(Code::IN_USE));
                    assert!(is_held(&path));
                    drop(claim);
                }
            });
            while !claims.is_finished() {
                assert!(read_published(&path).is_err());
            }
        });
        std::fs::remove_dir_all(dir).expect("an empty directory");
    }
}
