//! An event in asynchronous mode, with a queue of each kind of task.

use doca::event::{AddTask, Config, GetTask, Queue, SetTask, WaitEqualTask, WaitNotEqualTask};
use doca::{AsyncEvent, ProgressEngine};
use std::time::Duration;

/// Longer than starting takes.
const LIMIT: Duration = Duration::from_secs(10);

/// A running event.
pub struct Tasks {
    pub event: AsyncEvent,
    pub gets: Queue<GetTask>,
    pub sets: Queue<SetTask>,
    pub adds: Queue<AddTask>,
    pub equals: Queue<WaitEqualTask>,
    pub others: Queue<WaitNotEqualTask>,
    pub engine: ProgressEngine,
}

impl Tasks {
    /// Starts it with room for two tasks of each kind.
    pub fn start(mut config: Config) -> Self {
        let engine = ProgressEngine::new().unwrap();
        let (gets, sets, adds) =
            (config.enable(2).unwrap(), config.enable(2).unwrap(), config.enable(2).unwrap());
        let (equals, others) = (config.enable(2).unwrap(), config.enable(2).unwrap());
        let event = config.start(&engine).unwrap().running_within(LIMIT).unwrap();
        Tasks {
            gets: event.queue(gets).unwrap(),
            sets: event.queue(sets).unwrap(),
            adds: event.queue(adds).unwrap(),
            equals: event.queue(equals).unwrap(),
            others: event.queue(others).unwrap(),
            event,
            engine,
        }
    }
}
