//! The loader's cache, `/etc/ld.so.cache`: where `ldconfig` saw each library.

/// Start of the table in use since glibc 2.2. An older table may stand before it.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_LEN: usize = 48;
const ENTRY_LEN: usize = 24;
/// Place of the header's byte that says which byte order the numbers have, and its value for big.
const FLAGS: usize = 28;
const BIG_ENDIAN: u8 = 3;

/// The paths that the cache has for a library, best first. Builds for special processors are left out, because
/// which of them is taken depends on the machine that runs the program. Damage ends the list.
pub(crate) fn lookup(cache: &[u8], library: &str) -> Vec<String> {
    let Some(start) = cache.windows(MAGIC.len()).step_by(4).position(|bytes| bytes == MAGIC) else {
        return Vec::new();
    };
    let table = &cache[start * 4..];
    let big = table.get(FLAGS).is_some_and(|flags| flags & 3 == BIG_ENDIAN);
    let number = |at: usize| -> Option<u32> {
        let bytes = table.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let text = |at: u32| -> Option<&str> {
        let rest = table.get(at as usize..)?;
        str::from_utf8(&rest[..rest.iter().position(|&byte| byte == 0)?]).ok()
    };
    let entry = |index: usize| -> Option<(&str, &str, bool)> {
        let at = HEADER_LEN + index * ENTRY_LEN;
        let common = (number(at + 16)?, number(at + 20)?) == (0, 0);
        Some((text(number(at + 4)?)?, text(number(at + 8)?)?, common))
    };
    let count = number(MAGIC.len()).unwrap_or(0) as usize;
    (0..count)
        .map_while(entry)
        .filter(|&(name, _, common)| name == library && common)
        .map(|(_, path, _)| path.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with these entries: name, path, whether for a special processor.
    fn cache(entries: &[(&str, &str, bool)], big: bool) -> Vec<u8> {
        let bytes = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut strings = Vec::new();
        let base = HEADER_LEN + entries.len() * ENTRY_LEN;
        let mut place = |text: &str| {
            let at = base + strings.len();
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            bytes(at as u32)
        };
        let mut table = MAGIC.to_vec();
        table.extend(bytes(entries.len() as u32));
        table.extend(bytes(0));
        table.extend([if big { BIG_ENDIAN } else { 2 }, 0, 0, 0]);
        table.resize(HEADER_LEN, 0);
        for (name, path, special) in entries {
            table.extend(bytes(3));
            table.extend(place(name));
            table.extend(place(path));
            table.extend([0; 8]);
            table.extend(bytes(u32::from(*special)));
        }
        table.extend(strings);
        table
    }

    #[test]
    fn a_library_is_found_by_its_name() {
        let entries = [("liba.so.1", "/x/liba.so.1", false), ("libb.so", "/y/libb.so", false)];
        for big in [false, true] {
            let cache = cache(&entries, big);
            assert_eq!(lookup(&cache, "libb.so"), ["/y/libb.so"]);
            assert!(lookup(&cache, "lib").is_empty());
        }
    }

    #[test]
    fn builds_for_special_processors_are_left_out() {
        let cache = cache(&[("liba.so", "/v3/liba.so", true), ("liba.so", "/x/liba.so", false)], false);
        assert_eq!(lookup(&cache, "liba.so"), ["/x/liba.so"]);
    }

    #[test]
    fn an_older_table_may_stand_before() {
        let old = [b"ld.so-1.7.0\0".as_slice(), &[0; 4]].concat();
        let cache = [old, cache(&[("liba.so", "/x/liba.so", false)], false)].concat();
        assert_eq!(lookup(&cache, "liba.so"), ["/x/liba.so"]);
    }

    #[test]
    fn a_cut_cache_ends_the_list() {
        let whole = cache(&[("liba.so", "/x/liba.so", false)], false);
        for len in 0..whole.len() {
            assert!(lookup(&whole[..len], "liba.so").is_empty(), "{len}");
        }
        assert!(lookup(b"something else", "liba.so").is_empty());
    }
}
