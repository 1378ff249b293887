//! A storage target with a disk that does nothing, and an initiator that is a context of DOCA in the same process. It
//! has no memory for the data of its commands, so each that moves some ends its connection.

use crate::bridge::{listen, request};
use crate::disk::Counted;
use crate::scenes::{LIMIT, Told, expect, until};
use doca::rdma::{Address, Connecting, Connection, Pending, Queue, Rdma, ReceiveTask, SendTask};
use doca::sta::cm::{CmEvent, Listener};
use doca::sta::event::{EuKind, Event, IoEvent};
use doca::sta::{Command, Io, Namespace, PlainAllocator, Qp, SqSize, Sta, Subsystem, caps, completion};
use doca::{Buffer, Device, Error, Memory, PrivateMemory, ProgressEngine, Refusal, Result};
use std::sync::atomic::Ordering;

const NQN: &str = "nqn.2014-08.org.example:one";
/// Opcodes of NVMe.
const FABRICS: u8 = 0x7F;
const IDENTIFY: u8 = 0x06;
const SET_FEATURES: u8 = 0x09;
const WRITE: u8 = 0x01;

/// Everything that a target does.
pub fn run(told: Told<'_>) -> Result<()> {
    let info = Device::find().with(caps::SUPPORTED).list()?.remove(0);
    caps::snapshot(&info).iter().filter_map(|(_, answer)| answer.err()).for_each(told);
    let device = info.open()?;
    let engine = ProgressEngine::new()?;
    let mut config = Sta::configure(&device)?;
    config.add_network(&device)?;
    config.set_io_contexts(2)?;
    expect(config.io_contexts()? == 2)?;
    config.set_allocator(PlainAllocator::new())?;
    let (queue, deleted) = Counted::new(64);
    let back_end = config.add_back_end(vec![queue])?;
    let subsystem = config.add_subsystem(NQN)?;
    let namespace = Namespace { subsystem, nsid: 1, block_size: 512, back_end, disk_nsid: 1 };
    let namespace = config.add_namespace(namespace)?;
    let sta = config.start(&engine)?.running_within(LIMIT)?;
    sta.namespace_counters(namespace)?;
    sta.back_end_counters(back_end)?;
    expect(sta.eu_counters()?.iter().any(|(eu, _)| eu.kind == EuKind::Completion))?;
    sta.eu_connections()?;
    sta.eu_states()?;
    sta.reset_eu_counters()?;
    let subsystem = sta.subsystem(subsystem)?;

    let io = sta.io_seed()?.start(&engine)?.running_within(LIMIT)?;
    drop(sta.io_seed()?);
    let listener = listen(&device)?;
    let initiator = Initiator::start(&engine, &device)?;
    // A connection each, since what fails in the transport is the end of one.
    let session = Session { engine: &engine, io: &io, subsystem: &subsystem, initiator: &initiator };
    let asking = initiator.ask(&listener)?;
    let qp = io.accept(request(&listener, &engine)?, &[0; 32])?;
    session.serve(&qp, asking, &listener, IDENTIFY)?;
    let spare = io.spare(&device)?;
    let asking = initiator.ask(&listener)?;
    let other = spare.accept(request(&listener, &engine)?, &[0; 32])?;
    session.serve(&other, asking, &listener, SET_FEATURES)?;
    let mut events = sta.events();
    let asking = initiator.ask(&listener)?;
    let last = io.accept(request(&listener, &engine)?, &[0; 32])?;
    session.serve(&last, asking, &listener, WRITE)?;
    until(&engine, || Ok(events.find(|event| matches!(event, Event::EuFailed { .. })).map(drop)))?;
    drop((qp, other, last, events));

    let mut events = sta.events();
    let mut until_gone = |is_gone: &dyn Fn(Option<Event>) -> bool| {
        until(&engine, || match events.next() {
            Some(Event::Stuck { call, code }) => Err(Error::doca(call, code)),
            event => Ok(is_gone(event).then_some(())),
        })
    };
    sta.remove_namespace(namespace)?;
    until_gone(&|event| event == Some(Event::NamespaceRemoved(namespace)))?;
    sta.remove_back_end(back_end)?;
    // Its queue: there are releases that let the disk itself go after the stop only.
    until_gone(&|_| deleted.load(Ordering::Relaxed) == 1)?;
    io.close(LIMIT)?;
    sta.stop().wait_for(LIMIT)?;
    Ok(())
}

