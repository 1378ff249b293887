//! Admin queues on a transport of the application's own, where the adapter knows I/O queues only (profile `sta-no-admin-qp`). The
//! transport here is `doca-rdma` by its bridge. DOCA reaches a peer's memory by export descriptors, not by the keys of NVMe commands, so
//! hosts hand those over beside the protocol; a transport on verbs has no need of that.

mod support;

use doca_common::{Buffer, Device, Memory, PrivateMemory, ProgressEngine, RemoteBuffer, RemoteMemory};
use doca_rdma::{Accepted, CmId, Connection, Key, Pending, Rdma, ReadTask, ReceiveTask, SendTask, WriteTask};
use doca_sim_initiator::Queue;
use doca_sta::cm::{CmChannel, CmNumber, Request};
use doca_sta_target::{AdminQueue, AdminTransport, Frontend, HostMemory, Step};
use nvme_wire::Status;
use nvme_wire::feature::{AsyncEvents, FeatureId};
use nvme_wire::log::LogId;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use support::{Ask, LIMIT, Serving, alone_under, host, verify, way};

/// What the transport's thread is told.
enum Say {
    Take(Request, [u8; 32], Frontend),
    Established(CmNumber),
    Gone(CmNumber),
    /// Key, address and descriptor of a host's memory.
    Memory(u32, u64, Vec<u8>),
}

struct Bridge(Sender<Say>);

impl Bridge {
    fn say(&self, say: Say) {
        self.0.send(say).expect("its thread lives");
    }
}

impl AdminTransport for Bridge {
    fn take(&mut self, request: Request, answer: [u8; 32], frontend: &Frontend) {
        self.say(Say::Take(request, answer, frontend.clone()));
    }

    fn established(&mut self, number: CmNumber) {
        self.say(Say::Established(number));
    }

    fn gone(&mut self, number: CmNumber) {
        self.say(Say::Gone(number));
    }
}

enum Link {
    Accepted(Accepted),
    Connected(Connection),
}

struct Admin {
    queue: AdminQueue,
    link: Option<Link>,
    _channel: CmChannel,
}

struct Serve<'a> {
    said: &'a Receiver<Say>,
    device: Device,
    rdma: Rdma,
    memory: PrivateMemory,
    sends: Key<SendTask>,
    reads: Key<ReadTask>,
    writes: Key<WriteTask>,
    hosts: HashMap<u32, (u64, RemoteMemory)>,
    queues: HashMap<CmNumber, Admin>,
}

/// The transport's thread: until its sender is gone.
fn serve(said: &Receiver<Say>) {
    let device = Device::open("mlx5_0").unwrap();
    let engine = ProgressEngine::new().unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    let receives = config.enable::<ReceiveTask>(64).unwrap();
    let (sends, reads) = (config.enable::<SendTask>(8).unwrap(), config.enable::<ReadTask>(8).unwrap());
    let writes = config.enable::<WriteTask>(8).unwrap();
    let rdma = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
    let memory = Memory::zeroed(1 << 20).unwrap().private(&device).unwrap();
    let receives = rdma.queue(receives).unwrap();
    let post = || receives.submit(memory.take(64).unwrap()).unwrap();
    let mut posted: Vec<Pending<ReceiveTask, Buffer>> = (0..64).map(|_| post()).collect();
    let (hosts, queues) = (HashMap::new(), HashMap::new());
    let mut serve = Serve { said, device, rdma, memory: memory.clone(), sends, reads, writes, hosts, queues };
    loop {
        match said.recv_timeout(Duration::from_millis(1)) {
            Ok(say) => serve.hear(say),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(_) => break,
        }
        engine.progress().unwrap();
        while let Some(place) = posted.iter().position(Pending::is_done) {
            let received = posted.remove(place).wait();
            posted.push(post());
            let Ok(received) = received else { continue };
            let from = received.connection();
            let is_it = |admin: &Admin| matches!(&admin.link, Some(Link::Connected(own)) if own.id() == from);
            let number = serve.queues.iter().find(|(_, admin)| is_it(admin)).map(|(number, _)| *number);
            let number = number.expect("commands come after the connection");
            let capsule = received.buffer[..received.message_len()].to_vec();
            let step = serve.queues.get_mut(&number).and_then(|admin| admin.queue.command(&capsule));
            serve.take(number, step);
        }
        for number in serve.queues.keys().copied().collect::<Vec<_>>() {
            let step = serve.queues.get_mut(&number).and_then(|admin| admin.queue.poll());
            serve.take(number, step);
        }
    }
}

