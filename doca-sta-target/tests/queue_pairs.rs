//! Queue pairs and their commands by themselves, without engine and disk: states as events, commands that are dropped,
//! transports that fail, and silence. Hosts are on threads of their own.

mod support;

use doca_common::{Device, ProgressEngine};
use doca_sim_initiator::{Data, Queue};
use doca_sta::cm::{CmEvent, CmNumber, Listener, Request};
use doca_sta::event::IoEvent;
use doca_sta::{Command, Io, IoEvents, Qp, QpId, QpState, Sta, completion};
use nvme_wire::cm::CmAccept;
use nvme_wire::{AdminOpcode, Sgl, Sqe, Status};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::{ADDRESS, LIMIT, alone, way};

/// A target that does nothing by itself but listen.
struct Bare<'a> {
    engine: &'a ProgressEngine,
    /// Whether commands are left where they are.
    quiet: bool,
    listener: Listener,
    requests: Vec<Request>,
    established: Vec<CmNumber>,
    gone: Vec<CmNumber>,
    commands: Vec<Command>,
    seen: Vec<IoEvent>,
    events: IoEvents,
    io: Io,
    device: Device,
    sta: Sta,
}

fn answer() -> Vec<u8> {
    CmAccept { recfmt: 0, crqsize: 8 }.to_bytes().to_vec()
}

impl<'a> Bare<'a> {
    fn start(engine: &'a ProgressEngine) -> Self {
        let device = Device::open("mlx5_0").unwrap();
        let mut config = Sta::configure(&device).unwrap();
        config.add_network(&device).unwrap();
        let sta = config.start(engine).unwrap().running_within(LIMIT).unwrap();
        let io = sta.io_seed().unwrap().start(engine).unwrap().running_within(LIMIT).unwrap();
        Bare {
            engine,
            quiet: false,
            listener: Listener::bind(ADDRESS.parse().unwrap()).unwrap(),
            requests: Vec::new(),
            established: Vec::new(),
            gone: Vec::new(),
            commands: Vec::new(),
            seen: Vec::new(),
            events: io.events(),
            io,
            device,
            sta,
        }
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !done(self) {
            assert!(Instant::now() < deadline, "{what}");
            while let Some(event) = self.listener.next().unwrap() {
                match event {
                    CmEvent::Request(request) => self.requests.push(request),
                    CmEvent::Established(number) => self.established.push(number),
                    CmEvent::Disconnected(number) => self.gone.push(number),
                    _ => {}
                }
            }
            self.engine.wait_for(Duration::from_millis(1)).unwrap();
            if !self.quiet {
                self.commands.extend(self.io.command());
            }
            self.seen.extend(&mut self.events);
        }
    }

    fn request(&mut self) -> Request {
        self.until("a host asks to connect", |own| !own.requests.is_empty());
        self.requests.remove(0)
    }

    /// Accepts the next host, and confirms.
    fn connected(&mut self) -> Qp {
        let request = self.request();
        let number = request.number();
        let qp = self.io.accept(request, &answer()).unwrap();
        self.confirmed(number);
        qp.established().unwrap();
        qp
    }

    fn confirmed(&mut self, number: CmNumber) {
        self.until("the host confirms", |own| own.established.contains(&number));
    }

    fn command(&mut self) -> Command {
        self.until("a command comes", |own| !own.commands.is_empty());
        self.commands.remove(0)
    }

    /// States that a queue pair went through.
    fn states(&self, of: QpId) -> Vec<QpState> {
        let state = |event: &IoEvent| match event {
            IoEvent::Qp { qp, state } if *qp == of => Some(*state),
            _ => None,
        };
        self.seen.iter().filter_map(state).collect()
    }

    fn end(self) {
        let Bare { io, sta, commands, requests, events, .. } = self;
        drop((commands, requests, events));
        io.close(LIMIT).unwrap();
        sta.stop().wait_for(LIMIT).unwrap();
    }
}

/// A host with one queue, on a thread.
fn host<T: Send + 'static>(body: impl FnOnce(&mut Queue) -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(move || body(&mut Queue::dial(&way(), 1, 8).unwrap()))
}

fn identify() -> Sqe {
    Sqe { opcode: AdminOpcode::IDENTIFY.0, ..Sqe::default() }
}

const SUCCESS: u16 = 0;

fn succeed(command: Command) {
    let cid = Sqe::parse(command.sqe()).cid;
    command.respond(completion(&[0; 8], cid, SUCCESS)).unwrap();
}

#[test]
fn states_can_be_asked_for_and_every_change_is_an_event() {
    alone("states_can_be_asked_for_and_every_change_is_an_event", "", || {
        let engine = ProgressEngine::new().unwrap();
        let mut bare = Bare::start(&engine);
        let leaving = host(|_| {});
        let request = bare.request();
        let number = request.number();
        let qp = bare.io.accept(request, &answer()).unwrap();
        assert_eq!((qp.state(), bare.io.qp_of(number)), (QpState::Created, Some(qp.id())));
        bare.confirmed(number);
        assert_eq!(qp.state(), QpState::Created, "until DOCA is told");
        qp.established().unwrap();
        assert_eq!(bare.io.qp_state(qp.id()), QpState::Connected);
        leaving.join().unwrap();
        bare.until("the host leaves", |own| own.gone.contains(&number));
        qp.disconnect();
        let id = qp.id();
        bare.until("it is gone", |own| own.io.qps() == 0);
        assert_eq!(bare.io.qp_state(id), QpState::Disconnected);
        bare.until("the last is told", |own| own.states(id).len() == 3);
        assert_eq!(bare.states(id), [QpState::Created, QpState::Connected, QpState::Disconnected]);
        drop(qp);
        bare.end();
    });
}

