//! Comch: a client on the host and a server on its DPU. Each is a scene, and the other one its partner.

use crate::scenes::{LIMIT, Partner, expect, say_ready, until};
use doca::comch::{
    Client, Config, Connection, ConnectionState, Consumer, ControlPath, Left, Pending, Producer, Server, caps,
};
use doca::{Access, Device, Memory, ProgressEngine, Result, SharedBuffer, SharedMemory};

/// The network is this test's own, so nobody else has the name.
const NAME: &str = "failures";
/// The host's function, which the DPU represents.
const FUNCTION: &str = "0000:3b:00.0";
/// Bytes of a buffer.
const SIZE: usize = 64;

/// Everything that a client does.
pub fn client(told: &mut dyn FnMut(&str)) -> Result<()> {
    let _partner = Partner::start("server");
    let device = device(told)?;
    let engine = ProgressEngine::new()?;
    let mut config = Client::configure(&device, NAME)?;
    set_up(&mut config)?;
    let client = config.start(&engine)?.running_within(LIMIT)?;
    talk(&engine, &device, &client.connection()?)?;
    client.stop().wait_for(LIMIT)?;
    Ok(())
}

/// Everything that a server does.
pub fn server(told: &mut dyn FnMut(&str)) -> Result<()> {
    let device = device(told)?;
    let representor = device.representor(FUNCTION)?;
    let engine = ProgressEngine::new()?;
    let mut config = Server::configure(&device, &representor, NAME)?;
    set_up(&mut config)?;
    let server = config.start(&engine)?.running_within(LIMIT)?;
    let _partner = Partner::start("client");
    let connection = server.wait_for(LIMIT)?;
    talk(&engine, &device, &connection)?;
    server.disconnect(connection.id())?;
    connection.wait_disconnected_for(LIMIT)?;
    server.stop().wait_for(LIMIT)?;
    Ok(())
}

/// A device, asked for everything.
fn device(told: &mut dyn FnMut(&str)) -> Result<Device> {
    let device = Device::open("mlx5_0")?;
    caps::snapshot(&device.info()).iter().filter_map(|(_, answer)| answer.err()).for_each(told);
    Ok(device)
}

fn set_up<C: ControlPath>(config: &mut Config<C>) -> Result<()> {
    config.set_max_msg_size(1000)?;
    config.max_msg_size()?;
    config.set_recv_queue_size(8)?;
    config.recv_queue_size()?;
    config.set_send_tasks(4)
}

/// Messages and bulk data, both ways.
fn talk(engine: &ProgressEngine, device: &Device, connection: &Connection) -> Result<()> {
    connection.send(b"there?")?;
    expect(connection.receive_for(LIMIT)? == b"there?")?;
    connection.wait_sent_for(LIMIT)?;
    connection.counters()?;
    let memory = Memory::zeroed(4 * SIZE)?.shared(device, Access::PCI_READ_WRITE)?;
    let mut consumer = Consumer::configure(connection, &memory)?.here();
    consumer.set_num_tasks(2)?;
    consumer.set_imm_data_len(8)?;
    expect(consumer.imm_data_len()? == 8)?;
    let consumer = consumer.start(engine)?.running_within(LIMIT)?;
    let mut producer = Producer::configure(connection)?.here();
    producer.set_num_tasks(2)?;
    let producer = producer.start(engine)?.running_within(LIMIT)?;
    let to = connection.wait_consumer_for(&[], LIMIT)?;
    // A second time, with the tasks of the first.
    for _ in 0..2 {
        let mut received = consumer.receive(memory.take(SIZE)?)?;
        let mut buffer = Some(memory.take(SIZE)?);
        let mut sending =
            until(engine, || match producer.send(&to, buffer.take().expect("back"), b"8 bytes!") {
                Ok(sending) => Ok(Some(sending)),
                Err(failed) if failed.error.is_retryable() => {
                    buffer = Some(failed.value);
                    Ok(None)
                }
                Err(failed) => Err(failed.error),
            })?;
        sending.wait_for(LIMIT)?;
        received.wait_for(LIMIT)?;
    }
    drop((consumer.stop().wait_for(LIMIT)?, producer.stop().wait_for(LIMIT)?));
    // They are destroyed by progress, and hold their connection until then.
    engine.progress()?;
    Ok(())
}