/// What serving a connection needs.
struct Session<'a> {
    engine: &'a ProgressEngine,
    io: &'a Io,
    subsystem: &'a Subsystem,
    initiator: &'a Initiator,
}

impl Session<'_> {
    /// Answers a Connect command, and takes one whose data cannot be moved.
    fn serve(&self, qp: &Qp, asking: Connecting, listener: &Listener, opcode: u8) -> Result<()> {
        let there = asking.wait_for(LIMIT)?;
        until(self.engine, || Ok(matches!(listener.next()?, Some(CmEvent::Established(_))).then_some(())))?;
        qp.established()?;
        qp.number()?;
        qp.port()?;
        qp.place()?;
        let mut answer = self.initiator.receive()?;
        self.initiator.send(&there, FABRICS, 0)?;
        let connect = self.next()?;
        qp.bind(self.subsystem)?;
        qp.set_sq_size(SqSize::from_connect(31))?;
        connect.respond(completion(&[0; 8], 1, 0))?;
        answer.wait_for(LIMIT)?;
        let mut events = self.io.events();
        if opcode == WRITE {
            // Of no namespace: the adapter itself answers, and tells.
            let mut answer = self.initiator.receive()?;
            self.initiator.send(&there, WRITE, 99)?;
            answer.wait_for(LIMIT)?;
        }
        self.initiator.send(&there, opcode, 1)?;
        if opcode != WRITE {
            let command = self.next()?;
            match command.needs_fetch() {
                true => command.fetch()?,
                false => command.respond_with_data(completion(&[0; 8], 1, 0))?,
            }
        }
        // There is no such memory.
        until(self.engine, || Ok(events.find(|event| matches!(event, IoEvent::Transport(_))).map(drop)))
    }

    fn next(&self) -> Result<Command> {
        let command = self.io.command_within(LIMIT)?;
        command.ok_or_else(|| Error::refused("scenario", Refusal::TimedOut))
    }
}

/// Who sends commands.
struct Initiator {
    rdma: Rdma,
    memory: PrivateMemory,
    sends: Queue<SendTask>,
    receives: Queue<ReceiveTask>,
    _own: Connection,
}

impl Initiator {
    fn start(engine: &ProgressEngine, device: &Device) -> Result<Self> {
        let mut config = Rdma::configure(device)?;
        config.set_gid_roce_v2()?;
        config.set_max_num_connections(4)?;
        let (sends, receives) = (config.enable(4)?, config.enable(4)?);
        let memory = Memory::zeroed(4096)?.private(device)?;
        let starting = config.start(engine)?;
        // A context may run only when it was connected: with itself, over descriptors.
        let (exported, own) = starting.export()?;
        let own = exported.connect(own)?;
        let rdma = starting.running_within(LIMIT)?;
        let (sends, receives) = (rdma.queue(sends)?, rdma.queue(receives)?);
        Ok(Initiator { rdma, memory, sends, receives, _own: own })
    }

    fn ask(&self, listener: &Listener) -> Result<Connecting> {
        self.rdma.connect_addr(Address::from(listener.address()))
    }

    fn receive(&self) -> Result<Pending<ReceiveTask, Buffer>> {
        Ok(self.receives.submit(self.memory.take(64)?)?)
    }

    /// Sends a command that names 512 bytes of memory which is not there.
    fn send(&self, to: &Connection, opcode: u8, nsid: u8) -> Result<()> {
        let mut capsule = self.memory.take(64)?;
        capsule.fill(0);
        (capsule[0], capsule[1], capsule[2], capsule[4]) = (opcode, 0x40, 1, nsid);
        if opcode == FABRICS {
            // Connect, of a queue for I/O.
            (capsule[4], capsule[42]) = (1, 1);
        }
        // Length and type of the descriptor: a key.
        (capsule[33], capsule[39]) = (2, 0x40);
        self.sends.submit(to, capsule)?.wait_for(LIMIT)?;
        Ok(())
    }
}
