//! Wire conformance: capsules and connections from the specifications' field tables, right and wrong, with the status that each
//! must get. Works on any target; nothing is written to the namespace but its first block.

use crate::controller::{Host, Target, read_write};
use crate::failure::{Error, Failure, Result};
use crate::queue::{Data, Queue};
use nvme_wire::admin::{CreateCq, Features, GetLogPage, Identify};
use nvme_wire::cm::{CmRequest, RejectStatus};
use nvme_wire::command::{AdminOpcode, IoOpcode};
use nvme_wire::fabrics::{
    Connect, ConnectData, DYNAMIC_CONTROLLER, Fabrics, FabricsType, InvalidParameter, PropertyGet,
    PropertySet,
};
use nvme_wire::feature::FeatureId;
use nvme_wire::identify::Cns;
use nvme_wire::io::{DatasetManagement, ReadWrite};
use nvme_wire::log::LogId;
use nvme_wire::property::offset;
use nvme_wire::{Layout, Sgl, Sqe, Status, Terminated};

/// What was tried, and what was not as it must be.
#[derive(Debug, Default)]
pub struct Verdict {
    /// How many cases were tried.
    pub tried: usize,
    /// One line for each that got something else.
    pub wrong: Vec<String>,
}

impl Verdict {
    fn check(&mut self, case: &str, right: bool, got: impl FnOnce() -> String) {
        self.tried += 1;
        if !right {
            self.wrong.push(format!("{case}: {}", got()));
        }
    }

    fn status(&mut self, case: &str, got: Status, wanted: Status) {
        self.check(case, got.is(wanted), || format!("{got} instead of {wanted}"));
    }
}

/// All groups.
pub fn run(host: &Host, target: &Target, nsid: u32) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    connections(target, &mut verdict)?;
    admin_connect(host, target, &mut verdict)?;
    before_enable(host, target, &mut verdict)?;
    admin(host, target, &mut verdict)?;
    io_connect(host, target, &mut verdict)?;
    io(host, target, nsid, &mut verdict)?;
    Ok(verdict)
}

/// Private data of a connection request, and the status of the rejection.
pub fn connections(target: &Target, verdict: &mut Verdict) -> Result {
    let good = CmRequest { hrqsize: 32, hsqsize: 31, ..CmRequest::default() };
    let cases = [
        (
            "CM: HRQSIZE 0",
            CmRequest { hrqsize: 0, ..good.clone() }.to_bytes().to_vec(),
            Some(RejectStatus::INVALID_HRQSIZE),
        ),
        (
            "CM: RECFMT 1",
            CmRequest { recfmt: 1, ..good.clone() }.to_bytes().to_vec(),
            Some(RejectStatus::INVALID_RECFMT),
        ),
        ("CM: as it should be", good.to_bytes().to_vec(), None),
        ("CM: 40 bytes, padded", [good.to_bytes().as_slice(), &[0; 8]].concat(), None),
    ];
    for (case, data, wanted) in cases {
        match Queue::dial_with(target, 0, 32, &data) {
            Ok(_) => verdict.check(case, wanted.is_none(), || "the connection was accepted".into()),
            Err(failure) => match failure.error {
                Error::Rejected(got) => {
                    verdict.check(case, wanted == Some(got), || format!("rejected: {got}"))
                }
                _ => return Err(failure),
            },
        }
    }
    Ok(())
}

/// A change to a Connect command and its data, and what must come of it: the byte that is wrong, if the status has one.
type Change = fn(&mut Connect, &mut ConnectData);
type Wanted = (Status, Option<InvalidParameter>);

fn in_command(field: &str) -> Wanted {
    (
        Status::CONNECT_INVALID_PARAMETERS,
        Connect::offset(field).map(|ipo| InvalidParameter { ipo, in_data: false }),
    )
}

fn in_data(field: &str) -> Wanted {
    (
        Status::CONNECT_INVALID_PARAMETERS,
        ConnectData::offset(field).map(|ipo| InvalidParameter { ipo, in_data: true }),
    )
}

fn other_name(data: &mut ConnectData) {
    let mut name = [0; 256];
    name[..18].copy_from_slice(b"nqn.2026-01.nobody");
    data.subnqn = Terminated(name);
}

