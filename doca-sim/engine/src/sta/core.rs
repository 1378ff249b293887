//! What an instance is to all threads that meet in it: the one of its control context, those of its IO contexts, and the
//! engine's own, which does the work of the execution units.
//!
//! There is one lock. Programs' code never runs under it.

use super::backend::{BackEnd, Queue};
use super::handle::{self, Handle, Kind};
use super::inbox::Io;
use super::memory::{Allocator, Buffer, Staging};
use super::nvme::COMPLETION;
use super::offload::Offload;
use super::qp::Qp;
use super::stats::{self, Counters};
use super::subsystem::{Namespace, Subsystem};
use crate::code::{Code, Res};
use crate::ctx::CtxState;
use crate::fabric::clock;
use crate::fault;
use crate::lock::lock;
use crate::log;
use crate::profile;
use crate::sleeper::Pipe;
use crate::task::Task;
use crate::topology::{self, StaCaps, StaLimits};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::CString;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

/// An instance.
pub(crate) struct Core {
    /// The control device: a position in the topology.
    pub(super) control: usize,
    /// What the library says without being asked about a device.
    pub(crate) limits: &'static StaLimits,
    /// What the control device can do.
    pub(crate) caps: &'static StaCaps,
    state: Mutex<State>,
    /// Threads of the program that want the lock: the engine's thread lets them in first.
    wanted: AtomicUsize,
    pub(super) pipe: Pipe,
    /// The address of its control context.
    pub(super) owner: AtomicUsize,
}

/// What the lock guards.
pub(crate) struct State {
    /// Apart from the rest, which they change.
    pub(super) qps: BTreeMap<Handle, Qp>,
    /// The rest.
    pub(super) target: Target,
}

/// All of an instance but its queue pairs.
pub(crate) struct Target {
    number: u16,
    serial: u32,
    /// Where the control context is in its life.
    pub(super) phase: CtxState,
    /// The engine's thread has looked around once.
    pub(super) ready: bool,
    /// The engine's thread is to end.
    pub(super) ending: bool,
    /// The engine's thread has panicked.
    pub(super) broken: bool,
    /// Devices for queue pairs.
    pub(super) network: Vec<usize>,
    pub(super) allocator: Option<Allocator>,
    pub(super) max_sta_io: u16,
    /// IO contexts that exist.
    pub(super) io_contexts: u16,
    pub(super) next_io: u32,
    /// IO contexts that are started.
    pub(super) ios: BTreeMap<u32, Io>,
    pub(super) subsystems: BTreeMap<Handle, Subsystem>,
    pub(super) spaces: BTreeMap<Handle, Namespace>,
    pub(super) ends: BTreeMap<Handle, BackEnd>,
    pub(super) queues: BTreeMap<Handle, Queue>,
    pub(super) units: Vec<Unit>,
    /// Commands that the units serve, by number.
    pub(super) commands: BTreeMap<u64, Offload>,
    pub(super) next_command: u64,
    /// The queue pair that is served first: the one that went without last time.
    pub(super) turn: Handle,
    /// Buffers for data.
    pub(super) staging: Staging,
    /// Buffers that silent disks may still write to.
    pub(super) lost: Vec<Buffer>,
    /// Commands that one unit may hold.
    pub(super) max_commands: u32,
    /// How long a disk may take, in nanoseconds.
    pub(super) patience: u64,
    pub(super) inbox: VecDeque<ControlEvent>,
    /// Where a byte wakes the program's control thread, if it sleeps.
    pub(super) wake: Option<i32>,
    /// Whether the program wants to hear of error answers.
    pub(super) notifies: bool,
}

/// Something for the control thread.
#[derive(Clone, Copy)]
pub(super) enum ControlEvent {
    Done { task: usize, code: Code },
    BackEndTimeout { end: Handle, queue: Handle },
    UnitError { fatal: bool, unit: Handle },
    Notify(Notice),
}

/// An answer with an error status that a unit has given.
#[derive(Clone, Copy)]
pub(crate) struct Notice {
    /// 0: the command was at fault, 1: the disk said so.
    pub(crate) kind: u32,
    pub(crate) completion: [u8; COMPLETION],
    pub(crate) subsystem: Handle,
    pub(crate) qp: Handle,
    pub(crate) opcode: u8,
    pub(crate) cid: u16,
    pub(crate) nsid: u16,
    pub(crate) lba: u64,
    pub(crate) location: u16,
}

/// `enum dpa_sta_eu_type`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnitKind {
    Comp = 1,
    Tx = 2,
    Beq = 3,
}

/// An execution unit.
pub(crate) struct Unit {
    pub(super) handle: Handle,
    pub(super) kind: UnitKind,
    pub(super) id: u16,
    pub(super) name: CString,
    pub(super) counters: Counters,
    /// Queue pairs of a unit that handles completions.
    pub(super) qps: u32,
    /// Commands that it holds.
    pub(super) commands: u32,
}

/// The lock, held by a thread of the program.
pub(crate) struct Held<'a>(MutexGuard<'a, State>);

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

