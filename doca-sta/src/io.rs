//! IO contexts: each is progressed by one thread, and has the queue pairs that this thread serves.
//!
//! ```text
//! Sta::io_seed ──> IoSeed ── to another thread, or not ──> start(engine) ──> IoStarting ── running ──> Io
//! ```

use crate::cm::{CmNumber, Request};
use crate::command::Command;
use crate::event::IoEvent;
use crate::io_instance::{Family, IoCounts, IoInstance};
use crate::qp::{Qp, QpId, QpState};
use crate::raw::io::{IoHandle, QpHandle};
use doca_common::context::{Member, State};
use doca_common::owner::{Owner, deadline};
use doca_common::{Device, Error, ProgressEngine, Refusal, Result};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// An IO context that is not on its thread yet. Dropping it destroys it.
pub struct IoSeed {
    /// There until it is started.
    handle: Option<IoHandle>,
    channel: u16,
    family: Arc<Family>,
}

impl IoSeed {
    pub(crate) fn new(handle: IoHandle, channel: u16, family: Arc<Family>) -> Self {
        IoSeed { handle: Some(handle), channel, family }
    }

    /// Starts it on an engine of this thread, where it stays: `doca_ctx_start`. A seed that does not start is gone.
    ///
    /// # Errors
    ///
    /// [`Refusal::InCallback`], or DOCA's: `BAD_STATE` if the control context does not run any more.
    #[doc(alias = "doca_sta_io_create")]
    #[doc(alias = "doca_ctx_start")]
    pub fn start(mut self, engine: &ProgressEngine) -> Result<IoStarting> {
        const CALL: &str = "doca_ctx_start";
        engine.core().require_outside(CALL)?;
        let handle = self.handle.take().ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let made = handle.enable(self.channel).and_then(|()| handle.context());
        let ctx = match made {
            Ok(ctx) => ctx,
            Err(error) => {
                self.handle = Some(handle);
                return Err(error);
            }
        };
        let owner = IoOwner::new(Rc::new(IoInstance::new(handle, ctx, self.channel, self.family.clone())));
        owner.start(engine)?;
        Ok(IoStarting { owner })
    }
}

impl Drop for IoSeed {
    fn drop(&mut self) {
        match self.handle.take().map(|handle| handle.destroy()) {
            None => {}
            Some(Ok(())) => self.family.context_gone(),
            Some(Err(error)) => log::warn!("{error}: an IO context is leaked, and its target with it"),
        }
    }
}

impl fmt::Debug for IoSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoSeed({})", self.channel)
    }
}

/// An IO context that is starting.
#[derive(Debug)]
#[must_use = "dropping it stops the context"]
pub struct IoStarting {
    owner: IoOwner,
}

impl IoStarting {
    /// Progresses until the context runs.
    ///
    /// # Errors
    ///
    /// `INITIALIZATION` if it fell back to idle; the context is gone then.
    pub fn running(self) -> Result<Io> {
        self.running_by(None)
    }

    /// As [`running`](Self::running), for this long at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] too.
    pub fn running_within(self, time: Duration) -> Result<Io> {
        self.running_by(deadline(time))
    }

    fn running_by(self, deadline: Option<Instant>) -> Result<Io> {
        self.owner.until_running(deadline)?;
        Ok(Io { owner: self.owner })
    }
}

/// The program's claim to an IO context: dropping it ends the context, its queue pairs first.
type IoOwner = Owner<IoInstance>;

/// A running IO context. Dropping it disconnects its queue pairs, stops and destroys it, by progress of its engine.
#[derive(Debug)]
pub struct Io {
    owner: IoOwner,
}

impl Io {
    fn instance(&self) -> &Rc<IoInstance> {
        self.owner.shared()
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.instance().life().state()
    }

    /// Takes a request and accepts it with private data, 196 bytes at most: `doca_sta_io_qp_connect`. DOCA has the
    /// request afterwards, also when it fails; what is refused before DOCA is asked turns the client away.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]; [`Refusal::OtherDevice`] for a request that came to a device which was not added;
    /// [`Refusal::Capability`] above `sta.qps`; [`Refusal::TooLong`]; `CONNECTION_ABORTED` if the client has gone.
    #[doc(alias = "doca_sta_io_qp_connect")]
    pub fn accept(&self, request: Request, data: &[u8]) -> Result<Qp> {
        const CALL: &str = "doca_sta_io_qp_connect";
        let io = self.instance();
        let device = io.ready_for(CALL, Some(&request), data)?;
        let number = request.number();
        let id = request.into_id().ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let channel = id.channel();
        let handle = io.handle().connect(&device, id, data)?;
        Ok(Qp::new(io.clone(), io.adopt(handle, number, channel)))
    }

    /// Makes an empty queue pair for a later request, on a device that was added: `doca_sta_io_qp_alloc`.
    ///
    /// # Errors
    ///
    /// As for [`accept`](Io::accept).
    #[doc(alias = "doca_sta_io_qp_alloc")]
    pub fn spare(&self, device: &Device) -> Result<Spare> {
        const CALL: &str = "doca_sta_io_qp_alloc";
        let io = self.instance();
        io.ready_for(CALL, None, &[])?;
        if !io.family().networks.contains(device) {
            return Err(Error::refused(CALL, Refusal::OtherDevice).with(device.info().to_string()));
        }
        let handle = io.handle().alloc(device)?;
        Ok(Spare { io: io.clone(), handle: Some(handle), device: device.clone() })
    }

