//! What the two examples of sync events share: the command line of NVIDIA's samples, an event in the mode that it asks
//! for, and Comch, by which the event's descriptor travels.

use doca::comch::{Client, Config, Connection, ControlPath, Server};
use doca::event::{AddTask, CAPABILITIES, Config as EventConfig, Key, Publisher, SetTask, Subscriber};
use doca::event::{Condition, WaitEqualTask};
use doca::{AsyncEvent, Descriptor, Device, ProgressEngine, SyncEvent};
use std::process::ExitCode;
use std::time::Duration;

/// What an example returns.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How long the peer may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The settings of Comch that NVIDIA's samples use.
const SERVICE: &str = "sync_event_cc";
const MAX_MSG_SIZE: u32 = 1024;
const QUEUE_SIZE: u32 = 8;

/// The command line.
pub struct Options {
    pci: String,
    representor: Option<String>,
    asynchronous: bool,
    num_tasks: u32,
    atomic: bool,
}

/// Options, whether they have a value, and what they mean.
const FLAGS: &[(&[&str], bool, &str)] = &[
    (&["-d", "--pci-addr"], true, "PCI address of the device"),
    (&["-r", "--rep-pci"], true, "PCI address of the host's function: on the DPU, and only there"),
    (&["--async"], false, "asynchronous mode"),
    (&["--async-num-tasks"], true, "tasks of each kind"),
    (&["--atomic"], false, "signal by adding instead of setting"),
    (&["-h", "--help"], false, "this text"),
];

impl Options {
    fn parse() -> Outcome<Self> {
        let mut options = Options {
            pci: String::new(),
            representor: None,
            asynchronous: false,
            num_tasks: 1,
            atomic: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let flag = FLAGS.iter().find(|(names, ..)| names.contains(&argument.as_str()));
            let (names, has_value, _) = flag.ok_or(format!("{argument}: no such option"))?;
            let value = if *has_value { arguments.next() } else { Some(String::new()) };
            let value = value.ok_or(format!("{argument} needs a value"))?;
            match names[0] {
                "-d" => options.pci = value,
                "-r" => options.representor = Some(value),
                "--async" => options.asynchronous = true,
                "--async-num-tasks" => options.num_tasks = value.parse()?,
                "--atomic" => options.atomic = true,
                _ => {
                    FLAGS.iter().for_each(|(names, _, text)| println!("  {:20} {text}", names.join(", ")));
                    std::process::exit(0);
                }
            }
        }
        Ok(options)
    }

    /// The first device with the address that can do it.
    pub fn device(&self, capability: &str) -> Outcome<Device> {
        let able = CAPABILITIES.iter().find(|able| able.name == capability);
        let able = able.ok_or(format!("{capability}: no such capability"))?;
        let found = Device::find().called(&self.pci).with(*able).list()?;
        Ok(found.first().ok_or(format!("no device {} has {capability}", self.pci))?.open()?)
    }

    /// An event for the other side of PCI, and its descriptor.
    pub fn export(&self, device: &Device) -> Outcome<(Event, Descriptor)> {
        let (publisher, subscriber) = (Publisher::RemotePci, Subscriber::Cpu(device));
        if !self.asynchronous {
            let event = SyncEvent::new(publisher, subscriber)?;
            let descriptor = event.export_pci(device)?;
            return Ok((Event::Calls(event), descriptor));
        }
        let tasks = Tasks::start(AsyncEvent::configure(publisher, subscriber)?, self.num_tasks)?;
        let descriptor = tasks.event.export_pci(device)?;
        Ok((Event::Tasks(tasks), descriptor))
    }

    /// The event of the other side.
    pub fn import(&self, device: &Device, descriptor: &[u8]) -> Outcome<Event> {
        Ok(match self.asynchronous {
            true => Event::Tasks(Tasks::start(AsyncEvent::import(device, descriptor)?, self.num_tasks)?),
            false => Event::Calls(SyncEvent::import(device, descriptor)?),
        })
    }

    /// The connection with the peer: the DPU is the server.
    pub fn meet(&self, device: &Device, engine: &ProgressEngine) -> Outcome<Link> {
        let Some(representor) = &self.representor else {
            let config = prepare(Client::configure(device, SERVICE)?)?;
            let client = config.start(engine)?.running_within(PATIENCE)?;
            println!("Connection to DPU has been established");
            return Ok(Link { connection: client.connection()?, _end: End::Client(client) });
        };
        let config = prepare(Server::configure(device, &device.representor(representor)?, SERVICE)?)?;
        let server = config.start(engine)?.running_within(PATIENCE)?;
        println!("Server is running");
        let connection = server.wait_for(PATIENCE)?;
        println!("Received connection from host");
        Ok(Link { connection, _end: End::Server(server) })
    }

    /// Makes the value this, which is one more than it was.
    pub fn signal(&self, event: &Event, value: u64) -> Outcome<()> {
        println!("Signaling sync event for remote side");
        match (event, self.atomic) {
            (Event::Calls(event), true) => println!("It was {}", event.add(1)?),
            (Event::Calls(event), false) => event.set(value)?,
            (Event::Tasks(tasks), true) => {
                let before = tasks.event.queue(tasks.adds)?.submit(1)?.wait_for(PATIENCE)?;
                println!("It was {before}");
            }
            (Event::Tasks(tasks), false) => {
                tasks.event.queue(tasks.sets)?.submit(value)?.wait_for(PATIENCE)?;
            }
        }
        Ok(())
    }
}

fn prepare<C: ControlPath>(mut config: Config<C>) -> Outcome<Config<C>> {
    config.set_max_msg_size(MAX_MSG_SIZE)?;
    config.set_recv_queue_size(QUEUE_SIZE)?;
    config.set_send_tasks(QUEUE_SIZE)?;
    Ok(config)
}

/// An event in either mode.
pub enum Event {
    Calls(SyncEvent),
    Tasks(Tasks),
}

/// One that runs on an engine of its own.
pub struct Tasks {
    event: AsyncEvent,
    sets: Key<SetTask>,
    adds: Key<AddTask>,
    equals: Key<WaitEqualTask>,
    _engine: ProgressEngine,
}

impl Tasks {
    fn start(mut config: EventConfig, num_tasks: u32) -> Outcome<Self> {
        let (sets, adds) = (config.enable(num_tasks)?, config.enable(num_tasks)?);
        let equals = config.enable(num_tasks)?;
        let engine = ProgressEngine::new()?;
        let event = config.start(&engine)?.running_within(PATIENCE)?;
        Ok(Tasks { event, sets, adds, equals, _engine: engine })
    }
}

impl Event {
    /// Waits until the peer has made the value this.
    pub fn wait(&self, value: u64) -> Outcome<()> {
        println!("Waiting for sync event to be signaled from remote side");
        match self {
            Event::Calls(event) => event.wait_for(Condition::Equal(value), PATIENCE).map(drop)?,
            Event::Tasks(tasks) => {
                tasks.event.queue(tasks.equals)?.submit(value, u64::MAX)?.wait_for(PATIENCE)?;
            }
        }
        Ok(())
    }
}

/// A connection, with the end that it belongs to.
pub struct Link {
    pub connection: Connection,
    _end: End,
}

#[allow(dead_code, reason = "kept as long as the connection")]
enum End {
    Server(Server),
    Client(Client),
}

/// Runs an example.
pub fn run(example: impl FnOnce(&Options) -> Outcome<()>) -> ExitCode {
    match Options::parse().and_then(|options| example(&options)) {
        Ok(()) => {
            println!("Sample finished successfully");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            println!("Sample finished with errors");
            ExitCode::FAILURE
        }
    }
}
