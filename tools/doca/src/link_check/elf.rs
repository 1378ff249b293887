//! What an ELF file says about itself, read the way the loader reads it: through its program headers, so that
//! a file without section headers is understood too.

use super::library;
use super::machine::Target;
use super::versions::Versions;
use object::elf::{self, FileHeader32, FileHeader64};
use object::pod::slice_from_bytes;
use object::read::StringTable;
use object::read::elf::{Dyn, FileHeader, GnuHashTable, HashTable, ProgramHeader, Sym, SymbolTable};
use object::{Endianness, FileKind};
use serde::Serialize;
use std::collections::BTreeSet;

/// What sort of file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Executable,
    PositionIndependentExecutable,
    StaticExecutable,
    StaticPie,
    SharedObject,
}

/// A symbol that crosses the border of the file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// Its version node, none for an unversioned reference or definition.
    pub(crate) node: Option<String>,
    /// For a versioned reference, the library that should have it.
    #[serde(skip)]
    pub(crate) file: Option<String>,
    /// Whether the program starts without it.
    #[serde(skip)]
    pub(crate) weak: bool,
}

/// The facts of one file.
#[derive(Debug)]
pub(crate) struct Elf {
    pub(crate) target: Target,
    pub(crate) kind: Kind,
    pub(crate) soname: Option<String>,
    pub(crate) needed: Vec<String>,
    /// Search path for itself and for what it loads; unset where a `runpath` replaces it.
    pub(crate) rpath: Option<String>,
    /// Search path for its own libraries only.
    pub(crate) runpath: Option<String>,
    /// Whether it refuses the default directories.
    pub(crate) no_default_dirs: bool,
    pub(crate) imports: Vec<Symbol>,
    pub(crate) exports: Vec<Symbol>,
    /// Whether it has version nodes of its own.
    pub(crate) versioned: bool,
    /// Whether the full symbol table was removed.
    pub(crate) stripped: bool,
    /// Functions of the full symbol table that are called like DOCA's or verbs'.
    pub(crate) defined: BTreeSet<String>,
    /// File names of libraries in its data, of the kinds that [`library::mentioned`] looks for.
    pub(crate) mentions: BTreeSet<String>,
}

/// Why a file cannot be checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("is not an ELF file")]
    NotElf,
    #[error("is an ELF {0}, not a linked program or library")]
    NotLinked(&'static str),
    #[error("is a damaged ELF file: {0}")]
    Damaged(#[from] Damage),
}

impl Elf {
    /// Reads a file's bytes.
    pub(crate) fn parse(data: &[u8]) -> Result<Elf, Unreadable> {
        match FileKind::parse(data) {
            Ok(FileKind::Elf32) => parse::<FileHeader32<Endianness>>(data, 32),
            Ok(FileKind::Elf64) => parse::<FileHeader64<Endianness>>(data, 64),
            _ if data.starts_with(&elf::ELFMAG) => {
                Err(damage("its header is cut short or of no known class").into())
            }
            _ => Err(Unreadable::NotElf),
        }
    }
}

/// The dynamic table's entries that matter here.
#[derive(Default)]
struct Dynamic {
    needed: Vec<u64>,
    soname: Option<u64>,
    rpath: Option<u64>,
    runpath: Option<u64>,
    flags: u64,
    strings: Option<(u64, u64)>,
    symbols: Option<u64>,
    hash: Option<u64>,
    gnu_hash: Option<u64>,
    version_numbers: Option<u64>,
    versions_needed: Option<u64>,
    versions_defined: Option<u64>,
    /// Every address in the table, by which the end of one part is guessed from the start of the next.
    addresses: Vec<u64>,
}

impl Dynamic {
    fn read<H: FileHeader>(entries: &[H::Dyn], endian: H::Endian) -> Dynamic {
        let mut dynamic = Dynamic::default();
        let (mut address, mut size) = (None, 0);
        for entry in entries {
            let value: u64 = entry.d_val(endian).into();
            match entry.tag32(endian) {
                Some(elf::DT_NULL) => break,
                Some(elf::DT_NEEDED) => dynamic.needed.push(value),
                Some(elf::DT_SONAME) => dynamic.soname = Some(value),
                Some(elf::DT_RPATH) => dynamic.rpath = Some(value),
                Some(elf::DT_RUNPATH) => dynamic.runpath = Some(value),
                Some(elf::DT_FLAGS_1) => dynamic.flags = value,
                Some(elf::DT_STRTAB) => address = Some(value),
                Some(elf::DT_STRSZ) => size = value,
                Some(elf::DT_SYMTAB) => dynamic.symbols = Some(value),
                Some(elf::DT_HASH) => dynamic.hash = Some(value),
                Some(elf::DT_GNU_HASH) => dynamic.gnu_hash = Some(value),
                Some(elf::DT_VERSYM) => dynamic.version_numbers = Some(value),
                Some(elf::DT_VERNEED) => dynamic.versions_needed = Some(value),
                Some(elf::DT_VERDEF) => dynamic.versions_defined = Some(value),
                _ => {}
            }
            if entry.is_address(endian) {
                dynamic.addresses.push(value);
            }
        }
        dynamic.strings = address.map(|address| (address, size));
        dynamic
    }
}

/// The file as it is mapped.
struct Mapped<'data, H: FileHeader> {
    header: &'data H,
    endian: H::Endian,
    data: &'data [u8],
    segments: &'data [H::ProgramHeader],
}

