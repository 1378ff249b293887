//! Counters as programs read them: a table of names and of pointers to numbers that go on counting.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// `struct doca_sta_eu_ctr_entry`
#[repr(C)]
#[derive(Debug)]
pub struct Entry {
    name: *const c_char,
    val: *const AtomicU64,
}

/// The counters of one object.
#[derive(Debug)]
pub(crate) struct Counters {
    values: Box<[AtomicU64]>,
    entries: Box<[Entry]>,
}

// SAFETY: the entries point to static names and to the atomic numbers beside them, which live as long.
unsafe impl Send for Counters {}
// SAFETY: as above; nothing but the atomic numbers changes.
unsafe impl Sync for Counters {}

impl Counters {
    /// All zero.
    pub(super) fn new(names: &[&'static CStr]) -> Counters {
        let values: Box<[AtomicU64]> = names.iter().map(|_| AtomicU64::new(0)).collect();
        let entries =
            names.iter().zip(&values).map(|(name, val)| Entry { name: name.as_ptr(), val }).collect();
        Counters { values, entries }
    }

    pub(super) fn add(&self, index: usize, count: u64) {
        if let Some(value) = self.values.get(index) {
            value.fetch_add(count, Relaxed);
        }
    }

    pub(super) fn reset(&self) {
        for value in &self.values {
            value.store(0, Relaxed);
        }
    }

    /// The table, for C.
    pub(crate) fn table(&self) -> (*const Entry, u16) {
        (self.entries.as_ptr(), self.entries.len() as u16)
    }
}

/// Counters by name. (The names are proposed.)
macro_rules! tables {
    ($($table:ident: $($index:ident $name:literal)*;)*) => { $(
        pub(super) mod $table {
            use std::ffi::CStr;
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the counters are")]
            enum Index { $($index,)* }
            pub(in crate::sta) const NAMES: &[&CStr] = &[$($name),*];
            $(pub(in crate::sta) const $index: usize = Index::$index as usize;)*
        }
    )* };
}

tables! {
    comp: RX_CAPSULES c"rx_capsules" RX_NON_OFFLOAD c"rx_non_offload" RX_ERRORS c"rx_errors";
    tx: SENDS c"tx_sends" WRITES c"tx_rdma_writes" READS c"tx_rdma_reads";
    beq: SQE_POSTED c"sqe_posted" CQE_POLLED c"cqe_polled" CQE_ERRORS c"cqe_errors";
    space: READ_CMDS c"read_cmds" READ_BYTES c"read_bytes" WRITE_CMDS c"write_cmds" WRITE_BYTES c"write_bytes"
        ERRORS c"errors";
    mapping: EU_ID c"eu_id" INDEX_IN_EU c"index_in_eu";
}

impl Counters {
    /// Sets a number that does not count.
    pub(super) fn set(&self, index: usize, value: u64) {
        if let Some(known) = self.values.get(index) {
            known.store(value, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_each_number_and_follows_it() {
        let counters = Counters::new(space::NAMES);
        counters.add(space::WRITE_BYTES, 4096);
        counters.add(99, 1);
        let (entries, count) = counters.table();
        assert_eq!(count, 5);
        // SAFETY: the table has five entries.
        let entry = unsafe { &*entries.add(space::WRITE_BYTES) };
        // SAFETY: both point into the counters, which live.
        let (name, value) = unsafe { (CStr::from_ptr(entry.name), &*entry.val) };
        assert_eq!((name, value.load(Relaxed)), (c"write_bytes", 4096));
        counters.reset();
        assert_eq!(value.load(Relaxed), 0);
    }
}