fn try_connect(
    verdict: &mut Verdict,
    case: &str,
    queue: &mut Queue,
    command: Sqe,
    data: Data<'_>,
    wanted: &Wanted,
) -> Result {
    let (status, result) = queue.status(command, data)?;
    verdict.status(case, status, wanted.0);
    if let (true, Some(place)) = (status.is(wanted.0), &wanted.1) {
        let got = InvalidParameter::from(result);
        verdict
            .check(&format!("{case}, parameter"), got == *place, || format!("{got:?} instead of {place:?}"));
    }
    Ok(())
}

/// Connect on the admin queue. Each case has a connection of its own.
pub fn admin_connect(host: &Host, target: &Target, verdict: &mut Verdict) -> Result {
    let cases: [(&str, Change, Wanted); 8] = [
        ("Connect: RECFMT 1", |connect, _| connect.recfmt = 1, (Status::CONNECT_INCOMPATIBLE_FORMAT, None)),
        ("Connect: SQSIZE 0", |connect, _| connect.sqsize = 0, in_command("sqsize")),
        ("Connect: SQSIZE 65535", |connect, _| connect.sqsize = u16::MAX, in_command("sqsize")),
        ("Connect: unknown SUBNQN", |_, data| other_name(data), in_data("subnqn")),
        (
            "Connect: SUBNQN without an end",
            |_, data| data.subnqn = Terminated([b'n'; 256]),
            in_data("subnqn"),
        ),
        (
            "Connect: HOSTNQN without an end",
            |_, data| data.hostnqn = Terminated([b'n'; 256]),
            in_data("hostnqn"),
        ),
        ("Connect: admin queue of controller 0x1234", |_, data| data.cntlid = 0x1234, in_data("cntlid")),
        ("Connect: as it should be", |_, _| {}, (Status::SUCCESS, None)),
    ];
    for (case, change, wanted) in cases {
        let mut connect = Connect { sqsize: 31, kato: host.kato, ..Connect::default() };
        let mut data = host.connect_data(target, DYNAMIC_CONTROLLER);
        change(&mut connect, &mut data);
        let mut queue = Queue::dial(target, 0, 32)?;
        let command = Fabrics::command(FabricsType::CONNECT, Sgl::none(), &connect);
        try_connect(verdict, case, &mut queue, command, Data::Out(&data.to_bytes()), &wanted)?;
    }
    let mut queue = Queue::dial(target, 0, 32)?;
    let connect = Connect { sqsize: 31, ..Connect::default() };
    let command = Fabrics::command(FabricsType::CONNECT, Sgl::none(), &connect);
    let (status, _) = queue.status(command, Data::Out(&[0; 512]))?;
    let short = [Status::INVALID_FIELD, Status::SGL_LENGTH_INVALID].iter().any(|wanted| status.is(*wanted));
    verdict.check("Connect: 512 bytes of data", short, || format!("{status}"));
    let mut queue = Queue::dial(target, 0, 32)?;
    let command = Sqe { opcode: AdminOpcode::IDENTIFY.0, ..Sqe::default() }
        .with(&Identify { cns: Cns::CONTROLLER, ..Identify::default() });
    let (status, _) = queue.status(command, Data::In(4096))?;
    verdict.status("Identify before Connect", status, Status::COMMAND_SEQUENCE_ERROR);
    Ok(())
}

/// What a controller refuses until CC.EN is set.
pub fn before_enable(host: &Host, target: &Target, verdict: &mut Verdict) -> Result {
    let mut queue = Queue::dial(target, 0, 32)?;
    let connect = Connect { sqsize: 31, kato: host.kato, ..Connect::default() };
    let cntlid = queue.connect(&connect, &host.connect_data(target, DYNAMIC_CONTROLLER), false)?;
    let identify = Sqe { opcode: AdminOpcode::IDENTIFY.0, ..Sqe::default() }
        .with(&Identify { cns: Cns::CONTROLLER, ..Identify::default() });
    let (status, _) = queue.status(identify, Data::In(4096))?;
    verdict.status("Identify before CC.EN", status, Status::COMMAND_SEQUENCE_ERROR);
    let mut io = Queue::dial(target, 1, 8)?;
    let connect = Connect { qid: 1, sqsize: 7, ..Connect::default() };
    let command = Fabrics::command(FabricsType::CONNECT, Sgl::none(), &connect);
    let data = host.connect_data(target, cntlid).to_bytes();
    let (status, _) = io.status(command, Data::Out(&data))?;
    let refused = [Status::CONNECT_INVALID_PARAMETERS, Status::COMMAND_SEQUENCE_ERROR];
    verdict.check(
        "Connect of an I/O queue before CC.EN",
        refused.iter().any(|wanted| status.is(*wanted)),
        || status.to_string(),
    );
    Ok(())
}

