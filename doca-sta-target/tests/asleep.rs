//! Reads and writes go on while every thread of the application sleeps; everything else waits until one wakes. The application
//! has one thread, which stands for all: control context, IO context, listener and engine are on it.

mod support;

use doca_common::{Device, ProgressEngine};
use doca_sim_initiator::Data;
use doca_sim_initiator::controller::read_write;
use doca_sta::cm::{CmEvent, CmNumber, Listener, Request};
use doca_sta::event::IoEvent;
use doca_sta::{Command, Io, Namespace, Qp, QpId, QpState, SqSize, Sta, Subsystem};
use doca_sta_target::{
    Capacity, Disk, DiskMemory, Engine, Model, NvmeDisk, Outcome, QueueKey, SubsystemInfo,
};
use nvme_wire::cm::{CmAccept, CmRequest};
use nvme_wire::{AdminOpcode, Cqe, IoOpcode, Layout, Nqn, Sqe};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};
use support::{ADDRESS, LIMIT, NQN, alone, connected, disk, host, way};

const ENTRIES: u16 = 64;

/// What the application does but for DOCA.
struct Application {
    io: Io,
    listener: Listener,
    subsystem: Subsystem,
    engine: Engine,
    disk: NvmeDisk,
    queues: HashMap<QpId, (QueueKey, Qp)>,
    numbers: HashMap<CmNumber, QpId>,
    /// Requests for events, which are never answered here.
    kept: Vec<Command>,
    began: Instant,
}

impl Application {
    fn accept(&mut self, request: Request) {
        let wanted = CmRequest::read(request.private_data()).unwrap();
        let number = request.number();
        let answer = CmAccept { recfmt: 0, crqsize: wanted.hrqsize.min(ENTRIES) }.to_bytes();
        let qp = self.io.accept(request, &answer).unwrap();
        self.numbers.insert(number, qp.id());
        self.queues.insert(qp.id(), (self.engine.opened(wanted.qid), qp));
    }

    fn answer(&mut self, mut command: Command) {
        let Some((key, qp)) = self.queues.get(&command.qp()) else { return };
        let sqe = Sqe::parse(command.sqe());
        let room = command.room();
        let answered = match self.engine.handle(*key, &sqe, command.data(), room, self.began.elapsed()) {
            Outcome::Complete(cqe) => command.respond(cqe.to_bytes()),
            Outcome::Data(cqe, bytes) => {
                command.data_mut()[..bytes.len()].copy_from_slice(&bytes);
                command.respond_with_data(cqe.to_bytes())
            }
            Outcome::Fetch => command.fetch(),
            Outcome::Keep => {
                self.kept.push(command);
                Ok(())
            }
            Outcome::Attach { subsystem, sqsize, cqe } => {
                if subsystem.is_some() {
                    qp.bind(&self.subsystem).unwrap();
                }
                qp.set_sq_size(SqSize::from_connect(sqsize)).unwrap();
                command.respond(cqe.to_bytes())
            }
            Outcome::Disk { nsid, .. } => {
                let status = self.disk.execute(nsid, 512, &sqe, &[]);
                command.respond(Cqe::new(sqe.cid, status).to_bytes())
            }
        };
        answered.unwrap();
    }

    fn step(&mut self) {
        while let Some(event) = self.listener.next().unwrap() {
            match event {
                CmEvent::Request(request) => self.accept(request),
                CmEvent::Established(number) => {
                    self.queues[&self.numbers[&number]].1.established().unwrap();
                }
                CmEvent::Disconnected(number) => {
                    if let Some((_, qp)) = self.numbers.get(&number).and_then(|id| self.queues.get(id)) {
                        qp.disconnect();
                    }
                }
                _ => {}
            }
        }
        while let Some(command) = self.io.command_within(Duration::from_millis(1)).unwrap() {
            self.answer(command);
        }
    }
}

/// What the thread of the application is asked for.
enum Ask {
    /// Say when, then sleep until this is over.
    Sleep(Sender<()>, Receiver<()>),
    Stop,
}

