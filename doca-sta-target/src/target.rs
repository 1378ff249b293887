//! A whole target: listeners, threads, disks and the engine.

use crate::describe::{Served, check_options, describe, lend};
use crate::disk::{Disk, DiskError};
use crate::engine::{Engine, EngineCounts};
use crate::frontend::{AdminTransport, Frontend, Told};
use crate::model::{Capacity, NamespaceInfo};
use crate::raw::DiskMemory;
use crate::serve::{self, PATIENCE, Parts, Place, Places};
use crate::worker;
use doca_common::{Device, Error, ProgressEngine, Refusal};
use doca_sta::cm::{CmEvent, CmNumber, Listener, Request};
use doca_sta::diagnosis::{self, Facts, Finding};
use doca_sta::event::Event;
use doca_sta::stats::Counters;
use doca_sta::{IoCounts, PlainAllocator, Sta};
use nvme_wire::Layout;
use nvme_wire::cm::{CmAccept, CmReject, CmRequest, RejectStatus};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A namespace of a subsystem: a namespace of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamespaceOptions {
    /// Its number for initiators, from 1.
    pub nsid: u32,
    /// Which of the disks.
    pub disk: usize,
    /// Its number on the disk.
    pub disk_nsid: u32,
}

/// A subsystem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubsystemOptions {
    /// Its name.
    pub nqn: String,
    /// Serial number: at most 20 printable characters.
    pub serial: String,
    /// Hosts that may connect, by name; all if there is no list.
    pub hosts: Option<Vec<String>>,
    /// Its namespaces.
    pub namespaces: Vec<NamespaceOptions>,
}

/// What a target is made of.
pub struct Options {
    /// The device that controls it.
    pub control: Device,
    /// Devices that connections can be on.
    pub networks: Vec<Device>,
    /// Where to listen.
    pub listen: Vec<SocketAddr>,
    /// Threads that serve connections.
    pub threads: u16,
    /// Entries of an initiator's queue at most; the device's limit if that is less.
    pub queue_entries: u16,
    /// I/O queues of one controller at most.
    pub io_queues: u16,
    /// The disks.
    pub disks: Vec<Box<dyn Disk>>,
    /// The subsystems.
    pub subsystems: Vec<SubsystemOptions>,
    /// Who carries admin queues, unless queue pairs of STA do.
    pub admin: Option<Box<dyn AdminTransport>>,
}

impl Options {
    /// A target without disks and subsystems, with one thread, on one device.
    pub fn new(device: &Device) -> Self {
        Options {
            control: device.clone(),
            networks: vec![device.clone()],
            listen: Vec::new(),
            threads: 1,
            queue_entries: 128,
            io_queues: 64,
            disks: Vec::new(),
            subsystems: Vec::new(),
            admin: None,
        }
    }
}

/// Why a target did not start, with the precondition to look at.
#[derive(Debug)]
pub struct Failure {
    /// What happened.
    pub error: Box<dyn std::error::Error + Send + Sync>,
    /// The first precondition that does not hold, if it is known.
    pub finding: Option<Finding>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        match &self.finding {
            Some(finding) => write!(f, "; {}: check {}", finding.precondition, finding.precondition.check()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        Failure { error, finding: None }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let finding = diagnosis::diagnose(&Facts { failure: Some(&error), ..Facts::default() });
        Failure { error: error.into(), finding }
    }
}

/// What a target has done.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Connections that were asked for.
    pub requests: u64,
    /// Those of them that were turned away.
    pub rejected: u64,
    /// Controllers at the moment.
    pub controllers: usize,
    /// Queues at the moment.
    pub queues: usize,
    /// What the engine did.
    pub engine: EngineCounts,
    /// What each thread saw.
    pub threads: Vec<IoCounts>,
    /// DOCA's counters of each namespace, by subsystem and number.
    pub namespaces: Vec<(String, u32, Counters)>,
}