fn fabrics<A: nvme_wire::command::Arguments>(fctype: FabricsType, arguments: &A) -> Sqe {
    Fabrics::command(fctype, Sgl::none(), arguments)
}

/// Properties and admin commands of a controller that is enabled.
pub fn admin(host: &Host, target: &Target, verdict: &mut Verdict) -> Result {
    let mut controller = host.open(target)?;
    let most = controller.identity().aerl;
    let command = |opcode: AdminOpcode| Sqe { opcode: opcode.0, ..Sqe::default() };
    let identify = |cns: Cns, nsid: u32| {
        Sqe { nsid, ..command(AdminOpcode::IDENTIFY) }.with(&Identify { cns, ..Identify::default() })
    };
    let get = |offset: u32, size: u8| fabrics(FabricsType::PROPERTY_GET, &PropertyGet { size, offset });
    let page = Data::In(4096);
    let cases = [
        ("Property Get: CAP", get(offset::CAP, 1), Data::None, Status::SUCCESS),
        ("Property Get: offset 0xF00", get(0xF00, 0), Data::None, Status::CONNECT_INVALID_PARAMETERS),
        (
            "Property Set: CSTS",
            fabrics(
                FabricsType::PROPERTY_SET,
                &PropertySet { offset: offset::CSTS, ..PropertySet::default() },
            ),
            Data::None,
            Status::CONNECT_INVALID_PARAMETERS,
        ),
        (
            "Fabrics: type 0x7C",
            fabrics(FabricsType(0x7C), &PropertyGet::default()),
            Data::None,
            Status::INVALID_OPCODE,
        ),
        ("Identify: controller", identify(Cns::CONTROLLER, 0), page, Status::SUCCESS),
        ("Identify: CNS 0xEE", identify(Cns(0xEE), 0), page, Status::INVALID_FIELD),
        ("Identify: namespace 0", identify(Cns::NAMESPACE, 0), page, Status::INVALID_NAMESPACE),
        (
            "Identify: list after the last NSID",
            identify(Cns::ACTIVE_NAMESPACES, u32::MAX),
            page,
            Status::INVALID_NAMESPACE,
        ),
        (
            "Get Log Page: LID 0xEE",
            command(AdminOpcode::GET_LOG_PAGE).with(&GetLogPage {
                lid: LogId(0xEE),
                numd: 127,
                ..Default::default()
            }),
            Data::In(512),
            Status::INVALID_LOG_PAGE,
        ),
        (
            "Get Features: FID 0xEE",
            command(AdminOpcode::GET_FEATURES).with(&Features { fid: FeatureId(0xEE), ..Default::default() }),
            Data::None,
            Status::INVALID_FIELD,
        ),
        (
            "Create I/O Completion Queue",
            command(AdminOpcode::CREATE_CQ).with(&CreateCq { qid: 1, qsize: 7, ..Default::default() }),
            Data::None,
            Status::INVALID_OPCODE,
        ),
        ("opcode 0xC3", Sqe { opcode: 0xC3, ..Sqe::default() }, Data::None, Status::INVALID_OPCODE),
        ("Keep Alive", command(AdminOpcode::KEEP_ALIVE), Data::None, Status::SUCCESS),
    ];
    for (case, command, data, wanted) in cases {
        let (status, _) = controller.admin().status(command, data)?;
        verdict.status(case, status, wanted);
    }
    for _ in 0..=most {
        controller.request_event()?;
    }
    let (status, _) = controller.admin().status(command(AdminOpcode::ASYNC_EVENT_REQUEST), Data::None)?;
    verdict.status("Asynchronous Event Request beyond AERL", status, Status::ASYNC_EVENT_LIMIT_EXCEEDED);
    Ok(())
}

