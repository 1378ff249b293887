//! Bitmaps in shared memory: one bit for each link of a context.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Sets a link's bit.
pub fn set(bitmap: &[AtomicU64], link: u32) {
    if let Some(word) = bitmap.get(link as usize / 64) {
        word.fetch_or(1 << (link % 64), SeqCst);
    }
}

/// Whether a link's bit is set.
pub fn is_set(bitmap: &[AtomicU64], link: u32) -> bool {
    bitmap.get(link as usize / 64).is_some_and(|word| word.load(SeqCst) & 1 << (link % 64) != 0)
}

/// Clears a link's bit; tells whether it was set.
pub fn clear(bitmap: &[AtomicU64], link: u32) -> bool {
    let bit = 1 << (link % 64);
    bitmap.get(link as usize / 64).is_some_and(|word| word.fetch_and(!bit, SeqCst) & bit != 0)
}

/// The links whose bits are set, from `start` on and round.
pub fn each(bitmap: &[AtomicU64], start: u32) -> impl Iterator<Item = u32> + '_ {
    let words = bitmap.len();
    (0..words + 1).flat_map(move |step| {
        let index = (start as usize / 64 + step) % words.max(1);
        let mut bits = bitmap.get(index).map_or(0, |word| word.load(SeqCst));
        if step == 0 {
            bits &= u64::MAX << (start % 64);
        } else if step == words {
            bits &= !(u64::MAX << (start % 64));
        }
        std::iter::from_fn(move || {
            if bits == 0 {
                return None;
            }
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            Some(index as u32 * 64 + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_visited_once_each_from_the_start_on() {
        let bitmap: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        for link in [0, 5, 63, 64, 130, 191] {
            set(&bitmap, link);
        }
        let from = |start| each(&bitmap, start).collect::<Vec<_>>();
        assert_eq!(from(0), [0, 5, 63, 64, 130, 191]);
        assert_eq!(from(64), [64, 130, 191, 0, 5, 63]);
        assert_eq!(from(6), [63, 64, 130, 191, 0, 5]);
        assert!(clear(&bitmap, 5) && !clear(&bitmap, 5));
        assert_eq!(from(100), [130, 191, 0, 63, 64]);
    }
}
