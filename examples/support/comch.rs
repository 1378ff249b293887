//! What the Comch examples share: the command line of NVIDIA's samples, devices, and both directions of the fast path.

use doca::comch::{
    Client, Config, Connection, Consumer, ControlPath, Producer, RemoteConsumer, Server, caps,
};
use doca::{Access, Device, Memory, ProgressEngine, caps::Capability};
use std::process::ExitCode;
use std::time::Duration;

/// What an example returns.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Messages that each side can have waiting, as in NVIDIA's samples.
const RECV_QUEUE: u32 = 10;
const SEND_TASKS: u32 = 1024;

/// Bytes of the buffer that receives bulk data.
const BULK: usize = 1 << 20;

/// How long the peer may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What clients say before and after the fast path is used; servers say it back.
pub const START: &[u8] = b"start_data_path_test";
pub const STOP: &[u8] = b"stop_data_path_test";

/// The command line.
pub struct Options {
    pci: String,
    representor: String,
    pub text: String,
}

/// Option with one dash and with two, and what it means.
const FLAGS: &[(&str, &str, &str)] = &[
    ("-p", "--pci-addr", "PCI address of the device"),
    ("-r", "--rep-pci", "PCI address of the host's function, which servers need"),
    ("-t", "--text", "what to send"),
    ("-h", "--help", "this text"),
];

impl Options {
    fn parse(pci: &str) -> Outcome<Self> {
        let text = "Message from the client".into();
        let mut options = Options { pci: pci.into(), representor: "b1:00.0".into(), text };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let flag = FLAGS.iter().find(|(short, long, _)| argument == *short || argument == *long);
            let (short, ..) = flag.ok_or(format!("{argument}: no such option"))?;
            if *short == "-h" {
                FLAGS.iter().for_each(|(short, long, meaning)| println!("  {short}  {long:12} {meaning}"));
                std::process::exit(0);
            }
            let value = arguments.next().ok_or(format!("{argument} needs a value"))?;
            match *short {
                "-p" => options.pci = value,
                "-r" => options.representor = value,
                _ => options.text = value,
            }
        }
        Ok(options)
    }

    /// The first device with the address that can do it: functions may share an address.
    fn device(&self, capability: Capability) -> Outcome<Device> {
        let able = Device::find().called(&self.pci).with(capability).list()?;
        let first = able.first().ok_or(format!("no device {} has {}", self.pci, capability.name))?;
        Ok(first.open()?)
    }

    /// An idle server.
    pub fn server(&self, name: &str) -> Outcome<(Device, Config<Server>)> {
        let device = self.device(caps::SERVER)?;
        let representor = device.representor(&self.representor)?;
        let config = Server::configure(&device, &representor, name)?;
        Ok((device, prepare(config)?))
    }

    /// An idle client.
    pub fn client(&self, name: &str) -> Outcome<(Device, Config<Client>)> {
        let device = self.device(caps::CLIENT)?;
        let config = Client::configure(&device, name)?;
        Ok((device, prepare(config)?))
    }
}

/// The largest messages that the device has.
fn prepare<C: ControlPath>(mut config: Config<C>) -> Outcome<Config<C>> {
    if let doca::caps::Value::Number(most) = caps::MAX_MSG_SIZE.ask(&config.device().info())? {
        config.set_max_msg_size(u32::try_from(most)?)?;
    }
    config.set_recv_queue_size(RECV_QUEUE)?;
    config.set_send_tasks(SEND_TASKS)?;
    Ok(config)
}

/// Runs an example, whose device has this address unless the command line has another.
pub fn run(pci: &str, example: impl FnOnce(&Options) -> Outcome<()>) -> ExitCode {
    match Options::parse(pci).and_then(|options| example(&options)) {
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

/// Prints a message that came.
pub fn print(message: &[u8]) {
    println!("Message received: '{}'", String::from_utf8_lossy(message));
}

/// Waits for a certain message.
pub fn expect(connection: &Connection, wanted: &[u8]) -> Outcome<()> {
    let message = connection.receive_for(PATIENCE)?;
    print(&message);
    if message == wanted { Ok(()) } else { Err("another message was expected".into()) }
}

/// Sends a text to the peer's consumer, by a producer that lives as long as that takes.
pub fn send_bulk(
    engine: &ProgressEngine,
    device: &Device,
    connection: &Connection,
    to: &RemoteConsumer,
    text: &str,
) -> Outcome<()> {
    println!("Got a new remote consumer with ID = [{}]", to.id());
    let memory = Memory::zeroed(text.len().max(1))?.shared(device, Access::PCI_READ_WRITE)?;
    let producer = Producer::configure(connection)?.start(engine)?.running_within(PATIENCE)?;
    let mut buffer = memory.take(text.len().max(1))?;
    buffer.write(text.as_bytes());
    let mut sending = loop {
        match producer.send(to, buffer, &[]) {
            Ok(sending) => break sending,
            // The peer has not posted a buffer yet.
            Err(failed) if failed.error.is_retryable() => buffer = failed.value,
            Err(failed) => return Err(failed.error.into()),
        }
        engine.wait_for(Duration::from_millis(1))?;
    };
    sending.wait_for(PATIENCE)?;
    println!("Producer task sent successfully");
    producer.stop().wait_for(PATIENCE)?;
    Ok(())
}

/// Receives a text from the peer's producer, by a consumer that lives as long as that takes.
pub fn receive_bulk(engine: &ProgressEngine, device: &Device, connection: &Connection) -> Outcome<()> {
    let memory = Memory::zeroed(BULK)?.shared(device, Access::PCI_READ_WRITE)?;
    let consumer = Consumer::configure(connection, &memory)?.start(engine)?.running_within(PATIENCE)?;
    let message = consumer.receive(memory.take(BULK)?)?.wait_for(PATIENCE)?;
    let mut text = vec![0; message.buffer.len()];
    message.buffer.read(&mut text);
    print(&text);
    consumer.stop().wait_for(PATIENCE)?;
    Ok(())
}
