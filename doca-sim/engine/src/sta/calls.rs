//! What an IO thread does with its queue pairs.

use super::core::{Core, State, Target, UnitKind};
use super::handle::{Handle, Kind};
use super::io::StaIo;
use super::memory::{Allocator, Buffer};
use super::nvme::COMPLETION;
use super::qp::{Qp, QpState};
use super::wire::Wire;
use crate::code::{Code, Res};
use crate::fabric::context::LinkId;
use crate::fabric::context::LinkState;
use crate::fabric::mailbox::{self, Kind as Letter, Message, Offer};
use crate::fabric::process;
use crate::log;
use crate::rdmacm::OwnedId;
use crate::topology;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering::SeqCst;

/// Private data that RDMA CM carries with an answer.
const MAX_PRIVATE_DATA: usize = 196;
/// RDMA reads that a target has outstanding on a connection. (Proposed.)
const READS: u8 = 16;

impl StaIo {
    /// `doca_sta_io_qp_alloc`
    pub(crate) fn alloc_qp(&self, device: usize) -> Res<Handle> {
        self.require_mine()?;
        let core = self.core();
        let mut state = core.hold();
        let State { qps, target } = &mut *state;
        if !target.network.contains(&device) {
            log::error!("the device was not added to doca_sta");
            return Err(Code::NOT_FOUND);
        }
        if qps.len() >= core.limits.max_qps as usize {
            log::error!("there are {} queue pairs already", core.limits.max_qps);
            return Err(Code::NO_MEMORY);
        }
        let unit = target
            .units_of(UnitKind::Comp)
            .min_by_key(|unit| target.units[*unit].qps)
            .filter(|unit| target.units[*unit].qps < core.caps.max_num_connected_qp_per_eu)
            .ok_or(Code::NO_MEMORY)?;
        let used: BTreeSet<u16> =
            qps.values().filter(|qp| qp.unit == unit).map(|qp| qp.index_in_group).collect();
        let index_in_group = (0..).find(|index| !used.contains(index)).unwrap_or(0);
        target.units[unit].qps += 1;
        let handle = target.handle(Kind::Qp);
        let qp = Qp {
            handle,
            io: self.index(),
            state: QpState::Allocated,
            device,
            unit,
            index_in_group,
            // Numbers of the network have 24 bits, of which the first few mean something else.
            number: 0x100 + (handle.bits() >> 4) as u32 % 0xff_0000,
            user_data: None,
            subsystem: None,
            sq_size: None,
            admin: false,
            is_connected: false,
            consumed: 0,
            offloaded: BTreeSet::new(),
            starved: false,
            jobs: VecDeque::new(),
            pending: VecDeque::new(),
            tokens: BTreeMap::new(),
            disconnect: None,
            wire: None,
        };
        qps.insert(handle, qp);
        Ok(handle)
    }

    /// `doca_sta_io_qp_connect`: a queue pair, or none is left and the client has been rejected.
    pub(crate) fn connect_qp(
        &self,
        device: usize,
        id: OwnedId,
        private_data: &[u8],
        subsystem: Option<Handle>,
    ) -> Res<Handle> {
        let qp = self.alloc_qp(device)?;
        let accepted = self.accept_qp(qp, device, id, private_data, subsystem);
        if accepted.is_err() {
            self.destroy_qp(qp)?;
        }
        accepted.map(|()| qp)
    }

