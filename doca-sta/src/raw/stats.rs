//! `doca_sta_get_*_stats`: counters, which are copied at once.

use super::event::Unit;
use super::object::{BackEnd, Ns, Subs};
use super::sta::Handle;
use crate::event::EuKind;
use crate::stats::Counters;
use doca_common::{Result, call};
use doca_sys::{doca_sta_be_q_handle, doca_sta_eu_ctr_entry, doca_sta_eu_handle};
use std::ffi::CStr;
use std::ptr::{self, NonNull};

/// Name, kind, number and port of a unit.
///
/// # Safety
///
/// The unit is valid.
pub(super) unsafe fn describe(eu: *const doca_sta_eu_handle) -> Result<Unit> {
    let mut name = ptr::null();
    let mut kind = doca_sys::dpa_sta_eu_type(0);
    let (mut id, mut port) = (0, 0);
    // SAFETY: as the caller says, and the out-parameters are locals; DOCA's names are terminated and live as long as
    // the unit, and this one is copied.
    unsafe {
        call!(doca_sta_get_eu_name(eu, &mut name))?;
        call!(doca_sta_get_eu_type(eu, &mut kind))?;
        call!(doca_sta_get_eu_id(eu, &mut id))?;
        call!(doca_sta_get_eu_port(eu, &mut port))?;
        let name =
            if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() };
        Ok(Unit { name, kind: EuKind::from_raw(kind.0), id, port })
    }
}

/// Copies a table of counters.
///
/// # Safety
///
/// `entries` are `count` entries of DOCA's, valid now.
unsafe fn copied(entries: *const doca_sta_eu_ctr_entry, count: u16) -> Counters {
    if entries.is_null() {
        return Counters::default();
    }
    // SAFETY: as the caller says.
    let entries = unsafe { std::slice::from_raw_parts(entries, count.into()) };
    let counters =
        entries.iter().filter(|entry| !entry.name.is_null() && !entry.val.is_null()).map(|entry| {
            // SAFETY: a terminated name, and a counter that DOCA changes meanwhile, whence the volatile read.
            unsafe { (CStr::from_ptr(entry.name).to_string_lossy().into_owned(), entry.val.read_volatile()) }
        });
    Counters(counters.collect())
}

impl Handle {
    /// The execution units. They are valid while the context runs.
    fn units(&self) -> Result<Vec<*mut doca_sta_eu_handle>> {
        let mut most = 0;
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_sta_get_max_num_eus_available(self.as_ptr(), &mut most)) }?;
        let mut units = vec![ptr::null_mut(); most as usize];
        // SAFETY: alive; the array has as many places as the number says.
        unsafe { call!(doca_sta_get_eu_handle(self.as_ptr(), units.as_mut_ptr(), &mut most)) }?;
        units.truncate(most as usize);
        units.retain(|unit| !unit.is_null());
        Ok(units)
    }

    /// Counters of each execution unit. The context runs.
    pub(crate) fn unit_counters(&self) -> Result<Vec<(Unit, Counters)>> {
        let counters = |unit| {
            let (mut entries, mut count) = (ptr::null(), 0);
            // SAFETY: a unit of a context that runs, the out-parameters are locals, and the table is copied now.
            unsafe {
                call!(doca_sta_get_eu_stats(unit, &mut entries, &mut count))?;
                Ok((describe(unit)?, copied(entries, count)))
            }
        };
        self.units()?.into_iter().map(counters).collect()
    }

    /// How many queue pairs each unit serves. The context runs.
    pub(crate) fn unit_connections(&self) -> Result<Vec<(Unit, u16)>> {
        let mut connections = Vec::new();
        for handle in self.units()? {
            // SAFETY: a unit of a context that runs.
            let unit = unsafe { describe(handle) }?;
            // DOCA asks those that take commands only.
            if unit.kind != EuKind::Completion {
                continue;
            }
            let mut count = 0;
            // SAFETY: as above; without an array only the number is told, to a local.
            unsafe { call!(doca_sta_get_eu_connect_qp_stats(handle, ptr::null_mut(), &mut count)) }?;
            connections.push((unit, count));
        }
        Ok(connections)
    }

    /// Sets the counters of all units to 0. The context runs.
    pub(crate) fn reset_counters(&self) -> Result<()> {
        // SAFETY: alive.
        unsafe {
            call!(doca_sta_eu_reset_stats_type(self.as_ptr(), doca_sys::dpa_sta_eu_type::DOCA_STA_EU_MAX))
        }
    }

    /// The state of each unit. The context runs.
    #[cfg(doca_has_sta_eu_state)]
    pub(crate) fn unit_states(&self) -> Result<Vec<(Unit, u32)>> {
        let state = |unit| {
            let mut state = doca_sys::dpa_sta_eu_state(0);
            // SAFETY: a unit of a context that runs, and the out-parameter is a local.
            unsafe {
                call!(doca_sta_get_eu_state(unit, &mut state))?;
                Ok((describe(unit)?, state.0))
            }
        };
        self.units()?.into_iter().map(state).collect()
    }
}

impl Subs {
    /// Counters of a namespace.
    ///
    /// # Safety
    ///
    /// Both are alive.
    pub(crate) unsafe fn counters(self, namespace: Ns) -> Result<Counters> {
        let (mut entries, mut count) = (ptr::null(), 0);
        // SAFETY: as the caller says; the out-parameters are locals, and the table is copied now.
        unsafe {
            call!(doca_sta_get_ns_stats(self.0.as_ptr(), namespace.0.as_ptr(), &mut entries, &mut count))?;
            Ok(copied(entries, count))
        }
    }
}

impl BackEnd {
    /// Counters of a queue.
    ///
    /// # Safety
    ///
    /// Both are alive.
    pub(crate) unsafe fn counters(self, queue: NonNull<doca_sta_be_q_handle>) -> Result<Counters> {
        let (mut entries, mut count) = (ptr::null(), 0);
        // SAFETY: as the caller says; the out-parameters are locals, and the table is copied now.
        unsafe {
            call!(doca_sta_get_be_queue_stats(self.0.as_ptr(), queue.as_ptr(), &mut entries, &mut count))?;
            Ok(copied(entries, count))
        }
    }
}
