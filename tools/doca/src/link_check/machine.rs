//! Architectures: what the loader of each calls its directories.

use object::{Endianness, elf};
use serde::Serialize;

/// What a program and each of its libraries must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    /// Width of an address in bits.
    pub(crate) bits: u8,
    pub(crate) endian: Endianness,
    /// The ELF number of the architecture.
    pub(crate) machine: u16,
}

/// The same for people and scripts.
#[derive(Serialize, PartialEq, Eq, Debug)]
pub(crate) struct Described {
    pub(crate) bits: u8,
    pub(crate) endian: &'static str,
    pub(crate) architecture: String,
}

/// An architecture as loaders know it.
struct Row {
    machine: u16,
    bits: u8,
    endian: Endianness,
    /// Its name, which is also what `$PLATFORM` stands for.
    name: &'static str,
    /// The folder that Debian names after it.
    triplet: &'static str,
    /// What `$LIB` stands for where directories are not named after the architecture.
    lib: &'static str,
}

const fn row(
    machine: u16,
    bits: u8,
    endian: Endianness,
    name: &'static str,
    triplet: &'static str,
    lib: &'static str,
) -> Row {
    Row { machine, bits, endian, name, triplet, lib }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(elf::EM_X86_64,  64, Endianness::Little, "x86_64",      "x86_64-linux-gnu",      "lib64"),
    row(elf::EM_AARCH64, 64, Endianness::Little, "aarch64",     "aarch64-linux-gnu",     "lib64"),
    row(elf::EM_AARCH64, 64, Endianness::Big,    "aarch64_be",  "aarch64_be-linux-gnu",  "lib64"),
    row(elf::EM_386,     32, Endianness::Little, "i686",        "i386-linux-gnu",        "lib"),
    row(elf::EM_ARM,     32, Endianness::Little, "arm",         "arm-linux-gnueabihf",   "lib"),
    row(elf::EM_PPC64,   64, Endianness::Little, "powerpc64le", "powerpc64le-linux-gnu", "lib64"),
    row(elf::EM_PPC64,   64, Endianness::Big,    "powerpc64",   "powerpc64-linux-gnu",   "lib64"),
    row(elf::EM_S390,    64, Endianness::Big,    "s390x",       "s390x-linux-gnu",       "lib64"),
    row(elf::EM_RISCV,   64, Endianness::Little, "riscv64",     "riscv64-linux-gnu",     "lib64"),
];

impl Target {
    fn row(&self) -> Option<&'static Row> {
        let same = |row: &&Row| (row.machine, row.bits, row.endian) == (self.machine, self.bits, self.endian);
        ROWS.iter().find(same)
    }

    /// What `$PLATFORM` stands for.
    pub(crate) fn platform(&self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// What `$LIB` may stand for. Which one it is was decided when the loader was built, so all are tried.
    pub(crate) fn lib_names(&self) -> Vec<String> {
        let Some(row) = self.row() else { return vec!["lib".into()] };
        vec![format!("lib/{}", row.triplet), row.lib.into()]
    }

    /// Where the loader looks last.
    pub(crate) fn default_dirs(&self) -> Vec<String> {
        let names = self.lib_names().into_iter().chain(["lib".into()]);
        let mut dirs = Vec::new();
        for name in names {
            for dir in [format!("/{name}"), format!("/usr/{name}")] {
                if !dirs.contains(&dir) {
                    dirs.push(dir);
                }
            }
        }
        dirs
    }

    pub(crate) fn describe(&self) -> Described {
        let architecture = match self.row() {
            Some(row) => row.name.to_owned(),
            None => format!("ELF machine {}", self.machine),
        };
        let endian = if self.endian == Endianness::Little { "little" } else { "big" };
        Described { bits: self.bits, endian, architecture }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Described { bits, endian, architecture } = self.describe();
        write!(f, "{bits}-bit {endian}-endian {architecture}")
    }
}
