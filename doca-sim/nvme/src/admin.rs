//! Admin commands.

use crate::controller::{Controller, Cq, MAX_EVENTS, Sq, version};
use nvme_wire::admin::{Abort, CreateCq, CreateSq, DeleteQueue, Features, GetLogPage, Identify};
use nvme_wire::command::{ALL_NAMESPACES, AdminOpcode, IoOpcode};
use nvme_wire::feature::{FeatureId, NumberOfQueues};
use nvme_wire::identify::{
    Cns, ControllerType, Descriptor, DescriptorType, IdentifyController, descriptor_list, namespace_list,
};
use nvme_wire::log::{CommandEffects, EffectsLog, FirmwareSlotLog, LogId, SmartLog, part};
use nvme_wire::{Padded, Sqe, Status, Terminated};

/// What an admin command gave: DW0 of its completion, or `None` when it completes later.
type Outcome = Result<Option<u64>, Status>;

const INVALID_FIELD: Status = Status::INVALID_FIELD.with_dnr();

/// Features that are kept as they are set, with their defaults.
const FEATURES: [(FeatureId, u32); 7] = [
    (FeatureId::ARBITRATION, 0),
    (FeatureId::POWER_MANAGEMENT, 0),
    (FeatureId::TEMPERATURE_THRESHOLD, 0),
    (FeatureId::ERROR_RECOVERY, 0),
    (FeatureId::WRITE_CACHE, 1),
    (FeatureId::WRITE_ATOMICITY, 0),
    (FeatureId::ASYNC_EVENTS, 0),
];

/// I/O commands that the controller runs; true where they change blocks.
const COMMANDS: [(IoOpcode, bool); 6] = [
    (IoOpcode::FLUSH, false),
    (IoOpcode::WRITE, true),
    (IoOpcode::READ, false),
    (IoOpcode::COMPARE, false),
    (IoOpcode::WRITE_ZEROES, true),
    (IoOpcode::DATASET_MANAGEMENT, true),
];

impl Controller {
    pub(crate) fn run_admin(&mut self, command: &Sqe) -> Outcome {
        match AdminOpcode(command.opcode) {
            AdminOpcode::IDENTIFY => self.identify(command),
            AdminOpcode::GET_LOG_PAGE => self.get_log_page(command),
            AdminOpcode::SET_FEATURES => self.set_features(&command.get()),
            AdminOpcode::GET_FEATURES => self.get_features(&command.get()),
            AdminOpcode::CREATE_CQ => self.create_cq(command),
            AdminOpcode::CREATE_SQ => self.create_sq(command),
            AdminOpcode::DELETE_CQ => self.delete_cq(command.get::<DeleteQueue>().qid),
            AdminOpcode::DELETE_SQ => self.delete_sq(command.get::<DeleteQueue>().qid),
            AdminOpcode::ABORT => self.abort(&command.get()),
            AdminOpcode::ASYNC_EVENT_REQUEST if self.requests.len() == MAX_EVENTS => {
                Err(Status::ASYNC_EVENT_LIMIT_EXCEEDED.with_dnr())
            }
            AdminOpcode::ASYNC_EVENT_REQUEST => {
                self.requests.push_back(command.cid);
                Ok(None)
            }
            AdminOpcode::KEEP_ALIVE => Ok(Some(0)),
            _ => Err(Status::INVALID_OPCODE.with_dnr()),
        }
    }

    fn reply(&mut self, command: &Sqe, page: &[u8]) -> Outcome {
        self.buffer.clear();
        self.buffer.extend_from_slice(page);
        self.send(command, page.len()).map(|()| Some(0))
    }

