//! Admin commands.

use crate::controller::{AERL, Owner, VERSION};
use crate::engine::{Engine, Outcome, done, refuse};
use crate::model::{NamespaceInfo, SubsystemInfo};
use nvme_wire::admin::{Abort, Features, GetLogPage, Identify};
use nvme_wire::discovery::{
    AddressFamily, DiscoveryEntry, RdmaCms, RdmaProvider, RdmaQpType, SubsystemType, TransportType, page,
};
use nvme_wire::fabrics::DYNAMIC_CONTROLLER;
use nvme_wire::feature::{AsyncEvents, FeatureId, NumberOfQueues};
use nvme_wire::identify::{
    Cns, ControllerType, Descriptor, DescriptorType, IdentifyController, IdentifyNamespace, LbaFormat,
    descriptor_list, namespace_list,
};
use nvme_wire::log::{CommandEffects, EffectsLog, FirmwareSlotLog, LogId, SmartLog, part};
use nvme_wire::{AdminOpcode, Cqe, IoOpcode, Nqn, Padded, Sqe, Status, Terminated};
use std::net::SocketAddr;
use std::time::Duration;

/// Firmware revision that controllers report: this crate's version.
const FIRMWARE: &str = env!("CARGO_PKG_VERSION");

/// Bytes of a page that data are counted in.
const PAGE: u32 = 4096;

/// Admin commands that controllers of subsystems have.
const ADMIN: &[AdminOpcode] = &[
    AdminOpcode::GET_LOG_PAGE,
    AdminOpcode::IDENTIFY,
    AdminOpcode::ABORT,
    AdminOpcode::SET_FEATURES,
    AdminOpcode::GET_FEATURES,
    AdminOpcode::ASYNC_EVENT_REQUEST,
    AdminOpcode::KEEP_ALIVE,
];

/// A status that is not an outcome yet.
type Answer<T> = std::result::Result<T, Status>;

impl Engine {
    pub(crate) fn admin(&mut self, id: u16, sqe: &Sqe, _data: Option<&[u8]>, now: Duration) -> Outcome {
        let Some(controller) = self.controllers.get_mut(&id) else {
            return refuse(sqe, Status::COMMAND_SEQUENCE_ERROR);
        };
        if !controller.is_ready() {
            return refuse(sqe, Status::COMMAND_SEQUENCE_ERROR);
        }
        match AdminOpcode(sqe.opcode) {
            AdminOpcode::IDENTIFY => {
                let bytes = self.identify(id, sqe.get(), sqe.nsid);
                self.send(sqe, bytes)
            }
            AdminOpcode::GET_LOG_PAGE => {
                let bytes = self.log_page(id, &sqe.get());
                self.send(sqe, bytes)
            }
            AdminOpcode::SET_FEATURES => answer(sqe, self.set_feature(id, &sqe.get())),
            AdminOpcode::GET_FEATURES => answer(sqe, self.feature(id, &sqe.get())),
            AdminOpcode::KEEP_ALIVE => {
                controller.keep_alive(now);
                done(sqe, 0)
            }
            AdminOpcode::ASYNC_EVENT_REQUEST => {
                if controller.wait_for_event(sqe.cid, &mut self.actions) {
                    Outcome::Keep
                } else {
                    refuse(sqe, Status::ASYNC_EVENT_LIMIT_EXCEEDED)
                }
            }
            AdminOpcode::ABORT => {
                let abort = sqe.get::<Abort>();
                let aborted = abort.sqid == 0 && controller.abort(abort.cid, &mut self.actions);
                done(sqe, u64::from(!aborted))
            }
            _ => refuse(sqe, Status::INVALID_OPCODE),
        }
    }

    /// Sends as much as the host wants, which must not be more than there is.
    fn send(&self, sqe: &Sqe, bytes: Answer<Vec<u8>>) -> Outcome {
        let wanted = sqe.sgl().len().unwrap_or(0) as usize;
        match bytes {
            Err(status) => refuse(sqe, status),
            Ok(bytes) if wanted < bytes.len() => refuse(sqe, Status::SGL_LENGTH_INVALID),
            Ok(bytes) => Outcome::Data(Cqe::new(sqe.cid, Status::SUCCESS), bytes),
        }
    }

