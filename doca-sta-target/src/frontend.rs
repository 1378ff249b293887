//! The engine as threads share it, and where its actions go.

use crate::engine::{Action, Engine, EngineCounts, Outcome, QueueKey};
use crate::model::NamespaceInfo;
use doca_sta::cm::{CmNumber, Request};
use nvme_wire::{Sqe, Status};
use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// What a thread that carries queues is told.
pub enum Told {
    /// Something is to be done about a queue.
    Action(Action),
    /// A disk executed a command.
    Executed {
        /// The queue.
        queue: QueueKey,
        /// Which command that was handed to it.
        ticket: u64,
        /// How it ended.
        status: Status,
    },
    /// Take this connection.
    Accept {
        /// The request.
        request: Request,
        /// Its key.
        queue: QueueKey,
        /// Private data of the answer.
        answer: [u8; 32],
    },
    /// RDMA CM says that the initiator is there.
    Established(QueueKey),
    /// RDMA CM says that the initiator is gone.
    Gone(QueueKey),
    /// End all queues, then the thread.
    Close,
}

struct Inside {
    engine: Engine,
    routes: HashMap<QueueKey, Sender<Told>>,
}

/// The engine of a target, for all threads and transports.
#[derive(Clone)]
pub struct Frontend {
    inside: Arc<Mutex<Inside>>,
    began: Instant,
}

impl Frontend {
    pub(crate) fn new(engine: Engine) -> Self {
        let inside = Inside { engine, routes: HashMap::new() };
        Frontend { inside: Arc::new(Mutex::new(inside)), began: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Does something with the engine, and sends the actions that come of it.
    fn with<T>(&self, body: impl FnOnce(&mut Engine) -> T) -> T {
        let mut inside = self.lock();
        let result = body(&mut inside.engine);
        for action in inside.engine.take_actions() {
            let (Action::Complete { queue, .. } | Action::Disconnect { queue, .. }) = &action;
            // A thread that has ended has no queues to act on.
            if let Some(route) = inside.routes.get(queue) {
                let _ = route.send(Told::Action(action));
            }
        }
        result
    }

    /// A connection is there, for the queue of this number. What is to be done about it is told by `route`.
    pub fn opened(&self, qid: u16, route: Sender<Told>) -> QueueKey {
        let mut inside = self.lock();
        let key = inside.engine.opened(qid);
        inside.routes.insert(key, route);
        key
    }

    /// A connection is gone.
    pub fn closed(&self, queue: QueueKey) {
        self.with(|engine| engine.closed(queue));
        self.lock().routes.remove(&queue);
    }

    /// Takes a command; see [`Engine::handle`].
    pub fn handle(&self, queue: QueueKey, sqe: &Sqe, data: Option<&[u8]>, room: usize) -> Outcome {
        let now = self.began.elapsed();
        self.with(|engine| engine.handle(queue, sqe, data, room, now))
    }

    /// Looks at timers.
    pub(crate) fn tick(&self) {
        let now = self.began.elapsed();
        self.with(|engine| engine.tick(now));
    }

    pub(crate) fn set_namespace(&self, subsystem: usize, nsid: u32, info: Option<NamespaceInfo>) {
        self.with(|engine| engine.set_namespace(subsystem, nsid, info));
    }

    /// What happened so far.
    pub fn counts(&self) -> EngineCounts {
        self.lock().engine.counts()
    }

    /// Controllers at the moment.
    pub fn num_controllers(&self) -> usize {
        self.lock().engine.num_controllers()
    }

    /// Queues at the moment.
    pub fn num_queues(&self) -> usize {
        self.lock().routes.len()
    }

    pub(crate) fn route(&self, queue: QueueKey) -> Option<Sender<Told>> {
        self.lock().routes.get(&queue).cloned()
    }
}

impl fmt::Debug for Frontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frontend")
    }
}

/// A transport of the application for admin queues, for adapters that cannot tell admin commands from I/O commands; see
/// the [crate's page](crate#the-admin-queue-on-hardware). It works on threads of its own: these calls only tell it.
pub trait AdminTransport: Send {
    /// Takes over a connection whose private data asked for queue 0: accepts it with `answer` on a queue pair of its own, and has an
    /// [`AdminQueue`](crate::AdminQueue) answer its commands. The initiator may send the first one before
    /// [`established`](AdminTransport::established) is called.
    fn take(&mut self, request: Request, answer: [u8; 32], frontend: &Frontend);

    /// RDMA CM says that the initiator of a request that was taken is there.
    fn established(&mut self, number: CmNumber);

    /// RDMA CM says that it is gone.
    fn gone(&mut self, number: CmNumber);
}