/// The server of the client above.
pub fn be_server(over: &dyn Fn() -> bool) -> Result<()> {
    let device = Device::open("mlx5_0")?;
    let engine = ProgressEngine::new()?;
    let config = Server::configure(&device, &device.representor(FUNCTION)?, NAME)?;
    let server = config.start(&engine)?.running_within(LIMIT)?;
    say_ready();
    let mut answers = Vec::new();
    while !over() {
        engine.progress()?;
        let new = std::iter::from_fn(|| server.try_accept());
        answers.extend(new.filter_map(|connection| Answer::of(&engine, &device, connection).ok()));
        answers.iter_mut().for_each(Answer::turn);
        std::thread::yield_now();
    }
    Ok(())
}

/// The client of the server above, which comes again when it was sent away.
pub fn be_client(over: &dyn Fn() -> bool) -> Result<()> {
    let device = Device::open("mlx5_0")?;
    let engine = ProgressEngine::new()?;
    let mut left = Left::Config(Client::configure(&device, NAME)?);
    let mut answer: Option<Answer> = None;
    say_ready();
    while !over() {
        engine.progress()?;
        left = match left.now() {
            Left::Config(config) => match config.start(&engine) {
                Ok(starting) => Left::Starting(starting),
                Err(failed) => failed.value,
            },
            other => other,
        };
        answer = answer.filter(|answer| answer.connection.state() != ConnectionState::Disconnected);
        if answer.is_none()
            && let Left::Running(client) = &left
        {
            answer = client.connection().and_then(|own| Answer::of(&engine, &device, own)).ok();
        }
        answer.iter_mut().for_each(Answer::turn);
        std::thread::yield_now();
    }
    Ok(())
}

/// Sends back what comes, takes bulk data, and sends some to who takes them. What fails is the other side's matter.
struct Answer {
    connection: Connection,
    memory: SharedMemory,
    consumer: Left<Consumer>,
    producer: Left<Producer>,
    posted: Vec<Pending<Consumer, SharedBuffer>>,
    sending: Vec<Pending<Producer, SharedBuffer>>,
}

impl Answer {
    fn of(engine: &ProgressEngine, device: &Device, connection: Connection) -> Result<Self> {
        let memory = Memory::zeroed(4 * SIZE)?.shared(device, Access::PCI_READ_WRITE)?;
        let mut consumer = Consumer::configure(&connection, &memory)?.here();
        consumer.set_imm_data_len(8)?;
        let consumer = Left::Starting(consumer.start(engine)?);
        let producer = Left::Starting(Producer::configure(&connection)?.start(engine)?);
        Ok(Answer { connection, memory, consumer, producer, posted: Vec::new(), sending: Vec::new() })
    }

    fn turn(&mut self) {
        let mut message = Vec::new();
        while self.connection.in_flight() == 0 && self.connection.try_receive(&mut message) {
            let _ = self.connection.send(&message);
        }
        self.consumer = std::mem::replace(&mut self.consumer, Left::Consumed).now();
        self.producer = std::mem::replace(&mut self.producer, Left::Consumed).now();
        self.posted.retain(|posted| !posted.is_done());
        self.sending.retain(|sending| !sending.is_done());
        if let Left::Running(consumer) = &self.consumer
            && self.posted.is_empty()
            && let Ok(buffer) = self.memory.take(SIZE)
        {
            self.posted.extend(consumer.receive(buffer).ok());
        }
        if let Left::Running(producer) = &self.producer
            && self.sending.is_empty()
            && let Some(to) = self.connection.consumers().last()
            && let Ok(buffer) = self.memory.take(SIZE)
        {
            self.sending.extend(producer.send(to, buffer, &[]).ok());
        }
    }
}