fn serve(asks: &Receiver<Ask>, ready: &Sender<nix::unistd::Pid>) {
    let disk = disk();
    let mut nvme = NvmeDisk::open(disk.bar(), disk.mapper()).unwrap();
    let info = nvme.namespaces().unwrap().remove(0).1;
    let engine = ProgressEngine::new().unwrap();
    let device = Device::open("mlx5_0").unwrap();
    let mut config = Sta::configure(&device).unwrap();
    config.add_network(&device).unwrap();
    config.set_allocator(DiskMemory::new(vec![nvme.mapper()])).unwrap();
    let back_end = config.add_back_end(vec![nvme.lend(ENTRIES.into()).unwrap()]).unwrap();
    let subsystem = config.add_subsystem(NQN).unwrap();
    let namespace = Namespace { subsystem, nsid: 1, block_size: info.block_size, back_end, disk_nsid: 1 };
    config.add_namespace(namespace).unwrap();
    let sta = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
    let io = sta.io_seed().unwrap().start(&engine).unwrap().running_within(LIMIT).unwrap();
    let mut events = io.events();
    let model = Model {
        subsystems: vec![SubsystemInfo {
            nqn: Nqn::new(NQN).unwrap(),
            serial: "S1".to_owned(),
            model: "M".to_owned(),
            hosts: None,
            namespaces: BTreeMap::from([(1, info)]),
        }],
        addresses: vec![ADDRESS.parse().unwrap()],
        capacity: Capacity {
            queue_entries: ENTRIES,
            io_queues: 16,
            io_size: 128 << 10,
            capsule: 4160,
            controllers: 4,
        },
    };
    let mut application = Application {
        io,
        listener: Listener::bind(ADDRESS.parse().unwrap()).unwrap(),
        subsystem: sta.subsystem(subsystem).unwrap(),
        engine: Engine::new(model),
        disk: nvme,
        queues: HashMap::new(),
        numbers: HashMap::new(),
        kept: Vec::new(),
        began: Instant::now(),
    };
    ready.send(nix::unistd::gettid()).unwrap();
    loop {
        match asks.try_recv() {
            Ok(Ask::Sleep(asleep, awake)) => {
                asleep.send(()).unwrap();
                awake.recv().unwrap();
            }
            Ok(Ask::Stop) | Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {}
        }
        application.step();
        for event in &mut events {
            if let IoEvent::Qp { qp, state: QpState::Disconnected } = event
                && let Some((key, _)) = application.queues.remove(&qp)
            {
                application.engine.closed(key);
            }
        }
    }
    let Application { io, queues, kept, subsystem, .. } = application;
    drop((events, queues, kept, subsystem));
    io.close(LIMIT).unwrap();
    sta.stop().wait_for(LIMIT).unwrap();
}

/// Whether a thread sleeps, and how often it has been on a processor.
fn thread(id: nix::unistd::Pid) -> (bool, u64) {
    let status = std::fs::read_to_string(format!("/proc/self/task/{id}/status")).unwrap();
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    let switches = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
    let switches = switches.map(|name| value(name).parse::<u64>().unwrap());
    (value("State:").starts_with('S'), switches[0] + switches[1])
}

#[test]
fn reads_and_writes_go_on_while_the_application_sleeps() {
    alone("reads_and_writes_go_on_while_the_application_sleeps", "", || {
        let (asks, asked) = channel();
        let (ready, begun) = channel();
        let application = std::thread::spawn(move || serve(&asked, &ready));
        let id = begun.recv_timeout(LIMIT).unwrap();
        let mut controller = connected();
        let mut queue = controller.io_queue(1, 32).unwrap();
        queue.flush(1).unwrap();

        let (asleep, sleeps) = channel();
        let (wake, awake) = channel();
        asks.send(Ask::Sleep(asleep, awake)).unwrap();
        sleeps.recv_timeout(LIMIT).unwrap();
        let deadline = Instant::now() + LIMIT;
        while !thread(id).0 {
            assert!(Instant::now() < deadline, "it does not fall asleep");
            std::thread::yield_now();
        }
        let before = thread(id);

        // What the application has to answer: a command on either queue, and a connection.
        let flush = Sqe { opcode: IoOpcode::FLUSH.0, nsid: 1, ..Sqe::default() };
        let flush = queue.submit(flush, Data::None).unwrap().unwrap();
        let keep_alive = Sqe { opcode: AdminOpcode::KEEP_ALIVE.0, ..Sqe::default() };
        let keep_alive = controller.admin().submit(keep_alive, Data::None).unwrap().unwrap();
        let other = std::thread::spawn(|| host().open(&way()).map(|controller| controller.cntlid()));

        for lba in 0..500 {
            let block = [lba as u8 ^ 0x5A; 512];
            queue.write(1, lba, 512, &block).unwrap();
            let mut back = [0; 512];
            queue.read(1, lba, 512, &mut back).unwrap();
            assert_eq!(back, block);
        }
        // Many at once, too.
        let read = || read_write(IoOpcode::READ, 1, 7, 1);
        while queue.submit(read(), Data::In(512)).unwrap().is_some() {}
        while queue.outstanding() > 1 {
            let completion = queue.wait().unwrap();
            assert!(
                completion.cqe.cid != flush && completion.cqe.status.is_success(),
                "{:?}",
                completion.cqe
            );
            queue.finish(completion, &mut []);
        }
        assert!(queue.poll().unwrap().is_none(), "nobody has answered Flush");
        assert!(controller.admin().poll().unwrap().is_none(), "nobody has answered Keep Alive");
        assert!(!other.is_finished(), "nobody has accepted the other host");
        assert_eq!(thread(id), before, "the application has slept all the time");

        wake.send(()).unwrap();
        let completion = queue.wait().unwrap();
        assert!(completion.cqe.cid == flush && completion.cqe.status.is_success(), "{:?}", completion.cqe);
        queue.finish(completion, &mut []);
        let completion = controller.admin().wait().unwrap();
        assert!(
            completion.cqe.cid == keep_alive && completion.cqe.status.is_success(),
            "{:?}",
            completion.cqe
        );
        controller.admin().finish(completion, &mut []);
        assert_ne!(other.join().unwrap().unwrap(), controller.cntlid());
        drop((queue, controller));
        asks.send(Ask::Stop).unwrap();
        application.join().unwrap();
    });
}