    /// The next command that DOCA does not execute, if one came.
    pub fn command(&self) -> Option<Command> {
        self.instance().look_after();
        let (id, capsule) = self.instance().next_command()?;
        Some(Command::new(self.instance().clone(), id, capsule))
    }

    /// Progresses until a command came; `None` if there was none within `time`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`], [`Refusal::InCallback`], [`Refusal::EngineGone`]
    pub fn command_within(&self, time: Duration) -> Result<Option<Command>> {
        const CALL: &str = "doca_pe_progress";
        let io = self.instance();
        io.life().require_running(CALL)?;
        let core = io.life().engine().ok_or_else(|| Error::refused(CALL, Refusal::Stopped))?;
        let mut command = None;
        core.wait(CALL, deadline(time), || {
            command = self.command();
            command.is_some() || io.life().state() != State::Running
        })?;
        Ok(command)
    }

    /// Resolves to the next command, while something progresses the engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`]
    pub async fn next_command(&self) -> Result<Command> {
        poll_fn(|poller| {
            if let Some(command) = self.command() {
                return Poll::Ready(Ok(command));
            }
            if let Err(error) = self.instance().life().require_running("doca_pe_progress") {
                return Poll::Ready(Err(error));
            }
            self.instance().watch(poller.waker());
            Poll::Pending
        })
        .await
    }

    /// Records from now on what happens to queue pairs. There is one record: a new one begins empty.
    pub fn events(&self) -> IoEvents {
        self.instance().set_recording(true);
        IoEvents { io: self.instance().clone() }
    }

    /// Where a queue pair is, by its name.
    pub fn qp_state(&self, id: QpId) -> QpState {
        self.instance().qp_state(id)
    }

    /// The queue pair of a connection of RDMA CM, for its events.
    pub fn qp_of(&self, number: CmNumber) -> Option<QpId> {
        self.instance().qp_of(number)
    }

    /// Queue pairs that are not destroyed yet.
    pub fn qps(&self) -> usize {
        self.instance().qps()
    }

    /// What came so far.
    pub fn counts(&self) -> IoCounts {
        self.instance().counts()
    }

    /// Disconnects all queue pairs, stops the context and destroys it, while progressing.
    ///
    /// # Errors
    ///
    /// [`Refusal::TimedOut`] if that took longer than `time`; it goes on by progress. DOCA's.
    pub fn close(self, time: Duration) -> Result<()> {
        let io = self.owner.shared().clone();
        let deadline = deadline(time);
        drop(self);
        let Some(core) = io.life().engine() else { return Ok(()) };
        if core.wait("doca_ctx_stop", deadline, || io.life().is_gone())? {
            return Ok(());
        }
        let text = format!("{}, {} queue pairs", io.life().left(), io.qps());
        Err(Error::refused("doca_ctx_stop", Refusal::TimedOut).with(text))
    }
}

/// A queue pair without a connection. Dropping it destroys it.
#[derive(Debug)]
pub struct Spare {
    io: Rc<IoInstance>,
    handle: Option<QpHandle>,
    device: Device,
}

impl Spare {
    /// Takes a request and accepts it, as [`Io::accept`] does: `doca_sta_io_qp_accept`. A queue pair that fails to
    /// accept is gone, too.
    ///
    /// # Errors
    ///
    /// As for [`Io::accept`].
    #[doc(alias = "doca_sta_io_qp_accept")]
    pub fn accept(mut self, request: Request, data: &[u8]) -> Result<Qp> {
        const CALL: &str = "doca_sta_io_qp_accept";
        let device = self.io.ready_for(CALL, Some(&request), data)?;
        if device != self.device {
            return Err(Error::refused(CALL, Refusal::OtherDevice).with(format!("{request:?}")));
        }
        let handle = self.handle.ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let number = request.number();
        let id = request.into_id().ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        let channel = id.channel();
        self.io.handle().accept(handle, &self.device, id, data)?;
        self.handle = None;
        Ok(Qp::new(self.io.clone(), self.io.adopt(handle, number, channel)))
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take()
            && !self.io.life().is_gone()
            && let Err(error) = self.io.handle().destroy_qp(handle)
        {
            log::warn!("{error}: an empty queue pair stays");
        }
    }
}

/// What happens to the queue pairs of an IO context, in order, from the moment this was made. Unread events are kept,
/// so read them or drop this.
pub struct IoEvents {
    io: Rc<IoInstance>,
}

impl Iterator for IoEvents {
    type Item = IoEvent;

    /// The next event that was not read yet; more may come after progress.
    fn next(&mut self) -> Option<IoEvent> {
        self.io.next_event()
    }
}

impl Drop for IoEvents {
    fn drop(&mut self) {
        self.io.set_recording(false);
    }
}

impl fmt::Debug for IoEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IoEvents")
    }
}