    fn identify(&self, id: u16, identify: Identify, nsid: u32) -> Answer<Vec<u8>> {
        let controller = &self.controllers[&id];
        let Owner::Subsystem(index) = controller.owner else {
            return match identify.cns {
                Cns::CONTROLLER => Ok(self.discovery_controller(id)?.to_bytes().to_vec()),
                _ => Err(Status::INVALID_FIELD),
            };
        };
        let subsystem = &self.model.subsystems[index];
        let namespaces = &subsystem.namespaces;
        match identify.cns {
            Cns::CONTROLLER => Ok(self.subsystem_controller(id, subsystem)?.to_bytes().to_vec()),
            Cns::NAMESPACE => match namespaces.get(&nsid) {
                Some(info) => Ok(namespace(info).to_bytes().to_vec()),
                None if nsid == 0 || nsid > max_nsid(subsystem) => Err(Status::INVALID_NAMESPACE),
                None => Ok(vec![0; 4096]),
            },
            Cns::ACTIVE_NAMESPACES => {
                if nsid >= 0xFFFF_FFFE {
                    return Err(Status::INVALID_NAMESPACE);
                }
                Ok(namespace_list(namespaces.keys().copied().filter(|own| *own > nsid)).to_vec())
            }
            Cns::DESCRIPTORS => {
                let info = namespaces.get(&nsid).ok_or(Status::INVALID_NAMESPACE)?;
                let list = descriptor_list([Descriptor { kind: DescriptorType::NGUID, id: &info.nguid }]);
                list.map(|list| list.to_vec()).ok_or(Status::INTERNAL_ERROR)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// What all controllers have.
    fn base(&self, id: u16, serial: &str, model: &str, nqn: &str) -> Answer<IdentifyController> {
        let capacity = &self.model.capacity;
        let wrong = |_| Status::INTERNAL_ERROR;
        Ok(IdentifyController {
            sn: Padded::new(serial).map_err(wrong)?,
            mn: Padded::new(model).map_err(wrong)?,
            fr: Padded::new(FIRMWARE.get(..8).unwrap_or(FIRMWARE)).map_err(wrong)?,
            mdts: (capacity.io_size / PAGE).max(1).ilog2() as u8,
            cntlid: id,
            ver: VERSION,
            ctratt: 1,
            acl: 3,
            aerl: AERL,
            lpa: 1 << 1 | 1 << 2,
            // Units of 100 ms.
            kas: 10,
            maxcmd: capacity.queue_entries,
            sgl_support: 1,
            sgl_keyed: true,
            sgl_offset: true,
            subnqn: Terminated::new(nqn).map_err(wrong)?,
            ioccsz: capacity.capsule / 16,
            iorcsz: 1,
            msdbd: 1,
            ..IdentifyController::default()
        })
    }

    fn discovery_controller(&self, id: u16) -> Answer<IdentifyController> {
        let base = self.base(id, "discovery", "DOCA STA target", Nqn::DISCOVERY)?;
        Ok(IdentifyController { cntrltype: ControllerType::DISCOVERY, ..base })
    }

    fn subsystem_controller(&self, id: u16, subsystem: &SubsystemInfo) -> Answer<IdentifyController> {
        let base = self.base(id, &subsystem.serial, &subsystem.model, subsystem.nqn.as_str())?;
        Ok(IdentifyController {
            cntrltype: ControllerType::IO,
            // Several ports and controllers.
            cmic: 0b11,
            oaes: 1 << 8,
            sqes: 0x66,
            cqes: 0x44,
            nn: max_nsid(subsystem),
            // Compare, Dataset Management, Write Zeroes.
            oncs: 1 | 1 << 2 | 1 << 3,
            vwc: 1,
            ..base
        })
    }

    fn log_page(&mut self, id: u16, log: &GetLogPage) -> Answer<Vec<u8>> {
        /// Longest piece of a log that is sent at a time.
        const MOST: u64 = 64 << 10;
        if log.len() > MOST || !log.lpo.is_multiple_of(4) {
            return Err(Status::INVALID_FIELD);
        }
        let Some(controller) = self.controllers.get_mut(&id) else { return Err(Status::INTERNAL_ERROR) };
        let page = match (log.lid, controller.owner) {
            (LogId::DISCOVERY, Owner::Discovery) => self.discovery_log(id),
            (LogId::ERROR, Owner::Subsystem(_)) => vec![0; 64],
            (LogId::SMART, Owner::Subsystem(_)) => {
                let smart = SmartLog {
                    temperature: 300,
                    available_spare: 100,
                    spare_threshold: 10,
                    ..SmartLog::default()
                };
                smart.to_bytes().to_vec()
            }
            (LogId::FIRMWARE_SLOT, Owner::Subsystem(_)) => {
                FirmwareSlotLog { afi: 1, ..FirmwareSlotLog::default() }.to_bytes().to_vec()
            }
            (LogId::CHANGED_NAMESPACES, Owner::Subsystem(_)) => {
                namespace_list(controller.read_changed(log.rae)).to_vec()
            }
            (LogId::EFFECTS, Owner::Subsystem(_)) => effects(),
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        part(&page, log.lpo, log.len() as usize).ok_or(Status::INVALID_FIELD)
    }

    /// Subsystems that the host may use, at every address.
    fn discovery_log(&self, id: u16) -> Vec<u8> {
        let host = &self.controllers[&id].hostnqn;
        let allowed = |own: &&SubsystemInfo| {
            own.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|name| name == host))
        };
        let entries: Vec<DiscoveryEntry> = self
            .model
            .subsystems
            .iter()
            .filter(allowed)
            .flat_map(|subsystem| {
                self.model.addresses.iter().zip(1..).map(move |(address, port)| (subsystem, address, port))
            })
            .filter_map(|(subsystem, address, port)| entry(subsystem, address, port))
            .collect();
        page(self.generation, &entries)
    }

    fn set_feature(&mut self, id: u16, feature: &Features) -> Answer<u64> {
        let most = self.model.capacity.io_queues;
        let Some(controller) = self.controllers.get_mut(&id) else { return Err(Status::INTERNAL_ERROR) };
        if feature.save {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        match feature.fid {
            FeatureId::NUMBER_OF_QUEUES if controller.owner != Owner::Discovery => {
                let wanted = NumberOfQueues::from(feature.value);
                if wanted.submission == u16::MAX || wanted.completion == u16::MAX {
                    return Err(Status::INVALID_FIELD);
                }
                if !controller.io.is_empty() {
                    return Err(Status::COMMAND_SEQUENCE_ERROR);
                }
                controller.granted = (wanted.submission.min(wanted.completion) + 1).min(most);
                Ok(granted(controller.granted))
            }
            FeatureId::ASYNC_EVENTS => {
                controller.events = AsyncEvents::from(feature.value);
                Ok(0)
            }
            FeatureId::KEEP_ALIVE => {
                controller.kato = Duration::from_millis(feature.value.into());
                Ok(0)
            }
            FeatureId::WRITE_CACHE => Err(Status::FEATURE_NOT_CHANGEABLE),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn feature(&self, id: u16, feature: &Features) -> Answer<u64> {
        let controller = &self.controllers[&id];
        if feature.sel != 0 {
            return Err(Status::INVALID_FIELD);
        }
        match feature.fid {
            FeatureId::NUMBER_OF_QUEUES if controller.owner != Owner::Discovery => {
                Ok(granted(controller.granted.max(1)))
            }
            FeatureId::ASYNC_EVENTS => Ok(u32::from(controller.events.clone()).into()),
            FeatureId::KEEP_ALIVE => Ok(controller.kato.as_millis() as u64),
            FeatureId::WRITE_CACHE => Ok(1),
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

/// The result of Number of Queues.
fn granted(queues: u16) -> u64 {
    u64::from(u32::from(NumberOfQueues { submission: queues - 1, completion: queues - 1 }))
}

fn answer(sqe: &Sqe, result: Answer<u64>) -> Outcome {
    match result {
        Ok(result) => done(sqe, result),
        Err(status) => refuse(sqe, status),
    }
}

fn max_nsid(subsystem: &SubsystemInfo) -> u32 {
    subsystem.namespaces.keys().next_back().copied().unwrap_or(0).max(1)
}

fn namespace(info: &NamespaceInfo) -> IdentifyNamespace {
    let mut lbaf = <[LbaFormat; 16]>::default();
    lbaf[0] = LbaFormat { lbads: info.block_size.ilog2() as u8, ..LbaFormat::default() };
    IdentifyNamespace {
        nsze: info.blocks,
        ncap: info.blocks,
        nuse: info.blocks,
        shared: true,
        nguid: info.nguid,
        lbaf,
        ..IdentifyNamespace::default()
    }
}

fn effects() -> Vec<u8> {
    let mut log = EffectsLog::default();
    let supported = CommandEffects { csupp: true, ..CommandEffects::default() };
    for opcode in ADMIN {
        log.admin[usize::from(opcode.0)] = supported.clone();
    }
    log.io[usize::from(IoOpcode::READ.0)] = supported.clone();
    for opcode in [IoOpcode::WRITE].iter().chain(crate::disk::EXECUTED) {
        let lbcc = !matches!(*opcode, IoOpcode::FLUSH | IoOpcode::COMPARE);
        log.io[usize::from(opcode.0)] = CommandEffects { lbcc, ..supported.clone() };
    }
    log.to_bytes().to_vec()
}

fn entry(subsystem: &SubsystemInfo, address: &SocketAddr, port: u16) -> Option<DiscoveryEntry> {
    Some(DiscoveryEntry {
        trtype: TransportType::RDMA,
        adrfam: if address.is_ipv4() { AddressFamily::IPV4 } else { AddressFamily::IPV6 },
        subtype: SubsystemType::NVM,
        portid: port,
        cntlid: DYNAMIC_CONTROLLER,
        asqsz: 32,
        trsvcid: Padded::new(&address.port().to_string()).ok()?,
        subnqn: subsystem.nqn.field(),
        traddr: Padded::new(&address.ip().to_string()).ok()?,
        rdma_qptype: RdmaQpType::CONNECTED,
        rdma_prtype: RdmaProvider::ROCE_V2,
        rdma_cms: RdmaCms::RDMA_CM,
        ..DiscoveryEntry::default()
    })
}
