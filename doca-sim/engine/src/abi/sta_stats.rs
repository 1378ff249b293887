//! `doca_sta_stats.h`: execution units and counters, for any thread.

use crate::code::Code;
use crate::entry;
use crate::entry::{In, Out};
use crate::sta::{self, Entry, Handle, Kind, Sta};
use std::ffi::c_char;

/// A table of counters, for C.
macro_rules! tables {
    ($($name:ident($($arg:ident),*) $kind:ident $last:ident $method:ident;)*) => {
        entry! { $(
            /// The counters: names, and pointers to numbers that go on counting.
            fn $name($($arg: Handle,)* entries: Out<*const Entry>, count: Out<u16>) {
                let core = $last.core(Kind::$kind)?;
                entries.check()?;
                count.check()?;
                let table = core.$method($($arg),*)?;
                entries.put(table.0)?;
                count.put(table.1)
            }
        )* }
    };
}

tables! {
    doca_sta_get_eu_stats(unit) Unit unit unit_table;
    doca_sta_get_be_queue_stats(be, queue) Queue queue queue_table;
    doca_sta_get_ns_stats(subsystem, ns) Namespace ns namespace_table;
}

/// Fields of an execution unit.
macro_rules! fields {
    ($($name:ident $field:ident: $type:ty;)*) => {
        entry! { $(
            #[doc = concat!("A unit's ", stringify!($field), ".")]
            fn $name(unit: Handle, value: Out<$type>) {
                let core = unit.core(Kind::Unit)?;
                value.check()?;
                value.put(core.unit(unit, sta::Unit::$field)?)
            }
        )* }
    };
}

fields! {
    doca_sta_get_eu_name name: *const c_char;
    doca_sta_get_eu_type kind: u32;
    doca_sta_get_eu_id id: u16;
}

entry! {
    /// The device that a unit serves: a position among those added.
    fn doca_sta_get_eu_port(unit: Handle, port: Out<u16>) {
        let core = unit.core(Kind::Unit)?;
        port.check()?;
        port.put(core.unit_port(unit)?)
    }

    /// Whether a unit runs, `enum dpa_sta_eu_state`.
    fn doca_sta_get_eu_state(unit: Handle, state: Out<u32>) {
        let core = unit.core(Kind::Unit)?;
        state.check()?;
        state.put(core.unit_state(unit)?)
    }

    /// All units. TOO_BIG, and how many there are, if the array is too small.
    fn doca_sta_get_eu_handle(sta: In<Sta>, units: Out<Handle>, size: Out<u32>) {
        let core = sta.get()?.core();
        units.check()?;
        // SAFETY: not NULL after `check`; the header asks for the array's size there.
        let room = { size.check()?; unsafe { size.raw().read() } };
        let all = core.units()?;
        size.put(all.len() as u32)?;
        if (room as usize) < all.len() {
            return Err(Code::TOO_BIG);
        }
        units.put_all(&all)
    }

    /// The queue pairs of a unit that handles completions; without an array, how many.
    fn doca_sta_get_eu_connect_qp_stats(unit: Handle, qps: Out<Handle>, size: Out<u16>) {
        let core = unit.core(Kind::Unit)?;
        // SAFETY: as above.
        let room = { size.check()?; unsafe { size.raw().read() } };
        let all = core.unit_qps(unit)?;
        size.put(all.len() as u16)?;
        if qps.check().is_err() {
            return Ok(());
        }
        if usize::from(room) < all.len() {
            return Err(Code::TOO_BIG);
        }
        qps.put_all(&all)
    }

    /// Counts from zero again.
    fn doca_sta_eu_reset_stats_handle(unit: Handle) {
        unit.core(Kind::Unit)?.reset_unit(unit)
    }

    /// The same for all units of a type.
    fn doca_sta_eu_reset_stats_type(sta: In<Sta>, kind: u32) {
        sta.get()?.core().reset_units(kind)
    }
}