impl<'data, H: FileHeader<Endian = Endianness>> Mapped<'data, H> {
    /// The file's bytes from an address to the end of the segment it is in.
    fn from(&self, address: u64) -> Result<&'data [u8], Damage> {
        let loaded = |segment: &&H::ProgramHeader| segment.p_type(self.endian) == elf::PT_LOAD;
        for segment in self.segments.iter().filter(loaded) {
            let start: u64 = segment.p_vaddr(self.endian).into();
            let bytes =
                segment.data(self.endian, self.data).map_err(|()| damage("a segment ends after the file"))?;
            let skip = address.checked_sub(start).and_then(|skip| usize::try_from(skip).ok());
            if let Some(rest) = skip.filter(|&skip| skip < bytes.len()).and_then(|skip| bytes.get(skip..)) {
                return Ok(rest);
            }
        }
        Err(damage("its dynamic table points outside of its segments"))
    }

    /// How many dynamic symbols there are, which no single entry tells.
    fn symbol_count(&self, dynamic: &Dynamic, start: u64) -> Result<usize, Damage> {
        if let Ok(sections) = self.header.sections(self.endian, self.data)
            && let Ok(symbols) = sections.symbols(self.endian, self.data, elf::SHT_DYNSYM)
            && !symbols.is_empty()
        {
            return Ok(symbols.len());
        }
        if let Some(address) = dynamic.hash {
            let table = HashTable::<H>::parse(self.endian, self.from(address)?)?;
            return Ok(table.symbol_table_length() as usize);
        }
        if let Some(address) = dynamic.gnu_hash {
            let table = GnuHashTable::<H>::parse(self.endian, self.from(address)?)?;
            if let Some(count) = table.symbol_table_length(self.endian) {
                return Ok(count as usize);
            }
        }
        let next = dynamic.addresses.iter().filter(|&&address| address > start).min();
        let len = next.map_or(0, |next| next - start);
        Ok(usize::try_from(len).unwrap_or(0) / size_of::<H::Sym>())
    }

    fn symbols(&self, dynamic: &Dynamic) -> Result<&'data [H::Sym], Damage> {
        let Some(start) = dynamic.symbols else { return Ok(&[]) };
        let bytes = self.from(start)?;
        let count = self.symbol_count(dynamic, start)?;
        let (symbols, _) = slice_from_bytes(bytes, count)
            .map_err(|()| damage("its symbols are misplaced or end after their segment"))?;
        Ok(symbols)
    }

    /// The full symbol table, which the loader does not need; empty in a stripped file.
    fn all_symbols(&self) -> SymbolTable<'data, H> {
        let sections = self.header.sections(self.endian, self.data);
        let symbols = sections.and_then(|sections| sections.symbols(self.endian, self.data, elf::SHT_SYMTAB));
        symbols.unwrap_or_default()
    }

    /// The defined functions that are called as one that we look for.
    fn defined(&self, symbols: &SymbolTable<'data, H>) -> BTreeSet<String> {
        symbols
            .iter()
            .filter(|symbol| symbol.st_type() == elf::STT_FUNC && !symbol.is_undefined(self.endian))
            .filter_map(|symbol| str::from_utf8(symbol.name(self.endian, symbols.strings()).ok()?).ok())
            .filter(|name| library::is_of_interest(name))
            .map(str::to_owned)
            .collect()
    }

    /// Names of libraries in the mapped bytes, except those of the dynamic table itself.
    fn mentions(&self, strings: &[u8]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let table = strings.as_ptr_range();
        let loaded = |segment: &&H::ProgramHeader| segment.p_type(self.endian) == elf::PT_LOAD;
        for segment in self.segments.iter().filter(loaded) {
            let bytes = segment.data(self.endian, self.data).unwrap_or_default();
            for (at, name) in library::mentioned(bytes) {
                if !table.contains(&bytes[at..].as_ptr()) {
                    found.insert(name);
                }
            }
        }
        found
    }
}

