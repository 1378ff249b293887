//! What an instance tells about itself while it runs: units, counters, queue pairs.

use super::core::{Core, Target, Unit, UnitKind};
use super::handle::Handle;
use super::qp::Qp;
use super::stats::Entry;
use crate::code::{Code, Res};
use crate::ctx::CtxState;
use std::ffi::c_char;

/// A table of counters.
type Table = (*const Entry, u16);

/// `DOCA_STA_EU_MAX`: all types.
const ALL: u32 = 4;
/// `DOCA_STA_EU_STATE_*`
const STATES: [(CtxState, u32); 4] =
    [(CtxState::Idle, 0), (CtxState::Stopping, 1), (CtxState::Running, 2), (CtxState::Starting, 0)];

impl Unit {
    pub(crate) fn name(&self) -> *const c_char {
        self.name.as_ptr()
    }

    pub(crate) fn kind(&self) -> u32 {
        self.kind as u32
    }

    pub(crate) fn id(&self) -> u16 {
        self.id
    }
}

impl Target {
    fn unit(&self, handle: Handle) -> Res<&Unit> {
        self.require_running()?;
        self.units.iter().find(|unit| unit.handle == handle).ok_or(Code::INVALID_VALUE)
    }
}

impl Core {
    pub(crate) fn unit<T>(&self, handle: Handle, field: impl FnOnce(&Unit) -> T) -> Res<T> {
        self.hold().target.unit(handle).map(field)
    }

    pub(crate) fn units(&self) -> Res<Vec<Handle>> {
        let state = self.hold();
        state.target.require_running()?;
        Ok(state.target.units.iter().map(|unit| unit.handle).collect())
    }

    pub(crate) fn unit_port(&self, handle: Handle) -> Res<u16> {
        let state = self.hold();
        let id = state.target.unit(handle)?.id;
        Ok(id % state.target.network.len().max(1) as u16)
    }

    pub(crate) fn unit_state(&self, handle: Handle) -> Res<u32> {
        let state = self.hold();
        let target = &state.target;
        target.units.iter().find(|unit| unit.handle == handle).ok_or(Code::INVALID_VALUE)?;
        if target.broken {
            // DOCA_STA_EU_STATE_STOPPED
            return Ok(4);
        }
        Ok(STATES.iter().find(|(phase, _)| *phase == target.phase).map_or(0, |(_, state)| *state))
    }

    pub(crate) fn unit_table(&self, handle: Handle) -> Res<Table> {
        self.unit(handle, |unit| unit.counters.table())
    }

    pub(crate) fn queue_table(&self, end: Handle, queue: Handle) -> Res<Table> {
        let state = self.hold();
        let known = state.target.queues.get(&queue).filter(|known| known.end == end);
        let known = known.ok_or(Code::INVALID_VALUE)?;
        state.target.require_running()?;
        Ok(known.counters.table())
    }

    pub(crate) fn queue_mapping(&self, queue: Handle) -> Res<Table> {
        let state = self.hold();
        let known = state.target.queues.get(&queue).ok_or(Code::INVALID_VALUE)?;
        state.target.require_running()?;
        Ok(known.mapping.table())
    }

    pub(crate) fn namespace_table(&self, subsystem: Handle, space: Handle) -> Res<Table> {
        let mut state = self.hold();
        state.target.namespace(subsystem, space)?;
        state.target.require_running()?;
        Ok(state.target.namespace(subsystem, space)?.counters.table())
    }

    /// INVALID_VALUE for units of another type than those that handle completions.
    pub(crate) fn unit_qps(&self, handle: Handle) -> Res<Vec<Handle>> {
        let state = self.hold();
        let unit = state.target.unit(handle)?;
        if unit.kind != UnitKind::Comp {
            return Err(Code::INVALID_VALUE);
        }
        let position = state.target.units.iter().position(|unit| unit.handle == handle);
        Ok(state.qps.values().filter(|qp| Some(qp.unit) == position).map(|qp| qp.handle).collect())
    }

    pub(crate) fn reset_unit(&self, handle: Handle) -> Res {
        self.unit(handle, |unit| unit.counters.reset())
    }

    pub(crate) fn reset_units(&self, kind: u32) -> Res {
        if kind == 0 || kind > ALL {
            return Err(Code::INVALID_VALUE);
        }
        let state = self.hold();
        state.target.require_running()?;
        for unit in state.target.units.iter().filter(|unit| kind == ALL || unit.kind as u32 == kind) {
            unit.counters.reset();
        }
        Ok(())
    }
}

impl Qp {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn port(&self, target: &Target) -> u16 {
        target.network.iter().position(|device| *device == self.device).unwrap_or(0) as u16
    }

    pub(crate) fn group(&self, target: &Target) -> u16 {
        target.units.get(self.unit).map_or(0, |unit| unit.id)
    }

    pub(crate) fn index(&self) -> u16 {
        self.index_in_group
    }

    pub(crate) fn user_data(&self) -> u64 {
        self.user_data.unwrap_or(0)
    }
}
