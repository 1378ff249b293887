//! Everything of RDMA and of what it stands on, within one process.

use crate::scenes::{LIMIT, expect};
use doca::caps::Snapshot;
use doca::event::{
    AddTask, Condition, GetTask, Publisher, SetTask, Subscriber, WaitEqualTask, WaitNotEqualTask,
};
use doca::rdma::{
    Address, CompareSwapTask, Config, Connection, Decision, EventAddTask, EventGetTask, EventSetTask,
    FetchAddTask, Key, Mtu, Queue, Rdma, ReadTask, ReceiveTask, SendImmTask, SendTask, TransportType,
    WriteImmTask, WriteTask, caps, gid,
};
use doca::representor::Filter;
use doca::{
    Access, AsyncEvent, Buffer, Chain, Device, DeviceInfo, Error, Memory, PrivateMemory, ProgressEngine,
    Refusal, RemoteEvent, RemoteMemory, Result, SyncEvent, log,
};
use std::time::Duration;

/// The network is this process's own, so nobody else has the port.
const PORT: u16 = 4711;

/// Runs everything; `told` gets what fails without ending the rest.
pub fn run(told: &mut dyn FnMut(&str)) -> Result<()> {
    log::route_sdk(::log::LevelFilter::Warn)?;
    let device = devices(told)?;
    events_of_this_process(&device)?;
    let engine = ProgressEngine::new()?;
    event_as_context(&device, &engine)?;
    let memory = Memory::zeroed(1 << 16)?.private(&device)?;
    let mut asker = configure(&device)?;
    let mut asked = configure(&device)?;
    let (keys, answers) = (Keys::enable(&mut asker)?, asked.enable(4)?);
    let sends = asked.enable::<SendTask>(4)?;
    let pair = Pair::start(&engine, [asker, asked], &keys, answers)?;
    pair.properties()?;
    pair.messages(&memory)?;
    pair.one_sided(&device, &memory)?;
    pair.event_tasks(&device, &memory)?;
    pair.notified(&engine, &memory)?;
    pair.cm(&device, &engine, &memory)?;
    let Pair { asker, asked, there, back, .. } = pair;
    // Descriptors leave telling the peer to the program.
    for connection in [&there, &back] {
        connection.disconnect()?;
        connection.wait_disconnected_for(LIMIT)?;
    }
    let stopped = [asker.stop().wait_for(LIMIT)?, asked.stop().wait_for(LIMIT)?];
    // Once more, and then everything is dropped as it is.
    let again = Pair::start(&engine, stopped, &keys, answers)?;
    again.asked.queue(sends)?;
    again.messages(&memory)
}

/// The list, every answer of a device, and one that is opened.
pub fn devices(told: &mut dyn FnMut(&str)) -> Result<Device> {
    let found = Device::find().with(caps::SEND).with(caps::RECEIVE).list()?;
    let info = found.first().ok_or_else(|| Error::refused("scenario", Refusal::NoDevice))?;
    describe(info)?;
    let of_events = Snapshot::of(info, doca::event::CAPABILITIES);
    for snapshot in [info.capabilities(), caps::snapshot(info), of_events] {
        snapshot.iter().filter_map(|(_, answer)| answer.err()).for_each(&mut *told);
    }
    gid::table(info)?;
    gid::roce_v2(info)?;
    info.open()
}

/// What only a DPU has: functions of its host.
pub fn run_on_dpu(told: &mut dyn FnMut(&str)) -> Result<()> {
    let device = devices(told)?;
    let all = device.representors(Filter::All)?;
    let first = all.first().ok_or_else(|| Error::refused("scenario", Refusal::NoDevice))?;
    let address = first.pci_address()?;
    first.vuid()?;
    drop(first.open()?);
    device.representor(&address)?;
    Ok(())
}

fn describe(info: &DeviceInfo) -> Result<()> {
    info.pci_address()?;
    info.ibdev_name()?;
    info.iface_name()?;
    info.ipv4_address()?;
    info.ipv6_address()?;
    info.mac_address()?;
    info.lid()?;
    info.active_rate()?;
    info.vhca_id()?;
    Ok(())
}

fn events_of_this_process(device: &Device) -> Result<()> {
    let event = SyncEvent::new(Publisher::Cpu(device), Subscriber::Cpu(device))?;
    event.set(5)?;
    event.add(2)?;
    event.wait_for(Condition::Equal(7), LIMIT)?;
    let crossing = SyncEvent::new(Publisher::Cpu(device), Subscriber::RemotePci)?;
    crossing.export_pci(device)?;
    SyncEvent::new(Publisher::RemotePci, Subscriber::Cpu(device))?;
    Ok(())
}

