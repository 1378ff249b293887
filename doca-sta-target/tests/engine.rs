//! The engine without any I/O: commands in, answers out.

use doca_sta_target::{Action, Capacity, Engine, Model, NamespaceInfo, Outcome, QueueKey, SubsystemInfo};
use nvme_wire::admin::{Abort, AsyncEvent, Features, GetLogPage, Identify};
use nvme_wire::discovery::DiscoveryEntry;
use nvme_wire::fabrics::{
    Connect, ConnectData, ConnectResult, Fabrics, FabricsType, InvalidParameter, PropertyGet, PropertySet,
};
use nvme_wire::feature::{AsyncEvents, FeatureId};
use nvme_wire::identify::{Cns, IdentifyController, namespaces};
use nvme_wire::log::LogId;
use nvme_wire::property::offset;
use nvme_wire::{AdminOpcode, Cqe, IoOpcode, Layout, Nqn, Sgl, Sqe, Status, Terminated};
use std::collections::BTreeMap;
use std::time::Duration;

const NQN: &str = "nqn.2014-08.org.example:disk";
const CLOSED: &str = "nqn.2014-08.org.example:closed";
const HOST: &str = "nqn.2014-08.org.example:host";
const ROOM: usize = 131_072;
const ENTRIES: u16 = 128;

fn engine() -> Engine {
    let info = NamespaceInfo { blocks: 1000, block_size: 512, nguid: [7; 16] };
    let subsystem = |nqn: &str, hosts: Option<&str>| SubsystemInfo {
        nqn: Nqn::new(nqn).unwrap(),
        serial: "S1".to_owned(),
        model: "M".to_owned(),
        hosts: hosts.map(|host| vec![host.to_owned()]),
        namespaces: BTreeMap::from([(1, info.clone()), (3, info.clone())]),
    };
    Engine::new(Model {
        subsystems: vec![subsystem(NQN, None), subsystem(CLOSED, Some("nqn.other"))],
        addresses: vec!["192.168.1.1:4420".parse().unwrap()],
        capacity: Capacity {
            queue_entries: ENTRIES,
            io_queues: 4,
            io_size: 131_072,
            capsule: 4160,
            controllers: 3,
        },
    })
}

/// A host with its admin queue.
struct Host {
    engine: Engine,
    admin: QueueKey,
    cntlid: u16,
    now: Duration,
}

fn data(subnqn: &str, cntlid: u16) -> ConnectData {
    let names = (Terminated::new(subnqn).unwrap(), Terminated::new(HOST).unwrap());
    ConnectData { hostid: [1; 16], cntlid, subnqn: names.0, hostnqn: names.1 }
}

fn connect(qid: u16) -> Connect {
    Connect { qid, sqsize: 31, kato: 1000, ..Connect::default() }
}

fn command(connect: &Connect) -> Sqe {
    Sqe { cid: 9, ..Fabrics::command(FabricsType::CONNECT, Sgl::keyed(0x1000, 1024, 7), connect) }
}

/// The status of an answer, without Do Not Retry, and its result.
fn answer(outcome: Outcome) -> (Status, u64) {
    match outcome {
        Outcome::Complete(cqe) => {
            assert!(cqe.status.is_success() || cqe.status.dnr(), "{cqe:?}");
            (Status::new(cqe.status.sct(), cqe.status.sc()), cqe.result)
        }
        other => panic!("{other:?}"),
    }
}

impl Host {
    fn connected(nqn: &str) -> Host {
        let mut engine = engine();
        let admin = engine.opened(0);
        let bytes = data(nqn, 0xFFFF).to_bytes();
        let sqe = command(&connect(0));
        assert_eq!(engine.handle(admin, &sqe, None, ROOM, Duration::ZERO), Outcome::Fetch);
        match engine.handle(admin, &sqe, Some(&bytes), ROOM, Duration::ZERO) {
            Outcome::Attach { subsystem: None, sqsize: 31, cqe } => {
                let cntlid = ConnectResult::from(cqe.result).cntlid;
                Host { engine, admin, cntlid, now: Duration::ZERO }
            }
            other => panic!("{other:?}"),
        }
    }

    fn enabled(nqn: &str) -> Host {
        let mut host = Host::connected(nqn);
        assert_eq!(host.set(offset::CC, 0x0046_0001), Status::SUCCESS);
        host
    }

    fn run(&mut self, sqe: &Sqe) -> Outcome {
        self.engine.handle(self.admin, sqe, None, ROOM, self.now)
    }

    fn set(&mut self, at: u32, value: u64) -> Status {
        let set = PropertySet { size: 0, offset: at, value };
        answer(self.run(&Fabrics::command(FabricsType::PROPERTY_SET, Sgl::none(), &set))).0
    }