#[test]
fn an_empty_queue_pair_takes_a_request_later() {
    alone("an_empty_queue_pair_takes_a_request_later", "", || {
        let engine = ProgressEngine::new().unwrap();
        let mut bare = Bare::start(&engine);
        let spare = bare.io.spare(&bare.device).unwrap();
        drop(bare.io.spare(&bare.device).unwrap());
        let asking = host(|queue| queue.status(identify(), Data::None).unwrap().0);
        let request = bare.request();
        let number = request.number();
        let qp = spare.accept(request, &answer()).unwrap();
        bare.confirmed(number);
        qp.established().unwrap();
        succeed(bare.command());
        bare.until("the host is answered", |_| asking.is_finished());
        assert!(asking.join().unwrap().is_success());
        drop(qp);
        bare.end();
    });
}

#[test]
fn a_command_that_is_dropped_is_answered_with_an_error() {
    alone("a_command_that_is_dropped_is_answered_with_an_error", "", || {
        let engine = ProgressEngine::new().unwrap();
        let mut bare = Bare::start(&engine);
        let asking = host(|queue| [(); 2].map(|()| queue.status(identify(), Data::In(512)).unwrap().0));
        let qp = bare.connected();
        drop(bare.command());
        succeed(bare.command());
        bare.until("the host is answered", |_| asking.is_finished());
        let [dropped, answered] = asking.join().unwrap();
        assert!(dropped.is(Status::INTERNAL_ERROR) && dropped.dnr(), "{dropped}");
        assert!(answered.is_success(), "and the queue pair goes on: {answered}");
        drop(qp);
        bare.end();
    });
}

/// Sends a command of this opcode whose descriptor has a key of nobody.
fn wrong_key(opcode: u8) -> JoinHandle<String> {
    host(move |queue| {
        let key = queue.key() ^ 0x55;
        let build = |address| Sqe { opcode, ..Sqe::fabric(Sgl::keyed(address, 512, key)) };
        queue.submit_capsule(&[], &[], build).unwrap().unwrap();
        queue.wait().unwrap_err().to_string()
    })
}

#[test]
fn a_transport_that_fails_is_no_status_and_has_a_syndrome() {
    /// Remote access.
    const ACCESS: u32 = 0x13;
    alone("a_transport_that_fails_is_no_status_and_has_a_syndrome", "", || {
        let engine = ProgressEngine::new().unwrap();
        let mut bare = Bare::start(&engine);
        // Data to the host, and data from it.
        for opcode in [AdminOpcode::IDENTIFY.0, AdminOpcode::SET_FEATURES.0 & !3 | 1] {
            bare.seen.clear();
            let broken = wrong_key(opcode);
            let qp = bare.connected();
            let command = bare.command();
            if command.needs_fetch() {
                command.fetch().unwrap();
            } else {
                command.respond_with_data(completion(&[0; 8], 0, SUCCESS)).unwrap();
            }
            let id = qp.id();
            bare.until("it is disconnected", |own| own.io.qp_state(id) == QpState::Disconnected);
            bare.until("the host notices", |_| broken.is_finished());
            let said = broken.join().unwrap();
            assert!(said.starts_with("fabric (connection of I/O queue 1)"), "no answer came: {said}");
            let errors: Vec<_> =
                bare.seen.iter().filter(|event| matches!(event, IoEvent::Transport(_))).collect();
            let told = errors.iter().any(|event| match event {
                IoEvent::Transport(error) => error.qp == id && error.syndrome == ACCESS,
                _ => false,
            });
            assert!(told, "{errors:?}");
            assert!(bare.commands.is_empty(), "nothing is tried again");
        }
        bare.end();
    });
}

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collect;

impl log::Log for Collect {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Warn {
            WARNINGS.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn warnings() -> Vec<String> {
    WARNINGS.lock().unwrap().clone()
}

#[test]
fn a_silent_queue_pair_is_told_of_once_with_what_to_check() {
    alone("a_silent_queue_pair_is_told_of_once_with_what_to_check", "", || {
        log::set_logger(&Collect).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        let engine = ProgressEngine::new().unwrap();
        let mut bare = Bare::start(&engine);
        // Silence is looked for where commands are asked for: not before all three are where they shall be.
        bare.quiet = true;
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let hosts = std::thread::spawn(move || {
            let mut queues = [(); 3].map(|()| Queue::dial(&way(), 1, 8).unwrap());
            queues[2].submit(identify(), Data::None).unwrap().unwrap();
            ended.recv().unwrap_err();
        });
        let request = bare.request();
        let unconfirmed = bare.io.accept(request, &answer()).unwrap();
        let (mute, unanswered) = (bare.connected(), bare.connected());
        bare.until("the command has come", |own| own.io.counts().commands == 1);
        bare.quiet = false;
        let command = bare.command();
        bare.until("all are told of", |_| warnings().len() >= 3);
        let about = |qp: &Qp, text: &str| {
            let own = format!("{} is of no use yet: {text}", qp.id());
            warnings().iter().any(|line| line.starts_with(&own))
        };
        assert!(about(&unconfirmed, "initiator: "), "{:?}", warnings());
        assert!(about(&mute, "steering: "), "{:?}", warnings());
        assert!(about(&unanswered, "application: "), "{:?}", warnings());
        assert!(warnings().iter().any(|line| line.contains("DOCA Flow")), "{:?}", warnings());
        let later = Instant::now() + Duration::from_millis(500);
        bare.until("time passes", |_| Instant::now() > later);
        assert_eq!(warnings().len(), 3, "once each: {:?}", warnings());
        drop((unconfirmed, mute, unanswered, command));
        bare.end();
        drop(end);
        hosts.join().unwrap();
    });
}