/// Each kind of task twice, with the same C task.
fn event_as_context(device: &Device, engine: &ProgressEngine) -> Result<()> {
    let mut config = AsyncEvent::configure(Publisher::RemoteNet, Subscriber::Cpu(device))?;
    let (gets, sets, adds) =
        (config.enable::<GetTask>(1)?, config.enable::<SetTask>(1)?, config.enable::<AddTask>(1)?);
    let (equals, others) = (config.enable::<WaitEqualTask>(1)?, config.enable::<WaitNotEqualTask>(1)?);
    let event = config.start(engine)?.running_within(LIMIT)?;
    event.export_net()?;
    let (gets, sets, adds) = (event.queue(gets)?, event.queue(sets)?, event.queue(adds)?);
    let (equals, others) = (event.queue(equals)?, event.queue(others)?);
    for value in [1, 2] {
        sets.submit(value)?.wait_for(LIMIT)?;
        equals.submit(value, u64::MAX)?.wait_for(LIMIT)?;
        expect(adds.submit(8)?.wait_for(LIMIT)? == value)?;
        others.submit(value, 0xff)?.wait_for(LIMIT)?;
        expect(gets.submit()?.wait_for(LIMIT)? == value + 8)?;
    }
    event.stop().wait_for(LIMIT)?;
    Ok(())
}

/// Every setter that CPUs have.
fn configure(device: &Device) -> Result<Config> {
    let mut config = Rdma::configure(device)?;
    config.set_transport_type(TransportType::RC)?;
    config.set_send_queue_size(64)?;
    config.set_max_send_buf_list_len(4)?;
    config.set_receive_buf_list_len(2)?;
    config.set_mtu(Mtu::KIB_1)?;
    config.set_permissions(Access::ANY_RDMA)?;
    config.set_grh_enabled(true)?;
    let gid = config.set_gid_roce_v2()?;
    config.set_gid_index(gid.index)?;
    config.set_sl(0)?;
    config.set_connection_request_timeout(Duration::from_secs(1))?;
    config.set_max_num_connections(4)?;
    config.set_rnr_retry_count(3)?;
    Ok(config)
}

macro_rules! keys {
    ($($name:ident: $task:ty,)*) => {
        /// What the asker submits.
        struct Keys { $($name: Key<$task>,)* }

        /// Where the asker submits.
        struct Queues { $($name: Queue<$task>,)* }

        impl Keys {
            fn enable(config: &mut Config) -> Result<Self> {
                Ok(Keys { $($name: config.enable::<$task>(2)?,)* })
            }

            fn queues(&self, rdma: &Rdma) -> Result<Queues> {
                Ok(Queues { $($name: rdma.queue(self.$name)?,)* })
            }
        }
    };
}

keys! {
    sends: SendTask,
    imms: SendImmTask,
    reads: ReadTask,
    writes: WriteTask,
    write_imms: WriteImmTask,
    swaps: CompareSwapTask,
    adds: FetchAddTask,
    gets: EventGetTask,
    sets: EventSetTask,
    event_adds: EventAddTask,
}

/// Two contexts that are connected with each other.
struct Pair {
    asker: Rdma,
    asked: Rdma,
    queues: Queues,
    receives: Queue<ReceiveTask>,
    there: Connection,
    back: Connection,
}

impl Pair {
    fn start(
        engine: &ProgressEngine,
        [asker, asked]: [Config; 2],
        keys: &Keys,
        answers: Key<ReceiveTask>,
    ) -> Result<Self> {
        // A context may run before it is connected, or not.
        let (asker, asked) = (asker.start(engine)?, asked.start(engine)?);
        let (ours, to_us) = asker.export()?;
        let (theirs, to_them) = asked.export()?;
        let (there, back) = (ours.connect(to_them)?, theirs.connect(to_us)?);
        let (asker, asked) = (asker.running_within(LIMIT)?, asked.running_within(LIMIT)?);
        Ok(Pair { queues: keys.queues(&asker)?, receives: asked.queue(answers)?, there, back, asker, asked })
    }

    fn properties(&self) -> Result<()> {
        let rdma = &self.asker;
        self.there.number()?;
        rdma.send_queue_size()?;
        rdma.max_send_buf_list_len()?;
        rdma.receive_buf_list_len()?;
        rdma.transport_type()?;
        rdma.mtu()?;
        rdma.permissions()?;
        rdma.grh_enabled()?;
        rdma.gid_index()?;
        rdma.sl()?;
        rdma.max_num_connections()?;
        rdma.rnr_retry_count()?;
        rdma.connection_request_timeout()?;
        Ok(())
    }

