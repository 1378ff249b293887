//! The object of a server or client, from its creation to its destruction, over any number of runs.

use crate::caps;
use crate::connection::ConnectionId;
use crate::lifecycle::{Config, Context, Object};
use crate::raw::end::End;
use crate::run::Run;
use doca_common::caps::Capability;
use doca_common::context::{Lifecycle, Member};
use doca_common::{Code, Device, Error, Refusal, Representor, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Messages on their way that are allowed unless the program says otherwise.
const SEND_TASKS: u32 = 64;

/// Takes messages as they come.
pub(crate) type OnMessage = Box<dyn FnMut(ConnectionId, &[u8])>;

/// How the last run of a server or client ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Ended {
    /// The program stopped it.
    Stopped,
    /// A client that did not get to its server: there is none of that name, it has no room, or it does not progress.
    NotReached,
    /// It ended by itself: the server ended the connection, or the peer is gone. With the code of the first message
    /// that could not be sent, if there was one.
    Lost(Option<Code>),
}

/// The C object and what belongs to it.
pub struct Control {
    end: End,
    life: Lifecycle,
    name: String,
    device: Device,
    /// Open as long as its server.
    _representor: Option<Representor>,
    send_tasks: Cell<u32>,
    sends_per_connection: Cell<Option<u32>>,
    on_message: RefCell<Option<OnMessage>>,
    /// Producers and consumers that were not destroyed yet.
    children: Arc<AtomicUsize>,
    run: RefCell<Option<Rc<Run>>>,
    ended: Cell<Option<Ended>>,
}

impl Control {
    /// Creates a server, if there is a representor, or a client.
    pub(crate) fn new(device: &Device, representor: Option<&Representor>, name: &str) -> Result<Rc<Self>> {
        let call =
            if representor.is_some() { "doca_comch_server_create" } else { "doca_comch_client_create" };
        let with_zero = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        caps::MAX_NAME_LEN
            .require_at_most(&device.info(), call, with_zero)
            .map_err(|error| error.with(format!("a name of {} bytes", name.len())))?;
        let end = match representor {
            Some(representor) => End::server(device, representor, name)?,
            None => End::client(device, name)?,
        };
        let made = end.context().and_then(|ctx| {
            end.hear()?;
            end.set_send_tasks(SEND_TASKS)?;
            Ok(ctx)
        });
        match made {
            Ok(ctx) => Ok(Rc::new(Control {
                end,
                life: Lifecycle::new(ctx),
                name: name.to_owned(),
                device: device.clone(),
                _representor: representor.cloned(),
                send_tasks: Cell::new(SEND_TASKS),
                sends_per_connection: Cell::new(None),
                on_message: RefCell::new(None),
                children: Arc::default(),
                run: RefCell::new(None),
                ended: Cell::new(None),
            })),
            Err(error) => {
                if let Err(error) = end.destroy() {
                    log::warn!("{error}");
                }
                Err(error)
            }
        }
    }

    pub(crate) fn end(&self) -> End {
        self.end
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The number of producers and consumers that were not destroyed yet.
    pub(crate) fn children(&self) -> &Arc<AtomicUsize> {
        &self.children
    }

    pub(crate) fn send_tasks(&self) -> u32 {
        self.send_tasks.get()
    }

    /// Messages that one connection can have on their way: of a server's, a quarter of all, so that one peer that takes
    /// none does not stop the others.
    pub(crate) fn sends_per_connection(&self) -> u32 {
        let default = match self.end {
            End::Server(_) => (self.send_tasks.get() / 4).max(1),
            End::Client(_) => self.send_tasks.get(),
        };
        self.sends_per_connection.get().unwrap_or(default)
    }

    /// The run that is going on.
    pub(crate) fn run(&self) -> Option<Rc<Run>> {
        self.run.borrow().clone()
    }

    /// Calls `body` with the run that is going on. It must not end or begin a run.
    pub(crate) fn with_run(&self, body: impl FnOnce(&Rc<Run>)) {
        if let Some(run) = &*self.run.borrow() {
            body(run);
        }
    }

    /// Hands a message to the program's closure; false if there is none. User code runs here, inside a callback.
    pub(crate) fn hand_over(&self, connection: ConnectionId, message: &[u8]) -> bool {
        let Some(take) = self.on_message.take() else { return false };
        let mut back = PutBack { control: self, take: Some(take) };
        if let Some(take) = &mut back.take {
            take(connection, message);
        }
        true
    }
}

/// Puts the closure back, also when it panicked.
struct PutBack<'a> {
    control: &'a Control,
    take: Option<OnMessage>,
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        *self.control.on_message.borrow_mut() = self.take.take();
    }
}

