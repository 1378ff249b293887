//! A controller behind a target: the admin queue's connection and commands.

use crate::failure::{Error, Result};
use crate::queue::{Completion, Data, Queue};
use nvme_wire::admin::{AsyncEvent, Features, GetLogPage, Identify};
use nvme_wire::command::{AdminOpcode, IoOpcode};
use nvme_wire::discovery::{DiscoveryEntry, DiscoveryHeader};
use nvme_wire::fabrics::{
    Connect, ConnectData, DYNAMIC_CONTROLLER, Fabrics, FabricsType, PropertyGet, PropertySet,
};
use nvme_wire::feature::{FeatureId, NumberOfQueues};
use nvme_wire::identify::{Cns, IdentifyController, IdentifyNamespace, namespaces};
use nvme_wire::io::ReadWrite;
use nvme_wire::log::LogId;
use nvme_wire::property::{Cap, Cc, Csts, Version, offset};
use nvme_wire::{Layout, Nqn, Sgl, Sqe};
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

/// Entries of the admin queue.
const ADMIN_ENTRIES: u16 = 32;

/// Where a subsystem is, and how this host goes there.
#[derive(Clone, Debug)]
pub struct Target {
    /// Our device, by its ibdev name.
    pub device: String,
    /// The target's address.
    pub address: SocketAddrV4,
    /// The subsystem.
    pub subnqn: Nqn,
    /// How long a connection and a command may take.
    pub limit: Duration,
    /// Bytes of data that one command moves at most.
    pub max_data: usize,
    /// Bytes of data that may travel in a capsule.
    pub in_capsule: usize,
}

impl Target {
    /// A target with the limits that suit most.
    pub fn new(device: &str, address: SocketAddrV4, subnqn: Nqn) -> Self {
        let limit = Duration::from_secs(20);
        Target { device: device.to_owned(), address, subnqn, limit, max_data: 128 << 10, in_capsule: 4096 }
    }
}

/// Who we are.
#[derive(Clone, Debug)]
pub struct Host {
    /// Qualified name.
    pub nqn: Nqn,
    /// Host identifier.
    pub id: [u8; 16],
    /// Keep Alive Timeout in milliseconds; 0 is none.
    pub kato: u32,
}

impl Host {
    /// A host by its name, with an identifier made from it.
    pub fn new(nqn: Nqn) -> Self {
        let mut id = [0x5A_u8; 16];
        for (index, byte) in nqn.as_str().bytes().enumerate() {
            id[index % 16] = id[index % 16].rotate_left(3) ^ byte;
        }
        Host { nqn, id, kato: 15_000 }
    }

    /// The data of a Connect command.
    pub fn connect_data(&self, target: &Target, cntlid: u16) -> ConnectData {
        ConnectData { hostid: self.id, cntlid, subnqn: target.subnqn.field(), hostnqn: self.nqn.field() }
    }

    /// Connects an admin queue, enables its controller, and identifies it.
    pub fn open(&self, target: &Target) -> Result<Controller> {
        self.open_on(Queue::dial(target, 0, ADMIN_ENTRIES)?, target)
    }

    /// The same on a connection for queue 0, of 32 entries, that nothing was sent on.
    pub fn open_on(&self, mut admin: Queue, target: &Target) -> Result<Controller> {
        let connect = Connect { sqsize: ADMIN_ENTRIES - 1, kato: self.kato, ..Connect::default() };
        let cntlid = admin.connect(&connect, &self.connect_data(target, DYNAMIC_CONTROLLER), false)?;
        let mut controller = Controller {
            admin,
            host: self.clone(),
            target: target.clone(),
            cntlid,
            cap: Cap::default(),
            version: Version::default(),
            identity: Box::default(),
            granted: None,
        };
        controller.enable()?;
        Ok(controller)
    }
}

/// A controller that is enabled.
pub struct Controller {
    admin: Queue,
    host: Host,
    target: Target,
    cntlid: u16,
    cap: Cap,
    version: Version,
    identity: Box<IdentifyController>,
    granted: Option<u16>,
}

fn admin(opcode: AdminOpcode) -> Sqe {
    Sqe { opcode: opcode.0, ..Sqe::default() }
}

