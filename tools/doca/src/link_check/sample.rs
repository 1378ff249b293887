//! A small shared object of any class and byte order, made by hand for tests. It has no section headers.

use super::machine::Target;
use object::Endianness;
use object::elf::*;

/// Numbers in the order and width of a target.
struct Bytes {
    target: Target,
    data: Vec<u8>,
}

impl Bytes {
    fn new(target: Target) -> Bytes {
        Bytes { target, data: Vec::new() }
    }

    fn put(&mut self, value: u64, len: usize) -> &mut Self {
        let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
        match self.target.endian {
            Endianness::Little => self.data.extend(&little[..len]),
            Endianness::Big => self.data.extend(&big[8 - len..]),
        }
        self
    }

    fn half(&mut self, value: u16) -> &mut Self {
        self.put(value.into(), 2)
    }

    fn int(&mut self, value: u32) -> &mut Self {
        self.put(value.into(), 4)
    }

    /// A number as wide as an address.
    fn word(&mut self, value: usize) -> &mut Self {
        self.put(value as u64, usize::from(self.target.bits / 8))
    }

    fn words(&mut self, values: &[usize]) -> &mut Self {
        values.iter().for_each(|&value| _ = self.word(value));
        self
    }

    fn pad(&mut self, len: usize) -> usize {
        assert!(self.data.len() <= len);
        self.data.resize(len, 0);
        len
    }
}

/// Where the parts are. Addresses are places in the file.
const SYMBOLS: usize = 0x200;
const HASH: usize = 0x280;
const NUMBERS: usize = 0x2c0;
const NEEDED: usize = 0x2d0;
const STRINGS: usize = 0x300;
const DATA: usize = 0x380;
const END: usize = 0x3a0;

/// Needs `libdoca_rdma.so.2` and `libc.so.6`, has the `RUNPATH` `$ORIGIN/lib`, which
/// replaces an `RPATH`, imports
/// `doca_rdma_create@DOCA_2`, exports `run`, and names `libdoca_sta.so.2` in its data.
pub(crate) fn sample(target: Target) -> Vec<u8> {
    let mut strings = vec![0];
    let mut name = |text: &str| {
        let at = strings.len();
        strings.extend(text.as_bytes());
        strings.push(0);
        at
    };
    let (rdma, libc, soname) = (name("libdoca_rdma.so.2"), name("libc.so.6"), name("libapp.so"));
    let (runpath, node) = (name("$ORIGIN/lib"), name("DOCA_2"));
    let (import, export) = (name("doca_rdma_create"), name("run"));

    let wide = target.bits == 64;
    let (header_len, segment_len) = if wide { (64, 56) } else { (52, 32) };
    let mut file = Bytes::new(target);
    file.data.extend(ELFMAG);
    file.data.push(if wide { ELFCLASS64 } else { ELFCLASS32 });
    file.data.push(if target.endian == Endianness::Little { ELFDATA2LSB } else { ELFDATA2MSB });
    file.data.push(EV_CURRENT);
    file.pad(16);
    file.half(ET_DYN).half(target.machine).int(1).words(&[0, header_len, 0]).int(0);
    file.half(header_len as u16).half(segment_len).half(2).half(0).half(0).half(0);

    let dynamic = [
        (DT_NEEDED, rdma),
        (DT_NEEDED, libc),
        (DT_SONAME, soname),
        (DT_RPATH, libc),
        (DT_RUNPATH, runpath),
        (DT_STRTAB, STRINGS),
        (DT_STRSZ, strings.len()),
        (DT_SYMTAB, SYMBOLS),
        (DT_HASH, HASH),
        (DT_VERSYM, NUMBERS),
        (DT_VERNEED, NEEDED),
        (DT_NULL, 0),
    ];
    let table_at = header_len + 2 * usize::from(segment_len);
    let table_len = dynamic.len() * usize::from(target.bits / 4);
    for (kind, at, len) in [(PT_LOAD, 0, END), (PT_DYNAMIC, table_at, table_len)] {
        match wide {
            true => file.int(kind).int(PF_R).words(&[at, at, at, len, len, 8]),
            false => file.int(kind).words(&[at, at, at, len, len]).int(PF_R).word(4),
        };
    }
    for (tag, value) in dynamic {
        file.words(&[tag as usize, value]);
    }

    file.pad(SYMBOLS);
    for (name, section, kind) in [(0, 0, 0), (import, 0, 0x12), (export, 1, 0x12)] {
        file.int(name as u32);
        match wide {
            true => file.data.extend([kind, 0]),
            false => file.words(&[0, 0]).data.extend([kind, 0]),
        }
        file.half(section);
        if wide {
            file.words(&[0, 0]);
        }
    }
    file.pad(HASH);
    file.int(1).int(3).int(0).int(0).int(0).int(0);
    file.pad(NUMBERS);
    file.half(0).half(2).half(1);
    file.pad(NEEDED);
    file.half(1).half(1).int(rdma as u32).int(16).int(0);
    file.int(0).half(0).half(2).int(node as u32).int(0);
    file.pad(STRINGS);
    file.data.extend(&strings);
    file.pad(DATA);
    file.data.extend(b"\0libdoca_sta.so.2\0");
    file.pad(END);
    file.data
}
