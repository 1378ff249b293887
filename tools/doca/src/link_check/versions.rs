//! Symbol versions: which node each dynamic symbol belongs to.

use super::elf::{Damage, damage};
use object::elf::{VER_FLG_BASE, VERSYM_VERSION, Verdaux, Verdef, Vernaux, Verneed, Versym};
use object::pod::{from_bytes, slice_from_bytes};
use object::read::StringTable;
use object::{Endianness, Pod};
use std::collections::BTreeMap;

/// The version tables of one file.
#[derive(Debug)]
pub(crate) struct Versions<'data> {
    /// One number for each symbol.
    numbers: &'data [Versym<Endianness>],
    nodes: BTreeMap<u16, Node>,
    defines: bool,
}

#[derive(Debug)]
struct Node {
    name: String,
    /// The library that should define it; none if this file does.
    file: Option<String>,
}

impl<'data> Versions<'data> {
    /// Reads the tables, each from its start to any later end, as far as the file has them.
    pub(crate) fn read(
        endian: Endianness,
        numbers: Option<&'data [u8]>,
        needed: Option<&'data [u8]>,
        defined: Option<&'data [u8]>,
        strings: StringTable<'data>,
    ) -> Result<Self, Damage> {
        let numbers = match numbers {
            Some(bytes) => slice_from_bytes(bytes, bytes.len() / size_of::<Versym<Endianness>>()),
            None => Ok((&[][..], &[][..])),
        };
        let (numbers, _) = numbers.map_err(|()| damage("its version numbers are misplaced"))?;
        let text = |offset: u32| match strings.get(offset) {
            Ok(name) => Ok(String::from_utf8_lossy(name).into_owned()),
            Err(()) => Err(damage("the name of a version lies outside of its string table")),
        };
        let mut nodes = BTreeMap::new();

        let mut rest = needed;
        while let Some(bytes) = rest {
            let need: &Verneed<Endianness> = record(bytes)?;
            let file = text(need.vn_file.get(endian))?;
            let mut names = after(bytes, need.vn_aux.get(endian))?;
            while let Some(bytes) = names {
                let aux: &Vernaux<Endianness> = record(bytes)?;
                let node = Node { name: text(aux.vna_name.get(endian))?, file: Some(file.clone()) };
                nodes.insert(aux.vna_other.get(endian) & VERSYM_VERSION, node);
                names = after(bytes, aux.vna_next.get(endian))?;
            }
            rest = after(bytes, need.vn_next.get(endian))?;
        }

        let mut rest = defined;
        while let Some(bytes) = rest {
            let definition: &Verdef<Endianness> = record(bytes)?;
            // The base definition is the file itself, not a node.
            if definition.vd_flags.get(endian) & VER_FLG_BASE == 0
                && let Some(bytes) = after(bytes, definition.vd_aux.get(endian))?
            {
                let aux: &Verdaux<Endianness> = record(bytes)?;
                let node = Node { name: text(aux.vda_name.get(endian))?, file: None };
                nodes.insert(definition.vd_ndx.get(endian) & VERSYM_VERSION, node);
            }
            rest = after(bytes, definition.vd_next.get(endian))?;
        }
        Ok(Versions { numbers, nodes, defines: defined.is_some() })
    }

    /// Node of a symbol, and the library that should define it.
    pub(crate) fn of(&self, endian: Endianness, symbol: usize) -> (Option<String>, Option<String>) {
        let number = self.numbers.get(symbol).map(|number| number.0.get(endian) & VERSYM_VERSION);
        match number.and_then(|number| self.nodes.get(&number)) {
            Some(node) => (Some(node.name.clone()), node.file.clone()),
            None => (None, None),
        }
    }

    /// Whether the file has nodes of its own.
    pub(crate) fn defines(&self) -> bool {
        self.defines
    }
}

fn record<T: Pod>(bytes: &[u8]) -> Result<&T, Damage> {
    let (record, _) = from_bytes(bytes).map_err(|()| damage("its version tables are cut short"))?;
    Ok(record)
}

/// What follows at a distance; nothing at distance 0. Distances only lead forward, so every walk ends.
fn after(bytes: &[u8], distance: u32) -> Result<Option<&[u8]>, Damage> {
    match distance {
        0 => Ok(None),
        _ => match bytes.get(distance as usize..) {
            Some(rest) => Ok(Some(rest)),
            None => Err(damage("its version tables point outside of their segment")),
        },
    }
}