    fn get(&mut self, at: u32, size: u8) -> (Status, u64) {
        let get = PropertyGet { size, offset: at };
        answer(self.run(&Fabrics::command(FabricsType::PROPERTY_GET, Sgl::none(), &get)))
    }

    fn identify(&mut self, cns: Cns, nsid: u32) -> Result<Vec<u8>, Status> {
        let sqe = Sqe { opcode: AdminOpcode::IDENTIFY.0, nsid, ..Sqe::fabric(Sgl::keyed(0, 4096, 1)) };
        self.bytes(&sqe.with(&Identify { cns, ..Identify::default() }))
    }

    fn bytes(&mut self, sqe: &Sqe) -> Result<Vec<u8>, Status> {
        match self.run(sqe) {
            Outcome::Data(_, bytes) => Ok(bytes),
            other => Err(answer(other).0),
        }
    }

    fn log(&mut self, lid: LogId, lpo: u64, len: u32) -> Result<Vec<u8>, Status> {
        let sqe = Sqe { opcode: AdminOpcode::GET_LOG_PAGE.0, ..Sqe::fabric(Sgl::keyed(0, len, 1)) };
        self.bytes(&sqe.with(&GetLogPage { lid, lpo, numd: len / 4 - 1, ..GetLogPage::default() }))
    }

    fn feature(&mut self, opcode: AdminOpcode, fid: FeatureId, value: u32) -> (Status, u64) {
        let sqe = Sqe { opcode: opcode.0, ..Sqe::fabric(Sgl::none()) };
        answer(self.run(&sqe.with(&Features { fid, value, ..Features::default() })))
    }

    fn admin(&mut self, opcode: AdminOpcode, cid: u16) -> Outcome {
        self.run(&Sqe { opcode: opcode.0, cid, ..Sqe::fabric(Sgl::none()) })
    }

    /// Connects an I/O queue.
    fn queue(&mut self, qid: u16) -> (QueueKey, Outcome) {
        let key = self.engine.opened(qid);
        let bytes = data(NQN, self.cntlid).to_bytes();
        (key, self.engine.handle(key, &command(&connect(qid)), Some(&bytes), ROOM, self.now))
    }
}