impl Core {
    pub(super) fn new(control: usize, caps: &'static StaCaps) -> Res<Arc<Core>> {
        let limits = &topology::get()?.sta;
        let pipe = Pipe::new()?;
        handle::enlist(|number| {
            Arc::new(Core {
                control,
                limits,
                caps,
                state: Mutex::new(State { qps: BTreeMap::new(), target: Target::new(number, caps) }),
                wanted: AtomicUsize::new(0),
                pipe,
                owner: AtomicUsize::new(0),
            })
        })
    }

    /// The lock, for a thread of the program.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.wanted.fetch_add(1, SeqCst);
        let guard = lock(&self.state);
        self.wanted.fetch_sub(1, SeqCst);
        Held(guard)
    }

    /// The lock, for the engine's thread.
    pub(super) fn serve(&self) -> MutexGuard<'_, State> {
        while self.wanted.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
        lock(&self.state)
    }

    /// There is something to do for the engine's thread.
    pub(super) fn kick(&self) {
        self.pipe.wake();
    }
}

impl Target {
    fn new(number: u16, caps: &'static StaCaps) -> Target {
        let mut target = Target {
            number,
            serial: 0,
            phase: CtxState::Idle,
            ready: false,
            ending: false,
            broken: false,
            network: Vec::new(),
            allocator: None,
            max_sta_io: 1,
            io_contexts: 0,
            next_io: 0,
            ios: BTreeMap::new(),
            subsystems: BTreeMap::new(),
            spaces: BTreeMap::new(),
            ends: BTreeMap::new(),
            queues: BTreeMap::new(),
            units: Vec::new(),
            commands: BTreeMap::new(),
            next_command: 0,
            turn: Handle::from_bits(0),
            staging: Staging::default(),
            lost: Vec::new(),
            max_commands: caps.max_io_num_per_dev,
            patience: clock::millis(caps.be_timeout_ms.into()),
            inbox: VecDeque::new(),
            wake: None,
            notifies: false,
        };
        target.units = units(&mut target, caps.max_num_eus_available);
        target
    }

    /// A handle that was never used.
    pub(super) fn handle(&mut self, kind: Kind) -> Handle {
        self.serial = self.serial.wrapping_add(1);
        Handle::new(kind, self.number, self.serial)
    }

    /// BAD_STATE unless the control context is where subsystems and back ends may be changed.
    pub(super) fn require_setup(&self) -> Res {
        let profile = profile::get();
        let allowed = match self.phase {
            CtxState::Idle => profile.sta_setup_idle || profile.sta_setup_any,
            CtxState::Running => !profile.sta_setup_idle || profile.sta_setup_any,
            CtxState::Starting | CtxState::Stopping => false,
        };
        if !allowed {
            log::error!(
                "doca_sta is {:?}: subsystems and back ends are changed in another state",
                self.phase
            );
            return Err(Code::BAD_STATE);
        }
        Ok(())
    }

    /// BAD_STATE unless the control context runs.
    pub(super) fn require_running(&self) -> Res {
        if self.phase != CtxState::Running {
            log::error!("doca_sta is {:?} where it must be running", self.phase);
            return Err(Code::BAD_STATE);
        }
        Ok(())
    }

    /// Something for the control thread.
    pub(super) fn tell(&mut self, event: ControlEvent) {
        self.inbox.push_back(event);
        wake(self.wake);
    }

    /// Whether there is something that the control thread can be told, as for IO contexts.
    pub(super) fn has_event(&self) -> bool {
        match self.inbox.front() {
            Some(ControlEvent::Done { task, .. }) => !fault::is_held(*task as *const Task),
            other => other.is_some(),
        }
    }

    /// Takes it.
    pub(super) fn next_event(&mut self) -> Option<ControlEvent> {
        if self.has_event() { self.inbox.pop_front() } else { None }
    }

    /// The units of a kind, by position.
    pub(super) fn units_of(&self, kind: UnitKind) -> impl Iterator<Item = usize> + '_ {
        self.units.iter().enumerate().filter(move |(_, unit)| unit.kind == kind).map(|(index, _)| index)
    }
}

/// Half of the units handle completions, the others transmit or serve back ends.
fn units(target: &mut Target, count: u32) -> Vec<Unit> {
    let (tx, beq) = ((count / 4).max(1), (count / 4).max(1));
    let comp = count.saturating_sub(tx + beq).max(1);
    let kinds = [
        (UnitKind::Comp, comp, "comp", stats::comp::NAMES),
        (UnitKind::Tx, tx, "tx", stats::tx::NAMES),
        (UnitKind::Beq, beq, "beq", stats::beq::NAMES),
    ];
    let mut units = Vec::new();
    for (kind, count, name, counters) in kinds {
        for id in 0..count as u16 {
            units.push(Unit {
                handle: target.handle(Kind::Unit),
                kind,
                id,
                name: CString::new(format!("{name}{id}")).unwrap_or_default(),
                counters: Counters::new(counters),
                qps: 0,
                commands: 0,
            });
        }
    }
    units
}

/// Wakes a program that sleeps on this descriptor.
pub(super) fn wake(fd: Option<i32>) {
    if let Some(fd) = fd {
        crate::sleeper::wake(fd);
    }
}