    fn identify(&mut self, command: &Sqe) -> Outcome {
        let page = match command.get::<Identify>().cns {
            Cns::CONTROLLER => self.identity().to_bytes(),
            Cns::NAMESPACE => {
                let index = self.namespace(command.nsid)?;
                self.config.namespaces[index].identify().to_bytes()
            }
            Cns::ACTIVE_NAMESPACES if command.nsid >= ALL_NAMESPACES - 1 => {
                return Err(Status::INVALID_NAMESPACE.with_dnr());
            }
            Cns::ACTIVE_NAMESPACES => {
                let count = self.config.namespaces.len() as u32;
                namespace_list((1..=count).filter(|&nsid| nsid > command.nsid))
            }
            Cns::DESCRIPTORS => {
                let index = self.namespace(command.nsid)?;
                let nguid = self.config.namespaces[index].identify().nguid;
                let id = (nguid != [0; 16]).then_some(Descriptor { kind: DescriptorType::NGUID, id: &nguid });
                descriptor_list(id).ok_or(Status::INTERNAL_ERROR)?
            }
            _ => return Err(INVALID_FIELD),
        };
        self.reply(command, &page)
    }

    fn identity(&self) -> IdentifyController {
        let size = |namespace: &crate::Namespace| {
            u128::from(namespace.blocks()) * u128::from(namespace.block_size())
        };
        let mut serial = [b' '; 20];
        serial[..self.config.serial.len()].copy_from_slice(self.config.serial.as_bytes());
        let mut model = [b' '; 40];
        model[..self.config.model.len()].copy_from_slice(self.config.model.as_bytes());
        let mut name = [0; 256];
        let nqn = format!("nqn.2014-08.org.nvmexpress:simulated:{}", self.config.serial);
        name[..nqn.len()].copy_from_slice(nqn.as_bytes());
        IdentifyController {
            sn: Padded(serial),
            mn: Padded(model),
            fr: Padded(*b"1.0     "),
            mdts: self.config.mdts,
            ver: version(),
            cntrltype: ControllerType::IO,
            acl: 3,
            aerl: MAX_EVENTS as u8 - 1,
            lpa: 0b110,
            tnvmcap: self.config.namespaces.iter().map(size).sum(),
            sqes: 0x66,
            cqes: 0x44,
            nn: self.config.namespaces.len() as u32,
            // Compare, Dataset Management, Write Zeroes.
            oncs: 0b1101,
            vwc: 0b111,
            subnqn: Terminated(name),
            ..IdentifyController::default()
        }
    }

    fn get_log_page(&mut self, command: &Sqe) -> Outcome {
        let arguments = command.get::<GetLogPage>();
        let page = match arguments.lid {
            LogId::ERROR => vec![0; 64],
            LogId::SMART => {
                let commands = self.counters.commands();
                let smart = SmartLog {
                    temperature: 300,
                    available_spare: 100,
                    host_reads: commands.into(),
                    ..Default::default()
                };
                smart.to_bytes().to_vec()
            }
            LogId::FIRMWARE_SLOT => FirmwareSlotLog { afi: 1, frs1: *b"1.0     " }.to_bytes().to_vec(),
            LogId::CHANGED_NAMESPACES => vec![0; 4096],
            LogId::EFFECTS => {
                let mut log = EffectsLog::default();
                for (opcode, lbcc) in COMMANDS {
                    log.io[usize::from(opcode.0)] =
                        CommandEffects { csupp: true, lbcc, ..Default::default() };
                }
                log.to_bytes().to_vec()
            }
            _ => return Err(Status::INVALID_LOG_PAGE.with_dnr()),
        };
        if arguments.len() > 1 << 20 {
            return Err(INVALID_FIELD);
        }
        let page = part(&page, arguments.lpo, arguments.len() as usize).ok_or(INVALID_FIELD)?;
        self.reply(command, &page)
    }

    fn set_features(&mut self, arguments: &Features) -> Outcome {
        if arguments.save {
            return Err(Status::FEATURE_NOT_SAVEABLE.with_dnr());
        }
        if arguments.fid == FeatureId::NUMBER_OF_QUEUES {
            let wanted = NumberOfQueues::from(arguments.value);
            if wanted.submission == u16::MAX || wanted.completion == u16::MAX {
                return Err(INVALID_FIELD);
            }
            if self.sqs.len() > 1 || self.cqs.len() > 1 {
                return Err(Status::COMMAND_SEQUENCE_ERROR.with_dnr());
            }
            return Ok(Some(u32::from(self.queues_granted()).into()));
        }
        if !FEATURES.iter().any(|(known, _)| *known == arguments.fid) {
            return Err(INVALID_FIELD);
        }
        self.features.insert(arguments.fid.0, arguments.value);
        Ok(Some(0))
    }

