//! A target on a thread of its own, with a disk, and hosts for it.
#![allow(dead_code, reason = "each test program uses a part of this")]

use doca_common::Device;
use doca_sim_initiator::load::{self, Load, Mix};
use doca_sim_initiator::{Controller, Host, Target as Way};
use doca_sim_nvme::{Config, Disk, Faults, Namespace};
use doca_sta::event::Event;
use doca_sta_target::{
    AdminTransport, Failure, NamespaceOptions, NvmeDisk, Options, Statistics, SubsystemOptions, Target,
};
use nvme_wire::Nqn;
use std::net::SocketAddrV4;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const LIMIT: Duration = Duration::from_secs(30);
pub const CHILD: &str = "DOCA_STA_TARGET_CHILD";
pub const NQN: &str = "nqn.2014-08.org.example:disk";
pub const ADDRESS: &str = "192.168.1.1:4420";
pub const BLOCKS: u64 = 8192;

/// Runs `body` of the test of this name in a process with a network of its own, and with this topology.
pub fn alone(test: &str, topology: &str, body: fn()) {
    alone_under(test, "", topology, body);
}

/// The same under a profile of the simulator.
pub fn alone_under(test: &str, profile: &str, topology: &str, body: fn()) {
    alone_with(test, &[("DOCA_SIM_PROFILE", profile)], topology, body);
}

/// The same with these variables, if they are not empty.
pub fn alone_with(test: &str, variables: &[(&str, &str)], topology: &str, body: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let network = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]);
    command.env(CHILD, "1").env("DOCA_SIM_QUIET", "1").env("DOCA_SIM_DIR", network.path().join("net"));
    command.envs(variables.iter().filter(|(_, value)| !value.is_empty()).copied());
    if !topology.is_empty() {
        let file = network.path().join("topology.json");
        std::fs::write(&file, topology).unwrap();
        command.env("DOCA_SIM_TOPOLOGY", file);
    }
    std::fs::create_dir(network.path().join("net")).unwrap();
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

pub fn way() -> Way {
    Way::new("mlx5_1", ADDRESS.parse::<SocketAddrV4>().unwrap(), Nqn::new(NQN).unwrap())
}

pub fn host() -> Host {
    Host::new(Nqn::new("nqn.2014-08.org.example:host").unwrap())
}

/// A host that is connected, with I/O queues granted.
pub fn connected() -> Controller {
    let mut controller = host().open(&way()).unwrap();
    assert_eq!(controller.set_num_queues(16).unwrap(), 16);
    controller
}

/// What the thread of a target is asked for.
pub enum Ask {
    Statistics(Sender<Statistics>),
    Remove(u32),
    Stop,
}

/// A target on a thread, with its disk.
pub struct Serving {
    pub asks: Sender<Ask>,
    pub events: Receiver<Event>,
    thread: JoinHandle<Result<(), doca_common::Error>>,
    pub faults: Faults,
}

pub fn start(disk: &Disk) -> Result<Target, Failure> {
    start_with(disk, None)
}

/// The same with a transport for admin queues.
pub fn start_with(disk: &Disk, admin: Option<Box<dyn AdminTransport>>) -> Result<Target, Failure> {
    let mut options = Options::new(&Device::open("mlx5_0").unwrap());
    options.admin = admin;
    options.listen = vec![ADDRESS.parse().unwrap()];
    options.disks.push(Box::new(NvmeDisk::open(disk.bar(), disk.mapper()).unwrap()));
    let namespaces = vec![NamespaceOptions { nsid: 1, disk: 0, disk_nsid: 1 }];
    let nqn = NQN.to_owned();
    options.subsystems.push(SubsystemOptions { nqn, serial: "S1".to_owned(), hosts: None, namespaces });
    Target::start(options)
}

pub fn disk() -> Disk {
    let file = tempfile::tempfile().unwrap();
    file.set_len(BLOCKS * 512).unwrap();
    Disk::start(Config::default().namespace(Namespace::new(file, 512).unwrap())).unwrap()
}

impl Serving {
    pub fn start() -> Self {
        Self::start_with(None)
    }

    pub fn start_with(admin: Option<Box<dyn AdminTransport>>) -> Self {
        let (asks, asked) = channel();
        let (tell, events) = channel();
        let (ready, begun) = channel();
        let thread = std::thread::spawn(move || {
            let disk = disk();
            let mut target = start_with(&disk, admin).unwrap();
            ready.send(disk.faults().clone()).unwrap();
            loop {
                match asked.try_recv() {
                    Ok(Ask::Statistics(answer)) => answer.send(target.statistics().unwrap()).unwrap(),
                    Ok(Ask::Remove(nsid)) => target.remove_namespace(NQN, nsid).unwrap(),
                    Ok(Ask::Stop) => break,
                    Err(_) => {}
                }
                for event in target.run_for(Duration::from_millis(5)).unwrap() {
                    let _ = tell.send(event);
                }
            }
            target.stop()
        });
        let faults = begun.recv_timeout(LIMIT).unwrap();
        Serving { asks, events, thread, faults }
    }

    pub fn statistics(&self) -> Statistics {
        let (answer, answered) = channel();
        self.asks.send(Ask::Statistics(answer)).unwrap();
        answered.recv_timeout(LIMIT).unwrap()
    }

    pub fn until(&self, what: &str, done: impl Fn(&Statistics) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !done(&self.statistics()) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.statistics());
        }
    }

    /// Ends the target.
    pub fn end(self) -> Result<(), doca_common::Error> {
        self.asks.send(Ask::Stop).unwrap();
        self.thread.join().unwrap()
    }

    /// Ends the target, which must leave nothing.
    pub fn stop(self) {
        self.end().unwrap();
    }
}

pub fn verify(controller: &mut Controller, time: Duration) -> load::Report {
    let load = Load { queues: 2, depth: 16, size: 4096, random: true, mix: Mix::Verify, time, nsid: 1 };
    load::run(controller, &load).unwrap()
}