impl Object for Control {
    type Run = Run;

    fn begin(self: &Rc<Self>) -> Result<Rc<Run>> {
        const CALL: &str = "doca_ctx_start";
        self.life.require_idle(CALL)?;
        if !self.may_destroy() {
            let text = "producers and consumers of an earlier run are still there";
            return Err(Error::refused(CALL, Refusal::InUse).with(text));
        }
        let run = Rc::new(Run::new(self, self.end.max_msg_size()?));
        *self.run.borrow_mut() = Some(run.clone());
        self.ended.set(None);
        Ok(run)
    }
}

impl Member for Control {
    fn life(&self) -> &Lifecycle {
        &self.life
    }

    fn stop_asked(&self) {
        self.with_run(|run| run.stop_asked());
    }

    fn not_reached(&self) -> String {
        format!(
            "no server called {:?} took the client: there is none, it has no room, or it does not progress",
            self.name
        )
    }

    fn settle(&self) {
        if let Some(run) = self.run() {
            run.settle();
        }
    }

    /// The tasks of messages are freed by their callbacks.
    fn free_idle_tasks(&self) {}

    /// Producers and consumers first.
    fn prepare_stop(&self) -> bool {
        self.may_destroy()
    }

    fn may_destroy(&self) -> bool {
        self.children.load(Ordering::Acquire) == 0
    }

    fn ended(&self) {
        if let Some(run) = self.run.take() {
            self.ended.set(Some(run.end()));
        }
    }

    fn destroy(&self) -> Result<()> {
        self.end.destroy()
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {}, {:?}", self.name, self.device.info(), self.life.state())
    }
}

/// What servers and clients have in common.
pub trait ControlPath: Context<Object = Control> {}

impl<C: ControlPath> Config<C> {
    pub(crate) fn of(control: Rc<Control>) -> Self {
        Config { owner: doca_common::owner::Owner::new(control) }
    }

    /// The name that clients look for.
    pub fn name(&self) -> &str {
        self.owner.name()
    }

    /// The device that was given.
    pub fn device(&self) -> &Device {
        self.owner.device()
    }

    /// How its last run ended, if it ran.
    pub fn ended(&self) -> Option<Ended> {
        self.owner.ended.get()
    }