fn parse<H: FileHeader<Endian = Endianness>>(data: &[u8], bits: u8) -> Result<Elf, Unreadable> {
    let header = H::parse(data).map_err(Damage::from)?;
    let endian = header.endian().map_err(Damage::from)?;
    let target = Target { bits, endian, machine: header.e_machine(endian) };
    let segments = header.program_headers(endian, data).map_err(Damage::from)?;
    let mapped = Mapped { header, endian, data, segments };

    let mut interpreted = false;
    let mut entries = None;
    for segment in segments {
        interpreted |= segment.p_type(endian) == elf::PT_INTERP;
        entries = entries.or(segment.dynamic(endian, data).map_err(Damage::from)?);
    }
    let dynamic = entries.map(|entries| Dynamic::read::<H>(entries, endian));
    let kind = match (header.e_type(endian), &dynamic) {
        (elf::ET_EXEC, _) if interpreted => Kind::Executable,
        (elf::ET_EXEC, _) => Kind::StaticExecutable,
        (elf::ET_DYN, _) if interpreted => Kind::PositionIndependentExecutable,
        (elf::ET_DYN, Some(dynamic)) if dynamic.flags & u64::from(elf::DF_1_PIE) != 0 => Kind::StaticPie,
        (elf::ET_DYN, _) => Kind::SharedObject,
        (elf::ET_REL, _) => return Err(Unreadable::NotLinked("object file")),
        (elf::ET_CORE, _) => return Err(Unreadable::NotLinked("core dump")),
        _ => return Err(Unreadable::NotLinked("file of unknown type")),
    };
    let dynamic = dynamic.unwrap_or_default();

    let bytes = match dynamic.strings {
        Some((address, size)) => {
            let rest = mapped.from(address)?;
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            rest.get(..size).ok_or_else(|| damage("its string table ends after its segment"))?
        }
        None => &[],
    };
    let strings = StringTable::new(bytes, 0, bytes.len() as u64);
    let text = |offset: u64| -> Result<String, Damage> {
        let name = u32::try_from(offset).ok().and_then(|offset| strings.get(offset).ok());
        let name = name.ok_or_else(|| damage("a name lies outside of its string table"))?;
        Ok(String::from_utf8_lossy(name).into_owned())
    };
    let optional = |offset: Option<u64>| offset.map(text).transpose();

    let table = |address: Option<u64>| address.map(|address| mapped.from(address)).transpose();
    let versions = Versions::read(
        endian,
        table(dynamic.version_numbers)?,
        table(dynamic.versions_needed)?,
        table(dynamic.versions_defined)?,
        strings,
    )?;
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    for (index, symbol) in mapped.symbols(&dynamic)?.iter().enumerate().skip(1) {
        if symbol.is_local() {
            continue;
        }
        let (node, file) = versions.of(endian, index);
        let weak = symbol.is_weak();
        let name = text(u64::from(symbol.st_name(endian)))?;
        let list = if symbol.is_undefined(endian) { &mut imports } else { &mut exports };
        list.push(Symbol { name, node, file, weak });
    }
    imports.sort();
    exports.sort();

    let all_symbols = mapped.all_symbols();
    let runpath = optional(dynamic.runpath)?;
    Ok(Elf {
        target,
        kind,
        soname: optional(dynamic.soname)?,
        needed: dynamic.needed.iter().map(|&offset| text(offset)).collect::<Result<_, _>>()?,
        rpath: optional(dynamic.rpath)?.filter(|_| runpath.is_none()),
        runpath,
        no_default_dirs: dynamic.flags & u64::from(elf::DF_1_NODEFLIB) != 0,
        imports,
        exports,
        versioned: versions.defines(),
        stripped: all_symbols.is_empty(),
        defined: mapped.defined(&all_symbols),
        mentions: mapped.mentions(bytes),
    })
}