impl Controller {
    fn protocol<T>(&self, what: String) -> Result<T> {
        Err(Error::Protocol(what).on(0))
    }

    fn enable(&mut self) -> Result {
        self.cap = self.property_get(offset::CAP, true)?.into();
        self.version = (self.property_get(offset::VS, false)? as u32).into();
        let cc = Cc { en: true, iosqes: 6, iocqes: 4, ..Cc::default() };
        self.property_set(offset::CC, u32::from(cc))?;
        let after = Duration::from_millis(500) * u32::from(self.cap.to.max(1));
        self.wait_status("CSTS.RDY", after, |csts| csts.rdy)?;
        *self.identity = self.identify(Cns::CONTROLLER, 0)?;
        // What the Linux host demands.
        if self.identity.cntlid != self.cntlid {
            let (here, there) = (self.identity.cntlid, self.cntlid);
            return self
                .protocol(format!("Identify Controller names controller {here}, Connect granted {there}"));
        }
        if self.identity.subnqn != self.target.subnqn.field() {
            return self.protocol(format!("Identify Controller names subsystem {:?}", self.identity.subnqn));
        }
        let identity = &self.identity;
        if !identity.sgl_keyed || identity.sgl_support == 0 {
            return self.protocol("the controller takes no keyed SGLs".into());
        }
        if self.is_discovery() {
            return Ok(());
        }
        for (wrong, what) in [
            (identity.ioccsz < 4, "IOCCSZ is below 4"),
            (identity.iorcsz < 1, "IORCSZ is 0"),
            (identity.icdoff != 0, "ICDOFF is not 0"),
            (identity.maxcmd == 0, "MAXCMD is 0"),
            (identity.kas == 0 && self.host.kato != 0, "KAS is 0"),
            (identity.sqes & 0xF > 6 || identity.cqes & 0xF > 4, "SQES or CQES demand larger entries"),
        ] {
            if wrong {
                return self.protocol(format!("Identify Controller: {what}"));
            }
        }
        Ok(())
    }

    /// Whether this is a discovery controller.
    pub fn is_discovery(&self) -> bool {
        self.target.subnqn.as_str() == Nqn::DISCOVERY
    }

    /// The identifier that Connect granted.
    pub fn cntlid(&self) -> u16 {
        self.cntlid
    }

    /// Controller Capabilities.
    pub fn capabilities(&self) -> &Cap {
        &self.cap
    }

    /// Version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Identify Controller.
    pub fn identity(&self) -> &IdentifyController {
        &self.identity
    }

    /// The admin queue, for commands that have no method here.
    pub fn admin(&mut self) -> &mut Queue {
        &mut self.admin
    }

    /// Reads a property of 8 or 4 bytes.
    pub fn property_get(&mut self, offset: u32, long: bool) -> Result<u64> {
        let get = PropertyGet { size: u8::from(long), offset };
        self.admin.run(Fabrics::command(FabricsType::PROPERTY_GET, Sgl::none(), &get), Data::None, &mut [])
    }

    /// Writes a property of 4 bytes.
    pub fn property_set(&mut self, offset: u32, value: u32) -> Result {
        let set = PropertySet { size: 0, offset, value: value.into() };
        self.admin
            .run(Fabrics::command(FabricsType::PROPERTY_SET, Sgl::none(), &set), Data::None, &mut [])
            .map(drop)
    }

    fn wait_status(&mut self, what: &str, after: Duration, reached: impl Fn(&Csts) -> bool) -> Result {
        let until = Instant::now() + after;
        loop {
            let csts = Csts::from(self.property_get(offset::CSTS, false)? as u32);
            if reached(&csts) {
                return Ok(());
            }
            if csts.cfs {
                return self.protocol("the controller reports a fatal error (CSTS.CFS)".into());
            }
            if Instant::now() > until {
                return Err(Error::Timeout { what: what.to_owned(), after }.on(0));
            }
            std::thread::yield_now();
        }
    }

    /// Runs Identify.
    pub fn identify<T: Layout>(&mut self, cns: Cns, nsid: u32) -> Result<T> {
        let page = self.identify_page(cns, nsid)?;
        T::read(&page).map_err(|short| Error::Protocol(short.to_string()).on(0))
    }