    /// `doca_sta_io_qp_accept`: the client's identifier ends with the queue pair, or now if that fails.
    pub(crate) fn accept_qp(
        &self,
        qp: Handle,
        device: usize,
        id: OwnedId,
        private_data: &[u8],
        subsystem: Option<Handle>,
    ) -> Res {
        self.require_mine()?;
        if private_data.len() > MAX_PRIVATE_DATA {
            log::error!("{} bytes of private data are more than {MAX_PRIVATE_DATA}", private_data.len());
            return Err(Code::TOO_BIG);
        }
        if !id.is_request() {
            log::error!("the rdma_cm_id is not one of a CONNECT_REQUEST that waits for an answer");
            return Err(Code::INVALID_VALUE);
        }
        if id.device() != Some(device) {
            log::error!("the client came to another device than the one that is named");
            return Err(Code::INVALID_VALUE);
        }
        let core = self.core();
        let allocator = {
            let mut state = core.hold();
            let State { qps, target } = &mut *state;
            let known = self.own(qps, qp)?;
            if known.state != QpState::Allocated {
                log::error!("a queue pair that is {:?} cannot accept", known.state);
                return Err(Code::BAD_STATE);
            }
            if known.device != device || !target.network.contains(&device) {
                log::error!("the queue pair is on another device");
                return Err(Code::NOT_FOUND);
            }
            if let Some(subsystem) = subsystem {
                target.require_device(subsystem, device)?;
            }
            target.allocator.ok_or(Code::BAD_STATE)?
        };
        let sends = core.hold().target.ios.get(&self.index()).map(|io| io.view.sizes().sends);
        let answers = allocator.allocate(sends.ok_or(Code::BAD_STATE)? as usize * COMPLETION, false)?;
        match self.wire(core, qp, device, id, private_data, subsystem, answers) {
            Ok(()) => {
                core.kick();
                Ok(())
            }
            Err((answers, code)) => {
                allocator.release(answers);
                Err(code)
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what is known of a client, and what it gets")]
    fn wire(
        &self,
        core: &Core,
        qp: Handle,
        device: usize,
        id: OwnedId,
        private_data: &[u8],
        subsystem: Option<Handle>,
        answers: Buffer,
    ) -> Result<(), (Buffer, Code)> {
        let mut state = core.hold();
        let State { qps, target } = &mut *state;
        let (Ok(known), Some(io)) = (self.own(qps, qp), target.ios.get_mut(&self.index())) else {
            return Err((answers, Code::BAD_STATE));
        };
        let far = id.far().filter(|_| id.client_waits());
        let to = far.and_then(|far| process::attach(far.process).ok()?.context(far.control.context).ok());
        let (Some(far), Some(to), Some(control)) = (far, to, id.control()) else {
            log::error!("the client gave up before the request was accepted");
            return Err((answers, Code::CONNECTION_ABORTED));
        };
        let Some(slot) = io.slots.iter().position(Option::is_none) else {
            return Err((answers, Code::NO_MEMORY));
        };
        io.generations[slot] += 1;
        let link = LinkId { index: slot as u32, generation: io.generations[slot] };
        let (Some(end), Ok(me)) = (io.view.link(link.index), process::local()) else {
            return Err((answers, Code::UNEXPECTED));
        };
        end.set_state(LinkState::Free);
        end.generation.store(link.generation, SeqCst);
        end.by_gid.store(0, SeqCst);
        // Positions go on counting, as for the connections of libdoca_rdma.
        let position = end.tail.load(SeqCst);
        end.head.store(position, SeqCst);
        // Until the client's end of the data has named itself, nothing is taken.
        end.set_state(LinkState::Init);
        io.slots[slot] = Some(qp);
        let reply = Message {
            kind: Letter::Reply,
            process: me.reference(),
            context: io.view.id(),
            from: link,
            control,
            to: far.control.link,
            device: device as u32,
            port: 0,
            offer: Offer {
                // The host may not read from a target.
                responder_resources: 0,
                initiator_depth: READS,
                retry_count: 7,
                rnr_retry_count: 7,
                qp_num: known.number,
                ..Offer::default()
            },
            data: private_data.to_vec(),
        };
        let steered = topology::get().is_ok_and(|t| t.devices.get(device).is_some_and(|d| d.sta.steering));
        known.wire = Some(Wire::new(io.view.clone(), link, id, answers, steered, position));
        known.state = QpState::Accepted;
        if let Some(subsystem) = subsystem {
            known.subsystem = Some(subsystem);
            if let Some(subsystem) = target.subsystems.get_mut(&subsystem) {
                subsystem.qps += 1;
            }
        }
        if let Some(id) = known.wire.as_ref().and_then(|wire| wire.id.as_ref()) {
            id.accepted();
        }
        if mailbox::post(&to, &reply).is_err() {
            log::error!("the client's mailbox is full: it will give up");
        }
        Ok(())
    }

    /// `doca_sta_io_qp_connect_established`
    pub(crate) fn qp_established(&self, qp: Handle) -> Res {
        self.require_mine()?;
        let mut state = self.core().hold();
        let qp = self.own(&mut state.qps, qp)?;
        if qp.state != QpState::Accepted {
            log::error!("a queue pair that is {:?} does not become connected", qp.state);
            return Err(Code::BAD_STATE);
        }
        qp.state = QpState::Connected;
        drop(state);
        self.core().kick();
        Ok(())
    }

    /// `doca_sta_io_qp_connect_set_sq_size`
    pub(crate) fn set_sq_size(&self, qp: Handle, size: u16) -> Res {
        self.require_mine()?;
        let limit = self.core().caps.max_io_queue_size;
        let mut state = self.core().hold();
        let qp = self.own(&mut state.qps, qp)?;
        if size == 0 || u32::from(size) >= limit {
            log::error!("a queue of {size} + 1 commands: there are 2 to {limit}");
            return Err(Code::INVALID_VALUE);
        }
        if qp.is_connected || !matches!(qp.state, QpState::Accepted | QpState::Connected) {
            log::error!("the size of a queue is set while its Connect is handled");
            return Err(Code::BAD_STATE);
        }
        qp.sq_size = Some(size);
        Ok(())
    }

    /// `doca_sta_io_qp_add_subsystem`
    pub(crate) fn bind_subsystem(&self, subsystem: Handle, qp: Handle) -> Res {
        self.require_mine()?;
        let mut state = self.core().hold();
        let State { qps, target } = &mut *state;
        let qp = self.own(qps, qp)?;
        target.subsystem(subsystem)?;
        match qp.subsystem {
            Some(known) if known == subsystem => return Ok(()),
            Some(_) => return Err(Code::ALREADY_EXIST),
            None => {}
        }
        if !matches!(qp.state, QpState::Accepted | QpState::Connected) {
            log::error!("a queue pair that is {:?} is not bound to a subsystem", qp.state);
            return Err(Code::BAD_STATE);
        }
        target.require_device(subsystem, qp.device)?;
        target.subsystem(subsystem)?.qps += 1;
        qp.subsystem = Some(subsystem);
        Ok(())
    }

    /// `doca_sta_io_qp_destroy`
    pub(crate) fn destroy_qp(&self, qp: Handle) -> Res {
        self.require_mine()?;
        let core = self.core();
        let (gone, allocator) = {
            let mut state = core.hold();
            let State { qps, target } = &mut *state;
            let known = self.own(qps, qp)?;
            if !matches!(known.state, QpState::Allocated | QpState::Disconnected) {
                log::error!(
                    "a queue pair that is {:?} cannot be destroyed; disconnect it first",
                    known.state
                );
                return Err(Code::BAD_STATE);
            }
            let Some(mut gone) = qps.remove(&qp) else { return Err(Code::INVALID_VALUE) };
            target.units[gone.unit].qps -= 1;
            if let Some(subsystem) = gone.subsystem.and_then(|known| target.subsystems.get_mut(&known)) {
                subsystem.qps -= 1;
            }
            if let Some(io) = target.ios.get_mut(&gone.io) {
                for token in gone.tokens.values_mut() {
                    if let Some(buffer) = token.take_payload() {
                        io.put_payload(buffer);
                    }
                }
                if let Some(wire) = &gone.wire {
                    io.slots[wire.link.index as usize] = None;
                    if let Some(link) = io.view.named_link(wire.link) {
                        link.set_state(LinkState::Free);
                    }
                }
            }
            (gone, target.allocator)
        };
        // Outside the lock: this is the program's allocator, and the identifier has a lock of its own.
        if let (Some(wire), Some(allocator)) = (gone.wire, allocator) {
            release(wire, allocator);
        }
        Ok(())
    }

    /// `doca_sta_io_qp_set_user_data`
    pub(crate) fn set_qp_user_data(&self, qp: Handle, data: u64) -> Res {
        self.require_mine()?;
        self.own(&mut self.core().hold().qps, qp)?.user_data = Some(data);
        Ok(())
    }
}

fn release(wire: Wire, allocator: Allocator) {
    let Wire { answers, id, .. } = wire;
    allocator.release(answers);
    drop(id);
}

impl Target {
    /// NOT_FOUND if the subsystem is not on the device.
    fn require_device(&mut self, subsystem: Handle, device: usize) -> Res {
        if !self.subsystem(subsystem)?.devices.contains(&device) {
            log::error!("the queue pair's device was not added to the subsystem");
            return Err(Code::NOT_FOUND);
        }
        Ok(())
    }
}

/// What a queue pair says about itself, on any thread.
pub(crate) fn look<T>(qp: Handle, at: impl FnOnce(&Qp, &Target) -> T) -> Res<T> {
    let core = qp.core(Kind::Qp)?;
    let state = core.hold();
    let known = state.qps.get(&qp).ok_or(Code::INVALID_VALUE)?;
    Ok(at(known, &state.target))
}