/// How long the end of the control context may take: longer than disks that are silent may keep it.
const ENDING: Duration = Duration::from_secs(60);

/// What a thread panicked with.
type Panic = Box<dyn std::any::Any + Send>;

struct Thread {
    told: Sender<Told>,
    handle: JoinHandle<()>,
    counts: Arc<Mutex<IoCounts>>,
    queues: usize,
}

/// A running target. It works while [`run_for`](Target::run_for) is called, which is to be all the time; what the adapter
/// executes goes on by itself. Dropping it ends it as [`stop`](Target::stop) does, and logs what that says.
pub struct Target {
    sta: Option<Sta>,
    events: Option<doca_sta::Events>,
    listeners: Vec<Listener>,
    frontend: Frontend,
    threads: Vec<Thread>,
    disks: Vec<JoinHandle<()>>,
    places: Places,
    /// Connections by the numbers of RDMA CM.
    connections: HashMap<CmNumber, crate::QueueKey>,
    admin: Option<Box<dyn AdminTransport>>,
    served: Vec<Served>,
    nqns: Vec<String>,
    capacity: Capacity,
    requests: u64,
    rejected: u64,
    /// Dropped last: the control context belongs to it.
    engine: ProgressEngine,
}

impl Target {
    /// Starts a target. When this returns, it listens.
    ///
    /// # Errors
    ///
    /// DOCA's or a disk's, with the precondition that does not hold.
    pub fn start(options: Options) -> Result<Self, Failure> {
        check_options(&options)?;
        let Options {
            control,
            networks,
            listen,
            threads,
            queue_entries,
            io_queues,
            mut disks,
            subsystems,
            admin,
        } = options;
        if let Some(finding) = diagnosis::check_device(&control.info()) {
            return Err(Failure { error: finding.seen.clone().into(), finding: Some(finding) });
        }
        let engine = ProgressEngine::new()?;
        let mut config = Sta::configure(&control)?;
        for network in &networks {
            config.add_network(network)?;
        }
        config.set_io_contexts(threads)?;
        let limits = *config.limits();
        let capacity = Capacity {
            queue_entries: queue_entries.min(limits.queue_size.min(u64::from(u16::MAX)) as u16),
            io_queues: io_queues.min(limits.qps.min(u64::from(u16::MAX)) as u16).max(1),
            io_size: limits.io_size.min(u64::from(u32::MAX)) as u32,
            capsule: limits.command_capsule.min(u64::from(u32::MAX)) as u32,
            controllers: limits.qps.min(u64::from(u16::MAX)) as u16,
        };
        let mappers: Vec<_> = disks.iter().map(|disk| disk.mapper()).collect();
        if mappers.is_empty() {
            config.set_allocator(PlainAllocator::new())?;
        } else {
            config.set_allocator(DiskMemory::new(mappers))?;
        }
        let (back_ends, infos) = lend(&mut config, &mut disks, u32::from(capacity.queue_entries))?;
        let (model, served) = describe(&mut config, &subsystems, &back_ends, &infos, &listen, capacity)?;
        let ids: Vec<_> = model.1;
        let sta = config.start(&engine).map_err(|failed| failed.error)?;
        let sta = sta.running_within(PATIENCE).map_err(|failed| failed.error)?;
        let events = sta.events();
        let nqns = model.0.subsystems.iter().map(|own| own.nqn.as_str().to_owned()).collect();
        let mut target = Target {
            events: Some(events),
            listeners: Vec::new(),
            frontend: Frontend::new(Engine::new(model.0)),
            threads: Vec::new(),
            disks: Vec::new(),
            places: Places::default(),
            connections: HashMap::new(),
            admin,
            served,
            nqns,
            capacity,
            requests: 0,
            rejected: 0,
            sta: Some(sta),
            engine,
        };
        target.employ(disks, &subsystems, &infos)?;
        for _ in 0..threads {
            target.add_thread(&ids)?;
        }
        for address in listen {
            let listener = Listener::bind(address).map_err(|error| Failure {
                finding: Some(Finding {
                    precondition: diagnosis::Precondition::Listener,
                    seen: error.to_string(),
                }),
                error: error.into(),
            })?;
            target.listeners.push(listener);
        }
        Ok(target)
    }