    fn get_features(&mut self, arguments: &Features) -> Outcome {
        if arguments.sel > 1 {
            return Err(INVALID_FIELD);
        }
        if arguments.fid == FeatureId::NUMBER_OF_QUEUES {
            return Ok(Some(u32::from(self.queues_granted()).into()));
        }
        let (_, default) = FEATURES.iter().find(|(known, _)| *known == arguments.fid).ok_or(INVALID_FIELD)?;
        let current = self.features.get(&arguments.fid.0).filter(|_| arguments.sel == 0);
        Ok(Some(u64::from(*current.unwrap_or(default))))
    }

    fn queues_granted(&self) -> NumberOfQueues {
        let granted = self.config.max_queues - 1;
        NumberOfQueues { submission: granted, completion: granted }
    }

    /// What both kinds of queues demand; the number of entries.
    fn check_queue(&self, command: &Sqe, qid: u16, qsize: u16, pc: bool, taken: bool) -> Result<u32, Status> {
        let entries = u32::from(qsize) + 1;
        if qid == 0 || qid > self.config.max_queues || taken {
            return Err(Status::INVALID_QUEUE_ID.with_dnr());
        }
        if entries < 2 || entries > self.config.max_queue_entries {
            return Err(Status::INVALID_QUEUE_SIZE.with_dnr());
        }
        if !pc {
            return Err(INVALID_FIELD);
        }
        if !command.prps()[0].is_multiple_of(4096) {
            return Err(Status::PRP_OFFSET_INVALID.with_dnr());
        }
        Ok(entries)
    }

    fn create_cq(&mut self, command: &Sqe) -> Outcome {
        let CreateCq { qid, qsize, pc, ien, iv } = command.get();
        let entries = self.check_queue(command, qid, qsize, pc, self.cqs.contains_key(&qid))?;
        if ien && iv != 0 {
            return Err(Status::INVALID_INTERRUPT_VECTOR.with_dnr());
        }
        self.add_cq(qid, Cq::new(command.prps()[0], entries));
        Ok(Some(0))
    }

    fn create_sq(&mut self, command: &Sqe) -> Outcome {
        let CreateSq { qid, qsize, pc, cqid, .. } = command.get();
        let entries = self.check_queue(command, qid, qsize, pc, self.sqs.contains_key(&qid))?;
        if cqid == 0 || !self.cqs.contains_key(&cqid) {
            return Err(Status::INVALID_COMPLETION_QUEUE.with_dnr());
        }
        self.add_sq(qid, Sq::new(command.prps()[0], entries, cqid));
        Ok(Some(0))
    }

    fn delete_sq(&mut self, qid: u16) -> Outcome {
        if qid == 0 || self.sqs.remove(&qid).is_none() {
            return Err(Status::INVALID_QUEUE_ID.with_dnr());
        }
        self.drop_waiting(qid);
        Ok(Some(0))
    }

    fn delete_cq(&mut self, qid: u16) -> Outcome {
        if self.sqs.values().any(|queue| queue.cqid == qid) {
            return Err(Status::INVALID_QUEUE_DELETION.with_dnr());
        }
        match self.cqs.remove(&qid) {
            Some(_) => Ok(Some(0)),
            None => Err(Status::INVALID_QUEUE_ID.with_dnr()),
        }
    }

    /// I/O commands have completed by the time that an Abort is seen; requests for events have not.
    fn abort(&mut self, arguments: &Abort) -> Outcome {
        let held = self.requests.iter().position(|&cid| arguments.sqid == 0 && cid == arguments.cid);
        if let Some(index) = held {
            self.requests.remove(index);
            self.complete_admin(arguments.cid, 0, Status::ABORT_REQUESTED);
        }
        Ok(Some(u64::from(held.is_none())))
    }
}