/// Connect of I/O queues.
pub fn io_connect(host: &Host, target: &Target, verdict: &mut Verdict) -> Result {
    let mut controller = host.open(target)?;
    controller.set_num_queues(2)?;
    let _first = controller.io_queue(1, 8)?;
    let cases: [(&str, Change, Wanted); 4] = [
        ("Connect: queue 1 again", |connect, _| connect.qid = 1, in_command("qid")),
        ("Connect: queue 65535", |connect, _| connect.qid = u16::MAX, in_command("qid")),
        ("Connect: queue of an unknown controller", |_, data| data.cntlid = 0xFFE0, in_data("cntlid")),
        ("Connect: queue 2, data in the capsule", |_, _| {}, (Status::SUCCESS, None)),
    ];
    for (case, change, wanted) in cases {
        let mut connect = Connect { qid: 2, sqsize: 7, ..Connect::default() };
        let mut data = host.connect_data(target, controller.cntlid());
        change(&mut connect, &mut data);
        // The connection names the same queue, and may be rejected for that already.
        let mut queue = match Queue::dial(target, connect.qid, 8) {
            Ok(queue) => queue,
            Err(Failure { error: Error::Rejected(RejectStatus::INVALID_QID), .. }) => {
                verdict.check(case, connect.qid != 2, || "the connection was rejected".into());
                continue;
            }
            Err(other) => return Err(other),
        };
        let command = Fabrics::command(FabricsType::CONNECT, Sgl::none(), &connect);
        try_connect(verdict, case, &mut queue, command, Data::InCapsule(&data.to_bytes()), &wanted)?;
    }
    Ok(())
}

/// What an I/O case is made of.
struct Place {
    nsid: u32,
    address: u64,
    key: u32,
    block: u32,
    blocks: u64,
    /// Bytes of in-capsule data that fit.
    capsule: u32,
}

impl Place {
    fn keyed(&self, len: u32) -> Sgl {
        Sgl::keyed(self.address, len, self.key)
    }

    fn command(&self, opcode: IoOpcode, sgl: Sgl) -> Sqe {
        Sqe { opcode: opcode.0, nsid: self.nsid, ..Sqe::fabric(sgl) }
    }

    /// A Read or Write of one block that is right but for its SGL.
    fn with_sgl(&self, opcode: IoOpcode, sgl: Sgl) -> Sqe {
        Sqe { psdt: 1, dptr: sgl.0, ..read_write(opcode, self.nsid, 0, 1) }
    }

    fn at(&self, slba: u64) -> Sqe {
        Sqe { psdt: 1, dptr: self.keyed(self.block).0, ..read_write(IoOpcode::READ, self.nsid, slba, 1) }
    }
}

type Build = fn(&Place) -> Sqe;

