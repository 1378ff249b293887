//! `cargo sim install`: the whole SDK in a prefix, rebuilt only when something it is made of changed.

use crate::forwarders::Plan;
use crate::library::{self, ENGINE};
use crate::process;
use crate::release::{Release, Side};
use crate::{Result, elf, engine, forwarders, headers, modules, place, provision, rdmacm};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What to install and where.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) prefix: PathBuf,
    pub(crate) release: Release,
    pub(crate) side: Side,
}

impl Default for Options {
    fn default() -> Self {
        Options { prefix: place::target().join("doca-sim"), release: Release::V3_3, side: Side::Host }
    }
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Options::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (flag, inline) = match arg.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (arg.as_str(), None),
            };
            let mut value =
                || inline.clone().or_else(|| args.next().cloned()).ok_or(format!("{flag} needs a value"));
            match flag {
                "--prefix" => options.prefix = std::path::absolute(value()?).map_err(|e| e.to_string())?,
                "--doca-version" => options.release = Release::parse(&value()?)?,
                "--side" => options.side = Side::parse(&value()?)?,
                other => return Err(format!("install does not know {other}; see `cargo sim --help`")),
            }
        }
        Ok(options)
    }

    /// The directory of the libraries.
    pub(crate) fn libdir(&self) -> PathBuf {
        self.prefix.join("lib").join(place::triplet())
    }

    /// The directory of the simulated librdmacm.
    pub(crate) fn rdmacm(&self) -> PathBuf {
        rdmacm::dir(&self.libdir())
    }

    /// The directory of the modules.
    pub(crate) fn modules(&self) -> PathBuf {
        self.libdir().join("pkgconfig")
    }

    /// The directory of the headers.
    pub(crate) fn include(&self) -> PathBuf {
        self.prefix.join("include")
    }
}

/// `cargo sim install ARGS`
pub(crate) fn command(args: &[String]) -> Result {
    let options = Options::parse(args)?;
    provision::sdk()?;
    install(&options)?;
    println!("DOCA {} (software SDK) is in {}", options.release.full(), options.prefix.display());
    Ok(())
}

/// Brings a prefix up to date.
pub(crate) fn install(options: &Options) -> Result {
    let archive = engine::build()?;
    let stage = stage(options);
    place::make_parent(&stage.join("lock"))?;
    let lock = File::create(stage.join("lock"))
        .map_err(|e| format!("cannot create a lock in {}: {e}", stage.display()))?;
    lock.lock().map_err(|e| format!("cannot lock {}: {e}", stage.display()))?;

    let stamp = stamp(options, &archive)?;
    let record = options.prefix.join(".doca-sim");
    let before = fs::read_to_string(&record).unwrap_or_default();
    let mut before = before.lines();
    if before.next() == Some(&stamp) {
        return Ok(());
    }
    let tree = stage.join("prefix");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|e| format!("cannot empty {}: {e}", tree.display()))?;
    }
    build(options, &archive, &stage, &tree)?;
    let files = publish(&tree, &options.prefix)?;
    for stale in before.filter(|file| !files.contains(*file)) {
        // It may be gone already.
        _ = fs::remove_file(options.prefix.join(stale));
    }
    let list: Vec<&str> = files.iter().map(String::as_str).collect();
    place::write(&record, format!("{stamp}\n{}\n", list.join("\n")))
}

/// Where a flavour of the SDK is put together.
fn stage(options: &Options) -> PathBuf {
    let flavour = format!("{}-{}", options.release.short(), options.side.folder());
    place::target().join("doca-sim-stage").join(flavour)
}

fn build(options: &Options, archive: &Path, work: &Path, tree: &Path) -> Result {
    let staged = Options { prefix: tree.to_owned(), ..options.clone() };
    headers::copy(options.release, options.side, &staged.include())?;

    let engine = engine::link(archive, work, engine::COMPLETE)?;
    let answers: BTreeSet<String> = elf::exports(&engine)?.into_iter().map(|symbol| symbol.name).collect();
    let libdir = staged.libdir();
    copy(&engine, &libdir.join(ENGINE))?;
    let plan = Plan {
        release: options.release,
        include: &staged.include(),
        dir: work,
        engine: &engine,
        answers: &answers,
    };
    for library in library::ALL {
        let built = forwarders::build(library, &plan)?;
        let file = library.file(options.release);
        copy(&built, &libdir.join(&file))?;
        link(&file, &libdir.join(library.soname()))?;
        link(&library.soname(), &libdir.join(format!("libdoca_{}.so", library.name)))?;
    }
    rdmacm::build(&engine, &libdir)?;
    modules::write(options.release, &staged.modules())?;
    place::write(&tree.join("VERSION"), format!("{}\n", options.release.full()))?;
    place::write(&tree.join("applications/VERSION"), format!("{}\n", options.release.short()))?;
    tools(&staged)
}