    fn set(
        &mut self,
        calls: [&'static str; 2],
        limit: Capability,
        value: u32,
        set: fn(End, u32) -> Result<()>,
    ) -> Result<()> {
        let call = match self.owner.end {
            End::Server(_) => calls[0],
            End::Client(_) => calls[1],
        };
        self.owner.require_idle(call)?;
        if value == 0 {
            return Err(Error::refused(call, Refusal::OutOfRange).with("0"));
        }
        limit.require_at_most(&self.device().info(), call, value)?;
        set(self.owner.end, value)
    }

    /// Sets the size of the largest message either way, bytes: `doca_comch_{server,client}_set_max_msg_size`. Both ends
    /// should use the same: what a receiver with a smaller one does with a longer message, DOCA does not say.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above the device's limit, [`Refusal::OutOfRange`] for 0, or DOCA's.
    #[doc(alias = "doca_comch_server_set_max_msg_size")]
    #[doc(alias = "doca_comch_client_set_max_msg_size")]
    pub fn set_max_msg_size(&mut self, bytes: u32) -> Result<()> {
        let calls = ["doca_comch_server_set_max_msg_size", "doca_comch_client_set_max_msg_size"];
        self.set(calls, caps::MAX_MSG_SIZE, bytes, End::set_max_msg_size)
    }

    /// The size of the largest message, bytes: `doca_comch_{server,client}_get_max_msg_size`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_comch_server_get_max_msg_size")]
    #[doc(alias = "doca_comch_client_get_max_msg_size")]
    pub fn max_msg_size(&self) -> Result<u32> {
        self.owner.life().require_alive("doca_comch_get_max_msg_size")?;
        self.owner.end.max_msg_size()
    }

    /// Sets how many messages of the peer wait until this side progresses: `doca_comch_{server,client}_set_recv_queue_size`.
    /// While it is full, the peer's messages stay on their way.
    ///
    /// # Errors
    ///
    /// As for [`set_max_msg_size`](Self::set_max_msg_size).
    #[doc(alias = "doca_comch_server_set_recv_queue_size")]
    #[doc(alias = "doca_comch_client_set_recv_queue_size")]
    pub fn set_recv_queue_size(&mut self, messages: u32) -> Result<()> {
        let calls = ["doca_comch_server_set_recv_queue_size", "doca_comch_client_set_recv_queue_size"];
        self.set(calls, caps::MAX_RECV_QUEUE_SIZE, messages, End::set_recv_queue_size)
    }

    /// How many messages of the peer wait until this side progresses: `doca_comch_{server,client}_get_recv_queue_size`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_comch_server_get_recv_queue_size")]
    #[doc(alias = "doca_comch_client_get_recv_queue_size")]
    pub fn recv_queue_size(&self) -> Result<u32> {
        self.owner.life().require_alive("doca_comch_get_recv_queue_size")?;
        self.owner.end.recv_queue_size()
    }

    /// Sets how many messages can be on their way, over all connections: `doca_comch_{server,client}_task_send_set_conf`.
    /// Each takes memory for the largest message.
    ///
    /// # Errors
    ///
    /// As for [`set_max_msg_size`](Self::set_max_msg_size).
    #[doc(alias = "doca_comch_server_task_send_set_conf")]
    #[doc(alias = "doca_comch_client_task_send_set_conf")]
    pub fn set_send_tasks(&mut self, messages: u32) -> Result<()> {
        let calls = ["doca_comch_server_task_send_set_conf", "doca_comch_client_task_send_set_conf"];
        self.set(calls, caps::MAX_SEND_TASKS, messages, End::set_send_tasks)?;
        self.owner.send_tasks.set(messages);
        Ok(())
    }

    /// Sets how many messages of one connection can be on their way. A peer that takes none would otherwise use up what
    /// all connections have together: so a server's share is a quarter of all unless set.
    ///
    /// # Errors
    ///
    /// [`Refusal::OutOfRange`] for 0.
    pub fn set_sends_per_connection(&mut self, messages: u32) -> Result<()> {
        const CALL: &str = "set_sends_per_connection";
        self.owner.require_idle(CALL)?;
        if messages == 0 {
            return Err(Error::refused(CALL, Refusal::OutOfRange).with("0"));
        }
        self.owner.sends_per_connection.set(Some(messages));
        Ok(())
    }

    /// Hands every message to this closure, inside progress, with the connection that it came over. It may look, copy,
    /// count and send; progressing, waiting and starting are refused there. Connections keep no messages then.
    pub fn on_message(&mut self, take: impl FnMut(ConnectionId, &[u8]) + 'static) {
        let before = self.owner.on_message.borrow_mut().replace(Box::new(take));
        drop(before);
    }
}