impl Serve<'_> {
    fn hear(&mut self, say: Say) {
        match say {
            Say::Take(request, answer, frontend) => {
                let number = request.number();
                let (id, channel) = request.into_raw().unwrap();
                // SAFETY: an identifier with an unanswered request, given away by its owner; its channel is kept beside the connection.
                let id = unsafe { CmId::from_raw(id) }.unwrap();
                let accepted = self.rdma.bridge(id).unwrap().accept(&answer).unwrap();
                let queue = AdminQueue::new(&frontend, 64 << 10);
                let admin = Admin { queue, link: Some(Link::Accepted(accepted)), _channel: channel };
                self.queues.insert(number, admin);
            }
            Say::Established(number) => {
                let link = &mut self.queues.get_mut(&number).unwrap().link;
                *link = match link.take() {
                    Some(Link::Accepted(accepted)) => Some(Link::Connected(accepted.established().unwrap())),
                    other => other,
                };
            }
            Say::Gone(number) => {
                self.queues.remove(&number);
            }
            Say::Memory(key, address, descriptor) => {
                self.hosts.insert(key, (address, RemoteMemory::import(&self.device, descriptor).unwrap()));
            }
        }
    }

    fn remote(&mut self, memory: HostMemory, len: usize) -> RemoteBuffer {
        // Its host has told of it before it named it, but that may lie here still.
        while !self.hosts.contains_key(&memory.key) {
            let say = self.said.recv_timeout(LIMIT).expect("the host tells of its memory");
            self.hear(say);
        }
        let (start, remote) = &self.hosts[&memory.key];
        remote.range((memory.address - start) as usize, len).unwrap()
    }

    fn take(&mut self, number: CmNumber, mut step: Option<Step>) {
        while let Some(now) = step.take() {
            let data = match &now {
                Step::Fetch(fetch) => Some(self.remote(fetch.from, fetch.from.len as usize)),
                Step::Answer { data: Some((to, bytes)), .. } => Some(self.remote(*to, bytes.len())),
                _ => None,
            };
            let Some(Link::Connected(connection)) =
                self.queues.get(&number).and_then(|own| own.link.as_ref())
            else {
                return;
            };
            match (now, data) {
                (Step::Fetch(fetch), Some(remote)) => {
                    let buffer = self.memory.take(remote.len()).unwrap();
                    let reads = self.rdma.queue(self.reads).unwrap();
                    let fetched = reads.submit(connection, &remote, buffer).unwrap().wait_for(LIMIT).unwrap();
                    let data = fetched.buffer.to_vec();
                    step = self.queues.get_mut(&number).and_then(|admin| admin.queue.fetched(&fetch, &data));
                }
                (Step::Answer { data, response, .. }, remote) => {
                    if let (Some((_, bytes)), Some(remote)) = (data, remote) {
                        let mut buffer = self.memory.take(bytes.len()).unwrap();
                        buffer.fill_with(&bytes).unwrap();
                        let writes = self.rdma.queue(self.writes).unwrap();
                        writes.submit(connection, buffer, &remote).unwrap().wait_for(LIMIT).unwrap();
                    }
                    let mut buffer = self.memory.take(response.len()).unwrap();
                    buffer.fill_with(&response).unwrap();
                    let sends = self.rdma.queue(self.sends).unwrap();
                    // A host that has gone meanwhile hears nothing.
                    let _ = sends.submit(connection, buffer).unwrap().wait_for(LIMIT);
                }
                (Step::Disconnect(_) | Step::Fetch(_), _) => {
                    self.queues.remove(&number);
                }
            }
        }
    }
}

const PROFILE: &str = "sta-no-admin-qp";

#[test]
fn the_whole_target_works_with_admin_queues_of_the_application() {
    alone_under("the_whole_target_works_with_admin_queues_of_the_application", PROFILE, "", || {
        let (say, said) = channel();
        let transport = std::thread::spawn(move || serve(&said));
        let serving = Serving::start_with(Some(Box::new(Bridge(say.clone()))));
        let admin = Queue::dial(&way(), 0, 32).unwrap();
        let (key, address, descriptor) = admin.export().unwrap();
        say.send(Say::Memory(key, address, descriptor)).unwrap();
        drop(say);
        let mut controller = host().open_on(admin, &way()).unwrap();
        assert_eq!(controller.identity().sn.0[..2], *b"S1");
        assert_eq!(controller.namespaces().unwrap(), [1]);
        // Opcode 2, as Read has it.
        controller.log_page(LogId::ERROR, 0, 0, 64).unwrap();
        assert_eq!(controller.set_num_queues(4).unwrap(), 4);
        let report = verify(&mut controller, Duration::from_millis(200));
        assert!(report.reads > 0);
        controller.keep_alive().unwrap();
        assert_eq!(serving.statistics().threads[0].accepted, 2, "only I/O queues are STA's");
        let wanted = AsyncEvents { namespace_attributes: true, ..AsyncEvents::default() };
        controller.set_feature(FeatureId::ASYNC_EVENTS, wanted.into()).unwrap();
        controller.request_event().unwrap();
        serving.asks.send(Ask::Remove(1)).unwrap();
        serving.until("the namespace leaves", |now| now.namespaces.is_empty());
        let mut event = None;
        while event.is_none() {
            controller.keep_alive().unwrap();
            event = controller.event().unwrap();
        }
        assert_eq!(controller.namespaces().unwrap(), []);
        controller.shutdown().unwrap();
        drop(controller);
        serving.until("the queue ends", |now| now.queues == 0 && now.controllers == 0);
        serving.stop();
        transport.join().unwrap();
    });
}

#[test]
fn without_them_such_an_adapter_takes_a_log_for_a_read() {
    alone_under("without_them_such_an_adapter_takes_a_log_for_a_read", PROFILE, "", || {
        let serving = Serving::start();
        let mut controller = host().open(&way()).unwrap();
        let refused = controller.log_page(LogId::ERROR, 0, 0, 64).unwrap_err();
        assert!(refused.status().is_some_and(|status| status.is(Status::INVALID_NAMESPACE)), "{refused}");
        drop(controller);
        serving.stop();
    });
}
