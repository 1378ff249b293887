//! Sync events: numbers of 64 bits by which processors and peers signal each other. They begin with 0.
//!
//! The publisher is whom signals are expected from, the subscriber is where they are looked for, and the number
//! lives. Both may read and change it.
//!
//! ```text
//! SyncEvent::new(RemoteNet, Cpu) ── export_net ──> descriptor ──> RemoteEvent::import   (named in RDMA tasks)
//!           new(RemotePci, Cpu) ─── export_pci ──> descriptor ──> SyncEvent::import     (the same calls as here)
//! ```
//!
//! A [`SyncEvent`] is used by calls, which do it at once. An [`AsyncEvent`] is the same as a context of a progress engine,
//! and is used by tasks: its waits sleep with everything else that the engine waits for. An event is in one of these modes
//! for life; the peer's may be in the other.
//!
//! ```text
//! AsyncEvent::configure ──> Config ── start ──> Starting ── running ──> AsyncEvent ── stop ──> Stopping ── wait ──> Config
//!             import          enable(task) ─ key ──────────> queue(key) ── submit ──> Pending ── wait, or .await
//! ```
//!
//! | kind | gives | C |
//! | --- | --- | --- |
//! | [`GetTask`] | the value | `doca_sync_event_task_get` |
//! | [`SetTask`] | | `doca_sync_event_task_notify_set` |
//! | [`AddTask`] | the value before | `doca_sync_event_task_notify_add` |
//! | [`WaitEqualTask`] | | `doca_sync_event_task_wait_eq` |
//! | [`WaitNotEqualTask`] | | `doca_sync_event_task_wait_neq` |

mod context;
mod instance;
mod task;

pub use crate::owner::Key;
pub use context::{AsyncEvent, Config, Left, Starting, Stopping};
pub(crate) use instance::{Flight, Instance, Place, Run};
pub use task::{AddTask, GetTask, Pending, Queue, SetTask, Task, WaitEqualTask, WaitNotEqualTask};

use crate::buffer::Named;
use crate::caps::Capability;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{Error, Refusal, Result};
use crate::raw::current;
use crate::raw::event::{Owned, QUESTIONS, RemoteNet};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whom signals come from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Publisher<'a> {
    /// This process, through a device: `doca_sync_event_add_publisher_location_cpu`
    Cpu(&'a Device),
    /// The processor across PCI: `doca_sync_event_add_publisher_location_remote_pci`
    RemotePci,
    /// A peer over RDMA: `doca_sync_event_add_publisher_location_remote_net`
    RemoteNet,
}

/// Who looks for signals.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Subscriber<'a> {
    /// This process, through a device: `doca_sync_event_add_subscriber_location_cpu`
    Cpu(&'a Device),
    /// The processor across PCI: `doca_sync_event_add_subscriber_location_remote_pci`
    RemotePci,
}

/// A number that waits compare with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Greater than this: `doca_sync_event_wait_gt`
    Greater(u64),
    /// This: `doca_sync_event_wait_eq`
    Equal(u64),
    /// Anything else: `doca_sync_event_wait_neq`
    NotEqual(u64),
}

impl Condition {
    /// Whether it holds for a value.
    pub fn holds(self, value: u64) -> bool {
        match self {
            Condition::Greater(than) => value > than,
            Condition::Equal(to) => value == to,
            Condition::NotEqual(to) => value != to,
        }
    }
}

/// The devices that an event of these places uses.
fn devices(publisher: Publisher<'_>, subscriber: Subscriber<'_>) -> Vec<Device> {
    let publishing = if let Publisher::Cpu(device) = publisher { Some(device) } else { None };
    let subscribing = if let Subscriber::Cpu(device) = subscriber { Some(device) } else { None };
    publishing.into_iter().chain(subscribing).cloned().collect()
}

/// How long a wait polls before it yields, and yields before it naps.
const SPIN: Duration = Duration::from_micros(50);
const YIELD: Duration = Duration::from_millis(2);
const NAP: Duration = Duration::from_micros(100);

/// An event in synchronous mode: `doca_sync_event`. Several threads use one each over the same descriptor.
pub struct SyncEvent {
    event: Owned,
    _devices: Vec<Device>,
    /// One thread at a time.
    one_thread: PhantomData<Cell<()>>,
}

impl SyncEvent {
    /// Creates and starts an event: `doca_sync_event_create`, `doca_sync_event_start`.
    ///
    /// # Errors
    ///
    /// `NO_MEMORY`, or DOCA's for places that it does not take together: it does not say which. [`export_pci`](Self::export_pci)
    /// needs [`Publisher::Cpu`] or [`Publisher::RemotePci`], and [`export_net`](Self::export_net) [`Publisher::RemoteNet`].
    #[doc(alias = "doca_sync_event_create")]
    #[doc(alias = "doca_sync_event_start")]
    pub fn new(publisher: Publisher<'_>, subscriber: Subscriber<'_>) -> Result<Self> {
        let event = Owned::new(publisher, subscriber)?.start()?;
        Ok(SyncEvent { event, _devices: devices(publisher, subscriber), one_thread: PhantomData })
    }

