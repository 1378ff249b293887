//! What DOCA on real devices needs from the system.

use super::{Finding, Layer};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// Locked memory below which registering memory soon fails.
const LITTLE_MEMLOCK: u64 = 64 << 20;

/// What is right and wrong.
pub(crate) fn findings() -> Vec<Finding> {
    let mut findings =
        vec![kernel_devices(Path::new("/sys/class/infiniband")), nodes(Path::new("/dev/infiniband"))];
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    findings.extend(memlock(&limits));
    findings
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn names(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The RDMA devices that the kernel drives.
fn kernel_devices(dir: &Path) -> Finding {
    let devices = entries(dir);
    if devices.is_empty() {
        let next =
            "load mlx5_ib (modprobe mlx5_ib), look for the card with `lspci -d 15b3:`, or use the simulator";
        return Finding::wrong(
            Layer::Driver,
            format!("the kernel has no RDMA device in {}", dir.display()),
            next,
        );
    }
    Finding::ok(Layer::Driver, format!("the kernel has {}", names(&devices)))
}

/// The nodes through which programs reach RDMA devices.
fn nodes(dir: &Path) -> Finding {
    let wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("uverbs") || name == "rdma_cm"
    };
    let nodes: Vec<_> = entries(dir).into_iter().filter(wanted).collect();
    if nodes.is_empty() {
        let next = "load ib_uverbs and rdma_ucm; in a container, pass the devices (--device=/dev/infiniband)";
        return Finding::wrong(
            Layer::Env,
            format!("there is no uverbs or rdma_cm node in {}", dir.display()),
            next,
        );
    }
    let closed: Vec<_> = nodes
        .iter()
        .filter(|node| OpenOptions::new().read(true).write(true).open(node).is_err())
        .cloned()
        .collect();
    if closed.is_empty() {
        return Finding::ok(Layer::Env, format!("{} can be opened", names(&nodes)));
    }
    let text = format!("{} in {} cannot be opened for reading and writing", names(&closed), dir.display());
    Finding::wrong(
        Layer::Env,
        text,
        "run as root, or give this user access to the nodes (group, or a udev rule)",
    )
}

/// Whether enough memory may be locked, after `/proc/PID/limits`.
fn memlock(limits: &str) -> Option<Finding> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    let soft = line.split_whitespace().next()?;
    match soft.parse::<u64>() {
        Ok(bytes) if bytes < LITTLE_MEMLOCK => Some(Finding::note(
            Layer::Env,
            format!("only {bytes} bytes may be locked, so registering memory may fail with NO_MEMORY"),
            "raise it: `ulimit -l unlimited`, memlock in /etc/security/limits.conf, or LimitMEMLOCK= of the service",
        )),
        Ok(bytes) => Some(Finding::ok(Layer::Env, format!("{bytes} bytes may be locked"))),
        Err(_) => Some(Finding::ok(Layer::Env, format!("locked memory: {soft}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn locked_memory_is_judged() {
        let level = |soft: &str| {
            memlock(&format!("Max locked memory         {soft}   unlimited   bytes\n")).unwrap().level
        };
        assert_eq!(
            (level("65536"), level("1073741824"), level("unlimited")),
            (Level::Note, Level::Ok, Level::Ok)
        );
        assert_eq!(memlock("Max open files 1 1 files\n"), None);
    }

    #[test]
    fn nodes_must_be_there_and_open() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nodes(dir.path()).level, Level::Wrong);
        fs::write(dir.path().join("issm0"), "").unwrap();
        assert_eq!(nodes(dir.path()).level, Level::Wrong);
        fs::write(dir.path().join("uverbs0"), "").unwrap();
        assert_eq!(nodes(dir.path()).level, Level::Ok);
        // A directory cannot be opened for writing, not even by root.
        fs::create_dir(dir.path().join("uverbs1")).unwrap();
        let finding = nodes(dir.path());
        assert_eq!(finding.level, Level::Wrong);
        assert!(finding.text.starts_with("uverbs1 in"), "{}", finding.text);
    }

    #[test]
    fn a_kernel_without_devices_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(kernel_devices(&dir.path().join("absent")).level, Level::Wrong);
        fs::write(dir.path().join("mlx5_0"), "").unwrap();
        assert_eq!(kernel_devices(dir.path()).text, "the kernel has mlx5_0");
    }
}
