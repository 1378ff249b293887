//! What a shared object says about itself.

use crate::Result;
use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, Sym};
use std::path::Path;

/// A symbol that a library exports.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Export {
    pub(crate) name: String,
    /// Its version node, empty for none.
    pub(crate) node: String,
    /// Whether new programs bind to this one (`name@@node`).
    pub(crate) default: bool,
}

/// Names and nodes.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) soname: String,
    pub(crate) needed: Vec<String>,
    pub(crate) runpath: String,
    pub(crate) nodes: Vec<String>,
    pub(crate) exports: Vec<Export>,
}

/// The symbols that a library exports.
pub(crate) fn exports(path: &Path) -> Result<Vec<Export>> {
    facts(path).map(|facts| facts.exports)
}

/// Reads a 64-bit shared object.
pub(crate) fn facts(path: &Path) -> Result<Facts> {
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    parse(&bytes).map_err(|e| format!("{}: {e}", path.display()))
}

fn parse(data: &[u8]) -> object::Result<Facts> {
    let mut facts = Facts::default();
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();

    if let Some((entries, link)) = sections.dynamic(endian, data)? {
        let strings = sections.strings(endian, data, link)?;
        for entry in entries {
            let string = || entry.string(endian, strings).map(text);
            match entry.tag32(endian) {
                Some(elf::DT_SONAME) => facts.soname = string()?,
                Some(elf::DT_NEEDED) => facts.needed.push(string()?),
                Some(elf::DT_RUNPATH | elf::DT_RPATH) => facts.runpath = string()?,
                _ => {}
            }
        }
    }
    let versions = sections.versions(endian, data)?;
    if let Some((mut definitions, link)) = sections.gnu_verdef(endian, data)? {
        let strings = sections.strings(endian, data, link)?;
        while let Some((definition, mut names)) = definitions.next()? {
            // The first is the file itself.
            if definition.vd_flags.get(endian) & elf::VER_FLG_BASE == 0
                && let Some(name) = names.next()?
            {
                facts.nodes.push(text(name.name(endian, strings)?));
            }
        }
    }
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    for (index, symbol) in symbols.enumerate() {
        let place = symbol.st_shndx(endian);
        if place == elf::SHN_UNDEF || place == elf::SHN_ABS || symbol.is_local() {
            continue;
        }
        let mut export = Export {
            name: text(symbol.name(endian, symbols.strings())?),
            node: String::new(),
            default: true,
        };
        if let Some(versions) = &versions {
            let version = versions.version_index(endian, index);
            export.default = !version.is_hidden();
            if let Some(version) = versions.version(version)? {
                export.node = text(version.name());
            }
        }
        facts.exports.push(export);
    }
    facts.exports.sort();
    Ok(facts)
}