/// I/O commands by their SGL, namespace, range and opcode; with in-capsule data of this many blocks.
const IO: &[(&str, usize, Status, Build)] = &[
    ("Read of one block", 0, Status::SUCCESS, |p| p.with_sgl(IoOpcode::READ, p.keyed(p.block))),
    ("Read into more than it needs", 0, Status::SUCCESS, |p| {
        p.with_sgl(IoOpcode::READ, p.keyed(2 * p.block))
    }),
    ("Write from the capsule", 1, Status::SUCCESS, |p| {
        p.with_sgl(IoOpcode::WRITE, Sgl::in_capsule(0, p.block))
    }),
    ("Write from the second block of the capsule", 2, Status::SUCCESS, |p| {
        p.with_sgl(IoOpcode::WRITE, Sgl::in_capsule(p.block.into(), p.block))
    }),
    ("Read with PRPs", 0, Status::INVALID_FIELD, |p| Sqe {
        psdt: 0,
        ..p.with_sgl(IoOpcode::READ, p.keyed(p.block))
    }),
    ("Read with a shorter SGL", 0, Status::SGL_LENGTH_INVALID, |p| {
        p.with_sgl(IoOpcode::READ, p.keyed(p.block - 1))
    }),
    ("Write with an empty SGL", 0, Status::SGL_LENGTH_INVALID, |p| p.with_sgl(IoOpcode::WRITE, Sgl::none())),
    ("Read to the capsule", 1, Status::SGL_TYPE_INVALID, |p| {
        p.with_sgl(IoOpcode::READ, Sgl::in_capsule(0, p.block))
    }),
    ("Read with a last segment", 0, Status::SGL_TYPE_INVALID, |p| {
        p.with_sgl(IoOpcode::READ, Sgl::in_capsule(0, 32).with_type(Sgl::LAST_SEGMENT_OFFSET))
    }),
    ("Read with a bit bucket", 0, Status::SGL_TYPE_INVALID, |p| {
        p.with_sgl(IoOpcode::READ, Sgl::in_capsule(0, p.block).with_type(0x10))
    }),
    ("Read with an unkeyed address", 0, Status::SGL_TYPE_INVALID, |p| {
        p.with_sgl(IoOpcode::READ, Sgl::in_capsule(p.address, p.block).with_type(0x00))
    }),
    ("Write from behind the capsule", 1, Status::SGL_OFFSET_INVALID, |p| {
        p.with_sgl(IoOpcode::WRITE, Sgl::in_capsule(p.capsule.into(), p.block))
    }),
    ("Read of namespace 0", 0, Status::INVALID_NAMESPACE, |p| Sqe { nsid: 0, ..p.at(0) }),
    ("Read of namespace 0xFFFFFFFE", 0, Status::INVALID_NAMESPACE, |p| Sqe { nsid: u32::MAX - 1, ..p.at(0) }),
    ("Read of the last block", 0, Status::SUCCESS, |p| p.at(p.blocks - 1)),
    ("Read behind the last block", 0, Status::LBA_OUT_OF_RANGE, |p| p.at(p.blocks)),
    ("Read of block 2^64 - 1", 0, Status::LBA_OUT_OF_RANGE, |p| p.at(u64::MAX)),
    ("Flush", 0, Status::SUCCESS, |p| p.command(IoOpcode::FLUSH, Sgl::none())),
    ("Write Zeroes of the first block", 0, Status::SUCCESS, |p| {
        p.command(IoOpcode::WRITE_ZEROES, Sgl::none()).with(&ReadWrite::default())
    }),
    ("Write Zeroes behind the end", 0, Status::LBA_OUT_OF_RANGE, |p| {
        p.command(IoOpcode::WRITE_ZEROES, Sgl::none())
            .with(&ReadWrite { slba: p.blocks, ..ReadWrite::default() })
    }),
    ("Dataset Management with a range of no blocks", 1, Status::SUCCESS, |p| {
        let arguments = DatasetManagement { ad: true, ..DatasetManagement::default() };
        p.command(IoOpcode::DATASET_MANAGEMENT, Sgl::in_capsule(0, 16)).with(&arguments)
    }),
    ("Dataset Management with half a range", 1, Status::SGL_LENGTH_INVALID, |p| {
        p.command(IoOpcode::DATASET_MANAGEMENT, Sgl::in_capsule(0, 8)).with(&DatasetManagement::default())
    }),
    ("opcode 0xC3", 0, Status::INVALID_OPCODE, |p| p.command(IoOpcode(0xC3), Sgl::none())),
    ("opcode 0x90", 0, Status::INVALID_OPCODE, |p| p.command(IoOpcode(0x90), Sgl::none())),
];

/// I/O commands.
pub fn io(host: &Host, target: &Target, nsid: u32, verdict: &mut Verdict) -> Result {
    let mut controller = host.open(target)?;
    controller.set_num_queues(1)?;
    let mut queue = controller.io_queue(1, 8)?;
    let namespace = controller.namespace(nsid)?;
    let (block, mdts) = (namespace.block_size().unwrap_or(512), u32::from(controller.identity().mdts));
    let key = queue.key();
    let mut send = |case: &str, in_capsule: &[u8], wanted: Status, build: &dyn Fn(&Place) -> Sqe| {
        let blocks = namespace.nsze;
        let built =
            |address| build(&Place { nsid, address, key, block, blocks, capsule: target.in_capsule as u32 });
        while queue.submit_capsule(in_capsule, &[], built)?.is_none() {
            queue.check()?;
        }
        let completion = queue.wait()?;
        let status = completion.cqe.status;
        queue.finish(completion, &mut []);
        verdict.status(case, status, wanted);
        Ok(())
    };
    let fits = |blocks: usize| blocks * block as usize <= target.in_capsule;
    for &(case, blocks, wanted, build) in IO.iter().filter(|(_, blocks, ..)| fits(*blocks)) {
        send(case, &vec![0; blocks * block as usize], wanted, &build)?;
    }
    if mdts != 0 {
        let too_long = (4096 << mdts) + block;
        send("Read of more than MDTS", &[], Status::INVALID_FIELD, &|place| Sqe {
            psdt: 1,
            dptr: place.keyed(too_long).0,
            ..read_write(IoOpcode::READ, nsid, 0, too_long / block)
        })?;
    }
    controller.shutdown()
}
