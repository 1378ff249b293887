//! Physical Region Pages.

use crate::raw::Map;
use nvme_wire::Status;

const PAGE: u64 = 4096;

/// Finds the pieces of memory that PRP entries describe: address and length of each, `len` bytes in all.
pub(crate) fn pieces(
    map: &Map,
    prps: [u64; 2],
    len: u64,
    into: &mut Vec<(u64, usize)>,
) -> Result<(), Status> {
    into.clear();
    let invalid = Status::PRP_OFFSET_INVALID.with_dnr();
    let [first, second] = prps;
    if !first.is_multiple_of(4) {
        return Err(invalid);
    }
    let mut rest = len;
    let mut take = |address: u64, rest: &mut u64| {
        let some = (PAGE - address % PAGE).min(*rest);
        into.push((address, some as usize));
        *rest -= some;
    };
    take(first, &mut rest);
    if rest == 0 {
        return Ok(());
    }
    if rest <= PAGE {
        if !second.is_multiple_of(PAGE) {
            return Err(invalid);
        }
        take(second, &mut rest);
        return Ok(());
    }
    if !second.is_multiple_of(8) {
        return Err(invalid);
    }
    let mut entry_at = second;
    // A list that leads back to itself ends, too: no list needs more entries than pages, twice over.
    for _ in 0..2 * len.div_ceil(PAGE) + 2 {
        let mut entry = [0; 8];
        map.read(entry_at, &mut entry).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
        let entry = u64::from_le_bytes(entry);
        if !entry.is_multiple_of(PAGE) {
            return Err(invalid);
        }
        // The last entry of a list page leads to the next list, unless it is the last of all.
        if (entry_at + 8).is_multiple_of(PAGE) && rest > PAGE {
            entry_at = entry;
            continue;
        }
        take(entry, &mut rest);
        if rest == 0 {
            return Ok(());
        }
        entry_at += 8;
    }
    Err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme_pci::{DmaBuffer, Mapper};
    use std::sync::Arc;

    fn pieces_of(map: &Map, prps: [u64; 2], len: u64) -> Result<Vec<(u64, usize)>, Status> {
        let mut found = Vec::new();
        pieces(map, prps, len, &mut found).map(|()| found)
    }

    #[test]
    fn two_entries_describe_up_to_two_pages() {
        let map = Map::default();
        assert_eq!(pieces_of(&map, [0x1E00, 7], 512), Ok(vec![(0x1E00, 512)]));
        assert_eq!(pieces_of(&map, [0x1E00, 0x5000], 1024), Ok(vec![(0x1E00, 512), (0x5000, 512)]));
        let invalid = Err(Status::PRP_OFFSET_INVALID.with_dnr());
        assert_eq!(pieces_of(&map, [0x1E02, 0], 512), invalid);
        assert_eq!(pieces_of(&map, [0x1E00, 0x5010], 1024), invalid);
    }

    #[test]
    fn lists_go_on_in_another_page() {
        let map: Arc<Map> = Arc::default();
        let mapper: Arc<dyn Mapper> = map.clone();
        let mut lists = DmaBuffer::new(8192, &mapper).unwrap();
        let second = lists.iova() + 4096;
        // The last two entries of the first page: a data page and the way to the second list.
        lists.write(4096 - 16, &0x7000u64.to_le_bytes());
        lists.write(4096 - 8, &second.to_le_bytes());
        lists.write(4096, &0x8000u64.to_le_bytes());
        lists.write(4104, &0x9000u64.to_le_bytes());
        let prps = [0x1000, second - 16];
        assert_eq!(
            pieces_of(&map, prps, 4 * 4096),
            Ok([0x1000, 0x7000, 0x8000, 0x9000].map(|at| (at, 4096)).to_vec())
        );
        // Where the last entry is the last of all, it is data.
        assert_eq!(
            pieces_of(&map, prps, 3 * 4096 - 1),
            Ok(vec![(0x1000, 4096), (0x7000, 4096), (second, 4095)])
        );
        lists.write(4104, &0x9008u64.to_le_bytes());
        assert_eq!(pieces_of(&map, prps, 4 * 4096), Err(Status::PRP_OFFSET_INVALID.with_dnr()));
        // The last entry of a page that leads to itself.
        lists.write(8184, &(second + 4088).to_le_bytes());
        let endless = pieces_of(&map, [0x1000, second + 4088], 4 * 4096);
        assert_eq!(endless, Err(Status::PRP_OFFSET_INVALID.with_dnr()));
        assert_eq!(pieces_of(&map, [0x1000, 0x10], 3 * 4096), Err(Status::DATA_TRANSFER_ERROR));
    }
}