    /// Runs Identify and gives the page.
    pub fn identify_page(&mut self, cns: Cns, nsid: u32) -> Result<[u8; 4096]> {
        let mut page = [0; 4096];
        let command = Sqe { nsid, ..admin(AdminOpcode::IDENTIFY) };
        let arguments = Identify { cns, ..Identify::default() };
        self.admin.run(command.with(&arguments), Data::In(page.len()), &mut page)?;
        Ok(page)
    }

    /// The active namespaces.
    pub fn namespaces(&mut self) -> Result<Vec<u32>> {
        Ok(namespaces(&self.identify_page(Cns::ACTIVE_NAMESPACES, 0)?).collect())
    }

    /// Identify Namespace, which must have a format that can be.
    pub fn namespace(&mut self, nsid: u32) -> Result<IdentifyNamespace> {
        let namespace: IdentifyNamespace = self.identify(Cns::NAMESPACE, nsid)?;
        match namespace.block_size() {
            Some(_) => Ok(namespace),
            None if namespace.nsze == 0 => {
                Err(Error::Usage(format!("the target has no namespace {nsid}")).on(0))
            }
            None => self.protocol(format!("namespace {nsid} has no block size")),
        }
    }

    /// Asks for I/O queues, unless that was done before; gives how many were granted. It cannot be done twice, since it must
    /// come before the first I/O queue.
    pub fn num_queues(&mut self, wanted: u16) -> Result<u16> {
        match self.granted {
            Some(granted) => Ok(granted),
            None => self.set_num_queues(wanted),
        }
    }

    /// Asks for I/O queues; gives how many were granted.
    pub fn set_num_queues(&mut self, wanted: u16) -> Result<u16> {
        let wanted = wanted.max(1) - 1;
        let value = NumberOfQueues { submission: wanted, completion: wanted };
        let granted = NumberOfQueues::from(self.set_feature(FeatureId::NUMBER_OF_QUEUES, value.into())?);
        let granted = granted.submission.min(granted.completion).saturating_add(1);
        self.granted = Some(granted);
        Ok(granted)
    }

    /// Set Features without data.
    pub fn set_feature(&mut self, fid: FeatureId, value: u32) -> Result<u32> {
        let arguments = Features { fid, value, ..Features::default() };
        let command = admin(AdminOpcode::SET_FEATURES).with(&arguments);
        Ok(self.admin.run(command, Data::None, &mut [])? as u32)
    }

    /// Get Features of the current value.
    pub fn feature(&mut self, fid: FeatureId) -> Result<u32> {
        let arguments = Features { fid, ..Features::default() };
        let command = admin(AdminOpcode::GET_FEATURES).with(&arguments);
        Ok(self.admin.run(command, Data::None, &mut [])? as u32)
    }

    /// A part of a log page; offset and length are multiples of 4.
    pub fn log_page(&mut self, lid: LogId, nsid: u32, lpo: u64, len: usize) -> Result<Vec<u8>> {
        let mut page = vec![0; len];
        let arguments =
            GetLogPage { lid, lpo, numd: (len / 4).saturating_sub(1) as u32, ..GetLogPage::default() };
        let command = Sqe { nsid, ..admin(AdminOpcode::GET_LOG_PAGE) };
        self.admin.run(command.with(&arguments), Data::In(len), &mut page)?;
        Ok(page)
    }

    /// The discovery log.
    pub fn discover(&mut self) -> Result<Vec<DiscoveryEntry>> {
        let page = self.log_page(LogId::DISCOVERY, 0, 0, DiscoveryHeader::LEN)?;
        let header =
            DiscoveryHeader::read(&page).map_err(|short| Error::Protocol(short.to_string()).on(0))?;
        let mut entries = Vec::new();
        for index in 0..header.numrec {
            let at = DiscoveryHeader::LEN as u64 + index * DiscoveryEntry::LEN as u64;
            let page = self.log_page(LogId::DISCOVERY, 0, at, DiscoveryEntry::LEN)?;
            entries
                .push(DiscoveryEntry::read(&page).map_err(|short| Error::Protocol(short.to_string()).on(0))?);
        }
        Ok(entries)
    }

