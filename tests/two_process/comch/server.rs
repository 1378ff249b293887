//! A server that does what the test says: it sends messages back, takes bulk data and sends them back.

use super::FUNCTION;
use crate::process::{LIMIT, Parent, Talk};
use doca::comch::{Connection, Consumer, Event, Events, Message, Pending, Producer, RemoteConsumer, Server};
use doca::{Access, Device, Memory, ProgressEngine, SharedBuffer};
use std::collections::VecDeque;

pub const SEND_TASKS: u32 = 16;
pub const RECV_QUEUE: u32 = 8;
/// Bytes of each buffer of the fast path.
pub const BULK: usize = 64 * 1024;
pub const BUFFERS: usize = 4;

/// Everything the server has.
struct Served {
    engine: ProgressEngine,
    device: Device,
    server: Server,
    events: Events,
    connections: Vec<Connection>,
    echoes: Vec<Echo>,
    message: Vec<u8>,
}

/// A fast path that sends back what comes, to the peer's newest consumer.
struct Echo {
    consumer: Consumer,
    producer: Producer,
    posted: Vec<Pending<Consumer, SharedBuffer>>,
    to: RemoteConsumer,
    /// To be sent back.
    back: VecDeque<Message<SharedBuffer>>,
    sending: Vec<Pending<Producer, SharedBuffer>>,
    /// Whether what comes is dropped instead.
    swallows: bool,
}

/// The role: its argument is the name of the server.
pub fn serve(parent: &mut Parent, args: &[String]) {
    let device = Device::open("mlx5_0").unwrap();
    let representor = device.representor(FUNCTION).unwrap();
    let engine = ProgressEngine::new().unwrap();
    let mut config = Server::configure(&device, &representor, &args[0]).unwrap();
    config.set_send_tasks(SEND_TASKS).unwrap();
    config.set_sends_per_connection(SEND_TASKS).unwrap();
    config.set_recv_queue_size(RECV_QUEUE).unwrap();
    let server = match config.start(&engine).and_then(|starting| starting.running_within(LIMIT)) {
        Ok(server) => server,
        Err(failed) => {
            parent.say(&failed.error.code().unwrap().name().replace("DOCA_ERROR_", ""));
            return;
        }
    };
    let events = server.events();
    parent.say("running");
    let mut served = Served {
        engine,
        device,
        server,
        events,
        connections: Vec::new(),
        echoes: Vec::new(),
        message: Vec::new(),
    };
    served.run(parent);
    let Served { server, connections, events, echoes, .. } = served;
    drop((connections, events));
    // Producers and consumers that are still there end with their server.
    server.stop().wait_for(LIMIT).unwrap();
    drop(echoes);
    parent.say("stopped");
}

impl Served {
    fn run(&mut self, parent: &mut Parent) {
        loop {
            self.engine.progress().unwrap();
            self.connections.extend(std::iter::from_fn(|| self.server.try_accept()));
            for event in self.events.by_ref() {
                if let Event::Disconnected(id) = event {
                    self.connections.retain(|connection| connection.id() != id);
                    parent.say("a client has gone");
                }
            }
            self.echo_messages();
            self.echoes.iter_mut().for_each(Echo::turn);
            match parent.said().as_deref() {
                None => {}
                Some("stop") => return,
                // Whoever does not progress takes no messages.
                Some("sleep") => {
                    parent.say("asleep");
                    parent.expect("wake");
                }
                Some("connections") => parent.say(&self.connections.len().to_string()),
                Some("disconnect") => {
                    for connection in &self.connections {
                        self.server.disconnect(connection.id()).unwrap();
                    }
                    parent.say("disconnected");
                }
                Some("fast path") => self.open_fast_path(parent),
                Some("swallow") => self.echoes.iter_mut().for_each(|echo| echo.swallows = true),
                Some("close fast path") => {
                    for echo in self.echoes.drain(..) {
                        echo.consumer.stop().wait_for(LIMIT).unwrap();
                        echo.producer.stop().wait_for(LIMIT).unwrap();
                    }
                    parent.say("closed");
                }
                Some(other) => panic!("{other}?"),
            }
        }
    }

    fn echo_messages(&mut self) {
        for connection in &self.connections {
            // One that cannot be sent back now is not taken: the peer waits.
            while connection.in_flight() < SEND_TASKS && connection.try_receive(&mut self.message) {
                connection.send(&self.message).unwrap();
            }
        }
    }

    /// A consumer and a producer on the newest connection, on which the peer has a consumer.
    fn open_fast_path(&mut self, parent: &mut Parent) {
        let connection = self.connections.last().unwrap();
        let to = connection.wait_consumer_for(&[], LIMIT).unwrap();
        let memory = Memory::zeroed(BUFFERS * BULK).unwrap();
        let memory = memory.shared(&self.device, Access::PCI_READ_WRITE).unwrap();
        let mut consumer = Consumer::configure(connection, &memory).unwrap().here();
        consumer.set_num_tasks(BUFFERS as u32).unwrap();
        consumer.set_imm_data_len(32).unwrap();
        let consumer = consumer.start(&self.engine).unwrap().running_within(LIMIT).unwrap();
        let producer = Producer::configure(connection).unwrap().start(&self.engine).unwrap();
        let producer = producer.running_within(LIMIT).unwrap();
        let post = |_| consumer.receive(memory.take(BULK).unwrap()).unwrap();
        let posted = (0..BUFFERS).map(post).collect();
        parent.say(&consumer.id().to_string());
        let (back, sending) = (VecDeque::new(), Vec::new());
        self.echoes.push(Echo { consumer, producer, posted, to, back, sending, swallows: false });
    }
}

impl Echo {
    fn turn(&mut self) {
        // What was flushed with its connection is not sent back.
        if let Some(index) = self.posted.iter().position(Pending::is_done)
            && let Ok(message) = self.posted.remove(index).wait()
        {
            if self.swallows {
                self.posted.extend(self.consumer.receive(message.buffer));
            } else {
                self.back.push_back(message);
            }
        }
        if let Some(message) = self.back.pop_front() {
            match self.producer.send(&self.to, message.buffer, &message.immediate) {
                Ok(sending) => self.sending.push(sending),
                // The peer has no buffer posted.
                Err(failed) if failed.error.is_retryable() => {
                    self.back.push_front(Message { buffer: failed.value, ..message });
                }
                Err(_) => {}
            }
        }
        if let Some(index) = self.sending.iter().position(Pending::is_done)
            && let Ok(buffer) = self.sending.swap_remove(index).wait()
        {
            self.posted.extend(self.consumer.receive(buffer));
        }
    }
}