    /// Puts each disk on its thread, and notes which namespace is where.
    fn employ(
        &mut self,
        disks: Vec<Box<dyn Disk>>,
        subsystems: &[SubsystemOptions],
        infos: &[BTreeMap<u32, NamespaceInfo>],
    ) -> Result<(), Failure> {
        let mut jobs = Vec::new();
        for disk in disks {
            let (own, thread) = worker::start(disk).map_err(|error| Failure::from(DiskError::from(error)))?;
            jobs.push(own);
            self.disks.push(thread);
        }
        let Ok(mut places) = self.places.lock() else { return Ok(()) };
        for (index, subsystem) in subsystems.iter().enumerate() {
            for own in &subsystem.namespaces {
                let block_size = infos[own.disk][&own.disk_nsid].block_size;
                let place = Place { jobs: jobs[own.disk].clone(), disk_nsid: own.disk_nsid, block_size };
                places.insert((index, own.nsid), place);
            }
        }
        Ok(())
    }

    fn add_thread(&mut self, ids: &[doca_sta::SubsystemId]) -> Result<(), Failure> {
        let Some(sta) = &self.sta else { return Ok(()) };
        let subsystems = ids.iter().map(|id| sta.subsystem(*id)).collect::<doca_common::Result<Vec<_>>>()?;
        let seed = sta.io_seed()?;
        let (told, inbox) = channel();
        let (ready, begun) = channel();
        let counts = Arc::<Mutex<IoCounts>>::default();
        let parts = Parts {
            seed,
            frontend: self.frontend.clone(),
            subsystems,
            places: self.places.clone(),
            inbox,
            own: told.clone(),
            counts: counts.clone(),
        };
        let thread = std::thread::Builder::new().name("sta io".to_owned());
        let handle = thread
            .spawn(move || serve::run(parts, &ready))
            .map_err(|error| Failure::from(DiskError::from(error)))?;
        self.threads.push(Thread { told, handle, counts, queues: 0 });
        let deadline = Instant::now() + PATIENCE;
        loop {
            match begun.try_recv() {
                Ok(begun) => return Ok(begun?),
                Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                    return Err(DiskError::from("a thread ended before it began").into());
                }
                Err(_) if Instant::now() > deadline => {
                    return Err(Error::refused("doca_ctx_start", Refusal::TimedOut).into());
                }
                Err(_) => {
                    self.engine.wait_for(Duration::from_millis(1))?;
                }
            }
        }
    }

    /// Where it listens.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().map(Listener::address)
    }

    /// Entries of an initiator's queue at most.
    pub fn queue_entries(&self) -> u16 {
        self.capacity.queue_entries
    }

    /// The controllers, for transports and statistics.
    pub fn frontend(&self) -> &Frontend {
        &self.frontend
    }

    /// Works for this long: takes connections, looks at timers, progresses. Gives what happened to disks and namespaces.
    ///
    /// # Errors
    ///
    /// DOCA's, or librdmacm's.
    pub fn run_for(&mut self, time: Duration) -> Result<Vec<Event>, Error> {
        /// How long a request for a connection waits at most.
        const NAP: Duration = Duration::from_millis(2);
        let deadline = Instant::now() + time;
        loop {
            self.take_events()?;
            self.frontend.tick();
            let now = Instant::now();
            self.engine.wait_for(deadline.saturating_duration_since(now).min(NAP))?;
            if Instant::now() >= deadline {
                return Ok(self.events.as_mut().map_or(Vec::new(), |events| events.collect()));
            }
        }
    }

    fn take_events(&mut self) -> Result<(), Error> {
        let mut taken = Vec::new();
        for listener in &self.listeners {
            while let Some(event) = listener.next()? {
                taken.push(event);
            }
        }
        for event in taken {
            match event {
                CmEvent::Request(request) => self.request(request),
                CmEvent::Established(number) => match self.admin_of(number) {
                    Some(admin) => admin.established(number),
                    None => self.tell(number, Told::Established),
                },
                CmEvent::Disconnected(number) => match self.admin_of(number) {
                    Some(admin) => admin.gone(number),
                    None => {
                        self.tell(number, Told::Gone);
                        self.connections.remove(&number);
                    }
                },
                other => log::debug!("{other:?}"),
            }
        }
        Ok(())
    }

    /// The transport of a connection that is none of STA's.
    fn admin_of(&mut self, number: CmNumber) -> Option<&mut Box<dyn AdminTransport>> {
        self.admin.as_mut().filter(|_| !self.connections.contains_key(&number))
    }

    fn tell(&self, number: CmNumber, told: impl FnOnce(crate::QueueKey) -> Told) {
        let Some(queue) = self.connections.get(&number) else { return };
        if let Some(route) = self.frontend.route(*queue) {
            let _ = route.send(told(*queue));
        }
    }

    fn request(&mut self, request: Request) {
        self.requests += 1;
        let wanted = match check(&request, &self.capacity) {
            Ok(wanted) => wanted,
            Err(status) => {
                self.rejected += 1;
                log::warn!("{request:?} is rejected: {}", status.name().unwrap_or("?"));
                request.reject(&CmReject { recfmt: 0, status }.to_bytes());
                return;
            }
        };
        let answer = CmAccept { recfmt: 0, crqsize: wanted.1 }.to_bytes();
        if wanted.0 == 0
            && let Some(admin) = &mut self.admin
        {
            admin.take(request, answer, &self.frontend);
            return;
        }
        // In turn, so that the queues of one initiator are on all threads.
        let Some(thread) = self.threads.iter_mut().min_by_key(|thread| thread.queues) else { return };
        thread.queues += 1;
        let queue = self.frontend.opened(wanted.0, thread.told.clone());
        self.connections.insert(request.number(), queue);
        if thread.told.send(Told::Accept { request, queue, answer }).is_err() {
            self.frontend.closed(queue);
        }
    }

    /// Takes a namespace out of a subsystem. Hosts are told; commands under way end, and then
    /// [`Event::NamespaceRemoved`] comes.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] if there is none, or DOCA's.
    pub fn remove_namespace(&mut self, nqn: &str, nsid: u32) -> Result<(), Error> {
        let subsystem = self.nqns.iter().position(|own| own == nqn);
        let found = self.served.iter().position(|own| Some(own.subsystem) == subsystem && own.nsid == nsid);
        let (Some(sta), Some(found)) = (&self.sta, found) else {
            let text = format!("{nqn} has no namespace {nsid}");
            return Err(
                Error::refused("doca_sta_subsystem_task_rm_ns_alloc_init", Refusal::OutOfRange).with(text)
            );
        };
        sta.remove_namespace(self.served[found].id)?;
        let served = self.served.remove(found);
        if let Ok(mut places) = self.places.lock() {
            places.remove(&(served.subsystem, nsid));
        }
        self.frontend.set_namespace(served.subsystem, nsid, None);
        Ok(())
    }

    /// What it has done.
    ///
    /// # Errors
    ///
    /// DOCA's.
    pub fn statistics(&self) -> Result<Statistics, Error> {
        let mut namespaces = Vec::new();
        if let Some(sta) = &self.sta {
            for own in &self.served {
                namespaces.push((
                    self.nqns[own.subsystem].clone(),
                    own.nsid,
                    sta.namespace_counters(own.id)?,
                ));
            }
        }
        Ok(Statistics {
            requests: self.requests,
            rejected: self.rejected,
            controllers: self.frontend.num_controllers(),
            queues: self.frontend.num_queues(),
            engine: self.frontend.counts(),
            threads: self
                .threads
                .iter()
                .map(|own| own.counts.lock().map(|own| *own).unwrap_or_default())
                .collect(),
            namespaces,
        })
    }

    /// The first precondition of serving an initiator that does not hold; `None` once one was served.
    pub fn diagnosis(&self) -> Option<Finding> {
        let commands = self.threads.iter().map(|own| own.counts.lock().map_or(0, |own| own.commands)).sum();
        diagnosis::diagnose(&Facts {
            failure: None,
            listening: !self.listeners.is_empty(),
            requests: self.requests,
            commands,
            connected: self.frontend.counts().connects,
        })
    }

    /// Ends the target in order: listeners, connections on their threads, namespaces, disks, the context. Commands at a disk that is
    /// silent are given up, see the [page of the crate](crate#disks-that-never-return).
    ///
    /// # Errors
    ///
    /// What could not be ended in time: [`Refusal::TimedOut`] of `doca_ctx_stop`, or of [`Disk::execute`].
    ///
    /// # Panics
    ///
    /// As a thread of an IO context did.
    pub fn stop(mut self) -> Result<(), Error> {
        let (ended, panic) = self.end();
        panic.map_or(ended, |panic| std::panic::resume_unwind(panic))
    }

    /// Ends it; gives what a thread panicked with, too.
    fn end(&mut self) -> (Result<(), Error>, Option<Panic>) {
        let Some(sta) = self.sta.take() else { return (Ok(()), None) };
        self.listeners.clear();
        for thread in &self.threads {
            let _ = thread.told.send(Told::Close);
        }
        let deadline = Instant::now() + 2 * PATIENCE;
        while self.threads.iter().any(|thread| !thread.handle.is_finished()) && Instant::now() < deadline {
            if let Err(error) = self.engine.wait_for(Duration::from_millis(1)) {
                return (Err(error), None);
            }
        }
        let mut panic = None;
        for thread in self.threads.drain(..).filter(|thread| thread.handle.is_finished()) {
            panic = thread.handle.join().err().or(panic);
        }
        self.events = None;
        let mut stopped = sta.stop().wait_for(ENDING).map_err(|failed| failed.error);
        // The disks' threads end with the last that could give them work.
        if let Ok(mut places) = self.places.lock() {
            places.clear();
        }
        let deadline = Instant::now() + PATIENCE;
        for (index, disk) in self.disks.drain(..).enumerate() {
            while !disk.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if disk.is_finished() {
                panic = disk.join().err().or(panic);
            } else if stopped.is_ok() {
                let text = format!("disk {index} has not returned a command: it is left to its thread");
                stopped = Err(Error::refused("Disk::execute", Refusal::TimedOut).with(text));
            }
        }
        (stopped, panic)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let (ended, panic) = self.end();
        if let Err(error) = ended {
            log::error!("{error}: a target did not end");
        }
        if panic.is_some() {
            log::error!("a thread of an IO context panicked");
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({:?}, {} queues)", self.nqns, self.frontend.num_queues())
    }
}

/// What a request asks for: the number of its queue, and the entries that it gets.
fn check(request: &Request, capacity: &Capacity) -> Result<(u16, u16), RejectStatus> {
    let wanted = CmRequest::read(request.private_data()).map_err(|_| RejectStatus::INVALID_LENGTH)?;
    if wanted.recfmt != 0 {
        return Err(RejectStatus::INVALID_RECFMT);
    }
    if wanted.qid > capacity.io_queues {
        return Err(RejectStatus::INVALID_QID);
    }
    if wanted.hrqsize == 0 {
        return Err(RejectStatus::INVALID_HRQSIZE);
    }
    if request.initiator_depth() == 0 {
        return Err(RejectStatus::INVALID_IRD);
    }
    let entries = capacity.queue_entries.min(wanted.hrqsize).min(wanted.hsqsize.saturating_add(1));
    Ok((wanted.qid, entries))
}