/// Programs of `doca-sim/tools`, one C file each.
fn tools(staged: &Options) -> Result {
    let sources = place::root().join("doca-sim/tools");
    if !sources.exists() {
        return Ok(());
    }
    for source in place::files_below(&sources)? {
        let program = staged.prefix.join("tools").join(source.file_stem().unwrap_or_default());
        place::make_parent(&program)?;
        let mut cc = process::cc();
        cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-DDOCA_ALLOW_EXPERIMENTAL_API"]);
        cc.arg("-I")
            .arg(staged.include())
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .arg("-L")
            .arg(staged.libdir());
        cc.args(["-ldoca_sta", "-ldoca_comch", "-ldoca_rdma", "-ldoca_argp", "-ldoca_common", "-ldl"]);
        cc.arg(format!("-Wl,-rpath,$ORIGIN/../lib/{}", place::triplet()));
        process::run(&mut cc)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result {
    place::make_parent(to)?;
    fs::copy(from, to)
        .map(drop)
        .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

/// A symbolic link.
pub(crate) fn link(target: &str, at: &Path) -> Result {
    symlink(target, at).map_err(|e| format!("cannot link {}: {e}", at.display()))
}

/// Moves each file of the staged tree to its place in one step, so that running programs keep the file that
/// they have mapped. Other files of the prefix are left alone. Gives the relative names.
fn publish(tree: &Path, prefix: &Path) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for path in place::files_below(tree)? {
        let name = path.strip_prefix(tree).map_err(|e| e.to_string())?;
        let to = prefix.join(name);
        place::make_parent(&to)?;
        let fresh = to.with_file_name(format!(".new-{}", std::process::id()));
        let moved = match fs::read_link(&path) {
            Ok(target) => symlink(target, &fresh),
            Err(_) => fs::copy(&path, &fresh).map(drop),
        };
        moved
            .and_then(|()| fs::rename(&fresh, &to))
            .map_err(|e| format!("cannot install {}: {e}", to.display()))?;
        files.insert(name.to_string_lossy().into_owned());
    }
    Ok(files)
}

/// A fingerprint of everything that the prefix is made of.
fn stamp(options: &Options, archive: &Path) -> Result<String> {
    let mut hash = DefaultHasher::new();
    options.release.full().hash(&mut hash);
    options.side.folder().hash(&mut hash);
    let myself = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    for built in [archive, &myself] {
        let facts = fs::metadata(built).map_err(|e| format!("cannot read {}: {e}", built.display()))?;
        facts.len().hash(&mut hash);
        facts.modified().map_err(|e| e.to_string())?.hash(&mut hash);
    }
    let root = place::root();
    for dir in ["abi", "doca-sim/include", "doca-sim/libs", "doca-sim/pkgconfig", "doca-sim/tools"] {
        let dir = root.join(dir);
        if !dir.exists() {
            continue;
        }
        for path in place::files_below(&dir)? {
            path.hash(&mut hash);
            fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?.hash(&mut hash);
        }
    }
    Ok(format!("{:016x}", hash.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishing_replaces_files_and_leaves_others_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, prefix) = (scratch.path().join("tree"), scratch.path().join("prefix"));
        place::write(&tree.join("lib/libx.so.2.1"), "new").unwrap();
        link("libx.so.2.1", &tree.join("lib/libx.so")).unwrap();
        place::write(&prefix.join("lib/libx.so.2.1"), "old").unwrap();
        place::write(&prefix.join("lib/mine"), "kept").unwrap();
        let mapped = File::open(prefix.join("lib/libx.so.2.1")).unwrap();

        let files = publish(&tree, &prefix).unwrap();
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["lib/libx.so", "lib/libx.so.2.1"]);
        assert_eq!(fs::read_to_string(prefix.join("lib/libx.so")).unwrap(), "new");
        assert_eq!(fs::read_to_string(prefix.join("lib/mine")).unwrap(), "kept");
        assert_eq!(std::io::read_to_string(mapped).unwrap(), "old");
        // A second time over its own work.
        publish(&tree, &prefix).unwrap();
    }

    #[test]
    fn options_are_read_and_checked() {
        let parse = |line: &str| Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let options = parse("--prefix=/p --doca-version 3.0 --side dpu").unwrap();
        assert_eq!(
            (options.prefix.to_str(), options.release, options.side),
            (Some("/p"), Release::V3_0, Side::Dpu)
        );
        assert!(parse("--side arm").unwrap_err().contains("host or dpu"));
        assert!(parse("--prefix").unwrap_err().contains("needs a value"));
        assert!(parse("--frob").unwrap_err().contains("--frob"));
    }
}