    /// Keep Alive.
    pub fn keep_alive(&mut self) -> Result {
        self.admin.run(admin(AdminOpcode::KEEP_ALIVE), Data::None, &mut []).map(drop)
    }

    /// Asks to be told of an event; [`Controller::event`] has it when it came.
    pub fn request_event(&mut self) -> Result {
        self.admin.submit(admin(AdminOpcode::ASYNC_EVENT_REQUEST), Data::None).map(drop)
    }

    /// The next answer to a request for events, if one came.
    pub fn event(&mut self) -> Result<Option<AsyncEvent>> {
        let Some(completion) = self.admin.poll()? else { return Ok(None) };
        let Completion { ref cqe, .. } = completion;
        let (status, result) = (cqe.status, cqe.result);
        self.admin.finish(completion, &mut []);
        if status.is_success() {
            return Ok(Some(AsyncEvent::from(result)));
        }
        Err(Error::Status { command: AdminOpcode::ASYNC_EVENT_REQUEST.to_string(), status, result }.on(0))
    }

    /// Connects an I/O queue of `entries` entries.
    pub fn io_queue(&self, qid: u16, entries: u16) -> Result<Queue> {
        self.seed(qid, entries).open()
    }

    /// What an I/O queue needs, to be opened on the thread that uses it.
    pub fn seed(&self, qid: u16, entries: u16) -> Seed {
        Seed { host: self.host.clone(), target: self.target.clone(), cntlid: self.cntlid, qid, entries }
    }

    /// Shuts the controller down and waits until it has.
    pub fn shutdown(&mut self) -> Result {
        let cc = Cc { en: true, shn: 1, iosqes: 6, iocqes: 4, ..Cc::default() };
        self.property_set(offset::CC, cc.into())?;
        self.wait_status("CSTS.SHST", Duration::from_secs(10), |csts| csts.shst == 2)
    }
}

/// An I/O queue that is to be opened; it may cross to another thread.
#[derive(Clone, Debug)]
pub struct Seed {
    host: Host,
    target: Target,
    cntlid: u16,
    qid: u16,
    entries: u16,
}

impl Seed {
    /// Connects the queue.
    pub fn open(&self) -> Result<Queue> {
        let mut queue = Queue::dial(&self.target, self.qid, self.entries)?;
        let connect = Connect { qid: self.qid, sqsize: self.entries - 1, ..Connect::default() };
        // As the Linux host does where capsules can carry it.
        let in_capsule = self.target.in_capsule >= ConnectData::LEN;
        let data = self.host.connect_data(&self.target, self.cntlid);
        let granted = queue.connect(&connect, &data, in_capsule)?;
        if granted != self.cntlid {
            let what = format!("Connect answered with controller {granted} instead of {}", self.cntlid);
            return Err(Error::Protocol(what).on(self.qid));
        }
        Ok(queue)
    }
}

/// A Read or Write of `blocks` blocks, 1 to 65536.
pub fn read_write(opcode: IoOpcode, nsid: u32, slba: u64, blocks: u32) -> Sqe {
    let arguments = ReadWrite { slba, nlb: (blocks - 1) as u16, ..ReadWrite::default() };
    Sqe { opcode: opcode.0, nsid, ..Sqe::default() }.with(&arguments)
}

impl Queue {
    /// Reads blocks; `to` is a multiple of the block size.
    pub fn read(&mut self, nsid: u32, slba: u64, block_size: u32, to: &mut [u8]) -> Result {
        let command = read_write(IoOpcode::READ, nsid, slba, to.len() as u32 / block_size);
        self.run(command, Data::In(to.len()), to).map(drop)
    }

    /// Writes blocks; `from` is a multiple of the block size.
    pub fn write(&mut self, nsid: u32, slba: u64, block_size: u32, from: &[u8]) -> Result {
        let command = read_write(IoOpcode::WRITE, nsid, slba, from.len() as u32 / block_size);
        self.run(command, Data::Out(from), &mut []).map(drop)
    }

    /// Makes what was written durable.
    pub fn flush(&mut self, nsid: u32) -> Result {
        let command = Sqe { opcode: IoOpcode::FLUSH.0, nsid, ..Sqe::default() };
        self.run(command, Data::None, &mut []).map(drop)
    }
}