    /// Imports the event of the processor across PCI, and starts it: `doca_sync_event_create_from_export`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] for no bytes, `INVALID_VALUE`, `NOT_SUPPORTED`, `NO_MEMORY`.
    #[doc(alias = "doca_sync_event_create_from_export")]
    pub fn import(device: &Device, descriptor: impl AsRef<[u8]>) -> Result<Self> {
        let event = Owned::import(device, descriptor.as_ref())?.start()?;
        Ok(SyncEvent { event, _devices: vec![device.clone()], one_thread: PhantomData })
    }

    /// The value now: `doca_sync_event_get`. What was written before it was set can be seen afterwards.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_sync_event_get")]
    pub fn get(&self) -> Result<u64> {
        self.event.get()
    }

    /// Sets the value: `doca_sync_event_update_set`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_sync_event_update_set")]
    pub fn set(&self, value: u64) -> Result<()> {
        self.event.set(value)
    }

    /// Adds to the value, which wraps around, and gives the one before: `doca_sync_event_update_add`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_sync_event_update_add")]
    pub fn add(&self, value: u64) -> Result<u64> {
        self.event.add(value)
    }

    /// Waits until the condition holds for the masked value, for `time` at most, and gives the whole value. DOCA's
    /// own waits never end by themselves, so this one is made of [`get`](Self::get). No engine is progressed
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] with the last value, [`Refusal::InCallback`], or DOCA's.
    #[doc(alias = "doca_sync_event_wait_gt")]
    #[doc(alias = "doca_sync_event_wait_eq")]
    #[doc(alias = "doca_sync_event_wait_neq")]
    pub fn wait_masked(&self, condition: Condition, mask: u64, time: Duration) -> Result<u64> {
        const CALL: &str = "doca_sync_event_get";
        if current::is_inside() {
            return Err(Error::refused(CALL, Refusal::InCallback));
        }
        let begin = Instant::now();
        loop {
            let value = self.get()?;
            if condition.holds(value & mask) {
                return Ok(value);
            }
            match begin.elapsed() {
                waited if waited >= time => {
                    let text = format!("{condition:?} of {value:#x} & {mask:#x} within {time:?}");
                    return Err(Error::refused(CALL, Refusal::TimedOut).with(text));
                }
                waited if waited < SPIN => std::hint::spin_loop(),
                waited if waited < YIELD => std::thread::yield_now(),
                waited => std::thread::sleep(NAP.min(time - waited)),
            }
        }
    }

    /// As [`wait_masked`](Self::wait_masked), with all bits.
    ///
    /// # Errors
    ///
    /// Those.
    pub fn wait_for(&self, condition: Condition, time: Duration) -> Result<u64> {
        self.wait_masked(condition, u64::MAX, time)
    }

    /// Makes the descriptor for a peer, whose publisher is [`Publisher::RemoteNet`]:
    /// `doca_sync_event_export_to_remote_net`. It carries a key: send it over a secure channel.
    ///
    /// # Errors
    ///
    /// `NOT_SUPPORTED` for another publisher, `NO_MEMORY`.
    #[doc(alias = "doca_sync_event_export_to_remote_net")]
    pub fn export_net(&self) -> Result<Descriptor> {
        self.event.export_net()
    }

    /// Makes the descriptor for the processor across PCI: `doca_sync_event_export_to_remote_pci`. It carries a key:
    /// send it over a secure channel.
    ///
    /// # Errors
    ///
    /// `NOT_SUPPORTED` unless the places are this process and the processor across PCI, `NO_MEMORY`.
    #[doc(alias = "doca_sync_event_export_to_remote_pci")]
    pub fn export_pci(&self, device: &Device) -> Result<Descriptor> {
        self.event.export_pci(device)
    }
}

impl fmt::Debug for SyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Ok(value) => write!(f, "SyncEvent({value:#x})"),
            Err(error) => write!(f, "SyncEvent({error})"),
        }
    }
}

/// An event of a peer, which RDMA tasks read and change: `doca_sync_event_remote_net`. Clones share it, tasks in
/// flight too.
#[derive(Clone)]
pub struct RemoteEvent(Arc<RemoteNet>);

impl RemoteEvent {
    /// Imports what a peer exported: `doca_sync_event_remote_net_create_from_export`. The descriptor must come over
    /// a channel that can be trusted.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] for no bytes, `INVALID_VALUE`, `NOT_SUPPORTED`, `NO_MEMORY`.
    #[doc(alias = "doca_sync_event_remote_net_create_from_export")]
    pub fn import(device: &Device, descriptor: impl AsRef<[u8]>) -> Result<Self> {
        RemoteNet::import(device, descriptor.as_ref()).map(|event| RemoteEvent(Arc::new(event)))
    }

    /// The device that it was imported for.
    pub fn device(&self) -> &Device {
        self.0.device()
    }

    /// In C, for library crates. A task that has it keeps a clone until it is done.
    #[inline]
    pub fn named(&self) -> Named<doca_sys::doca_sync_event_remote_net> {
        self.0.named()
    }
}

impl fmt::Debug for RemoteEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteEvent")
    }
}

/// The capability queries of events.
pub const CAPABILITIES: &[Capability] = QUESTIONS;

#[cfg(test)]
mod tests {
    use super::Condition;

    #[test]
    fn conditions() {
        assert!(Condition::Greater(4).holds(5) && !Condition::Greater(5).holds(5));
        assert!(Condition::Equal(5).holds(5) && !Condition::Equal(4).holds(5));
        assert!(Condition::NotEqual(4).holds(5) && !Condition::NotEqual(5).holds(5));
    }
}