/// What is wrong with a file that claims to be ELF.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Damage(String);

impl From<object::read::Error> for Damage {
    fn from(error: object::read::Error) -> Damage {
        Damage(error.to_string())
    }
}

/// Damage that `object` has no message for.
pub(super) fn damage(what: &str) -> Damage {
    Damage(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample;
    use super::*;

    #[test]
    fn any_class_and_byte_order_is_read_without_section_headers() {
        for (bits, endian) in
            [(64, Endianness::Little), (64, Endianness::Big), (32, Endianness::Little), (32, Endianness::Big)]
        {
            let target = Target { bits, endian, machine: elf::EM_AARCH64 };
            let elf = Elf::parse(&sample(target)).unwrap();
            assert_eq!((elf.target, elf.kind), (target, Kind::SharedObject));
            assert_eq!(elf.needed, ["libdoca_rdma.so.2", "libc.so.6"]);
            assert_eq!((elf.runpath.as_deref(), elf.rpath), (Some("$ORIGIN/lib"), None));
            assert_eq!(elf.soname.as_deref(), Some("libapp.so"));
            let [import] = &elf.imports[..] else { panic!("{:?}", elf.imports) };
            assert_eq!((import.name.as_str(), import.node.as_deref()), ("doca_rdma_create", Some("DOCA_2")));
            assert_eq!(import.file.as_deref(), Some("libdoca_rdma.so.2"));
            assert_eq!(elf.exports[0].name, "run");
            assert_eq!(elf.mentions, ["libdoca_sta.so.2".to_owned()].into());
        }
    }

    #[test]
    fn damage_is_an_error_or_harmless() {
        let target = Target { bits: 64, endian: Endianness::Little, machine: elf::EM_X86_64 };
        let whole = sample(target);
        for len in 0..whole.len() {
            assert!(Elf::parse(&whole[..len]).is_err(), "{len} bytes");
        }
        for at in 0..whole.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                // Whether it is still readable depends on the place.
                _ = Elf::parse(&bytes);
            }
        }
    }

    #[test]
    fn other_files_are_named_as_such() {
        let target = Target { bits: 64, endian: Endianness::Little, machine: elf::EM_X86_64 };
        let mut object = sample(target);
        object[16] = 1;
        assert_eq!(
            Elf::parse(&object).unwrap_err().to_string(),
            "is an ELF object file, not a linked program or library"
        );
        assert_eq!(Elf::parse(b"#!/bin/sh\n").unwrap_err().to_string(), "is not an ELF file");
        assert_eq!(Elf::parse(b"").unwrap_err().to_string(), "is not an ELF file");
        assert!(Elf::parse(b"\x7fELF").unwrap_err().to_string().starts_with("is a damaged ELF file"));
    }
}