#[test]
fn a_host_comes_up_as_hosts_do() {
    let mut host = Host::connected(NQN);
    let (status, cap) = host.get(offset::CAP, 1);
    assert_eq!((status, cap & 0xFFFF, cap >> 16 & 1, cap >> 37 & 1), (Status::SUCCESS, 127, 1, 1));
    assert_eq!(host.get(offset::VS, 0), (Status::SUCCESS, 0x0001_0300));
    assert_eq!(host.get(offset::CSTS, 0), (Status::SUCCESS, 0));
    assert_eq!(
        host.identify(Cns::CONTROLLER, 0),
        Err(Status::COMMAND_SEQUENCE_ERROR),
        "before it is enabled"
    );
    assert_eq!(host.set(offset::CC, 0x0046_0001), Status::SUCCESS);
    assert_eq!(host.get(offset::CSTS, 0), (Status::SUCCESS, 1));
    let identity = IdentifyController::read(&host.identify(Cns::CONTROLLER, 0).unwrap()).unwrap();
    assert_eq!((identity.cntlid, identity.kas > 0, identity.maxcmd), (host.cntlid, true, 128));
    assert_eq!((identity.ioccsz, identity.iorcsz, identity.icdoff, identity.mdts), (260, 1, 0, 5));
    assert!(identity.sgl_keyed && identity.subnqn.text() == Ok(NQN) && identity.nn == 3);
    assert_eq!(namespaces(&host.identify(Cns::ACTIVE_NAMESPACES, 0).unwrap()).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(namespaces(&host.identify(Cns::ACTIVE_NAMESPACES, 1).unwrap()).collect::<Vec<_>>(), [3]);
    assert_eq!(host.identify(Cns::NAMESPACE, 2).unwrap(), vec![0; 4096], "inactive");
    assert_eq!(host.identify(Cns::NAMESPACE, 4), Err(Status::INVALID_NAMESPACE));
    assert_eq!(host.identify(Cns(0x77), 0), Err(Status::INVALID_FIELD));
    let granted = host.feature(AdminOpcode::SET_FEATURES, FeatureId::NUMBER_OF_QUEUES, 0x000F_000F);
    assert_eq!(granted, (Status::SUCCESS, 0x0003_0003), "no more than there are");
    for qid in 1..=4 {
        let (_, outcome) = host.queue(qid);
        assert!(matches!(outcome, Outcome::Attach { subsystem: Some(0), sqsize: 31, .. }), "{outcome:?}");
    }
    let (_, outcome) = host.queue(4);
    let (status, result) = answer(outcome);
    assert_eq!(
        (status, InvalidParameter::from(result).ipo),
        (Status::CONNECT_INVALID_PARAMETERS, 42),
        "twice"
    );
}

#[test]
fn connect_is_refused_with_the_place_that_is_wrong() {
    let wrong = |connect: Connect, data: ConnectData| {
        let mut engine = engine();
        let key = engine.opened(connect.qid);
        let (status, result) =
            answer(engine.handle(key, &command(&connect), Some(&data.to_bytes()), ROOM, Duration::ZERO));
        let place = InvalidParameter::from(result);
        assert_eq!(engine.num_controllers(), 0);
        (status, place.ipo, place.in_data)
    };
    let good = data(NQN, 0xFFFF);
    let invalid = Status::CONNECT_INVALID_PARAMETERS;
    assert_eq!(wrong(Connect { sqsize: 0, ..connect(0) }, good.clone()), (invalid, 44, false));
    assert_eq!(wrong(Connect { sqsize: ENTRIES, ..connect(0) }, good.clone()), (invalid, 44, false));
    assert_eq!(
        wrong(Connect { recfmt: 1, ..connect(0) }, good.clone()).0,
        Status::CONNECT_INCOMPATIBLE_FORMAT
    );
    assert_eq!(wrong(connect(0), data("nqn.2014-08.org.example:none", 0xFFFF)), (invalid, 256, true));
    assert_eq!(wrong(connect(0), data(NQN, 5)), (invalid, 16, true));
    assert_eq!(wrong(connect(1), data(NQN, 5)), (invalid, 16, true), "no such controller");
    assert_eq!(wrong(connect(0), data(CLOSED, 0xFFFF)).0, Status::CONNECT_INVALID_HOST);
    let mut engine = engine();
    let key = engine.opened(0);
    let short = Sqe { dptr: Sgl::keyed(0x1000, 1023, 7).0, ..command(&connect(0)) };
    assert_eq!(answer(engine.handle(key, &short, None, ROOM, Duration::ZERO)).0, Status::INVALID_FIELD);
    let other = command(&connect(1));
    let (status, result) = answer(engine.handle(key, &other, Some(&good.to_bytes()), ROOM, Duration::ZERO));
    assert_eq!((status, result & 0xFFFF), (invalid, 42), "another queue than the private data said");
    let sqe = Sqe { opcode: AdminOpcode::IDENTIFY.0, ..Sqe::fabric(Sgl::keyed(0, 4096, 1)) };
    assert_eq!(
        answer(engine.handle(key, &sqe, None, ROOM, Duration::ZERO)).0,
        Status::COMMAND_SEQUENCE_ERROR
    );
}

#[test]
fn controllers_run_out_and_come_back() {
    let mut engine = engine();
    let bytes = data(NQN, 0xFFFF).to_bytes();
    let open = |engine: &mut Engine| {
        let key = engine.opened(0);
        (key, engine.handle(key, &command(&connect(0)), Some(&bytes), ROOM, Duration::ZERO))
    };
    let keys: Vec<_> = (0..3).map(|_| open(&mut engine).0).collect();
    assert_eq!(answer(open(&mut engine).1).0, Status::CONNECT_CONTROLLER_BUSY);
    engine.closed(keys[1]);
    assert!(matches!(open(&mut engine).1, Outcome::Attach { .. }));
}

#[test]
fn descriptors_are_checked() {
    let mut host = Host::enabled(NQN);
    let mut refused = |sgl: Sgl, psdt| {
        let sqe = Sqe { opcode: AdminOpcode::IDENTIFY.0, psdt, ..Sqe::fabric(sgl) };
        host.bytes(&sqe.with(&Identify { cns: Cns::CONTROLLER, ..Identify::default() })).unwrap_err()
    };
    assert_eq!(refused(Sgl::keyed(0, 4095, 1), 1), Status::SGL_LENGTH_INVALID, "too short");
    assert_eq!(
        refused(Sgl::keyed(0, ROOM as u32 + 1, 1), 1),
        Status::SGL_LENGTH_INVALID,
        "more than can be moved"
    );
    assert_eq!(refused(Sgl::keyed(0, 4096, 1).with_type(0x31), 1), Status::SGL_TYPE_INVALID);
    assert_eq!(refused(Sgl::in_capsule(0, 4096), 1), Status::SGL_TYPE_INVALID, "data to the host");
    assert_eq!(refused(Sgl::keyed(0, 4096, 1), 0), Status::INVALID_FIELD, "not an SGL");
}

#[test]
fn what_fabrics_do_not_have_is_an_invalid_opcode() {
    let mut host = Host::enabled(NQN);
    for opcode in
        [AdminOpcode::CREATE_SQ, AdminOpcode::CREATE_CQ, AdminOpcode::DELETE_SQ, AdminOpcode::FORMAT]
    {
        let sqe = Sqe { opcode: opcode.0, ..Sqe::fabric(Sgl::keyed(0, 64, 1)) };
        assert_eq!(answer(host.run(&sqe)).0, Status::INVALID_OPCODE, "{opcode:?}");
    }
    let (key, _) = {
        host.feature(AdminOpcode::SET_FEATURES, FeatureId::NUMBER_OF_QUEUES, 0);
        host.queue(1)
    };
    let mut io = |opcode: u8, nsid| {
        let sqe = Sqe { opcode, nsid, ..Sqe::fabric(Sgl::none()) };
        host.engine.handle(key, &sqe, None, ROOM, Duration::ZERO)
    };
    assert_eq!(io(IoOpcode::FLUSH.0, 1), Outcome::Disk { subsystem: 0, nsid: 1 });
    assert_eq!(answer(io(IoOpcode::FLUSH.0, 2)).0, Status::INVALID_NAMESPACE);
    assert_eq!(answer(io(0xC0, 1)).0, Status::INVALID_OPCODE);
    assert_eq!(answer(io(0xC3, 1)).0, Status::INVALID_OPCODE);
}

#[test]
fn a_host_that_keeps_silent_loses_its_controller() {
    let mut host = Host::enabled(NQN);
    host.feature(AdminOpcode::SET_FEATURES, FeatureId::NUMBER_OF_QUEUES, 0);
    let (io, _) = host.queue(1);
    host.now = Duration::from_millis(900);
    assert_eq!(answer(host.admin(AdminOpcode::KEEP_ALIVE, 1)).0, Status::SUCCESS);
    host.engine.tick(Duration::from_millis(1900));
    assert_eq!(host.engine.num_controllers(), 1, "kept alive");
    host.engine.tick(Duration::from_millis(2200));
    assert_eq!((host.engine.num_controllers(), host.engine.counts().expired), (0, 1));
    let ended = host.engine.take_actions().into_iter().map(|action| match action {
        Action::Disconnect { queue, .. } => queue,
        other => panic!("{other:?}"),
    });
    assert_eq!(ended.collect::<Vec<_>>(), [io, host.admin]);
    let (status, _) = answer(host.admin(AdminOpcode::KEEP_ALIVE, 2));
    assert_eq!(status, Status::COMMAND_SEQUENCE_ERROR);
}

#[test]
fn a_change_of_namespaces_is_told_once_until_it_was_read() {
    let mut host = Host::enabled(NQN);
    let wanted = AsyncEvents { namespace_attributes: true, ..AsyncEvents::default() };
    host.feature(AdminOpcode::SET_FEATURES, FeatureId::ASYNC_EVENTS, wanted.into());
    assert_eq!(host.admin(AdminOpcode::ASYNC_EVENT_REQUEST, 5), Outcome::Keep);
    assert_eq!(host.engine.take_actions(), []);
    host.engine.set_namespace(0, 3, None);
    host.engine.set_namespace(0, 1, None);
    let told = Cqe { result: AsyncEvent::NAMESPACE_CHANGED.into(), ..Cqe::new(5, Status::SUCCESS) };
    assert_eq!(host.engine.take_actions(), [Action::Complete { queue: host.admin, cqe: told }]);
    assert_eq!(host.admin(AdminOpcode::ASYNC_EVENT_REQUEST, 6), Outcome::Keep);
    assert_eq!(host.engine.take_actions(), [], "not read yet");
    assert_eq!(
        namespaces(&host.log(LogId::CHANGED_NAMESPACES, 0, 4096).unwrap()).collect::<Vec<_>>(),
        [1, 3]
    );
    assert_eq!(namespaces(&host.identify(Cns::ACTIVE_NAMESPACES, 0).unwrap()).count(), 0);
    let info = NamespaceInfo { blocks: 1, block_size: 4096, nguid: [1; 16] };
    host.engine.set_namespace(0, 9, Some(info));
    assert!(matches!(host.engine.take_actions()[..], [Action::Complete { .. }]));
}

#[test]
fn requests_for_events_are_limited_and_can_be_aborted() {
    let mut host = Host::enabled(NQN);
    for cid in 0..4 {
        assert_eq!(host.admin(AdminOpcode::ASYNC_EVENT_REQUEST, cid), Outcome::Keep);
    }
    assert_eq!(answer(host.admin(AdminOpcode::ASYNC_EVENT_REQUEST, 4)).0, Status::ASYNC_EVENT_LIMIT_EXCEEDED);
    let abort =
        |cid| Sqe { opcode: AdminOpcode::ABORT.0, ..Sqe::fabric(Sgl::none()) }.with(&Abort { sqid: 0, cid });
    assert_eq!(answer(host.run(&abort(2))), (Status::SUCCESS, 0));
    let cqe = Cqe::new(2, Status::ABORT_REQUESTED);
    assert_eq!(host.engine.take_actions(), [Action::Complete { queue: host.admin, cqe }]);
    assert_eq!(answer(host.run(&abort(2))), (Status::SUCCESS, 1), "there is none any more");
    assert_eq!(host.admin(AdminOpcode::ASYNC_EVENT_REQUEST, 7), Outcome::Keep);
}

#[test]
fn discovery_lists_what_the_host_may_use() {
    let mut host = Host::enabled(Nqn::DISCOVERY);
    let page = host.log(LogId::DISCOVERY, 0, 4096).unwrap();
    assert_eq!(page[8..16], 1u64.to_le_bytes(), "the other subsystem is not for this host");
    let entry = DiscoveryEntry::read(&page[1024..]).unwrap();
    assert_eq!(
        (entry.subnqn.text(), entry.traddr.text(), entry.trsvcid.text()),
        (Ok(NQN), "192.168.1.1".into(), "4420".into())
    );
    assert_eq!(host.log(LogId::DISCOVERY, 1024, 1024).unwrap(), page[1024..2048]);
    assert_eq!(host.log(LogId::DISCOVERY, 2, 1024), Err(Status::INVALID_FIELD));
    assert_eq!(host.log(LogId::SMART, 0, 512), Err(Status::INVALID_LOG_PAGE));
    assert_eq!(host.identify(Cns::ACTIVE_NAMESPACES, 0), Err(Status::INVALID_FIELD));
}

#[test]
fn a_reset_and_a_lost_admin_queue_end_io_queues() {
    let mut host = Host::enabled(NQN);
    host.feature(AdminOpcode::SET_FEATURES, FeatureId::NUMBER_OF_QUEUES, 0x0001_0001);
    let (first, _) = host.queue(1);
    assert_eq!(host.set(offset::CC, 0), Status::SUCCESS);
    assert!(matches!(host.engine.take_actions()[..], [Action::Disconnect { queue, .. }] if queue == first));
    assert_eq!(host.set(offset::CC, 0x0046_0001), Status::SUCCESS);
    let (second, outcome) = host.queue(1);
    assert!(matches!(outcome, Outcome::Attach { .. }), "{outcome:?}");
    host.engine.closed(host.admin);
    assert!(matches!(host.engine.take_actions()[..], [Action::Disconnect { queue, .. }] if queue == second));
    assert_eq!(host.engine.num_controllers(), 0);
    assert_eq!(host.set(offset::CC, 1), Status::COMMAND_SEQUENCE_ERROR);
}

#[test]
fn any_bytes_get_an_answer() {
    // A generator of its own, so that a failure can be repeated.
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut host = Host::enabled(NQN);
    let mut keys = vec![host.admin];
    for round in 0..100_000u64 {
        let mut bytes = [0; 64];
        bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&next().to_le_bytes()));
        if next() % 2 == 0 {
            bytes[0] = [0x7F, 0x06, 0x02, 0x09, 0x0A, 0x0C, 0x08, 0x18][next() as usize % 8];
            (bytes[1], bytes[39], bytes[4]) = (0x40, 0x40, (next() % 8) as u8);
        }
        match next() % 64 {
            0 => keys.push(host.engine.opened((next() % 6) as u16)),
            1 if keys.len() > 1 => host.engine.closed(keys.swap_remove(next() as usize % keys.len())),
            2 => host.engine.set_namespace(0, (next() % 5) as u32, None),
            3 => host.engine.tick(Duration::from_millis(round)),
            _ => {}
        }
        let key = keys[next() as usize % keys.len()];
        let data = data(NQN, (next() % 3) as u16).to_bytes();
        let data = (next() % 2 == 0).then_some(&data[..next() as usize % 1025]);
        let _ = host.engine.handle(key, &Sqe::parse(&bytes), data, ROOM, Duration::from_millis(round));
        let _ = host.engine.take_actions();
    }
    keys.into_iter().for_each(|key| host.engine.closed(key));
    assert_eq!(host.engine.num_controllers(), 0, "every controller goes with its admin queue");
}