    fn messages(&self, memory: &PrivateMemory) -> Result<()> {
        let receive = |room| self.receives.submit(memory.take(room)?).map_err(Error::from);
        let mut received = receive(64)?;
        let mut chain = Chain::new(memory.take(3)?);
        chain.push(memory.take(5)?)?;
        self.queues.sends.submit(&self.there, chain)?.wait_for(LIMIT)?;
        expect(received.wait_for(LIMIT)?.message_len() == 8)?;
        let mut received = receive(64)?;
        let mut shortened = memory.take(8)?;
        shortened.set_len(4)?;
        self.queues.imms.submit(&self.there, shortened, 99)?.wait_for(LIMIT)?;
        expect(received.wait_for(LIMIT)?.immediate() == Some(99))
    }

    fn one_sided(&self, device: &Device, memory: &PrivateMemory) -> Result<()> {
        let shared = Memory::zeroed(4096)?.shared(device, Access::ANY_RDMA)?;
        let remote = RemoteMemory::import(device, shared.export()?)?;
        let (range, cell) = (remote.range(0, 64)?, remote.cell(64)?);
        let Queues { reads, writes, write_imms, swaps, adds, .. } = &self.queues;
        writes.submit(&self.there, memory.take(64)?, &range)?.wait_for(LIMIT)?;
        reads.submit(&self.there, &range, memory.take(64)?)?.wait_for(LIMIT)?;
        let mut received = self.receives.submit(())?;
        write_imms.submit(&self.there, memory.take(8)?, &range, 7)?.wait_for(LIMIT)?;
        expect(received.wait_for(LIMIT)?.immediate() == Some(7))?;
        let word = swaps.submit(&self.there, &cell, memory.take(8)?, 0, 4)?.wait_for(LIMIT)?;
        let word = adds.submit(&self.there, &cell, word.buffer, 1)?.wait_for(LIMIT)?;
        expect(word.value == 4 && shared.cell(64)?.load() == 5)
    }

    fn event_tasks(&self, device: &Device, memory: &PrivateMemory) -> Result<()> {
        let event = SyncEvent::new(Publisher::RemoteNet, Subscriber::Cpu(device))?;
        let remote = RemoteEvent::import(device, event.export_net()?)?;
        let Queues { gets, sets, event_adds, .. } = &self.queues;
        let source = number(memory, 3)?;
        let source = sets.submit(&self.there, &remote, source)?.wait_for(LIMIT)?;
        let word = event_adds.submit(&self.there, &remote, source, 4)?.wait_for(LIMIT)?;
        let word = gets.submit(&self.there, &remote, word.buffer)?.wait_for(LIMIT)?;
        expect(word.value == 7 && event.get()? == 7)
    }

    /// Sleeps in the kernel, as event loops do, instead of polling.
    fn notified(&self, engine: &ProgressEngine, memory: &PrivateMemory) -> Result<()> {
        engine.notification_handle()?;
        engine.arm()?;
        let received = self.receives.submit(memory.take(8)?)?;
        expect(engine.in_flight()? == 1)?;
        expect(!engine.wait_for(Duration::from_millis(5))?)?;
        drop(self.queues.sends.submit(&self.there, memory.take(8)?)?);
        while !received.is_done() {
            expect(engine.wait_for(LIMIT)?)?;
        }
        Ok(())
    }

    /// One peer is turned away, and one taken.
    fn cm(&self, device: &Device, engine: &ProgressEngine, memory: &PrivateMemory) -> Result<()> {
        let mut peers = 0;
        let listener = self.asked.listen(PORT, move |_| {
            peers += 1;
            if peers == 1 { Decision::reject() } else { Decision::accept() }
        })?;
        let ip = device.info().ipv4_address()?.ok_or_else(|| Error::refused("scenario", Refusal::Gid))?;
        let connect = || self.asker.connect_addr(Address::from(std::net::SocketAddr::from((ip, PORT))));
        let turned_away = connect()?.wait_for(LIMIT);
        expect(turned_away.is_err_and(|failed| failed.value.is_none()))?;
        let there = connect()?.wait_for(LIMIT)?;
        let back = listener.wait_for(LIMIT)?;
        let mut received = self.receives.submit(memory.take(8)?)?;
        self.queues.sends.submit(&there, memory.take(8)?)?.wait_for(LIMIT)?;
        expect(received.wait_for(LIMIT)?.connection() == back.id())?;
        drop(listener);
        while engine.progress()? {}
        back.disconnect()?;
        there.wait_disconnected_for(LIMIT)
    }
}

fn number(memory: &PrivateMemory, value: u64) -> Result<Buffer> {
    let mut buffer = memory.take(8)?;
    buffer.copy_from_slice(&value.to_ne_bytes());
    Ok(buffer)
}
